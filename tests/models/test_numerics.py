"""Hard numbers: little noise, repeated inputs, extreme scales, long runs; and what is random."""

import numpy as np
import pytest
from scipy import stats

import pogp

from ..conftest import BACKENDS, extended_solution, repeated, smooth_1d, smooth_2d
from ..pairwise import pairwise

CAP = 40
VIEWS = ("newest", "everywhere")
LENGTH = {"compiled": 2000, "reference": 200}  # of streams; the reference is slow


def assert_fresh(model, kernel, noise, X, scale, mean=0.0, tolerance=1e-6):
    """Predictions are those of a solve in extended precision on what is retained."""
    expected, variance = extended_solution(kernel, noise, mean, model.dictionary, model.targets, X)
    predicted, latent = model.predict(X, latent=True)
    np.testing.assert_allclose(predicted, expected, rtol=0, atol=tolerance * scale)
    prior = float(kernel.diag(X[:1])[0])
    np.testing.assert_allclose(latent, variance, rtol=0, atol=tolerance * prior)
    assert (latent >= 0).all()
    assert (model.predict(X)[1] >= noise).all()


def crowded(n, seed=0, noise=0.1):
    """Inputs so close that K has no more than a handful of dimensions in float64."""
    X, y = smooth_1d(n, seed, noise)
    return X / 3, y


STREAMS = {"repeated": repeated, "crowded": crowded, "plane": smooth_2d}
RATIOS = (1e-3, 1e-6, 1e-8, 1e-10)


def capped(kernel, noise, view):
    return pogp.POG(kernel, noise, None, view=view, max_size=CAP)


@pairwise(backend=BACKENDS, view=VIEWS, ratio=RATIOS, name=list(STREAMS))
def test_little_noise(backend, view, ratio, name):
    """Noise as a share of the kernel's variance; many samples, of which 40 are kept."""
    kernel, noise = pogp.RBF(0.8, variance=4.0), 4.0 * ratio
    X, y = STREAMS[name](LENGTH[backend], seed=1, noise=np.sqrt(noise))
    model = capped(kernel, noise, view)
    trace = model.learn(X, y)
    assert model.size == CAP
    assert np.isfinite(trace.records).all()
    assert (trace.variance >= noise).all()
    assert (trace.variance <= (4.0 + noise) * (1 + 1e-12)).all()
    assert_fresh(model, kernel, noise, np.vstack([X[:60], X[:20] + 0.01]), scale=1.0)


@pairwise(backend=BACKENDS, ratio=RATIOS, name=list(STREAMS))
def test_little_noise_in_the_dense_model(backend, ratio, name):
    kernel, noise = pogp.RBF(0.8, variance=4.0), 4.0 * ratio
    X, y = STREAMS[name](300, seed=1, noise=np.sqrt(noise))
    model = pogp.DenseGP(kernel, noise)
    assert (model.learn(X, y).variance >= noise).all()
    assert_fresh(model, kernel, noise, np.vstack([X[:60], X[:20] + 0.01]), scale=1.0)


@pairwise(backend=BACKENDS, view=VIEWS, ratio=RATIOS, name=list(STREAMS))
def test_less_noise_than_the_targets_have(backend, view, ratio, name):
    """Interpolated noise cannot be had to 1e-6 in float64: the last bits of K move it by more."""
    kernel, noise = pogp.RBF(0.8, variance=4.0), 4.0 * ratio
    X, y = STREAMS[name](LENGTH[backend], seed=1, noise=0.1)
    model = capped(kernel, noise, view)
    assert np.isfinite(model.learn(X, y).records).all()
    expected, moved = last_bits(kernel, noise, model, X[:60])
    tolerance = 1e-6 * max(1.0, np.abs(expected).max()) + 1000 * moved
    np.testing.assert_allclose(model.predict(X[:60])[0], expected, rtol=0, atol=tolerance)


