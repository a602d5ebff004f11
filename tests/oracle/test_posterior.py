"""Posteriors against one dense solve: what is predicted, and each closed form beneath it."""

from functools import cache

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sklearn_kernels

import pogp
from pogp.criteria import Everywhere, Newest
from pogp.distances import distance_of_cost
from pogp.posteriors.retained import retained_core
from pogp.posteriors.retained.loop import Step
from pogp.posteriors.retained.state import POLISH_INTERVAL

from ..conftest import dense_solution, matern52, rbf, smooth_1d, smooth_2d
from .brute_force import BruteForce, hellinger_1d

KERNEL, FUNCTION = pogp.Matern52((0.9, 0.6), 1.4), matern52((0.9, 0.6), 1.4)
NOISE, MEAN = 0.05, 0.8
QUERIES = np.random.default_rng(9).uniform(-1.5, 1.5, (700, 2))  # more than one block of them

MODELS = {
    "newest": lambda: pogp.POG(KERNEL, NOISE, 1e-3, max_removals=1, max_size=40, mean=MEAN),
    "everywhere": lambda: pogp.POG(KERNEL, NOISE, 0.1, view="everywhere", max_size=40, mean=MEAN),
    "dense": lambda: pogp.DenseGP(KERNEL, NOISE, mean=MEAN),
    "random": lambda: pogp.RandomSubset(KERNEL, NOISE, 40, mean=MEAN),
    "window": lambda: pogp.SlidingWindow(KERNEL, NOISE, 40, mean=MEAN),
}


@pytest.fixture(params=MODELS)
def model(request, backend):
    """A model of each kind that has learned 300 samples of two inputs."""
    return learned(request.param, backend).copy()


@cache
def learned(name, backend):
    model = MODELS[name]()
    model.learn(*smooth_2d(300, seed=4))
    return model


def solution(model, X):
    """Return the mean and the covariance of f at X, given what the model retains."""
    return dense_solution(FUNCTION, NOISE, MEAN, model.dictionary, model.targets, X)


def assert_solved(model, X=QUERIES[:60], tolerance=1e-10):
    mean, covariance = solution(model, X)
    predicted, variance = model.predict(X)
    np.testing.assert_allclose(predicted, mean, rtol=0, atol=tolerance)
    np.testing.assert_allclose(variance, np.diagonal(covariance) + NOISE, rtol=0, atol=tolerance)


# ---- the protocol's numbers


def test_predictions_are_those_of_a_dense_solve(model):
    assert_solved(model, QUERIES)


def test_latent_leaves_out_the_noise(model):
    mean, variance = model.predict(QUERIES)
    latent_mean, latent_variance = model.predict(QUERIES, latent=True)
    np.testing.assert_array_equal(mean, latent_mean)
    np.testing.assert_allclose(variance - latent_variance, NOISE, rtol=1e-12)


def test_a_single_point_gives_two_numbers(model):
    for row in QUERIES[:5]:
        mean, variance = model.predict(row)
        assert np.ndim(mean) == np.ndim(variance) == 0
        many_means, many_variances = model.predict(row[None, :])
        assert (mean, variance) == (many_means[0], many_variances[0])


def test_covariance_is_that_of_a_dense_solve(model):
    X = QUERIES[:30]
    _, expected = solution(model, X)
    np.testing.assert_allclose(model.covariance(X, latent=True), expected, rtol=0, atol=1e-11)
    noisy = model.covariance(X)
    np.testing.assert_allclose(noisy, expected + NOISE * np.eye(30), rtol=0, atol=1e-11)
    np.testing.assert_array_equal(noisy, noisy.T)


