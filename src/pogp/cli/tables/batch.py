"""A number of rows, one after the other, and where in their table they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from pogp.arrays import LARGEST, Array, Indices


class Position(NamedTuple):
    """Where a row begins."""

    offset: int  # what comes before it: bytes of text, rows of Parquet
    line: int  # its number, from 1


class Refusal(NamedTuple):
    """A row that cannot be used."""

    line: int
    reason: str
    columns: tuple[str, ...] = ()  # those at fault; none if it is the row as a whole


@dataclass(frozen=True)
class Batch:
    """Rows in the order of the table; n may be 0, which says that nothing came for a while.

    `refusals` has one entry for each row that is not usable, in order; the values of such a row
    mean nothing.
    """

    values: Array  # (n, k), a column for each that was asked for
    usable: NDArray[np.bool_]  # (n,)
    lines: Indices  # (n,), where each row begins
    ends: Indices  # (n, 2), the position of what follows each row
    refusals: list[Refusal]
    texts: list[bytes]  # the rows as they stand, if asked for
    through: int  # how much of the table's size has been read

    @classmethod
    def empty(cls, columns: int) -> Self:
        """Return a batch of no rows."""
        none, nowhere = np.zeros(0, np.int64), np.zeros((0, 2), np.int64)
        return cls(np.zeros((0, columns)), none.astype(bool), none, nowhere, [], [], 0)

    @classmethod
    def joined(cls, batches: Sequence[Self]) -> Self:
        """Return batches that follow each other, at least one, as one."""
        if len(batches) == 1:
            return batches[0]
        return cls(
            np.concatenate([batch.values for batch in batches]),
            np.concatenate([batch.usable for batch in batches]),
            np.concatenate([batch.lines for batch in batches]),
            np.concatenate([batch.ends for batch in batches]),
            [refusal for batch in batches for refusal in batch.refusals],
            [text for batch in batches for text in batch.texts],
            max(batch.through for batch in batches),
        )

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def count(self) -> int:
        """How many rows can be used."""
        return len(self) - len(self.refusals)

    @property
    def end(self) -> Position:
        """The position of what follows the last row."""
        return Position(*self.ends[-1].tolist())

    def reach(self, count: int) -> int:
        """Return how many rows there are up to the usable one number `count`, that one included."""
        return int(np.flatnonzero(self.usable)[count - 1]) + 1

    def before_refusal(self) -> Self:
        """Return the rows before the first that cannot be used."""
        return self if self.usable.all() else self.split(int(np.argmin(self.usable)))[0]

    def split(self, rows: int) -> tuple[Self, Self]:
        """Return so many rows, and the others."""
        refused = rows - int(self.usable[:rows].sum())
        first = self._part(slice(rows), slice(refused))
        return first, self._part(slice(rows, None), slice(refused, None))

    def _part(self, rows: slice, refused: slice) -> Self:
        return type(self)(
            self.values[rows],
            self.usable[rows],
            self.lines[rows],
            self.ends[rows],
            self.refusals[refused],
            self.texts[rows],
            self.through,
        )


def usable(values: Array) -> NDArray[np.bool_]:
    """Return which rows have nothing but finite numbers that a model takes."""
    return np.asarray((np.abs(values) < LARGEST).all(axis=1))  # NaN is not
