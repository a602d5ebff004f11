"""What a command says while it works: notes, and how far it has come."""

import shutil
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple, Self, TextIO

DRAWN = 0.1
"""Seconds between two pictures of the bar."""
RECENT = 15.0
"""Seconds over which the rate is taken: the beginning, with its tuning, says little of the rest."""
LINES = 30.0
"""Seconds after which there is a line in any case, where there is no terminal."""


class Console:
    """Where notes and progress go; nowhere if `stream` is None."""

    def __init__(self, stream: TextIO | None) -> None:
        self.stream = stream

    def note(self, text: str) -> None:
        """Say something once."""
        if self.stream is None:
            return
        if self.stream.isatty():  # over the bar, which will come again below
            text = "\r" + text.ljust(_columns())
        print(text, file=self.stream, flush=True)

    def progress(
        self, label: str, total: int | None = None, *, done: int = 0, share: float = 0.0
    ) -> "Progress":
        """Return a progress display for `total` samples, to be entered with `with`.

        Without a total it counts samples, and is told what share of the way they are, if anybody
        knows. `done` and `share` are where it begins.
        """
        return Progress(label, total, self.stream, done, share)


class _Mark(NamedTuple):
    """How far it was at a time."""

    time: float
    done: int
    share: float | None


class Progress:
    """A bar on a terminal; elsewhere a line for every tenth of the way, and every half minute."""

    def __init__(
        self,
        label: str,
        total: int | None,
        stream: TextIO | None,
        done: int = 0,
        share: float = 0.0,
    ) -> None:
        self._label, self._total, self._stream = label, total, stream
        self._terminal = stream is not None and stream.isatty()
        self._started = time.perf_counter()
        self._marks = deque([_Mark(self._started, done, share)])
        self._drawn: float | None = None
        self._tenths = int(10 * share)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._stream is not None and self._terminal and self._drawn is not None:
            self._stream.write("\n")

    def update(self, done: int, state: str | Callable[[], str], share: float | None = None) -> None:
        """Show that `done` samples are through, and what the model is like now.

        A `state` that is to be asked for is asked only when it is time to show it.

        `share` is how much of the way that is: what they are of the total, if there is one.
        """
        if self._stream is None:
            return
        if self._total is not None:
            share = done / self._total
        now = time.perf_counter()
        mark = _Mark(now, done, share)
        self._follow(mark)
        if self._is_due(mark):
            self._show(f"{self._line(mark)}  {state if isinstance(state, str) else state()}", mark)

    def _follow(self, mark: _Mark) -> None:
        self._marks.append(mark)
        while len(self._marks) > 2 and mark.time - self._marks[1].time > RECENT:
            self._marks.popleft()

    def _is_due(self, mark: _Mark) -> bool:
        last = self._started - DRAWN if self._drawn is None else self._drawn
        waited = mark.time - last
        if self._terminal:
            return waited >= DRAWN or mark.share == 1.0
        return waited >= LINES or int(10 * (mark.share or 0.0)) > self._tenths

    def _show(self, line: str, mark: _Mark) -> None:
        if self._stream is None:
            return
        if self._terminal:
            self._stream.write("\r" + self._bar(line, mark.share))
            self._stream.flush()
        else:
            print(f"{self._label:<14}{line}", file=self._stream, flush=True)
        self._tenths, self._drawn = int(10 * (mark.share or 0.0)), mark.time

    def _line(self, mark: _Mark) -> str:
        """Return the place, the rate, and the time that is left or else was taken."""
        before = self._marks[0]
        elapsed = max(mark.time - before.time, 1e-9)
        if self._total is not None:
            place = f"{mark.done:>{len(str(self._total))}}/{self._total}"
        else:
            place = f"{mark.done:,}".rjust(10)
        pace = f"{place} {(mark.done - before.done) / elapsed:6.0f}/s"
        if mark.share is None or mark.share <= (before.share or 0.0):
            return f"{pace} {_clock(mark.time - self._started)}"
        left = elapsed * (1 - mark.share) / (mark.share - (before.share or 0.0))
        return f"{pace} {_clock(left)} left"

    def _bar(self, line: str, share: float | None) -> str:
        """Return label, bar and line in one line of the terminal, its last column left free."""
        columns = _columns()
        if share is None:
            return f"{self._label:<14}{line}"[:columns].ljust(columns)
        room = max(columns - 14 - len(line) - 3, 4)
        filled = int(room * share)
        bar = "#" * filled + "." * (room - filled)
        return f"{self._label:<14}[{bar}] {line}"[:columns].ljust(columns)


def _columns() -> int:
    return shutil.get_terminal_size().columns - 1


def _clock(seconds: float) -> str:
    """Return minutes and seconds, or hours before them.

    >>> _clock(3.4), _clock(3661)
    ('  0:03', '1:01:01')
    """
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes:3d}:{rest:02d}"
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