@pytest.mark.parametrize("latent", [False, True])
def test_samples_have_the_moments_of_the_posterior(model, latent):
    X, n = np.array([[0.0, 0.0], [0.1, 0.0], [2.0, -2.0]]), 40_000
    draws = model.sample(X, n, seed=1, latent=latent)
    assert draws.shape == (n, 3)
    mean, covariance = solution(model, X)
    covariance = covariance + (0.0 if latent else NOISE) * np.eye(3)
    scale = np.sqrt(np.diagonal(covariance))
    np.testing.assert_array_less(np.abs(draws.mean(axis=0) - mean), 4 * scale / np.sqrt(n))
    errors = np.abs(np.cov(draws.T) - covariance) / np.outer(scale, scale)
    assert errors.max() < 4 * np.sqrt(2 / n)
    np.testing.assert_array_equal(draws[:5], model.sample(X, n, seed=1, latent=latent)[:5])
    assert not np.array_equal(draws[:5], model.sample(X, 5, seed=2, latent=latent))


def test_before_learning_a_model_is_its_prior(backend):
    for make in MODELS.values():
        model = make()
        mean, variance = model.predict(QUERIES)
        np.testing.assert_array_equal(mean, MEAN)
        np.testing.assert_allclose(variance, 1.4 + NOISE, rtol=1e-15)
        X = QUERIES[:20]
        np.testing.assert_allclose(model.covariance(X, latent=True), FUNCTION(X, X), atol=1e-14)
        assert abs(model.sample(X[:1], 10_000, seed=0).mean() - MEAN) < 4 * np.sqrt(1.45 / 1e4)
        assert (model.size, model.seen) == (0, 0)
        assert model.dictionary.shape == (0, 2)


def test_scikit_learn_predicts_the_same(backend):
    kernel = 1.4 * sklearn_kernels.Matern((0.9, 0.6), nu=2.5)
    X = QUERIES[:40]
    for make in MODELS.values():
        model = make()
        model.learn(*smooth_2d(120, seed=4))
        peer = GaussianProcessRegressor(kernel, alpha=NOISE, optimizer=None)
        peer.fit(model.dictionary, model.targets - MEAN)
        mean, deviation = peer.predict(X, return_std=True)
        predicted, variance = model.predict(X, latent=True)
        np.testing.assert_allclose(predicted - MEAN, mean, rtol=0, atol=1e-10)
        np.testing.assert_allclose(variance, deviation**2, rtol=0, atol=1e-10)
        _, covariance = peer.predict(X, return_cov=True)
        np.testing.assert_allclose(model.covariance(X, latent=True), covariance, rtol=0, atol=1e-10)


# ---- taking back


def test_appending_and_removing_is_the_identity(backend):
    X, y = smooth_2d(41, seed=6)
    model = pogp.POG(KERNEL, NOISE, budget=None, mean=MEAN)
    model.learn(X[:40], y[:40])
    before = model.predict(QUERIES)
    model.learn(X[40], 50.0)
    assert np.abs(model.predict(QUERIES)[0] - before[0]).max() > 1
    model.remove(40)
    np.testing.assert_allclose(model.predict(QUERIES), before, rtol=0, atol=1e-11)
    assert model.indices.tolist() == list(range(40))
    model.learn(X[40], y[40])
    assert model.indices.tolist() == [*range(40), 41]
    assert_solved(model)


def test_a_removed_sample_was_never_learned(model):
    gone = model.indices[[0, 3, 7, -1]]
    keep = np.setdiff1d(model.indices, gone)
    for index in gone:
        model.remove(index)
    assert model.indices.tolist() == keep.tolist()
    X, y = smooth_2d(300, seed=4)
    never = pogp.DenseGP(KERNEL, NOISE, mean=MEAN)
    never.learn(X[keep], y[keep])
    np.testing.assert_allclose(model.predict(QUERIES), never.predict(QUERIES), rtol=0, atol=1e-10)
    assert_solved(model)


def test_a_model_that_gave_everything_back_is_the_prior_and_learns_again(backend):
    for make in MODELS.values():
        model = make()
        model.learn(*smooth_2d(5))
        for index in model.indices:
            model.remove(index)
        assert model.size == 0
        mean, variance = model.predict(QUERIES)
        np.testing.assert_array_equal(mean, MEAN)
        np.testing.assert_allclose(variance, 1.4 + NOISE, rtol=1e-15)
        model.learn(*smooth_2d(5))
        assert model.indices.min() >= 5
        assert_solved(model)


