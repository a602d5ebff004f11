"""Variances and bands made honest by what came."""

from __future__ import annotations

from typing import Any

import numpy as np

from pogp.arrays import Array
from pogp.online import mixing_core
from pogp.online.mixing import LEAST_VARIANCE, WIDTH

FREEDOMS = np.array([2.5, 4.0, 8.0, 30.0])
"""Degrees of freedom of the Student-t bands that are compared."""
STATE = ("shift", "tilt", "centre", "size", "scale", "likelihood")
LATELY = 1000
"""Samples over which shift, tilt and lean are averaged for predictions of a stream that rests."""


class Band:
    """The factor of the variance, and the shape of the tails, for each output.

    The factor is exp(2(shift + tilt·q)), where q says how wide the band is beside the others:
    predictions that are sure of themselves are corrected apart from the rest. The extra variance of
    a row with gaps has a factor of its own, exp(2·lean): what gaps cost is not laid on rows that
    have none. Each follows, by its share in the variance, whether targets lie in the 95 % band.
    When the stream rests, where shift, tilt and lean were on average says more of rows to come than
    where the last few samples have left them. Bands of other levels have the shape of a Student-t:
    the one of four choices of freedom, each with a scale of its own, that suits the errors best.
    """

    def __init__(self, outputs: int) -> None:
        self.count = 0
        self.resting = False
        self.shift, self.tilt, self.lean, self.centre = np.zeros((4, outputs))
        self.usual = np.zeros((3, outputs))  # these three on average
        self._none = np.zeros(outputs)
        self.size = np.ones(outputs)
        self.scale, self.likelihood = np.zeros((2, len(FREEDOMS), outputs))
        self._mixing = mixing_core()

    def width(self, variance: Array) -> Array:
        """Return q for variances (…, k) as they were predicted."""
        return np.clip((np.log(variance) - self.centre) / self.size, -3.0, 3.0)

    @property
    def _line(self) -> tuple[Array, Array, Array]:
        """Shift, tilt and lean as they are used."""
        if self.resting:
            return self.usual[0], self.usual[1], self.usual[2]
        return self.shift, self.tilt, self.lean

    def corrected(self, variance: Array) -> Array:
        """Return the variance that is reported."""
        shift, tilt, _ = self._line
        return np.asarray(variance * np.exp(2.0 * (shift + tilt * self.width(variance))))

    def gap(self, extra: Array) -> Array:
        """Return what is reported of the extra variance of rows with gaps."""
        return np.asarray(extra * np.exp(2.0 * self._line[2]))

    def latent(self, variance: Array, noise: Array) -> Array:
        """Return the reported variance without its share of noise."""
        return self.corrected(variance) * (1.0 - np.clip(noise / variance, 0.0, 1.0))

    def latent_slope(self, variance: Array, noise: Array) -> Array:
        """Return the derivative of the reported latent variance by the predicted variance.

        The noise stays what it is.
        """
        variance = np.maximum(variance, LEAST_VARIANCE)
        free = np.abs(np.log(variance) - self.centre) < 3.0 * self.size
        tilted = np.where(free, 2.0 * self._line[1] / self.size, 0.0)
        noisy = np.clip(noise / variance, 0.0, 1.0)
        rate = (1.0 + tilted) * (1.0 - noisy) + np.where(noisy < 1.0, noisy, 0.0)
        return np.asarray(self.corrected(variance) / variance * rate)

    def learn(
        self,
        y: Array,
        mean: Array,
        variance: Array,
        extra: Array | None,
        record: Array,
        still: bool = False,
    ) -> float:
        """Take note of a prediction and what came; `extra` is beside the variance.

        The record begins with what was reported, the means and the variances (see `trace`). Return
        the largest error in their deviations. A target that is at rest (`still`) says nothing of
        the band.
        """
        if still:
            reported = self.corrected(variance) + self.gap(self._none if extra is None else extra)
            record[: 2 * len(mean)] = np.concatenate([mean, reported])
            return float(np.abs((y - mean) / np.sqrt(reported)).max())
        largest: float = self._mixing.calibrate(
            y,
            mean,
            variance,
            self._none if extra is None else extra,
            self.shift,
            self.tilt,
            self.lean,
            self.centre,
            self.size,
            self.scale,
            self.likelihood,
            self.usual,
            FREEDOMS,
            CONSTANTS,
            self.count,
            LATELY,
            record,
        )
        self.count += 1
        return largest

    def reach(self, level: float) -> Array:
        """Return how many reported deviations the band of a level is wide on each side, (k,)."""
        from scipy.special import stdtrit  # slow to import, and few ask for bands

        freedom = self.freedom()
        tails = stdtrit(freedom, 0.5 + level / 2) / stdtrit(freedom, 0.975)
        return np.asarray(WIDTH * tails)  # that of 95 % is the one that is calibrated

    def freedom(self) -> Array:
        """Return the degrees of freedom that suit the residuals best, (k,)."""
        return np.asarray(FREEDOMS[np.argmax(self.likelihood, axis=0)])

    def state(self) -> dict[str, Any]:
        """Return the state."""
        kept = {name: getattr(self, name).copy() for name in STATE}
        if (self.usual[:2] != [self.shift, self.tilt]).any():  # older files have no averages
            kept["usual"] = self.usual[:2].copy()
        if self.lean.any():  # nor this
            kept["lean"] = np.array([self.lean, self.usual[2]])
        return {"count": self.count, **kept}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what `state` returned."""
        self.count = int(state["count"])
        for name in STATE:
            setattr(self, name, np.array(state[name], dtype=np.float64))
        lean = np.array(state.get("lean", np.zeros((2, len(self.shift)))), dtype=np.float64)
        usual = np.array(state.get("usual", [self.shift, self.tilt]), dtype=np.float64)
        self.lean, self.usual = lean[0].copy(), np.vstack([usual, lean[1:]])


def _constants() -> Array:
    """Return log Γ((ν + 1)/2) − log Γ(ν/2) − ½ log(πν)."""
    from math import lgamma, log, pi

    return np.array([lgamma((v + 1) / 2) - lgamma(v / 2) - 0.5 * log(pi * v) for v in FREEDOMS])


CONSTANTS = _constants()
