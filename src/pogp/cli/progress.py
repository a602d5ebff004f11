"""What a command says while it works: notes, and how far it has come."""

import shutil
import time
from types import TracebackType
from typing import Self, TextIO


class Console:
    """Where notes and progress go; nowhere if `stream` is None."""

    def __init__(self, stream: TextIO | None) -> None:
        self.stream = stream

    def note(self, text: str) -> None:
        """Say something once."""
        if self.stream is not None:
            print(text, file=self.stream, flush=True)

    def progress(self, label: str, total: int) -> "Progress":
        """Return a progress display for `total` samples, to be entered with `with`."""
        return Progress(label, total, self.stream)


class Progress:
    """A bar on a terminal, a line for every tenth of the way elsewhere."""

    def __init__(self, label: str, total: int, stream: TextIO | None) -> None:
        self._label, self._total, self._stream = label, total, stream
        self._terminal = stream is not None and stream.isatty()
        self._started = time.perf_counter()
        self._tenths = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._stream is not None and self._terminal:
            self._stream.write("\n")

    def update(self, done: int, state: str) -> None:
        """Show that `done` samples are through, and what the model is like now."""
        if self._stream is None:
            return
        tenths = 10 * done // self._total
        if self._terminal:
            self._stream.write("\r" + self._bar(done, self._line(done, state)))
            self._stream.flush()
        elif tenths > self._tenths:
            print(f"{self._label:<14}{self._line(done, state)}", file=self._stream, flush=True)
        self._tenths = tenths

    def _line(self, done: int, state: str) -> str:
        elapsed = time.perf_counter() - self._started
        rate = done / max(elapsed, 1e-9)
        minutes, seconds = divmod(round((self._total - done) / rate), 60)
        place = f"{done:>{len(str(self._total))}}/{self._total}"
        return f"{place} {rate:6.0f}/s {minutes:3d}:{seconds:02d} left  {state}"

    def _bar(self, done: int, line: str) -> str:
        """Return label, bar and line in one line of the terminal, its last column left free."""
        columns = shutil.get_terminal_size().columns - 1
        room = max(columns - 14 - len(line) - 3, 4)
        filled = room * done // self._total
        bar = "#" * filled + "." * (room - filled)
        return f"{self._label:<14}[{bar}] {line}"[:columns].ljust(columns)
