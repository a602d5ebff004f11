"""The periodic kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from pogp.arrays import Array
from pogp.kernels.elementary import SMALLEST, ConstantDiagonal, builtin, positive
from pogp.kernels.kernel import CrossPullback, Pullback
from pogp.kernels.stationary import LEAST_TYPICAL

LEAST_SCALE = 1e-100
"""Of the sines: its square is still a number."""

TIMES = np.arange(1.0, 40.0, 0.25)
"""How often a period may fit into the range of the inputs, in steps that miss no maximum."""


@builtin
class Periodic(ConstantDiagonal):
    """κ(a, b) = variance · exp(−2 Σ_d sin²(π(a_d − b_d)/period_d)/ℓ_d²).

    The functions repeat exactly after a period. Multiply by another kernel for functions whose
    periods change over time.

    Parameters
    ----------
    period : float or array-like of shape (p,), default 1
        One period for all inputs, or one for each.
    lengthscale : float or array-like of shape (p,), default 1
        The length-scale of sin(π·), which is at most one and has no unit.
    variance : float, default 1
        κ(x, x).
    columns : sequence of int, optional
        The inputs that the kernel uses, all if left out.

    Examples
    --------
    >>> Periodic(period=2.0)([[0.0], [0.5]], [[100.0]]).round(6)
    array([[1.      ],
           [0.367879]])
    """

    _fields = ("period", "lengthscale", "variance")

    def __init__(
        self,
        period: ArrayLike = 1.0,
        lengthscale: ArrayLike = 1.0,
        variance: float = 1.0,
        *,
        columns: Sequence[int] | None = None,
    ) -> None:
        self._settle(
            columns,
            period=positive("period", period, max_ndim=1, least=SMALLEST),
            lengthscale=positive("lengthscale", lengthscale, max_ndim=1, least=LEAST_SCALE),
            variance=positive("variance", variance, max_ndim=0),
        )

    @classmethod
    def with_inputs(cls, dimension: int) -> Self:
        """Return the kernel with a period and a length-scale for each of so many inputs."""
        return cls(np.ones(dimension), np.ones(dimension))

    @property
    def period(self) -> float | Array:
        """The shared period, or the read-only array of one per input."""
        return self._values["period"] if self._values["period"].ndim else float(self._periods[0])

    @property
    def lengthscale(self) -> float | Array:
        """The shared length-scale, or the read-only array of one per input."""
        scales = self._values["lengthscale"]
        return scales if scales.ndim else float(scales)

    @property
    def _periods(self) -> Array:
        return np.atleast_1d(self._values["period"])

    def __call__(self, A: ArrayLike, B: ArrayLike | None = None) -> Array:
        """Return κ(A, B)."""
        left, right = self._both(A, B)
        total = np.zeros((len(left), len(right)))
        for turns, _, scale in self._turns(left, right):
            total += (_sine(turns) / scale) ** 2
        return self.variance * np.exp(-2.0 * total)

    def typical_theta(self, A: ArrayLike, power: float) -> Array:
        """Return theta for a few periods within the inputs, and an exponent of order one."""
        periods = self._ranges(A) / 3.0
        scales = np.full(self._values["lengthscale"].size, np.sqrt(self._inputs(A).shape[1]))
        theta: Array = np.log(np.concatenate([periods, scales, [power]]))
        return theta

    def scans(self, A: ArrayLike) -> dict[int, Array]:
        """Return the periods that fit a number of times into the range of the inputs."""
        return {k: np.log(length / TIMES) for k, length in enumerate(self._ranges(A))}

    def gradients(self, A: ArrayLike) -> Array:
        """Return ∂κ(A, A)/∂theta."""
        left, _ = self._both(A, None)
        value = self(A)
        in_periods, in_scales = [], []
        for turns, _, scale in self._turns(left, left):
            sine, slope = _sine(turns), _slope(turns)
            in_periods.append(value * (4.0 * np.pi * sine * slope / scale**2) * turns)
            in_scales.append(value * (4.0 * (sine / scale) ** 2))
        return np.concatenate(
            [
                self._summed("period", np.array(in_periods)),
                self._summed("lengthscale", np.array(in_scales)),
                value[None],
            ]
        )

    def value_and_pullback(self, A: ArrayLike) -> tuple[Array, Pullback]:
        """Return κ(A, A) and its pullback."""
        value, pullback = self.cross_pullback(A, A)
        return value, lambda weights: pullback(weights)[0]

    def cross_pullback(self, A: ArrayLike, B: ArrayLike) -> tuple[Array, CrossPullback]:
        """Return κ(A, B) and its pullback."""
        left, right = self._both(A, B)
        value = self(A, B)

        def pullback(weights: Array) -> tuple[Array, Array]:
            S = 4.0 * weights * value
            in_periods, in_scales = np.empty(left.shape[1]), np.empty(left.shape[1])
            in_A = np.empty_like(left)
            for d, (turns, period, scale) in enumerate(self._turns(left, right)):
                sine, slope = _sine(turns), _slope(turns)
                pulls = S * (np.pi * sine * slope / scale**2)
                in_periods[d] = np.vdot(pulls, turns)
                in_scales[d] = np.vdot(S, (sine / scale) ** 2)
                in_A[:, d] = -pulls.sum(axis=1) / period
            in_theta = [self._summed("period", in_periods), self._summed("lengthscale", in_scales)]
            total = np.vdot(weights, value)
            return np.concatenate([*in_theta, [total]]), self._in_place(in_A, A)

        return value, pullback

    def _ranges(self, A: ArrayLike) -> Array:
        """Return the range of the inputs that each period is of."""
        ranges = np.ptp(self._inputs(A), axis=0)
        known = np.maximum(np.where(ranges > 0, ranges, 1.0), TIMES[-1] * LEAST_TYPICAL)
        return known if self._values["period"].ndim else np.asarray(known.mean(keepdims=True))

    def _turns(self, left: Array, right: Array) -> Iterator[tuple[Array, float, float]]:
        """Yield, for each input, the differences in periods, the period and the length-scale."""
        p = left.shape[1]
        periods = np.broadcast_to(self._values["period"], (p,))
        scales = np.broadcast_to(self._values["lengthscale"], (p,))
        for d in range(p):
            yield np.subtract.outer(left[:, d], right[:, d]) / periods[d], periods[d], scales[d]


def _sine(turns: Array) -> Array:
    """Return sin(π·turns) up to its sign: zero where they are whole, of whatever size."""
    return np.sin(np.pi * (turns - np.rint(turns)))


def _slope(turns: Array) -> Array:
    """Return cos(π·turns) with the sign that `_sine` left out."""
    return np.cos(np.pi * (turns - np.rint(turns)))
