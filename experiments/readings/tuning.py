"""What the first slices gave as hyperparameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from experiments.records import Record, Records
from pogp.arrays import Array

IRRELEVANT = 100.0
"""A length-scale beyond this leaves an input of unit variance without influence."""


@dataclass(frozen=True)
class Tuning:
    """The hyperparameters of all repeats on one set."""

    records: list[Record]

    @property
    def lengthscales(self) -> Array:
        """A row for each repeat, a column for each input."""
        return np.array([record.result["kernel"]["lengthscale"] for record in self.records])

    @property
    def inputs(self) -> int:
        """How many inputs the set has."""
        return int(self.lengthscales.shape[1])

    @property
    def ignored(self) -> tuple[int, int]:
        """The fewest and the most inputs that a slice was found to have no use for."""
        counts = np.sum(self.lengthscales > IRRELEVANT, axis=1)
        return int(counts.min()), int(counts.max())

    @property
    def noises(self) -> list[float]:
        """The noise variance that each repeat found, that in the authors' order first."""
        return [float(record.result["noise"]) for record in self.records]


def tuning(records: Records, topic: str) -> Tuning:
    """Return what was found on a set."""
    return Tuning(records.of("tune", topic))
