"""What `learn` returns: how each sample was predicted, and what learning it changed."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pogp.arrays import Array

FIELDS = ("mean", "variance", "size", "removed", "spent", "novelty", "change", "tuning")
REST = FIELDS[2:]
"""The columns that follow the means and the variances, of which there is one for each output."""
SIZE, REMOVED, SPENT, NOVELTY, CHANGE, TUNING = range(len(REST))


def blank(samples: int, outputs: int = 1) -> Array:
    """Return room for the records of so many samples: zeros, one row each."""
    return np.zeros((samples, 2 * outputs + len(REST)))


def record(
    mean: Array,
    variance: Array,
    size: int,
    removed: int,
    spent: float,
    novelty: float,
    change: float,
) -> Array:
    """Return the record of one sample."""
    return np.concatenate([mean, variance, [size, removed, spent, novelty, change, 0.0]])


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
        return int(self.records.shape[1] - len(REST)) // 2

    @property
    def means(self) -> Array:
        """The means, (n, k) in any case."""
        return self.records[:, : self.outputs]

    @property
    def variances(self) -> Array:
        """The variances, (n, k) in any case."""
        return self.records[:, self.outputs : 2 * self.outputs]

    @property
    def rest(self) -> Array:
        """All other columns: see `REST`."""
        return self.records[:, 2 * self.outputs :]

    @property
    def mean(self) -> Array:
        """The mean of y predicted just before learning the sample."""
        return self.records[:, 0] if self.flat else self.means

    @property
    def variance(self) -> Array:
        """The variance of y predicted just before learning the sample, noise included."""
        return self.records[:, 1] if self.flat else self.variances

    @property
    def size(self) -> NDArray[np.int64]:
        """The model order after the sample."""
        return self.rest[:, SIZE].astype(np.int64)

    @property
    def removed(self) -> NDArray[np.int64]:
        """How many points went."""
        return self.rest[:, REMOVED].astype(np.int64)

    @property
    def spent(self) -> Array:
        """Hellinger distance the compression cost, as the model's own criterion measures it."""
        return self.rest[:, SPENT]

    @property
    def novelty(self) -> Array:
        """Hellinger distance between the marginals of y at x before and after appending."""
        return self.rest[:, NOVELTY]

    @property
    def change(self) -> Array:
        """The same after compression: between successive marginals, as in Theorem 1."""
        return self.rest[:, CHANGE]

    @property
    def tuning(self) -> NDArray[np.bool_]:
        """Whether the step waited for work on hyperparameters, or for a part of it."""
        return self.rest[:, TUNING] > 0

    def __repr__(self) -> str:
        size = self.size[-1] if len(self) else 0
        return f"Trace({len(self)} samples, size {size} at the end)"


def concatenate(traces: list[Trace]) -> Trace:
    """Return one trace of several, in their order."""
    return Trace(np.concatenate([trace.records for trace in traces]), traces[0].flat)
