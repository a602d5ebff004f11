"""Errors do not grow: long and badly spaced streams, beside beliefs in long doubles."""

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import pogp
from pogp.compression import Plan
from pogp.criteria import WholePosterior
from pogp.posteriors.absorbed import absorbed_core

from ..oracle.extended import PRIOR, follow, kernel_values
from ..pairwise import pairwise

NOISES = (1e-1, 1e-2, 1e-4, 1e-6, 1e-8)


def walk(n, dimension=1, seed=0):
    """A random walk through a box, which comes back to where it was by other ways."""
    rng = np.random.default_rng(seed)
    X = np.cumsum(0.15 * rng.normal(size=(n, dimension)), axis=0)
    X = np.abs((X + 2) % 8 - 4) - 2
    return X, np.sin(2 * X).sum(axis=1), rng.normal(size=n)


def errors(core, follower, queries):
    """Return the largest errors: of means in posterior deviations, of variances relatively."""
    order = np.argsort(core.arrivals)
    means, latent = core.predict(queries)
    expected, variance = follower.predict(kernel_values(core, queries)[order], PRIOR)
    variance = np.maximum(variance, 0) + core.noise
    shift = np.abs(means[0, :, 0] - core.mean[0] - expected) / np.sqrt(variance)
    return float(shift.max()), float(np.abs((latent[0] + core.noise) / variance - 1).max())


def run(kernel, noise, forgetting, marginalise, n, cap, share=0.1, dimension=1):
    X, f, e = walk(n, dimension)
    core = absorbed_core(kernel, noise, np.array([0.3]), dimension, (forgetting,))
    criterion = WholePosterior(marginalise, share, reduce=marginalise)
    follower = follow(core, criterion, X, f + np.sqrt(noise) * e, Plan(np.full(1, 1e-3), cap))
    assert core.arrivals[np.argsort(core.arrivals)].tolist() == follower.arrivals
    return errors(core, follower, np.vstack([X[-100:], X[:100] + 0.03]))


@pytest.fixture(autouse=True)
def compiled(monkeypatch):
    monkeypatch.setenv("POGP_BACKEND", "compiled")


PROJECTIONS = pytest.mark.parametrize("marginalise", [False, True])


@pytest.mark.parametrize(
    ("kernel", "noise"),
    [(pogp.RBF(), noise) for noise in NOISES] + [(pogp.Matern32(), 1e-4), (pogp.Matern32(), 1e-8)],
    ids=str,
)
@pytest.mark.parametrize(("marginalise", "forgetting"), [(False, 0.999), (True, 1.0)])
def test_after_900_steps_it_agrees_with_extended_precision(noise, marginalise, forgetting, kernel):
    mean, variance = run(kernel, noise, forgetting, marginalise, 900, 30)
    assert mean < 1e-6
    assert variance < 1e-6


@pytest.mark.parametrize("noise", [1e-2, 1e-4, 1e-6])
@PROJECTIONS
def test_two_inputs_and_too_few_points(noise, marginalise):
    mean, variance = run(pogp.RBF(), noise, 1.0, marginalise, 500, 30, dimension=2)
    assert mean < 1e-6
    assert variance < 1e-6


@pytest.mark.parametrize("noise", [1e-2, 1e-8])
def test_the_reference_agrees_with_extended_precision(monkeypatch, noise):
    monkeypatch.setenv("POGP_BACKEND", "reference")
    mean, variance = run(pogp.RBF(), noise, 0.999, False, 300, 20)
    assert mean < 1e-6
    assert variance < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "marginalise", "forgetting", "steps"),
    [
        (1e-8, False, 1.0, 100_000),
        (1e-1, True, 1.0, 5_000),
        (1e-4, False, 0.999, 5_000),
        (1e-8, True, 0.999, 5_000),
    ],
)
def test_after_many_steps_it_agrees_with_extended_precision(noise, marginalise, forgetting, steps):
    mean, variance = run(pogp.RBF(), noise, forgetting, marginalise, steps, 12)
    assert mean < 1e-6
    assert variance < 1e-6


# ---- ramps: each input is a fraction of a length-scale beyond the last


