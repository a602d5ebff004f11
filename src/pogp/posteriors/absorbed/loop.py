"""Learning on the absorbed posterior, in NumPy: the specification of `compiled_loop.pyx`."""

import sys
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pogp.arrays import Array
from pogp.distances import distance_of_cost, hellinger_cost
from pogp.posteriors.absorbed.state import FLOOR, AbsorbedState, Glance
from pogp.posteriors.slots import cheapest

if TYPE_CHECKING:
    from pogp.compression import Plan

REDUNDANT = 4
"""No more redundant points than this go at one sample, so that every step is bounded."""


class Rule(NamedTuple):
    """How the absorbed posterior takes in samples and lets go of points."""

    score: str
    """What a removal costs: "hellinger" (of the whole posterior), "csato", "error"; "keep"."""
    marginalise: bool = False
    """Whether a point that goes is left out; otherwise it is taken to be what the others say."""
    share: float = 0.0
    """A sample of which the points leave no more than this share of the noise open becomes no
    point (novelty), and a point of which the others leave no more than that goes (redundancy)."""
    tolerance: float = 0.0
    """The same for novelty alone, as a fraction of κ₀."""
    reduce: bool = True
    """Whether such a sample is marginalised."""

    def closed(self, noise: float, kappa0: float) -> float:
        """Return the variance up to which a sample becomes no point."""
        return max(self.share * noise, max(self.tolerance, FLOOR) * kappa0)


class AbsorbedLoop(AbsorbedState):
    """An absorbed posterior that learns from a stream."""

    def learn(
        self,
        rule: Rule,
        X: Array,
        Y: Array,
        noises: Array,
        relevance: Array,
        first: int,
        plan: "Plan",
    ) -> Array:
        """Learn the samples in order and return their records, one row each (see `trace`).

        A sample that the rule does not absorb becomes a point. Redundant points go. Then the points
        that are cheapest go: as many as `max_size` asks for, and `max_removals` more at the most,
        whose distances add up to no more than the limit.

        FloatingPointError names a sample that cannot be learned; those before it are learned.
        """
        records = np.empty((len(Y), 2 * Y.shape[1] + 5))
        for i, (x, y) in enumerate(zip(X, Y, strict=True)):
            at, each = self.look(x), np.full(len(self.forgetting), noises[i])
            bounds = (float(plan.limits[i]), plan.max_size, plan.max_removals)
            records[i] = self._step(
                rule, at, y, each, self.noise, first + i, float(relevance[i]), bounds
            )
        return records

    def glance(self, x: Array) -> tuple[Array, Array]:
        """Return the means (beliefs, outputs) and the latent variances (beliefs,) at an input."""
        self._glanced = self.look(np.array(x))
        return self._glanced.mean, self._glanced.latent

    def observe(
        self, rule: Rule, y: Array, noises: Array, noise: float, arrival: int, max_size: int
    ) -> Array:
        """Learn the target of the input glanced at last, with a noise for each belief.

        `noise` decides which points are novel or redundant. Return the record of the sample.
        """
        bounds = (-np.inf, max_size, 0)
        return self._step(rule, self._glanced, y, noises, noise, arrival, 1.0, bounds)

    def prune(self, rule: Rule, limit: float, max_size: int) -> float:
        """Let go of points without a sample, within the limit and to the cap; return the cost."""
        return self._compress(rule, self.noise, (limit, max_size, sys.maxsize), 0)[1]

    def _step(
        self,
        rule: Rule,
        at: Glance,
        y: Array,
        noises: Array,
        noise: float,
        arrival: int,
        relevance: float,
        bounds: tuple[float, int, int],
    ) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            surprise = (y - at.mean) / (at.latent + noises)[:, None]
        if not np.isfinite(surprise).all():
            raise FloatingPointError(not_finite(arrival))
        absorbed = self.size > 0 and at.gamma <= rule.closed(noise, at.kappa0)
        if absorbed:
            self.absorb(at, y, noises, rule.reduce)
        else:
            self.append(at, y, noises, arrival, relevance)
        gone, spent = self._compress(rule, noise, bounds, int(absorbed))
        record = self._record(rule, at, y, float(noises[self.lead]), gone, spent)
        self.forget()
        return record

    def _compress(
        self, rule: Rule, noise: float, bounds: tuple[float, int, int], gone: int
    ) -> tuple[int, float]:
        limit, max_size, max_removals = bounds
        spent, redundant = 0.0, 0
        while self.size > 1 and rule.score != "keep":
            costs = self.costs(rule)
            least = np.maximum(rule.share * noise, FLOOR * np.diagonal(self.gram))
            close = np.diagonal(self.inverse) * least >= 1
            if redundant < REDUNDANT and close.any():
                redundant, forced = redundant + 1, True
                costs = np.where(close, costs, np.inf)
            else:
                forced = self.size > max_size
            j = cheapest(costs, self.arrivals)
            if not forced and gone >= max_removals:
                break
            cost = float(costs[j])
            if rule.score == "hellinger":
                cost = float(distance_of_cost(cost))
            if not forced and not spent + cost <= limit:
                break
            spent, gone = spent + cost, gone + 1
            self.remove(j, rule.marginalise)
        return gone, spent

    def costs(self, rule: Rule) -> Array:
        """Return what the removal of each slot costs by a rule and the leading belief."""
        q, squares = np.diagonal(self.inverse), np.sum(self.weights**2, axis=1)
        if rule.score == "error":
            return np.asarray(self.relevance * squares / q**2)  # Van Vaerenbergh et al. 2012, III-E
        spread = np.maximum(self.spread, np.finfo(float).tiny)
        if rule.score == "csato":
            return np.asarray(self.relevance * squares / spread)  # Csató & Opper 2002, eq. 27
        known = np.diagonal(self.information) if self.informed else None
        costs = removal_cost(rule.marginalise, q, spread, known, squares, self.values.shape[2])
        return np.asarray(self.relevance * costs)

    def _record(
        self, rule: Rule, at: Glance, y: Array, noise: float, gone: int, spent: float
    ) -> Array:
        mean, latent = at.mean[self.lead], float(at.latent[self.lead])
        before, outputs = latent + noise, len(y)
        means, latents = self.predict(at.x[None, :])
        after, variance = means[self.lead, 0], float(latents[self.lead, 0]) + noise
        moved, shrunk = latent * (y - mean) / before, latent**2 / before
        appended = noise * (before + latent) / before  # before − shrunk, which would cancel
        if rule.score != "hellinger":  # which measures the whole posterior; else the marginal at x
            spent = _distance(after - mean - moved, appended, variance - appended)
        novelty = _distance(moved, appended, shrunk)
        change = _distance(after - mean, before, variance - before)
        variances = np.full(outputs, before)
        return np.concatenate([mean, variances, [self.size, gone, spent, novelty, change]])


