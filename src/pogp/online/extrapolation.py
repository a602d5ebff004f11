"""Rows outside the range of the inputs: a straight line that goes on, or is not known to.

Groups get far inputs compressed to a logarithm (`scales.py`), so that a wild value does no harm. A
straight line would therefore bend there, with a band that knows nothing of it. Nor do the
hyperparameters know of a function that is steeper outside than inside.

The line of least squares through the kept samples says how far the function may go. With the
probability ρ that the relation is linear the line goes on; otherwise the function may go as far in
either direction. If L is the rise of the line outside the range, and ℓ the part of L that
compression takes away, the mean moves by ρℓ, and the variance grows by (1 − ρ²)R²L², where R² is
the share of the targets' variance that the line explains, and by ρ²v, where v is the variance of
the line itself.
A rise that may be chance moves nothing: the mean moves by ρℓ(1 − 1.96²v/L²), or not at all if L is
within its own 95 % band.

ρ is a ratio of likelihoods, at most one: that of the line, with each sample left out of it in turn,
over that of the better belief of the leading group, which predicted each sample before it was
learned. The errors, those of the latest samples, have Laplace distributions, so that a few outliers
do not decide. Of two equally good predictors one is a few nats ahead by chance. For the mean, the
line is therefore given the 95 % band of that difference; the variance keeps the doubt.

Without a model of the past, L is ℓ, so that nothing changes for rows whose inputs are not
compressed. If the row is the next sample of the stream, bands are calibrated by samples that left
the range in the same way: doubt adds nothing, and the variance of the line counts as far as the
line moves the mean.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pogp.arrays import Array, Indices
from pogp.online.arithmetic import WIDTH
from pogp.online.prediction import Prediction
from pogp.online.scales import FAR, FARTHEST, Scales

if TYPE_CHECKING:
    from pogp.online.ensemble import Ensemble
    from pogp.online.samples import Samples

TINY = np.finfo(np.float64).tiny


class Rows(Enum):
    """The rows to predict."""

    NEXT = "the next sample of the stream"
    ANYWHERE = "rows that do not follow the last sample"
    AT_REST = "the same, with a model of the past"


class Distances(NamedTuple):
    """How far rows are outside the range, in deviations, (n, p) each, and derivatives by inputs."""

    outside: Array
    lost: Array
    """The part that compression takes away."""
    of_outside: Array
    of_lost: Array


class Line:
    """The line of least squares through samples, and the range of their inputs."""

    def __init__(
        self, scales: Scales, samples: Samples, scored: Indices, errors: Array, rows: Rows
    ) -> None:
        """Fit the line; `errors` (n, 2, k) are those of two beliefs for the scored samples."""
        self._scales, self._rows = scales, rows
        raw = scales.straight(samples.X)
        self._low, self._high = raw.min(axis=0), raw.max(axis=0)
        U, Y = scales.inputs(samples.X), scales.targets(samples.targets_at_inputs)
        U, Y = U - U.mean(axis=0), Y - Y.mean(axis=0)
        weighted = U.T * samples.weights
        self._P = np.linalg.inv(weighted @ U + np.eye(U.shape[1]))  # a prior of one deviation
        self._slopes = np.asarray(self._P @ (weighted @ Y))
        residuals, freedom = Y - U @ self._slopes, max(len(U) - U.shape[1] - 1, 1)
        self._noise = np.sum(residuals**2, axis=0) / freedom
        self._explained = np.maximum(1.0 - self._noise / np.maximum(np.var(Y, axis=0), TINY), 0.0)
        leverage = np.einsum("pn,np->n", self._P @ U.T, U) * samples.weights + 1.0 / len(U)
        left_out = (residuals / np.maximum(1.0 - leverage, TINY)[:, None])[scored]
        self._linear, self._continued = _likelihood_ratios(left_out * scales.unit, errors)

    @classmethod
    def of(
        cls, ensemble: Ensemble, scales: Scales, kept: Samples, robust: bool, rows: Rows
    ) -> Line | None:
        """Return the line of kept samples, for the groups of an ensemble."""
        samples, errors = kept.for_tuning(robust), ensemble.band.errors.all()[:, 2:4]
        if len(samples.X) == 0:
            return None
        # errors are stored for samples of weight one whose targets move
        stored = kept.positions[(kept.weights == 1.0) & ~kept.stopped]
        count = min(len(stored), len(errors))
        stored, errors = stored[len(stored) - count :], errors[len(errors) - count :]
        used = np.isin(stored, samples.positions)
        scored = np.searchsorted(samples.positions, stored[used])
        line = cls(scales, samples, scored, errors[used], rows)
        if ensemble.predictors.trusted:  # then the mixture continues the line itself
            line._continued = np.zeros_like(line._continued)
        return line

    def extend(self, X: Array, found: Prediction) -> Prediction:
        """Return predictions at raw inputs with what the line adds to them."""
        outside, lost, *_ = self._distances(X)
        used = outside if self._rows is Rows.AT_REST else lost
        if not used.any():
            return found
        unit, rise, own = self._scales.unit, used @ self._slopes, self._variance(used)
        moved = (lost @ self._slopes) * self._continued * _significant(rise, own) * unit
        added = (self._doubt * rise**2 + self._share * own) * unit**2
        return Prediction(found.mean + moved, found.variance + added, found.latent + added)

    def gradient(self, X: Array, of_mean: Array, of_latent: Array) -> tuple[Array, Array]:
        """Return derivatives (n, p, k) of predictions with what the line adds to them."""
        outside, lost, of_outside, of_lost = self._distances(X)
        at_rest = self._rows is Rows.AT_REST
        used, by = (outside, of_outside) if at_rest else (lost, of_lost)
        if not used.any():
            return of_mean, of_latent
        unit, rise, own = self._scales.unit, used @ self._slopes, self._variance(used)
        of_rise = by[:, :, None] * self._slopes
        of_own = 2.0 * (by * (used @ self._P))[:, :, None] * self._noise
        share = _significant(rise, own)[:, None]
        inverse = np.where(share > 0.0, 1.0 / np.where(rise != 0.0, rise, 1.0)[:, None], 0.0)
        relative = own[:, None] * inverse * of_rise
        of_share = -(WIDTH**2) * inverse**2 * (of_own - 2.0 * relative)
        of_moved = of_lost[:, :, None] * self._slopes * share
        of_moved += (lost @ self._slopes)[:, None] * of_share
        of_added = 2.0 * self._doubt * rise[:, None] * of_rise + self._share * of_own
        return of_mean + of_moved * self._continued * unit, of_latent + of_added * unit**2

    def _variance(self, distances: Array) -> Array:
        """Return the variance of the rise of the line over these distances, (n, k)."""
        squares = np.einsum("np,pq,nq->n", distances, self._P, distances)
        return np.asarray(squares[:, None] * self._noise)

    @property
    def _doubt(self) -> Array:
        """The share of the squared rise that is added to the variance, (k,)."""
        if self._rows is Rows.NEXT:
            return np.zeros_like(self._linear)
        return np.asarray((1.0 - self._linear**2) * self._explained)

    @property
    def _share(self) -> Array:
        """The share of the line's own variance that is added, (k,)."""
        linear = self._continued if self._rows is Rows.NEXT else self._linear
        return np.asarray(np.maximum(linear, self._continued) ** 2)

    def _distances(self, X: Array) -> Distances:
        """Return how far rows are outside the range."""
        raw = self._scales.straight(X)
        edge = np.clip(raw, self._low, self._high)
        outside = raw - edge
        moves = (outside != 0.0) & (np.abs(raw) < FARTHEST)
        lost = outside - (_compressed(raw) - _compressed(edge))
        of_outside = np.where(moves, self._scales.inverse, 0.0)
        return Distances(
            outside, lost, of_outside, of_outside - np.where(moves, self._scales.slopes(X), 0.0)
        )


