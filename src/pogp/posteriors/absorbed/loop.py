"""Learning on the absorbed posterior, in NumPy: the specification of `compiled_loop.pyx`."""

import sys
from typing import NamedTuple

import numpy as np

from pogp.arrays import Array
from pogp.compression import Plan
from pogp.criteria import AbsorbedCriterion
from pogp.distances import distance_of_cost, hellinger_cost
from pogp.posteriors.absorbed.state import AbsorbedState, AtInput
from pogp.posteriors.slots import cheapest
from pogp.trace import blank, record

MAX_REDUNDANT = 4
"""The most redundant points removed per sample, so that the cost of a step is bounded."""


class Limits(NamedTuple):
    """What the compression after one sample may do."""

    cost: float
    max_size: int
    max_removals: int


class AbsorbedLoop(AbsorbedState):
    """An absorbed posterior that learns from a stream."""

    def learn(
        self,
        criterion: AbsorbedCriterion,
        X: Array,
        Y: Array,
        noises: Array,
        relevance: Array,
        first: int,
        plan: Plan,
    ) -> Array:
        """Learn the samples in order and return their records, one row each (see `trace`).

        A sample that the points do not determine becomes a point. Redundant points are removed.
        Then the cheapest points are removed: as many as `max_size` requires, and at most
        `max_removals` more, while the sum of their distances is within the limit.

        FloatingPointError names a sample that cannot be learned; those before it are learned.
        """
        records = blank(len(Y), Y.shape[1])
        for i, (x, y) in enumerate(zip(X, Y, strict=True)):
            at, each = self.at_input(x), np.full(len(self.forgetting), noises[i])
            limits = Limits(float(plan.limits[i]), plan.max_size, plan.max_removals)
            records[i] = self._step(
                criterion, at, y, each, self.noise, first + i, float(relevance[i]), limits
            )
        return records

    def in_place(self, X: Array, Y: Array, noises: Array) -> bool:
        """Return whether samples change this core itself; only the compiled twin does that."""
        return False

    def predict_input(self, x: Array) -> tuple[Array, Array]:
        """Return the means (beliefs, outputs) and the latent variances (beliefs,) at an input."""
        self._at_input = self.at_input(np.array(x))
        return self._at_input.mean, self._at_input.latent

    def learn_target(
        self,
        criterion: AbsorbedCriterion,
        y: Array,
        noises: Array,
        noise: float,
        arrival: int,
        max_size: int,
    ) -> Array:
        """Learn the target of the input that was predicted last, with a noise for each belief.

        `noise` decides which points are novel or redundant. Return the record of the sample.
        """
        limits = Limits(-np.inf, max_size, 0)
        return self._step(criterion, self._at_input, y, noises, noise, arrival, 1.0, limits)

    def prune(self, criterion: AbsorbedCriterion, limit: float, max_size: int) -> float:
        """Remove points within the limit and down to the cap; return the cost."""
        return self._compress(criterion, self.noise, Limits(limit, max_size, sys.maxsize), 0)[1]

    def _step(
        self,
        criterion: AbsorbedCriterion,
        at: AtInput,
        y: Array,
        noises: Array,
        noise: float,
        arrival: int,
        relevance: float,
        limits: Limits,
    ) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            surprise = (y - at.mean) / (at.latent + noises)[:, None]
        if not np.isfinite(surprise).all():
            raise FloatingPointError(not_finite(arrival))
        absorbed = self.size > 0 and at.gamma <= criterion.novelty_threshold(noise, at.kappa0)
        if absorbed:
            self.absorb(at, y, noises, criterion.reduce)
        else:
            points = self.size
            self.append(at, y, noises, arrival, relevance)
            if self.uses_recent and self.lead == 0 and not criterion.marginalise:
                found = self._next(criterion, noise, limits, 0, 0, 0.0)
                if found is None or found[0] < points:  # otherwise the newest is removed at once
                    self.learn_recent()
                recent = self.recent.appended(at.x, y - self.mean, float(noises[0]), arrival)
                self.recent = recent.truncated(points)
        n_removed, spent = self._compress(criterion, noise, limits, int(absorbed))
        entry = self._record(criterion, at, y, float(noises[self.lead]), n_removed, spent)
        self.bound_spread()
        self.forget()
        return entry

    def _compress(
        self,
        criterion: AbsorbedCriterion,
        noise: float,
        limits: Limits,
        n_removed: int,
    ) -> tuple[int, float]:
        spent, redundant = 0.0, 0
        while found := self._next(criterion, noise, limits, n_removed, redundant, spent):
            j, cost, close = found
            spent, n_removed, redundant = spent + cost, n_removed + 1, redundant + close
            self.remove(j, criterion.marginalise)
        return n_removed, spent

    def _next(
        self,
        criterion: AbsorbedCriterion,
        noise: float,
        limits: Limits,
        n_removed: int,
        redundant: int,
        spent: float,
    ) -> tuple[int, float, bool] | None:
        """Return the next point to remove, its cost, and whether it is redundant."""
        limit, max_size, max_removals = limits
        if self.size <= 1 or not criterion.removes:
            return None
        costs = criterion.costs(self)
        least = criterion.redundancy_threshold(noise, np.diagonal(self.gram))
        close = np.diagonal(self.inverse) * least >= 1
        nearest = redundant < MAX_REDUNDANT and bool(close.any())
        if nearest:
            costs = np.where(close, costs, np.inf)
        forced = nearest or self.size > max_size
        if not forced and n_removed >= max_removals:
            return None
        j = cheapest(costs, self.arrivals)
        cost = criterion.spent(float(costs[j]))
        if not forced and not spent + cost <= limit:
            return None
        return j, cost, nearest

    def _record(
        self,
        criterion: AbsorbedCriterion,
        at: AtInput,
        y: Array,
        noise: float,
        n_removed: int,
        spent: float,
    ) -> Array:
        mean, latent = at.mean[self.lead], float(at.latent[self.lead])
        before, outputs = latent + noise, len(y)
        means, latents = self.predict(at.x[None, :])
        after, variance = means[self.lead, 0], float(latents[self.lead, 0]) + noise
        moved, shrunk = latent * (y - mean) / before, latent**2 / before
        appended = noise * (before + latent) / before  # before − shrunk, which would cancel
        if not criterion.whole:  # then the marginal at x is compared
            spent = _distance(after - mean - moved, appended, variance - appended)
        novelty = _distance(moved, appended, shrunk)
        change = _distance(after - mean, before, variance - before)
        variances = np.full(outputs, before)
        return record(mean, variances, self.size, n_removed, spent, novelty, change)


def not_finite(position: int) -> str:
    """Return the message for a sample that cannot be learned."""
    return (
        f"sample {position} of the stream cannot be learned: its prediction is not finite; "
        "the model stays as it was"
    )


def _distance(shifts: Array, variance: float, gain: float) -> float:
    """Return the Hellinger distance between the marginals of all outputs: their costs add up."""
    first = hellinger_cost(shifts[0], variance, gain)
    others = [hellinger_cost(shift, variance, gain) for shift in shifts[1:]]
    return float(distance_of_cost(sum(others, first)))
