"""A retuning under way, a search or a birth, and the samples that a new group has to learn."""

from __future__ import annotations

import numpy as np

from pogp.arrays import Indices
from pogp.online.birth import Birth, Result
from pogp.online.experts import Experts
from pogp.online.group import BESIDES, Group
from pogp.online.retuning import Findings, Search
from pogp.online.rows import REST, Mask, Rows, Samples
from pogp.slices import CALLS, Sliced, finished

CATCH_UP = 3
"""Samples learned per sample of the stream, once there is a group, or more if it is small."""


class Pending:
    """Goes on with each sample of the stream, until the result is up to date."""

    def __init__(self, plan: Search | Birth) -> None:
        self.plan = plan
        self._work = Sliced[Findings | Result](plan.run())
        self._result: Result | None = None
        self._at = plan.began

    @property
    def nbytes(self) -> int:
        """Bytes held: what it works from, and the group that is there."""
        group = None if self._result is None else self._result.group
        return self.plan.nbytes + (0 if group is None else group.nbytes)

    def knows(self, columns: Indices) -> bool:
        """Return whether these columns moved in the samples that it works from."""
        if isinstance(self.plan, Birth):
            return self.plan.findings.scales.know(columns)
        return bool((np.ptp(self.plan.samples.X[:, columns], axis=0) > 0).all())

    def step(self, rows: Rows, position: int) -> Findings | Result | None:
        """Go on, once the samples before `position` are known; return what is found, when it is.

        What is done at a position depends on the stream alone.
        """
        if not self._work.done:
            self._work.advance(self.plan.quota)
            return None  # what is done with the result, if there is one, is work for the next step
        if self._result is None:
            found = self._work.result()
            if isinstance(found, Findings):
                return found
            self._result = found
        group = self._result.group
        if group is None:
            return self._result
        count = max(1, (self.plan.quota - 2 * CALLS) // (BESIDES + group.ticks))
        until = min(self._at + max(CATCH_UP, count), position)
        known = rows.latest(self._at - REST, until)
        new = known.positions >= self._at
        if not _taught(group, known.where(new), known.still[new]):
            self._result.group = None
        if new.any():
            self._teach_lines(known, self._at)
            self._at = int(known.positions[-1]) + 1
        return self._result if self._at >= position else None

    def _teach_lines(self, samples: Samples, first: int) -> None:
        """Have the linear models learn the samples from a position on, given some before them."""
        result = self._result
        if result is None or not result.linear:
            return
        samples = samples.where(~samples.odd)  # neither learned nor known as the last target
        features, targets = Experts.shown(result.scales, samples)
        new = np.flatnonzero(samples.positions[1:] >= first).tolist()
        for line, H in zip(result.linear, features, strict=True):
            for i in new:
                line.learn(H[i], targets[i])

    def replay(self, rows: Rows, position: int) -> None:
        """Come to where a restored model was: all that was done until `position`."""
        for now in range(self.plan.began + 1, position + 1):
            self.step(rows, now)


def _taught(group: Group, samples: Samples, still: Mask) -> bool:
    """Have a group learn samples; return False if it cannot, and is of no more use."""
    try:
        finished(group.teach(samples, still, scored=True))
    except FloatingPointError:
        return False
    return True
