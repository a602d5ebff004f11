"""The model of the whole past that a stream at rest has beside the mixture.

The weights of the mixture were chosen by the latest samples, and its members may have forgotten
older ones. A stream at rest may be asked to predict rows of its past. One more group is therefore
tuned on the kept samples and learns them in random order and without forgetting. It is tested by
predicting one half of them from the other half. If it does this better than the mixture, for those
since the relation last changed, it predicts the rows of the past. A row has a probability of being
of the past (`past_probability.py`), and the two predictions are pooled by it (`pooling.py`).

The mean is that of the mixture unless a row is recognised as one of the past: if c > ½ is its
probability, this is the case for the share (c − (1 − c))/c of the rows like it. The band uses c
itself and covers both cases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pogp.arrays import Array
from pogp.online.arithmetic import log_densities
from pogp.online.band_at_rest import fit_parameters, sample_variance
from pogp.online.group import Group
from pogp.online.past_probability import PastProbability, sigmoid
from pogp.online.pooling import Probabilities, Slopes, pooled, pooled_slopes
from pogp.online.prediction import Prediction
from pogp.online.retuning import FIRST, LEAST_SAMPLES, in_units
from pogp.online.samples import Samples
from pogp.online.scales import Scales
from pogp.online.tuning import Prior, most_samples, search, search_without_outliers
from pogp.slices import finished

if TYPE_CHECKING:
    from pogp.online.stream import Stream


@dataclass
class PastModel:
    """A group that has learned the kept samples, and the rows for which it is used."""

    group: Group
    past: PastProbability
    better: Array
    """The probability that the group predicts the past better than the mixture, (k,)."""
    factor: Array
    """The calibration of the group's variances, (k,), by samples that it had not learned."""

    def predict(self, X: Array, mixture: Prediction) -> Prediction:
        """Return predictions at raw inputs, pooled with those of the mixture."""
        return pooled(*self._cases(X, mixture))

    def gradient(self, X: Array, mixture: Prediction, slopes: Slopes) -> tuple[Array, Array]:
        """Return the derivatives of mean and latent variance; `slopes` are those of `mixture`."""
        means, variances = (of[0] for of in self.group.gradients(X, resting=True))
        variances = variances * self.factor
        pairs = zip(slopes, (means, variances, variances), strict=True)
        of_cases = Slopes(*(np.array(pair) for pair in pairs))
        columns, U = self.group.hyperparameters.prior.columns, _in_lengthscales(self.group, X)
        by = self.group.scales.slopes(X)[:, columns] / self.group.lengthscales
        of_band = np.zeros((*X.shape, len(self.better)))
        of_band[:, columns] = (self.past.gradient(U) * by)[:, :, None] * self.better
        probability = self.past.predict(U)[:, None, None]
        of_mean = np.where(probability > 0.5, of_band / np.maximum(probability, 0.5) ** 2, 0.0)
        of_probabilities = Probabilities(*(np.array([-of, of]) for of in (of_mean, of_band)))
        return pooled_slopes(*self._cases(X, mixture), of_cases, of_probabilities)

    def _cases(self, X: Array, mixture: Prediction) -> tuple[Prediction, Probabilities]:
        """Return the predictions for a future row and for one of the past, and probabilities."""
        mean, variance, latent = _group_prediction(self.group, X)
        past = (mean, variance * self.factor, latent * self.factor)
        pairs = zip(mixture, past, strict=True)
        probability = self.past.predict(_in_lengthscales(self.group, X))[:, None]
        recognised = 2.0 - 1.0 / np.maximum(probability, 0.5)  # (c − (1 − c))/c
        of_past = (recognised * self.better, probability * self.better)
        both = (np.array([1.0 - each, each]) for each in of_past)
        return Prediction(*(np.array(pair) for pair in pairs)), Probabilities(*both)


def past_model(stream: Stream) -> PastModel | None:
    """Return the model of a stream's past, or None if its samples are too few or do not vary."""
    leading, samples = stream.leading, stream.samples.all().for_tuning(stream.robust)
    drawn = stream.samples.in_reservoir(samples)
    if leading is None or drawn.sum() < 2 * LEAST_SAMPLES:
        return None
    scales = Scales.of(samples.X, samples.Y)
    if not scales.usable:
        return None
    seed = [stream.seed, stream.seen]
    order = np.random.default_rng(seed).permutation(len(samples.X))
    prior, start = Prior(leading.family, scales.varying), stream.starts.get(leading.family)
    if start is not None and len(start) != len(prior.mean):
        start = None
    most = most_samples(leading.needed_points)
    chosen = in_units(samples.select(np.sort(order[:most])), scales)
    find = search_without_outliers if stream.robust else search
    hyperparameters = finished(find(prior, chosen, start, FIRST, seed, leading.needed_points))
    shape = (hyperparameters, scales, stream.ensemble.outputs, stream.max_size, (1.0,))
    one, other = np.array_split(order, 2)
    test = samples.select(other[drawn[other]])
    by_mixture = _log_densities(test, stream.ensemble.predict(test.X))
    try:
        tried = []
        for marginalise in (False, True):  # which is better depends on whether the points suffice
            group = Group(*shape, marginalise)
            finished(group.learn(samples.select(one)))
            found = _group_prediction(group, test.X)
            tried.append((group, found, _log_densities(test, found) - by_mixture))
        group, found, gains = max(tried, key=lambda each: float(each[2].sum()))
        finished(group.learn(samples.select(other)))
    except FloatingPointError:  # rounding errors
        return None
    gains = gains[test.positions >= stream.relation.since]
    past = PastProbability(_in_lengthscales(group, samples.X[drawn]))
    errors = test.targets_at_inputs - found.mean
    shift = fit_parameters(errors, found.variance + sample_variance(test, found)).shift
    return PastModel(group, past, sigmoid(gains.sum(axis=0)), np.exp(2.0 * shift))


def _in_lengthscales(group: Group, X: Array) -> Array:
    """Return the columns that a group uses, in units of its length-scales."""
    return group.scales.inputs(X)[:, group.hyperparameters.prior.columns] / group.lengthscales


def _group_prediction(group: Group, X: Array) -> Prediction:
    """Return the prediction of the first belief of a group."""
    mean, variance, share = (of[0] for of in group.predict(X, resting=True))
    return Prediction(mean, variance, share[:, None] * variance)


def _log_densities(samples: Samples, prediction: Prediction) -> Array:
    """Return the log densities (n, k) of samples, each with its own noise."""
    variance = prediction.variance + sample_variance(samples, prediction)
    return log_densities(samples.targets_at_inputs, prediction.mean, variance)
