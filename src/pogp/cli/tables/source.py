"""The bytes of a file or of standard input, unpacked if they are packed."""

import io
import os
import stat
import sys
import zlib

SIZE = 1 << 18
"""Bytes read at once: enough for NumPy to be fast, few enough for a parser to be soon done."""
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
"""What a text never begins with, and what to do about it."""


class Source:
    """Bytes in order, as many as there are at the moment; `size` is None if they may keep coming.

    Reading is from the file descriptor itself: a buffered reader that waits in one thread cannot be
    closed in another when the program ends.
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
        self.consumed = 0  # bytes of the file, for how far it is

    def _beginning(self) -> bytes:
        """Return the first few bytes, by which a kind of file can be told."""
        first = b""
        while len(first) < 4 and (piece := self._raw.read(4 - len(first))):
            first += piece
        return first

    def require_text(self) -> None:
        """Raise ValueError if this is known to be something else; before anything is read."""
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
            raise ValueError(
                f"{self.name} is damaged where it is packed by gzip: {error}"
            ) from error

    def _packed(self) -> bytes:
        """Return the next bytes as they are in the file."""
        piece, self._first = self._first or self._raw.read(SIZE) or b"", b""
        self.consumed += len(piece)
        return piece

    def _unpacked(self, member: "zlib._Decompress") -> bytes:
        while True:
            packed = member.unconsumed_tail or member.unused_data or self._packed()
            if member.eof:
                if not packed.strip(b"\0"):  # the end, or what tapes are filled up with
                    return b""
                self._member = member = zlib.decompressobj(31)  # another one follows
            elif not packed:
                raise ValueError(f"{self.name} is cut off: what gzip packed has no end")
            if piece := member.decompress(packed, SIZE):
                return piece

    def seek(self, offset: int) -> None:
        """Go on reading at `offset`; for a source that is `seekable`."""
        self._raw.seek(offset)
        self._first, self.consumed = b"", offset

    def close(self) -> None:
        """Let go of the file; standard input is not ours to close."""
        if self.path != STANDARD_INPUT:
            self._raw.close()


def _opened(path: str) -> io.FileIO:
    if path == STANDARD_INPUT:
        return io.FileIO(sys.stdin.fileno(), closefd=False)
    return io.FileIO(path)
