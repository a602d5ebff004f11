"""New groups from the samples that are kept, in slices (`Sliced`).

What is needed is copied when the work begins, so that the result depends on the stream alone. The
groups then catch up with the samples that came meanwhile, and take their place.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from pogp.arrays import Array, Indices
from pogp.online.experts import Experts, Linear
from pogp.online.group import FORGETTING, Group, part
from pogp.online.rows import Samples
from pogp.online.scales import Scales
from pogp.online.slices import Sliced, Tick
from pogp.online.tuning import Found, Prior, search, without_outliers

SAMPLES = 600
"""Samples to tune by: half of them from the past, half of the latest."""
FIRST, AGAIN = 20, 8
"""Evaluations of the evidence: for the family that leads when it is new, and otherwise."""
LEAST = 6
"""Samples below which nothing is tuned."""
CHALLENGED = 250
"""Samples from which on a second family is tried."""
FRESH_UNTIL, CARRY_FROM = 1200, 600
"""Up to the first, groups learn the samples that are kept afresh; from the second on, what the best
group knows is carried over to the new kernel."""


class Candidate(NamedTuple):
    """What is raced beside hyperparameters."""

    family: str
    forgetting: float
    """Of the second belief."""
    marginalise: bool
    """How points go."""


@dataclass
class Plan:
    """What a retuning works from, copied when it begins."""

    began: int
    age: int
    """Samples since the stream was last found changed."""
    samples: Samples
    candidates: tuple[Candidate, ...]
    """That of the best group, and a challenger; of different families."""
    starts: dict[str, Array]
    best: dict[str, Any] | None
    """The state of the best group."""
    score: Array
    """The best score for each discount and output: where new members begin."""
    after: Array
    """The same of scores after a sample that was far off."""
    seed: int
    max_size: int
    robust: bool

    @property
    def quota(self) -> int:
        """Ticks per sample: fewer where each takes longer."""
        return max(4, min(20, 400 // max(len(self.samples.X), 1)))

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        held = (*self.samples, *self.starts.values(), *(self.best or {}).values())
        return sum(part.nbytes for part in held if isinstance(part, np.ndarray))

    def state(self) -> dict[str, Any]:
        """Return the state, as arrays and numbers."""
        best = {} if self.best is None else self.best
        return {
            **{name: getattr(self.samples, name).copy() for name in ("X", "Y", "positions")},
            **self._weights(),
            "odd": self.samples.odd.astype(np.float64),
            **({"extra": self.samples.extra.copy()} if self.samples.extra.any() else {}),
            "began": self.began,
            "age": self.age,
            "families": [candidate.family for candidate in self.candidates],
            **self._choices(),
            "score": self.score.copy(),
            **({"after": self.after.copy()} if self.after.any() else {}),
            **{f"start_{family}": start.copy() for family, start in self.starts.items()},
            **{f"best_{name}": copy(value) for name, value in best.items()},
        }

    def _choices(self) -> dict[str, Array]:
        """Return what older files do not have, unless it is what they mean."""
        forgetting = np.array([candidate.forgetting for candidate in self.candidates])
        marginalise = np.array([float(candidate.marginalise) for candidate in self.candidates])
        if (forgetting == FORGETTING[0]).all() and not marginalise.any():
            return {}
        return {"forgetting": forgetting, "marginalise": marginalise}

    def _weights(self) -> dict[str, Array]:
        weights = self.samples.weights
        return {"weights": weights.copy()} if (weights != 1).any() else {}

    @classmethod
    def restored(cls, state: dict[str, Any], seed: int, max_size: int, robust: bool) -> Plan:
        """Return the plan that `state` described."""
        X, Y, positions = (np.array(state[name]) for name in ("X", "Y", "positions"))
        odd = np.array(state["odd"]).astype(bool)
        count = len(state["families"])
        # older files have none of these
        extra = np.array(state.get("extra", np.zeros_like(Y)))
        weights = np.array(state.get("weights", np.ones(len(X))))
        best = part(state, "best_")
        starts = {name: np.array(value) for name, value in part(state, "start_").items()}
        return cls(
            began=int(state["began"]),
            age=int(state["age"]),
            samples=Samples(X, Y, positions, odd, extra, weights),
            candidates=tuple(
                Candidate(family, float(forgetting), bool(marginalise))
                for family, forgetting, marginalise in zip(
                    state["families"],
                    state.get("forgetting", np.full(count, FORGETTING[0])),
                    state.get("marginalise", np.zeros(count)),
                    strict=True,
                )
            ),
            starts=starts,
            best=best or None,
            score=np.array(state["score"], dtype=np.float64),
            after=np.array(state.get("after", np.zeros_like(state["score"]))),
            seed=seed,
            max_size=max_size,
            robust=robust,
        )


@dataclass
class Result:
    """New groups, the units they are in, and linear models in those units."""

    scales: Scales
    groups: list[Group] = field(default_factory=list)
    linear: list[Linear] = field(default_factory=list)
    starts: dict[str, Array] = field(default_factory=dict)


def retuning(plan: Plan) -> Sliced[Result]:
    """Return the work, not begun."""
    return Sliced(lambda tick: _retuned(plan, tick))


def _retuned(plan: Plan, tick: Tick) -> Result:
    samples = plan.samples
    if plan.robust and np.mean(~samples.odd) >= 0.8:
        samples = samples.where(~samples.odd)
    scales = Scales.of(samples.X, samples.Y)
    result = Result(scales)
    if not scales.alive or len(samples.X) < LEAST:
        return result
    outputs = samples.Y.shape[1]
    chosen = _chosen(plan, samples)
    told = samples.where(chosen)
    told = told._replace(
        X=scales.inputs(told.X), Y=scales.targets(told.Y), extra=told.extra / scales.unit**2
    )
    usual = np.ones(len(samples.X), dtype=bool)
    for candidate in plan.candidates:
        family, leads = candidate.family, candidate is plan.candidates[0]
        found = _tuned(plan, family, scales.live, told, leads, tick)
        if leads and not found.kept.all():
            usual[chosen[~found.kept]] = False
            told = told.where(found.kept)
            chosen = chosen[found.kept]
        result.starts[family] = found.parameters
        made = (plan, candidate, found, scales)
        result.groups += _born(*made, samples.where(usual), leads, tick)
    kept = samples.where(usual)
    latest = kept.where(np.arange(len(kept.X))[-1000:])
    result.linear = Experts(kept.X.shape[1], outputs).refitted(scales, latest, tick)
    tick()
    return result


def _chosen(plan: Plan, samples: Samples) -> Indices:
    """Return which samples to tune by."""
    count = len(samples.X)
    if count <= SAMPLES:
        return np.arange(count)
    rng = np.random.default_rng([plan.seed, plan.began])
    recent = np.flatnonzero(samples.positions >= plan.began - 1000)
    older = np.setdiff1d(np.arange(count), recent)
    wanted = min(max(SAMPLES // 2, SAMPLES - len(recent)), len(older))
    drawn = [rng.permutation(older)[:wanted], rng.permutation(recent)[: SAMPLES - wanted]]
    return np.sort(np.concatenate(drawn))


def _tuned(
    plan: Plan, family: str, columns: Indices, samples: Samples, leads: bool, tick: Tick
) -> Found:
    """Return the hyperparameters of a family, beginning where they were."""
    prior = Prior(family, columns)
    start = plan.starts.get(family)
    if start is not None and len(start) != len(prior.mean):
        start = None
    evaluations = FIRST if leads and start is None else AGAIN
    find = without_outliers if plan.robust and leads else search
    return find(prior, samples, start, evaluations, [plan.seed, plan.began], tick)


def _born(
    plan: Plan,
    candidate: Candidate,
    found: Found,
    scales: Scales,
    samples: Samples,
    leads: bool,
    tick: Tick,
) -> list[Group]:
    """Return new groups with these hyperparameters: taught afresh, and carried over."""
    groups = []
    outputs = samples.Y.shape[1]
    forgetting = (1.0, candidate.forgetting)
    made = (found, scales, outputs, plan.max_size, forgetting, candidate.marginalise)
    old = None
    if plan.best is not None:
        old = Group.restored(plan.best, outputs, plan.max_size, trusted=True)
        tick()
    if plan.age < CARRY_FROM or old is None or (leads and plan.age <= FRESH_UNTIL):
        fresh = Group(*made)
        fresh.core.follow(0 if old is None else int(old.forgets))
        try:
            fresh.teach(samples, tick)
            groups.append(fresh)
        except FloatingPointError:  # rounding has won
            pass
    if old is not None and plan.age >= CARRY_FROM:
        carried = Group(*made)
        try:
            carried.carry(old, tick)
            groups.append(carried)
        except (np.linalg.LinAlgError, ValueError, FloatingPointError):  # no sound prior there
            pass
    for group in groups:
        group.born = plan.began
        group.scores[...], group.after[...] = plan.score[:, None], plan.after[:, None]
    return groups
