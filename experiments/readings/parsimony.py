"""Theorem 2 beside the runs: measured exponents of the model order, and whether it has settled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from experiments.parts.parsimony import BUDGETS, INPUTS, TENTHS, TOPIC
from experiments.readings.slopes import Slope
from experiments.records import Record, Records
from pogp.arrays import Array

FLOOR = 5.0
"""Model orders below this are left out of fits: one point always stays, which is no power law."""
SETTLED = 0.05
"""Growth of the model order over the second half of the stream up to which it counts as settled."""


@dataclass(frozen=True)
class Parsimony:
    """The model orders of one rule on streams with p inputs."""

    case: str
    inputs: int
    records: list[Record]

    @property
    def budgets(self) -> Array:
        """The budgets ε."""
        return np.array(self.records[0].task.options["budgets"])

    @property
    def orders(self) -> Array:
        """The mean order over the last tenth of the stream: a row for each repeat."""
        return self._tenths[:, :, -1]

    @property
    def growth(self) -> Array:
        """By what share the order grew over the second half, at each budget."""
        tenths = self._tenths.mean(axis=0)
        return np.asarray(tenths[:, -1] / tenths[:, TENTHS // 2 - 1] - 1.0)

    @property
    def unsettled(self) -> list[float]:
        """The budgets at which the order was still growing."""
        return [float(each) for each in self.budgets[self.growth > SETTLED]]

    @property
    def exponent(self) -> Slope | None:
        """The slope of log M over log(1/ε), beside the bound's p; None if too few orders count."""
        places = np.broadcast_to(-np.log(self.budgets), self.orders.shape)
        counted = np.broadcast_to(self.orders.mean(axis=0) >= FLOOR, self.orders.shape)
        if np.sum(counted[0]) < 2 or np.sum(counted) < 3:
            return None
        return Slope.of(places[counted], np.log(self.orders[counted]))

    @property
    def _tenths(self) -> Array:
        return np.array([record.result["orders"] for record in self.records])


def parsimonies(records: Records) -> list[Parsimony]:
    """Return Theorem 2's runs, rule by rule and by the number of inputs."""
    found = []
    for case in BUDGETS:
        every = records.of("parsimony", TOPIC, case)
        for inputs in INPUTS:
            if runs := [r for r in every if r.task.options["inputs"] == inputs]:
                found.append(Parsimony(case, inputs, runs))
    return found
