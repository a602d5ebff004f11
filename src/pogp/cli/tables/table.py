"""A table: its layout, its named columns, and batches of its rows."""

import csv
import difflib
import io
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from pogp.arrays import Array, Indices

MOST = 8
"""The most rows of a chunk, in steps: memory is bounded even if few rows are usable."""
LISTED = 12
"""Column names listed in a message."""

PARQUET = b"PAR1"
"""The first bytes of a Parquet file."""

Cell = object
"""What a row holds in one column: text from CSV; a number, text, a time or None from elsewhere."""


@dataclass(frozen=True)
class Layout:
    """What the user says about a table."""

    delimiter: str | None = None  # None: guessed from the first line
    header: bool = True  # whether the first row holds the names of the columns
    format: str | None = None  # "csv", "jsonl" or "parquet"; None: from the file


class Position(NamedTuple):
    """The beginning of a row."""

    offset: int  # bytes of text, or rows of Parquet, before it
    line: int  # its number, from 1


class Choice(NamedTuple):
    """Which columns of a table to read, in this order."""

    columns: Sequence[int]
    keep: Sequence[int] = ()  # columns to return as text as well
    required: Sequence[int] = ()  # columns that must hold a number
    strict: Sequence[int] = ()  # columns that must hold a number or nothing


class Refusal(NamedTuple):
    """A row that cannot be used."""

    line: int
    reason: str
    columns: tuple[str, ...] = ()  # the columns at fault; empty if the row as a whole is


