"""The simple predictors: against sums and solves of all samples at once."""

import numpy as np
import pytest

import pogp
from pogp.online.samples import Samples
from pogp.online.scales import VERY_FAR, Scales
from pogp.online.simple_predictors import (
    ABSURD,
    FORGETTING,
    NAMES,
    PRIOR_VARIANCE,
    TRUSTED,
    WINDOW,
    LinearModel,
    SimplePredictors,
    n_lags,
)
from pogp.slices import finished

from ..conftest import assert_same_state

OUTPUTS = 2


def stream(n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X @ rng.normal(size=(3, OUTPUTS)) + 0.1 * rng.normal(size=(n, OUTPUTS))


def test_an_absurd_input_hardly_changes_what_is_very_far():
    X, Y = stream()
    scales, predictors = Scales.of(X, Y), SimplePredictors(3, OUTPUTS)
    assert predictors.very_far(scales) == VERY_FAR
    tail, absurd = scales.centre + 8.0 * scales.deviation, scales.centre.copy()
    absurd[1] += 1e6
    predictors.remember_far(tail, scales)
    np.testing.assert_allclose(predictors.very_far(scales), ABSURD * 8.0)
    predictors.remember_far(absurd, scales)
    np.testing.assert_allclose(predictors.very_far(scales), ABSURD * np.array([8.0, 32.0, 8.0]))
    twin = SimplePredictors(3, OUTPUTS)
    twin.restore(predictors.state())
    np.testing.assert_array_equal(twin.farthest, predictors.farthest)
    predictors.trust = -2.0 * TRUSTED  # it is known who is better there
    assert predictors.very_far(scales) == VERY_FAR
    for wrong in (-np.ones(3), np.full(3, np.nan), np.ones(2)):
        with pytest.raises(ValueError, match="far inputs"):
            twin.restore({**twin.state(), "farthest": wrong})


def test_recursive_least_squares_is_the_solution_of_all_samples(backend):
    H, Y = stream()
    model = LinearModel(3, OUTPUTS)
    for h, y in zip(H, Y, strict=True):
        model.learn(h, y)
    age = np.arange(len(H))[::-1]
    discounts = FORGETTING**age
    prior = FORGETTING ** len(H) / PRIOR_VARIANCE * np.eye(3)
    expected = np.linalg.solve((H.T * discounts) @ H + prior, (H.T * discounts) @ Y)
    np.testing.assert_allclose(model.w, expected, rtol=1e-8)
    np.testing.assert_allclose(model.P, np.linalg.inv((H.T * discounts) @ H + prior), rtol=1e-7)


def test_the_variance_of_unobserved_coefficients_is_bounded():
    model = LinearModel(2, 1)
    for _ in range(12000):
        model.learn(np.array([1.0, 0.0]), np.ones(1))
    assert np.isfinite(model.P).all()
    assert model.P.max() < 2e6
    np.testing.assert_allclose(model.w[0], 1.0)


def predicted(predictors, x, scales):
    means, variances = np.empty((2, len(NAMES), OUTPUTS))
    scaled = x if scales is None else scales.input(x)
    predictors.predict_one(scaled, scales, means, variances)
    return means, variances


def learned(X, Y, scales):
    predictors = SimplePredictors(3, OUTPUTS)
    means = []
    for x, y in zip(X, Y, strict=True):
        means.append(predicted(predictors, x, scales)[0])
        predictors.learn(y, means[-1], scales, 0.0)
    return predictors, np.array(means)


def test_the_mean_and_the_last_target():
    X, Y = stream()
    for scales in (None, Scales.of(X, Y)):
        predictors, means = learned(X, Y, scales)
        np.testing.assert_allclose(means[1:, 1], Y[:-1])
        expected = np.cumsum(Y, axis=0)[:-1] / np.arange(1, len(Y))[:, None]
        np.testing.assert_allclose(means[1:, 0], expected)
        np.testing.assert_allclose(predictors.mean, Y.mean(axis=0))


def test_linear_models_predict_linear_functions():
    X, Y = stream(400)
    Y = 1e6 + 1e3 * Y
    predictors, means = learned(X, Y, Scales.of(X, Y))
    errors = np.sqrt(np.mean((means[200:] - Y[200:, None]) ** 2, axis=(0, 2)))
    assert errors[2] < 115
    assert errors[3] < 115
    assert errors[0] > 500
    assert (predictors.errors[2:] < 2 * 115**2).all()


@pytest.mark.parametrize("scaled", [False, True])
def test_many_rows_are_predicted_as_one_by_one(scaled):
    X, Y = stream()
    scales = Scales.of(X, Y) if scaled else None
    predictors, _ = learned(X, Y, scales)
    queries = scales.inputs(X[:9]) if scaled else X[:9]
    means, variances = predictors.predict(queries, scales)
    for i, x in enumerate(X[:9]):
        mean, variance = predicted(predictors, x, scales)
        np.testing.assert_allclose(means[:, i], mean, rtol=1e-12)
        np.testing.assert_array_equal(variances[:, i], variance)


def test_the_influence_of_an_outlier_is_bounded():
    X, Y = stream()
    scales = Scales.of(X, Y)
    found = []
    for wild in (1e3, 1e9):
        predictors, _ = learned(X, Y, scales)
        means, _ = predicted(predictors, X[0], scales)
        predictors.learn(np.full(OUTPUTS, wild), means, scales, 3.5)
        assert (predictors.lags == Y[: -1 - n_lags(OUTPUTS) : -1]).all()
        means = predicted(predictors, X[1], scales)[0]
        assert (means[1] == wild).all()  # it has its own scores after a surprise
        found.append(np.delete(means, 1, axis=0))
    np.testing.assert_allclose(found[0], found[1])
    assert np.abs(found[0]).max() < 30


def test_fitted_linear_models_equal_learning_in_order():
    X, Y = stream()
    scales, n = Scales.of(X, Y), len(X)
    samples = Samples(X, Y, np.arange(n), np.zeros(n, dtype=bool), 0 * Y, np.ones(n), 0 * Y)
    models = finished(SimplePredictors.fitted_linear(scales, samples))
    predictors = SimplePredictors(3, OUTPUTS)
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        means, _ = predicted(
            predictors, x, scales if i else None
        )  # the first sample has no last target
        predictors.learn(y, means, scales if i else None, 0.0)
    for model, expected in zip(models, predictors.linear, strict=True):
        np.testing.assert_allclose(model.w, expected.w, rtol=1e-9)


def test_linear_models_begin_with_the_errors_of_their_predictions():
    X, Y = stream()
    scales, n = Scales.of(X, Y), len(X)
    samples = Samples(X, Y, np.arange(n), np.zeros(n, dtype=bool), 0 * Y, np.ones(n), 0 * Y)
    predictors = SimplePredictors(3, OUTPUTS)
    predictors.scores[:, :2] = 3.0
    predictors.begin_linear(scales, samples)
    kept = samples.select(np.arange(n)[-WINDOW:])
    features, targets = SimplePredictors.training_data(scales, kept)
    for i, H in enumerate(features):
        known = [LinearModel.fitted(H[:j], targets[:j]) for j in range(1, len(H) + 1)]
        errors = targets[1:] - np.array([h @ m.w for h, m in zip(H[1:], known[:-1], strict=True)])
        np.testing.assert_allclose(predictors.linear[i].w, known[-1].w, rtol=1e-6, atol=1e-9)
        squares = np.mean(errors**2, axis=0) * scales.unit**2
        np.testing.assert_allclose(predictors.errors[2 + i], squares, rtol=1e-6)
    assert (predictors.scores[:, 2] > 3.0).all()  # the function is linear


def test_restored_predictors_continue_as_the_original():
    X, Y = stream()
    scales = Scales.of(X, Y)
    predictors, _ = learned(X, Y, scales)
    twin = SimplePredictors(3, OUTPUTS)
    twin.restore(predictors.state())
    for each in (predictors, twin):
        means, _ = predicted(each, X[0], scales)
        each.learn(Y[0], means, scales, 0.0)
    assert_same_state(twin.state(), predictors.state())


@pytest.mark.parametrize(
    ("target", "bound", "lags"),
    [
        (101.0, 3.5, [101.0, 100.0, 1.0]),  # the outlier was the first target of a new level
        (99.0, 0.0, [99.0, 100.0, 1.0]),
        (2.0, 0.0, [2.0, 1.0, 0.0]),  # it was isolated
        (-100.0, 3.5, [1.0, 0.0, 0.0]),
    ],
)
def test_outliers_are_among_the_last_targets_if_they_stay(backend, target, bound, lags):
    predictors, means = SimplePredictors(1, 1), np.zeros((len(NAMES), 1))
    for y, of in ((0.0, 0.0), (1.0, 0.0), (100.0, 3.5), (target, bound)):
        other = SimplePredictors(1, 1)
        other.restore(predictors.state())
        predictors.learn(np.array([y]), means, None, of)
        other.learn(np.array([y]), means, None, of)
        np.testing.assert_array_equal(other.lags, predictors.lags)
    np.testing.assert_array_equal(predictors.lags[:3, 0], lags)


def test_collinear_columns_that_become_large_are_learned():
    rng = np.random.default_rng(0)
    z = np.where(np.arange(900) < 450, 1.0, 1e6)[:, None] * rng.normal(size=(900, 1))
    trace = pogp.OnlineGP(max_size=20).learn(np.hstack([z, z]), rng.normal(size=900))
    assert np.isfinite(trace.mean).all()
    H = np.hstack([z, z]) * 1e3
    model = LinearModel.fitted(H, H[:, :1] + rng.normal(size=(900, 1)))
    assert (np.diagonal(model.P) > 0).all()
    np.testing.assert_allclose(model.w.sum(), 1.0, rtol=1e-3)
