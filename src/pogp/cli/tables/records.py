"""Lines of CSV or JSON as rows of cells, the numbers in the cells, and what is wrong with them."""

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pogp.arrays import LARGEST, Array, Indices
from pogp.cli.tables.table import (
    Batch,
    Cell,
    Choice,
    Layout,
    Position,
    Refusal,
    joined,
    unnamed,
)
from pogp.encoding import Encoder
from pogp.encoding.columns import Cells, as_times, is_missing
from pogp.encoding.columns import read_number as number

ENCODING = "latin-1"
"""One character for each byte: numbers and delimiters are the same in all encodings of text."""
LONGEST = 1 << 24
"""The most bytes of a line, so that memory is bounded."""
COMMA = re.compile(r"[+-]?\d+((\.\d{3})*,\d+|(,\d{3})+(\.\d+)?)")
"""A number with a decimal comma or with commas between thousands, which is not accepted."""
DELIMITERS = (",", ";", "\t", "|")
SHOWN = 40
"""Characters of a cell that a message quotes."""
FAULTS = 3
"""Cells of a row that a message names."""


class Record(NamedTuple):
    """One row of text, with a cell for each column unless there is an error."""

    first: int  # its first line, counted from 0 within the lines given
    stop: int  # the line after its last
    cells: Sequence[Cell]
    error: str = ""
    unfinished: bool = False  # whether more lines might complete it


class CsvFormat:
    """Cells between commas, semicolons, tabs, bars or single spaces.

    `heading` is the number of lines before the first row of data.
    """

    def __init__(self, lines: Sequence[str], delimiter: str | None, header: bool) -> None:
        """Take names and delimiter from the first lines of a text; ValueError if that fails."""
        blank = next(i for i, line in enumerate(lines) if line.strip())
        self.delimiter = delimiter or guessed_delimiter(lines[blank])
        first = next(_csv_rows(lines[blank:], self.delimiter))
        if first.error:
            raise ValueError(first.error)
        self.names = _names([str(cell) for cell in first.cells], header)
        self.heading = blank + (first.stop if header else 0)

    def records(self, lines: Sequence[str]) -> Iterator[Record]:
        """Return the rows of lines, which come with their line ends; blank lines are no rows.

        A row has several lines if a line break in it is quoted.
        """
        wanted = len(self.names)
        for row in _csv_rows(lines, self.delimiter):
            count = len(row.cells)
            if row.error or count == wanted:
                yield row
            elif count > 1 or (count and str(row.cells[0]).strip()):
                noun = "cell" if count == 1 else "cells"
                yield row._replace(error=f"it has {count} {noun}, not {wanted}")


class JsonFormat:
    """One JSON object in each line; a key that a line lacks is a missing value."""

    delimiter = ","
    heading = 0

    def __init__(self, lines: Sequence[str]) -> None:
        """Take the names from the keys of the lines that are there."""
        self.names: list[str] = []
        for line in lines:
            with suppress(ValueError):
                self.names += [name for name in _json_object(line) if name not in self.names]
        if not self.names:
            raise ValueError("expected a JSON object with at least one key in each line")

    def records(self, lines: Sequence[str]) -> Iterator[Record]:
        """Return the rows."""
        for i, line in enumerate(lines):
            if not line.strip():
                continue
            try:
                row = _json_object(line)
            except ValueError as error:
                yield Record(i, i + 1, [], f"it is not a JSON object: {error}")
            else:
                yield Record(i, i + 1, [row.get(name) for name in self.names])


def format_of(lines: Sequence[str], layout: Layout) -> CsvFormat | JsonFormat:
    """Return the format of a text with these first lines; ValueError if they cannot be read."""
    kind = layout.format or ("jsonl" if looks_like_json(lines) else "csv")
    if kind == "jsonl":
        return JsonFormat(lines)
    return CsvFormat(lines, layout.delimiter, layout.header)


def as_lines(data: bytes) -> list[str]:
    """Return lines with their ends, which are line feeds and no other line breaks of Unicode."""
    return list(io.StringIO(data.decode(ENCODING)))


def looks_like_json(lines: Sequence[str]) -> bool:
    """Return whether the first line that is not blank is a JSON object."""
    line = next((line for line in lines if line.strip()), "")
    try:
        return line.lstrip().startswith("{") and bool(_json_object(line))
    except ValueError:
        return False


def _json_object(line: str) -> dict[str, Cell]:
    try:
        found = json.loads(line.encode(ENCODING))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError(f"expected {{…}}, got {shown(line)}")
    return found


def _csv_rows(lines: Sequence[str], delimiter: str) -> Iterator[Record]:
    """Parse lines. After an error only one line is left out: a stray quote costs one row."""
    first = 0
    while first < len(lines):
        start = first
        reader = csv.reader(iter(lines[start:]), delimiter=delimiter, strict=True)
        try:
            for cells in reader:
                stop = start + reader.line_num
                yield Record(first, stop, cells)
                first = stop
        except csv.Error as error:
            unfinished = start + reader.line_num == len(lines)
            yield Record(first, first + 1, [], f"its quotes are not CSV's: {error}", unfinished)
            first += 1


