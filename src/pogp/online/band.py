"""The calibration of variances and bands by the errors of the stream."""

from __future__ import annotations

from math import lgamma, log, pi
from typing import Any

import numpy as np

from pogp.arrays import Array
from pogp.online import arithmetic_core
from pogp.online.arithmetic import LEAST_VARIANCE, WIDTH
from pogp.online.band_at_rest import BandParameters, StoredErrors

FREEDOMS = np.array([2.5, 4.0, 8.0, 30.0])
"""Degrees of freedom of the Student-t distributions that are compared."""
LOG_CONSTANTS = np.array(
    [lgamma((v + 1) / 2) - lgamma(v / 2) - 0.5 * log(pi * v) for v in FREEDOMS]
)
"""The logarithms of the constants of their densities."""
AVERAGED = 1000
"""Samples over which the parameters are averaged, for files without stored errors."""
STATE = {
    "shift": "shift",
    "tilt": "tilt",
    "centre": "centre",
    "size": "spread",
    "scale": "tail_scale",
    "likelihood": "tail_likelihood",
}
"""The arrays of the state: the name in files, and that of the attribute."""


class Band:
    """A factor of the variance and the shape of the tails, for each output.

    The factor of a predicted variance is exp(2(shift + tilt·q)), where q is the standardised
    logarithm of the variance, so that small and large variances are calibrated separately. The
    extra variance of a row with missing values has a factor of its own, exp(2·extra_shift), so that
    such rows do not widen the band of complete rows. After each sample, shift, tilt and extra_shift
    are updated in proportion to their share in the variance, upwards if the target is outside the
    95 % band and downwards otherwise. A stream at rest has parameters of its own
    (`band_at_rest.py`).

    Bands of other levels follow from that of 95 % by a Student-t distribution. Its degrees of
    freedom are the ones of `FREEDOMS` with the highest likelihood; each has its own scale.
    """

    def __init__(self, outputs: int) -> None:
        self.count = 0
        self.resting = False
        self.at_rest: BandParameters | None = None
        self.errors = StoredErrors(outputs)
        self.shift, self.tilt, self.extra_shift, self.centre = np.zeros((4, outputs))
        self.averages = np.zeros((3, outputs))  # of shift, tilt and extra_shift
        self._zeros = np.zeros(outputs)
        self.spread = np.ones(outputs)  # of log variances, around `centre`
        self.tail_scale, self.tail_likelihood = np.zeros((2, len(FREEDOMS), outputs))
        self._arithmetic = arithmetic_core()

    @property
    def _parameters(self) -> BandParameters:
        """The parameters in force."""
        if self.resting and self.at_rest is not None:
            return self.at_rest
        shift, tilt, extra_shift = (
            self.averages if self.resting else (self.shift, self.tilt, self.extra_shift)
        )
        used = BandParameters(shift, tilt, extra_shift, self.centre, self.spread)
        return used.at_rest() if self.resting else used

    def calibrated(self, variance: Array) -> Array:
        """Return the calibrated variance."""
        return self._parameters.calibrated(variance)

    def calibrated_extra(self, extra: Array) -> Array:
        """Return the calibrated extra variance of rows with missing values."""
        return np.asarray(extra * np.exp(2.0 * self._parameters.extra_shift))

    def calibrated_pair(self, variance: Array, noise: Array) -> tuple[Array, Array]:
        """Return the calibrated variance, and the same without its share of noise."""
        calibrated = self.calibrated(variance)
        return calibrated, calibrated * (1.0 - np.clip(noise / variance, 0.0, 1.0))

    def latent_slope(self, variance: Array, noise: Array) -> Array:
        """Return the derivative of the latter by the predicted variance, at constant noise."""
        used, variance = self._parameters, np.maximum(variance, LEAST_VARIANCE)
        noisy = np.minimum(noise / variance, 1.0)
        calibrated, slope = used.calibrated_slope(variance)
        constant = calibrated / variance * np.where(noisy < 1.0, noisy, 0.0)
        return np.asarray(slope * (1.0 - noisy) + constant)

    def learn(
        self,
        y: Array,
        mean: Array,
        variance: Array,
        extra: Array | None,
        record: Array,
        stopped: bool = False,
    ) -> float:
        """Update the band by the target y of a prediction.

        The calibrated prediction is written to the beginning of the record: means, then variances
        (see `trace`). `extra` is the variance in addition to `variance`. A stopped target does not
        change the band.

        Returns
        -------
        float
            The largest absolute error over the outputs, in calibrated deviations.
        """
        extra = self._zeros if extra is None else extra
        if stopped:
            total = self.calibrated(variance) + self.calibrated_extra(extra)
            record[: 2 * len(mean)] = np.concatenate([mean, total])
            return float(np.abs((y - mean) / np.sqrt(total)).max())
        factors = (self.shift, self.tilt, self.extra_shift, self.centre, self.spread)
        tails = (self.tail_scale, self.tail_likelihood)
        constants = (FREEDOMS, LOG_CONSTANTS, self.count, AVERAGED)
        largest: float = self._arithmetic.calibrate(
            y, mean, variance, extra, *factors, *tails, self.averages, *constants, record
        )
        self.count += 1
        return largest

    def reach(self, level: float) -> Array:
        """Return the half-width of the band of a level in calibrated deviations, (k,)."""
        from scipy.special import stdtrit  # slow to import, and rarely needed

        freedom = self.freedom()
        tails = stdtrit(freedom, 0.5 + level / 2) / stdtrit(freedom, 0.975)
        return np.asarray(WIDTH * tails)  # the band of 95 % is the calibrated one

    def freedom(self) -> Array:
        """Return the most likely degrees of freedom of the residuals, (k,)."""
        return np.asarray(FREEDOMS[np.argmax(self.tail_likelihood, axis=0)])

    def state(self) -> dict[str, Any]:
        """Return the state; older files have neither averages nor extra_shift."""
        arrays = {name: getattr(self, attribute).copy() for name, attribute in STATE.items()}
        if (self.averages[:2] != [self.shift, self.tilt]).any():
            arrays["usual"] = self.averages[:2].copy()
        if self.extra_shift.any():
            arrays["lean"] = np.array([self.extra_shift, self.averages[2]])
        return {"count": self.count, **arrays, **self.errors.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
        self.count = int(state["count"])
        for name, attribute in STATE.items():
            setattr(self, attribute, np.array(state[name], dtype=np.float64))
        self.errors.restore(state)
        extra = np.array(state.get("lean", np.zeros((2, len(self.shift)))), dtype=np.float64)
        averages = np.array(state.get("usual", [self.shift, self.tilt]), dtype=np.float64)
        self.extra_shift, self.averages = extra[0].copy(), np.vstack([averages, extra[1:]])
