"""The lines of `pogp learn --out`: one per row, as it is learned."""

import json
import math
import os
import re
import sys
from pathlib import Path
from typing import Self

from pogp.streaming import Step

COLUMNS = ("row", "mean", "deviation", "lower", "upper", "surprise", "alarm")
STANDARD_OUTPUT = Path("-")
LONGEST = 4096
"""Bytes at the end of a file that hold its last line."""
JSON_LINES = (".jsonl", ".ndjson", ".json")


class OutputError(OSError):
    """The file of --out could not be written: it ends before the rows that were learned."""


class Output:
    """Writes steps as CSV or JSON lines to a file or to standard output.

    Lines are collected until `flush`; a `live` output is flushed after every line.
    """

    def __init__(
        self, path: Path, kind: str | None = None, *, live: bool = False, size: int | None = None
    ) -> None:
        """Open the file; `size` is how many bytes of an existing file to keep."""
        self.path, self.live = path, live
        self._json = kind == "jsonl" or (kind is None and path.suffix.lower() in JSON_LINES)
        self._lines: list[str] = []
        going_on = size is not None and path.exists() and path != STANDARD_OUTPUT
        if path == STANDARD_OUTPUT:
            self._descriptor = sys.stdout.fileno()
            sys.stdout.flush()
        else:
            flags = os.O_WRONLY | os.O_CREAT | (0 if going_on else os.O_TRUNC)
            self._descriptor = os.open(path, flags, 0o666)
        self.size = self._kept(size) if going_on and size is not None else 0
        if not going_on and not self._json:
            self._lines.append(",".join(COLUMNS))
            self.flush()

    @property
    def file(self) -> str | None:
        """The file with its folders; None for standard output, pipes and devices."""
        regular = self.path != STANDARD_OUTPUT and self.path.is_file()
        return os.path.abspath(self.path) if regular else None

    @property
    def format(self) -> str:
        """The name of its format."""
        return "jsonl" if self._json else "csv"

    def _kept(self, size: int) -> int:
        """Truncate the file to its size at the checkpoint, and continue there."""
        if (found := os.fstat(self._descriptor).st_size) < size:
            raise ValueError(
                f"{self.path} has {found} bytes, fewer than the {size} written up to the "
                "checkpoint; name another file, and it begins with the next row"
            )
        os.ftruncate(self._descriptor, size)
        return os.lseek(self._descriptor, size, os.SEEK_SET)

    def write(self, step: Step) -> None:
        """Add the line of a step."""
        numbers = (step.mean, step.deviation, step.lower, step.upper, step.surprise)
        self._lines.append(self._line(step.row, [float(number) for number in numbers], step.alarm))
        if self.live:
            self.flush()

    def _line(self, row: int, cells: list[float], alarm: bool) -> str:
        if self._json:
            numbers = (cell if math.isfinite(cell) else None for cell in cells)
            return json.dumps(dict(zip(COLUMNS, (row, *numbers, alarm), strict=True)))
        return ",".join([str(row), *map(_cell, cells), str(int(alarm))])

    def flush(self) -> None:
        """Write what was collected."""
        data = "".join(f"{line}\n" for line in self._lines).encode()
        self._lines.clear()
        self.size += len(data)
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(error.errno, error.strerror, str(self.path)) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self.path != STANDARD_OUTPUT:
            os.close(self._descriptor)


def last_row(path: Path, size: int | None = None) -> int | None:
    """Return the number of the last row in the first `size` bytes of a file of lines.

    It is 0 where there is no row yet, and None where the file holds something else.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size if size is None else size
        file.seek(max(size - LONGEST, 0))
        lines = file.read(min(size, LONGEST)).splitlines(keepends=True)
    whole = [line.decode(errors="replace") for line in lines if line.endswith(b"\n")]
    if not whole:
        return 0 if size == 0 else None
    if whole[-1].strip() == ",".join(COLUMNS):
        return 0
    found = re.match(r'(?:\{"row": )?(\d+),', whole[-1])
    return None if found is None else int(found[1])


def _cell(number: float) -> str:
    """Return a number so that it reads back the same, and nothing for one that is missing."""
    return repr(number) if math.isfinite(number) else ""
