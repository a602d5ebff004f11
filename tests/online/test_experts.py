"""The simplest predictors: against sums and solves of all samples at once."""

import numpy as np
import pytest

from pogp.online.experts import FORGETTING, LAGS, NAMES, VAGUE, Experts, Linear
from pogp.online.rows import Samples
from pogp.online.scales import Scales
from pogp.slices import finished

from ..conftest import assert_same_state

OUTPUTS = 2


def stream(n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X @ rng.normal(size=(3, OUTPUTS)) + 0.1 * rng.normal(size=(n, OUTPUTS))


def test_recursive_least_squares_is_the_solve_of_all_samples(backend):
    H, Y = stream()
    line = Linear(3, OUTPUTS)
    for h, y in zip(H, Y, strict=True):
        line.learn(h, y)
    age = np.arange(len(H))[::-1]
    worth = FORGETTING**age
    prior = FORGETTING ** len(H) / VAGUE * np.eye(3)
    expected = np.linalg.solve((H.T * worth) @ H + prior, (H.T * worth) @ Y)
    np.testing.assert_allclose(line.w, expected, rtol=1e-8)
    np.testing.assert_allclose(line.P, np.linalg.inv((H.T * worth) @ H + prior), rtol=1e-7)


def test_what_the_stream_says_nothing_of_stays_bounded():
    line = Linear(2, 1)
    for _ in range(12000):
        line.learn(np.array([1.0, 0.0]), np.ones(1))
    assert np.isfinite(line.P).all()
    assert line.P.max() < 2e6
    np.testing.assert_allclose(line.w[0], 1.0)


def glanced(experts, x, scales):
    means, variances = np.empty((2, len(NAMES), OUTPUTS))
    scaled = x if scales is None else scales.input(x)
    experts.glance(scaled, scales, means, variances)
    return means, variances


def taught(X, Y, scales):
    experts = Experts(3, OUTPUTS)
    means = []
    for x, y in zip(X, Y, strict=True):
        means.append(glanced(experts, x, scales)[0])
        experts.learn(y, means[-1], scales, 0.0)
    return experts, np.array(means)


def test_the_mean_and_the_last_target():
    X, Y = stream()
    for scales in (None, Scales.of(X, Y)):
        experts, means = taught(X, Y, scales)
        np.testing.assert_allclose(means[1:, 1], Y[:-1])
        expected = np.cumsum(Y, axis=0)[:-1] / np.arange(1, len(Y))[:, None]
        np.testing.assert_allclose(means[1:, 0], expected)
        np.testing.assert_allclose(experts.mean, Y.mean(axis=0))


def test_linear_models_predict_linear_functions():
    X, Y = stream(400)
    Y = 1e6 + 1e3 * Y
    experts, means = taught(X, Y, Scales.of(X, Y))
    errors = np.sqrt(np.mean((means[200:] - Y[200:, None]) ** 2, axis=(0, 2)))
    assert errors[2] < 115
    assert errors[3] < 115
    assert errors[0] > 500
    assert (experts.errors[2:] < 2 * 115**2).all()


@pytest.mark.parametrize("scaled", [False, True])
def test_many_are_one_by_one(scaled):
    X, Y = stream()
    scales = Scales.of(X, Y) if scaled else None
    experts, _ = taught(X, Y, scales)
    queries = scales.inputs(X[:9]) if scaled else X[:9]
    means, variances = experts.predict_many(queries, scales)
    for i, x in enumerate(X[:9]):
        mean, variance = glanced(experts, x, scales)
        np.testing.assert_allclose(means[:, i], mean, rtol=1e-12)
        np.testing.assert_array_equal(variances[:, i], variance)


def test_an_outlier_moves_them_by_a_bounded_amount():
    X, Y = stream()
    scales = Scales.of(X, Y)
    found = []
    for wild in (1e3, 1e9):
        experts, _ = taught(X, Y, scales)
        means, _ = glanced(experts, X[0], scales)
        experts.learn(np.full(OUTPUTS, wild), means, scales, 3.5)
        assert (experts.held == Y[-1 : -1 - LAGS : -1]).all()
        means = glanced(experts, X[1], scales)[0]
        assert (means[1] == wild).all()  # which is judged apart, after a sample far off
        found.append(np.delete(means, 1, axis=0))
    np.testing.assert_allclose(found[0], found[1])
    assert np.abs(found[0]).max() < 30


def test_refitting_is_learning_in_other_units():
    X, Y = stream()
    scales, n = Scales.of(X, Y), len(X)
    samples = Samples(X, Y, np.arange(n), np.zeros(n, dtype=bool), 0 * Y, np.ones(n))
    lines = finished(Experts.refitted(scales, samples))
    experts = Experts(3, OUTPUTS)
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        means, _ = glanced(experts, x, scales if i else None)  # nothing came before the first one
        experts.learn(y, means, scales if i else None, 0.0)
    for line, expected in zip(lines, experts.linear, strict=True):
        np.testing.assert_allclose(line.w, expected.w, rtol=1e-9)


def test_memory_comes_back_and_goes_on():
    X, Y = stream()
    scales = Scales.of(X, Y)
    experts, _ = taught(X, Y, scales)
    twin = Experts(3, OUTPUTS)
    twin.restore(experts.state())
    for each in (experts, twin):
        means, _ = glanced(each, X[0], scales)
        each.learn(Y[0], means, scales, 0.0)
    assert_same_state(twin.state(), experts.state())