# ---- drift


def drift(core):
    """Return the largest entry of P(K + σ²I) − I."""
    product = core.precision @ core.gram + core.noise * core.precision
    return np.abs(product - np.eye(core.size)).max()


@pytest.mark.parametrize("view", ["newest", "everywhere"])
def test_thousands_of_updates_leave_no_trace(backend, view):
    model = pogp.POG(KERNEL, NOISE, None, view=view, max_size=25, mean=MEAN)
    X, y = smooth_2d(6000 if backend == "compiled" else 1000, seed=8)
    trace = model.learn(X, y)
    assert trace.removed.sum() == len(y) - 25
    assert_solved(model)


def test_the_dense_model_grows_exactly(backend):
    """Across its blocks, one by one and in batches, with a removal in the middle."""
    X, y = smooth_2d(600, seed=8)
    model = pogp.DenseGP(KERNEL, NOISE, mean=MEAN)
    model.learn(X[:300], y[:300])
    model.remove(123)
    for x, target in zip(X[300:310], y[300:310], strict=True):
        model.learn(x, target)
    model.learn(X[310:], y[310:])
    assert model.indices.tolist() == [i for i in range(600) if i != 123]
    assert_solved(model)


def test_the_dense_trace_is_that_of_predicting_first(backend):
    X, y = smooth_1d(60)
    model = pogp.DenseGP(pogp.RBF(1.2), 0.1, mean=-1.0)
    trace = model.learn(X, y)
    brute = BruteForce(X, y, rbf(1.2), 0.1, mean=-1.0)
    members = list(range(60))
    for t in members:
        before, after = brute.marginal(members[:t], t), brute.marginal(members[: t + 1], t)
        moved = hellinger_1d(*before, *after)
        np.testing.assert_allclose((trace.mean[t], trace.variance[t]), before, rtol=1e-9)
        np.testing.assert_allclose((trace.novelty[t], trace.change[t]), moved, rtol=1e-7)
    assert trace.size.tolist() == list(range(1, 61))
    assert not trace.removed.any()
    assert not trace.spent.any()


# ---- the closed forms of the retained posterior


POINTS = 14
NEWEST = POINTS - 1


@pytest.fixture
def brute():
    X, y = smooth_2d(POINTS, seed=11)
    return BruteForce(X, y, FUNCTION, NOISE, MEAN)


@pytest.fixture
def core(backend, brute):
    core = retained_core(KERNEL, NOISE, MEAN, 2)
    for t in range(POINTS):
        core.append(brute.X[t], brute.y[t], t)
    return core


def assert_core_is_fresh(core, brute):
    members = core.arrivals
    gram = brute.K[np.ix_(members, members)]
    inverse = np.linalg.inv(gram + NOISE * np.eye(len(members)))
    np.testing.assert_allclose(core.gram, gram, rtol=1e-13)
    np.testing.assert_allclose(core.precision, inverse, rtol=0, atol=1e-11)
    np.testing.assert_allclose(core.diagonal, np.diagonal(inverse), rtol=1e-11)
    np.testing.assert_allclose(core.weights, inverse @ (brute.y[members] - MEAN), atol=1e-11)
    np.testing.assert_array_equal(core.inputs, brute.X[members])
    np.testing.assert_array_equal(core.targets, brute.y[members])


def test_appending_returns_the_marginal_before(backend, brute):
    core = retained_core(KERNEL, NOISE, MEAN, 2)
    for t in range(POINTS):
        before = brute.marginal(list(range(t)), t)
        np.testing.assert_allclose(core.append(brute.X[t], brute.y[t], t), before, rtol=1e-11)
        assert_core_is_fresh(core, brute)


def test_removing_any_slot(core, brute):
    for slot in (4, 0, NEWEST - 2, 3):
        core.remove(slot)
        assert_core_is_fresh(core, brute)
    assert drift(core) < 1e-12


