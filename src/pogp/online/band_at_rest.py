"""The calibration of the band of a stream at rest.

The factors that are in force along the stream do not suit a stream at rest. They were found for
predictions that use the last residual, and for noises and weights that change with every few
samples. A stream at rest keeps the noises and weights of its last sample.

The errors of the latest samples are therefore stored, for the members that are used at rest. At
rest they are combined with the weights in force, and their variances with the noise in force. The
factors are those with which 95 % of these errors are inside the band.

When a stored error was made, the members had just learned the samples before it. The rows to
predict at rest may be far from the last sample. In a stream that drifts, the members predict
samples of the past badly, although they have learned them. If samples of the past need a wider band
than the latest ones, the band is widened to hold them. In a stream without order they do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pogp.arrays import Array
from pogp.online.arithmetic import LEAST_VARIANCE, WIDTH

if TYPE_CHECKING:
    from pogp.online.ensemble import Ensemble
    from pogp.online.prediction import Prediction
    from pogp.online.samples import Samples

STORED = 1000
"""The number of latest samples whose errors are stored."""
COLUMNS = 7
"""Four errors, two latent variances and the extra variance (`arithmetic.write_errors`)."""
OUTSIDE = 0.05
"""The share of samples outside the band."""
SENSITIVITY = 2.0 * WIDTH * float(np.exp(-0.5 * WIDTH**2) / np.sqrt(2.0 * np.pi))
"""The change of this share by the logarithm of the band's width, for normal errors."""
PRIOR_SAMPLES = 50.0
"""The factors are shrunk to one as by so many samples with normal errors."""
LIMITS = (3.0, 1.0, 3.0)
"""The largest absolute values of shift, tilt and extra_shift."""
FARTHEST = 3.0
"""The largest distance of a logarithm of a variance from the usual one, in units of its spread."""
LEAST_TILT = -0.5
"""The least tilt over the spread: a larger predicted variance has no smaller calibrated one."""
ROUNDS, HALVINGS, TOLERANCE = 20, 20, 1e-4
"""The parameters are found in turn, each by bisection, until a round changes them by less."""


class BandParameters(NamedTuple):
    """The parameters of a band, (k,) each; see `Band`."""

    shift: Array
    tilt: Array
    extra_shift: Array
    centre: Array
    spread: Array
    largest: Array | float = np.inf
    """The largest variance whose factor is known from errors."""

    def relative_width(self, variance: Array) -> Array:
        """Return q for predicted variances (…, k)."""
        return np.asarray(
            np.clip((np.log(variance) - self.centre) / self.spread, -FARTHEST, FARTHEST)
        )

    def at_rest(self) -> BandParameters:
        """Return the parameters for rows anywhere, which may be far from all samples.

        No error of the stream was made there. A predicted variance above the usual range is
        therefore not reduced: the part above this range has a factor of at least one. In the
        range, a larger predicted variance does not have a narrower band.
        """
        return self._replace(
            tilt=np.maximum(self.tilt, LEAST_TILT * self.spread),
            largest=np.exp(self.centre + FARTHEST * self.spread),
        )

    def calibrated(self, variance: Array) -> Array:
        """Return calibrated variances (…, k)."""
        usual = np.minimum(variance, self.largest)
        factor = np.exp(2.0 * (self.shift + self.tilt * self.relative_width(variance)))
        return np.asarray(usual * factor + (variance - usual) * np.maximum(factor, 1.0))

    def calibrated_slope(self, variance: Array) -> tuple[Array, Array]:
        """Return calibrated variances, and their derivatives by the predicted ones."""
        q, usual = self.relative_width(variance), np.minimum(variance, self.largest)
        factor = np.exp(2.0 * (self.shift + self.tilt * q))
        moves = np.abs(q) < FARTHEST
        within = factor * (1.0 + np.where(moves, 2.0 * self.tilt / self.spread, 0.0))
        above = np.maximum(factor, 1.0)
        calibrated = usual * factor + (variance - usual) * above
        return calibrated, np.where(variance > self.largest, above, within)


class StoredErrors:
    """A ring buffer of the errors of the latest samples."""

    def __init__(self, outputs: int) -> None:
        self.count = 0
        self._rows = np.zeros((STORED, COLUMNS, outputs))

    def next_row(self) -> Array:
        """Return the row (7, k) for the next sample."""
        row: Array = self._rows[self.count % STORED]
        self.count += 1
        return row

    def all(self) -> Array:
        """Return the rows in stream order, (n, 7, k)."""
        return self._rows[np.arange(max(0, self.count - STORED), self.count) % STORED]

    def state(self) -> dict[str, Any]:
        """Return the state; older files have none."""
        return {"errors": self.all(), "error_count": self.count} if self.count else {}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
        self.count = int(state.get("error_count", 0))
        rows = np.array(state.get("errors", self._rows[:0]), dtype=np.float64)
        expected = (min(self.count, STORED), *self._rows.shape[1:])
        if rows.shape != expected:
            raise ValueError(f"errors must have shape {expected}, got {rows.shape}")
        self._rows[np.arange(self.count - len(rows), self.count) % STORED] = rows


