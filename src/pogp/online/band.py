"""Variances and bands made honest by what came."""

from __future__ import annotations

from typing import Any

import numpy as np

from pogp.arrays import Array
from pogp.online import mixing_core
from pogp.online.mixing import LEAST_VARIANCE

FREEDOMS = np.array([2.5, 4.0, 8.0, 30.0])
"""Degrees of freedom of the Student-t bands that are compared."""
STATE = ("shift", "tilt", "centre", "size", "scale", "likelihood")
LATELY = 1000
"""Samples over which shift and tilt are averaged for predictions of a stream that rests."""


class Band:
    """The factor of the variance, and the shape of the tails, for each output.

    The factor is exp(2(shift + tilt·q)), where q says how wide the band is beside the others:
    predictions that are sure of themselves are corrected apart from the rest. It follows whether
    targets lie in the 95 % band. When the stream rests, where shift and tilt were on average says
    more of rows to come than where the last few samples have left them. Beside it a Student-t with
    four choices of freedom finds its own scale.
    """

    def __init__(self, outputs: int) -> None:
        self.count = 0
        self.shift, self.tilt, self.centre = np.zeros((3, outputs))
        self.usual = np.zeros((2, outputs))  # shift and tilt on average
        self.resting = False
        self.size = np.ones(outputs)
        self.scale, self.likelihood = np.zeros((2, len(FREEDOMS), outputs))
        self._mixing = mixing_core()

    def width(self, variance: Array) -> Array:
        """Return q for variances (…, k) as they were predicted."""
        return np.clip((np.log(variance) - self.centre) / self.size, -3.0, 3.0)

    @property
    def _line(self) -> tuple[Array, Array]:
        """Shift and tilt as they are used."""
        return (self.usual[0], self.usual[1]) if self.resting else (self.shift, self.tilt)

    def corrected(self, variance: Array) -> Array:
        """Return the variance that is reported."""
        shift, tilt = self._line
        return np.asarray(variance * np.exp(2.0 * (shift + tilt * self.width(variance))))

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

    def learn(self, y: Array, mean: Array, variance: Array) -> tuple[Array, float]:
        """Take note of a prediction and what came.

        Return the variance that was reported, and the largest error in its deviations.
        """
        reported = np.empty(len(mean))
        largest = self._mixing.calibrate(
            y,
            mean,
            variance,
            self.shift,
            self.tilt,
            self.centre,
            self.size,
            self.scale,
            self.likelihood,
            self.usual,
            FREEDOMS,
            CONSTANTS,
            self.count,
            LATELY,
            reported,
        )
        self.count += 1
        return reported, largest

    def reach(self, level: float) -> Array:
        """Return how many reported deviations the band of a level is wide on each side, (k,)."""
        from scipy.special import stdtrit  # slow to import, and few ask for bands

        best = np.argmax(self.likelihood, axis=0)
        scale = np.take_along_axis(self.scale, best[None], axis=0)[0]
        return np.asarray(np.exp(scale) * stdtrit(FREEDOMS[best], 0.5 + level / 2))

    def freedom(self) -> Array:
        """Return the degrees of freedom that suit the residuals best, (k,)."""
        return np.asarray(FREEDOMS[np.argmax(self.likelihood, axis=0)])

    def state(self) -> dict[str, Any]:
        """Return the state."""
        kept = {name: getattr(self, name).copy() for name in STATE}
        if (self.usual != [self.shift, self.tilt]).any():  # older files have no averages
            kept["usual"] = self.usual.copy()
        return {"count": self.count, **kept}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what `state` returned."""
        self.count = int(state["count"])
        for name in STATE:
            setattr(self, name, np.array(state[name], dtype=np.float64))
        self.usual = np.array(state.get("usual", [self.shift, self.tilt]), dtype=np.float64)


def _constants() -> Array:
    """Return log Γ((ν + 1)/2) − log Γ(ν/2) − ½ log(πν)."""
    from math import lgamma, log, pi

    return np.array([lgamma((v + 1) / 2) - lgamma(v / 2) - 0.5 * log(pi * v) for v in FREEDOMS])


CONSTANTS = _constants()
