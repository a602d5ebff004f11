"""Retained samples: hard streams, blocks, the ends of the range, and what a call costs."""

import time
import tracemalloc

import numpy as np
import pytest

import pogp

from ..conftest import BACKENDS, assert_same_state, smooth_2d
from ..pairwise import pairwise


def ramp(n, step, noise, seed=0):
    """Inputs in order, a fraction of a length-scale apart."""
    x = step * np.arange(n)
    return x[:, None], np.sin(x / 3) + np.sqrt(noise) * np.random.default_rng(seed).normal(size=n)


def assert_inverse(model, noise):
    """P is the inverse that brute force finds, relative to how well that can be known."""
    core = model._posterior.core
    A = model.kernel(core.inputs) + noise * np.eye(core.size)
    values, vectors = np.linalg.eigh(A)
    root = (vectors * np.sqrt(values)) @ vectors.T
    rounding = np.finfo(float).eps * values[-1] / noise
    assert np.abs(root @ core.precision @ root - np.eye(core.size)).max() < 1e-9 + 1e3 * rounding
    np.testing.assert_allclose(
        core.precision, np.linalg.inv(A), rtol=0, atol=(1e-9 + 1e3 * rounding) / noise
    )


@pairwise(
    backend=BACKENDS,
    options=[{"budget": 1e-5}, {"budget": None, "max_size": 50}],
    step=[0.1, 0.2, 0.3, 0.4, 0.5],
    noise=[1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8],
)
def test_a_ramp_is_finite_and_exact(backend, options, step, noise):
    n = 3000 if backend == "compiled" else 200
    X, y = ramp(n, step, noise)
    model = pogp.POG(pogp.RBF(1.0), noise, **options)
    means, variances = [], []
    for start in range(0, n, 100):
        rows = slice(start, start + 100)
        trace = model.learn(X[rows], y[rows])
        means.append(trace.mean)
        variances.append(trace.variance)
    mean, variance = model.predict(X[-200:])
    for part in (*means, mean):
        assert np.isfinite(part).all()
    for part in (*variances, variance):
        assert np.isfinite(part).all()
        assert (part > 0).all()
    assert_inverse(model, noise)


# ---- in blocks


@pairwise(
    backend=BACKENDS,
    view=["newest", "everywhere"],
    noise=[0.5, 0.05, 2e-3, 1e-5],
    options=[{"budget": 1e-3}, {"budget": 0.2, "max_size": 30}],
)
def test_blocks_retain_what_single_samples_retain(backend, view, noise, options):
    """Points come, go and move between slots in the middle of a block, several at once."""
    n = 200 if backend == "compiled" else 80
    X, y = smooth_2d(n, seed=3)
    models = [pogp.POG(pogp.RBF(0.7), noise, view=view, **options) for _ in range(3)]
    whole = models[0].learn(X, y).records
    single = [models[1].learn(*sample).records for sample in zip(X, y, strict=True)]
    parts = [models[2].learn(X[i : i + 7], y[i : i + 7]).records for i in range(0, n, 7)]
    for records in (single, parts):
        np.testing.assert_allclose(np.concatenate(records), whole, rtol=1e-6, atol=1e-8)
    for model in models[1:]:
        assert model.indices.tolist() == models[0].indices.tolist()
    for model in models:
        assert_inverse(model, noise)


def test_a_copy_from_the_middle_of_a_block_continues_bit_for_bit():
    X, y = smooth_2d(200, seed=5)
    model = pogp.POG(pogp.RBF(0.7), 0.05, None, max_size=30)
    model.learn(X[:77], y[:77])
    twin = model.copy()
    one, two = model.learn(X[77:], y[77:]), twin.learn(X[77:], y[77:])
    np.testing.assert_array_equal(one.records, two.records)
    assert_same_state(model, twin)


# ---- numbers that are not finite


@pytest.mark.parametrize("rows", [1, 7, 50])
def test_results_that_are_not_finite_raise_and_change_nothing(backend, rows):
    X, y = smooth_2d(60, seed=6)
    model = pogp.POG(pogp.RBF(0.7, 1e-220), 1e-221, None, max_size=8)
    model.learn(X[:10], 0.0 * y[:10])
    before = model.state()
    targets = np.zeros(60)
    targets[9 + rows] = 1e99
    with pytest.raises(FloatingPointError, match=f"sample {9 + rows} of the stream"):
        model.learn(X[10 : 10 + rows], targets[10 : 10 + rows])
    assert_same_state(model, before)
    model.learn(X[10:], 0.0 * y[10:])
    assert model.seen == 60


# ---- what a call costs


def test_the_memory_of_a_prediction_is_bounded():
    rng = np.random.default_rng(7)
    X = rng.uniform(-5, 5, (300, 3))
    queries = rng.uniform(-5, 5, (20_000, 3))
    dense = pogp.DenseGP(pogp.RBF(), 0.1)
    for model in (pogp.POG(pogp.RBF(), 0.1, 0.0), dense, pogp.AbsorbingPOG(pogp.RBF(), 0.1, 0.0)):
        model.learn(X, np.sin(X).sum(axis=1))
        tracemalloc.start()
        try:
            mean, variance = model.predict(queries)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 30e6  # all at once it would be 48e6
        some = rng.integers(0, len(queries), 20)
        np.testing.assert_allclose(model.predict(queries[some])[0], mean[some], atol=1e-12)
        np.testing.assert_allclose(model.predict(queries[some])[1], variance[some], atol=1e-12)


@pytest.mark.parametrize(("cap", "noise"), [(100, 1e-5), (400, 0.1)])
def test_no_step_takes_much_longer_than_another(monkeypatch, cap, noise):
    """The same steps several times, the shortest of each: other work must not decide."""
    monkeypatch.setenv("POGP_BACKEND", "compiled")
    X, y = smooth_2d(cap + 1000, seed=8)
    start = pogp.POG(pogp.RBF(0.4), noise, None, max_size=cap)
    start.learn(X[:cap], y[:cap])
    for _ in range(3):  # a busy machine spoils a measurement, and an expensive step all of them
        usual, longest = relative_times(start, X[cap:], y[cap:])
        if usual <= 5 and longest <= 10:
            return
    raise AssertionError(f"steps take up to {longest:.1f} times the median, usually {usual:.1f}")


def relative_times(start, X, y):
    """Return the 99.9 % quantile and the largest of the times of steps, in medians."""
    times = np.empty((4, len(y)))
    for run in times:
        model = start.copy()
        for i in range(len(y)):
            begin = time.thread_time_ns()
            model.predict(X[i])
            model.learn(X[i], y[i])
            run[i] = time.thread_time_ns() - begin
    shortest = times.min(axis=0)
    return np.percentile(shortest, [99.9, 100]) / np.median(shortest)