def calibrate_at_rest(ensemble: Ensemble, past: Samples) -> None:
    """Set the band of an ensemble at rest; `past` are samples drawn from the whole stream."""
    band = ensemble.band
    band.at_rest = parameters = _latest_parameters(ensemble)
    if parameters is None or len(past.X) == 0:
        return
    band.at_rest = parameters._replace(largest=np.inf)  # the drift of rows in the usual range
    found = ensemble.predict(past.X)
    band.at_rest = parameters
    variance = found.variance + sample_variance(past, found)
    drift = fit_parameters(past.targets_at_inputs - found.mean, variance).shift
    # subtract what chance adds: the variance of an estimate of zero, over the estimate
    chance = OUTSIDE * (1.0 - OUTSIDE) / len(past.X) / SENSITIVITY**2
    parameters.shift[...] += np.maximum(drift - chance / np.maximum(drift, np.sqrt(chance)), 0.0)


def sample_variance(samples: Samples, prediction: Prediction) -> Array:
    """Return the variance that each sample has in addition to the predicted one, (n, k)."""
    noise = prediction.variance - prediction.latent
    return np.asarray((1.0 / samples.weights - 1.0)[:, None] * noise + samples.extra)


def _latest_parameters(ensemble: Ensemble) -> BandParameters | None:
    """Return the parameters for samples like the latest ones, or None if no errors are stored."""
    group, rows = ensemble.leading, ensemble.band.errors.all()
    if group is None or len(rows) == 0:
        return None
    by_member = ensemble.mixture.weights(ensemble.current_scores)
    weights = np.zeros((4, ensemble.outputs))
    weights[:2] = by_member[[0, 2]]
    for part in ensemble.parts[1:]:
        plain = by_member[part][: (part.stop - part.start) // 2]
        weights[2:] += plain[0], plain[1:].sum(axis=0)
    weights /= weights.sum(axis=0)
    noise = group.noise_factor[[0, -1], None] * group.noise * group.scales.unit**2
    variances = np.concatenate([ensemble.predictors.errors[[0, 2]], noise]) + 0.0 * rows[:, :4]
    variances[:, 2:] += np.maximum(rows[:, 4:6], 0.0)
    errors = rows[:, :4]
    error = np.einsum("mk,nmk->nk", weights, errors)
    variance = np.einsum("mk,nmk->nk", weights, variances + (errors - error[:, None]) ** 2)
    return fit_parameters(error, np.maximum(variance, LEAST_VARIANCE), rows[:, 6])


def fit_parameters(error: Array, variance: Array, extra: Array | None = None) -> BandParameters:
    """Return the parameters with which 95 % of the errors (n, k) are inside the band.

    The equations are those of the updates along the stream (`arithmetic.calibrate`): 5 % of the
    samples are outside, weighted by the share of a parameter in the variance. Without extra
    variances only the shift is fitted.
    """
    level = np.log(variance)
    centre = level.mean(axis=0)
    spread = np.maximum(0.1, 1.25 * np.abs(level - centre).mean(axis=0))
    shift, tilt, extra_shift = np.zeros((3, len(centre)))
    parameters = BandParameters(shift, tilt, extra_shift, centre, spread).at_rest()
    fitted, q = parameters[:3], parameters.relative_width(variance)
    count = 1 if extra is None else 3 if extra.any() else 2

    def excess(index: int, value: Array) -> Array:
        """Return by how much too many samples are outside if a parameter has this value."""
        shift, tilt, extra_shift = (value if i == index else each for i, each in enumerate(fitted))
        own = parameters._replace(shift=shift, tilt=tilt).calibrated(variance)
        added = 0.0 if extra is None else extra * np.exp(2.0 * extra_shift)
        shares = (own, own * q, added)[index] / (own + added)
        outside = np.abs(error) > WIDTH * np.sqrt(own + added)
        prior = PRIOR_SAMPLES * SENSITIVITY * value
        return np.asarray(np.sum(shares * (outside - OUTSIDE), axis=0) - prior)

    for _ in range(ROUNDS):
        before = np.array(fitted)
        for index, limit in enumerate(LIMITS[:count]):
            low, high = np.full_like(centre, -limit), np.full_like(centre, limit)
            if index == 1:
                low = np.maximum(low, LEAST_TILT * spread)
            for _ in range(HALVINGS):
                middle = 0.5 * (low + high)
                wider = excess(index, middle) > 0.0
                low, high = np.where(wider, middle, low), np.where(wider, high, middle)
            fitted[index][...] = 0.5 * (low + high)
        if np.abs(np.array(fitted) - before).max() < TOLERANCE:
            break
    return parameters
