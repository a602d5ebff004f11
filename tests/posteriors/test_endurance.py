"""The absorbed posterior on long and hostile streams."""

import numpy as np
import pytest

import pogp

from ..oracle.extended import cholesky, kernel_values, solve


def hostile(n, seed=0):
    """Repeats, clusters, outliers of 10⁶, and inputs that drift away."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 2))
    kind, centres = rng.integers(0, 4, n), rng.uniform(-3, 3, (20, 2))
    near = centres[rng.integers(0, 20, n)]
    X[kind == 0] = near[kind == 0]
    X[kind == 1] = near[kind == 1] + 1e-4 * rng.normal(size=(n, 2))[kind == 1]
    X += np.linspace(0, 4, n)[:, None]
    y = np.sin(X).sum(axis=1) + 0.1 * rng.normal(size=n)
    wild = rng.random(n) < 1e-3
    y[wild] = 1e6 * rng.choice([-1, 1], wild.sum())
    return X, y


def assert_sound(model, X):
    core = model._posterior.core
    assert np.abs(core.inverse @ core.gram - np.eye(core.size)).max() < 1e-6
    for latent in (False, True):
        mean, variance = model.predict(X, latent)
        assert np.isfinite(mean).all()
        assert np.isfinite(variance).all()
        assert (variance > 0).all()


@pytest.mark.parametrize(("projection", "n"), [("condition", 100_000), ("marginalise", 20_000)])
def test_many_hostile_samples(projection, n):
    X, y = hostile(n)
    model = pogp.AbsorbingPOG(pogp.RBF(), 0.01, None, max_size=80, projection=projection)
    for start in range(0, len(y), 20_000):
        rows = slice(start, start + 20_000)
        trace = model.learn(X[rows], y[rows])
        assert np.isfinite(trace.records).all()
        assert (trace.variance > 0).all()
        assert_sound(model, X[rows][::97])


@pytest.mark.parametrize("options", [{"forgetting": 0.999, "calibrate": True}, {"budget": 0.1}])
def test_hostile_samples_with_forgetting_or_a_budget(options):
    X, y = hostile(20_000, seed=1)
    model = pogp.AbsorbingPOG(pogp.RBF(), 0.01, **{"budget": None, "max_size": 100, **options})
    model.learn(X, y)
    assert_sound(model, X[::97])


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("noise", [1e-8, 1e-5, 1e-2])
@pytest.mark.parametrize("share", [0.0, 0.1])
def test_all_scales_and_noises_agree_with_a_new_solve(scale, noise, share):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1500, 2))
    X[::5] = np.round(X[::5], 1)
    y = np.sin(3 * X).sum(axis=1)
    model = pogp.AbsorbingPOG(pogp.RBF(scale), noise, None, max_size=40, share=share)
    trace = model.learn(X, y)
    assert np.isfinite(trace.records).all()
    core, queries = model._posterior.core, X[:200]
    k = kernel_values(core, queries)
    w = solve(cholesky(core.gram), k)  # in long doubles
    expected = np.sum(w * (core.covariance[0] @ w), axis=0) + 1 - np.sum(w * k, axis=0)
    means, latent = model._posterior.predict(queries)
    deviation = np.sqrt(expected + noise)
    # a noiseless sum of waves by forty points is far from what the kernel expects: m is rough
    allowed = 1e-6 * deviation + (1e-8 if noise == 1e-8 else 0.0)
    assert (np.abs(means[:, 0] - w.T @ core.values[0, :, 0]) < allowed).all()
    np.testing.assert_allclose(latent + noise, (expected + noise).astype(float), rtol=1e-6)
    assert (latent > 0).all()


def test_memory_and_cost_do_not_grow_with_the_stream():
    X, y = hostile(30_000, seed=2)
    model = pogp.AbsorbingPOG(pogp.RBF(), 0.01, None, max_size=50)
    model.learn(X[:5000], y[:5000])
    held = model.nbytes
    model.learn(X[5000:], y[5000:])
    assert model.nbytes == held


@pytest.mark.parametrize("variance", [1.0, 1e3])
def test_an_input_that_repeats_is_kept_once(variance):
    model = pogp.AbsorbingPOG(pogp.RBF(1.0, variance), 0.04, 0.1)
    y = 0.2 * np.random.default_rng(0).normal(size=500)
    model.learn(np.ones((500, 1)), y)
    assert model.size == 1
    mean, latent = model.predict([1.0], latent=True)
    assert mean == pytest.approx(y.sum() / (500 + 0.04 / variance), rel=1e-9)
    assert latent == pytest.approx(1 / (500 / 0.04 + 1 / variance), rel=1e-9)


@pytest.mark.parametrize("ratio", [1e-12, 1e-9, 1e-7])
@pytest.mark.parametrize("options", [{}, {"max_size": 100}, {"budget": None, "max_size": 20}])
def test_very_small_noise_and_integer_inputs(backend, ratio, options):
    samples = 400 if backend == "compiled" else 150
    X = np.random.default_rng(1).integers(0, 20, (samples, 1)).astype(float)
    model = pogp.AbsorbingPOG(pogp.RBF(50.0, 100.0), 100 * ratio, **options)
    trace = model.learn(X, X[:, 0] - 9.5)
    assert np.isfinite(trace.records).all()
    np.testing.assert_allclose(model.predict(X)[0], X[:, 0] - 9.5, atol=0.01)
