"""Kernels of the distance: the squared exponential and three of Matérn's."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pogp.arrays import Array
from pogp.kernels.kernel import (
    CrossPullback,
    Kernel,
    Program,
    Pullback,
    inputs,
    log_parameters,
)

# A squared distance at which every radial kernel has long been zero in float64.
_FAR = 1e12
# Rows of a strip: with a few hundred columns it stays in the second-level cache.
_STRIP = 96


class Stationary(Kernel):
    """κ(a, b) = variance · φ(r) with r² = Σ_d ((a_d − b_d)/ℓ_d)².

    `lengthscale` is a number, shared by all inputs, or a sequence with one for each (ARD).
    A subclass gives φ and its slope −φ′(r)/r.
    """

    def __init__(self, lengthscale: ArrayLike = 1.0, variance: float = 1.0) -> None:
        self._scales = _positive("lengthscale", lengthscale, max_ndim=1)
        self._variance = float(_positive("variance", variance, max_ndim=0))

    @staticmethod
    @abstractmethod
    def _profile(r2: Array) -> Array:
        """Return φ, given r²."""

    @staticmethod
    @abstractmethod
    def _slope(r2: Array, phi: Array) -> Array:
        """Return −φ′(r)/r, given r² and φ."""

    @property
    def lengthscale(self) -> float | Array:
        """The shared length-scale, or the read-only array of one per input."""
        return self._scales if self._scales.ndim else float(self._scales)

    @property
    def variance(self) -> float:
        """κ(a, a)."""
        return self._variance

    def __call__(self, A: ArrayLike, B: ArrayLike | None = None) -> Array:
        """Return κ(A, B)."""
        left = self._scaled(A)
        right = left if B is None else self._scaled(B)
        return self._variance * self._profile(_squared_distances(left, right))

    def diag(self, A: ArrayLike) -> Array:
        """Return the variance for every row of A."""
        return np.full(len(self._scaled(A)), self._variance)

    @property
    def dimension(self) -> int | None:
        """The number of length-scales, None for a shared one."""
        return self._scales.size if self._scales.ndim else None

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The length-scale or length-scales, then the variance."""
        if self.dimension is None:
            return ("lengthscale", "variance")
        return (*(f"lengthscale[{d}]" for d in range(self.dimension)), "variance")

    @property
    def theta(self) -> Array:
        """The logarithms of the length-scales and of the variance."""
        theta: Array = np.log(np.append(self._scales, self._variance))
        return theta

    def with_theta(self, theta: ArrayLike) -> Self:
        """Return the same kernel with other length-scales and another variance."""
        *scales, variance = np.exp(log_parameters(theta, self._scales.size + 1))
        return type(self)(np.reshape(scales, self._scales.shape), float(variance))

    def gradients(self, A: ArrayLike) -> Array:
        """Return ∂κ(A, A)/∂theta; in log ℓ_d it is variance · slope · (a_d − b_d)²/ℓ_d²."""
        scaled = self._scaled(A)
        r2 = _squared_distances(scaled, scaled)
        phi = self._profile(r2)
        squares = r2[None]
        if self.dimension is not None:
            squares = (scaled.T[:, :, None] - scaled.T[:, None, :]) ** 2
        return self._variance * np.concatenate([self._slope(r2, phi) * squares, phi[None]])

    def value_and_pullback(self, A: ArrayLike) -> tuple[Array, Pullback]:
        """Return κ(A, A) and its pullback, which costs one matrix product for all of ARD.

        Only the pairs i ≥ j are computed, in strips of rows that stay in the cache.
        """
        scaled = self._scaled(A)
        value = np.empty((len(scaled), len(scaled)))
        strips = []
        for rows in _strips(len(scaled)):
            r2 = _squared_distances(scaled[rows], scaled[: rows.stop])
            phi = self._profile(r2)
            np.multiply(phi, self._variance, out=value[rows, : rows.stop])
            value[: rows.start, rows] = value[rows, : rows.start].T
            strips.append((rows, r2, phi))

        def pullback(weights: Array) -> Array:
            centred = scaled - scaled.mean(axis=0)
            in_scales, in_variance = np.zeros(self._scales.shape), 0.0
            for rows, r2, phi in strips:
                both = weights[rows, : rows.stop].copy()
                both[:, : rows.start] += weights[: rows.start, rows].T
                in_variance += float(np.vdot(phi, both))
                S = self._slope(r2, phi) * both
                if self.dimension is None:
                    in_scales += np.vdot(S, r2)
                else:
                    S[r2 == 0.0] = 0.0  # exactly what they contribute, however large the weights
                    in_scales += _weighted_squares(S, centred[rows], centred[: rows.stop])
            return self._variance * np.append(in_scales, in_variance)

        return value, pullback

    def cross_pullback(self, A: ArrayLike, B: ArrayLike) -> tuple[Array, CrossPullback]:
        """Return κ(A, B) and its pullback, which costs one matrix product for all of ARD."""
        left, right = self._scaled(A), self._scaled(B)
        r2 = _squared_distances(left, right)
        phi = self._profile(r2)
        value = self._variance * phi

        def pullback(weights: Array) -> tuple[Array, Array]:
            S = self._variance * self._slope(r2, phi) * weights
            S[r2 == 0.0] = 0.0  # exactly what they contribute, however large the weights
            squares, pulls = _weighted_differences(S, left, right)
            in_scales = np.vdot(S, r2) if self.dimension is None else squares
            return np.append(in_scales, np.vdot(weights, value)), pulls / self._scales

        return value, pullback

    def diag_pullback(self, A: ArrayLike, weights: ArrayLike) -> Array:
        """Return nothing for the length-scales, the whole for the variance."""
        return np.append(np.zeros(self._scales.size), self._variance * np.sum(weights))

    def program(self) -> Program | None:
        """Return the one step, None for a subclass from outside this module."""
        if type(self) not in STATIONARY.values():
            return None
        return ((type(self).__name__, np.atleast_1d(self._scales), self._variance),)

    def to_spec(self) -> dict[str, Any]:
        """Describe the kernel by its name and its parameters."""
        if type(self) not in STATIONARY.values():
            return super().to_spec()
        kind = type(self).__name__
        return {"kind": kind, "lengthscale": self._scales.tolist(), "variance": self._variance}

    def _scaled(self, A: ArrayLike) -> Array:
        return inputs(A, self.dimension) / self._scales

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Stationary)
            and type(self) is type(other)
            and np.array_equal(self._scales, other._scales)
            and self._variance == other._variance
        )

    def __hash__(self) -> int:
        return hash((type(self), self._scales.tobytes(), self._variance))

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}(lengthscale={self._scales.tolist()!r}, variance={self._variance!r})"

    def __reduce__(self) -> tuple[type[Self], tuple[float | Array, float]]:
        # By way of the constructor: NumPy would unpickle the read-only array as a writeable one.
        return type(self), (self.lengthscale, self.variance)


