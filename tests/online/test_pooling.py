"""One prediction from those of several cases."""

import numpy as np
import pytest
from scipy import stats

from pogp.online.pooling import Probabilities, Slopes, pooled, pooled_slopes
from pogp.online.prediction import Prediction

N, P, K = 7, 3, 2


def made_up(x):
    """Predictions of two cases at inputs (n, p), and their probabilities, as smooth functions."""
    turns = np.arange(1.0, 1 + P * K * 2).reshape(2, P, K)
    angle = np.einsum("np,cpk->cnk", x, turns) / 3
    variance = np.exp(np.cos(angle) + np.array([0.0, 2.0])[:, None, None])
    cases = Prediction(3 * np.sin(angle), variance, variance * (0.5 + 0.4 * np.sin(2 * angle)))
    past = [0.5 + 0.45 * np.sin(angle[0] + shift) for shift in (0.0, 1.0)]
    return cases, Probabilities(*(np.array([1 - each, each]) for each in past))


def inputs():
    return np.random.default_rng(0).normal(size=(N, P))


def test_a_certain_case_is_returned_unchanged():
    cases, _ = made_up(inputs())
    for i in range(2):
        certain = np.zeros((2, N, K))
        certain[i] = 1.0
        found = pooled(cases, Probabilities(certain, certain))
        for value, expected in zip(found, cases, strict=True):
            np.testing.assert_allclose(value, expected[i], rtol=1e-10)


def test_the_band_covers_95_percent_of_the_mixture():
    cases, probabilities = made_up(inputs())
    found = pooled(cases, probabilities)
    half = stats.norm.ppf(0.975) * np.sqrt(found.variance)
    each = stats.norm(cases.mean, np.sqrt(cases.variance))
    covered = each.cdf(found.mean + half) - each.cdf(found.mean - half)
    np.testing.assert_allclose(np.sum(probabilities.band * covered, axis=0), 0.95, rtol=1e-10)


def test_the_mean_is_that_of_the_logarithmic_pool():
    cases, probabilities = made_up(inputs())
    weights = probabilities.mean / cases.variance
    expected = np.sum(weights * cases.mean, axis=0) / weights.sum(axis=0)
    np.testing.assert_allclose(pooled(cases, probabilities).mean, expected, rtol=1e-10)


@pytest.mark.parametrize("sure", [1e-290, 1e-12])
@pytest.mark.parametrize("probability", [0.0, 1e-300, 0.5, 1.0])
def test_extreme_variances_and_probabilities(sure, probability):
    variance = np.array([[[sure]], [[1e6]]])
    cases = Prediction(np.array([[[0.0]], [[5.0]]]), variance, 0.5 * variance)
    probabilities = np.array([[[1.0 - probability]], [[probability]]])
    found = pooled(cases, Probabilities(probabilities, probabilities))
    assert np.isfinite(np.array(found)).all()
    if 0.0 < probability < 1.0:
        assert abs(found.mean[0, 0]) < 1e-9  # the case with the smaller variance


def test_slopes_are_finite_differences():
    x, step = inputs(), 1e-6

    def slopes(of):
        """Return derivatives by each input, before the axis of outputs."""
        parts = []
        for move in step * np.eye(P):
            ahead, behind = of(x + move), of(x - move)
            pairs = zip(ahead, behind, strict=True)
            parts.append([(a - b) / (2 * step) for a, b in pairs])
        return [np.stack(part, axis=-2) for part in zip(*parts, strict=True)]

    cases, probabilities = made_up(x)
    of_cases = Slopes(*slopes(lambda x: made_up(x)[0]))
    of_probabilities = Probabilities(*slopes(lambda x: made_up(x)[1]))
    found = pooled_slopes(cases, probabilities, of_cases, of_probabilities)
    mean, _, latent = slopes(lambda x: pooled(*made_up(x)))
    for value, expected in zip(found, (mean, latent), strict=True):
        assert value.shape == (N, P, K)
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6)
