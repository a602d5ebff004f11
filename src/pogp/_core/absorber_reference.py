"""Learning on the absorbed posterior, in NumPy: the specification of `absorber.pyx`."""

import sys
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pogp._core.absorbed_reference import Absorbed, Glance
from pogp._core.slots_reference import cheapest
from pogp.arrays import Array
from pogp.distances import distance_of_cost, hellinger_cost

if TYPE_CHECKING:
    from pogp.compression import Plan


CAREFUL_REMOVALS = 4
"""With very little noise no more go at one sample within a limit: errors would add up unseen."""


class Rule(NamedTuple):
    """How the absorbed posterior lets go of points."""

    score: str
    """What a removal costs: "hellinger" (of the whole posterior), "csato", "error"; "keep"."""
    slack: float = 0.0
    """How far from what the others say a point that goes may be: the variance of that error, at
    most what the prior leaves open. 0 conditions, ∞ marginalises."""
    tolerance: float = -1.0
    """An input whose variance given u is at most this, of κ₀, leaves no point behind."""
    reduce: float = np.inf
    """The slack with which such an input goes."""


class Absorber(Absorbed):
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

        A sample that the rule's tolerance does not absorb becomes a point. Then the points that are
        cheapest go: as many as `max_size` asks for, and `max_removals` more at the most, whose
        distances add up to no more than the limit.
        """
        records = np.empty((len(Y), 2 * Y.shape[1] + 5))
        for i, (x, y) in enumerate(zip(X, Y, strict=True)):
            at = self.glance(x, float(noises[i]))
            if first + i > self.size:
                self.open += at.gamma - self.nugget
                self.glances += 1
            redundant = self.size > 0 and at.gamma - self.nugget <= rule.tolerance * at.kappa0
            if redundant:
                self.absorb(at, y, rule.reduce)
            else:
                self.append(at, y, first + i, float(relevance[i]))
            bounds = (float(plan.limits[i]), plan.max_size, plan.max_removals)
            gone, spent = self._compress(rule, *bounds, int(redundant))
            records[i] = self._record(rule, at, y, gone, spent)
        return records

    def prune(self, rule: Rule, limit: float, max_size: int) -> float:
        """Let go of points without a sample, within the limit and to the cap; return the cost."""
        return self._compress(rule, limit, max_size, sys.maxsize, 0)[1]

    def _compress(
        self, rule: Rule, limit: float, max_size: int, max_removals: int, gone: int
    ) -> tuple[int, float]:
        spent = 0.0
        while self.size > 1 and rule.score != "keep":
            forced = self.size > max_size
            if not forced and (gone >= max_removals or (self.careful and gone >= CAREFUL_REMOVALS)):
                break
            costs = self.costs(rule)
            j = cheapest(costs, self.arrivals)
            cost = float(costs[j])
            if rule.score == "hellinger":
                cost = float(distance_of_cost(cost))
            if not forced and not spent + cost <= limit:
                break
            spent, gone = spent + cost, gone + 1
            self.project(j, rule.slack)
        return gone, spent

    def costs(self, rule: Rule) -> Array:
        """Return what the removal of each slot costs by a rule."""
        q, squares = np.diagonal(self.inverse), np.sum(self.weights**2, axis=1)
        if rule.score == "csato":
            costs = squares / self.spread  # Csató & Opper 2002, eq. 27
        elif rule.score == "error":
            costs = squares / q**2  # Van Vaerenbergh et al. 2012, section III-E
        else:
            known = np.diagonal(self.information)
            outputs = self.weights.shape[1]
            costs = removal_cost(rule.slack, q, self.spread, known, squares, outputs)
        return np.asarray(self.relevance * costs)

    def _record(self, rule: Rule, at: Glance, y: Array, gone: int, spent: float) -> Array:
        before, outputs = at.latent + at.noise, len(y)
        means, latents = self.predict(at.x[None, :])
        variance = float(latents[0]) + at.noise
        moved, shrunk = at.latent * (y - at.mean) / before, at.latent**2 / before
        appended = at.noise * (before + at.latent) / before  # before − shrunk, which would cancel
        if rule.score != "hellinger":  # which measures the whole posterior; else the marginal at x
            spent = _distance(means[0] - at.mean - moved, appended, variance - appended)
        novelty = _distance(moved, appended, shrunk)
        change = _distance(means[0] - at.mean, before, variance - before)
        variances = np.full(outputs, before)
        return np.concatenate([at.mean, variances, [self.size, gone, spent, novelty, change]])


def removal_cost(
    slack: float, q: Array, spread: Array, known: Array, squares: Array, outputs: int = 1
) -> Array:
    """Return −log BC of the whole posterior before and after each removal (mathematics.md §4).

    From the diagonals of Q, of B = Q − C and of Λ, and the squares of α added up over the outputs.
    Nothing in it cancels.
    """
    p, v, c, e = 1 / q, spread / q**2, 1 / (q + known), squares / q**2
    error = np.minimum(slack, p)
    s = error / (1 + error * known)
    rest = (1 - error * q) / (1 + error * known)  # 1 − s/c
    tau = np.maximum(v - c, 0.0)
    d = c + tau * rest  # v − sτ/c
    rho = c / d
    rp, rv, rc = np.sqrt(rho * p), np.sqrt(rho * v), np.sqrt(c)
    shape = (rc - rp) ** 2 + (np.sqrt(p) - rv) ** 2 + 2 * rp * tau / (np.sqrt(v) + rc)
    shapes = 0.5 * np.log1p(shape / (4 * rc * rp))
    total = p + c + rho * (v + p)
    means = e / (4 * total) * (2 * rho + tau * rest / d * (p * rest - s) / d)
    return np.asarray(outputs * shapes + means)


def _distance(shifts: Array, variance: float, gain: float) -> float:
    """Return the Hellinger distance between the marginals of all outputs: their costs add up."""
    first = hellinger_cost(shifts[0], variance, gain)
    others = [hellinger_cost(shift, variance, gain) for shift in shifts[1:]]
    return float(distance_of_cost(sum(others, first)))
