"""Tables in text: CSV and JSON lines, from a file or a pipe."""

import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pogp.arrays import Indices
from pogp.cli.tables.lines import LONGEST, Block, Blocks, Source
from pogp.cli.tables.records import (
    ENCODING,
    CsvFormat,
    Format,
    JsonFormat,
    Record,
    decoded,
    faults,
    joined,
    looks_like_json,
    numbers,
    odd_cells,
)
from pogp.cli.tables.table import Batch, Cell, Layout, Position, Refusal, Table, usable

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class TextTable(Table):
    """The rows of a text, read block by block."""

    unit = "line"

    def __init__(self, source: Source, layout: Layout) -> None:
        self._source = source
        self._blocks = Blocks(source)
        self.name, self.size, self.header = source.name, source.size, layout.header
        data = self._first_block().data
        mark = len(BYTE_ORDER_MARK) if data.startswith(BYTE_ORDER_MARK) else 0
        lines = _lines(data[mark:])
        try:
            self._format = _format(lines, layout)
        except ValueError as error:
            raise ValueError(f"the first row of {self.name} cannot be read: {error}") from error
        self.names, self.delimiter = self._format.names, self._format.delimiter
        begin = mark + sum(map(len, lines[: self._format.heading]))
        self.start = Position(begin, 1 + self._format.heading)
        self._blocks.give_back(data[begin:], self.start)

    def _first_block(self) -> Block:
        """Return the first lines; ValueError if they are not lines of text."""
        self._source.require_text()
        block = self._blocks.next()
        while block is not None and not block.final and _is_blank(block.data):
            self._blocks.give_back(block.data, block.start)
            block = self._blocks.next(more=True)
        if block is None or (_is_blank(block.data) and not block.overlong):
            raise ValueError(f"{self.name} is empty")
        if b"\0" in block.data or block.overlong:
            raise ValueError(f"{self.name} is not CSV: it is not text, or has no lines")
        if b"\n" not in block.data and block.data.rstrip().count(b"\r"):
            raise ValueError(
                f"the lines of {self.name} end with a carriage return alone; "
                '\'tr "\\r" "\\n"\' converts them'
            )
        return block

    def heading(self, keep: Sequence[int]) -> bytes:
        """Return the header line for `Batch.texts`."""
        return joined([self.names[column] for column in keep], self.delimiter).encode()

    def share(self, position: Position, through: int = 0) -> float | None:
        """Return the share of the table that lies before a position, None if it is not known."""
        if self.size is None or self._source.seekable:
            return super().share(position)
        return through / max(self.size, 1)  # the size is that of the compressed file

    def identity(self, end: Position) -> dict[str, Any]:
        """Return a digest of the beginning of the text, as far as `end`."""
        return self._blocks.identity(end)

    def require(self, identity: dict[str, Any], start: Position) -> None:
        """Raise ValueError if the table has another identity, or ends before `start`."""
        if not self._blocks.has(identity):
            raise ValueError(
                f"{self.name} does not begin as what was learned before: it is another table, to "
                "go on with by --from, or has changed"
            )
        if self._source.seekable and self.size is not None and self.size < start.offset:
            raise ValueError(
                f"{self.name} has {self.size} bytes, fewer than the {start.offset} learned before"
            )

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    # ---- rows --------------------------------------------------------------------------------

    def peek(self, columns: Sequence[int]) -> list[Sequence[Cell]]:
        """Return some columns of the first rows, at least one row if there is any."""
        reader = Reader(self._format, columns)
        block = self._blocks.next()
        while block is not None:
            self._blocks.give_back(block.data, block.start)
            batch, _ = reader.read(block, 0)
            if batch.count or block.final or block.overlong:
                return [row for row, sound in zip(batch.cells, batch.usable, strict=True) if sound]
            block = self._blocks.next(more=True)
        return []

    def batches(
        self,
        columns: Sequence[int],
        start: Position,
        keep: Sequence[int] = (),
        required: Sequence[int] | None = None,
        strict: Sequence[int] = (),
    ) -> Iterator[Batch]:
        """Read some columns, in this order, and `keep` some as text; see `Table`."""
        if start != self.start:
            self._blocks.skip_to(start)
        required = columns if required is None else required
        reader = Reader(self._format, columns, keep, required, strict)
        block = self._blocks.next()
        while block is not None:
            batch, unfinished = reader.read(block, self._source.consumed)
            if len(batch):
                yield batch
            if unfinished is not None:
                self._blocks.give_back(*unfinished)
            block = self._blocks.next(more=unfinished is not None)


class Reader:
    """Turns blocks of lines into batches of rows."""

    def __init__(
        self,
        form: Format,
        columns: Sequence[int],
        keep: Sequence[int] = (),
        required: Sequence[int] = (),
        strict: Sequence[int] = (),
    ) -> None:
        self._format = form
        self._columns = columns
        self._keep = keep
        self._names = [form.names[column] for column in columns]
        self._required = [list(columns).index(column) for column in required]
        self._strict = [list(columns).index(column) for column in strict]
        # Rows of CSV are kept as they stand if all their columns are.
        every = list(keep) == list(range(len(form.names)))
        self._verbatim = every and isinstance(form, CsvFormat)

    def read(self, block: Block, through: int) -> tuple[Batch, tuple[bytes, Position] | None]:
        """Return the rows of a block, and the beginning of a row whose end is not in it."""
        if block.overlong:
            record = Record(0, 1, [], f"it is longer than {LONGEST >> 20} MiB")
            ends = np.array([block.end.offset - block.start.offset])
            return self._batch(block, [record], ends, through), None
        lines = _lines(block.data)
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
        sound = np.array([not record.error for record in records], dtype=bool)
        good = usable(values[:, self._required]) & sound
        if self._strict:
            odd = odd_cells(cells, values, self._strict)
            good &= ~odd.any(axis=1)
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


def _format(lines: Sequence[str], layout: Layout) -> Format:
    kind = layout.format or ("jsonl" if looks_like_json(lines) else "csv")
    if kind == "jsonl":
        return JsonFormat(lines)
    return CsvFormat(lines, layout.delimiter, layout.header)


def _lines(data: bytes) -> list[str]:
    """Return lines with their ends, which are line feeds and no other line breaks of Unicode."""
    return list(io.StringIO(data.decode(ENCODING)))


def _is_blank(data: bytes) -> bool:
    return not data.removeprefix(BYTE_ORDER_MARK).strip()
