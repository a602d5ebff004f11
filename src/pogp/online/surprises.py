"""Surprises: samples far outside their band, and which of them are outliers."""

from __future__ import annotations

from math import frexp, isfinite
from typing import Any

import numpy as np

TAIL, FAR = 4.0, 8.0
"""The tail begins at so many deviations. A surprise is more than `FAR` deviations off."""
OCTAVES = 8
"""Errors in the tail are counted by octaves: 4 to 8 deviations, 8 to 16, … The last one is open."""
DISCOUNT, RATE = 0.999, 0.2
"""The discount of the counts, and the rate of the running average."""


class Surprises:
    """Counts of surprises, in bounded memory.

    A surprise is an outlier if there is a gap before it: an octave with no more errors than all
    octaves above it, up to that of the surprise. Heavy tails have no such gap.
    """

    def __init__(self) -> None:
        self.last = False
        """Whether the last sample was a surprise."""
        self.rate = 0.0
        """The share of surprises among the latest samples."""
        self.counts = [0.0] * OCTAVES
        """Discounted counts of the errors in each octave."""

    def is_outlier(self, error: float) -> bool:
        """Count a sample with an error in deviations; return whether it is an outlier.

        If half of the latest samples are surprises, the function has changed, and they are not
        outliers.
        """
        self.last = far = error > FAR
        self.rate += RATE * (far - self.rate)
        counts = self.counts = [DISCOUNT * count for count in self.counts]
        if error <= TAIL:
            return False
        octave = _octave(error)
        counts[octave] += 1.0
        return far and self.rate < 0.5 and self._has_gap_below(octave)

    def expected(self, ahead: int, seen: int) -> float:
        """Return how many surprises to expect in the samples ahead, after `seen` samples."""
        counted = (1.0 - DISCOUNT**seen) / (1.0 - DISCOUNT)
        return ahead * sum(self.counts[1:]) / max(counted, 1.0)

    def _has_gap_below(self, octave: int) -> bool:
        above = sum(self.counts[octave:])
        for count in reversed(self.counts[:octave]):
            if above >= count:
                return True
            above += count
        return False

    def state(self) -> dict[str, Any]:
        """Return the counts; older files have one for all surprises."""
        octaves = {"octaves": np.array(self.counts)} if any(self.counts[2:]) else {}
        return {"nearly": self.counts[0], "far": sum(self.counts[1:]), **octaves}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
        counts = [float(state["nearly"]), float(state["far"]), *[0.0] * (OCTAVES - 2)]
        counts = np.array(state.get("octaves", counts), dtype=np.float64).tolist()
        if len(counts) != OCTAVES or not all(isfinite(each) and each >= 0 for each in counts):
            raise ValueError(f"counts of errors must be {OCTAVES} numbers >= 0, got {counts}")
        self.counts = counts


def _octave(error: float) -> int:
    """Return the octave of an error above `TAIL`; its upper limit belongs to it."""
    if not isfinite(error):
        return OCTAVES - 1
    share, exponent = frexp(error / TAIL)  # error / TAIL = share · 2^exponent, ½ ≤ share < 1
    return min(exponent - (2 if share == 0.5 else 1), OCTAVES - 1)
