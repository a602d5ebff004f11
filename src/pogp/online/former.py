"""What led before a stream changed, kept in case it changes back.

A machine stands and runs again, makes now this and now that, or a sensor is away for a while. What
leads learns the new targets and loses the old ones. So a copy is kept when the stream seems to
change, as it was before, and what was kept at the change before that races again: it is known at
once whether the stream is back.
"""

from __future__ import annotations

from pogp.arrays import Array
from pogp.online.group import Group

CHANGING, SETTLED = 0.3, 0.1
"""How often samples are far off where a stream seems to change, as after two in a row, and below
which it has settled."""


class Former:
    """The group that led before the last change, and whether the stream is still unsettled."""

    def __init__(self) -> None:
        self.group: Group | None = None
        self.unsettled = False

    def before(self, leading: Group | None, strange: float) -> Group | None:
        """Return a copy of what leads if a change begins: samples are far off all of a sudden.

        `strange` is the share of samples that were far off lately.
        """
        begins = not self.unsettled and strange > CHANGING
        self.unsettled = strange > (SETTLED if self.unsettled else CHANGING)
        return leading.copy() if begins and leading is not None else None

    def exchanged(self, before: Group, score: Array, after: Array) -> Group | None:
        """Keep what led before; return what was kept until now, with scores as those of others."""
        woken, self.group, before.kept = self.group, before, True
        if woken is not None:
            woken.scores[...], woken.after[...] = score[:, None], after[:, None]
        return woken