def _names(cells: Sequence[str], header: bool) -> list[str]:
    """Return the names of the columns: those of the first row, or their numbers."""
    if not header:
        return [str(column) for column in range(1, len(cells) + 1)]
    names = [str(decoded(cell)).strip() for cell in cells]
    return [name or unnamed(column) for column, name in enumerate(names, start=1)]


def guessed_delimiter(line: str) -> str:
    """Return the most frequent delimiter outside quotes; a space if there is no other.

    >>> guessed_delimiter('"a, b";c;wind speed')
    ';'
    """
    bare = re.sub('"[^"]*"', "", line.strip())
    sign = max(DELIMITERS, key=bare.count)
    return " " if sign not in bare and " " in bare else sign


# ---- batches of rows -------------------------------------------------------------------------


class Block(NamedTuple):
    """Whole lines; or one line that is too long, without its bytes."""

    data: bytes
    start: Position
    end: Position
    final: bool = False  # whether its last line is complete
    overlong: bool = False  # whether it is a line that is too long


class Reader:
    """Turns blocks of lines into batches of rows."""

    def __init__(self, form: CsvFormat | JsonFormat, choice: Choice) -> None:
        self._format = form
        self._columns, self._keep = list(choice.columns), choice.keep
        self._names = [form.names[column] for column in self._columns]
        self._required = [self._columns.index(column) for column in choice.required]
        self._strict = [self._columns.index(column) for column in choice.strict]
        # Rows of CSV are kept as they stand if all their columns are.
        every = list(choice.keep) == list(range(len(form.names)))
        self._verbatim = every and isinstance(form, CsvFormat)

    def read(self, block: Block, through: int) -> tuple[Batch, tuple[bytes, Position] | None]:
        """Return the rows of a block, and the beginning of a row whose end is not in it."""
        if block.overlong:
            record = Record(0, 1, [], f"it is longer than {LONGEST >> 20} MiB")
            ends = np.array([block.end.offset - block.start.offset])
            return self._batch(block, [record], ends, through), None
        lines = as_lines(block.data)
        ends = np.cumsum([len(line) for line in lines])
        records: list[Record] = []
        for record in self._format.records(lines):
            if record.unfinished and not block.final:
                begin = int(ends[record.first - 1]) if record.first else 0
                start = Position(block.start.offset + begin, block.start.line + record.first)
                unfinished = block.data[begin:], start
                return self._batch(block, records, ends, through), unfinished
            records.append(record)
        return self._batch(block, records, ends, through), None

    def _batch(
        self, block: Block, records: list[Record], line_ends: Indices, through: int
    ) -> Batch:
        offset, line = block.start
        missing = [None] * len(self._columns)
        cells: list[Sequence[object]] = [
            missing if record.error else [decoded(record.cells[column]) for column in self._columns]
            for record in records
        ]
        values = numbers(cells, len(self._columns))
        good = np.array([not record.error for record in records], dtype=bool)
        good &= ~np.isnan(values[:, self._required]).any(axis=1)
        if self._strict:
            good &= ~odd_cells(cells, values, self._strict).any(axis=1)
        firsts = np.array([record.first for record in records], np.int64)
        stops = np.array([record.stop for record in records], np.int64)
        return Batch(
            cells=cells,
            values=values,
            usable=good,
            lines=line + firsts,
            ends=np.column_stack([offset + line_ends[stops - 1], line + stops]),
            refusals=[
                self._refusal(line, records[i], cells[i]) for i in np.flatnonzero(~good).tolist()
            ],
            texts=self._texts(block.data, records, line_ends) if self._keep else [],
            through=through,
        )

    def _refusal(self, line: int, record: Record, cells: Sequence[object]) -> Refusal:
        if record.error:
            return Refusal(line + record.first, record.error)
        return Refusal(
            line + record.first, *faults(self._names, cells, self._required, self._strict)
        )

    def _texts(self, data: bytes, records: list[Record], line_ends: Indices) -> list[bytes]:
        """Return the columns to keep as text."""
        texts = []
        for record in records:
            if self._verbatim and not record.error:
                begin = line_ends[record.first - 1] if record.first else 0
                texts.append(data[begin : line_ends[record.stop - 1]].rstrip(b"\r\n"))
                continue
            cells = [*record.cells, *[None] * (len(self._format.names) - len(record.cells))]
            kept = ["" if cells[i] is None else str(cells[i]) for i in self._keep]
            row = joined(kept, self._format.delimiter)
            texts.append(row.encode(ENCODING if isinstance(self._format, CsvFormat) else "utf-8"))
        return texts


def chosen(columns: Sequence[int], kinds: Sequence[str], fatal: bool, target: bool) -> Choice:
    """Return the choice of columns of these kinds, the last being the `target` if there is one.

    A text in a column of numbers is an unusable row where such rows are `fatal`.
    """
    numbers = [column for column, kind in zip(columns, kinds, strict=False) if kind == "number"]
    required = columns[-1:] if target else ()
    return Choice(columns, required=required, strict=numbers if fatal else ())


