"""A search for hyperparameters among the samples that are kept, in slices (`Sliced`).

What is needed is copied when the work begins, so that what is found depends on the stream alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pogp.arrays import Array, Indices
from pogp.online.group import FORGETTING, Candidate, part
from pogp.online.rows import Samples
from pogp.online.scales import Scales
from pogp.online.tuning import FAMILIES, Found, Prior, search, without_outliers
from pogp.slices import CALLS, Work, quota

SAMPLES = 600
"""Samples to tune by: half of them from the past, half of the latest."""
FIRST, AGAIN = 21, 7
"""Evaluations of the evidence: for the family that leads when it is new, and otherwise."""
LEAST = 6
"""Samples below which nothing is tuned."""
CHALLENGED = 250
"""Samples from which on a second family is tried."""


def challenger(best: Candidate, turn: int) -> Candidate:
    """Return what to try beside the best, which differs from it in one respect: each in turn."""
    families = [best._replace(family=family) for family in FAMILIES if family != best.family]
    speeds = [best._replace(forgetting=each) for each in FORGETTING if each != best.forgetting]
    projection = best._replace(marginalise=not best.marginalise)
    others = [families[0], projection, *families[1:], *speeds]
    return others[turn % len(others)]


@dataclass
class Findings:
    """The units of the samples, hyperparameters, and the outliers."""

    scales: Scales
    found: Found | None
    """None where the samples are too few or do not vary."""
    outliers: Indices
    """The positions of samples that do not fit."""


@dataclass
class Search:
    """What a search works from, copied when it begins."""

    began: int
    age: int
    """Samples since the stream was last found changed."""
    samples: Samples
    candidate: Candidate
    leads: bool
    """Whether the candidate is that of the best group, not a challenger."""
    start: Array | None
    """Where the last search of the family ended."""
    seed: int
    robust: bool
    points: int = 0
    """Of the best group."""

    @property
    def quota(self) -> int:
        """Ticks per sample of the stream."""
        return quota(self.samples.X.shape[1], self.points)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        start = 0 if self.start is None else self.start.nbytes
        return start + sum(held.nbytes for held in self.samples)

    def run(self) -> Work[Findings]:
        """Do the work."""
        samples = self.samples
        yield CALLS + 40 * samples.X.size
        scales = Scales.of(samples.X, samples.Y)
        findings = Findings(scales, None, np.empty(0, dtype=np.int64))
        if not scales.alive or len(samples.X) < LEAST:
            return findings
        yield CALLS + 20 * samples.X.size
        told = in_units(samples.where(self._chosen()), scales)
        findings.found = yield from self._tuned(scales.live, told)
        findings.outliers = told.positions[~findings.found.kept]
        return findings

    def _chosen(self) -> Indices:
        """Return which samples to tune by."""
        count = len(self.samples.X)
        if count <= SAMPLES:
            return np.arange(count)
        rng = np.random.default_rng([self.seed, self.began])
        recent = np.flatnonzero(self.samples.positions >= self.began - 1000)
        older = np.flatnonzero(self.samples.positions < self.began - 1000)
        wanted = min(max(SAMPLES // 2, SAMPLES - len(recent)), len(older))
        drawn = [rng.permutation(older)[:wanted], rng.permutation(recent)[: SAMPLES - wanted]]
        return np.sort(np.concatenate(drawn))

    def _tuned(self, columns: Indices, samples: Samples) -> Work[Found]:
        """Return the hyperparameters of the family, beginning where they were."""
        prior, start = Prior(self.candidate.family, columns), self.start
        if start is not None and len(start) != len(prior.mean):
            start = None
        evaluations = AGAIN
        if self.leads and start is None:  # few samples are not worth many: a model is wanted soon
            evaluations = min(FIRST, max(AGAIN, len(samples.X)))
        find = without_outliers if self.robust else search
        return find(prior, samples, start, evaluations, [self.seed, self.began])

    def keeps(self, found: Found | None) -> bool:
        """Whether the best group stays as it is.

        As many samples gave its hyperparameters, and these give nothing better.
        """
        return self.leads and found is not None and found.as_before and len(found.kept) >= SAMPLES

    def state(self) -> dict[str, Any]:
        """Return the state, as arrays and numbers."""
        return {
            **samples_state(self.samples),
            "began": self.began,
            "age": self.age,
            "points": self.points,
            "leads": self.leads,
            **candidate_state(self.candidate),
            **({} if self.start is None else {f"start_{self.candidate.family}": self.start.copy()}),
        }

    @classmethod
    def restored(cls, state: dict[str, Any], seed: int, robust: bool) -> Search:
        """Return the search that `state` described."""
        candidate = restored_candidate(state)
        start = part(state, "start_").get(candidate.family)
        return cls(
            began=int(state["began"]),
            age=int(state["age"]),
            samples=restored_samples(state),
            candidate=candidate,
            leads=bool(state.get("leads", True)),
            start=None if start is None else np.array(start),
            seed=seed,
            robust=robust,
            points=int(state.get("points", 0)),
        )


def in_units(samples: Samples, scales: Scales) -> Samples:
    """Return samples as the models see them."""
    X, Y = scales.inputs(samples.X), scales.targets(samples.Y)
    return samples._replace(X=X, Y=Y, extra=samples.extra / scales.unit**2)


def samples_state(samples: Samples) -> dict[str, Array]:
    """Return samples as arrays; what older files do not have is left out where it is as usual."""
    weights = samples.weights
    return {
        **{name: getattr(samples, name).copy() for name in ("X", "Y", "positions")},
        **({"weights": weights.copy()} if (weights != 1).any() else {}),
        "odd": samples.odd.astype(np.float64),
        **({"extra": samples.extra.copy()} if samples.extra.any() else {}),
    }


def restored_samples(state: dict[str, Any]) -> Samples:
    """Return the samples that `samples_state` described."""
    X, Y, positions = (np.array(state[name]) for name in ("X", "Y", "positions"))
    odd = np.array(state["odd"]).astype(bool)
    extra = np.array(state.get("extra", np.zeros_like(Y)))
    weights = np.array(state.get("weights", np.ones(len(X))))
    return Samples(X, Y, positions, odd, extra, weights)


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
