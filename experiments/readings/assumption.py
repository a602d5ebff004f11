"""Assumption 1 beside the runs: how often the dense GP's step is no larger than POG's."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np

from experiments.parts.assumption import CASES, GAMMAS, SIMULATED
from experiments.published import SETS
from experiments.readings.estimates import Estimate
from experiments.records import Record, Records
from pogp.arrays import Array


@dataclass(frozen=True)
class Assumption:
    """POG beside the dense GP on one stream.

    A distance has a `kind`: "novelty", before compression, as the assumption has it; "change",
    after it, as in Theorem 1; "between_inputs", from the prediction at one input to that at the
    next, as the authors' code plots it. A third of the stream is 0, 1 or 2; None is all of it.
    """

    topic: str
    name: str
    case: str
    records: list[Record]

    @property
    def order(self) -> Estimate:
        """POG's model order at the end."""
        return Estimate.of(record.result[self.case]["order"] for record in self.records)

    def held(self, kind: str = "novelty", third: int | None = None) -> float:
        """Return the share of steps in which the dense GP's distance is not above POG's."""
        counts = self._of(self.case, kind, "not_below_dense")
        return float(np.sum(_thirds(counts, third)) / self._steps(third))

    def below(self, who: str, kind: str = "novelty", third: int | None = None) -> Array:
        """Return how often the distance of "pog" or "dense" is below each γ of `GAMMAS`."""
        counts = self._of("dense" if who == "dense" else self.case, kind, "below")
        return np.asarray(_thirds(counts, third).sum(axis=(0, 1)) / self._steps(third))

    def excess(self, kind: str = "novelty", third: int | None = None) -> float:
        """Return the most by which P{η̃} exceeds P{η} at some γ: the assumption allows 0."""
        return float(np.max(self._excesses(kind, third)))

    def where_it_fails(self, kind: str = "novelty", third: int | None = None) -> list[float]:
        """Return the γ at which P{η̃} is above P{η} by more than chance.

        By chance two samples of this size from one law would be so far apart, at some γ, once in
        twenty times (Smirnov's one-sided test for large samples, steps taken as independent).
        """
        chance = sqrt(-log(0.05) / self._steps(third))
        return [float(gamma) for gamma in GAMMAS[self._excesses(kind, third) > chance]]

    def medians(self, who: str, kind: str = "novelty") -> Array:
        """Return the median distance of "pog" or "dense" in each window, over the repeats."""
        each = self._of("dense" if who == "dense" else self.case, kind, "medians")
        return np.asarray(np.median(each, axis=0))

    @property
    def steps(self) -> int:
        """Samples of one repeat."""
        return int(sum(self.records[0].result["steps"]))

    def _excesses(self, kind: str, third: int | None) -> Array:
        return self.below("pog", kind, third) - self.below("dense", kind, third)

    def _of(self, case: str, kind: str, name: str) -> list[Any]:
        return [record.result[case][kind][name] for record in self.records]

    def _steps(self, third: int | None) -> int:
        return int(np.sum(_thirds([record.result["steps"] for record in self.records], third)))


def assumptions(records: Records) -> list[Assumption]:
    """Return Assumption 1's runs: the simulated streams, then the paper's sets that are there."""
    found = []
    for topic in (SIMULATED, *SETS):
        every = records.of("assumption", topic)
        for name in dict.fromkeys(record.task.case for record in every):
            runs = [record for record in every if record.task.case == name]
            found += [Assumption(topic, name, case, runs) for case in CASES]
    return found


def _thirds(counts: list[Any], third: int | None) -> Array:
    """Return counts (repeat, third, …) of one third of the stream or of all."""
    each = np.array(counts, dtype=np.float64)
    return each if third is None else each[:, third : third + 1]
