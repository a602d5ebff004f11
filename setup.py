"""The compiled modules are in pyproject.toml; NumPy can only be asked here for its headers."""

from numpy import get_include
from setuptools import setup

setup(include_dirs=[get_include()])