def not_finite(position: int) -> str:
    """Return the message for a sample that cannot be learned."""
    return (
        f"sample {position} of the stream cannot be learned: its prediction is not finite; "
        "the model stays as it was"
    )


def removal_cost(
    marginalise: bool, q: Array, spread: Array, known: Array | None, squares: Array, outputs: int
) -> Array:
    """Return −log BC of the whole posterior before and after each removal (mathematics.md §4).

    From the diagonals of Q, QSQ and Λ, and the squares of α added up over the outputs. Nothing in
    it cancels. Where Λ is not known, the marginal of what u_j adds to the others is compared.
    """
    p, e = 1 / q, squares / q**2
    v = spread / q**2
    if known is None:
        shape = (np.sqrt(v) - np.sqrt(p)) ** 2 / (2 * np.sqrt(v * p))
        return np.asarray(outputs * 0.5 * np.log1p(shape) + e / (4 * (v + p)))
    c = 1 / (q + known)
    v = np.maximum(v, c)
    if marginalise:
        tau = v - c
        shape = (np.sqrt(c) - np.sqrt(p)) ** 2 / (2 * np.sqrt(c * p))
        shapes = 0.5 * np.log1p(shape) + 0.5 * np.log1p(tau / (2 * (c + p)))
        return np.asarray(outputs * shapes + e / (4 * (c + p) + 2 * tau))
    excess = (v - c) / (c * v)  # 1/c − 1/v
    shape = (np.sqrt(v) - np.sqrt(p)) ** 2 / (2 * np.sqrt(v * p)) + excess * np.sqrt(v * p) / 4
    both = 1 + v / p + v * excess / 2  # 2vA
    means = e / (4 * v) * (v / p + v * excess / 2) / both
    return np.asarray(outputs * 0.5 * np.log1p(shape) + means)


def _distance(shifts: Array, variance: float, gain: float) -> float:
    """Return the Hellinger distance between the marginals of all outputs: their costs add up."""
    first = hellinger_cost(shifts[0], variance, gain)
    others = [hellinger_cost(shift, variance, gain) for shift in shifts[1:]]
    return float(distance_of_cost(sum(others, first)))
