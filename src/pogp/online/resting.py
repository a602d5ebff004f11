"""What a stream that rests knows of its whole past, beside what leads at its end.

What leads was chosen by the latest samples, and may have forgotten the others. When the stream
rests, rows may be asked for that are of its past. So the samples that are kept are learned once
more, in random order and without forgetting, by a group that is tuned on them. One half of them is
predicted from the other: if the group explains these better than what leads does, it predicts rows
of the past, each by the chance that it is one (`familiarity.py`, `pooling.py`).

A stream is followed for what is to come. So the mean is that of what leads unless a row can be told
from those to come: of rows as near as this one, those of the past that outnumber those to come are
known to be of the past. The band allows for both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pogp.arrays import Array
from pogp.online.familiarity import Familiarity, sigmoid
from pogp.online.group import Group
from pogp.online.mixing import densities
from pogp.online.pooling import Chances, Slopes, pooled, pooled_slopes
from pogp.online.retuning import FIRST, LEAST, SAMPLES, in_units
from pogp.online.rows import Samples
from pogp.online.scales import Scales
from pogp.online.spreading import Prediction
from pogp.online.tuning import Prior, search, without_outliers
from pogp.slices import finished

if TYPE_CHECKING:
    from pogp.online.stream import Stream


@dataclass
class Rest:
    """A group that knows the past, and when to ask it."""

    group: Group
    familiar: Familiarity
    share: Array
    """How much the samples of the past speak for the group, (k,): the chance that it is better."""

    def joined(self, X: Array, now: Prediction) -> Prediction:
        """Return predictions at raw inputs, where `now` are those of what leads."""
        return pooled(*self._kinds(X, now))

    def gradient(self, X: Array, now: Prediction, slopes: Slopes) -> tuple[Array, Array]:
        """Return the derivatives of mean and latent variance, where `slopes` are those of `now`."""
        means, variances = (of[0] for of in self.group.gradients(X, resting=True))
        kinds = (np.array(pair) for pair in zip(slopes, (means, variances, variances), strict=True))
        chosen = self.group.found.prior.columns
        of_chance = np.zeros((*X.shape, len(self.share)))
        by = self.group.scales.slopes(X)[:, chosen] / self.group.lengthscales
        of_chance[:, chosen] = (self.familiar.slopes(self._units(X)) * by)[:, :, None] * self.share
        chance = self.familiar.chances(self._units(X))[:, None, None]
        of_known = np.where(chance > 0.5, of_chance / np.maximum(chance, 0.5) ** 2, 0.0)
        of_chances = Chances(*(np.array([-of, of]) for of in (of_known, of_chance)))
        return pooled_slopes(*self._kinds(X, now), Slopes(*kinds), of_chances)

    def _kinds(self, X: Array, now: Prediction) -> tuple[Prediction, Chances]:
        """Return predictions of rows to come and of the past, and their chances."""
        kinds = (np.array(pair) for pair in zip(now, _told(self.group, X), strict=True))
        chance = self.familiar.chances(self._units(X))[:, None]
        known = 2.0 - 1.0 / np.maximum(chance, 0.5)  # (c − (1 − c))/c
        past = (known * self.share, chance * self.share)
        return Prediction(*kinds), Chances(*(np.array([1.0 - each, each]) for each in past))

    def _units(self, X: Array) -> Array:
        return _in_lengthscales(self.group, X)


def rested(stream: Stream) -> Rest | None:
    """Return what a stream knows of its past; None where there is too little or nothing to know."""
    leading, samples = stream.leading, stream.rows.all()
    samples = samples.ordinary() if stream.robust else samples
    drawn = stream.rows.drawn(samples)
    if leading is None or drawn.sum() < 2 * LEAST:
        return None
    scales = Scales.of(samples.X, samples.Y)
    if not scales.alive:
        return None
    seed = [stream.seed, stream.seen]
    order = np.random.default_rng(seed).permutation(len(samples.X))
    told = in_units(samples.where(np.sort(order[:SAMPLES])), scales)
    prior, start = Prior(leading.label, scales.live), stream.starts.get(leading.label)
    if start is not None and len(start) != len(prior.mean):
        start = None
    find = without_outliers if stream.robust else search
    found = finished(find(prior, told, start, FIRST, seed))
    shape = (found, scales, stream.outputs, stream.max_size, (1.0,))
    one, other = np.array_split(order, 2)
    judges = samples.where(other[drawn[other]])
    now = _densities(judges, stream.told(judges.X))
    try:
        tried = []
        for marginalise in (False, True):  # which is better depends on whether the points suffice
            group = Group(*shape, marginalise)
            finished(group.teach(samples.where(one)))
            tried.append((group, _densities(judges, _told(group, judges.X)) - now))
        group, better = max(tried, key=lambda each: float(each[1].sum()))
        finished(group.teach(samples.where(other)))
    except FloatingPointError:  # rounding has won
        return None
    share = sigmoid(better.sum(axis=0))
    return Rest(group, Familiarity(_in_lengthscales(group, samples.X[drawn])), share)


def _in_lengthscales(group: Group, X: Array) -> Array:
    """Return the inputs that count, in units of a group's length-scales."""
    return group.scales.inputs(X)[:, group.found.prior.columns] / group.lengthscales


def _told(group: Group, X: Array) -> Prediction:
    """Return what the first belief of a group says."""
    means, variances, shares = (told[0] for told in group.predict(X, resting=True))
    return Prediction(means, variances, shares[:, None] * variances)


def _densities(samples: Samples, found: Prediction) -> Array:
    """Return the log densities (n, k) of samples as they were predicted."""
    noise = found.variance - found.latent
    own = (1.0 / samples.weights - 1.0)[:, None] * noise + samples.extra
    return densities(samples.Y, found.mean, found.variance + own)
