"""Error, loss, coverage, model order, distances and time over segments of a stream."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pogp.arrays import Array

CELLS = 40
"""Of the histogram of Φ((y − mean)/deviation): the central 5 %, 10 %, … 95 % end on its edges."""
COLUMNS = ("size", "removed", "spent", "novelty", "change", "seconds")
"""Quantities that are summed over all samples of a segment, predicted or not."""
RARE = 0.02
"""If the share is larger, the samples are not outliers: the band is too narrow."""
POOR = 0.9
"""An error above this share of the variance, or of the error of the mean, is poor."""
CLEAR = 4.0
"""A deviation of more standard errors is significant."""
ADDED = (
    "counts",
    "sums",
    "losses",
    "outliers",
    "left_out",
    "squares",
    "by_mean",
    "by_last",
    "cells",
    "leaning",
)
"""Fields that are added when two segments are joined."""


@dataclass(frozen=True)
class Segments:
    """Segments of a stream, one after another, and sums over the samples of each.

    `ends` are in samples seen. `losses`, `outliers`, `squares` (a column for each output) and
    `cells` (which count outputs) are of the samples that were predicted before they were learned,
    as are the errors in deviations whose sum is `leaning`, at most 5 in size each.
    `by_mean` and `by_last` are the squared errors of predicting the mean of the targets so far, and
    the last target. `left_out` of the outliers are not in these three and in `losses`. `variance`
    is that of each output over the whole stream, without outliers if they are left out.
    """

    ends: Array
    counts: Array
    sums: Array
    losses: Array
    outliers: Array
    left_out: Array
    squares: Array
    by_mean: Array
    by_last: Array
    cells: Array
    leaning: Array
    slowest: Array
    variance: Array

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def samples(self) -> int:
        """The number of samples of all segments."""
        return int(self.counts.sum())

    @property
    def predicted(self) -> Array:
        """The number of predicted samples of each segment."""
        return np.asarray(self.cells.sum(axis=1) / self.squares.shape[1])

    @property
    def scored(self) -> Array:
        """The number of samples of each segment that losses and errors are of."""
        return np.asarray(self.predicted - self.left_out)

    def mean(self, column: str) -> Array:
        """Return the mean over the samples of each segment of one of `COLUMNS`."""
        return np.asarray(self.sums[:, COLUMNS.index(column)] / self.counts)

    def total(self, column: str) -> float:
        """Return the sum over all samples of one of `COLUMNS`."""
        return float(self.sums[:, COLUMNS.index(column)].sum())

    @property
    def loss(self) -> Array:
        """The mean negative log predictive density of each segment, in nats."""
        return np.asarray(self.losses / self.scored)

    @property
    def relative(self) -> bool:
        """Whether errors are relative to the variance of the targets; not if that is zero."""
        return bool((self.variance > 0).any())

    @property
    def errors(self) -> Array:
        """The mean squared error of each segment and output, relative where the output varies."""
        scale = np.where(self.variance > 0, self.variance, 1.0)
        return np.asarray(self.squares / self.scored[:, None] / scale)

    @property
    def error(self) -> Array:
        """The same, averaged over the outputs that vary, or over all if none does."""
        varied = self.variance > 0
        return np.asarray(self.errors[:, varied | ~varied.any()].mean(axis=1))

    def ratio(self, other: Array) -> Array:
        """Return the squared error of each segment as a share of another one's."""
        scale = np.where(self.variance > 0, self.variance, 1.0)
        ours, theirs = (self.squares / scale).sum(axis=1), (other / scale).sum(axis=1)
        return np.asarray(np.divide(ours, theirs, out=np.zeros(len(ours)), where=theirs > 0))

    @property
    def rmse(self) -> Array:
        """The root mean squared error of each segment and output, in the units of the targets."""
        return np.asarray(np.sqrt(self.squares / self.scored[:, None]))

    @property
    def few_outliers(self) -> int:
        """The number of outliers in all segments, 0 if they are too many.

        Their number is that of rare events: two of fifty are no larger share than chance gives.
        """
        count = int(self.outliers.sum())
        return count if are_rare(count, float(self.predicted.sum())) else 0

    @property
    def lean(self) -> Array:
        """The mean error of each segment, in deviations predicted."""
        return np.asarray(self.leaning / self.cells.sum(axis=1))

    def coverage(self, level: float) -> Array:
        """Return the share of targets in their central band of `level`, a multiple of 5 %."""
        half = round(level * CELLS / 2)
        inside = self.cells[:, CELLS // 2 - half : CELLS // 2 + half]
        return np.asarray(inside.sum(axis=1) / self.cells.sum(axis=1))

    def grouped(self, size: int) -> Self:
        """Join `size` neighbouring segments each; the last one may have fewer."""
        starts = np.arange(0, len(self), size)
        added = {name: np.add.reduceat(getattr(self, name), starts) for name in ADDED}
        ends = self.ends[np.minimum(starts + size, len(self)) - 1]
        slowest = np.maximum.reduceat(self.slowest, starts)
        return type(self)(ends=ends, slowest=slowest, variance=self.variance, **added)

    def at_most(self, number: int) -> Self:
        """Join neighbours until there are at most `number` segments."""
        size = 1
        while -(-len(self) // size) > number:
            size *= 2
        return self.grouped(size)

    def first(self, samples: float) -> Self:
        """Join the first segments with at least this number of samples."""
        return self._part(slice(int(np.searchsorted(self.counts.cumsum(), samples)) + 1)).joined()

    def last(self, samples: float) -> Self:
        """Join the last segments with at least this number of samples."""
        backwards = self.counts[::-1].cumsum()
        return self._part(slice(-int(np.searchsorted(backwards, samples)) - 1, None)).joined()

    def joined(self) -> Self:
        """Join all segments."""
        return self.grouped(len(self))

    def with_predictions(self) -> Self:
        """Return the segments in which predictions were scored."""
        return self._part(self.scored > 0)

    def _part(self, which: slice | NDArray[np.bool_]) -> Self:
        chosen = {name: getattr(self, name)[which] for name in ("ends", "slowest", *ADDED)}
        return type(self)(variance=self.variance, **chosen)


def are_rare(count: int, samples: float) -> bool:
    """Return whether events are rare, allowing for chance."""
    expected = RARE * samples
    return count <= expected + CLEAR * math.sqrt(expected)
