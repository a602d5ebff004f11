"""Long work in slices: some of it in each step of a stream, so that no step waits for all.

The work is a generator. Before each slice, a tenth of a millisecond or two, it yields how many
*ticks* that counts for, and it returns its result. What it computes depends on nothing but its
arguments, and the stream knows at each sample how far it is.

A tick is what one number of a matrix takes that is updated, about a nanosecond.
"""

from collections.abc import Generator
from typing import Generic, TypeAlias, TypeVar

R = TypeVar("R")
Work: TypeAlias = Generator[int, None, R]
PRODUCTS = 12
"""Multiplications in a product of matrices that take a tick."""
FRESH = 6
"""Ticks that a number in memory takes that nobody has used yet, and to give it back."""
CALLS = 100_000
"""Ticks of a dozen operations on arrays, however small."""
SLICE = 25_000
"""Ticks that the smallest slice counts for."""
STEP, PAIR = 40_000, 20
"""Ticks of an ordinary step of a stream, and for each pair of inputs, beside those of points."""
ORDINARY = 8
"""A sample brings long work forward by no more than so many ordinary steps would take."""


def quota(inputs: int, points: int) -> int:
    """Return the ticks of work per sample of a stream of so many inputs and points.

    Of the points' share only half is counted: there may be fewer most of the time.
    """
    return ORDINARY * (STEP + PAIR * inputs**2 + points**2 // 2)


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
        self._next = self._left = 0

    @property
    def done(self) -> bool:
        """Whether the work came to its end."""
        return bool(self._result) or self._error is not None

    def advance(self, ticks: int) -> None:
        """Let the work go on for so many ticks, or to its end; its error is raised each time.

        A slice that counts for more is done alone, and the rest of it is owed.
        """
        self._left = min(self._left, 0) + ticks
        while not self.done and ticks and (self._next <= self._left or self._left == ticks):
            self._left -= self._next
            try:
                self._next = max(next(self._work), SLICE)
            except StopIteration as last:
                self._result = [last.value]
            except BaseException as error:
                self._error = error
        if self._error is not None:
            raise self._error

    def result(self) -> R:
        """Return what the work came to, going on until it is there."""
        while not self.done:
            self.advance(1 << 60)
        self.advance(0)
        return self._result[0]
