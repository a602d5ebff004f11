"""Theorem 1 beside the runs: whether successive marginals get closer, and how close they end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from experiments.parts.stationarity import BUDGETS, FIRST, TOPIC
from experiments.readings.estimates import Estimate
from experiments.readings.slopes import Slope
from experiments.records import Record, Records
from pogp.arrays import Array


@dataclass(frozen=True)
class Stationarity:
    """How far successive marginals of one model are apart under ε_t = initial·(t + 1)^−power."""

    case: str
    initial: float
    power: float
    records: list[Record]

    @property
    def constant(self) -> bool:
        """Whether this is part (ii) of the theorem."""
        return self.power == 0

    @property
    def until(self) -> Array:
        """Where each bin of t ends."""
        return np.array(self.records[0].result["until"], dtype=np.float64)

    @property
    def middle(self) -> Array:
        """The geometric middle of each bin."""
        starts = np.concatenate([[FIRST], self.until[:-1]])
        return np.sqrt(starts * self.until)

    @property
    def order(self) -> Estimate:
        """The model order at the end."""
        return Estimate.of(record.result["order"][-1] for record in self.records)

    @property
    def budgets(self) -> Array:
        """ε_t at the end of each bin."""
        return np.array(self.records[0].result["budget"])

    @property
    def change(self) -> Estimate:
        """The median distance in the last bin."""
        return Estimate.of(record.result["change"]["median"][-1] for record in self.records)

    @property
    def decay(self) -> Slope:
        """The power of t by which the median distance changes over the second half of the bins."""
        half = len(self.until) // 2
        medians = np.array([r.result["change"]["median"][half:] for r in self.records])
        places = np.broadcast_to(np.log(self.middle[half:]), medians.shape)
        return Slope.of(places.ravel(), np.log(medians).ravel())

    def curve(self, name: str) -> Array:
        """Return a quantile of the distance in each bin, the geometric mean of the repeats."""
        each = np.array([record.result["change"][name] for record in self.records])
        return np.asarray(np.exp(np.mean(np.log(each), axis=0)))

    def within(self, gamma: float) -> Array:
        """Return the share of steps with a distance below γ + ε_t in each bin."""
        each = [record.result["within"][str(gamma)] for record in self.records]
        return np.asarray(np.mean(each, axis=0))

    @property
    def between_inputs(self) -> Estimate:
        """The median distance in the last bin between predictions at one input and the next."""
        return Estimate.of(record.result["between_inputs"][-1] for record in self.records)


def stationarities(records: Records) -> list[Stationarity]:
    """Return Theorem 1's runs in the order of the plan; none where none has been run."""
    found = []
    for case, budgets in BUDGETS.items():
        every = records.of("stationarity", TOPIC, case)
        for initial, power in budgets:
            wanted = {"initial": initial, "power": power}
            if runs := [r for r in every if wanted.items() <= r.task.options.items()]:
                found.append(Stationarity(case, initial, power, runs))
    return found
