"""Kernels given as Python functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from pogp.arrays import Array
from pogp.kernels.kernel import Kernel, inputs


@dataclass(frozen=True, repr=False)
class FunctionKernel(Kernel):
    """A kernel from a function of two matrices (n, p) and (m, p) that returns (n, m).

    >>> FunctionKernel(lambda A, B: A @ B.T)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    function: Callable[[Array, Array], ArrayLike]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ValueError(f"expected a function κ(A, B), got {self.function!r}")

    def __call__(self, A: ArrayLike, B: ArrayLike | None = None) -> Array:
        """Return what the function returns for A and B."""
        left = inputs(A)
        right = left if B is None else inputs(B, left.shape[1])
        return np.asarray(self.function(left, right), dtype=np.float64)

    def __repr__(self) -> str:
        return f"FunctionKernel({getattr(self.function, '__qualname__', self.function)})"


@runtime_checkable
class SupportsKernel(Protocol):
    """An object that can be converted to a kernel, such as `pogp.Constant`."""

    def to_kernel(self) -> Kernel:
        """Return the kernel."""


def as_kernel(obj: object) -> Kernel:
    """Return a kernel as it is, and a function κ(A, B) as a kernel.

    >>> from pogp import RBF
    >>> as_kernel(RBF())
    RBF(lengthscale=1.0, variance=1.0)
    """
    if isinstance(obj, Kernel):
        return obj
    if isinstance(obj, SupportsKernel) and not isinstance(obj, type):
        return obj.to_kernel()
    if callable(obj) and not isinstance(obj, type):
        return FunctionKernel(obj)
    raise ValueError(f"expected a kernel such as RBF() or a function κ(A, B), got {obj!r}")
