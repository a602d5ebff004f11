"""Algorithms 1 and 2 over any core and any criterion: append, then remove the cheapest points.

This is the loop in Python. The compiled core has a twin of it for the criteria it knows.
"""

import numpy as np

from pogp.arrays import Array
from pogp.compression import Plan
from pogp.criteria import Criterion
from pogp.distances import movement
from pogp.posteriors.retained.state import RetainedState
from pogp.posteriors.slots import cheapest, not_finite
from pogp.trace import blank


class Step:
    """One sample being learned: what a criterion may look at.

    The newest sample is in the last slot, or in `newest`, until a point is removed. The
    marginal of y at its input is followed through the removals: `influence` is v = Pk at that
    input, `shift` and `gain` are the changes of its mean and variance from the reference.
    """

    def __init__(self, core: RetainedState, planned: int = -1, newest: int = -1) -> None:
        self.core = core
        self.planned = planned
        newest %= core.size
        noise = core.noise
        column = core.column(newest)
        # mathematics.md §1, at the newest member no product is needed
        self.influence = -noise * column
        self.influence[newest] += 1.0
        self.variance = noise + noise * self.influence[newest]
        self.shift = 0.0
        self.gain = 0.0
        self.n_removed = 0

    @property
    def size(self) -> int:
        """The number of points that have not been removed."""
        return self.core.size

    @property
    def noise(self) -> float:
        """The noise variance σ²."""
        return self.core.noise

    @property
    def weights(self) -> Array:
        """α, by slot."""
        return self.core.weights

    @property
    def diagonal(self) -> Array:
        """The diagonal of P, by slot."""
        return self.core.diagonal

    def precision_column(self, j: int) -> Array:
        """Column j of P."""
        return self.core.column(j)

    def remove(self, j: int) -> None:
        """Remove slot j and follow the marginal at the newest input."""
        v, pivot = self.influence, self.diagonal[j]
        self.shift += float(v[j] * self.weights[j] / pivot)
        self.gain += float(v[j] ** 2 / pivot)
        v = v - self.precision_column(j) * (v[j] / pivot)
        v[j] = v[-1]
        self.influence = v[:-1]
        self.core.remove(j)
        self.n_removed += 1


class RetainedLoop(RetainedState):
    """A retained-data posterior that learns from a stream."""

    def learn(self, criterion: Criterion, X: Array, y: Array, first: int, plan: Plan) -> Array:
        """Learn the samples in order and return their records, one row each (see `trace`)."""
        return learn(self, criterion, X, y, first, plan)


@np.errstate(over="ignore", invalid="ignore")  # non-finite values raise below
def learn(
    core: RetainedState, criterion: Criterion, X: Array, y: Array, first: int, plan: Plan
) -> Array:
    """Learn the samples in order and return their records, one row each (see `trace.FIELDS`).

    FloatingPointError names the first sample after which the core is not finite.
    """
    records = blank(len(y))
    for i, (x, target) in enumerate(zip(X, y, strict=True)):
        mean, variance = core.append(x, float(target), first + i)
        step = Step(core, int(plan.slots[i]) if len(plan.slots) else -1)
        cost = compress(step, criterion, float(plan.limits[i]), plan)
        records[i, :-1] = (
            mean,
            variance,
            core.size,
            step.n_removed,
            criterion.spent(cost),
            *movement(core.noise, mean, variance, float(target), step.shift, step.gain),
        )
        if not np.isfinite(core.weights.sum() + core.diagonal.sum()):
            raise FloatingPointError(not_finite(first + i, float(target)))
        core.mend(first + i)
    return records


def compress(step: Step, criterion: Criterion, limit: float, plan: Plan) -> float:
    """Destructive matching pursuit (Algorithm 2): return the cost of what was removed."""
    criterion.begin(step)
    spent = 0.0
    while step.size > 1:
        forced = step.size > plan.max_size
        if not forced and step.n_removed >= plan.max_removals:
            break
        costs = criterion.costs(step)
        j = cheapest(costs, step.core.arrivals)
        if not forced and not costs[j] <= limit:
            break
        spent = float(costs[j])
        criterion.removing(step, j)
        step.remove(j)
    return spent