STEPS = (0.1, 0.2, 0.3, 0.4, 0.5)
RAMP_NOISES = (1e-1, 1e-2, 1e-4, 1e-6, 1e-8)
MODELS = {
    "budget": lambda kernel, noise: pogp.AbsorbingPOG(kernel, noise),
    "cap": lambda kernel, noise: pogp.AbsorbingPOG(kernel, noise, None, max_size=300),
    "forgetting": lambda kernel, noise: pogp.AbsorbingPOG(
        kernel, noise, None, max_size=300, forgetting=0.999
    ),
    "SOGP": lambda kernel, noise: pogp.SOGP(kernel, noise, 300),
    "KRLST": lambda kernel, noise: pogp.KRLST(kernel, noise, 300),
}


def ramp(step, noise, samples=600):
    X = step * np.arange(samples)[:, None]
    y = np.sin(X[:, 0] / 3) + np.sqrt(noise) * np.random.default_rng(0).normal(size=samples)
    return X, y


@cache
def dense_error(step, noise):
    """The squared error of the dense GP along a ramp."""
    X, y = ramp(step, noise)
    trace = pogp.DenseGP(pogp.RBF(), noise).learn(X, y)
    return np.mean((y - trace.mean) ** 2)


@pairwise(name=list(MODELS), step=STEPS, noise=RAMP_NOISES)
def test_ramps(name, step, noise):
    error_on_a_ramp(name, step, noise)


@pytest.mark.parametrize("noise", [noise for noise in RAMP_NOISES if noise >= 1e-4])
@pytest.mark.parametrize("step", [step for step in STEPS if step <= 0.2])
@pytest.mark.parametrize("name", ["budget", "cap", "forgetting"])
def test_on_slow_ramps_the_error_is_near_that_of_the_dense_gp(name, step, noise):
    assert error_on_a_ramp(name, step, noise) <= 1.15 * dense_error(step, noise)


def error_on_a_ramp(name, step, noise):
    X, y = ramp(step, noise)
    model = MODELS[name](pogp.RBF(), noise)
    trace = model.learn(X, y)
    error = np.mean((y - trace.mean) ** 2)
    for mean, variance in ((trace.mean, trace.variance), model.predict(X)):
        assert np.isfinite(mean).all()
        assert np.isfinite(variance).all()
        assert (variance > 0).all()
    assert error / y.var() < 1
    return error


FAST = {
    "extrapolated": (0.9, 0.1, 0.3, 20),
    "long": (0.9, 1e-4, 0.5, 60),
    "short": (0.9, 1e-4, 0.4, 25),
    "slower": (0.99, 1e-4, 0.31, 38),
}


@pytest.mark.parametrize("name", FAST)
def test_a_ramp_that_is_forgotten_fast(name):
    """w is refined at some points and not at others: errors in Q must not grow by turns."""
    forgetting, noise, step, cap = FAST[name]
    model = pogp.AbsorbingPOG(pogp.RBF(), noise, None, max_size=cap, forgetting=forgetting)
    X = step * np.arange(400)[:, None]
    trace = model.learn(X, np.sin(X[:, 0]))
    assert np.abs(trace.mean).max() < 1
    core = model._posterior.core
    assert np.abs(core.inverse @ core.gram - np.eye(core.size)).max() < 1e-5


NEAR = {
    "SOGP": (0.1, lambda: pogp.SOGP(pogp.RBF(), 0.1, 10)),
    "forgetting": (
        0.05,
        lambda: pogp.AbsorbingPOG(pogp.RBF(), 1e-6, None, max_size=20, forgetting=0.99),
    ),
    "without forgetting": (0.1, lambda: pogp.AbsorbingPOG(pogp.RBF(), 1e-6, None, max_size=20)),
    "little forgetting": (
        0.1,
        lambda: pogp.AbsorbingPOG(pogp.RBF(), 1e-6, None, max_size=20, forgetting=0.999),
    ),
    "marginalise": (
        0.05,
        lambda: pogp.AbsorbingPOG(
            pogp.RBF(), 1e-6, None, max_size=20, forgetting=0.99, projection="marginalise"
        ),
    ),
}


