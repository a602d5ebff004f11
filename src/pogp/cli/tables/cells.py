"""Cells of text: which of them are numbers, and what is wrong with a row of them."""

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pogp.arrays import LARGEST

ENCODING = "latin-1"
"""Each byte is a character of it: in whatever encoding, numbers and delimiters are the same."""
DELIMITERS = (",", ";", "\t", "|")
SHOWN = 40
"""Characters of a cell that are quoted in a message."""
FAULTS = 3
"""Cells of a row that are named in a message."""


class Record(NamedTuple):
    """A row taken apart; without cells if that cannot be done, for the reason given."""

    first: int  # its first line, counted from 0 within those that were given
    stop: int  # the line after its last
    cells: list[str]
    error: str = ""
    unfinished: bool = False  # whether more lines might have helped


def records(lines: Sequence[str], delimiter: str) -> Iterator[Record]:
    """Take lines, with their ends, apart; a row has several where a line break is quoted.

    Where it fails, the first line is left out alone: a quote too many costs one row and not all
    that follow.
    """
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


def is_blank(cells: Sequence[str]) -> bool:
    """Return whether this is no row at all."""
    return not cells or (len(cells) == 1 and not cells[0].strip())


def number(text: str) -> float:
    """Return what `numpy.loadtxt` would, NaN for what is not a number.

    >>> number(" 1.5"), number("1_000"), number("")
    (1.5, nan, nan)
    """
    try:
        return math.nan if "_" in text else float(text.strip())
    except ValueError:
        return math.nan


def guessed_delimiter(line: str) -> str:
    """Return what most often lies between the cells of a line; a space if nothing else does.

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


class Form(NamedTuple):
    """What a row must have: a cell for each name, and numbers in some of the columns."""

    names: list[str]
    columns: Sequence[int]

    def numbers(self, cells: Sequence[str]) -> list[float]:
        """Return the numbers of the columns, NaN where there is none."""
        if len(cells) != len(self.names):
            return [math.nan] * len(self.columns)
        return [number(cells[column]) for column in self.columns]

    def complaint(self, cells: Sequence[str]) -> tuple[str, tuple[str, ...]]:
        """Return what is wrong with a row, and in which columns."""
        if len(cells) != len(self.names):
            cell = "cell" if len(cells) == 1 else "cells"
            return f"it has {len(cells)} {cell}, not {len(self.names)}", ()
        return complaint(
            {
                self.names[column]: shown(cells[column])
                for column in self.columns
                if not abs(number(cells[column])) < LARGEST
            }
        )


def complaint(faults: dict[str, str]) -> tuple[str, tuple[str, ...]]:
    """Return in words which columns have no number, but something else."""
    words = [f"{name!r} is {_fault(text)}" for name, text in faults.items()]
    left_out = [f"and {len(words) - FAULTS} more"] if len(words) > FAULTS else []
    return "; ".join(words[:FAULTS] + left_out), tuple(faults)


def _fault(text: str) -> str:
    if not text.strip():
        return "empty"
    value = number(text)
    if math.isfinite(value):
        return f"{text!r}, beyond {LARGEST:g}"
    if not math.isnan(value):
        return f"{text!r}, not finite"
    if re.fullmatch(r"[+-]?\d+,\d+", text.strip()):
        return f"{text!r}, not a number: 1.5 has a point, not a comma"
    return f"{text!r}, not a number"


def shown(cell: str) -> str:
    """Return a cell of bytes taken for Latin-1 as it was meant, and not at length."""
    text = cell.encode(ENCODING).decode("utf-8", errors="replace").strip()
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"
