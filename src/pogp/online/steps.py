"""One sample of a stream and of its groups, on arrays that others hold; see `compiled_steps.pyx`.

The arrays are bound once: who puts another in the place of one makes a new step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pogp.arrays import Array
from pogp.online import mixing
from pogp.online.mixture import DISCOUNTS
from pogp.online.spreading import Spread

if TYPE_CHECKING:
    from pogp.online.group import Group
    from pogp.online.stream import Stream


class GroupStep:
    """What a group does with one sample."""

    def __init__(self, group: Group) -> None:
        beliefs, outputs = group.narrow.shape
        self._core, self._criterion, self._max_size = group.core, group.criterion, group.max_size
        self._noise, self._least = group.noise, group.least
        self._factor, self._narrow, self._residual = group.factor, group.narrow, group.residual
        self._product, self._square, self._unit = group.product, group.square, group.unit
        self._place = (group.scales.target_centre, group.scales.unit)
        self._mean, self._corrected = np.zeros((2, beliefs, outputs))
        self._variance, self._noises = np.ones((2, beliefs))
        self._target = np.zeros(outputs)
        self._weight, self._extra = 1.0, 0.0  # of the sample glanced at

    def glance(
        self, scaled: Array, extra: Array | None, weight: float, means: Array, variances: Array
    ) -> None:
        """Fill means and variances of y, (members, outputs), at an input in the group's units.

        The noise of a sample is that of the group over the sample's weight. `extra` (outputs,) is a
        variance of its own, which is not among those that are filled.
        """
        self._mean, latent = self._core.glance(scaled)
        self._weight = weight
        self._extra = 0.0 if extra is None else float(np.mean(extra / self._place[1] ** 2))
        returning = (self._product, self._square, self._residual, self._narrow)
        mixing.correct(
            self._mean,
            latent,
            self._factor,
            self._noise / weight,
            self._extra,
            *returning,
            *self._place,
            self._variance,
            self._corrected,
            means,
            variances,
        )

    def surprise(self, y: Array) -> float:
        """Return how many deviations y is off by the belief that it surprises least."""
        return mixing.surprise(y, *self._place, self._mean, self._variance)

    def learn(self, y: Array, position: int, guard: float, still: bool = False) -> Array:
        """Learn the raw target of the input glanced at last; return the record of the sample.

        An outlier has a `guard` > 0, the deviations beyond which it counts no more. A target at
        rest is `still`: it says what the function is there, and nothing of the noise that there is
        when it moves.
        """
        own = float(self._factor[self._core.lead] * self._noise)
        narrow, factor = self._narrow, self._factor
        if still:
            narrow, factor = narrow.copy(), factor.copy()
        returning = (self._product, self._square, self._residual, self._unit, narrow)
        mixing.take(
            y,
            *self._place,
            self._mean,
            self._variance,
            self._corrected,
            *returning,
            factor,
            self._noise / self._weight,
            self._extra,
            min(self._weight, 1.0),  # the rest of it is the noise of this sample
            guard,
            self._least,
            self._target,
            self._noises,
        )
        sample = (self._target, self._noises, own, position)
        return self._core.observe(self._criterion, *sample, self._max_size)


class StreamStep:
    """What a stream does with one sample beside what its groups learn."""

    def __init__(self, stream: Stream) -> None:
        self._experts, self._mixture, self._band = stream.experts, stream.mixture, stream.band
        self._scales, self._groups, self._ends = stream.scales, stream.groups, stream.ends
        self._means, self._variances, self._gains = stream.means, stream.variances, stream.gains
        self._scores = stream.all_scores
        self._parts = [(self._means[rows], self._variances[rows]) for rows in stream.parts]

    def glance(self, x: Array, extra: Array | None, weight: float, added: float) -> None:
        """Find the members' means and variances, (members, k), of a sample's y.

        `added` is what the noise of the sample has beside the noise that is usual.
        """
        scales, experts = self._scales, self._parts[0]
        scaled = x if scales is None else scales.input(x)
        self._experts.glance(scaled, scales, *experts)
        if added > 0.0:  # to what their errors were made of
            experts[1][...] += added
        for group, told in zip(self._groups, self._parts[1:], strict=True):
            own = scaled if group.scales is scales else group.scales.input(x)
            group.step.glance(own, extra, weight, *told)

    def judge(
        self, y: Array, scores: Array, gaps: Spread | None, record: Array, still: bool = False
    ) -> float:
        """Begin the record of a sample by what is told of it, and score all members by what came.

        They are weighed by `scores`. `gaps` are what those of the row change. Return how many
        deviations y is off. A target at rest is `still`.
        """
        mean, variance = self._mixture.combine(scores, self._means, self._variances)
        extra = None
        if gaps is not None:  # what is told has them, and so has what members are judged by
            mean, variance, extra = mean + gaps.shift, variance.copy(), gaps.variance
            self._variances[self._ends[0] :] += extra
            self._mixture.combine(scores, self._means, self._variances)
        size = self._band.learn(y, mean, variance, extra, record, still)
        self._mixture.learn(y)
        told = (y, self._means, self._variances, DISCOUNTS, self._ends)
        gained = mixing.score(*told, self._gains, self._scores)
        for group, more in zip(self._groups, gained[1:], strict=True):
            group.gained += more
        return size

    def learn(self, y: Array, guard: float, weight: float) -> None:
        """Have the simple predictors learn the sample."""
        self._experts.learn(y, self._parts[0][0], self._scales, guard, weight)
