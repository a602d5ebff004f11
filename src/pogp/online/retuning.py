"""The search for hyperparameters on the kept samples, in slices (`Sliced`).

A search works on copies made when it begins, so that its result depends on the stream alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pogp.arrays import Array, Indices
from pogp.online.group import FORGETTING, Candidate, with_prefix
from pogp.online.samples import Samples
from pogp.online.scales import Scales
from pogp.online.tuning import (
    FAMILIES,
    SAMPLES,
    Hyperparameters,
    Prior,
    most_samples,
    search,
    search_without_outliers,
)
from pogp.slices import CALL_TICKS, Work, quota

FIRST, AGAIN = 21, 7
"""Evaluations of the evidence: for the leading family without a start, and otherwise."""
LEAST_SAMPLES = 6
"""The least samples for tuning."""
CHALLENGE_FROM = 250
"""The least samples for a challenger."""


def challenger(best: Candidate, turn: int) -> Candidate:
    """Return a candidate that differs from the best one in one respect, each in turn."""
    families = [best._replace(family=family) for family in FAMILIES if family != best.family]
    speeds = [best._replace(forgetting=each) for each in FORGETTING if each != best.forgetting]
    projection = best._replace(marginalise=not best.marginalise)
    others = [families[0], projection, *families[1:], *speeds]
    return others[turn % len(others)]


@dataclass
class SearchResult:
    """The scales of the samples, the hyperparameters, and the positions of outliers."""

    scales: Scales
    hyperparameters: Hyperparameters | None
    """None if the samples are too few or constant, or if the leading group is as good."""
    outliers: Indices


@dataclass
class Search:
    """All that a search needs, copied when it begins."""

    began: int
    age: int
    """The number of samples since the last change."""
    samples: Samples
    candidate: Candidate
    leads: bool
    """Whether the candidate is that of the leading group, not a challenger."""
    start: Array | None
    """The result of the last search of the family."""
    seed: int
    robust: bool
    known: Scales | None = None
    """The scales in force."""
    points: int = 0
    """The size of the leading group."""
    needed_points: int = 0
    """As many of them as the search has to consider: see `Group.needed_points`."""

    @property
    def quota(self) -> int:
        """Ticks per sample of the stream."""
        return quota(self.samples.X.shape[1], self.points)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        start = 0 if self.start is None else self.start.nbytes
        return start + sum(column.nbytes for column in self.samples)

    def run(self) -> Work[SearchResult]:
        """Search, in slices."""
        samples = self.samples
        yield CALL_TICKS + 40 * samples.X.size
        scales = Scales.of(samples.X, samples.Y).completed(self.known)
        result = SearchResult(scales, None, np.empty(0, dtype=np.int64))
        if not scales.usable or len(samples.X) < LEAST_SAMPLES:
            return result
        yield CALL_TICKS + 20 * samples.X.size
        chosen = in_units(samples.select(self._chosen()), scales)
        result.hyperparameters = yield from self._tuned(scales.varying, chosen)
        result.outliers = chosen.positions[~result.hyperparameters.kept]
        return result

    def _chosen(self) -> Indices:
        """Return the indices of the samples for the search: half from the past, half recent."""
        count, most = len(self.samples.X), most_samples(self.needed_points)
        if count <= most:
            return np.arange(count)
        rng = np.random.default_rng([self.seed, self.began])
        recent = np.flatnonzero(self.samples.positions >= self.began - 1000)
        older = np.flatnonzero(self.samples.positions < self.began - 1000)
        wanted = min(max(most // 2, most - len(recent)), len(older))
        older, recent = (self._clearest_first(rng.permutation(each)) for each in (older, recent))
        return np.sort(np.concatenate([older[:wanted], recent[: most - wanted]]))

    def _clearest_first(self, rows: Indices) -> Indices:
        """Return samples in the order of the variance that missing inputs add to them."""
        return rows[np.argsort(self.samples.extra[rows].sum(axis=1), kind="stable")]

    def _tuned(self, columns: Indices, samples: Samples) -> Work[Hyperparameters]:
        """Return the hyperparameters of the family, from the last ones on."""
        prior, start = Prior(self.candidate.family, columns), self.start
        if start is not None and len(start) != len(prior.mean):
            start = None
        evaluations = AGAIN
        if self.leads and start is None:  # with few samples the model should be ready soon
            evaluations = min(FIRST, max(AGAIN, len(samples.X)))
        find = search_without_outliers if self.robust else search
        least_gain = prior.gain_by_chance if self._may_confirm_leader else -np.inf
        settings = (evaluations, [self.seed, self.began], self.needed_points, least_gain)
        return find(prior, samples, start, *settings)

    @property
    def _may_confirm_leader(self) -> bool:
        """Whether the hyperparameters of the leading group are from as many samples."""
        return self.leads and len(self.samples.X) >= SAMPLES

    def confirms_leader(self, found: Hyperparameters) -> bool:
        """Whether the hyperparameters of the leading group are as good."""
        return self._may_confirm_leader and found.is_no_better

    def state(self) -> dict[str, Any]:
        """Return the state, as arrays and numbers."""
        known = {} if self.known is None else self.known.state()
        return {
            **samples_state(self.samples),
            "began": self.began,
            "age": self.age,
            "points": self.points,
            "needed": self.needed_points,
            "leads": self.leads,
            **{f"known_{name}": value for name, value in known.items()},
            **candidate_state(self.candidate),
            **({} if self.start is None else {f"start_{self.candidate.family}": self.start.copy()}),
        }

    @classmethod
    def restored(cls, state: dict[str, Any], seed: int, robust: bool) -> Search:
        """Return the search that `state` described."""
        candidate = restored_candidate(state)
        start = with_prefix(state, "start_").get(candidate.family)
        return cls(
            began=int(state["began"]),
            age=int(state["age"]),
            samples=restored_samples(state),
            candidate=candidate,
            leads=bool(state.get("leads", True)),
            start=None if start is None else np.array(start),
            seed=seed,
            robust=robust,
            known=Scales.restored(known) if (known := with_prefix(state, "known_")) else None,
            points=int(state.get("points", 0)),
            needed_points=int(state.get("needed", int(state.get("points", 0)) // 3)),
        )


def in_units(samples: Samples, scales: Scales) -> Samples:
    """Return samples in units of the scales."""
    X, Y = scales.inputs(samples.X), scales.targets(samples.targets_at_inputs)
    gaps = (samples.extra / scales.unit**2, 0.0 * samples.shift)
    return samples._replace(X=X, Y=Y, extra=gaps[0], shift=gaps[1])


def samples_state(samples: Samples) -> dict[str, Array]:
    """Return samples as arrays; columns that older files do not have are left out if trivial."""
    weights = samples.weights
    return {
        **{name: getattr(samples, name).copy() for name in ("X", "Y", "positions")},
        **({"weights": weights.copy()} if (weights != 1).any() else {}),
        "odd": samples.outliers.astype(np.float64),
        **({"extra": samples.extra.copy()} if samples.extra.any() else {}),
        **({"shift": samples.shift.copy()} if samples.shift.any() else {}),
    }


def restored_samples(state: dict[str, Any]) -> Samples:
    """Return the samples that `samples_state` described."""
    X, Y, positions = (np.array(state[name]) for name in ("X", "Y", "positions"))
    outliers = np.array(state["odd"]).astype(bool)
    extra, shift = (np.array(state.get(name, np.zeros_like(Y))) for name in ("extra", "shift"))
    weights = np.array(state.get("weights", np.ones(len(X))))
    return Samples(X, Y, positions, outliers, extra, weights, shift)


def candidate_state(candidate: Candidate) -> dict[str, Any]:
    """Return a candidate as arrays."""
    return {
        "families": [candidate.family],
        "forgetting": np.array([candidate.forgetting]),
        "marginalise": np.array([float(candidate.marginalise)]),
    }


def restored_candidate(state: dict[str, Any]) -> Candidate:
    """Return the candidate that `candidate_state` described; older files have several."""
    forgetting = state.get("forgetting", FORGETTING[:1])
    marginalise = state.get("marginalise", (0.0,))
    return Candidate(state["families"][0], float(forgetting[0]), bool(marginalise[0]))
