"""Work in progress: a search, the start of a group or a test, and the samples to catch up on."""

from __future__ import annotations

import numpy as np

from pogp.arrays import Indices
from pogp.online.group import TICKS_PER_SAMPLE
from pogp.online.group_start import GroupStart, NewGroup, try_learn
from pogp.online.relation import RelationTest, Verdict
from pogp.online.retuning import Search, SearchResult
from pogp.online.samples import STOPPED_AFTER, Samples, SampleStore
from pogp.online.simple_predictors import SimplePredictors
from pogp.slices import CALL_TICKS, Sliced, finished

CATCH_UP = 3
"""A new group catches up on at least so many samples with each sample of the stream."""


class PendingTuning:
    """Work that advances with each sample of the stream until its result is up to date."""

    def __init__(self, plan: Search | GroupStart | RelationTest) -> None:
        self.plan = plan
        self._work = Sliced[SearchResult | NewGroup | Verdict](plan.run())
        self._result: NewGroup | None = None
        self._position = plan.began  # of the next sample that the new group learns

    @property
    def nbytes(self) -> int:
        """Bytes held, by the plan and the new group."""
        group = None if self._result is None else self._result.group
        return self.plan.nbytes + (0 if group is None else group.nbytes)

    def uses(self, columns: Indices) -> bool:
        """Return whether all these columns vary in the samples of the plan."""
        if isinstance(self.plan, GroupStart):
            return self.plan.search_result.scales.vary(columns)
        return bool((np.ptp(self.plan.samples.X[:, columns], axis=0) > 0).all())

    def advance(
        self, samples: SampleStore, position: int
    ) -> SearchResult | NewGroup | Verdict | None:
        """Do the work of one sample, the last before `position`; return the result at the end.

        The work done at a position depends on the stream alone.
        """
        if not self._work.done:
            self._work.advance(self.plan.quota)
            return None  # the result is used with the next sample, to limit the time of this one
        if self._result is None:
            result = self._work.result()
            if not isinstance(result, NewGroup):
                return result
            self._result = result
        group = self._result.group
        if group is None:
            return self._result
        count = max(1, (self.plan.quota - 2 * CALL_TICKS) // (TICKS_PER_SAMPLE + group.ticks))
        until = min(self._position + max(CATCH_UP, count), position)
        known = samples.latest(self._position - STOPPED_AFTER, until)
        new = known.positions >= self._position
        learnable = new & (known.weights > 0)
        if not finished(try_learn(group, known.select(learnable), known.stopped[learnable])):
            self._result.group = None
        if new.any():
            self._learn_linear(known, self._position)
            self._position = int(known.positions[-1]) + 1
        return self._result if self._position >= position else None

    def _learn_linear(self, samples: Samples, first: int) -> None:
        """Let the linear models learn the samples from a position on; earlier ones precede them."""
        result = self._result
        if result is None or not result.linear:
            return
        samples = samples.select(~samples.outliers)
        features, targets = SimplePredictors.training_data(result.scales, samples)
        new = np.flatnonzero(samples.positions[1:] >= first).tolist()
        for model, H in zip(result.linear, features, strict=True):
            for i in new:
                model.learn(H[i], targets[i])

    def replay(self, samples: SampleStore, position: int) -> None:
        """Repeat the work up to a position, in a model that was loaded."""
        for now in range(self.plan.began + 1, position + 1):
            self.advance(samples, now)
