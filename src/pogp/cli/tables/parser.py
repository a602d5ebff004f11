"""From a block of lines to a batch of rows."""

import io
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from pogp.arrays import Array, Indices
from pogp.cli.tables.batch import Batch, Position, Refusal, usable
from pogp.cli.tables.blocks import LONGEST, Block
from pogp.cli.tables.cells import ENCODING, Form, Record, is_blank, joined, records
from pogp.cli.tables.scanning import scan

SLICE = 100
"""Lines that NumPy gets at once. It keeps the interpreter to itself meanwhile, and others wait."""
Unfinished = tuple[bytes, Position]
"""The beginning of a row whose end is not in the block, and where it is."""


class _Rows(NamedTuple):
    """What was made of a block: numbers, and for each row which lines it has."""

    values: Array
    firsts: Indices
    stops: Indices  # the line after the last of each row
    line_ends: Indices  # in bytes from the beginning of the block, of all lines
    record: Callable[[int], Record]


class Parser:
    """Reads some columns as numbers and keeps some as text.

    A block of plain lines is scanned as a whole, and one that has numbers in other dress goes to
    NumPy. Where that will not do either, because of quotes, blank lines or anything that is not a
    number, it is taken apart row by row: far slower, and by the same rules.
    """

    def __init__(self, form: Form, delimiter: str, keep: Sequence[int]) -> None:
        self._form = form
        self._delimiter = delimiter
        self._keep = keep
        self._slots = np.full(len(form.names), -1)
        self._slots[list(form.columns)] = np.arange(len(form.columns))
        self._whole = list(keep) == list(range(len(form.names)))

    def parse(self, block: Block, through: int) -> tuple[Batch, Unfinished | None]:
        """Return the rows of a block, and what is left of it."""
        unfinished = None
        if block.overlong:
            rows = self._too_long(block)
        elif (rows_at_once := self._at_once(block.data)) is not None:
            rows = rows_at_once
        else:
            rows, unfinished = self._row_by_row(block)
        return self._batch(block, rows, through), unfinished

    # ---- three ways to read ------------------------------------------------------------------

    def _at_once(self, data: bytes) -> _Rows | None:
        """Return the rows of a block in which every line is one, with all its numbers."""
        found = scan(data, self._delimiter, self._slots, len(self._form.columns))
        found = found or self._by_numpy(data)
        if found is None:
            return None
        values, ends = found

        def record(i: int) -> Record:
            line = data[ends[i - 1] if i else 0 : ends[i]].decode(ENCODING)
            return Record(i, i + 1, line.rstrip("\r\n").split(self._delimiter))

        lines = np.arange(len(ends))
        return _Rows(values, lines, lines + 1, ends, record)

    def _by_numpy(self, data: bytes) -> tuple[Array, Indices] | None:
        """Return numbers, and where lines end, if NumPy can make anything of them."""
        ends = self._regular(data)
        if ends is None:
            return None
        cuts = [0, *ends[SLICE - 1 : -1 : SLICE].tolist(), len(data)]
        try:
            values = np.concatenate([self._numbers(data[i:j]) for i, j in pairwise(cuts)])
        except ValueError:
            return None
        return (values, ends) if len(values) == len(ends) else None

    def _numbers(self, data: bytes) -> Array:
        return np.loadtxt(
            io.StringIO(data.decode(ENCODING)),
            delimiter=self._delimiter,
            comments=None,
            usecols=self._form.columns,
            ndmin=2,
        )

    def _regular(self, data: bytes) -> Indices | None:
        """Return where lines end, if nothing is quoted and each has as many cells as it should."""
        if b'"' in data or not data.strip():
            return None
        symbols = np.frombuffer(data, np.uint8)
        ends = np.flatnonzero(symbols == ord("\n")) + 1
        if not data.endswith(b"\n"):
            ends = np.append(ends, len(data))
        between = np.flatnonzero(symbols == ord(self._delimiter))
        cells = np.diff(np.searchsorted(between, ends), prepend=0) + 1
        return ends if (cells == len(self._form.names)).all() else None

    def _row_by_row(self, block: Block) -> tuple[_Rows, Unfinished | None]:
        """Return the rows of any block, and what might be a row once there are more lines."""
        lines = lines_of(block.data)
        ends = np.cumsum([len(line) for line in lines])
        found, unfinished = [], None
        for record in records(lines, self._delimiter):
            if record.unfinished and not block.final:
                begin = int(ends[record.first - 1]) if record.first else 0
                start = Position(block.start.offset + begin, block.start.line + record.first)
                unfinished = block.data[begin:], start
                break
            if record.error or not is_blank(record.cells):
                found.append(record)
        values = [self._form.numbers(record.cells) for record in found]
        rows = _Rows(
            np.array(values).reshape(len(found), len(self._form.columns)),
            np.array([record.first for record in found], np.int64),
            np.array([record.stop for record in found], np.int64),
            ends,
            found.__getitem__,
        )
        return rows, unfinished

    def _too_long(self, block: Block) -> _Rows:
        """Return the one row that was left out."""
        record = Record(0, 1, [], f"it is longer than {LONGEST >> 20} MiB")
        values, length = np.array([self._form.numbers([])]), block.end.offset - block.start.offset
        return _Rows(values, np.array([0]), np.array([1]), np.array([length]), lambda _: record)

    # ---- what they have in common ------------------------------------------------------------

    def _batch(self, block: Block, rows: _Rows, through: int) -> Batch:
        """Say where in the table the rows are, and what is wrong with some of them."""
        offset, line = block.start
        good = usable(rows.values)
        refused = [rows.record(int(i)) for i in np.flatnonzero(~good)]
        return Batch(
            values=rows.values,
            usable=good,
            lines=line + rows.firsts,
            ends=np.column_stack([offset + rows.line_ends[rows.stops - 1], line + rows.stops]),
            refusals=[self._refusal(line + record.first, record) for record in refused],
            texts=self._texts(block.data, rows) if self._keep else [],
            through=through,
        )

    def _refusal(self, line: int, record: Record) -> Refusal:
        if record.error:
            return Refusal(line, record.error)
        return Refusal(line, *self._form.complaint(record.cells))

    def _texts(self, data: bytes, rows: _Rows) -> list[bytes]:
        """Return the columns to keep, as they stand if those are all of them."""
        texts = []
        for i, (first, stop) in enumerate(zip(rows.firsts, rows.stops, strict=True)):
            cells = rows.record(i).cells
            if self._whole and len(cells) == len(self._form.names):
                begin = rows.line_ends[first - 1] if first else 0
                texts.append(data[begin : rows.line_ends[stop - 1]].rstrip(b"\r\n"))
            else:
                kept = [cells[column] if column < len(cells) else "" for column in self._keep]
                texts.append(joined(kept, self._delimiter).encode(ENCODING))
        return texts


def lines_of(data: bytes) -> list[str]:
    """Return lines with their ends; other characters that Unicode takes for line breaks are not."""
    return list(io.StringIO(data.decode(ENCODING)))
