"""Changes of state that Ctrl-C does not interrupt."""

import threading
from contextlib import AbstractContextManager
from types import FrameType, TracebackType
from typing import Any, Self, TypeAlias

try:  # what `signal` wraps: its enumerations take longer than it takes to learn a sample
    import _signal as signal  # type: ignore[import-not-found]
except ImportError:  # not CPython
    import signal

INTERRUPT = int(signal.SIGINT)
Lock: TypeAlias = AbstractContextManager[object]
"""Held while a state changes, or is read to predict."""


class Uninterrupted:
    """A context in which Ctrl-C is noted and takes effect at the end.

    Long work looks at `wanted` between its steps, undoes what it has done and leaves. A handler
    whose attribute `waits` is true only takes note of a signal: the work is then done first. Only
    the main thread is ever interrupted; in others nothing has to be done.
    """

    __slots__ = ("_came", "_frame", "_handler", "wanted")

    def __init__(self) -> None:
        self.wanted = self._came = False
        self._handler: Any = None
        self._frame: FrameType | None = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(INTERRUPT)
            if callable(handler):
                self._handler = handler
                signal.signal(INTERRUPT, self._note)
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._came, self._frame = True, frame
        self.wanted = not getattr(self._handler, "waits", False)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        handler, self._handler = self._handler, None
        if handler is not None:
            signal.signal(INTERRUPT, handler)
            if self._came:
                handler(INTERRUPT, self._frame)
