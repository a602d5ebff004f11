"""Sums and products of kernels."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from pogp.arrays import Array
from pogp.kernels.kernel import CrossPullback, Kernel, Program, Pullback, log_parameters


@dataclass(frozen=True, repr=False)
class _Pair(Kernel):
    """Two kernels combined entry by entry. A subclass defines the operation and derivatives."""

    left: Kernel
    right: Kernel
    symbol: ClassVar[str]
    _dimension: int | None = field(init=False, repr=False, compare=False)
    _least_dimension: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for part in (self.left, self.right):
            if not isinstance(part, Kernel):
                raise ValueError(f"both parts must be kernels, got {part!r}")
        # Once, and not when they are asked for: each level would ask the one below twice.
        left, right = self.left.dimension, self.right.dimension
        least = max(self.left.least_dimension, self.right.least_dimension)
        dimension = right if left is None else left
        if (left is not None and right is not None and left != right) or (
            dimension is not None and dimension < least
        ):
            raise ValueError(
                f"both parts must agree on the number of inputs, got {_wanted(self.left)} "
                f"in {self.left!r} and {_wanted(self.right)} in {self.right!r}"
            )
        object.__setattr__(self, "_dimension", dimension)
        object.__setattr__(self, "_least_dimension", least)

    @staticmethod
    @abstractmethod
    def _shares(power: float) -> tuple[float, float]:
        """Return the κ(x, x) of each part for which the pair has `power`."""

    @staticmethod
    @abstractmethod
    def _join(left: Array, right: Array) -> Array:
        """Return the value, given those of the two parts."""

    @staticmethod
    @abstractmethod
    def _partials(left: Array, right: Array) -> tuple[Array | float, Array | float]:
        """Return the derivatives of the value in those of the two parts."""

    def __call__(self, A: ArrayLike, B: ArrayLike | None = None) -> Array:
        """Return the two matrices, joined."""
        return self._join(self.left(A, B), self.right(A, B))

    def diag(self, A: ArrayLike) -> Array:
        """Return the two diagonals, joined."""
        return self._join(self.left.diag(A), self.right.diag(A))

    @property
    def dimension(self) -> int | None:
        return self._dimension

    @property
    def least_dimension(self) -> int:
        return self._least_dimension

    @property
    def kappa0(self) -> float | None:
        left, right = self.left.kappa0, self.right.kappa0
        if type(self) not in PAIRS.values() or left is None or right is None:
            return None
        return float(self._join(np.array(left), np.array(right)))

    @property
    def parameter_names(self) -> tuple[str, ...]:
        parts = (("left", self.left), ("right", self.right))
        return tuple(f"{side}.{name}" for side, part in parts for name in part.parameter_names)

    @property
    def theta(self) -> Array:
        return np.concatenate([self.left.theta, self.right.theta])

    def with_theta(self, theta: ArrayLike) -> Self:
        split = self.left.theta.size
        theta = log_parameters(theta, split + self.right.theta.size)
        return type(self)(self.left.with_theta(theta[:split]), self.right.with_theta(theta[split:]))

    def typical_theta(self, A: ArrayLike, power: float) -> Array:
        left, right = self._shares(power)
        parts = self.left.typical_theta(A, left), self.right.typical_theta(A, right)
        return np.concatenate(parts)

    def scans(self, A: ArrayLike) -> dict[int, Array]:
        split = self.left.theta.size
        right = {split + place: values for place, values in self.right.scans(A).items()}
        return self.left.scans(A) | right

    def gradients(self, A: ArrayLike) -> Array:
        in_left, in_right = self._partials(self.left(A), self.right(A))
        left, right = self.left.gradients(A), self.right.gradients(A)
        return np.concatenate([left * in_left, right * in_right])

    def value_and_pullback(self, A: ArrayLike) -> tuple[Array, Pullback]:
        left, pull_left = self.left.value_and_pullback(A)
        right, pull_right = self.right.value_and_pullback(A)
        in_left, in_right = self._partials(left, right)

        def pullback(weights: Array) -> Array:
            left, right = _times(weights, in_left), _times(weights, in_right)
            return np.concatenate([pull_left(left), pull_right(right)])

        return self._join(left, right), pullback

    def cross_pullback(self, A: ArrayLike, B: ArrayLike) -> tuple[Array, CrossPullback]:
        left, pull_left = self.left.cross_pullback(A, B)
        right, pull_right = self.right.cross_pullback(A, B)
        in_left, in_right = self._partials(left, right)

        def pullback(weights: Array) -> tuple[Array, Array]:
            theta_left, A_left = pull_left(_times(weights, in_left))
            theta_right, A_right = pull_right(_times(weights, in_right))
            return np.concatenate([theta_left, theta_right]), A_left + A_right

        return self._join(left, right), pullback

    def diag_pullback(self, A: ArrayLike, weights: ArrayLike) -> Array:
        in_left, in_right = self._partials(self.left.diag(A), self.right.diag(A))
        left = self.left.diag_pullback(A, np.asarray(weights) * in_left)
        right = self.right.diag_pullback(A, np.asarray(weights) * in_right)
        return np.concatenate([left, right])

    def diag_gradient(self, X: ArrayLike) -> Array:
        partials = self._partials(self.left.diag(X), self.right.diag(X))
        in_left, in_right = (np.asarray(partial)[..., None] for partial in partials)
        left, right = self.left.diag_gradient(X), self.right.diag_gradient(X)
        return np.asarray(left * in_left + right * in_right)

    def program(self) -> Program | None:
        left, right = self.left.program(), self.right.program()
        if type(self) not in PAIRS.values() or left is None or right is None:
            return None
        return (*left, *right, self.symbol)

    def to_spec(self) -> dict[str, Any]:
        if type(self) not in PAIRS.values():
            return super().to_spec()
        kind = type(self).__name__
        return {"kind": kind, "left": self.left.to_spec(), "right": self.right.to_spec()}

    def __repr__(self) -> str:
        parts = (self.left, self.right)
        left, right = (f"({part!r})" if isinstance(part, _Pair) else f"{part!r}" for part in parts)
        return f"{left} {self.symbol} {right}"


class Sum(_Pair):
    """The kernel left + right.

    >>> from pogp import RBF, Matern32
    >>> RBF() + Matern32(lengthscale=0.5)
    RBF(lengthscale=1.0, variance=1.0) + Matern32(lengthscale=0.5, variance=1.0)
    """

    symbol = "+"

    def input_gradient(self, X: ArrayLike, Z: ArrayLike, weights: ArrayLike) -> Array:
        """Return the sum of those of the two parts."""
        left = self.left.input_gradient(X, Z, weights)
        return left + self.right.input_gradient(X, Z, weights)

    @staticmethod
    def _shares(power: float) -> tuple[float, float]:
        return power / 2, power / 2

    @staticmethod
    def _join(left: Array, right: Array) -> Array:
        return left + right

    @staticmethod
    def _partials(left: Array, right: Array) -> tuple[Array | float, Array | float]:
        return 1.0, 1.0


class Product(_Pair):
    """The kernel left * right.

    >>> from pogp import RBF
    >>> (RBF(variance=2.0) * RBF(variance=3.0)).diag([[0.0], [1.0]])
    array([6., 6.])
    """

    symbol = "*"

    def input_gradient(self, X: ArrayLike, Z: ArrayLike, weights: ArrayLike) -> Array:
        """Return the sum of those of the two parts, each weighted by the other too."""
        each = np.asarray(weights, dtype=np.float64)
        in_left = self.left.input_gradient(X, Z, each * self.right(X, Z))
        return in_left + self.right.input_gradient(X, Z, each * self.left(X, Z))

    @staticmethod
    def _shares(power: float) -> tuple[float, float]:
        return power, 1.0

    @staticmethod
    def _join(left: Array, right: Array) -> Array:
        return left * right

    @staticmethod
    def _partials(left: Array, right: Array) -> tuple[Array | float, Array | float]:
        return right, left


PAIRS: dict[str, type[_Pair]] = {kernel.__name__: kernel for kernel in (Sum, Product)}


def _times(weights: Array, partial: Array | float) -> Array:
    """Return the product; a sum, whose partials are one, need not copy the weights."""
    return weights if isinstance(partial, float) else weights * partial


def _wanted(kernel: Kernel) -> str:
    """Say how many inputs a kernel has to have."""
    least = f"at least {kernel.least_dimension}"
    return least if kernel.dimension is None else str(kernel.dimension)