def last_bits(kernel, noise, model, X):
    """Return the exact mean at X, and how far it moves if K changes in its last bits."""
    Z, rng = model.dictionary, np.random.default_rng(0)

    def nudged(A, B):
        values = kernel(A, B)
        if A is not Z or B is not Z:
            return values
        nudge = np.triu(rng.choice([-1, 1], values.shape) * np.spacing(values), 1)
        return values + nudge + nudge.T

    exact, other = (
        extended_solution(function, noise, 0.0, Z, model.targets, X)[0]
        for function in (kernel, nudged)
    )
    return exact, np.abs(exact - other).max()


@pytest.mark.parametrize("view", VIEWS)
def test_one_input_again_and_again(backend, view):
    """K has rank one; the posterior is that of the mean of the retained targets."""
    y = np.random.default_rng(0).normal(3.0, 1.0, 200)
    model = pogp.POG(pogp.RBF(), 0.5, None, view=view, max_size=10)
    model.learn(np.zeros((200, 1)), y)
    mean, variance = model.predict([0.0], latent=True)
    assert mean == pytest.approx(model.targets.sum() / (10 + 0.5), rel=1e-11)
    assert variance == pytest.approx(0.5 / (10 + 0.5), rel=1e-11)


# ---- scales


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_the_unit_of_the_targets_does_not_matter(backend, view, scale):
    X, y = smooth_2d(LENGTH[backend] // 2, seed=2)
    unit = pogp.POG(pogp.RBF(0.7, 1.2), 0.05, 1e-3, view=view, max_size=CAP, mean=0.3)
    scaled = pogp.POG(
        pogp.RBF(0.7, 1.2 * scale**2),
        0.05 * scale**2,
        1e-3,
        view=view,
        max_size=CAP,
        mean=0.3 * scale,
    )
    one, two = unit.learn(X, y), scaled.learn(X, y * scale)
    assert unit.indices.tolist() == scaled.indices.tolist()
    np.testing.assert_allclose(two.mean / scale, one.mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(two.variance / scale**2, one.variance, rtol=1e-9)
    np.testing.assert_allclose(two.spent, one.spent, rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_targets_of_another_scale_than_the_kernel(backend, view, scale):
    X, y = smooth_2d(LENGTH[backend] // 2, seed=2)
    kernel = pogp.RBF(0.7, 1.2)
    model = pogp.POG(kernel, 0.05, 1e-3, view=view, max_size=CAP)
    trace = model.learn(X, y * scale)
    assert np.isfinite(trace.records).all()
    assert_fresh(model, kernel, 0.05, X[:50], scale)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("value", [0.0, 1.0, -1e9])
def test_constant_targets(backend, view, value):
    X, _ = smooth_2d(120, seed=3)
    model = pogp.POG(pogp.RBF(0.7), 0.05, 1e-3, view=view, max_size=CAP, mean=value)
    trace = model.learn(X, np.full(120, value))
    np.testing.assert_array_equal(trace.mean, value)
    np.testing.assert_array_equal(model.predict(X)[0], value)
    other = pogp.POG(pogp.RBF(0.7), 0.05, 1e-3, view=view, max_size=CAP)
    assert np.isfinite(other.learn(X, np.full(120, value)).records).all()


@pytest.mark.parametrize("view", VIEWS)
def test_removing_outliers_restores_the_model(backend, view):
    X, y = smooth_2d(300, seed=4)
    spoilt = np.where(np.arange(300) % 25 == 0, 1e6, y)
    kernel = pogp.Matern32(0.7)
    model = capped(kernel, 0.05, view)
    assert np.isfinite(model.learn(X[:200], spoilt[:200]).records).all()
    for index in model.indices[model.targets == 1e6]:
        model.remove(index)
    assert np.abs(model.targets).max() < 10
    assert_fresh(model, kernel, 0.05, X[:50], scale=1e6, tolerance=1e-10)
    model.learn(X[200:], y[200:])
    assert_fresh(model, kernel, 0.05, X[:50], scale=1.0, tolerance=1e-9)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("scale", [1e-30, 1e-6, 1e6, 1e30])
def test_the_unit_of_the_inputs_does_not_matter(backend, view, scale):
    X, y = smooth_2d(120 if backend == "compiled" else 60, seed=5)
    unit = pogp.POG(pogp.RBF(0.7), 0.05, 1e-3, view=view, max_size=CAP)
    scaled = pogp.POG(pogp.RBF(0.7 * scale), 0.05, 1e-3, view=view, max_size=CAP)
    one, two = unit.learn(X, y), scaled.learn(X * scale, y)
    assert unit.indices.tolist() == scaled.indices.tolist()
    np.testing.assert_allclose(two.records, one.records, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kernel", [pogp.RBF, pogp.Matern12, pogp.Matern32, pogp.Matern52])
@pytest.mark.parametrize("view", VIEWS)
def test_inputs_that_are_all_far_apart(backend, kernel, view):
    """No two know of each other: every prediction is the prior, every removal an equal."""
    X = 1e50 * np.arange(1.0, 101.0)[:, None]
    model = pogp.POG(kernel(), 0.1, None, view=view, max_size=10)
    trace = model.learn(X, np.full(100, 2.0))
    np.testing.assert_array_equal(trace.mean, 0.0)
    np.testing.assert_allclose(trace.variance, 1.1, rtol=1e-15)
    assert model.indices.tolist() == list(range(90, 100))


# ---- for ever


def test_a_long_run_neither_drifts_nor_grows(monkeypatch):
    monkeypatch.setenv("POGP_BACKEND", "compiled")
    kernel = pogp.RBF(0.6)
    for noise, view in ((0.01, "newest"), (1e-6, "newest"), (0.01, "everywhere")):
        model = pogp.POG(kernel, noise, None, view=view, max_size=20)
        X, y = smooth_2d(30_000, seed=6)
        model.learn(X[:1000], y[:1000])
        held = model.nbytes
        model.learn(X[1000:], y[1000:])
        assert model.nbytes == held
        assert model.seen == 30_000
        assert_fresh(model, kernel, noise, X[:100], scale=1.0)


@pytest.mark.parametrize("view", VIEWS)
def test_a_constant_budget_bounds_the_model_order(monkeypatch, view):
    """Theorem 2, for inputs uniform on a compact set."""
    monkeypatch.setenv("POGP_BACKEND", "compiled")
    rng = np.random.default_rng(7)
    X = rng.uniform(size=(40_000, 2))
    y = np.sin(6 * X[:, 0]) * np.cos(4 * X[:, 1]) + 0.1 * rng.normal(size=40_000)
    budget = {"newest": 1e-4, "everywhere": 0.12}[view]
    model = pogp.POG(pogp.RBF(0.4), 0.05, budget, view=view)
    size = model.learn(X, y).size
    assert size[-1] > 20
    assert size[20_000:].max() <= size[:20_000].max() + 5


# ---- chance


def subset(seed, n, cap):
    X = np.arange(float(n))[:, None]
    model = pogp.RandomSubset(pogp.RBF(), 0.1, cap, seed=seed)
    model.learn(X, X[:, 0])
    return model.indices


def test_a_random_subset_is_uniform(monkeypatch):
    """Over many seeds, each of 30 samples is retained equally often, and so is each pair."""
    monkeypatch.setenv("POGP_BACKEND", "compiled")
    n, cap, runs = 30, 6, 1000
    together = np.zeros((n, n))
    for seed in range(runs):
        retained = subset(seed, n, cap)
        together[np.ix_(retained, retained)] += 1
    counts, expected = np.diagonal(together), runs * cap / n
    assert counts.sum() == runs * cap
    # drawn without replacement, they vary by (1 - cap/n) n/(n - 1) of what a multinomial would
    statistic = ((counts - expected) ** 2 / expected).sum() / ((1 - cap / n) * n / (n - 1))
    assert 1e-3 < stats.chi2.sf(statistic, n - 1) < 1 - 1e-3
    share = cap * (cap - 1) / (n * (n - 1))
    pairs = together[np.triu_indices(n, 1)]
    deviations = (pairs - runs * share) / np.sqrt(runs * share * (1 - share))
    assert np.abs(deviations).max() < 4.5
    assert 0.9 < deviations.std() < 1.1


def test_both_cores_draw_alike(monkeypatch):
    draws = []
    for name in ("compiled", "reference"):
        monkeypatch.setenv("POGP_BACKEND", name)
        draws.append([subset(seed, 100, 9).tolist() for seed in range(5)])
    assert draws[0] == draws[1]
