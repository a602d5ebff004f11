"""What bounds and directs the compression of a batch."""

import sys
from typing import NamedTuple

import numpy as np

from pogp.arrays import Array, Indices


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
