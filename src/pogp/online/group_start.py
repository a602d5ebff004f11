"""The start of a group with new hyperparameters, in slices (`Sliced`).

The group takes over the belief of the leading group, or learns the kept samples. It then catches up
with the samples that arrived meanwhile (`pending.py`), and joins the mixture.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pogp.arrays import Array
from pogp.online.group import NEW_GROUP_TICKS, RESERVED_POINTS, Candidate, Group, with_prefix
from pogp.online.retuning import (
    SearchResult,
    candidate_state,
    restored_candidate,
    restored_samples,
    samples_state,
)
from pogp.online.samples import LATEST, Mask, Samples
from pogp.online.scales import Scales
from pogp.online.simple_predictors import LinearModel, SimplePredictors
from pogp.online.tuning import LESS_NOISE, NOISY, Hyperparameters, Prior
from pogp.posteriors.absorbed.information import Information
from pogp.slices import CALL_TICKS, Work, quota

TRANSFER_FROM = 600
"""From so many samples on, the belief of the leading group is transferred to the new kernel.
Before, a new group learns the kept samples."""


@dataclass
class NewGroup:
    """A new group, if one was started, its scales, and linear models in these scales."""

    scales: Scales
    group: Group | None = None
    what: str = "new hyperparameters"
    linear: list[LinearModel] = field(default_factory=list)


@dataclass
class GroupStart:
    """All that the start of a group needs, copied when the search has ended."""

    began: int
    tuned_at: int
    """The position at which the search began."""
    age: int
    """The number of samples since the last change, at that position."""
    samples: Samples
    """For the linear models, which keep their relation to inputs that are constant for now."""
    since: int
    """The position from which on the group learns these samples: that of the last change."""
    candidate: Candidate
    search_result: SearchResult
    leading: Group | None
    """A copy of the leading group."""
    score: Array
    """The best score for each discount and output. It is the initial score of a group that takes
    over a belief, and an upper limit for a group that learns the kept samples."""
    max_size: int
    remembered: float = 1.0
    """The share of the belief of `leading` that is kept. If it is below one, the relation of the
    targets to the inputs has changed, and the group learns the samples since then."""

    @property
    def quota(self) -> int:
        """Ticks per sample of the stream."""
        return quota(self.samples.X.shape[1], 0 if self.leading is None else self.leading.size)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        leading = 0 if self.leading is None else self.leading.nbytes
        return leading + sum(column.nbytes for column in self.samples)

    def run(self) -> Work[NewGroup]:
        """Start the group, in slices."""
        scales, samples = self.search_result.scales, self.samples
        hyperparameters = self.search_result.hyperparameters
        result = NewGroup(scales)
        if hyperparameters is None:
            return result
        yield CALL_TICKS + 10 * samples.X.size
        if len(self.search_result.outliers):
            samples = samples.select(~np.isin(samples.positions, self.search_result.outliers))
        old, information = self.leading, None
        same = old is not None and old.has(hyperparameters, scales)
        if old is not None and not same and self._transfers(old, hyperparameters, scales):
            information = yield from _try_information(old, scales)
        yield NEW_GROUP_TICKS
        beliefs = ((1.0, self.candidate.forgetting), self.candidate.marginalise)
        group = Group(hyperparameters, scales, samples.Y.shape[1], self.max_size, *beliefs)
        yield CALL_TICKS + 2 * min(self.max_size, RESERVED_POINTS) ** 2
        group.reserve()
        if old is not None and (same or information is not None):
            valid = yield from _try_transfer(group, old, information, self.remembered)
            group.scores[...] = self.score[:, None]
        else:
            group.core.set_lead(int(old is not None and old.prefers_forgetting))
            valid = yield from self._try_recent(group, samples)
        if self.remembered < 1.0:
            result.what = "old relation revised"
            valid = valid and (yield from self._try_recent(group, samples))
        if valid:
            group.tuned_at = self.tuned_at
            result.group = group
        if self.remembered < 1.0:  # the linear models forget by themselves
            return result
        latest = samples.select(np.arange(len(samples.X))[-LATEST:])
        result.linear = yield from SimplePredictors.fitted_linear(scales, latest)
        return result

    def _try_recent(self, group: Group, samples: Samples) -> Work[bool]:
        """Let a group learn the samples since the last change; return whether it is usable."""
        valid = yield from try_learn(group, samples.select(samples.positions >= self.since))
        group.scores[...] = np.minimum(group.scores, self.score[:, None])
        return valid

    def _transfers(self, old: Group, found: Hyperparameters, scales: Scales) -> bool:
        """Return whether the new group takes over the belief of the leading group.

        It learns the kept samples if the leading group has attributed an effect to something else:
        that of a column that it does not use, or what the new group explains with much less noise.
        """
        noise = old.noise * float(np.mean(old.scales.unit / scales.unit)) ** 2
        explained = noise > NOISY and found.noise <= LESS_NOISE * noise
        return self.age >= TRANSFER_FROM and old.scales.vary(scales.varying) and not explained

    def state(self) -> dict[str, Any]:
        """Return the state, as arrays and numbers."""
        result = self.search_result
        leading = {} if self.leading is None else self.leading.state()
        found = result.hyperparameters
        return {
            **samples_state(self.samples),
            **candidate_state(self.candidate),
            "born": self.began,
            "began": self.tuned_at,
            "since": self.since,
            "age": self.age,
            "score": self.score.copy(),
            **{f"scales_{key}": value for key, value in result.scales.state().items()},
            "found": np.array([] if found is None else [[*found.parameters, found.value]]),
            "outliers": result.outliers.copy(),
            **{f"best_{name}": value for name, value in leading.items()},
            **({} if self.remembered == 1.0 else {"remembered": self.remembered}),
        }

    @classmethod
    def restored(cls, state: dict[str, Any], max_size: int) -> GroupStart:
        """Return what `state` described."""
        candidate = restored_candidate(state)
        scales = Scales.restored(with_prefix(state, "scales_"))
        rows, found = np.array(state["found"]), None
        if len(rows):
            prior = Prior(candidate.family, scales.varying)
            found = Hyperparameters(prior, rows[0, :-1], float(rows[0, -1]), np.empty(0, bool))
        outliers = np.array(state["outliers"], dtype=np.int64)
        score = np.array(state["score"], dtype=np.float64)
        before, remembered = with_prefix(state, "best_"), float(state.get("remembered", 1.0))
        if not 0.0 < remembered <= 1.0:
            raise ValueError(f"remembered must be a share above 0, got {remembered}")
        leading = Group.restored(before, score.shape[1], max_size) if before else None
        return cls(
            began=int(state["born"]),
            tuned_at=int(state["began"]),
            age=int(state["age"]),
            samples=restored_samples(state),
            since=int(state.get("since", 0)),
            candidate=candidate,
            search_result=SearchResult(scales, found, outliers),
            leading=None if leading is None else leading.copy(compact=True),
            score=score,
            max_size=max_size,
            remembered=remembered,
        )


def try_learn(group: Group, samples: Samples, stopped: Mask | None = None) -> Work[bool]:
    """Let a group learn and score samples; return False if rounding errors make it unusable."""
    try:
        yield from group.learn(samples, stopped, scored=True)
    except FloatingPointError:
        return False
    return True


def _try_information(old: Group, scales: Scales) -> Work[Information | None]:
    """Return the information of a group's data, or None if rounding errors prevent that."""
    try:
        return (yield from old.information(scales))
    except (np.linalg.LinAlgError, ValueError):
        return None


def _try_transfer(
    group: Group, old: Group, information: Information | None, remembered: float
) -> Work[bool]:
    """Transfer a belief to a group; return False if the prior cannot be factorised."""
    try:
        yield from group.transfer(old, information, remembered)
    except (np.linalg.LinAlgError, ValueError, FloatingPointError):
        return False
    return True
