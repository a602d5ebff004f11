"""Jumps of inputs: rare steps, such as those of a set-point or a switch, and the samples after."""

from __future__ import annotations

from typing import Any

import numpy as np

from pogp.arrays import Array
from pogp.online import arithmetic_core
from pogp.online.mixture import DISCOUNTS
from pogp.online.samples import Mask

MEMORY = round(1.0 / (1.0 - float(DISCOUNTS[0])))
"""The scores with the shortest memory remember so many samples. A step of an input is a jump if it
is more than so many times the average step of its column: steps of equal size are jumps if they are
rarer. So many samples, beginning with the jump, belong to it."""
WINDOW = 1000
"""The average is that of about so many steps. A step counts for at most so many times the average,
so that an absurd value hardly changes it."""
SHARE = MEMORY**-0.5
"""The evidence of a sample after a jump. The errors after a jump are alike, so that `MEMORY`
samples count for the square root of their number. The sample of the jump itself counts in full."""
EVIDENCE = ((1.0, DISCOUNTS), (SHARE, DISCOUNTS**SHARE))
"""The evidence, and the discounts of the scores, at a jump and after it."""


class InputJumps:
    """Finds which samples belong to a jump of an input.

    A target that follows an input with a delay is predicted well between jumps by a function of the
    inputs, and not after them. The scores of the members remember a hundred samples, and jumps may
    be rarer, so that members have other scores for these samples.

    Attributes
    ----------
    last, average
        The last inputs, and the average steps, (p,).
    count
        The number of samples.
    left
        How many of the next samples belong to the last jump.
    """

    def __init__(self, dimension: int) -> None:
        self.last, self.average = np.zeros((2, dimension))
        self.count = self.left = 0
        self._arithmetic = arithmetic_core()

    def includes(self, X: Array) -> Mask:
        """Return which rows (n, p) would belong to a jump if they were the next sample."""
        if self.count < MEMORY or self.left > 0:
            return np.full(len(X), self.left > 0)
        return np.asarray((np.abs(X - self.last) > MEMORY * self.average).any(axis=1))

    @property
    def evidence(self) -> tuple[float, Array]:
        """The evidence of the last sample, which belongs to a jump, and the discounts."""
        return EVIDENCE[self.left < MEMORY - 1]

    def learn(self, x: Array) -> bool:
        """Learn the inputs (p,) of a sample; return whether it belongs to a jump."""
        if self.count == 0:
            self.last[...], self.count = x, 1
            return False
        share = 1.0 / min(self.count, WINDOW)
        steps = (x, self.last, self.average)
        jumped = self._arithmetic.average_steps(*steps, share, MEMORY, WINDOW)
        jumped = jumped and self.count >= MEMORY  # the first averages are of few steps
        included = jumped or self.left > 0
        self.left = MEMORY - 1 if jumped else max(self.left - 1, 0)
        self.count += 1
        return bool(included)

    def join(self, other: InputJumps) -> None:
        """Add the steps of another stream, as if it came after this one."""
        total = self.count + other.count
        self.average = (self.count * self.average + other.count * other.average) / max(total, 1)
        self.last, self.left, self.count = other.last.copy(), other.left, total

    def state(self) -> dict[str, Any]:
        """Return the state, as arrays and numbers."""
        steps = {"last": self.last.copy(), "average": self.average.copy()}
        return {**steps, "count": self.count, "left": self.left}

    def restore(self, state: dict[str, Any], latest: Array) -> None:
        """Restore what `state` returned; from an older file, the averages of the latest inputs."""
        if not state and len(latest) == 0:
            return
        if not state:
            steps = np.abs(np.diff(latest, axis=0)) if len(latest) > 1 else np.zeros_like(latest)
            state = {"last": latest[-1], "average": steps.mean(axis=0), "count": len(latest)}
        for name in ("last", "average"):
            value = np.array(state[name], dtype=np.float64)
            if value.shape != self.last.shape or not np.isfinite(value).all():
                raise ValueError(f"{name} of the steps of inputs must be {self.last.shape} numbers")
            setattr(self, name, value)
        self.count, self.left = int(state["count"]), int(state.get("left", 0))
        if not (self.average >= 0).all() or self.count < 0 or not 0 <= self.left < MEMORY:
            raise ValueError(
                f"average steps and numbers of samples must be >= 0, and fewer than {MEMORY} of "
                f"them left, got {self.average}, {self.count} and {self.left}"
            )
