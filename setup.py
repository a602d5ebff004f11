"""Build the compiled modules, which are listed in pyproject.toml, in less time.

Cython adds its implementation of typed memoryviews to each module that uses them. Compiling it
takes longer than compiling most of the modules. Here the modules share one copy, `SHARED`. While
Cython translates a module, which only one thread can do at a time, the C compiler works on those
before it.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from Cython.Build import cythonize
from numpy import get_include
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SHARED = "pogp.cython_shared"


class Build(build_ext):
    """The usual command, with shared memoryviews and the longest modules first."""

    def build_extensions(self) -> None:
        """Build all modules, as many at a time as there are processors."""
        extensions = sorted(self.extensions, key=_source_size, reverse=True)
        with ThreadPoolExecutor(os.cpu_count()) as compilers:
            builds = [
                compilers.submit(self.build_extension, self._translated(ext)) for ext in extensions
            ]
        for build in builds:
            build.result()

    def _translated(self, ext: Extension) -> Extension:
        """Translate one module to C, unless that is up to date."""
        options = {"force": self.force, "quiet": not self.verbose}
        (translated,) = cythonize(ext, shared_utility_qualified_name=SHARED, **options)
        ext.sources = translated.sources
        return ext


def _source_size(ext: Extension) -> float:
    """Return the size of the sources in bytes; that of `SHARED`, which is generated, is large."""
    return sum(path.stat().st_size if path.exists() else 1e6 for path in map(Path, ext.sources))


setup(include_dirs=[get_include()], cmdclass={"build_ext": Build})
