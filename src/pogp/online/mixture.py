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

DISCOUNTS = np.array([0.9, 0.95, 0.99])
"""A score remembers about ten, twenty and a hundred samples."""
OUTER = 0.99
"""The discount of the scores of the three mixtures."""
FREEDOM = 4.0
"""Degrees of freedom of the Student-t."""


def log_density(Y: Array, means: Array, variances: Array) -> Array:
    """Return the log density of a Student-t, up to a constant."""
    squares = (Y - means) ** 2 / variances
    return np.asarray(
        -0.5 * np.log(variances) - 0.5 * (FREEDOM + 1) * np.log1p(squares / FREEDOM)
    )


class Mixture:
    """The weights of the mixtures; each member keeps its own scores, (discounts, members, k)."""

    def __init__(self, outputs: int) -> None:
        self.scores = np.zeros((len(DISCOUNTS), outputs))
        self._means = self._variances = np.zeros((len(DISCOUNTS), outputs))

    def combine(self, scores: Array, means: Array, variances: Array) -> tuple[Array, Array, Array]:
        """Return the mean, the variance (k,) and the weight (members, k) of each member."""
        inner = _softmax(scores, axis=1)
        self._means = np.einsum("dmk,mk->dk", inner, means)
        apart = (means[None] - self._means[:, None]) ** 2
        self._variances = np.einsum("dmk,dmk->dk", inner, variances[None] + apart)
        outer = _softmax(self.scores, axis=0)
        mean = np.sum(outer * self._means, axis=0)
        variance = np.sum(outer * (self._variances + (self._means - mean) ** 2), axis=0)
        return mean, variance, np.einsum("dk,dmk->mk", outer, inner)

    def combine_many(
        self, scores: Array, means: Array, variances: Array
    ) -> tuple[Array, Array, Array]:
        """Return the means and variances (n, k) of members (members, n, k), and their weights."""
        inner = _softmax(scores, axis=1)
        outer = _softmax(self.scores, axis=0)
        weights = np.einsum("dk,dmk->mk", outer, inner)
        mean = np.einsum("mk,mnk->nk", weights, means)
        variance = np.einsum("mk,mnk->nk", weights, variances + (means - mean) ** 2)
        return mean, variance, weights

    def learn(self, y: Array) -> None:
        """Take note of what came after `combine`."""
        self.scores = OUTER * self.scores + log_density(y, self._means, self._variances)

    def memory(self) -> dict[str, Any]:
        """Return the state."""
        return {"scores": self.scores.copy()}

    def remember(self, memory: dict[str, Any]) -> None:
        """Take over what `memory` returned."""
        self.scores = np.array(memory["scores"], dtype=np.float64)


def discounted(scores: Array, gains: Array) -> Array:
    """Return scores (discounts, members, k) after gains (members, k)."""
    return np.asarray(DISCOUNTS[:, None, None] * scores + gains)


def _softmax(scores: Array, axis: int) -> Array:
    weights = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return np.asarray(weights / weights.sum(axis=axis, keepdims=True))
