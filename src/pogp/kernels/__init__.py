"""Covariance functions: four radial ones, their sums and products, and the user's own.

A kernel is a value: it never changes, it compares and hashes by what it is, and its parameters
are read and replaced as one vector, `theta`, of their logarithms. Derivatives are in `theta`.
"""

from pogp.kernels.function import FunctionKernel, as_kernel
from pogp.kernels.kernel import CrossPullback, Kernel, Program, Pullback, evaluate, prior_variance
from pogp.kernels.pairs import Product, Sum
from pogp.kernels.spec import kernel_from_spec
from pogp.kernels.stationary import RBF, Matern12, Matern32, Matern52, Stationary

__all__ = [
    "RBF",
    "CrossPullback",
    "FunctionKernel",
    "Kernel",
    "Matern12",
    "Matern32",
    "Matern52",
    "Product",
    "Program",
    "Pullback",
    "Stationary",
    "Sum",
    "as_kernel",
    "evaluate",
    "kernel_from_spec",
    "prior_variance",
]
