"""The linear kernel and the constant kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from pogp.arrays import Array
from pogp.kernels.elementary import ConstantDiagonal, Elementary, builtin, positive
from pogp.kernels.kernel import CrossPullback, Pullback

SMALLEST_POWER, LARGEST_POWER = 1e-200, 1e200
"""Of the variances that a search starts from, whatever the inputs are."""


@builtin
class Linear(Elementary):
    """κ(a, b) = Σ_d variance_d a_d b_d: linear functions through the origin.

    Add a `Constant` for linear functions with an intercept. κ(x, x) depends on x: predictions far
    from the origin are less certain.

    Parameters
    ----------
    variance : float or array-like of shape (p,), default 1
        The variance of the slopes: one for all inputs, or one for each (ARD).
    columns : sequence of int, optional
        The inputs that the kernel uses, all if left out.

    Examples
    --------
    >>> Linear(variance=[2.0, 0.5])([[1.0, 2.0]], [[3.0, 4.0]])
    array([[10.]])
    """

    _fields = ("variance",)

    def __init__(self, variance: ArrayLike = 1.0, *, columns: Sequence[int] | None = None) -> None:
        self._settle(columns, variance=positive("variance", variance, max_ndim=1))

    @classmethod
    def with_inputs(cls, dimension: int) -> Self:
        """Return the kernel with a variance for each of so many inputs."""
        return cls(np.ones(dimension))

    @property
    def variance(self) -> float | Array:
        """The shared variance of the slopes, or the read-only array of one per input."""
        variances = self._values["variance"]
        return variances if variances.ndim else float(variances)

    def __call__(self, A: ArrayLike, B: ArrayLike | None = None) -> Array:
        """Return κ(A, B)."""
        left, right = self._scaled(A, B)
        total = np.zeros((len(left), len(right)))
        for d in range(left.shape[1]):  # a matrix product need not be symmetric to the last bit
            total += np.multiply.outer(left[:, d], right[:, d])
        return total

    def diag(self, A: ArrayLike) -> Array:
        """Return Σ_d variance_d a_d² for every row of A."""
        return np.asarray(np.sum(self._scaled(A, None)[0] ** 2, axis=1))

    def diag_gradient(self, X: ArrayLike) -> Array:
        """Return 2 variance_d x_d for every row of X."""
        return self._in_place(2.0 * self._values["variance"] * self._inputs(X), X)

    def typical_theta(self, A: ArrayLike, power: float) -> Array:
        """Return theta with which each input gives its share of a κ(x, x) of `power`."""
        rows = self._inputs(A)
        largest = np.maximum(np.abs(rows).max(axis=0), SMALLEST_POWER)
        squares = largest**2 * np.mean((rows / largest) ** 2, axis=0)
        if not self._values["variance"].ndim:
            squares = squares.mean(keepdims=True)
        with np.errstate(divide="ignore"):
            variances = np.where(squares > 0, power / (rows.shape[1] * squares), power)
        theta: Array = np.log(np.clip(variances, SMALLEST_POWER, LARGEST_POWER))
        return theta

    def gradients(self, A: ArrayLike) -> Array:
        """Return ∂κ(A, A)/∂theta."""
        scaled = self._scaled(A, None)[0].T
        return self._summed("variance", scaled[:, :, None] * scaled[:, None, :])

    def value_and_pullback(self, A: ArrayLike) -> tuple[Array, Pullback]:
        """Return κ(A, A) and its pullback."""
        _, pullback = self.cross_pullback(A, A)
        return self(A), lambda weights: pullback(weights)[0]

    def cross_pullback(self, A: ArrayLike, B: ArrayLike) -> tuple[Array, CrossPullback]:
        """Return κ(A, B) and its pullback."""
        left, right = self._scaled(A, B)

        def pullback(weights: Array) -> tuple[Array, Array]:
            product = weights @ right
            in_theta = self._summed("variance", np.sum(left * product, axis=0))
            in_A: Array = np.sqrt(self._values["variance"]) * product
            return in_theta, self._in_place(in_A, A)

        return left @ right.T, pullback

    def input_gradient(self, X: ArrayLike, Z: ArrayLike, weights: ArrayLike) -> Array:
        """Return Σ_j weights_ij variance_d z_jd."""
        left, right = self._both(X, Z)
        found = np.asarray(weights, dtype=np.float64) @ (self._values["variance"] * right)
        return self._in_place(np.broadcast_to(found, (*found.shape[:-2], *left.shape)), X)

    def diag_pullback(self, A: ArrayLike, weights: ArrayLike) -> Array:
        """Return Σ_i weights_i variance_d a_id²."""
        return self._summed("variance", np.asarray(weights) @ self._scaled(A, None)[0] ** 2)

    def _scaled(self, A: ArrayLike, B: ArrayLike | None) -> tuple[Array, Array]:
        left, right = self._both(A, B)
        roots = np.sqrt(self._values["variance"])
        return left * roots, right * roots


@builtin
class Constant(ConstantDiagonal):
    """κ(a, b) = variance: functions that are the same everywhere.

    `pogp.Constant` can be used in its place.

    Parameters
    ----------
    variance : float, default 1
        κ(a, b).
    columns : sequence of int, optional
        The inputs that the kernel uses, all if left out.

    Examples
    --------
    >>> from pogp import Linear
    >>> Linear() + Constant(variance=2.0)
    Linear(variance=1.0) + Constant(variance=2.0)
    """

    _fields = ("variance",)

    def __init__(self, variance: float = 1.0, *, columns: Sequence[int] | None = None) -> None:
        self._settle(columns, variance=positive("variance", variance, max_ndim=0))

    @classmethod
    def with_inputs(cls, dimension: int) -> Self:
        """Return the kernel, which does not depend on the inputs."""
        return cls()

    def __call__(self, A: ArrayLike, B: ArrayLike | None = None) -> Array:
        """Return κ(A, B)."""
        left, right = self._both(A, B)
        return np.full((len(left), len(right)), self.variance)

    def typical_theta(self, A: ArrayLike, power: float) -> Array:
        """Return the logarithm of `power`."""
        return np.log([power])

    def gradients(self, A: ArrayLike) -> Array:
        """Return ∂κ(A, A)/∂theta."""
        return self(A)[None]

    def cross_pullback(self, A: ArrayLike, B: ArrayLike) -> tuple[Array, CrossPullback]:
        """Return κ(A, B) and its pullback."""

        def pullback(weights: Array) -> tuple[Array, Array]:
            return self.variance * np.sum(weights, keepdims=True).ravel(), np.zeros(np.shape(A))

        return self(A, B), pullback

    def input_gradient(self, X: ArrayLike, Z: ArrayLike, weights: ArrayLike) -> Array:
        """Return zeros."""
        return np.zeros((*np.shape(weights)[:-2], *np.shape(X)))
