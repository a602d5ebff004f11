"""Columns of a table by name, as batches of numbers; what engines for tables have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pogp import validation
from pogp.arrays import Array
from pogp.models.absorbing import AbsorbingPOG
from pogp.sums.drawing import Drawn, draw
from pogp.sums.parts import Sums, in_tree
from pogp.sums.planning import Plan, plan

SAMPLE, CALIBRATION = 10_000, 5_000
"""Rows that a plan is made from, and further rows that its variances are calibrated on."""
FAN = 16
"""Parts that are added at once: a power of two, so that the tree is that of `total`."""
Reader = Callable[[Any, str], Any]
"""Returns a column of a piece of a table, by its name, as an array."""


@dataclass(frozen=True)
class Columns:
    """Which columns are inputs, targets, noise variances and weights."""

    inputs: tuple[str, ...]
    target: tuple[str, ...]
    flat: bool = True
    noise: str | None = None
    weight: str | None = None
    width: int | None = None
    """The number of inputs, if they are all in one column."""

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        target: str | Sequence[str],
        inputs: Sequence[str] | None = None,
        noise: str | None = None,
        weight: str | None = None,
    ) -> Columns:
        """Return the columns of a table. By default all other columns are inputs."""
        targets = (target,) if isinstance(target, str) else tuple(target)
        special = [*targets, *(name for name in (noise, weight) if name is not None)]
        chosen = [n for n in names if n not in special] if inputs is None else list(inputs)
        require_columns([*special, *chosen], names)
        if not chosen or not targets or len({*special, *chosen}) < len(special) + len(chosen):
            raise ValueError(
                f"inputs, target, noise and weight must be different columns, at least one input "
                f"and one target; got inputs {chosen}, target {target!r}, {noise=}, {weight=}"
            )
        return cls(tuple(chosen), targets, isinstance(target, str), noise, weight)

    @property
    def used(self) -> list[str]:
        """The names of all columns that are read."""
        extra = [name for name in (self.noise, self.weight) if name is not None]
        return [*self.inputs, *self.target, *extra]

    @property
    def dimension(self) -> int:
        """The number of inputs."""
        return len(self.inputs) if self.width is None else self.width

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one target."""
        return () if self.flat else (len(self.target),)

    def batches(self, pieces: Iterable[Any], read: Reader, where: str) -> Iterator[Any]:
        """Yield (X, y, noise, weights) of each piece of a table."""
        for piece in pieces:
            X = _stacked(piece, self.inputs, read, where)
            Y = _stacked(piece, self.target, read, where)
            extra = (
                None if name is None else _numbers(read(piece, name), name, where)
                for name in (self.noise, self.weight)
            )
            yield (X, Y[:, 0] if self.flat else Y, *extra)


def require_columns(wanted: Sequence[str], names: Sequence[str]) -> None:
    """Raise ValueError unless a table with these names has all columns wanted."""
    for name in wanted:
        if name not in names:
            raise ValueError(f"there is no column {name!r}; there are {', '.join(names)}")


def _stacked(piece: Any, names: Sequence[str], read: Reader, where: str) -> Array:
    return np.column_stack([_numbers(read(piece, name), name, where) for name in names])


def _numbers(values: Any, name: str, where: str) -> Array:
    """Return a column as numbers, NaN for missing values; text and dates are refused."""
    array = np.asarray(values)
    if array.dtype.kind in "biuf":
        return array.astype(np.float64, copy=False)
    try:
        if array.dtype.kind != "O" or any(isinstance(value, str) for value in array):
            raise TypeError
        return np.array([np.nan if v is None else float(v) for v in array])
    except (TypeError, ValueError):
        begins = f" that begins with {array[0]!r}" if len(array) else ""
        raise ValueError(
            f"{where}: column {name!r} must hold numbers, got {array.dtype}{begins}"
        ) from None


@dataclass(frozen=True)
class Job:
    """The parameters of the draw of the sample and of the sums, for all workers."""

    columns: Columns
    size: int
    seed: int = 0
    skip: bool = False

    def draw(self, pieces: Iterable[Any], read: Reader, part: int) -> bytes:
        """Return the rows drawn from one part of the table."""
        where = f"partition {part}"
        options = {"seed": self.seed, "part": part, "skip": self.skip, "where": where}
        batches = ((X, y) for X, y, *_ in self.columns.batches(pieces, read, where))
        shape = {"dimension": self.columns.dimension, "target": self.columns.shape}
        return draw(batches, self.size, **shape, **options).to_bytes()  # type: ignore[arg-type]

    def sums(self, pieces: Iterable[Any], read: Reader, part: int, plan: bytes) -> bytes:
        """Return the sums of one part of the table."""
        where = f"partition {part}"
        batches = self.columns.batches(pieces, read, where)
        return Plan.from_bytes(plan).sums(batches, skip=self.skip, where=where).to_bytes()


def job(columns: Columns, sample: int, calibration: int, skip: bool, seed: int) -> Job:
    """Return a job, its numbers checked."""
    size = validation.count("sample", sample, 2) + validation.count("calibration", calibration, 0)
    return Job(columns, size, validation.seed(seed), bool(skip))


def added(parts: Sequence[bytes], kind: type[Sums] | type[Drawn]) -> bytes:
    """Return the total of parts in their order, by the tree of `total`."""
    if kind is Sums:
        return in_tree([Sums.from_bytes(part) for part in parts]).to_bytes()
    return in_tree([Drawn.from_bytes(part) for part in parts]).to_bytes()


def planned(drawn: bytes, sample: int, **options: Any) -> tuple[Plan, Any]:
    """Return the plan found on the drawn rows, and the rows for calibration."""
    first, rest = Drawn.from_bytes(drawn).divided(sample)
    return plan(*first, **options), rest


def finished(plan: Plan, total: bytes, calibration: Any) -> AbsorbingPOG:
    """Return the model of all rows."""
    return plan.model(Sums.from_bytes(total), calibration)
