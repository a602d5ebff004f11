"""Checked rows of a part, in blocks of one size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pogp import validation
from pogp.arrays import LARGEST, Array

BLOCK = 1024
"""Rows of a block. The last bits of a result depend on it, but not on the division into batches."""


@dataclass(frozen=True)
class Rows:
    """Some rows: inputs (n, p), targets (n, k), and their relative weights, None if all are one."""

    X: Array
    Y: Array
    weights: Array | None

    def __len__(self) -> int:
        return len(self.X)


class Checker:
    """Turns batches of the user into rows. Unusable rows are refused, or skipped and counted."""

    def __init__(
        self, dimension: int, target: tuple[int, ...], noise: float, skip: bool, where: str
    ) -> None:
        self.dimension = dimension
        self.target = target
        self.noise = noise
        self.skip = skip
        self.where = f"{where}: " if where else ""
        self.seen = 0
        self.skipped = 0

    def rows(self, batch: Any) -> Rows:
        """Return the rows of a batch (X, y), (X, y, noise) or (X, y, noise, weights)."""
        if not isinstance(batch, tuple | list) or not 2 <= len(batch) <= 4:
            raise ValueError(
                f"{self.where}a batch must be (X, y), (X, y, noise) or (X, y, noise, weights), "
                f"got {batch!r:.100}"
            )
        X, y, noise, weights = (*batch, None, None)[:4]
        X = self._array("X", X, (self.dimension,))
        Y = self._array("y", y, self.target)
        if len(Y) != len(X):
            raise ValueError(f"{self.where}X has {len(X)} rows and y {len(Y)}")
        relative = self._weights(noise, weights, len(X))
        good = _is_good(X) & _is_good(Y)
        if relative is not None:
            good &= _is_good(relative[:, None])
        first, self.seen = self.seen, self.seen + len(X)
        if not good.all():
            if not self.skip:
                self._refuse(first, int(np.argmin(good)), X, Y, noise, weights)
            self.skipped += int(np.count_nonzero(~good))
            X, Y = X[good], Y[good]
            relative = None if relative is None else relative[good]
        return Rows(X, Y, relative)

    def _array(self, name: str, values: Any, shape: tuple[int, ...]) -> Array:
        """Return numbers of shape (n, width), NaN where a value is missing."""
        try:
            array = np.asarray(values)
            if array.dtype.kind in "cUSMm":
                raise TypeError
            array = array.astype(np.float64, copy=False)
        except (TypeError, ValueError):
            raise ValueError(
                f"{self.where}{name} must be numbers of shape {('n', *shape)}, got {values!r:.100}"
            ) from None
        if array.ndim != 1 + len(shape) or array.shape[1:] != shape:
            expected = ", ".join(["n", *(str(size) for size in shape)])
            raise ValueError(
                f"{self.where}{name} must have shape ({expected}), as in the sample, "
                f"got {array.shape}"
            )
        return array.reshape(len(array), max(int(np.prod(shape)), 1))

    def _weights(self, noise: Any, weights: Any, count: int) -> Array | None:
        """Return weight · σ²/noise of each row, NaN where either is invalid."""
        if noise is None and weights is None:
            return None
        relative = np.ones(count)
        with np.errstate(all="ignore"):
            if noise is not None:
                noises = np.broadcast_to(self._array_of("noise", noise, count), (count,))
                relative = np.where(noises > 0, self.noise / noises, np.nan)
            if weights is not None:
                given = np.broadcast_to(self._array_of("weights", weights, count), (count,))
                relative = relative * np.where(given >= 0, given, np.nan)
        return np.asarray(relative)

    def _array_of(self, name: str, values: Any, count: int) -> Array:
        array = self._array(name, np.atleast_1d(values), ())[:, 0]
        if len(array) not in (1, count):
            raise ValueError(f"{self.where}{name} must have {count} values, got {len(array)}")
        return array

    def _refuse(self, first: int, row: int, X: Array, Y: Array, noise: Any, weights: Any) -> None:
        """Raise ValueError for an unusable row."""
        for name, values in (("X", X), ("y", Y)):
            bad = ~(np.abs(values[row]) < LARGEST)
            if bad.any():
                value = values[row][bad][0]
                raise ValueError(
                    f"{self.where}{name} must be finite and below {LARGEST:g} in size, "
                    f"got {value} in row {first + row}; or have such rows skipped"
                )
        raise ValueError(
            f"{self.where}noise must be positive and weights at least 0 and finite, got "
            f"{noise if noise is None else np.ravel(noise)[row % np.size(noise)]} and "
            f"{weights if weights is None else np.ravel(weights)[row % np.size(weights)]} "
            f"in row {first + row}; or have such rows skipped"
        )


def _is_good(values: Array) -> NDArray[np.bool_]:
    """Return which rows hold numbers that a model accepts."""
    return np.asarray((np.abs(values) < LARGEST).all(axis=1))


def blocks(batches: Iterable[Any], checker: Checker) -> Iterator[Rows]:
    """Yield the rows of batches of any size in blocks of `BLOCK`; the last one may be shorter."""
    held: list[Rows] = []
    waiting = 0
    for batch in batches:
        rows = checker.rows(batch)
        held.append(rows)
        waiting += len(rows)
        if waiting >= BLOCK:
            whole = _joined(held)
            stop = waiting - waiting % BLOCK
            for start in range(0, stop, BLOCK):
                yield _part(whole, slice(start, start + BLOCK))
            held, waiting = [_part(whole, slice(stop, None))], waiting - stop
    if waiting:
        yield _part(_joined(held), slice(None))


def _joined(parts: list[Rows]) -> Rows:
    if len(parts) == 1:
        return parts[0]
    weights = None
    if any(part.weights is not None for part in parts):
        weights = np.concatenate(
            [np.ones(len(part)) if part.weights is None else part.weights for part in parts]
        )
    X, Y = (np.concatenate([getattr(part, name) for part in parts]) for name in ("X", "Y"))
    return Rows(X, Y, weights)


def _part(rows: Rows, which: slice) -> Rows:
    """Return a contiguous copy of some rows."""
    weights = None if rows.weights is None else rows.weights[which].copy()
    return Rows(rows.X[which].copy(order="C"), rows.Y[which].copy(order="C"), weights)


def sample(X: Any, y: Any) -> tuple[Array, Array, tuple[int, ...]]:
    """Return the inputs, the targets (n, k) and the shape of one target of a sample."""
    X, Y, target = validation.vector_samples(X, y, None, None)
    if len(X) < 2:
        raise ValueError(f"a sample must have at least 2 rows, got {len(X)}")
    return X, Y, target
