"""Long work in slices: some of it in each step of the stream, so that no step waits for all.

The work is an ordinary function that calls `tick()` every few milliseconds. It runs in a thread of
its own, but only while `advance` waits for it: never beside anything else. What it computes
therefore depends on nothing but its arguments, and the stream knows at each sample how far it is.
"""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

R = TypeVar("R")
Tick = Callable[..., None]
"""Called with how many ticks the work since the last call counts for, one unless told."""


class _Cancelled(BaseException):
    """The result is no longer wanted."""


class _Run(Generic[R]):
    """The work and its thread, which knows nothing of the `Sliced` that waits for it.

    So the latter can be collected while the work pauses, and then ends the thread.
    """

    def __init__(self, work: Callable[[Tick], R]) -> None:
        self.turn, self.pause = threading.Semaphore(0), threading.Semaphore(0)
        self.left, self.ticks = 0, 0
        self.done = self.cancelled = False
        self.result: R | None = None
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, args=(work,), daemon=True)

    def advance(self, ticks: int) -> None:
        self.left = ticks
        if not self.thread.ident:
            self.thread.start()
        else:
            self.turn.release()
        self.pause.acquire()

    def _run(self, work: Callable[[Tick], R]) -> None:
        try:
            self.result = work(self._tick)
        except _Cancelled:
            return
        except BaseException as error:  # handed to who waits
            self.error = error
        self.done = True
        self.pause.release()

    def _tick(self, count: int = 1) -> None:
        self.ticks += count
        self.left -= count
        if self.left <= 0:
            self.pause.release()
            self.turn.acquire()
            if self.cancelled:
                raise _Cancelled


class Sliced(Generic[R]):
    """Work that goes on while somebody waits for it."""

    def __init__(self, work: Callable[[Tick], R]) -> None:
        self._work = work
        self._run = _Run(work)

    @property
    def done(self) -> bool:
        """Whether the work came to its end."""
        return self._run.done

    @property
    def ticks(self) -> int:
        """How far the work is."""
        return self._run.ticks

    def advance(self, ticks: int) -> None:
        """Let the work go on for so many ticks, or to its end; its error is raised here."""
        run = self._run
        if not run.done and ticks > 0:
            if run.thread.ident and not run.thread.is_alive():
                # a process that was forked has no threads: again, up to here
                self._run = _Run(self._work)
                ticks += run.ticks
            self._run.advance(ticks)
        if self._run.error is not None:
            raise self._run.error

    def result(self) -> R:
        """Return what the work came to, going on until it is there."""
        while not self.done:
            self.advance(1 << 30)
        self.advance(0)
        return self._run.result  # type: ignore[return-value]

    def cancel(self) -> None:
        """Give the work up; its thread ends."""
        run = self._run
        if run.thread.ident and not run.done and not run.cancelled:
            run.cancelled = True
            run.turn.release()

    def __del__(self) -> None:
        self.cancel()
