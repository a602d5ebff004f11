"""CSV and its relatives: cells between commas, semicolons, tabs, bars or single spaces."""

from collections.abc import Iterator, Sequence
from typing import Any

from pogp.cli.tables.batch import Batch, Position
from pogp.cli.tables.blocks import Block, Blocks
from pogp.cli.tables.cells import ENCODING, Form, guessed_delimiter, joined, records
from pogp.cli.tables.columns import unnamed
from pogp.cli.tables.parser import Parser, lines_of
from pogp.cli.tables.source import Source
from pogp.cli.tables.table import Layout, Table

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Delimited(Table):
    """Rows of text, of a file or a pipe."""

    unit = "line"

    def __init__(self, source: Source, layout: Layout) -> None:
        self._source = source
        self._blocks = Blocks(source)
        self.name, self.size = source.name, source.size
        self.header = layout.header
        data = self._first_block().data
        lines = lines_of(data)
        mark, blank = data.startswith(BYTE_ORDER_MARK) * len(BYTE_ORDER_MARK), 0
        lines[0] = lines[0][mark:]
        while not lines[blank].strip():
            blank += 1
        self.delimiter = layout.delimiter or guessed_delimiter(lines[blank])
        first = next(records(lines[blank:], self.delimiter))
        if first.error:
            raise ValueError(f"the first row of {self.name} cannot be read: {first.error}")
        self.names = _names(first.cells, layout.header)
        passed = blank + (first.stop if layout.header else 0)
        begin = mark + sum(map(len, lines[:passed]))
        self.start = Position(begin, 1 + passed)
        self._blocks.give_back(data[begin:], self.start)

    def _first_block(self) -> Block:
        """Return the first lines, if they are lines of text."""
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
                f'the lines of {self.name} end as on old Macintoshes; \'tr "\\r" "\\n"\' helps'
            )
        return block

    def heading(self, keep: Sequence[int]) -> bytes:
        """Return the names of columns as they would stand before `Batch.texts`."""
        return joined([self.names[column] for column in keep], self.delimiter).encode()

    def share(self, position: Position, through: int = 0) -> float | None:
        """Return how much of the table is before a position, if anybody knows."""
        if self.size is None or self._source.seekable:
            return super().share(position)
        return through / max(self.size, 1)  # its size is that of the packed file

    def identity(self, end: Position) -> dict[str, Any]:
        """Return by what the table can be known again, once read as far as `end`."""
        return self._blocks.identity(end)

    def require(self, identity: dict[str, Any], start: Position) -> None:
        """Raise ValueError if this is not the table of that identity, or ends before `start`."""
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
        """Let go of the file."""
        self._source.close()

    # ---- rows --------------------------------------------------------------------------------

    def batches(
        self, columns: Sequence[int], start: Position, keep: Sequence[int] = ()
    ) -> Iterator[Batch]:
        """Read some columns as numbers, in this order, and `keep` some as text; once."""
        if start != self.start:
            self._blocks.skip_to(start)
        parser = Parser(Form(self.names, columns), self.delimiter, keep)
        block = self._blocks.next()
        while block is not None:
            batch, unfinished = parser.parse(block, self._source.consumed)
            if len(batch):
                yield batch
            if unfinished is not None:
                self._blocks.give_back(*unfinished)
            block = self._blocks.next(more=unfinished is not None)


def _is_blank(data: bytes) -> bool:
    return not data.removeprefix(BYTE_ORDER_MARK).strip()


def _names(cells: Sequence[str], header: bool) -> list[str]:
    """Return the names of the columns: those of the first row, or their numbers."""
    if not header:
        return [str(column) for column in range(1, len(cells) + 1)]
    row = [cell.encode(ENCODING) for cell in cells]
    try:
        names = [cell.decode().strip() for cell in row]
    except UnicodeDecodeError:
        names = [cell.strip() for cell in cells]
    return [name or unnamed(column) for column, name in enumerate(names, start=1)]