class RBF(Stationary):
    """The squared exponential: φ(r) = exp(−r²/2).

    >>> RBF(lengthscale=[1.0, 2.0], variance=1.5)([[0.0, 0.0]], [[1.0, 2.0]]).round(6)
    array([[0.551819]])
    """

    @staticmethod
    def _profile(r2: Array) -> Array:
        return np.exp(-0.5 * r2)

    @staticmethod
    def _slope(r2: Array, phi: Array) -> Array:
        return phi


class Matern12(Stationary):
    """Matérn with ν = 1/2, continuous and nowhere smooth: φ(r) = exp(−r).

    >>> Matern12(lengthscale=2.0)([[0.0]], [[2.0]]).round(6)
    array([[0.367879]])
    """

    @staticmethod
    def _profile(r2: Array) -> Array:
        return np.exp(-np.sqrt(r2))

    @staticmethod
    def _slope(r2: Array, phi: Array) -> Array:
        # Infinite at r = 0, where it stands before (a_d − b_d)² = 0; the product tends to zero.
        return np.divide(phi, np.sqrt(r2), out=np.zeros_like(phi), where=r2 > 0)


class Matern32(Stationary):
    """Matérn with ν = 3/2, once differentiable: φ(r) = (1 + √3 r) exp(−√3 r).

    >>> Matern32()([[0.0]], [[1.0]]).round(6)
    array([[0.483358]])
    """

    @staticmethod
    def _profile(r2: Array) -> Array:
        s = np.sqrt(3.0 * r2)
        return (1.0 + s) * np.exp(-s)

    @staticmethod
    def _slope(r2: Array, phi: Array) -> Array:
        return 3.0 * np.exp(-np.sqrt(3.0 * r2))


