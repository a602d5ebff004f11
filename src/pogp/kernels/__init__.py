"""Covariance functions: elementary kernels, their sums and products, and functions of the user.

A kernel is immutable and compares by value. The logarithms of its parameters are one vector,
`theta`, and derivatives are with respect to `theta`.
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
