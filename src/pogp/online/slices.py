"""Long work in slices: some of it in each step of the stream, so that no step waits for all.

The work is an ordinary function that calls `tick()` every few milliseconds. It runs in a thread of
its own, but only while `advance` waits for it: never beside anything else. What it computes
therefore depends on nothing but its arguments, and the stream knows at each sample how far it is.
"""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

R = TypeVar("R")
Tick = Callable[[], None]


class _Cancelled(BaseException):
    """The result is no longer wanted."""


class Sliced(Generic[R]):
    """Work that goes on while somebody waits for it."""

    def __init__(self, work: Callable[[Tick], R]) -> None:
        self._turn, self._pause = threading.Semaphore(0), threading.Semaphore(0)
        self._left, self._cancelled = 0, False
        self.ticks = 0
        self.done = False
        self._result: R | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)

    def advance(self, ticks: int) -> None:
        """Let the work go on for so many ticks, or to its end."""
        if self.done or ticks <= 0:
            return
        self._left = ticks
        if not self._thread.ident:
            self._thread.start()
        else:
            self._turn.release()
        self._pause.acquire()
        if self._error is not None:
            raise self._error

    def result(self) -> R:
        """Return what the work came to, going on until it is there."""
        while not self.done:
            self.advance(1 << 30)
        return self._result  # type: ignore[return-value]

    def cancel(self) -> None:
        """Give the work up; its thread ends."""
        if self._thread.ident and not self.done:
            self._cancelled = True
            self._turn.release()

    def __del__(self) -> None:
        self.cancel()

    def _run(self, work: Callable[[Tick], R]) -> None:
        try:
            self._result = work(self._tick)
        except _Cancelled:
            return
        except BaseException as error:  # handed to who waits
            self._error = error
        self.done = True
        self._pause.release()

    def _tick(self) -> None:
        self.ticks += 1
        self._left -= 1
        if self._left <= 0:
            self._pause.release()
            self._turn.acquire()
            if self._cancelled:
                raise _Cancelled
