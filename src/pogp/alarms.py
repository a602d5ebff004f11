"""Alarms with a false-alarm rate that is calibrated on the stream itself."""

from bisect import bisect_left, insort
from collections import deque
from heapq import heappush, heapreplace
from math import isfinite
from typing import Any, Self

from pogp import validation

RANKS = 50
"""False alarms that one window is expected to hold: the rate is met to about 1/√50 = 14 %."""
LARGEST_RATE = 0.1
"""At rates beyond this, alarms in consecutive rows are common by chance and mean no fault."""


class Alarm:
    """Decide which surprises are alarms, so that ordinary rows raise them at a given rate.

    A surprise is any number that is larger for stranger rows. It is an alarm if it ranks high
    enough among those in a window of the latest 50/`rate` rows: if its conformal p-value,
    (1 + how many in the window are at least as large) / (1 + how many there are), is small enough.

    Faults do not enter the window, so that they do not raise the threshold: alarms in consecutive
    rows, and surprises of more than twice the largest in the window. Before an alarm is possible, a
    single surprise of this size does not enter either, once there are 50 in the window.

    By chance a share (1 − `rate`)² of false alarms stand alone, so the p-value has to be at most
    `rate`(1 − `rate`)². If ordinary rows are exchangeable, the probability of an alarm is then
    about `rate`, for whatever distribution the surprises have. No alarm is possible before there
    are about 1/`rate` rows. At rates above 0.1 all rows enter the window.

    Of the window only those surprises are kept that can still be among its largest, a few hundred.

    Parameters
    ----------
    rate
        The share of ordinary rows that raise a false alarm, between 0 and 1.

    >>> alarm = Alarm(rate=0.2)
    >>> [alarm.learn(surprise) for surprise in [0.5, 1.2, 0.1, 0.8, 0.3, 1.0, 0.4, 3.0]]
    [False, False, False, False, False, False, False, True]
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
        self._pending: float | None = None  # the latest row, if it is an alarm that began with it
        self._kept: deque[tuple[int, float]] = deque()  # by the position of their entry
        self._sorted: list[float] = []  # the same surprises

    def _allowed(self, count: int) -> int:
        """Return how high a surprise must rank among `count` others to be an alarm."""
        alone = 1.0 if self.rate > LARGEST_RATE else (1 - self.rate) ** 2
        return int(self.rate * alone * (count + 1) * (1 + 1e-12))

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
        far = self.count > 0 and surprise > 2 * self._sorted[-1]
        # a single fault while no alarm is possible; a second one in a row may be a change
        early = far and not alarm and self.count >= RANKS and not self._ringing
        if (alarm or early) and self.rate <= LARGEST_RATE:
            self._pending = None if far or self._ringing else surprise
        else:
            if self._pending is not None:
                self._enter(self._pending)
                self._pending = None
            self._enter(surprise)
        self._ringing = alarm or early
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

    def state(self) -> dict[str, Any]:
        """Return the state, as JSON can hold it."""
        return {
            "rate": self.rate,
            "count": self.count,
            "ringing": self._ringing,
            "pending": self._pending,
            "kept": [list(entry) for entry in self._kept],
        }

    @classmethod
    def of(cls, state: dict[str, Any]) -> Self:
        """Return the alarm that `state` described, which continues where that one was."""
        try:
            alarm = cls(state["rate"])
            alarm.count = validation.count("count", state["count"], 0)
            alarm._ringing = bool(state["ringing"])
            pending = state["pending"]
            alarm._pending = None if pending is None else float(pending)
            alarm._kept = deque((int(at), float(surprise)) for at, surprise in state["kept"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not the state of an alarm: {error!r}") from error
        alarm._sorted = sorted(surprise for _, surprise in alarm._kept)
        if len(alarm._kept) < min(alarm.count, alarm._ranks):
            raise ValueError(f"not the state of an alarm: {len(alarm._kept)} surprises kept")
        return alarm
