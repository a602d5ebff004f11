"""Weights of the members of the mixture, by how well they predicted lately.

The score of a member is its discounted log-likelihood of the samples so far. Ordered streams need a
short memory of scores and shuffled ones a long memory. There is therefore one mixture for each of
three discounts, and these mixtures are weighted in the same way. The likelihoods are those of a
Student-t distribution, so that one outlier does not overturn the weights. Each output has its own
weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pogp.arrays import Array
from pogp.online import arithmetic_core
from pogp.online.arithmetic import softmax

DISCOUNTS = np.array([0.9, 0.95, 0.99])
"""The scores remember about 10, 20 and 100 samples."""
OUTER = np.array([0.99])
"""The discount of the scores of the three mixtures."""
OCCASIONS = ("after", "jump")
"""The names, in files, of the scores on samples after a surprise, and on those of a jump."""
AFTER_SURPRISE, AT_JUMP = range(len(OCCASIONS))


class Mixture:
    """The mixtures of the members and their weights; members hold their own scores."""

    def __init__(self, outputs: int) -> None:
        self.scores = np.zeros((len(DISCOUNTS), outputs))
        self._arithmetic = arithmetic_core()
        self.levels = np.zeros((3, len(DISCOUNTS), outputs))
        """The means, variances and gains of the three mixtures."""
        self.combined = np.zeros((2, outputs))
        """The mean and the variance of the mixture of these."""

    def combine(self, scores: Array, means: Array, variances: Array) -> tuple[Array, Array]:
        """Return the mean and the variance (k,) of members (members, k).

        `scores` is (discounts, members, k). The next call overwrites the result.
        """
        (level_means, level_variances, _), (mean, variance) = self.levels, self.combined
        levels = (level_means, level_variances, mean, variance)
        self._arithmetic.combine(scores, self.scores, means, variances, *levels)
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
        """Return the weight of each member, (members, k)."""
        inner, outer = softmax(scores, axis=1), softmax(self.scores, axis=0)
        return np.asarray(np.einsum("dk,dmk->mk", outer, inner))

    def learn(self, y: Array) -> None:
        """Score the three mixtures of the last call of `combine` by the target."""
        means, variances, gains = self.levels
        self._arithmetic.score(y, means, variances, OUTER, (), gains, self.scores[None])

    def state(self) -> dict[str, Any]:
        """Return the state."""
        return {"scores": self.scores.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
        self.scores = np.array(state["scores"], dtype=np.float64)


def mixture_slopes(
    weights: Array, apart: Array, of_means: Array, of_variances: Array
) -> tuple[Array, Array]:
    """Return the derivatives (n, p, k) of mean and variance of a mixture.

    `apart` (members, n, k) are the members' means minus the mean of the mixture.
    """
    of_squares = 2.0 * apart[:, :, None] * of_means
    of_mean = np.einsum("mk,mnpk->npk", weights, of_means)
    return of_mean, np.einsum("mk,mnpk->npk", weights, of_variances + of_squares)
