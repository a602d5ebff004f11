"""Tables in text, CSV and JSON lines: the bytes of a file or pipe, in blocks of whole lines."""

import hashlib
import io
import os
import shlex
import stat
import sys
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from pogp.cli.tables.records import LONGEST, Block, JsonFormat, Reader, as_lines, format_of
from pogp.cli.tables.table import Batch, Cell, Choice, Layout, Position, Table

HEAD = 1 << 16
"""Bytes at the beginning that identify a stream."""
SIZE = 1 << 16
"""Bytes read at once."""
STANDARD_INPUT = "-"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
GZIP = b"\x1f\x8b"
FOREIGN = {
    b"PK\x03\x04": "a zip archive, as Excel workbooks are too; unpack it, or save it as CSV",
    b"\xd0\xcf\x11\xe0": "an Excel workbook; save it as CSV",
    b"BZh": "packed by bzip2; unpack it, with 'bunzip2 -c' for instance",
    b"\xfd7zX": "packed by xz; unpack it, with 'xz -dc' for instance",
    b"\x28\xb5\x2f\xfd": "packed by zstd; unpack it, with 'zstd -dc' for instance",
    b"\xff\xfe": "UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8",
    b"\x89POG": "a model of pogp",
    b"PAR1": "Parquet, which has to be a file: it is read from its end",
}
"""Signatures of files that are not text, and what to do about them."""


