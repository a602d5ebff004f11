"""Covariance functions: elementary ones, their sums and products, and the user's own.

A kernel is a value: it never changes, it compares and hashes by what it is, and its parameters
are read and replaced as one vector, `theta`, of their logarithms. Derivatives are in `theta`.
"""

from pogp.kernels.elementary import Elementary
from pogp.kernels.function import FunctionKernel, SupportsKernel, as_kernel
from pogp.kernels.kernel import (
    CrossPullback,
    Kernel,
    Program,
    Pullback,
    Step,
    evaluate,
    prior_variance,
)
from pogp.kernels.linear import Constant, Linear
from pogp.kernels.pairs import Product, Sum
from pogp.kernels.periodic import Periodic
from pogp.kernels.spec import kernel_from_spec
from pogp.kernels.stationary import (
    RBF,
    Matern12,
    Matern32,
    Matern52,
    RationalQuadratic,
    Stationary,
)

__all__ = [
    "RBF",
    "Constant",
    "CrossPullback",
    "Elementary",
    "FunctionKernel",
    "Kernel",
    "Linear",
    "Matern12",
    "Matern32",
    "Matern52",
    "Periodic",
    "Product",
    "Program",
    "Pullback",
    "RationalQuadratic",
    "Stationary",
    "Step",
    "Sum",
    "SupportsKernel",
    "as_kernel",
    "evaluate",
    "kernel_from_spec",
    "prior_variance",
]
