"""Features by name. They may be missing in a sample, while the inputs of a kernel are fixed."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from pogp.arrays import LARGEST, Array

if TYPE_CHECKING:
    from narwhals.series import Series

Names = tuple[Hashable, ...]


@dataclass(frozen=True)
class Table:
    """Values (n, q) of named features, NaN where one is missing."""

    names: Names
    values: Array

    def __len__(self) -> int:
        return len(self.values)

    @property
    def present(self) -> set[Hashable]:
        """The features that any of the samples has."""
        return {self.names[j] for j in np.flatnonzero(~np.isnan(self.values).all(axis=0))}

    def split(self, count: int) -> tuple[Table, Table]:
        """Return the first `count` samples, and the others."""
        return Table(self.names, self.values[:count]), Table(self.names, self.values[count:])

    def rows(self, names: Names) -> Array:
        """Return the values (n, p) of these features.

        Without any there is one that is always missing: a Gaussian process has at least one input.
        """
        if names and names == self.names:
            return self.values
        rows = np.full((len(self), max(len(names), 1)), np.nan)
        place = {name: j for j, name in enumerate(self.names)}
        for i, name in enumerate(names):
            if name in place:
                rows[:, i] = self.values[:, place[name]]
        return rows


@dataclass(frozen=True)
class Inputs:
    """The features that are the kernel's inputs, and their means, which replace missing values."""

    names: Names
    sums: Array
    """(2, p): of the values so far, and how many they are."""

    @classmethod
    def of(cls, names: Names) -> Self:
        """Return inputs that have no values yet; their means are 0."""
        return cls(names, np.zeros((2, max(len(names), 1))))

    def filled(self, rows: Array) -> Array:
        """Return rows (n, p) in which what is missing is at its mean."""
        return np.where(np.isnan(rows), _means(self.sums), rows)

    def after(self, rows: Array) -> tuple[Array, Self]:
        """Return rows filled by the means before each of them, and the inputs after the last.

        The sums are added up row by row, so that it does not matter how a stream is cut.
        """
        missing = np.isnan(rows)
        sums = np.empty((len(rows) + 1, *self.sums.shape))
        sums[0] = self.sums
        sums[1:, 0] = np.where(missing, 0.0, rows)
        sums[1:, 1] = ~missing
        np.add.accumulate(sums, axis=0, out=sums)
        filled = np.where(missing, _means(sums[:-1]), rows)
        return filled, type(self)(self.names, sums[-1].copy())


def _means(sums: Array) -> Array:
    """Return the means of sums (…, 2, p), 0 where there is no value."""
    means: Array = sums[..., 0, :] / np.maximum(sums[..., 1, :], 1.0)
    return means


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


def column(name: str, series: Series[Any]) -> Array:
    """Return a column of a frame as numbers, NaN where there is none."""
    values = series.to_numpy()
    if values.dtype.kind in "biuf":
        numbers = values.astype(np.float64)
        for value in numbers[np.abs(numbers) >= LARGEST]:
            number(name, value)  # raises
        return numbers
    missing = series.is_null().to_list()
    return np.array(
        [math.nan if gone else number(name, v) for v, gone in zip(values, missing, strict=True)]
    )