@pytest.mark.parametrize("twin", ["compiled", "reference"])
@pytest.mark.parametrize("name", NEAR)
def test_prices_stay_right_where_points_are_near(monkeypatch, name, twin):
    """Removals take nearly all of diag(QSQ) from near points; what is left is not rounding."""
    monkeypatch.setenv("POGP_BACKEND", twin)
    step, make = NEAR[name]
    X, model = step * np.arange(300)[:, None], make()
    for i in range(0, 300, 50):
        model.learn(X[i : i + 50], np.sin(X[i : i + 50, 0]))
        core = model._posterior.core
        diagonal = np.diagonal(core.inverse)
        exact = np.diagonal(core.inverse @ core.covariance_of(0) @ core.inverse)
        np.testing.assert_allclose(core.spread / diagonal, exact / diagonal, atol=0.05)
        assert (core.spread >= 0).all()
        assert (core.spread <= diagonal).all()
        assert pogp.from_bytes(model.to_bytes()).copy().seen == i + 50


# ---- published streams, in the order in which they were measured

FOLDER = Path(os.environ.get("POGP_DATA", "nowhere")) / "streams"
RECORDED = sorted(path.stem for path in FOLDER.glob("*.npz"))


@cache
def tuned(name, kernel, drawn):
    """Return the stream, standardised, and a kernel and noise found on 300 of its samples."""
    with np.load(FOLDER / f"{name}.npz") as data:
        X, y = data["x_train"], data["y_train"]
    spread = X.std(axis=0)
    X, y = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0), (y - y.mean()) / y.std()
    rows = np.random.default_rng(0).permutation(len(y))[:300] if drawn else np.arange(300)
    found = pogp.tune(X[rows], y[rows], kernel, restarts=0)
    return X, y, found.kernel, found.noise


@pytest.mark.slow
@pytest.mark.skipif(not FOLDER.is_dir(), reason="POGP_DATA has no streams")
@pairwise(
    name=RECORDED,
    kernel=[pogp.RBF, pogp.Matern32],
    drawn=[False, True],
    forgetting=[1.0, 0.9999, 0.999, 0.99],
    cap=[50, 300],
)
def test_published_streams(name, kernel, drawn, forgetting, cap):
    X, y, kernel, noise = tuned(name, kernel, drawn)
    model = pogp.AbsorbingPOG(kernel, noise, None, max_size=cap, forgetting=forgetting)
    trace = model.learn(X[:600], y[:600])
    # conditioning trusts a noise of the first samples that is far too small, as on pol
    largest = (10 if noise > 1e-6 * y.var() else 1e6) * np.abs(y).max()
    for mean, variance in ((trace.mean, trace.variance), model.predict(X[::7])):
        assert (np.abs(mean) < largest).all()
        assert np.isfinite(variance).all()
        assert (variance > 0).all()
    assert np.isfinite(trace.records).all()


@pytest.mark.slow
@pytest.mark.skipif(not FOLDER.is_dir(), reason="POGP_DATA has no streams")
@pairwise(name=RECORDED, drawn=[False, True], kind=[pogp.SOGP, pogp.KRLST])
def test_published_streams_by_others(name, drawn, kind):
    X, y, kernel, noise = tuned(name, pogp.RBF, drawn)
    model = kind(kernel, noise, 100)
    trace = model.learn(X[:600], y[:600])
    if (
        kind is not pogp.SOGP
    ):  # conditioning trusts a noise of the first samples that is far too small
        assert (np.abs(trace.mean) < 10 * np.abs(y).max()).all()
    assert np.isfinite(trace.records).all()
    assert (trace.variance > 0).all()


def test_points_that_are_too_near_for_another_kernel_go_before_it_is_used():
    """Each leaves enough open given all others, not only given those before it."""
    X, f, e = walk(600)
    y = f + 0.02 * e
    model = pogp.AbsorbingPOG(pogp.RBF(0.1), 4e-4, None, max_size=150, projection="marginalise")
    model.learn(X[:400], y[:400])
    moved = model._posterior.under(pogp.RBF(2.0), 4e-4)
    closed = model._posterior.criterion.novelty_threshold(4e-4, PRIOR)
    assert 1 < moved.size < model.size
    assert (np.diagonal(moved.core.inverse) * closed < 1.0).all()
    exact = np.diagonal(moved.core.inverse @ moved.core.covariance_of(0) @ moved.core.inverse)
    np.testing.assert_allclose(moved.core.spread, exact, rtol=1e-6)
