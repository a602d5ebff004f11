"""Rows from lines of CSV or JSON, the numbers in their cells, and what is wrong with them."""

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pogp.arrays import LARGEST, Array
from pogp.cli.tables.table import Cell, unnamed
from pogp.encoding.columns import is_missing
from pogp.encoding.columns import read_number as number

ENCODING = "latin-1"
"""One character for each byte: numbers and delimiters are the same in all encodings of text."""
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


class Format(Protocol):
    """How lines become rows."""

    names: list[str]
    delimiter: str
    heading: int
    """Lines before the first row of data."""

    def records(self, lines: Sequence[str]) -> Iterator[Record]:
        """Return the rows of lines, which come with their line ends; blank lines are no rows."""
        ...


class CsvFormat:
    """Cells between commas, semicolons, tabs, bars or single spaces."""

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
        """Return the rows; a row has several lines if a line break in it is quoted."""
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
        for row in self._rows(lines):
            self.names += [name for name in row if name not in self.names]
        if not self.names:
            raise ValueError("expected a JSON object with at least one key in each line")

    @staticmethod
    def _rows(lines: Sequence[str]) -> Iterator[dict[str, Cell]]:
        for line in lines:
            try:
                row = _json_object(line)
            except ValueError:
                continue
            yield row

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


def joined(cells: Sequence[str], delimiter: str) -> str:
    """Return cells as one row of text, quoted where necessary."""
    row = io.StringIO()
    csv.writer(row, delimiter=delimiter, lineterminator="").writerow(cells)
    return row.getvalue()


# ---- cells ----------------------------------------------------------------------------------


def numbers(rows: Sequence[Sequence[Cell]], columns: int) -> Array:
    """Return the numbers in rows of cells (n, columns), NaN where there is none."""
    return np.array([list(map(number, row)) for row in rows]).reshape(len(rows), columns)


def odd_cells(
    rows: Sequence[Sequence[Cell]], values: Array, places: Sequence[int]
) -> NDArray[np.bool_]:
    """Return which cells (n, places) hold something, and no number that a model accepts."""
    odd = ~(np.abs(values[:, places]) < LARGEST)
    for i, j in np.argwhere(odd):
        odd[i, j] = not is_missing(rows[i][places[j]])
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


def _fault(cell: Cell) -> str:
    text, value = shown(cell), number(cell)
    if not text:
        return "empty"
    if math.isfinite(value):
        return f"{text!r}, beyond {LARGEST:g}"
    if not math.isnan(value):
        return f"{text!r}, not finite"
    if re.fullmatch(r"[+-]?\d+,\d+", text):
        return f"{text!r}, not a number: 1.5 has a point, not a comma"
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
