"""Predictions weighed by how well they did lately.

Each member has a score, its discounted log-likelihood of what came. Ordered streams want a short
memory of scores and shuffled ones a long one, so there are mixtures of three discounts, and these
are weighed in turn. Likelihoods are those of a Student-t, which an outlier does not upset. Outputs
are weighed each for itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pogp.arrays import Array
from pogp.online import mixing_core

DISCOUNTS = np.array([0.9, 0.95, 0.99])
"""A score remembers about ten, twenty and a hundred samples."""
OUTER = np.array([0.99])
"""The discount of the scores of the three mixtures."""


class Mixture:
    """The weights of the mixtures; each member keeps its own scores, (discounts, members, k)."""

    def __init__(self, outputs: int) -> None:
        self.scores = np.zeros((len(DISCOUNTS), outputs))
        self._mixing = mixing_core()
        self.levels = np.zeros((3, len(DISCOUNTS), outputs))
        """The means, variances and gains of the three mixtures."""
        self.told = np.zeros((2, outputs))
        """The mean and the variance of the mixture of these."""

    def combine(self, scores: Array, means: Array, variances: Array) -> tuple[Array, Array]:
        """Return the mean and the variance (k,) of members (members, k), until the next call."""
        (level_means, level_variances, _), (mean, variance) = self.levels, self.told
        levels = (level_means, level_variances, mean, variance)
        self._mixing.combine(scores, self.scores, means, variances, *levels)
        return mean, variance

    def combine_many(
        self, scores: Array, means: Array, variances: Array
    ) -> tuple[Array, Array, Array]:
        """Return the means and variances (n, k) of members (members, n, k), and their weights."""
        weights = self.weights(scores)
        mean = np.einsum("mk,mnk->nk", weights, means)
        variance = np.einsum("mk,mnk->nk", weights, variances + (means - mean) ** 2)
        return mean, variance, weights

    def weights(self, scores: Array) -> Array:
        """Return the weight (members, k) of each member."""
        inner, outer = _softmax(scores, axis=1), _softmax(self.scores, axis=0)
        return np.asarray(np.einsum("dk,dmk->mk", outer, inner))

    def learn(self, y: Array) -> None:
        """Take note of what came after `combine`."""
        means, variances, gains = self.levels
        self._mixing.score(y, means, variances, OUTER, (), gains, self.scores[None])

    def state(self) -> dict[str, Any]:
        """Return the state."""
        return {"scores": self.scores.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what `state` returned."""
        self.scores = np.array(state["scores"], dtype=np.float64)


def slopes_of(
    weights: Array, apart: Array, of_means: Array, of_variances: Array
) -> tuple[Array, Array]:
    """Return the derivatives (n, p, k) of mean and variance of a mixture.

    `apart` (members, n, k) is how far the members' means are from its mean.
    """
    of_squares = 2.0 * apart[:, :, None] * of_means
    of_mean = np.einsum("mk,mnpk->npk", weights, of_means)
    return of_mean, np.einsum("mk,mnpk->npk", weights, of_variances + of_squares)


def _softmax(scores: Array, axis: int) -> Array:
    weights = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return np.asarray(weights / weights.sum(axis=axis, keepdims=True))
