"""How far a step may compress: the settings of a model, and the plan of a batch."""

import sys
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from pogp import validation
from pogp.arrays import Array, Indices
from pogp.budgets import Budget, Constant, as_budget, budgets_for
from pogp.criteria import NO_SLOTS, Criterion


class Plan(NamedTuple):
    """Budgets, caps and slots for the samples of one batch."""

    limits: Array
    """What each sample's compression may cost, in the unit of the criterion; −∞ for nothing."""
    max_size: int = sys.maxsize
    max_removals: int = sys.maxsize
    slots: Indices = NO_SLOTS
    """The slot removed at each sample, where the criterion knows it beforehand."""

    def part(self, rows: slice) -> "Plan":
        """Return the plan for some of the samples."""
        return self._replace(limits=self.limits[rows], slots=self.slots[rows])


C = TypeVar("C", bound=Criterion)


class Compression(Generic[C]):
    """A criterion, a budget in its unit, and caps: on the model order and on removals."""

    def __init__(
        self,
        criterion: C,
        budget: float | Budget | None = None,
        max_size: int | None = None,
        max_removals: int | None = None,
    ) -> None:
        self.criterion = criterion
        self.budget = as_budget(budget)
        self.max_size = None if max_size is None else validation.count("max_size", max_size, 1)
        if max_removals is not None:
            max_removals = validation.count("max_removals", max_removals, 0)
        self.max_removals = max_removals
        steady = self.budget is None or isinstance(self.budget, Constant)
        drawn = len(criterion.slots(0, 1)) > 0
        # made once: most calls have a single sample
        self._single_sample_plan = self._plan(0, 1) if steady and not drawn else None

    @property
    def cap(self) -> int:
        """The cap on the model order as a number, however large."""
        return sys.maxsize if self.max_size is None else self.max_size

    def plan(self, first: int, count: int) -> Plan:
        """Return the plan for so many samples after the first ones; ValueError for a bad budget."""
        if count == 1 and self._single_sample_plan is not None:
            return self._single_sample_plan
        return self._plan(first, count)

    def _plan(self, first: int, count: int) -> Plan:
        removals = sys.maxsize if self.max_removals is None else self.max_removals
        slots = self.criterion.slots(first, count)
        return Plan(self._limits(first, count), self.cap, removals, slots)

    def _limits(self, first: int, count: int) -> Array:
        if self.budget is None:
            return np.full(count, -np.inf)
        if isinstance(self.budget, Constant):
            return np.full(count, self.criterion.limit(np.array(self.budget.eps, dtype=np.float64)))
        return self.criterion.limit(budgets_for(self.budget, first, count))
