"""What `learn` returns: how each sample was predicted, and what learning it changed."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pogp.arrays import Array

FIELDS = ("mean", "variance", "size", "removed", "spent", "novelty", "change")


@dataclass(frozen=True, slots=True)
class Trace:
    """One entry per sample learned, in order; every field is an array of that length.

    The fields are views of `records`, an array of one row per sample and one column per field.
    """

    records: Array

    def __len__(self) -> int:
        return len(self.records)

    @property
    def mean(self) -> Array:
        """The mean of y predicted just before learning the sample."""
        return self.records[:, 0]

    @property
    def variance(self) -> Array:
        """The variance of y predicted just before learning the sample, noise included."""
        return self.records[:, 1]

    @property
    def size(self) -> NDArray[np.int64]:
        """The model order after the sample."""
        return self.records[:, 2].astype(np.int64)

    @property
    def removed(self) -> NDArray[np.int64]:
        """How many points went."""
        return self.records[:, 3].astype(np.int64)

    @property
    def spent(self) -> Array:
        """Hellinger distance the compression cost, as the model's own rule measures it."""
        return self.records[:, 4]

    @property
    def novelty(self) -> Array:
        """Hellinger distance between the marginals of y at x before and after appending."""
        return self.records[:, 5]

    @property
    def change(self) -> Array:
        """The same after compression: between successive marginals, as in Theorem 1."""
        return self.records[:, 6]

    def __repr__(self) -> str:
        size = self.size[-1] if len(self) else 0
        return f"Trace({len(self)} samples, size {size} at the end)"


def concatenate(traces: list[Trace]) -> Trace:
    """Return one trace of several, in their order."""
    return Trace(np.concatenate([trace.records for trace in traces]))
