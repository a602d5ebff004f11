"""A new group for hyperparameters that were found, in slices (`Sliced`).

It begins with what the best group knows when the search has ended, or learns the samples that are
kept afresh. It then catches up with the samples that came meanwhile, and takes its place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pogp.arrays import Array
from pogp.online.experts import Experts, Linear
from pogp.online.group import BORN, ROOM, Candidate, Group, part
from pogp.online.retuning import (
    Findings,
    candidate_state,
    restored_candidate,
    restored_samples,
    samples_state,
)
from pogp.online.rows import LATEST, Samples
from pogp.online.scales import Scales
from pogp.online.tuning import Found, Prior
from pogp.posteriors.absorbed.information import Information
from pogp.slices import CALLS, Work, quota

CARRY_FROM = 600
"""From so many samples on, what the best group knows is carried over to the new kernel; before,
groups learn the samples that are kept afresh. So they do where a column has begun to move that the
best group does not know: what it learned since then it takes for something else."""


@dataclass
class Result:
    """A new group, if one was worth it, its units, and linear models in those units."""

    scales: Scales
    group: Group | None = None
    linear: list[Linear] = field(default_factory=list)


@dataclass
class Birth:
    """What new groups are made from, copied when the search has ended."""

    began: int
    searched: int
    """Where the search began."""
    age: int
    """Samples since the stream was last found changed, at that time."""
    samples: Samples
    candidate: Candidate
    findings: Findings
    best: Group | None
    """A copy of the best group."""
    score: Array
    """The best score for each discount and output: new members begin there, or where they would be
    if they had predicted the samples that they learn, if that is lower."""
    after: Array
    """The same of scores after a sample that was far off."""
    max_size: int

    @property
    def quota(self) -> int:
        """Ticks per sample of the stream."""
        return quota(self.samples.X.shape[1], 0 if self.best is None else self.best.size)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        best = 0 if self.best is None else self.best.nbytes
        return best + sum(held.nbytes for held in self.samples)

    def run(self) -> Work[Result]:
        """Do the work."""
        scales, found, samples = self.findings.scales, self.findings.found, self.samples
        result = Result(scales)
        if found is None:
            return result
        yield CALLS + 10 * samples.X.size
        if len(self.findings.outliers):
            samples = samples.where(~np.isin(samples.positions, self.findings.outliers))
        old, said = self.best, None
        if old is not None and self.age >= CARRY_FROM and old.scales.know(scales.live):
            said = yield from _told(old, scales)
        yield BORN
        beliefs = ((1.0, self.candidate.forgetting), self.candidate.marginalise)
        group = Group(found, scales, samples.Y.shape[1], self.max_size, *beliefs)
        yield CALLS + 2 * min(self.max_size, ROOM) ** 2
        group.reserve()
        if old is None or said is None:
            group.core.follow(int(old is not None and old.forgets))
            sound = yield from _taught(group, samples)
            group.scores[...] = np.minimum(group.scores, self.score[:, None])
        else:
            sound = yield from _carried(group, old, said)
            group.scores[...] = self.score[:, None]
        if sound:
            group.born = self.searched
            group.after[...] = self.after[:, None]
            result.group = group
        latest = samples.where(np.arange(len(samples.X))[-LATEST:])
        result.linear = yield from Experts.refitted(scales, latest)
        return result

    def state(self) -> dict[str, Any]:
        """Return the state, as arrays and numbers."""
        best, found = {} if self.best is None else self.best.state(), self.findings.found
        rows = [] if found is None else [[*found.parameters, found.value]]
        return {
            **samples_state(self.samples),
            **candidate_state(self.candidate),
            "born": self.began,
            "began": self.searched,
            "age": self.age,
            "score": self.score.copy(),
            **({"after": self.after.copy()} if self.after.any() else {}),
            **{f"scales_{key}": value for key, value in self.findings.scales.state().items()},
            "found": np.array(rows),
            "outliers": self.findings.outliers.copy(),
            **{f"best_{name}": value for name, value in best.items()},
        }

    @classmethod
    def restored(cls, state: dict[str, Any], max_size: int) -> Birth:
        """Return what `state` described."""
        candidate, scales = restored_candidate(state), Scales.restored(part(state, "scales_"))
        rows, found = np.array(state["found"]), None
        if len(rows):
            prior = Prior(candidate.family, scales.live)
            found = Found(prior, rows[0, :-1], float(rows[0, -1]), np.empty(0, bool))
        score, best = np.array(state["score"], dtype=np.float64), part(state, "best_")
        return cls(
            began=int(state["born"]),
            searched=int(state["began"]),
            age=int(state["age"]),
            samples=restored_samples(state),
            candidate=candidate,
            findings=Findings(scales, found, np.array(state["outliers"], dtype=np.int64)),
            best=Group.restored(best, score.shape[1], max_size) if best else None,
            score=score,
            after=np.array(state.get("after", np.zeros_like(score))),
            max_size=max_size,
        )


def _told(old: Group, scales: Scales) -> Work[Information | None]:
    """Return what a group's data said, None if rounding has won."""
    try:
        return (yield from old.told(scales))
    except (np.linalg.LinAlgError, ValueError):
        return None


def _carried(group: Group, old: Group, said: Information) -> Work[bool]:
    """Have a group take over what another knows; return False if there is no sound prior."""
    try:
        yield from group.carry(old, said)
    except (np.linalg.LinAlgError, ValueError, FloatingPointError):
        return False
    return True


def _taught(group: Group, samples: Samples) -> Work[bool]:
    """Have a group learn samples; return False if rounding has won."""
    try:
        yield from group.teach(samples, scored=True)
    except FloatingPointError:
        return False
    return True