def _significant(rise: Array, variance: Array) -> Array:
    """Return the share of a rise that its own uncertainty does not explain."""
    chance = WIDTH**2 * variance / np.where(rise != 0.0, rise**2, 1.0)
    return np.where(rise != 0.0, np.maximum(1.0 - chance, 0.0), 0.0)


def _likelihood_ratios(line: Array, beliefs: Array) -> tuple[Array, Array]:
    """Return the likelihood of errors (n, k) over that of the best of others (n, b, k), at most 1.

    The distributions are those of Laplace, each with its own scale. The second ratio is at the
    upper end of the 95 % band of its logarithm.
    """
    if len(line) == 0:
        return np.zeros(line.shape[1]), np.zeros(line.shape[1])
    ours, others = np.abs(line), np.abs(beliefs)
    best = others.mean(axis=0).argmin(axis=0)
    theirs = np.take_along_axis(others, best[None, None], axis=1)[:, 0]
    scale = np.maximum(ours.mean(axis=0), TINY)
    ahead = len(line) * np.log(np.maximum(theirs.mean(axis=0), TINY) / scale)
    chance = WIDTH * np.sqrt(len(line)) * (ours - theirs).std(axis=0) / scale
    return np.exp(np.minimum(ahead, 0.0)), np.exp(np.minimum(ahead + chance, 0.0))


def _compressed(raw: Array) -> Array:
    """Return inputs in deviations as groups get them."""
    size = np.abs(raw)
    far = np.sign(raw) * (FAR + np.log1p(np.maximum(size - FAR, 0.0)))
    return np.where(size > FAR, far, raw)
