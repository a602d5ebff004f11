"""Long work in slices: some of it in each step of a stream, so that no step waits for all.

The work is a generator. It yields every millisecond or so how many *ticks* the work since the last
time counts for, and returns its result. What it computes depends on nothing but its arguments, and
the stream knows at each sample how far it is.
"""

from collections.abc import Generator
from typing import Generic, TypeAlias, TypeVar

R = TypeVar("R")
Work: TypeAlias = Generator[int, None, R]
LONG = 4
"""Ticks that a product of two matrices of M points counts for."""


def finished(work: Work[R]) -> R:
    """Return what some work comes to, done in one go."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: R = end.value
            return result


class Sliced(Generic[R]):
    """Work that goes on by as many ticks as it is told to."""

    def __init__(self, work: Work[R]) -> None:
        self._work = work
        self._result: list[R] = []
        self._error: BaseException | None = None
        self.ticks = 0

    @property
    def done(self) -> bool:
        """Whether the work came to its end."""
        return bool(self._result) or self._error is not None

    def advance(self, ticks: int) -> None:
        """Let the work go on for so many ticks, or to its end; its error is raised each time."""
        end = self.ticks + ticks
        while self.ticks < end and not self.done:
            try:
                self.ticks += next(self._work)
            except StopIteration as last:
                self._result = [last.value]
            except BaseException as error:
                self._error = error
        if self._error is not None:
            raise self._error

    def result(self) -> R:
        """Return what the work came to, going on until it is there."""
        while not self.done:
            self.advance(1 << 30)
        self.advance(0)
        return self._result[0]