def decided_columns(batch: Batch, encoder: Encoder) -> list[Cells]:
    """Return the inputs of the usable rows, whose values decide what undecided columns hold."""
    if "undecided" in encoder.kinds:
        encoder.decide(input_columns(batch, encoder.kinds))
    return input_columns(batch, encoder.kinds)


def input_columns(batch: Batch, kinds: Sequence[str]) -> list[Cells]:
    """Return the inputs of the usable rows by columns: numbers, or cells of another kind."""
    values = batch.values[batch.usable]
    rows = [batch.cells[i] for i in np.flatnonzero(batch.usable)]
    return [
        values[:, j] if kind == "number" else [row[j] for row in rows]
        for j, kind in enumerate(kinds)
    ]


def ignored_cells(batch: Batch, names: Sequence[str], kinds: Sequence[str]) -> list[Refusal]:
    """Return the usable rows with something else than a number, or a time, where one should be."""
    numbers = [place for place, kind in enumerate(kinds) if kind == "number"]
    times = [place for place, kind in enumerate(kinds) if kind == "time"]
    odd = odd_cells(batch.cells, batch.values, numbers).any(axis=1)
    unread = odd_times(batch.cells, times)
    found = []
    for i in np.flatnonzero((odd | unread.any(axis=1)) & batch.usable).tolist():
        row = batch.cells[i]
        reason, columns = faults(names, row, [], numbers)
        places = [place for place, wrong in zip(times, unread[i], strict=True) if wrong]
        words = [f"{names[place]!r} is {shown(row[place])!r}, not a time" for place in places]
        reasons = "; ".join([*([reason] if reason else []), *words])
        columns += tuple(names[place] for place in places)
        found.append(Refusal(int(batch.lines[i]), reasons, columns))
    return found


# ---- cells ----------------------------------------------------------------------------------


def numbers(rows: Sequence[Sequence[Cell]], columns: int) -> Array:
    """Return the numbers in rows of cells (n, columns), NaN where there is none to learn from."""
    values = np.array([list(map(number, row)) for row in rows]).reshape(len(rows), columns)
    return np.where(np.abs(values) < LARGEST, values, np.nan)


def odd_cells(
    rows: Sequence[Sequence[Cell]], values: Array, places: Sequence[int]
) -> NDArray[np.bool_]:
    """Return which cells (n, places) hold something, and no number that a model accepts."""
    odd = np.isnan(values[:, places])
    for i, j in np.argwhere(odd):
        odd[i, j] = not is_missing(rows[i][places[j]])
    return odd


def odd_times(rows: Sequence[Sequence[Cell]], places: Sequence[int]) -> NDArray[np.bool_]:
    """Return which cells (n, places) hold something that is no time."""
    odd = np.zeros((len(rows), len(places)), dtype=bool)
    for j, place in enumerate(places):
        cells = [row[place] for row in rows]
        odd[:, j] = np.isnan(as_times(cells))
        for i in np.flatnonzero(odd[:, j]):
            odd[i, j] = not is_missing(cells[i])
    return odd


def faults(
    names: Sequence[str],
    cells: Sequence[Cell],
    required: Sequence[int],
    strict: Sequence[int] = (),
) -> tuple[str, tuple[str, ...]]:
    """Return what is wrong with a row, and in which columns.

    At the `required` places there have to be numbers, at the `strict` ones numbers or nothing.
    """
    wrong = [place for place in required if not abs(number(cells[place])) < LARGEST]
    wrong += [
        place
        for place in strict
        if not (abs(number(cells[place])) < LARGEST or is_missing(cells[place]))
    ]
    found = {names[place]: _fault(cells[place]) for place in wrong}
    words = [f"{name!r} is {fault}" for name, fault in found.items()]
    left_out = [f"and {len(words) - FAULTS} more"] if len(words) > FAULTS else []
    return "; ".join(words[:FAULTS] + left_out), tuple(found)


def number_with_comma(cells: Sequence[Cell]) -> str:
    """Return the first number with a comma, if all texts are numbers but for that, or missing."""
    texts = [cell.strip() for cell in cells if isinstance(cell, str) and not is_missing(cell)]
    commas = [text for text in texts if COMMA.fullmatch(text)]
    others = (text for text in texts if not COMMA.fullmatch(text))
    return commas[0] if commas and all(math.isfinite(number(text)) for text in others) else ""


def _fault(cell: Cell) -> str:
    text, value = shown(cell), number(cell)
    if not text:
        return "empty"
    if math.isfinite(value):
        return f"{text!r}, beyond {LARGEST:g}"
    if not math.isnan(value):
        return f"{text!r}, not finite"
    if COMMA.fullmatch(text):
        return f"{text!r}, not a number: expected a decimal point and no commas"
    return f"{text!r}, not a number"


def shown(cell: Cell) -> str:
    """Return a cell as text, cut if it is long."""
    text = "" if cell is None or cell != cell else str(cell).strip()
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def decoded(cell: Cell) -> Cell:
    """Return a cell of CSV, read byte by byte, as UTF-8, or as it is if it is not UTF-8."""
    if not isinstance(cell, str) or cell.isascii():
        return cell
    try:
        return cell.encode(ENCODING).decode()
    except UnicodeError:
        return cell
