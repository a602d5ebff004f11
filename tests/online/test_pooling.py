"""Predictions of several kinds in one."""

import numpy as np
import pytest
from scipy import stats

from pogp.online.pooling import Chances, Slopes, pooled, pooled_slopes
from pogp.online.spreading import Prediction

N, P, K = 7, 3, 2


def made_up(x):
    """Two kinds of predictions at inputs (n, p), and their chances: smooth functions."""
    turns = np.arange(1.0, 1 + P * K * 2).reshape(2, P, K)
    angle = np.einsum("np,cpk->cnk", x, turns) / 3
    variance = np.exp(np.cos(angle) + np.array([0.0, 2.0])[:, None, None])
    kinds = Prediction(3 * np.sin(angle), variance, variance * (0.5 + 0.4 * np.sin(2 * angle)))
    past = [0.5 + 0.45 * np.sin(angle[0] + shift) for shift in (0.0, 1.0)]
    return kinds, Chances(*(np.array([1 - each, each]) for each in past))


def inputs():
    return np.random.default_rng(0).normal(size=(N, P))


def test_a_kind_that_is_certain_is_told_as_it_is():
    kinds, _ = made_up(inputs())
    for i in range(2):
        certain = np.zeros((2, N, K))
        certain[i] = 1.0
        found = pooled(kinds, Chances(certain, certain))
        for value, expected in zip(found, kinds, strict=True):
            np.testing.assert_allclose(value, expected[i], rtol=1e-10)


def test_the_band_holds_its_share_of_the_mixture():
    kinds, chances = made_up(inputs())
    found = pooled(kinds, chances)
    half = stats.norm.ppf(0.975) * np.sqrt(found.variance)
    each = stats.norm(kinds.mean, np.sqrt(kinds.variance))
    held = each.cdf(found.mean + half) - each.cdf(found.mean - half)
    np.testing.assert_allclose(np.sum(chances.band * held, axis=0), 0.95, rtol=1e-10)


def test_the_mean_is_that_of_the_logarithmic_pool():
    kinds, chances = made_up(inputs())
    weights = chances.mean / kinds.variance
    expected = np.sum(weights * kinds.mean, axis=0) / weights.sum(axis=0)
    np.testing.assert_allclose(pooled(kinds, chances).mean, expected, rtol=1e-10)


@pytest.mark.parametrize("sure", [1e-290, 1e-12])
@pytest.mark.parametrize("chance", [0.0, 1e-300, 0.5, 1.0])
def test_extreme_variances_and_chances(sure, chance):
    variance = np.array([[[sure]], [[1e6]]])
    kinds = Prediction(np.array([[[0.0]], [[5.0]]]), variance, 0.5 * variance)
    chances = np.array([[[1.0 - chance]], [[chance]]])
    found = pooled(kinds, Chances(chances, chances))
    assert np.isfinite(np.array(found)).all()
    if 0.0 < chance < 1.0:
        assert abs(found.mean[0, 0]) < 1e-9  # of two that are equally likely the sure one is told


def test_slopes_are_those_of_finite_differences():
    x, step = inputs(), 1e-6

    def slopes(of):
        """Return derivatives by each input, before the axis of outputs."""
        parts = []
        for move in step * np.eye(P):
            ahead, behind = of(x + move), of(x - move)
            pairs = zip(ahead, behind, strict=True)
            parts.append([(a - b) / (2 * step) for a, b in pairs])
        return [np.stack(part, axis=-2) for part in zip(*parts, strict=True)]

    kinds, chances = made_up(x)
    of_kinds = Slopes(*slopes(lambda x: made_up(x)[0]))
    of_chances = Chances(*slopes(lambda x: made_up(x)[1]))
    found = pooled_slopes(kinds, chances, of_kinds, of_chances)
    mean, _, latent = slopes(lambda x: pooled(*made_up(x)))
    for value, expected in zip(found, (mean, latent), strict=True):
        assert value.shape == (N, P, K)
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6)
