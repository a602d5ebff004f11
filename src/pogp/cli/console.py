"""The terminal of a command: notes, progress, unusable rows, and signals to stop."""

import codecs
import io
import os
import shutil
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from operator import itemgetter
from types import FrameType
from typing import Any, NamedTuple, Self, TextIO

from pogp.arrays import Indices
from pogp.cli.tables.table import Batch, NotNumbersError, Refusal, Table
from pogp.report.markup import ESCAPES

DRAWN = 0.1
"""Seconds between two updates of the bar."""
RECENT = 15.0
"""Seconds over which the rate is measured: the first rows, with their tuning, are slower."""
LINES = 30.0
"""Seconds after which a line is printed in any case, where there is no terminal."""
LISTED = 10
"""Unusable rows that are reported one by one; further ones are counted."""
HOPELESS = 100
"""Unusable rows without a single usable one after which a command gives up."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STOPPING = b"\npogp: stopping; repeat to stop at once\n"
PLAIN = str.maketrans(
    {"µ": "u", "×": "x", "−": "-", "─": "-", "…": "...", "≥": ">=", "≤": "<=", "√": "sqrt"}
    | dict(zip("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789", strict=True))
)
"""Signs that some terminals cannot show, in ASCII."""


def say(text: str, stream: TextIO) -> None:
    """Print a text whose names may come from a file: control characters are shown, not sent."""
    print(text.translate(ESCAPES), file=stream, flush=True)


def take_any_text(stream: TextIO) -> None:
    """Let a stream write characters that its encoding does not have as similar ones or escapes."""
    codecs.register_error("pogp", _similar)
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="pogp")


def _similar(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    power = "^" if text[0] in "⁻⁰¹²³⁴⁵⁶⁷⁸⁹" else ""
    plain = text.translate(PLAIN).encode("ascii", "backslashreplace").decode()
    return power + plain, error.end


class Console:
    """Where notes and progress go; nowhere if `stream` is None."""

    def __init__(self, stream: TextIO | None) -> None:
        self.stream = stream

    def note(self, text: str) -> None:
        """Print a line."""
        if self.stream is None:
            return
        if self.stream.isatty():  # over the bar, which will come again below
            self.stream.write("\r")
            text = text.ljust(_columns())
        say(text, self.stream)

    def progress(
        self, label: str, total: int | None = None, *, done: int = 0, share: float = 0.0
    ) -> "Progress":
        """Return a progress display for `total` samples, to be entered with `with`.

        Without a total it shows the number of samples, and their share if `update` is given one.
        `done` and `share` are where it begins.
        """
        return Progress(label.translate(ESCAPES), total, self.stream, done, share)


class _Mark(NamedTuple):
    """The progress at a time."""

    time: float
    done: int
    share: float | None


class Progress:
    """A bar on a terminal; elsewhere a line for each tenth, and every half minute."""

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

    def __exit__(self, *error: object) -> None:
        if self._stream is not None and self._terminal and self._drawn is not None:
            self._stream.write("\n")

    def update(self, done: int, state: str | Callable[[], str], share: float | None = None) -> None:
        """Show the number of samples done and the state of the model.

        A `state` that is a function is called only when it is shown. `share` is the share of all
        samples that are done; with a total it is computed.
        """
        if self._stream is None:
            return
        if self._total is not None:
            share = done / self._total
        mark = _Mark(time.perf_counter(), done, share)
        self._marks.append(mark)
        while len(self._marks) > 2 and mark.time - self._marks[1].time > RECENT:
            self._marks.popleft()
        if self._is_due(mark):
            self._show(f"{self._line(mark)}  {state if isinstance(state, str) else state()}", mark)

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


class BadRowError(ValueError):
    """An unusable row, where every row has to be usable."""


class BadRows:
    """Reports the rows of a table that cannot be used, and counts them."""

    def __init__(
        self, table: Table, console: Console, fatal: bool, instead: str, used: int = 0
    ) -> None:
        self._table = table
        self._console = console
        self.fatal = fatal  # whether the first one ends the command
        self._instead = instead  # what is done about such a row
        self._first: Refusal | None = None
        self._always = set(table.names)  # columns at fault in each of the rows so far
        self._waiting: list[str] = []  # until a row can be used: if none can, one message will do
        self.refused = 0
        self.ignored = 0
        self.filled = 0
        self.first_filled = 0  # its line
        self.used = used

    def before_fatal(self, batch: Batch) -> Batch:
        """Return the rows to process: where a refusal is fatal, those before it."""
        return batch.before_refusal() if self.fatal else batch

    def report(self, batch: Batch, ignored: Sequence[Refusal] = ()) -> None:
        """Report the refusals in a batch; BadRowError at the first if that is fatal.

        `ignored` are the rows that were used, and of which cells were ignored. All are reported
        in the order of their lines.
        """
        found = [(refusal.line, refusal, self._refuse) for refusal in batch.refusals]
        found += [(refusal.line, refusal, self._ignore) for refusal in ignored]
        for _, refusal, count in sorted(found, key=itemgetter(0)):
            count(refusal)
        self.used += batch.count
        while self.used and self._waiting:
            self._console.note(f"pogp: {self._waiting.pop(0)}")

    def _refuse(self, refusal: Refusal) -> None:
        if self.fatal:
            raise BadRowError(self._place(refusal))
        if self.refused < LISTED:
            self._waiting.append(f"{self._place(refusal)}; {self._instead}")
        elif self.refused == LISTED:
            self._waiting.append("more such rows are counted, not listed")
        self.refused += 1
        self._first = self._first or refusal
        self._always &= set(refusal.columns)

    def _ignore(self, refusal: Refusal) -> None:
        if self.ignored < LISTED:
            self._waiting.append(f"{self._place(refusal)}; taken as missing")
        elif self.ignored == LISTED:
            self._waiting.append("more such cells are not listed")
        self.ignored += 1

    def count_filled(self, lines: Indices) -> None:
        """Count rows, by their lines, whose missing inputs were filled."""
        self.first_filled = int(lines[0]) if len(lines) and not self.filled else self.first_filled
        self.filled += len(lines)

    def _place(self, refusal: Refusal) -> str:
        return f"{self._table.name}, {self._table.unit} {refusal.line}: {refusal.reason}"

    def require_use(self, at_the_end: bool = False) -> None:
        """Raise ValueError if no row can be used, which may show early."""
        if self.used or (self.refused < HOPELESS and not at_the_end):
            return
        if self._first is None:
            raise ValueError(f"there are no rows in {self._table.name}")
        if self._always:
            columns = [name for name in self._table.names if name in self._always]
            place = f"{self._table.unit} {self._first.line}: {self._first.reason}"
            raise NotNumbersError(self._table.name, columns, place)
        raise ValueError(f"no row can be used; {self._place(self._first)}")


class Interruption:
    """In a `with` block the first signal is recorded, and the second one ends the program.

    Signals that were ignored stay ignored, as `nohup` and background jobs of a shell expect.
    """

    waits = True
    """Rows that are being learned are learned whole (`Uninterrupted`)."""

    def __init__(self) -> None:
        self.received: int | None = None
        self._before: dict[int, Any] = {}

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        if self.received is not None:
            raise KeyboardInterrupt
        self.received = number
        os.write(2, STOPPING)  # `print` may be at work already, and cannot be entered twice

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


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
