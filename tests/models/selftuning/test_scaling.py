"""Self-tuning models with `scale`: the method on standardised data, in the units of the user."""

import numpy as np
import pytest

from ...conftest import assert_same_state, smooth_2d
from .test_model import KERNEL, NOISE, WARMUP, N, X, Y, inside, tuning

# ---- scaled


def moments(values):
    return values.mean(axis=0), values.std(axis=0)


@pytest.mark.parametrize("method", ["absorbing", "pog", "streaming-vfe"])
def test_with_scale_it_is_the_method_on_standardised_data(method):
    inputs, targets = smooth_2d(N)
    inputs, targets = np.array([300.0, -1e-3]) + inputs * [50.0, 1e-4], 1e4 + 700 * targets
    model = tuning(method, scale=True, kernel=KERNEL, noise=NOISE)
    trace = model.learn(inputs, targets)
    (centre, spread), (mean, deviation) = moments(inputs[:WARMUP]), moments(targets[:WARMUP])
    scaled, expected = (inputs - centre) / spread, inside(method, KERNEL, NOISE)
    expected.learn(scaled[:WARMUP], (targets[:WARMUP] - mean) / deviation)
    rest = expected.learn(scaled[WARMUP:], (targets[WARMUP:] - mean) / deviation)
    np.testing.assert_allclose(trace.mean[WARMUP:], mean + deviation * rest.mean)
    np.testing.assert_allclose(trace.variance[WARMUP:], deviation**2 * rest.variance)
    np.testing.assert_allclose(trace.records[WARMUP:, 2:], rest.records[:, 2:], rtol=1e-6)
    np.testing.assert_array_equal(model.indices, expected.indices)
    np.testing.assert_allclose(model.dictionary, inputs[model.indices], rtol=1e-12)
    for latent in (False, True):
        ours, theirs = model.predict(inputs, latent), expected.predict(scaled, latent)
        np.testing.assert_allclose(ours[0], mean + deviation * theirs[0])
        np.testing.assert_allclose(ours[1], deviation**2 * theirs[1])
        np.testing.assert_allclose(
            model.covariance(inputs[:5], latent),
            deviation**2 * expected.covariance(scaled[:5], latent),
        )
    ours, theirs = (m.sample(x[:5], 3, 0) for m, x in ((model, inputs), (expected, scaled)))
    np.testing.assert_allclose(ours, mean + deviation * theirs)


def test_each_output_has_a_scale_of_its_own():
    both = np.column_stack([Y, 1e6 * np.cos(X[:, 0]) - 1e7])
    model = tuning(scale=True)
    trace = model.learn(X, both)
    mean, variance = model.predict(X)
    assert mean.shape == variance.shape == trace.mean.shape == (N, 2)
    errors = np.sqrt(np.mean((mean - both) ** 2, axis=0))
    assert (errors < 0.2 * both.std(axis=0)).all()
    assert (trace.variance[WARMUP:, 1] > 1e8 * trace.variance[WARMUP:, 0]).all()
    joint = model.covariance(X[:4])
    assert joint.shape == (4, 4, 2)
    np.testing.assert_allclose(np.einsum("iik->ik", joint), variance[:4])
    draws = model.sample(X[:4], 4000, seed=0)
    np.testing.assert_allclose(draws.mean(axis=0), mean[:4], rtol=0.02)


def test_the_scale_is_that_of_the_first_slice():
    drifting = np.where(np.arange(N) < WARMUP, Y, 100 * Y)
    short, long = tuning(scale=True), tuning(scale=True)
    short.learn(X[: WARMUP + 5], drifting[: WARMUP + 5])
    trace = long.learn(X, drifting)
    model = tuning(scale=True)
    for i in range(WARMUP + 5):
        model.learn(X[i], drifting[i])
    assert_same_state(model, short)
    tail = long.copy().learn(X[:5], Y[:5])
    np.testing.assert_array_equal(long.learn(X[:5], Y[:5]).records, tail.records)
    for name in ("input_centre", "input_spread", "target_centre", "target_spread"):
        np.testing.assert_array_equal(long.state()[name], short.state()[name])
    assert len(trace) == N


def test_constant_columns_keep_their_unit():
    constant = np.column_stack([X, np.full(N, 7.0)])
    model = tuning("dense", scale=True)
    model.learn(constant, np.full(N, 3.0))
    mean, variance = model.predict(constant)
    np.testing.assert_allclose(mean, 3.0, atol=1e-6)
    assert np.isfinite(variance).all()
