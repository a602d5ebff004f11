"""A search for hyperparameters among the samples that are kept, in slices (`Sliced`).

What is needed is copied when the work begins, so that what is found depends on the stream alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from pogp.arrays import Array, Indices
from pogp.online.group import FORGETTING, part
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


class Candidate(NamedTuple):
    """What is raced beside hyperparameters."""

    family: str
    forgetting: float
    """Of the second belief."""
    marginalise: bool
    """How points go."""


def challenger(best: Candidate, turn: int) -> Candidate:
    """Return what to try beside the best: all others in turn."""
    others = [
        Candidate(family, forgetting, marginalise)
        for marginalise in (best.marginalise, not best.marginalise)
        for forgetting in FORGETTING
        for family in FAMILIES
        if family != best.family
    ]
    return others[turn % len(others)]


@dataclass
class Findings:
    """The units of the samples, hyperparameters for each candidate, and the outliers."""

    scales: Scales
    found: list[Found]
    outliers: Indices
    """The positions of samples that do not fit."""

    @property
    def starts(self) -> dict[str, Array]:
        """Where the next search of each family begins."""
        return {found.prior.family: found.parameters for found in self.found}

    def worthwhile(
        self, candidates: tuple[Candidate, ...]
    ) -> tuple[tuple[Candidate, ...], Findings]:
        """Return what is worth a race.

        That is not what leads, if as many samples gave it before and these give nothing better.
        """
        stays = bool(self.found) and self.found[0].as_before and len(self.found[0].kept) >= SAMPLES
        return candidates[stays:], replace(self, found=self.found[stays:])


@dataclass
class Search:
    """What a search works from, copied when it begins."""

    began: int
    age: int
    """Samples since the stream was last found changed."""
    samples: Samples
    candidates: tuple[Candidate, ...]
    """That of the best group, and a challenger; of different families."""
    starts: dict[str, Array]
    seed: int
    robust: bool

    @property
    def quota(self) -> int:
        """Ticks per sample of the stream."""
        return quota(self.samples.X.shape[1], 0)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(held.nbytes for held in (*self.samples, *self.starts.values()))

    def run(self) -> Work[Findings]:
        """Do the work."""
        samples = self.samples
        yield CALLS + 40 * samples.X.size
        scales = Scales.of(samples.X, samples.Y)
        findings = Findings(scales, [], np.empty(0, dtype=np.int64))
        if not scales.alive or len(samples.X) < LEAST:
            return findings
        yield CALLS + 20 * samples.X.size
        told = in_units(samples.where(self._chosen()), scales)
        for candidate in self.candidates:
            leads = candidate is self.candidates[0]
            found = yield from self._tuned(candidate.family, scales.live, told, leads)
            if leads and not found.kept.all():
                findings.outliers = told.positions[~found.kept]
                told = told.where(found.kept)
            findings.found.append(found)
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

    def _tuned(self, family: str, columns: Indices, samples: Samples, leads: bool) -> Work[Found]:
        """Return the hyperparameters of a family, beginning where they were."""
        prior = Prior(family, columns)
        start = self.starts.get(family)
        if start is not None and len(start) != len(prior.mean):
            start = None
        evaluations = AGAIN
        if leads and start is None:  # few samples are not worth many, and a model is wanted soon
            evaluations = min(FIRST, max(AGAIN, len(samples.X)))
        find = without_outliers if self.robust and leads else search
        return find(prior, samples, start, evaluations, [self.seed, self.began])

    def state(self) -> dict[str, Any]:
        """Return the state, as arrays and numbers."""
        return {
            **samples_state(self.samples),
            "began": self.began,
            "age": self.age,
            **candidates_state(self.candidates),
            **{f"start_{family}": start.copy() for family, start in self.starts.items()},
        }

    @classmethod
    def restored(cls, state: dict[str, Any], seed: int, robust: bool) -> Search:
        """Return the search that `state` described."""
        return cls(
            began=int(state["began"]),
            age=int(state["age"]),
            samples=restored_samples(state),
            candidates=restored_candidates(state),
            starts={name: np.array(value) for name, value in part(state, "start_").items()},
            seed=seed,
            robust=robust,
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


def candidates_state(candidates: tuple[Candidate, ...]) -> dict[str, Any]:
    """Return candidates as arrays; what older files do not have is left out likewise."""
    families = {"families": [candidate.family for candidate in candidates]}
    forgetting = np.array([candidate.forgetting for candidate in candidates])
    marginalise = np.array([float(candidate.marginalise) for candidate in candidates])
    if (forgetting == FORGETTING[0]).all() and not marginalise.any():
        return families
    return {**families, "forgetting": forgetting, "marginalise": marginalise}


def restored_candidates(state: dict[str, Any]) -> tuple[Candidate, ...]:
    """Return the candidates that `candidates_state` described."""
    count = len(state["families"])
    choices = zip(
        state["families"],
        state.get("forgetting", np.full(count, FORGETTING[0])),
        state.get("marginalise", np.zeros(count)),
        strict=True,
    )
    return tuple(
        Candidate(family, float(forgetting), bool(marginalise))
        for family, forgetting, marginalise in choices
    )
