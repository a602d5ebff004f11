"""Algorithms 1 and 2 over any core and any criterion: append, then let the cheapest points go.

This is the loop in Python. The compiled core has a twin of it for the criteria it knows.
"""

import sys
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pogp._core.slots_reference import cheapest, not_finite
from pogp.arrays import Array, Indices
from pogp.criteria import Criterion
from pogp.distances import distance_of_cost, hellinger_cost
from pogp.trace import FIELDS

if TYPE_CHECKING:
    from pogp._core import RetainedCore


class Step:
    """One sample being learned: what a criterion may look at.

    The newest sample stands in the last slot, or in `newest`, until something is removed. The
    marginal of y at its input is followed through the removals: `influence` is v = Pk at that
    input, `shift` and `gain` are how far its mean and variance have moved from the reference.
    """

    def __init__(self, core: "RetainedCore", planned: int = -1, newest: int = -1) -> None:
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
        self.gone = 0

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
        self.gone += 1


class Plan(NamedTuple):
    """What bounds and directs the compression of a batch."""

    limits: Array
    """What each sample's compression may cost, in the unit of the criterion; −∞ for nothing."""
    max_size: int = sys.maxsize
    max_removals: int = sys.maxsize
    slots: Indices = np.empty(0, dtype=np.int64)
    """For the criterion `Planned`: the slot that goes at each sample."""

    def part(self, rows: slice) -> "Plan":
        """Return the plan for some of the samples."""
        return self._replace(limits=self.limits[rows], slots=self.slots[rows])


@np.errstate(over="ignore", invalid="ignore")  # what is not finite is an error here, no warning
def learn(
    core: "RetainedCore", criterion: Criterion, X: Array, y: Array, first: int, plan: Plan
) -> Array:
    """Learn the samples in order and return their records, one row each (see `trace.FIELDS`).

    FloatingPointError names the first sample after which the core is not finite.
    """
    records = np.empty((len(y), len(FIELDS)))
    for i, (x, target) in enumerate(zip(X, y, strict=True)):
        mean, variance = core.append(x, float(target), first + i)
        step = Step(core, int(plan.slots[i]) if len(plan.slots) else -1)
        cost = compress(step, criterion, float(plan.limits[i]), plan)
        records[i] = (
            mean,
            variance,
            core.size,
            step.gone,
            criterion.spent(cost),
            *movement(core.noise, mean, variance, float(target), step.shift, step.gain),
        )
        if not np.isfinite(core.weights.sum() + core.diagonal.sum()):
            raise FloatingPointError(not_finite(first + i, float(target)))
        core.mend(first + i)
    return records


def movement(
    noise: float,
    mean: float | Array,
    variance: float | Array,
    y: float | Array,
    shift: float = 0.0,
    gain: float = 0.0,
) -> tuple[Array, Array]:
    """Return how far the marginal at x moves by appending y there, and by all of the step.

    `mean` and `variance` are of y before it was learned; `shift` and `gain` are what compression
    took from the mean and gave to the variance after that.
    """
    latent = variance - noise
    moved = latent * (y - mean) / variance
    shrunk = latent**2 / variance
    return (
        distance_of_cost(hellinger_cost(moved, variance, -shrunk)),
        distance_of_cost(hellinger_cost(moved - shift, variance, gain - shrunk)),
    )


def compress(step: Step, criterion: Criterion, limit: float, plan: Plan) -> float:
    """Destructive matching pursuit (Algorithm 2): return the cost of what was removed."""
    criterion.begin(step)
    spent = 0.0
    while step.size > 1:
        forced = step.size > plan.max_size
        if not forced and step.gone >= plan.max_removals:
            break
        costs = criterion.costs(step)
        j = cheapest(costs, step.core.arrivals)
        if not forced and not costs[j] <= limit:
            break
        spent = float(costs[j])
        criterion.removing(step, j)
        step.remove(j)
    return spent
