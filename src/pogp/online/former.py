"""What led before a stream changed, kept in case it changes back; and whether it did change.

A machine stands and runs again, makes now this and now that, or a sensor is away for a while. What
leads learns the new targets and loses the old ones. So a copy is kept when the stream seems to
change, as it was before, and what was kept at the change before that races again: it is known at
once whether the stream is back. If after a while most samples are still far from what is predicted,
by the errors of before, the function is another one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pogp.arrays import Array
from pogp.online.group import GUARD, Group

CHANGING, SETTLED = 0.3, 0.1
"""How often samples are far off where a stream seems to change, as after two in a row, and below
which it has settled."""
WATCHED = 30
"""Samples after which it is decided whether a stream changed."""
EVERY, RATE = 8, 0.2
"""Every so many samples the usual variance is updated, and by which share."""
NUMBERS = ("unsettled", "watched", "far")


class Former:
    """The group that led before the last change, and whether the stream is still unsettled."""

    def __init__(self, outputs: int) -> None:
        self.group: Group | None = None
        self.unsettled = False
        self.usual = np.zeros(outputs)  # the variance that is predicted when nothing changes
        self.watched = self.far = 0  # samples that are yet to be watched, and those far off so far

    def before(self, leading: Group | None, strange: float, back: bool) -> Group | None:
        """Return a copy of what leads if a change begins: samples are far off all of a sudden.

        `strange` is the share of samples that were far off lately. If what is kept explains the
        first of them, the stream is `back` where it was.
        """
        begins = not self.unsettled and (back or strange > CHANGING)
        self.unsettled = begins or strange > (SETTLED if self.unsettled else CHANGING)
        return leading.copy() if begins and leading is not None else None

    def explains(self, x: Array, y: Array) -> bool:
        """Whether what is kept predicts targets y at a raw input x."""
        if self.group is None:
            return False
        means, variances, _ = self.group.predict(x[None])
        errors = np.abs(y - means[:, 0]) / np.sqrt(variances[:, 0])
        return bool(errors.max(axis=1).min() < GUARD)

    def exchanged(self, before: Group, score: Array, after: Array) -> Group | None:
        """Keep what led before; return what was kept until now, with scores as those of others."""
        woken, self.group, before.kept = self.group, before, True
        self.watched, self.far = WATCHED, 0
        if woken is not None:
            # all members together have the weight of the best, which is yet to be surpassed
            woken.scores[...] = score[:, None] - np.log(woken.members)
            woken.after[...] = after[:, None]
        return woken

    def moved(self, y: Array, record: Array, seen: int) -> bool:
        """Take note of a sample and its record; return whether the function is found changed."""
        outputs = len(y)
        if self.watched:
            self.far += bool(((y - record[:outputs]) ** 2 > GUARD**2 * self.usual).any())
            self.watched -= 1
            return self.watched == 0 and 2 * self.far > WATCHED
        if seen % EVERY == 0 and not self.unsettled:
            variance = record[outputs : 2 * outputs]
            self.usual += (RATE if self.usual.any() else 1.0) * (variance - self.usual)
        return False

    def state(self) -> dict[str, Any]:
        """Return the state, as arrays and numbers."""
        told = {"usual": self.usual.copy()} if self.usual.any() else {}
        numbers = {name: getattr(self, name) for name in NUMBERS if getattr(self, name)}
        return {**told, **numbers, **({} if self.group is None else self.group.state())}

    def restore(self, state: dict[str, Any], max_size: int) -> None:
        """Take over what `state` returned; older files have none."""
        usual = np.array(state.get("usual", 0.0 * self.usual), dtype=np.float64)
        if usual.shape != self.usual.shape or not (np.isfinite(usual) & (usual >= 0)).all():
            raise ValueError(f"usual variances must be {len(self.usual)} numbers >= 0, got {usual}")
        self.usual, self.unsettled = usual, bool(state.get("unsettled", False))
        self.watched, self.far = int(state.get("watched", 0)), int(state.get("far", 0))
        if not 0 <= self.far <= WATCHED - self.watched <= WATCHED:
            raise ValueError(f"{self.far} samples far off, {self.watched} of {WATCHED} to watch")
        group = "family" in state
        self.group = Group.restored(state, len(usual), max_size) if group else None