@dataclass(frozen=True)
class Batch:
    """Consecutive rows. An empty batch reports that no row arrived for a while.

    `refusals` has one entry for each row that is not usable, in order. The values of such a row
    are meaningless.
    """

    cells: list[Sequence[Cell]]  # n rows, with one cell for each column asked for
    values: Array  # (n, k), the same as numbers; NaN where there is none that a model accepts
    usable: NDArray[np.bool_]  # (n,)
    lines: Indices  # (n,), the line at which each row begins
    ends: Indices  # (n, 2), the position after each row
    refusals: list[Refusal]
    texts: list[bytes]  # the rows as text, if asked for
    through: int  # how much of the table's size has been read

    @classmethod
    def empty(cls, columns: int) -> Self:
        """Return a batch without rows."""
        none, nowhere = np.zeros(0, np.int64), np.zeros((0, 2), np.int64)
        return cls([], np.zeros((0, columns)), none.astype(bool), none, nowhere, [], [], 0)

    @classmethod
    def joined(cls, batches: Sequence[Self]) -> Self:
        """Return one batch made of consecutive ones."""
        if len(batches) == 1:
            return batches[0]
        return cls(
            [row for batch in batches for row in batch.cells],
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
        """The number of usable rows."""
        return len(self) - len(self.refusals)

    @property
    def end(self) -> Position:
        """The position after the last row."""
        return Position(*self.ends[-1].tolist())

    def reach(self, count: int) -> int:
        """Return the number of rows up to and including the usable row number `count`."""
        return int(np.flatnonzero(self.usable)[count - 1]) + 1

    def before_refusal(self) -> Self:
        """Return the rows before the first that cannot be used."""
        return self if self.usable.all() else self.split(int(np.argmin(self.usable)))[0]

    def split(self, rows: int) -> tuple[Self, Self]:
        """Return the first `rows` rows, and the others."""
        refused = rows - int(self.usable[:rows].sum())
        first = self._part(slice(rows), slice(refused))
        return first, self._part(slice(rows, None), slice(refused, None))

    def _part(self, rows: slice, refused: slice) -> Self:
        return type(self)(
            self.cells[rows],
            self.values[rows],
            self.usable[rows],
            self.lines[rows],
            self.ends[rows],
            self.refusals[refused],
            self.texts[rows],
            self.through,
        )


def chunks(batches: Iterable[Batch], step: int, seen: int, eager: bool) -> Iterator[Batch]:
    """Cut batches where the number of usable rows, `seen` before included, is a multiple of `step`.

    The chunks then do not depend on where a run begins or on how the rows were read. If `eager`,
    rows are passed on before a chunk is full. Empty batches are passed on.
    """
    pending = None
    for batch in batches:
        if len(batch):
            pending = batch if pending is None else Batch.joined([pending, batch])
        elif pending is None or not eager:
            yield batch
        while pending is not None:
            room = step - seen % step
            rows = pending.reach(room) if pending.count >= room else len(pending) + (not eager)
            rows = min(rows, MOST * step)
            if rows > len(pending):
                break
            chunk, rest = pending.split(rows)
            seen += chunk.count
            pending = rest if len(rest) else None
            yield chunk
    if pending is not None:
        yield pending


class Table(ABC):
    """Named columns, and rows that are read once, in order, from any position on."""

    name: str
    """The table's name in messages."""
    names: list[str]
    """The names of all columns."""
    unit: str
    """What `Position.line` counts: lines or rows."""
    size: int | None
    """The size of the whole, in the unit of `Batch.through`; None for a pipe."""
    header: bool
    """Whether the first row of a text holds the names."""
    delimiter: str
    """The delimiter of `Batch.texts`."""
    start: Position
    """The position of the first row."""

    @abstractmethod
    def batches(self, choice: Choice, start: Position) -> Iterator[Batch]:
        """Read the columns chosen, from a position on."""

    @abstractmethod
    def peek(self, columns: Sequence[int]) -> list[Sequence[Cell]]:
        """Return some columns of the first rows, at least one row if there is any.

        It is called before `batches`, which will have these rows too.
        """

    def expect(self, names: Sequence[str]) -> None:
        """Take in columns that a model knows, if the rows of the table may lack them."""

    def share(self, position: Position, through: int = 0) -> float | None:
        """Return the share of the table that lies before a position, None if it is not known.

        `through` is how much of it had been read by then.
        """
        return None if self.size is None else min(position.offset / max(self.size, 1), 1.0)

    @property
    def left(self) -> int:
        """Bytes of a last line that may be incomplete and was not read."""
        return 0

    @property
    def remark(self) -> str:
        """A message about a line that was incomplete when it was read before."""
        return ""

    @abstractmethod
    def identity(self, end: Position) -> dict[str, Any]:
        """Return a digest that identifies the table, once read as far as `end`."""

    @abstractmethod
    def require(self, identity: dict[str, Any], start: Position, growing: bool = False) -> None:
        """Raise ValueError if the table has another identity, or ends before `start`.

        If it may be `growing`, and has grown, a last line without an end is not read.
        """

    def heading(self, keep: Sequence[int]) -> bytes:
        """Return the header line for `Batch.texts`."""
        return joined([self.names[column] for column in keep], self.delimiter).encode()

    @abstractmethod
    def close(self) -> None:
        """Close the file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def open_table(path: str, layout: Layout) -> Table:
    """Return the table in a file, or in standard input if the path is "-".

    Its format is recognised by its first bytes, not by its name.
    """
    from pogp.cli.tables import parquet, text  # which build on this module

    if layout.format == "parquet" or (layout.format is None and _is_parquet(path)):
        return parquet.Parquet(path)
    source = text.Source(path)
    try:
        return text.TextTable(source, layout)
    except BaseException:
        source.close()
        raise


def _is_parquet(path: str) -> bool:
    if not os.path.isfile(path):  # the first bytes of a pipe must not get lost
        return False
    with open(path, "rb") as file:
        return file.read(len(PARQUET)) == PARQUET


def joined(cells: Sequence[str], delimiter: str) -> str:
    """Return cells as one row of text, quoted where necessary."""
    row = io.StringIO()
    csv.writer(row, delimiter=delimiter, lineterminator="").writerow(cells)
    return row.getvalue()


# ---- columns by name ------------------------------------------------------------------------


class NotNumbersError(ValueError):
    """Columns without a single number."""

    def __init__(self, table: str, columns: Sequence[str], what: str) -> None:
        self.columns = tuple(columns)
        noun = "column" if len(columns) == 1 else "columns"
        quoted = ", ".join(map(repr, columns))
        super().__init__(f"there are no numbers in the {noun} {quoted} of {table} ({what})")


def unnamed(number: int) -> str:
    """Return the name of a column that has none, counted from 1."""
    return f"column {number}"


def find(names: Sequence[str], wanted: Sequence[str], table: str) -> list[int]:
    """Return the positions of columns; ValueError if one is missing or ambiguous."""
    places = []
    for name in wanted:
        found = [column for column, other in enumerate(names) if other == name]
        if not found:
            raise ValueError(f"{table} has no column {name!r}; {_hint(names, name)}")
        if len(found) > 1:
            numbers = " and ".join(str(column + 1) for column in found)
            raise ValueError(f"columns {numbers} of {table} are both called {name!r}: rename one")
        places += found
    for name in wanted:
        if wanted.count(name) > 1:
            raise ValueError(f"column {name!r} is named {wanted.count(name)} times")
    return places


def inputs(
    names: Sequence[str], target: str, columns: Sequence[str] | None, leave_out: Sequence[str]
) -> list[str]:
    """Return the names of the inputs: those asked for, or all but the target and `leave_out`.

    A column without a name, such as the row numbers that a data frame writes, is used only if
    asked for.
    """
    if columns is not None:
        if target in columns:
            raise ValueError(f"{target!r} is the target and cannot be an input as well")
        chosen = list(columns)
    else:
        for name in leave_out:
            if name not in names:
                raise ValueError(f"there is no column {name!r} to exclude; {_hint(names, name)}")
        nameless = [unnamed(number) for number in range(1, len(names) + 1)]
        others = {target, *leave_out, *nameless}
        chosen = [name for name in names if name not in others]
    if not chosen:
        raise ValueError(f"no column is left to predict {target!r} from")
    return chosen


def _hint(names: Sequence[str], name: str) -> str:
    """Return what the user may have meant."""
    hint = "it has " + ", ".join(names[:LISTED]) + (", …" if len(names) > LISTED else "")
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        hint = f"did you mean {close[0]!r}? {hint}"
    if all(_is_number(each) for each in names) and names[0] != "1":
        hint += "; if its first row is data and not names, say --no-header"
    return hint


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
