"""Alarms with a false-alarm rate that is calibrated on the stream itself."""

from bisect import bisect_left, insort
from collections import deque
from heapq import heappush, heapreplace
from math import isfinite
from typing import Any, Self

from pogp import validation

RANKS = 50
"""False alarms that one window is expected to hold: the rate is met to about 1/√50 = 14 %."""


class Alarm:
    """Decide which surprises are alarms, so that ordinary rows raise them at a given rate.

    A surprise is any number that is larger for stranger rows. It is an alarm if it ranks among the
    largest `rate` of the surprises in a window of the latest 50/`rate` rows: its conformal p-value,
    (1 + how many in the window are at least as large) / (1 + how many there are), is at most
    `rate`. If the new row and those in the window are exchangeable, as they are when nothing has
    changed, the probability of an alarm is at most `rate`, and at least `rate` − 1/(n + 1), for
    whatever distribution the surprises have. No alarm is possible in the first 1/`rate` − 1 rows.

    An alarm that lasts enters the window once, with its first row: a long fault does not raise the
    threshold for the next one. Of the window only those surprises are kept that can still be among
    its largest, a few hundred.

    Parameters
    ----------
    rate
        The share of ordinary rows that raise a false alarm, between 0 and 1.

    >>> alarm = Alarm(rate=0.1)
    >>> [alarm.learn(surprise) for surprise in [0.5, 1.2, 0.1, 0.8, 0.3, 1.0, 0.4, 0.9, 0.2, 3.0]]
    [False, False, False, False, False, False, False, False, False, True]
    """

    def __init__(self, rate: float = 0.01) -> None:
        rate = validation.finite("rate", rate)
        if not 0 < rate < 1:
            raise ValueError(f"rate must be between 0 and 1, got {rate!r}")
        self.rate = rate
        self.window = -int(-RANKS // rate)
        self.count = 0  # surprises that entered the window so far
        self._ranks = self._allowed(self.window)
        self._ringing = False
        self._kept: deque[tuple[int, float]] = deque()  # by the position of their entry
        self._sorted: list[float] = []  # the same surprises

    def _allowed(self, count: int) -> int:
        """Return how high a surprise must rank among `count` others to be an alarm."""
        return int(self.rate * (count + 1) * (1 + 1e-12))

    @property
    def threshold(self) -> float:
        """The surprise that has to be exceeded now; infinite while no alarm is possible."""
        allowed = self._allowed(min(self.count, self.window))
        return self._sorted[-allowed] if allowed else float("inf")

    def learn(self, surprise: float) -> bool:
        """Return whether a surprise is an alarm, and enter it into the window."""
        if not isfinite(surprise):
            raise ValueError(f"surprise must be a finite number, got {surprise!r}")
        alarm = surprise > self.threshold
        if not (alarm and self._ringing):
            self._enter(surprise)
        self._ringing = alarm
        return alarm

    def _enter(self, surprise: float) -> None:
        self._kept.append((self.count, surprise))
        insort(self._sorted, surprise)
        self.count += 1
        if self._kept[0][0] < self.count - self.window:
            _, gone = self._kept.popleft()
            del self._sorted[bisect_left(self._sorted, gone)]
        if len(self._kept) > 16 * self._ranks:
            self._prune()

    def _prune(self) -> None:
        """Drop surprises that will leave the window before they can be among its largest."""
        largest: list[float] = []
        kept: deque[tuple[int, float]] = deque()
        for position, surprise in reversed(self._kept):
            if len(largest) < self._ranks:
                heappush(largest, surprise)
            elif surprise > largest[0]:
                heapreplace(largest, surprise)
            else:
                continue
            kept.appendleft((position, surprise))
        self._kept, self._sorted = kept, sorted(surprise for _, surprise in kept)

    def memory(self) -> dict[str, Any]:
        """Return the state, as JSON can hold it."""
        return {
            "rate": self.rate,
            "count": self.count,
            "ringing": self._ringing,
            "kept": [list(entry) for entry in self._kept],
        }

    @classmethod
    def of(cls, memory: dict[str, Any]) -> Self:
        """Return the alarm that `memory` described; it goes on as the one described would."""
        try:
            alarm = cls(memory["rate"])
            alarm.count = validation.count("count", memory["count"], 0)
            alarm._ringing = bool(memory["ringing"])
            alarm._kept = deque((int(at), float(surprise)) for at, surprise in memory["kept"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not the memory of an alarm: {error!r}") from error
        alarm._sorted = sorted(surprise for _, surprise in alarm._kept)
        if len(alarm._kept) < min(alarm.count, alarm._ranks):
            raise ValueError(f"not the memory of an alarm: {len(alarm._kept)} surprises kept")
        return alarm
