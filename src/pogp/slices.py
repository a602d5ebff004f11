"""Long work in slices, some of which run with each sample of a stream, so that no sample waits.

The work is a generator that returns its result. Before each slice of a tenth of a millisecond or
two it yields the number of *ticks* of the slice. A tick is the time to update one number of a
matrix, about a nanosecond. Ticks are computed, not measured, so that the position in the stream at
which the work is done depends on the stream alone.
"""

from collections.abc import Generator
from typing import Generic, TypeAlias, TypeVar

R = TypeVar("R")
Work: TypeAlias = Generator[int, None, R]
PRODUCTS_PER_TICK = 12
"""Multiplications of a matrix product in one tick."""
ALLOCATION_TICKS = 6
"""Ticks to allocate and free one number of new memory."""
CALL_TICKS = 100_000
"""Ticks of a dozen operations on small arrays."""
SLICE = 25_000
"""The least ticks of a slice."""
STEP_TICKS, PAIR_TICKS = 40_000, 20
"""Ticks of an ordinary step of a stream, and those for each pair of inputs."""
STEPS_PER_SAMPLE = 8
"""The work done with one sample takes at most as long as so many ordinary steps."""


def quota(inputs: int, points: int) -> int:
    """Return the ticks of work per sample, for a number of inputs and points.

    Only half of the points' share counts, because there may be fewer most of the time.
    """
    return STEPS_PER_SAMPLE * (STEP_TICKS + PAIR_TICKS * inputs**2 + points**2 // 2)


def finished(work: Work[R]) -> R:
    """Do all the work at once, and return its result."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: R = end.value
            return result


class Sliced(Generic[R]):
    """Work that advances by a given number of ticks."""

    def __init__(self, work: Work[R]) -> None:
        self._work = work
        self._result: list[R] = []
        self._error: BaseException | None = None
        self._next = self._left = 0

    @property
    def done(self) -> bool:
        """Whether the work has ended, with a result or an error."""
        return bool(self._result) or self._error is not None

    def advance(self, ticks: int) -> None:
        """Do work for so many ticks; if the work has failed, raise its error.

        A slice with more ticks is done alone, and the excess is subtracted from the next calls.
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
        """Finish the work, and return its result."""
        while not self.done:
            self.advance(1 << 60)
        self.advance(0)
        return self._result[0]
