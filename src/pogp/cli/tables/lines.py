"""The bytes of a file or of standard input, in blocks of whole lines."""

import hashlib
import io
import os
import stat
import sys
import zlib
from typing import NamedTuple

from pogp.cli.tables.table import Position

LONGEST = 1 << 24
"""The most bytes of a line, so that memory is bounded."""
HEAD = 1 << 16
"""Bytes at the beginning that identify a stream."""
SIZE = 1 << 16
"""Bytes read at once."""
STANDARD_INPUT = "-"
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
                raise ValueError(f"{self.name} is cut off: what gzip packed has no end")
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


class Block(NamedTuple):
    """Whole lines; or one line that is too long, without its bytes."""

    data: bytes
    start: Position
    end: Position
    final: bool = False  # whether its last line is complete
    overlong: bool = False  # whether it is a line that is too long


class Blocks:
    """The lines of a source, block by block, from the beginning or from another position."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.head = b""
        self._whole_head = False
        self._position = Position(0, 1)
        self._rest = b""  # read already; it begins at `_position`

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
                return self._block(b"".join(pieces), length, final=True) if length else None
        end = length - len(pieces[-1]) + pieces[-1].rindex(b"\n") + 1
        return self._block(b"".join(pieces), end)

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

    def skip_to(self, start: Position) -> None:
        """Continue at a position, which must be after the end of a line."""
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
            raise ValueError(
                f"{self.source.name} has changed: line {start.line - 1} goes on after what was "
                "read of it before"
            )
        passed = len(self._rest) - len(after) + len(ending)
        self._rest = after[len(ending) :]
        self._position = Position(start.offset - 1 + passed, start.line)

    def _drop(self, count: int) -> None:
        """Skip so many bytes."""
        while count > len(self._rest):
            count -= len(self._rest)
            self._rest = self._read()
            if not self._rest:
                return
        self._rest = self._rest[count:]
