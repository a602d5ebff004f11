"""Stationary kernels: squared exponential, Matérn and rational quadratic."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from pogp.arrays import Array, spread
from pogp.kernels.elementary import SMALLEST, ConstantDiagonal, builtin, positive
from pogp.kernels.kernel import CrossPullback, Pullback

LEAST_TYPICAL = 1e-199
"""The least scale of the data: a search may go some way below, and stays above `SMALLEST`."""
LEAST_ALPHA = 1e-6
"""Where r²/(2α) is still finite for every r."""
STRIP = 96
"""Rows of a strip: with a few hundred columns it stays in the second-level cache."""


class Stationary(ConstantDiagonal):
    """κ(a, b) = variance · φ(r) with r² = Σ_d ((a_d − b_d)/ℓ_d)².

    A subclass defines φ and its slope −φ′(r)/r.

    Parameters
    ----------
    lengthscale : float or array-like of shape (p,), default 1
        One length-scale for all inputs, or one for each (ARD).
    variance : float, default 1
        κ(x, x).
    columns : sequence of int, optional
        The inputs that the kernel uses, all if left out.
    """

    _fields: ClassVar[tuple[str, ...]] = ("lengthscale", "variance")
    _far: ClassVar[float] = 1e12
    """A squared distance at which φ has long been zero in float64."""

    def __init__(
        self,
        lengthscale: ArrayLike = 1.0,
        variance: float = 1.0,
        *,
        columns: Sequence[int] | None = None,
    ) -> None:
        self._settle(
            columns,
            lengthscale=positive("lengthscale", lengthscale, max_ndim=1, least=SMALLEST),
            variance=positive("variance", variance, max_ndim=0),
        )

    @classmethod
    def with_inputs(cls, dimension: int) -> Self:
        """Return the kernel with a length-scale for each of so many inputs."""
        return cls(lengthscale=np.ones(dimension))

    @abstractmethod
    def _profile(self, r2: Array) -> Array:
        """Return φ, given r²."""

    @abstractmethod
    def _profile_and_slope(self, r2: Array) -> tuple[Array, Array]:
        """Return φ and −φ′(r)/r, given r²."""

    def _shape_gradients(self, r2: Array, phi: Array) -> list[Array]:
        """Return the derivatives of φ in the logarithms of the parameters after the variance."""
        return []

    @property
    def lengthscale(self) -> float | Array:
        """The shared length-scale, or the read-only array of one per input."""
        return self._scales if self._scales.ndim else float(self._scales)

    @property
    def _scales(self) -> Array:
        return self._values["lengthscale"]

    def __call__(self, A: ArrayLike, B: ArrayLike | None = None) -> Array:
        """Return κ(A, B)."""
        return self.variance * self._profile(self._squared_distances(*self._scaled(A, B)))

    def typical_theta(self, A: ArrayLike, power: float) -> Array:
        """Return theta for an r² of order one between the inputs, and κ(x, x) = power."""
        spreads = np.maximum(spread(self._inputs(A)), LEAST_TYPICAL)
        largest = spreads.max()
        shared = largest * np.linalg.norm(spreads / largest)
        scales = spreads * np.sqrt(spreads.size) if self._scales.ndim else shared
        theta: Array = np.log(np.append(scales, power))
        return np.append(theta, np.zeros(len(self._fields) - 2))

    def gradients(self, A: ArrayLike) -> Array:
        """Return ∂κ(A, A)/∂theta; in log ℓ_d it is variance · slope · (a_d − b_d)²/ℓ_d²."""
        scaled, _ = self._scaled(A, None)
        r2 = self._squared_distances(scaled, scaled)
        phi, slope = self._profile_and_slope(r2)
        squares = r2[None]
        if self._scales.ndim:
            squares = (scaled.T[:, :, None] - scaled.T[:, None, :]) ** 2
        others = [phi, *self._shape_gradients(r2, phi)]
        return self.variance * np.concatenate([slope * squares, np.array(others)])

    def value_and_pullback(self, A: ArrayLike) -> tuple[Array, Pullback]:
        """Return κ(A, A) and its pullback, which costs one matrix product for all of ARD.

        Only the pairs i ≥ j are computed, in strips of rows that stay in the cache.
        """
        scaled, _ = self._scaled(A, None)
        value = np.empty((len(scaled), len(scaled)))
        strips = []
        for rows in _strips(len(scaled)):
            r2 = self._squared_distances(scaled[rows], scaled[: rows.stop])
            phi, slope = self._profile_and_slope(r2)
            np.multiply(phi, self.variance, out=value[rows, : rows.stop])
            value[: rows.start, rows] = value[rows, : rows.start].T
            strips.append((rows, r2, phi, slope))

        def pullback(weights: Array) -> Array:
            centred = scaled - scaled.mean(axis=0)
            in_scales = np.zeros(self._scales.shape)
            others = np.zeros(len(self._fields) - 1)
            for rows, r2, phi, slope in strips:
                both = weights[rows, : rows.stop].copy()
                both[:, : rows.start] += weights[: rows.start, rows].T
                others += [np.vdot(g, both) for g in (phi, *self._shape_gradients(r2, phi))]
                S = slope * both
                if self._scales.ndim:
                    np.copyto(S, 0.0, where=r2 == 0.0)  # exactly, however large the weights
                    in_scales += _weighted_squares(S, centred[rows], centred[: rows.stop])
                else:
                    in_scales += np.vdot(S, r2)
            return self.variance * np.append(in_scales, others)

        return value, pullback

    def cross_pullback(self, A: ArrayLike, B: ArrayLike) -> tuple[Array, CrossPullback]:
        """Return κ(A, B) and its pullback, which costs one matrix product for all of ARD."""
        left, right = self._scaled(A, B)
        r2 = self._squared_distances(left, right)
        phi, slope = self._profile_and_slope(r2)
        # exactly what they contribute, however large the weights
        slope = np.where(r2 == 0.0, 0.0, slope)
        shapes = self._shape_gradients(r2, phi)
        value = self.variance * phi

        def pullback(weights: Array) -> tuple[Array, Array]:
            S = slope * weights
            S *= self.variance
            squares, pulls = _weighted_differences(S, left, right)
            in_scales = squares if self._scales.ndim else np.vdot(S, r2)
            others = [self.variance * np.vdot(weights, g) for g in shapes]
            in_theta = np.append(in_scales, [np.vdot(weights, value), *others])
            return in_theta, self._in_place(pulls / self._scales, A)

        return value, pullback

    def input_gradient(self, X: ArrayLike, Z: ArrayLike, weights: ArrayLike) -> Array:
        """Return Σ_j weights_ij ∂κ(x_i, z_j)/∂x_i; κ is computed once for all sets of weights."""
        left, right = self._scaled(X, Z)
        one = len(left) == 1
        if one:  # without the overhead of `cdist`
            right = right - left
            r2 = np.minimum(np.einsum("ij,ij->i", right, right), self._far)[None]
        else:
            r2 = self._squared_distances(left, right)
        slope = np.where(r2 == 0.0, 0.0, self._profile_and_slope(r2)[1])
        S = np.asarray(weights, dtype=np.float64) * (self.variance * slope)
        if one:
            pulls = S @ right
        else:
            centre = left.mean(axis=0) if len(left) else 0.0  # keeps the cancellation small
            pulls = S @ (right - centre) - S.sum(axis=-1, keepdims=True) * (left - centre)
        return self._in_place(pulls / self._scales, X)

    def _scaled(self, A: ArrayLike, B: ArrayLike | None) -> tuple[Array, Array]:
        left, right = self._both(A, B)
        scaled = left / self._scales
        return scaled, scaled if B is None else right / self._scales

    def _squared_distances(self, A: Array, B: Array) -> Array:
        from scipy.spatial.distance import cdist  # slow to import, unlike the compiled kernels

        # cdist subtracts before it squares: no cancellation, and exact zeros on the diagonal.
        # The cap keeps the profiles from ∞ · 0 where r² overflows.
        r2 = cdist(A, B, "sqeuclidean")
        return np.minimum(r2, self._far, out=r2)


@builtin
class RBF(Stationary):
    """The squared exponential: φ(r) = exp(−r²/2).

    >>> RBF(lengthscale=[1.0, 2.0], variance=1.5)([[0.0, 0.0]], [[1.0, 2.0]]).round(6)
    array([[0.551819]])
    """

    @staticmethod
    def _profile(r2: Array) -> Array:
        return np.exp(-0.5 * r2)

    @staticmethod
    def _profile_and_slope(r2: Array) -> tuple[Array, Array]:
        phi = np.exp(-0.5 * r2)
        return phi, phi


@builtin
class Matern12(Stationary):
    """Matérn with ν = 1/2, continuous and nowhere smooth: φ(r) = exp(−r).

    >>> Matern12(lengthscale=2.0)([[0.0]], [[2.0]]).round(6)
    array([[0.367879]])
    """

    @staticmethod
    def _profile(r2: Array) -> Array:
        return np.exp(-np.sqrt(r2))

    @staticmethod
    def _profile_and_slope(r2: Array) -> tuple[Array, Array]:
        r = np.sqrt(r2)
        phi = np.exp(-r)
        # Infinite at r = 0, where it stands before (a_d − b_d)² = 0; the product tends to zero.
        return phi, np.divide(phi, r, out=np.zeros_like(phi), where=r2 > 0)


@builtin
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
    def _profile_and_slope(r2: Array) -> tuple[Array, Array]:
        s = np.sqrt(3.0 * r2)
        falling = np.exp(-s)
        return (1.0 + s) * falling, 3.0 * falling


@builtin
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
    def _profile_and_slope(r2: Array) -> tuple[Array, Array]:
        s = np.sqrt(5.0 * r2)
        falling = np.exp(-s)
        return (1.0 + s + s * s / 3.0) * falling, (5.0 / 3.0) * (1.0 + s) * falling


@builtin
class RationalQuadratic(Stationary):
    """Squared exponentials of many length-scales in one: φ(r) = (1 + r²/(2α))^−α.

    The smaller `alpha`, the more they differ; it is `RBF` in the limit of a large one.

    >>> RationalQuadratic(lengthscale=2.0, alpha=0.5)([[0.0]], [[2.0]]).round(6)
    array([[0.707107]])
    """

    _fields = ("lengthscale", "variance", "alpha")
    _far = 1e300  # φ falls as a power of r, and is not zero anywhere

    def __init__(
        self,
        lengthscale: ArrayLike = 1.0,
        variance: float = 1.0,
        alpha: float = 1.0,
        *,
        columns: Sequence[int] | None = None,
    ) -> None:
        super().__init__(lengthscale, variance)
        self._settle(columns, **self._values, alpha=positive("alpha", alpha, 0, LEAST_ALPHA))

    @property
    def alpha(self) -> float:
        """The exponent: the larger, the more similar the length-scales."""
        return float(self._values["alpha"])

    def _profile(self, r2: Array) -> Array:
        return np.exp(-self.alpha * np.log1p(r2 / (2.0 * self.alpha)))

    def _profile_and_slope(self, r2: Array) -> tuple[Array, Array]:
        phi = self._profile(r2)
        return phi, phi / (1.0 + r2 / (2.0 * self.alpha))

    def _shape_gradients(self, r2: Array, phi: Array) -> list[Array]:
        u = r2 / (2.0 * self.alpha)
        return [phi * self.alpha * (u / (1.0 + u) - np.log1p(u))]


STATIONARY: dict[str, type[Stationary]] = {
    kernel.__name__: kernel for kernel in (RBF, Matern12, Matern32, Matern52, RationalQuadratic)
}


def _strips(n: int) -> list[slice]:
    """Return the rows of a lower triangle, cut into strips."""
    return [slice(start, min(start + STRIP, n)) for start in range(0, n, STRIP)]


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
    centre = A.mean(axis=0) if len(A) else 0.0
    A, B = A - centre, B - centre
    rows, columns, product = S @ np.ones(len(B)), np.ones(len(A)) @ S, S @ B
    squares: Array = rows @ A**2 + columns @ B**2 - 2.0 * np.einsum("id,id->d", A, product)
    return squares, product - rows[:, None] * A
