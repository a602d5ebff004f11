"""New groups for hyperparameters that were found, in slices (`Sliced`).

They begin with what the best group knows when the search has ended, or learn the samples that are
kept afresh. They then catch up with the few samples that came meanwhile, and take their place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pogp.arrays import Array
from pogp.online.experts import Experts, Linear
from pogp.online.group import BORN, ROOM, Group, part
from pogp.online.retuning import (
    Candidate,
    Findings,
    candidates_state,
    restored_candidates,
    restored_samples,
    samples_state,
)
from pogp.online.rows import LATEST, Samples
from pogp.online.scales import Scales
from pogp.online.tuning import Found, Prior
from pogp.posteriors.absorbed.information import Information
from pogp.slices import CALLS, FRESH, Work, quota

CARRY_FROM = 1200
"""From so many samples on, what the best group knows is carried over to the new kernel; before,
groups learn the samples that are kept afresh. So they do where a column has begun to move that the
best group does not know: what it learned since then it takes for something else."""


@dataclass
class Result:
    """New groups, the units they are in, and linear models in those units."""

    scales: Scales
    groups: list[Group] = field(default_factory=list)
    linear: list[Linear] = field(default_factory=list)
    starts: dict[str, Array] = field(default_factory=dict)


@dataclass
class Birth:
    """What new groups are made from, copied when the search has ended."""

    began: int
    searched: int
    """Where the search began."""
    age: int
    """Samples since the stream was last found changed, at that time."""
    samples: Samples
    candidates: tuple[Candidate, ...]
    findings: Findings
    best: Group | None
    """A copy of the best group."""
    forgets: bool
    """Whether its belief that forgets is the better one."""
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
        findings = self.findings
        result = Result(findings.scales, starts=findings.starts)
        if not findings.found:
            return result
        samples = self.samples
        yield CALLS + 10 * samples.X.size
        if len(findings.outliers):
            samples = samples.where(~np.isin(samples.positions, findings.outliers))
        outputs, old, said = samples.Y.shape[1], self.best, None
        if old is not None and self.age >= CARRY_FROM and old.scales.know(findings.scales.live):
            said = yield from _told(old, findings.scales)
        for candidate, found in zip(self.candidates, findings.found, strict=True):
            forgetting = (1.0, candidate.forgetting)
            made = (found, findings.scales, outputs, self.max_size, forgetting)
            yield BORN + FRESH * min(self.max_size, ROOM) ** 2
            group = Group(*made, candidate.marginalise)
            if old is None or said is None:
                group.core.follow(int(self.forgets))
                result.groups += yield from _taught(group, samples)
                group.scores[...] = np.minimum(group.scores, self.score[:, None])
            else:
                result.groups += yield from _carried(group, old, said)
                group.scores[...] = self.score[:, None]
        for group in result.groups:
            group.born = self.searched
            group.after[...] = self.after[:, None]
        latest = samples.where(np.arange(len(samples.X))[-LATEST:])
        result.linear = yield from Experts.refitted(findings.scales, latest)
        return result

    def state(self) -> dict[str, Any]:
        """Return the state, as arrays and numbers."""
        best, found = {} if self.best is None else self.best.state(), self.findings.found
        return {
            **samples_state(self.samples),
            **candidates_state(self.candidates),
            "born": self.began,
            "began": self.searched,
            "age": self.age,
            "forgets": self.forgets,
            "score": self.score.copy(),
            **({"after": self.after.copy()} if self.after.any() else {}),
            **{f"scales_{key}": value for key, value in self.findings.scales.state().items()},
            "found": np.array([[*each.parameters, each.value] for each in found]),
            "outliers": self.findings.outliers.copy(),
            **{f"best_{name}": value for name, value in best.items()},
        }

    @classmethod
    def restored(cls, state: dict[str, Any], max_size: int) -> Birth:
        """Return what `state` described."""
        candidates, scales = restored_candidates(state), Scales.restored(part(state, "scales_"))
        found = [
            Found(Prior(candidate.family, scales.live), row[:-1], float(row[-1]), np.empty(0, bool))
            for candidate, row in zip(candidates, np.array(state["found"]), strict=False)
        ]
        score, best = np.array(state["score"], dtype=np.float64), part(state, "best_")
        return cls(
            began=int(state["born"]),
            searched=int(state["began"]),
            age=int(state["age"]),
            samples=restored_samples(state),
            candidates=candidates,
            findings=Findings(scales, found, np.array(state["outliers"], dtype=np.int64)),
            best=Group.restored(best, score.shape[1], max_size) if best else None,
            forgets=bool(state["forgets"]),
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


def _carried(group: Group, old: Group, said: Information) -> Work[list[Group]]:
    """Have a group take over what another knows; return it, unless there is no sound prior."""
    try:
        yield from group.carry(old, said)
    except (np.linalg.LinAlgError, ValueError, FloatingPointError):
        return []
    return [group]


def _taught(group: Group, samples: Samples) -> Work[list[Group]]:
    """Have a group learn samples; return it, unless rounding has won."""
    try:
        yield from group.teach(samples, scored=True)
    except FloatingPointError:
        return []
    return [group]
