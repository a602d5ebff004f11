"""A stream of bytes in blocks of whole lines, which know where they are."""

import hashlib
from typing import NamedTuple

from pogp.cli.tables.batch import Position
from pogp.cli.tables.source import Source

LONGEST = 1 << 24
"""Bytes that one line may have; memory would not be bounded otherwise."""
HEAD = 1 << 16
"""Bytes at the beginning by which a stream is known again."""


class Block(NamedTuple):
    """Lines, each with its end but for the last of the stream; or one line that is too long."""

    data: bytes
    start: Position
    end: Position
    final: bool = False  # whether nothing can be added to its last line
    overlong: bool = False  # whether it stands for a line that is left out


class Blocks:
    """The lines of a source, block by block, from the beginning or from somewhere else."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.head = b""
        self._whole_head = False
        self._position = Position(0, 1)
        self._rest = b""  # read already; it begins at `_position`

    def next(self, more: bool = False) -> Block | None:
        """Return the whole lines that have come, None at the end; with `more`, wait for others."""
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
        """Return the lines before one that is too long, or that one, left out."""
        if (end := data.rfind(b"\n") + 1) > 0:
            return self._block(data, end, final=True)
        start, length = self._position, len(data)
        while (piece := self._read()) and (end := piece.find(b"\n") + 1) == 0:
            length += len(piece)
        self._rest = piece[end:]
        self._position = Position(start.offset + length + end, start.line + 1)
        return Block(b"", start, self._position, final=True, overlong=True)

    def give_back(self, data: bytes, start: Position) -> None:
        """Take back the end of the last block, which will begin the next one."""
        self._rest, self._position = data + self._rest, start

    def _read(self) -> bytes:
        piece = self.source.read()
        if not self._whole_head:
            self.head += piece[: HEAD - len(self.head)]
            self._whole_head = len(self.head) == HEAD
        return piece

    # ---- going on where another run stopped --------------------------------------------------

    def identity(self, end: Position) -> dict[str, int | str]:
        """Return the beginning of what was read as far as `end`, digested."""
        head = self.head[: end.offset]
        return {"bytes": len(head), "sha256": hashlib.sha256(head).hexdigest()}

    def has(self, identity: dict[str, int | str]) -> bool:
        """Return whether the stream begins as one did; before anything else is read."""
        wanted = int(identity["bytes"])
        while len(self.head) < wanted and (piece := self._read()):
            self._rest += piece
        return hashlib.sha256(self.head[:wanted]).hexdigest() == identity["sha256"]

    def skip_to(self, start: Position) -> None:
        """Go on at a position, which must be after the end of a line."""
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
        # A last line without an end was learned; it may have got one since, but nothing else.
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
        """Read over so many bytes."""
        while count > len(self._rest):
            count -= len(self._rest)
            self._rest = self._read()
            if not self._rest:
                return
        self._rest = self._rest[count:]
