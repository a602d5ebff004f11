"""Forward selection: one loop, and the rules that say which training input comes next.

A rule names candidates and scores them; the loop takes the best. Formulas are derived in
mathematics.md §7.
"""

from abc import ABC, abstractmethod

import numpy as np

from pogp.arrays import Array, Indices
from pogp.posteriors.projected import Projection
from pogp.search import Progress


class Rule(ABC):
    """Scores candidates by the gain of choosing them. A subclass needs only `scores`.

    `count` candidates are drawn at each step, or all are taken if it is None.
    """

    def __init__(self, count: int | None) -> None:
        self._count = count

    def candidates(self, independent: Indices, rng: np.random.Generator) -> Indices:
        """Return the samples to score at this step, out of those that could be chosen."""
        return _drawn(independent, self._count, rng)

    @abstractmethod
    def scores(self, projection: Projection, candidates: Indices) -> Array:
        """Return the gain of choosing each candidate; changes no result."""

    def keep(self, candidates: Indices, scores: Array) -> None:
        """Note the scores of the candidates that were not chosen."""


class AllCoefficients(Rule):
    """Smola & Bartlett: the decrease of the objective, all coefficients at their new optimum."""

    def scores(self, projection: Projection, candidates: Indices) -> Array:
        """Return the decreases: O(nm) each."""
        return projection.gains(projection.directions(candidates))


class OneCoefficient(Rule):
    """Keerthi & Chu: the decrease of the objective, the others' coefficients left as they are.

    The kernel columns of the `cache` best candidates that were not chosen stay, and these are
    candidates again at the next step, beside `count` new ones.
    """

    def __init__(self, count: int, cache: int) -> None:
        super().__init__(count)
        self._cache = cache
        self._columns: dict[int, Array] = {}

    def candidates(self, independent: Indices, rng: np.random.Generator) -> Indices:
        """Return those that were kept, and new ones."""
        held = np.array(sorted(self._columns), dtype=np.int64)
        new = np.setdiff1d(independent, held, assume_unique=True)
        kept = np.intersect1d(independent, held, assume_unique=True)
        return np.concatenate([kept, _drawn(new, self._count, rng)])

    def scores(self, projection: Projection, candidates: Indices) -> Array:
        """Return the decreases: O(n) each, once the column is there."""
        new = np.array([j for j in candidates if j not in self._columns], dtype=np.int64)
        columns = projection.columns(new)
        self._columns |= {int(j): column.copy() for j, column in zip(new, columns, strict=True)}
        columns = np.stack([self._columns[int(j)] for j in candidates])

        noise, misfit = projection.noise, projection.misfit
        mean = projection.residual[candidates] - misfit[candidates]  # k̃ᵀα
        slope = columns @ misfit - noise * mean
        own = projection.prior[candidates] + projection.nugget
        curvature = noise * own + np.einsum("ij,ij->i", columns, columns)
        return np.asarray(0.5 * (slope / np.sqrt(curvature)) ** 2)  # K&C eq. 8

    def keep(self, candidates: Indices, scores: Array) -> None:
        """Keep the columns of the best, and drop the others."""
        best = candidates[np.argsort(-scores, kind="stable")[: self._cache]]
        self._columns = {int(j): self._columns[int(j)] for j in best}


class InformationGain(Rule):
    """Seeger, Williams & Lawrence: how far the posterior would move by this sample alone.

    The divergence from the belief about f(Z) and f(x) to the one in which y at x is an observation
    of f(x) instead of its projection, and all other observations are what they were.
    """

    def scores(self, projection: Projection, candidates: Indices) -> Array:
        """Return the divergences: O(1) each."""
        noise, leverage = projection.noise, np.minimum(projection.leverage[candidates], 1.0)
        g = (projection.slack[candidates] + projection.nugget) / noise
        w = g * (1.0 - leverage)
        surprise = (projection.misfit[candidates] / np.sqrt(noise)) ** 2
        widths = np.log1p(w) + (g - 2.0 * w) / (1.0 + w)
        means = surprise * g * (1.0 + g * leverage) / (1.0 + w) ** 2
        return np.asarray(0.5 * (widths + means))


def select(
    rule: Rule, projection: Projection, size: int, seed: int, progress: Progress | None = None
) -> None:
    """Choose up to `size` inputs, fewer if the others follow from those or progress ends it."""
    rng = np.random.default_rng(seed)
    for number in range(1, size + 1):
        independent = projection.independent()
        if len(independent) == 0:
            return
        candidates = rule.candidates(independent, rng)
        scores = rule.scores(projection, candidates)
        best = int(np.argmax(scores))
        projection.include(int(candidates[best]))
        rule.keep(np.delete(candidates, best), np.delete(scores, best))
        if progress is not None:
            try:
                progress(number, projection.objective)
            except StopIteration:
                return


def _drawn(candidates: Indices, count: int | None, rng: np.random.Generator) -> Indices:
    if count is None or count >= len(candidates):
        return candidates
    return rng.choice(candidates, count, replace=False)