class Matern52(Stationary):
    """Matérn with ν = 5/2, twice differentiable: φ(r) = (1 + √5 r + 5r²/3) exp(−√5 r).

    >>> Matern52()([[0.0]], [[1.0]]).round(6)
    array([[0.523994]])
    """

    @staticmethod
    def _profile(r2: Array) -> Array:
        s = np.sqrt(5.0 * r2)
        return (1.0 + s + s * s / 3.0) * np.exp(-s)

    @staticmethod
    def _slope(r2: Array, phi: Array) -> Array:
        s = np.sqrt(5.0 * r2)
        return (5.0 / 3.0) * (1.0 + s) * np.exp(-s)


STATIONARY: dict[str, type[Stationary]] = {
    kernel.__name__: kernel for kernel in (RBF, Matern12, Matern32, Matern52)
}


def _positive(name: str, value: ArrayLike, max_ndim: int) -> Array:
    """Return a read-only copy of a positive number or, if allowed, of a sequence of them."""
    array = np.asarray(value)
    if array.ndim > max_ndim or array.size == 0:
        shape = "a number or a sequence of numbers" if max_ndim else "a number"
        raise ValueError(f"{name} must be {shape}, got {value!r}")
    if array.dtype.kind not in "iuf" or not np.all((array > 0) & np.isfinite(array)):
        raise ValueError(f"{name} must be positive and finite, got {value!r}")
    copy = array.astype(np.float64)
    copy.setflags(write=False)
    return copy


def _squared_distances(A: Array, B: Array) -> Array:
    from scipy.spatial.distance import cdist  # slow to import, unlike the compiled kernels

    if A.shape[1] != B.shape[1]:
        raise ValueError(f"inputs differ in columns: {A.shape[1]} and {B.shape[1]}")
    # cdist subtracts before it squares: no cancellation, and exact zeros on the diagonal.
    # The cap keeps the Matérn kernels from ∞ · 0 where r² overflows.
    r2 = cdist(A, B, "sqeuclidean")
    return np.minimum(r2, _FAR, out=r2)


def _strips(n: int) -> list[slice]:
    """Return the rows of a lower triangle, cut into strips."""
    return [slice(start, min(start + _STRIP, n)) for start in range(0, n, _STRIP)]


def _weighted_squares(S: Array, A: Array, B: Array) -> Array:
    """Return Σ_ij S_ij (a_id − b_jd)² for every column d.

    Expanded, all columns together need one matrix product. Centred A and B keep the cancellation
    small.
    """
    squares: Array = S.sum(axis=1) @ A**2 + S.sum(axis=0) @ B**2
    squares -= 2.0 * np.einsum("id,id->d", A, S @ B)
    return squares


def _weighted_differences(S: Array, A: Array, B: Array) -> tuple[Array, Array]:
    """Return Σ_ij S_ij (a_id − b_jd)² for every column d, and Σ_j S_ij (b_j − a_i) for every i.

    Expanded, both need one matrix product for all columns together. Centring keeps the
    cancellation small.
    """
    centre = A.mean(axis=0)
    A, B = A - centre, B - centre
    rows, columns, product = S.sum(axis=1), S.sum(axis=0), S @ B
    squares: Array = rows @ A**2 + columns @ B**2 - 2.0 * np.einsum("id,id->d", A, product)
    return squares, product - rows[:, None] * A
