"""The work of one sample for a group and for an ensemble, in NumPy; see `compiled_steps.pyx`.

A step is bound to the arrays of its owner. If the owner replaces an array, it needs a new step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pogp.arrays import Array
from pogp.online import arithmetic
from pogp.online.arithmetic import LAG_DISCOUNT, PRIOR_COUNT, RATE
from pogp.online.mixture import DISCOUNTS
from pogp.online.prediction import GapEffect

if TYPE_CHECKING:
    from pogp.online.ensemble import Ensemble
    from pogp.online.group import Group


class GroupStep:
    """One sample of a group: `predict`, then `learn`."""

    def __init__(self, group: Group) -> None:
        beliefs, outputs = group.residual.shape
        self._core, self._criterion, self._max_size = group.core, group.criterion, group.max_size
        self._noise, self._least_factor = group.noise, group.least_factor
        self._noise_factor, self._corrected_factor = group.noise_factor, group.corrected_factor
        self._lag_product, self._lag_square = group.lag_product, group.lag_square
        self._residual, self._last_z = group.residual, group.last_z
        self._centre, self._unit = group.scales.target_centre, group.scales.unit
        self._mean, self._corrected = np.zeros((2, beliefs, outputs))
        self._variance = np.ones(beliefs)
        self._weight, self._extra = 1.0, 0.0  # of the current sample

    def predict(
        self, scaled: Array, extra: Array | None, weight: float, means: Array, variances: Array
    ) -> None:
        """Fill means and variances of y, (members, outputs), at an input in the group's units.

        The members are the beliefs, then the beliefs corrected by ρ times their last residuals. The
        noise of the sample is that of the group over its `weight`. Its `extra` variance (outputs,)
        is not part of the variances.
        """
        self._mean, latent = self._core.predict_input(scaled)
        self._weight = weight
        self._extra = 0.0 if extra is None else float(np.mean(extra / self._unit**2))
        variance = latent + self._noise_factor * (self._noise / weight)
        self._variance = variance + self._extra
        reach = 3.0 * np.sqrt(variance)[:, None]
        rho = np.clip(self._lag_product / (self._lag_square + PRIOR_COUNT), -1.0, 1.0)
        self._corrected = self._mean + rho * np.clip(self._residual, -reach, reach)
        beliefs = len(variance)
        means[:beliefs] = self._centre + self._mean * self._unit
        means[beliefs:] = self._centre + self._corrected * self._unit
        variances[:beliefs] = variance[:, None] * self._unit**2
        variances[beliefs:] = variance[:, None] * self._corrected_factor * self._unit**2

    def surprise(self, y: Array) -> float:
        """Return the error of y in deviations, for the belief with the smallest one.

        The error of a belief is the largest over the outputs.
        """
        error = np.abs((y - self._centre) / self._unit - self._mean).max(axis=1)
        return float((error / np.sqrt(self._variance)).min())

    def learn(self, y: Array, position: int, bound: float, stopped: bool = False) -> Array:
        """Learn the raw target of the predicted input; return the record of the sample.

        If `bound` > 0 the sample is an outlier: its noise is increased so that its influence is
        that of an error of `bound` deviations. A stopped target changes the belief, but not the
        noise.
        """
        target = (y - self._centre) / self._unit
        noises = self._noise_factor * (self._noise / self._weight) + self._extra
        # after a change the noise of one belief may be a thousand times that of another
        noise = float(self._noise_factor.min() * self._noise)
        error = target - self._mean
        z = error / np.sqrt(self._variance)[:, None]
        if not stopped:
            self._follow(target, z)
        if bound > 0.0:
            beyond = np.abs(z).max(axis=1) / bound - 1.0
            noises += np.maximum(beyond, 0.0) * self._variance
            self._last_z[...], self._residual[...] = 0.0, 0.0
        else:
            self._remember(error, np.clip(z, -4.0, 4.0))
        sample = (target, noises, noise, position)
        return self._core.learn_target(self._criterion, *sample, self._max_size)

    def _follow(self, target: Array, z: Array) -> None:
        """Let the factors of noise and corrected variances follow the squared errors.

        A large error raises a noise factor, in proportion to the share of the variance that is not
        the sample's extra variance. A small one lowers it, in proportion to the share of the noise.
        """
        extra, variance = self._extra, self._variance
        own = (variance[:, None] - extra) * self._corrected_factor
        square = (target - self._corrected) ** 2 / (own + extra)
        excess = (np.minimum(square, 9.0) - 1.0) * (own / (own + extra))
        self._corrected_factor *= np.exp(RATE * excess)
        np.clip(self._corrected_factor, 0.01, 10.0, out=self._corrected_factor)
        excess = np.mean(np.minimum(z**2, 9.0), axis=1) - 1.0
        noise = self._noise_factor * (self._noise / self._weight)
        share = np.where(excess > 0, variance - extra, noise) / variance
        self._noise_factor *= np.exp(RATE * excess * share)
        np.clip(self._noise_factor, self._least_factor, 1e6, out=self._noise_factor)

    def _remember(self, error: Array, z: Array) -> None:
        """Store the last residual, and update the sums for its correlation with the one before."""
        self._lag_product *= LAG_DISCOUNT
        self._lag_product += z * self._last_z
        self._lag_square *= LAG_DISCOUNT
        self._lag_square += self._last_z**2
        self._last_z[...] = z
        # the rest of the residual of a sample of low weight is its own noise
        self._residual[...] = min(self._weight, 1.0) * error


class EnsembleStep:
    """One sample of an ensemble: `predict`, `score`, then `learn` of the simple predictors."""

    def __init__(self, ensemble: Ensemble) -> None:
        self._predictors, self._mixture = ensemble.predictors, ensemble.mixture
        self._band, self._scales = ensemble.band, ensemble.scales
        self._groups, self._ends = ensemble.groups, ensemble.ends
        self._means, self._variances = ensemble.means, ensemble.variances
        self._gains, self._scores = ensemble.gains, ensemble.scores
        self._parts = [(self._means[rows], self._variances[rows]) for rows in ensemble.parts]
        self.far = False
        """Whether the input is so far away that groups get it compressed."""

    def predict(self, x: Array, extra: Array | None, weight: float, more_noise: float) -> None:
        """Fill the means and variances of all members, (members, k), at a raw input.

        `more_noise` is the noise of the sample beyond the usual noise, for the simple predictors.
        """
        scales, simple = self._scales, self._parts[0]
        scaled = x if scales is None else scales.input(x)
        self.far = scales is not None and bool(scales.are_far(x))
        straight = scales.straight(x) if scales is not None and self.far else scaled
        self._predictors.predict_one(straight, scales, *simple)
        if more_noise > 0.0:
            simple[1][...] += more_noise
        for group, part in zip(self._groups, self._parts[1:], strict=True):
            own = scaled if group.scales is scales else group.scales.input(x)
            group.step.predict(own, extra, weight, *part)

    def score(
        self, y: Array, scores: Array, gaps: GapEffect | None, record: Array, stopped: bool = False
    ) -> float:
        """Record the mixture of the members, weighted by `scores`, and score them by the target.

        Returns
        -------
        float
            The error of the mixture in calibrated deviations, the largest over the outputs.
        """
        mean, variance = self._mixture.combine(scores, self._means, self._variances)
        extra = None
        if gaps is not None:  # groups are scored with the effect of missing values
            mean, variance, extra = mean + gaps.shift, variance.copy(), gaps.variance
            self._means[self._ends[0] :] += gaps.shift
            self._variances[self._ends[0] :] += extra
            self._mixture.combine(scores, self._means, self._variances)
        error = self._band.learn(y, mean, variance, extra, record, stopped)
        self._mixture.learn(y)
        members = (self._means, self._variances, DISCOUNTS, self._ends)
        gains = arithmetic.score(y, *members, self._gains, self._scores)
        for group, gain in zip(self._groups, gains[1:], strict=True):
            group.race_score += gain
        return error

    def learn(self, y: Array, bound: float, weight: float, far: bool = False) -> None:
        """Let the simple predictors learn the sample, carefully if its input is `far`."""
        self._predictors.learn(y, self._parts[0][0], self._scales, bound, weight, far)
