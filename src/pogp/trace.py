"""What `learn` returns: how each sample was predicted, and what learning it changed."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pogp.arrays import Array

FIELDS = ("mean", "variance", "size", "removed", "spent", "novelty", "change")


@dataclass(frozen=True, slots=True)
class Trace:
    """One entry per sample learned, in order; every field is an array of that length.

    The fields are views of `records`, an array of one row per sample and one column per field. A
    model of k outputs has k columns of means and k of variances, and `mean` and `variance` are of
    shape (n, k); if the targets are numbers the trace is `flat`.
    """

    records: Array
    flat: bool = True

    def __len__(self) -> int:
        return len(self.records)

    @property
    def outputs(self) -> int:
        """How many outputs a sample has."""
        return int(self.records.shape[1] - len(FIELDS)) // 2 + 1

    @property
    def mean(self) -> Array:
        """The mean of y predicted just before learning the sample."""
        return self.records[:, 0] if self.flat else self.records[:, : self.outputs]

    @property
    def variance(self) -> Array:
        """The variance of y predicted just before learning the sample, noise included."""
        if self.flat:
            return self.records[:, 1]
        return self.records[:, self.outputs : 2 * self.outputs]

    @property
    def size(self) -> NDArray[np.int64]:
        """The model order after the sample."""
        return self.records[:, -5].astype(np.int64)

    @property
    def removed(self) -> NDArray[np.int64]:
        """How many points went."""
        return self.records[:, -4].astype(np.int64)

    @property
    def spent(self) -> Array:
        """Hellinger distance the compression cost, as the model's own rule measures it."""
        return self.records[:, -3]

    @property
    def novelty(self) -> Array:
        """Hellinger distance between the marginals of y at x before and after appending."""
        return self.records[:, -2]

    @property
    def change(self) -> Array:
        """The same after compression: between successive marginals, as in Theorem 1."""
        return self.records[:, -1]

    def __repr__(self) -> str:
        size = self.size[-1] if len(self) else 0
        return f"Trace({len(self)} samples, size {size} at the end)"


def concatenate(traces: list[Trace]) -> Trace:
    """Return one trace of several, in their order."""
    return Trace(np.concatenate([trace.records for trace in traces]), traces[0].flat)
