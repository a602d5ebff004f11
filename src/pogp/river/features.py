"""Samples with named features, which may be missing or new in each sample."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from pogp.arrays import LARGEST, Array
from pogp.encoding.columns import Cells, category_of, is_missing

if TYPE_CHECKING:
    from narwhals.series import Series

Names = tuple[Hashable, ...]


@dataclass(frozen=True)
class Table:
    """Cells of named features, by columns."""

    names: Names
    columns: list[Cells]
    count: int
    """The number of samples."""

    def __len__(self) -> int:
        return self.count

    def split(self, count: int) -> tuple[Table, Table]:
        """Return the first `count` samples, or all if there are fewer, and the others."""
        first = min(count, self.count)
        head = [cells[:count] for cells in self.columns]
        tail = [cells[count:] for cells in self.columns]
        return Table(self.names, head, first), Table(self.names, tail, self.count - first)

    def joined(self, other: Table, names: Names) -> Table:
        """Return the samples of both, with these features."""
        both = zip(self.cells(names), other.cells(names), strict=True)
        return Table(names, [[*ours, *theirs] for ours, theirs in both], len(self) + len(other))

    def cells(self, names: Names) -> list[Cells]:
        """Return the columns of these features; None where a feature is not there."""
        place = {name: j for j, name in enumerate(self.names)}
        missing: list[object] = [None] * self.count
        return [self.columns[place[name]] if name in place else missing for name in names]


def in_order(names: Iterable[Hashable]) -> Names:
    """Return names in an order that depends on nothing but them, numbers in them as numbers.

    >>> in_order({"x10", "x2", "gallup", 3})
    (3, 'gallup', 'x2', 'x10')
    """

    def key(name: Hashable) -> tuple[Any, ...]:
        parts = re.split(r"(\d+)", str(name))  # text and digits take turns: like meets like
        numbered = [int(part) if i % 2 else part for i, part in enumerate(parts)]
        return numbered, type(name).__name__, repr(name)

    return tuple(sorted(names, key=key))


def number(name: str, value: object) -> float:
    """Return what was given for a feature or a target, if it is a number."""
    try:
        result = float(value) if isinstance(value, Real | Decimal | np.bool_) else math.nan
    except OverflowError:  # an integer of hundreds of digits
        result = math.inf
    if not abs(result) < LARGEST:
        raise ValueError(f"{name} must be a finite number below {LARGEST:g} in size, got {value!r}")
    return result


def cells_of(series: Series[Any]) -> Cells:
    """Return the cells of a column of a frame, NaN, NaT or None where one is missing.

    Categories are texts, also where they are numbers.
    """
    values = series.to_numpy()
    categories = series.dtype.base_type().__name__ in ("Categorical", "Enum")
    if values.dtype.kind in "biufM" and not categories:
        return np.asarray(values)
    pairs = zip(values, series.is_null().to_list(), strict=True)
    cells = [None if gone else value for value, gone in pairs]
    if not categories:
        return cells
    return [None if cell is None else category_of(cell) for cell in cells]


def targets_of(series: Series[Any]) -> Array:
    """Return a column of targets; ValueError if one is not a number."""
    cells = cells_of(series)
    for row, cell in enumerate(cells):
        if is_missing(cell):
            raise ValueError(f"y must have a number in every row, got none in row {row}")
    return np.array([number("y", cell) for cell in cells])