class Source:
    """The bytes of a file or pipe, decompressed; `size` is None for a pipe.

    It reads from the file descriptor: a buffered reader that waits in one thread cannot be closed
    in another when the program ends.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.name = "standard input" if path == STANDARD_INPUT else path
        self._raw = _opened(path)
        regular = stat.S_ISREG(os.fstat(self._raw.fileno()).st_mode)
        whole = regular and path != STANDARD_INPUT
        self.size = os.fstat(self._raw.fileno()).st_size if whole else None
        self._first = self._beginning()
        self._member = zlib.decompressobj(31) if self._first.startswith(GZIP) else None
        self.seekable = whole and self._member is None
        self.consumed = 0  # bytes of the file read so far

    def _beginning(self) -> bytes:
        """Return the first few bytes, which identify the kind of file."""
        first = b""
        while len(first) < 4 and (piece := self._raw.read(4 - len(first))):
            first += piece
        return first

    def require_text(self) -> None:
        """Raise ValueError if the first bytes are those of something else."""
        for signature, what in FOREIGN.items():
            if self._first.startswith(signature):
                raise ValueError(f"{self.name} is not CSV: it is {what}")

    def read(self) -> bytes:
        """Return the next bytes, nothing at the end."""
        if self._member is None:
            return self._packed()
        try:
            return self._unpacked(self._member)
        except zlib.error as error:
            raise ValueError(f"{self.name} is damaged gzip: {error}") from error

    def _packed(self) -> bytes:
        """Return the next bytes as they are in the file."""
        piece, self._first = self._first or self._raw.read(SIZE) or b"", b""
        self.consumed += len(piece)
        return piece

    def _unpacked(self, member: "zlib._Decompress") -> bytes:
        while True:
            packed = member.unconsumed_tail or member.unused_data or self._packed()
            if member.eof:
                if not packed.strip(b"\0"):  # the end, or padding
                    return b""
                self._member = member = zlib.decompressobj(31)  # another member follows
            elif not packed:
                raise ValueError(f"{self.name} is truncated: its gzip data has no end")
            if piece := member.decompress(packed, SIZE):
                return piece

    def seek(self, offset: int) -> None:
        """Continue at `offset`, if the source is `seekable`."""
        self._raw.seek(offset)
        self._first, self.consumed = b"", offset

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self.path != STANDARD_INPUT:
            self._raw.close()


def _opened(path: str) -> io.FileIO:
    if path == STANDARD_INPUT:
        return io.FileIO(sys.stdin.fileno(), closefd=False)
    return io.FileIO(path)


class TextTable(Table):
    """The rows of a text, read block by block."""

    unit = "line"

    def __init__(self, source: Source, layout: Layout) -> None:
        self._source = source
        self._blocks = Blocks(source)
        self.name, self.size, self.header = source.name, source.size, layout.header
        data = self._first_block().data
        mark = len(BYTE_ORDER_MARK) if data.startswith(BYTE_ORDER_MARK) else 0
        lines = as_lines(data[mark:])
        try:
            self._format = format_of(lines, layout)
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

    def expect(self, names: Sequence[str]) -> None:
        """Take in columns that a model knows: a key that JSON lacks is a missing value."""
        if isinstance(self._format, JsonFormat):
            self.names += [name for name in names if name not in self.names]

    def share(self, position: Position, through: int = 0) -> float | None:
        """Return the share of the table that lies before a position, None if it is not known."""
        if self.size is None or self._source.seekable:
            return super().share(position)
        return through / max(self.size, 1)  # the size is that of the compressed file

    def identity(self, end: Position) -> dict[str, Any]:
        """Return a digest of the beginning of the text, as far as `end`."""
        size = max(self.size or 0, self._source.consumed)
        return self._blocks.identity(end) | ({"size": size} if self._source.seekable else {})

    @property
    def left(self) -> int:
        """Bytes of a last line that may be incomplete and was not read."""
        return self._blocks.left

    @property
    def remark(self) -> str:
        """A message about a line that was incomplete when it was read before."""
        return self._blocks.remark

    def require(self, identity: dict[str, Any], start: Position, growing: bool = False) -> None:
        """Raise ValueError if the table has another identity, or ends before `start`.

        If it may be `growing`, and has grown, a last line without an end is not read.
        """
        if not self._blocks.has(identity):
            raise ValueError(
                f"{self.name} does not begin as the table that was learned before. It has changed, "
                "or it is another table: --from MODEL learns another table"
            )
        if self._source.seekable and self.size is not None and self.size < start.offset:
            raise ValueError(
                f"{self.name} has {self.size} bytes, fewer than the {start.offset} learned before"
            )
        size = identity.get("size")
        if growing and self.size is not None and size is not None:
            self._blocks.wary, self._blocks.ended = self.size > size, start.offset == size

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    # ---- rows --------------------------------------------------------------------------------

    def peek(self, columns: Sequence[int]) -> list[Sequence[Cell]]:
        """Return some columns of the first rows, at least one row if there is any."""
        reader = Reader(self._format, Choice(columns))
        block = self._blocks.next()
        while block is not None:
            self._blocks.give_back(block.data, block.start)
            batch, _ = reader.read(block, 0)
            if batch.count or block.final or block.overlong:
                return [row for row, sound in zip(batch.cells, batch.usable, strict=True) if sound]
            block = self._blocks.next(more=True)
        return []

    def batches(self, choice: Choice, start: Position) -> Iterator[Batch]:
        """Read the columns chosen, from a position on."""
        if start != self.start:
            self._blocks.skip_to(start, self.start.line)
        reader = Reader(self._format, choice)
        block = self._blocks.next()
        while block is not None:
            batch, unfinished = reader.read(block, self._source.consumed)
            if len(batch):
                yield batch
            if unfinished is not None:
                self._blocks.give_back(*unfinished)
            block = self._blocks.next(more=unfinished is not None)


class Blocks:
    """The lines of a source, block by block, from the beginning or from another position."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.head = b""
        self._whole_head = False
        self._position = Position(0, 1)
        self._rest = b""  # read already; it begins at `_position`
        self.wary = False  # of a last line without an end
        self.ended = False  # whether the source ended where it is continued
        self.left = 0
        self.remark = ""

    def next(self, more: bool = False) -> Block | None:
        """Return the whole lines that have arrived, None at the end; with `more`, wait for more."""
        pieces, length = [self._rest], len(self._rest)
        while more or b"\n" not in pieces[-1]:
            more = False
            if length > LONGEST:
                return self._without_overlong(b"".join(pieces))
            pieces.append(self._read())
            length += len(pieces[-1])
            if not pieces[-1]:
                return self._last(b"".join(pieces)) if length else None
        end = length - len(pieces[-1]) + pieces[-1].rindex(b"\n") + 1
        return self._block(b"".join(pieces), end)

    def _last(self, data: bytes) -> Block | None:
        """Return the last line; nothing if it may be incomplete and `wary` is true."""
        begin, before = data.rfind(b"\n") + 1, self.left
        if not self.wary or begin == len(data):
            return self._block(data, len(data), final=True)
        self.left = len(data) - begin
        return None if before or begin == 0 else self._block(data, begin)

    def _block(self, data: bytes, end: int, final: bool = False) -> Block:
        """Return the first `end` bytes as a block, and keep the others."""
        start, lines, self._rest = self._position, data[:end], data[end:]
        ends = lines.count(b"\n") + (not lines.endswith(b"\n"))
        self._position = Position(start.offset + end, start.line + ends)
        return Block(lines, start, self._position, final)

    def _without_overlong(self, data: bytes) -> Block:
        """Return the lines before one that is too long, or an empty block in its place."""
        if (end := data.rfind(b"\n") + 1) > 0:
            return self._block(data, end, final=True)
        start, length = self._position, len(data)
        while (piece := self._read()) and (end := piece.find(b"\n") + 1) == 0:
            length += len(piece)
        self._rest = piece[end:]
        self._position = Position(start.offset + length + end, start.line + 1)
        return Block(b"", start, self._position, final=True, overlong=True)

    def give_back(self, data: bytes, start: Position) -> None:
        """Take back the end of the last block; the next one will begin with it."""
        self._rest, self._position = data + self._rest, start

    def _read(self) -> bytes:
        piece = self.source.read()
        if not self._whole_head:
            self.head += piece[: HEAD - len(self.head)]
            self._whole_head = len(self.head) == HEAD
        return piece

    # ---- resuming --------------------------------------------------------------------------

    def identity(self, end: Position) -> dict[str, int | str]:
        """Return a digest of the beginning, as far as `end`."""
        head = self.head[: end.offset]
        return {"bytes": len(head), "sha256": hashlib.sha256(head).hexdigest()}

    def has(self, identity: dict[str, int | str]) -> bool:
        """Return whether the stream has this identity; call it before anything is read."""
        wanted = int(identity["bytes"])
        while len(self.head) < wanted and (piece := self._read()):
            self._rest += piece
        return hashlib.sha256(self.head[:wanted]).hexdigest() == identity["sha256"]

    def skip_to(self, start: Position, first: int) -> None:
        """Continue at a position, which must be after the end of a line; rows begin at `first`."""
        self._whole_head = True  # it may have a gap otherwise
        if self.source.seekable:
            self.source.seek(start.offset - 1)
            self._rest = b""
        else:
            self._drop(start.offset - 1 - self._position.offset)
        while len(self._rest) < 3 and (piece := self._read()):
            self._rest += piece
        if not self._rest:
            raise ValueError(f"{self.source.name} has become shorter: line {start.line} is missing")
        after = self._rest[0 if self._rest.startswith(b"\n") else 1 :]
        # A last line without an end may have got one since, but nothing else.
        ending = next((end for end in (b"\n", b"\r\n") if after.startswith(end)), b"")
        if after and not ending:
            line = f"line {start.line - 1}"
            if not self.ended:
                raise ValueError(
                    f"{self.source.name} has changed: {line} continues after what was "
                    "read of it before. --overwrite learns the whole table again; "
                    f"to continue with the rows after it: sed {first},{start.line - 1}d "
                    f"{shlex.quote(self.source.path)} | pogp learn - --from MODEL --save MODEL"
                )
            self.remark = (
                f"{self.source.name}, {line}: it was incomplete when it was read before, and "
                "stays as it was; the rest of it is skipped. --overwrite learns the whole table "
                "again"
            )
            while b"\n" not in after and (piece := self._read()):
                self._rest, after = self._rest + piece, after + piece
            ending = after[: after.find(b"\n") + 1] or after
        passed = len(self._rest) - len(after) + len(ending)
        self._rest = after[len(ending) :]
        self._position = Position(start.offset - 1 + passed, start.line)

    def _drop(self, count: int) -> None:
        """Skip `count` bytes."""
        while count > len(self._rest):
            count -= len(self._rest)
            self._rest = self._read()
            if not self._rest:
                return
        self._rest = self._rest[count:]


def _is_blank(data: bytes) -> bool:
    return not data.removeprefix(BYTE_ORDER_MARK).strip()