def test_mending_what_is_right_changes_nothing(core, brute):
    for arrival in range(16 * POINTS):
        core.mend(arrival)
    assert_core_is_fresh(core, brute)


def test_mending_makes_right_what_is_wrong(core, brute):
    state = core.state()
    rng = np.random.default_rng(0)
    state["precision"] = state["precision"] + 1e-7 * rng.normal(size=len(state["precision"]))
    core.restore(state)
    before = drift(core)
    for arrival in range(2000 * POINTS):
        core.mend(arrival)
    assert drift(core) < 1e-3 * before
    np.testing.assert_allclose(core.precision, core.precision.T, rtol=0, atol=0)


def test_mending_makes_wrong_weights_right(core, brute):
    state = core.state()
    state["weights"] = state["weights"] + 1e-3
    core.restore(state)
    core.mend(POLISH_INTERVAL)
    assert_core_is_fresh(core, brute)


def test_the_newest_member_needs_no_product(core, brute):
    step = Step(core)
    influence = np.linalg.solve(brute.K + NOISE * np.eye(POINTS), brute.K[:, NEWEST])
    np.testing.assert_allclose(step.influence, influence, rtol=0, atol=1e-12)
    _, variance = brute.marginal(list(range(POINTS)), NEWEST)
    np.testing.assert_allclose(step.variance, variance, rtol=1e-12)


def test_the_marginal_is_followed_through_removals(core, brute):
    step = Step(core)
    mean, variance = brute.marginal(list(range(POINTS)), NEWEST)
    for slot in (2, 7, 0):  # not the newest, which the last slot is until something moves there
        step.remove(slot)
        left_mean, left_variance = brute.marginal(core.arrivals.tolist(), NEWEST)
        np.testing.assert_allclose(mean - step.shift, left_mean, rtol=1e-11)
        np.testing.assert_allclose(variance + step.gain, left_variance, rtol=1e-11)


@pytest.mark.parametrize("criterion", [Newest, Everywhere])
@pytest.mark.parametrize("slots", [(0, 5, 5), (NEWEST, 1, 8), (3, 0, 10)])
def test_every_candidate_is_priced_at_its_distance(core, brute, criterion, slots):
    """For one removal, and after any first and second: r = 1, 2, 3 and the next."""
    step, rule = Step(core), criterion()
    rule.begin(step)
    everyone, gone = list(range(POINTS)), []
    for slot in (*slots, 2):
        distances = distance_of_cost(rule.costs(step))
        for candidate, distance in zip(core.arrivals.tolist(), distances, strict=True):
            assert distance == pytest.approx(
                removal_distance(brute, criterion, everyone, [*gone, candidate]), rel=1e-7
            )
        gone.append(int(core.arrivals[slot]))
        rule.removing(step, slot)
        step.remove(slot)


def removal_distance(brute, criterion, augmented, gone):
    if criterion is Everywhere:
        return brute.process_distance(augmented, gone)
    rest = [i for i in augmented if i not in gone]
    return hellinger_1d(*brute.marginal(augmented, NEWEST), *brute.marginal(rest, NEWEST))


@pytest.mark.parametrize("gone", [[6], [NEWEST], [0, 6, NEWEST]])
def test_removal_moves_the_process_only_through_the_points_that_left(gone):
    """The distance at them is the distance at all points, and at any others besides."""
    X, y = smooth_2d(POINTS + 10, seed=12)
    brute = BruteForce(X, y, lambda A, B: np.exp(-np.abs(A[:, :1] - B[:, :1].T)), NOISE)
    augmented, elsewhere = list(range(POINTS)), list(range(POINTS, POINTS + 10))
    distance = brute.process_distance(augmented, gone)
    assert distance > 0.01
    for at in (augmented, augmented + elsewhere, gone + elsewhere):
        assert brute.process_distance(augmented, gone, at) == pytest.approx(distance, rel=1e-9)
    assert brute.process_distance(augmented, gone, elsewhere) < distance
