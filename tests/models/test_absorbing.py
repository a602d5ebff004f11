"""AbsorbingPOG: its budget, many outputs, noise of each sample, and forgetting, by brute force."""

from functools import cache

import numpy as np
import pytest

import pogp
from pogp.posteriors.absorbed.loop import AbsorbedLoop

from ..conftest import (
    BACKENDS,
    assert_same_state,
    extended_solution,
    rbf,
    repeated,
    smooth_1d,
    smooth_2d,
    smooth_5d,
)
from ..oracle.beliefs import Belief
from ..pairwise import pairwise

NOISE, MEAN, SAMPLES = 0.05, 0.3, 20
KERNEL, WRITTEN = pogp.RBF(0.6, 1.3), rbf(0.6, 1.3)
PROJECTIONS = pytest.mark.parametrize("projection", ["condition", "marginalise"])


def two_outputs(n, seed=5):
    X, y = smooth_2d(n, seed)
    return X, np.column_stack([y, 2 * np.cos(2 * X[:, 0]) + 0.1 * X[:, 1]])


def assert_predicts(model, oracle, queries, tolerance=1e-8):
    means, variances = oracle.predict(queries)
    mean, variance = model.predict(queries)
    np.testing.assert_allclose(mean.reshape(means.shape), means, atol=tolerance)
    shared = variance if variance.ndim == 1 else variance[:, 0]
    np.testing.assert_allclose(shared, variances, atol=tolerance)


@cache
def compressed(stream, project, budget, cap, forgetting=1.0, share=0.0):
    options = {"project": project, "reduce": not project, "share": share}
    oracle = Belief(WRITTEN, NOISE, MEAN, forgetting=forgetting, **options)
    limit = -np.inf if budget is None else budget
    return oracle.learn(*stream(SAMPLES), limit=limit, max_size=cap or np.inf)


# ---- the budget


@pytest.mark.parametrize(
    "budget", [0.0, 0.01, 0.1, 0.5, pogp.Constant(1), pogp.Decay(0.3, 0.25)], ids=repr
)
@PROJECTIONS
def test_no_step_costs_more_than_its_budget(backend, budget, projection):
    n = 100 if backend == "compiled" else 50
    X, y = smooth_5d(n)
    model = pogp.AbsorbingPOG(pogp.RBF(1.5), NOISE, budget, projection=projection, share=0.0)
    trace = model.learn(X, y)
    limits = [model.budget(t) for t in range(n)]
    assert (trace.spent <= limits).all()
    assert (trace.spent[trace.removed == 0] == 0).all()
    np.testing.assert_array_equal(np.diff(trace.size, prepend=0), 1 - trace.removed)


def test_above_the_cap_the_cheapest_goes_whatever_it_costs(backend):
    X, y = smooth_5d(150)
    model = pogp.AbsorbingPOG(pogp.RBF(1.5), NOISE, 1e-4, max_size=20)
    trace = model.learn(X, y)
    over = trace.spent > 1e-4
    assert over.sum() > 50
    assert (trace.size[over] == 20).all()
    assert trace.size.max() == 20


@pytest.mark.parametrize("noise", [1e-1, 1e-4, 1e-8])
@PROJECTIONS
def test_without_budget_and_cap_it_is_the_dense_gp(backend, noise, projection):
    X, y = smooth_2d(120, noise=np.sqrt(noise) if noise == 0.1 else 0.0)
    kernel, written = pogp.RBF(0.25, 1.3), rbf(0.25, 1.3)  # of which no point nearly follows
    model = pogp.AbsorbingPOG(kernel, noise, None, mean=MEAN, share=0.0, projection=projection)
    assert model.learn(X, y).removed.sum() == 0
    queries = np.vstack([X[:20], np.random.default_rng(0).uniform(-1.2, 1.2, (30, 2))])
    mean, variance = extended_solution(written, noise, MEAN, X, y, queries)
    np.testing.assert_allclose(model.predict(queries, latent=True), (mean, variance), atol=1e-8)
    dense = pogp.DenseGP(kernel, noise, mean=MEAN)
    dense.learn(X, y)
    joint = model.covariance(queries, latent=True)
    np.testing.assert_allclose(joint, dense.covariance(queries, latent=True), atol=1e-10)


@pairwise(
    backend=BACKENDS,
    projection=["condition", "marginalise"],
    bounds=[(0.1, None), (None, 6), (0.05, 9)],
    stream=[smooth_1d, smooth_2d, two_outputs, repeated],
    share=[0.0, 0.1, 3.0],
)
def test_spent_adds_up_the_distances_of_whole_posteriors(
    backend, stream, bounds, projection, share
):
    X, y = stream(SAMPLES)
    oracle = compressed(stream, projection == "condition", *bounds, share=share)
    budget, cap = bounds
    options = {"mean": MEAN, "projection": projection, "share": share}
    model = pogp.AbsorbingPOG(KERNEL, NOISE, budget, max_size=cap, **options)
    kept, traces = [], []
    for x, target in zip(X, y, strict=True):
        traces.append(model.learn(x[None, :], target[None]))
        kept.append(model.indices.tolist())
    assert kept == oracle.kept
    assert [trace.removed[0] for trace in traces] == [step[3] for step in oracle.steps]
    spent = np.array([trace.spent[0] for trace in traces])
    # 1 − BC is a difference of logarithms of determinants in the oracle, H its root
    np.testing.assert_allclose(spent, [step[2] for step in oracle.steps], rtol=1e-5, atol=1e-5)
    means = np.array([np.ravel(trace.mean) for trace in traces])
    np.testing.assert_allclose(means, [step[0] for step in oracle.steps], atol=1e-8)
    assert_predicts(model, oracle, X + 0.05)


# ---- many outputs


def test_each_output_agrees_with_a_model_of_it_alone(backend):
    X, Y = two_outputs(60)
    kernel = pogp.RBF(0.3, 1.3)
    together = pogp.AbsorbingPOG(kernel, NOISE, None, mean=[MEAN, 1.0], share=0.0)
    trace = together.learn(X, Y)
    assert trace.mean.shape == trace.variance.shape == (60, 2)
    assert trace.spent.shape == trace.novelty.shape == (60,)
    mean, variance = together.predict(X + 0.1)
    joint = together.covariance(X[:7])
    assert (mean.shape, variance.shape, joint.shape) == ((60, 2), (60, 2), (7, 7, 2))
    for o, prior in enumerate([MEAN, 1.0]):
        alone = pogp.AbsorbingPOG(kernel, NOISE, None, mean=prior, share=0.0)
        expected = alone.learn(X, Y[:, o])
        np.testing.assert_allclose(trace.mean[:, o], expected.mean, atol=1e-10)
        np.testing.assert_allclose(trace.variance[:, o], expected.variance, atol=1e-10)
        np.testing.assert_allclose(mean[:, o], alone.predict(X + 0.1)[0], atol=1e-10)
        np.testing.assert_allclose(variance[:, o], alone.predict(X + 0.1)[1], atol=1e-10)
        np.testing.assert_allclose(joint[:, :, o], alone.covariance(X[:7]), atol=1e-10)
    single = together.predict(X[0])
    assert single[0].shape == single[1].shape == (2,)
    draws = together.sample(X[:4], 3000, seed=0)
    assert draws.shape == (3000, 4, 2)
    np.testing.assert_allclose(draws.mean(axis=0), together.predict(X[:4])[0], atol=0.03)
    for o in range(2):
        spread = np.cov(draws[:, :, o].T)
        np.testing.assert_allclose(spread, together.covariance(X[:4])[:, :, o], atol=0.01)
    between = np.corrcoef(draws[:, 0, 0], draws[:, 0, 1])[0, 1]
    assert abs(between) < 0.06  # the outputs share their covariance, not their draws


def test_one_output_may_have_a_column(backend):
    X, y = smooth_2d(80)
    flat, column = (pogp.AbsorbingPOG(KERNEL, NOISE, 0.1, max_size=30) for _ in range(2))
    ours, theirs = flat.learn(X, y), column.learn(X, y[:, None])
    np.testing.assert_array_equal(ours.records, theirs.records)
    assert (ours.mean.shape, theirs.mean.shape) == ((80,), (80, 1))
    for one, other in zip(flat.predict(X), column.predict(X), strict=True):
        np.testing.assert_array_equal(one[:, None], other, strict=True)
    assert column.covariance(X).shape == (80, 80, 1)
    assert column.sample(X, 2, seed=0).shape == (2, 80, 1)
    before = flat.state()
    for model, target in ((flat, y[:, None]), (column, y), (column, np.ones((80, 2)))):
        with pytest.raises(ValueError, match="y must have shape"):
            model.learn(X, target)
    assert_same_state(flat, before)


@pytest.mark.parametrize("project", [True, False])
def test_shapes_count_for_each_output_and_means_add_up(project):
    X, Y = two_outputs(12)
    belief = Belief(WRITTEN, NOISE, project=project, score="keep").learn(X, Y)
    projection = "condition" if project else "marginalise"
    model = pogp.AbsorbingPOG(KERNEL, NOISE, None, projection=projection, share=0.0)
    model.learn(X, Y)
    core = AbsorbedLoop(KERNEL, NOISE, np.zeros(2), 2)
    core.restore(model._posterior.core.state())
    ours = np.sqrt(-np.expm1(-model._compression.criterion.costs(core)))
    np.testing.assert_allclose(ours, [belief._distance(j) for j in range(12)], rtol=1e-6)


# ---- a noise for each sample


def test_with_a_noise_for_each_sample_it_is_the_dense_gp_with_those(backend, rng):
    X, y = smooth_2d(70)
    noises = rng.uniform(0.01, 0.5, 70)
    kernel, written = pogp.RBF(0.3, 1.3), rbf(0.3, 1.3)
    model = pogp.AbsorbingPOG(kernel, NOISE, None, mean=MEAN, share=0.0)
    first = model.learn(X[:30], y[:30], noise=noises[:30])
    assert first.variance[0] == pytest.approx(1.3 + noises[0])
    for x, target, noise in zip(X[30:], y[30:], noises[30:], strict=True):
        model.learn(x, target, noise=noise)
    queries = X + 0.07
    gram, cross = written(X, X) + np.diag(noises), written(X, queries)
    mean = MEAN + cross.T @ np.linalg.solve(gram, y - MEAN)
    covariance = written(queries, queries) - cross.T @ np.linalg.solve(gram, cross)
    np.testing.assert_allclose(model.predict(queries)[0], mean, atol=1e-8)
    np.testing.assert_allclose(model.covariance(queries, latent=True), covariance, atol=1e-8)


def test_noise_per_sample_with_removals_equals_the_oracle(backend, rng):
    X, y = smooth_1d(25)
    noises = rng.uniform(0.01, 0.5, 25)
    oracle = Belief(WRITTEN, NOISE, MEAN, share=0.01)
    oracle.learn(X, y, limit=0.1, max_size=9, noises=noises)
    model = pogp.AbsorbingPOG(KERNEL, NOISE, 0.1, max_size=9, mean=MEAN)
    trace = model.learn(X, y, noise=noises)
    assert model.indices.tolist() == oracle.kept[-1]
    np.testing.assert_allclose(trace.variance, [step[1] for step in oracle.steps], atol=1e-8)
    assert_predicts(model, oracle, X + 0.05)


def test_a_given_noise_equal_to_that_of_the_model_changes_nothing(backend):
    X, y = smooth_2d(60)
    implied, number, array = (pogp.AbsorbingPOG(KERNEL, NOISE) for _ in range(3))
    expected = implied.learn(X, y).records
    np.testing.assert_array_equal(number.learn(X, y, noise=NOISE).records, expected)
    np.testing.assert_array_equal(array.learn(X, y, np.full(60, NOISE)).records, expected)


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        (np.ones(29), r"noise must be a number or have shape \(30,\)"),
        (np.ones((30, 1)), r"noise must be a number or have shape \(30,\)"),
        (np.where(np.arange(30) == 29, 0.0, 1.0), "noise must be positive"),
        (-1.0, "noise must be positive"),
        (np.where(np.arange(30) == 29, np.nan, 1.0), "got nan in row 29"),
        (np.inf, "noise must be finite"),
        ("little", "noise must be an array of real numbers"),
    ],
)
def test_noise_none_changes_nothing(backend, noise, message):
    X, y = smooth_2d(60)
    model = pogp.AbsorbingPOG(KERNEL, NOISE)
    for rows in (slice(30), slice(30, 60)):
        before = model.state()
        with pytest.raises(ValueError, match=message):
            model.learn(X[rows], y[rows], noise=noise)
        assert_same_state(model, before)
        model.learn(X[rows], y[rows])


# ---- forgetting


@pairwise(
    backend=BACKENDS,
    forgetting=[0.85, 0.97, 0.99],
    projection=["condition", "marginalise"],
    share=[0.0, 0.1],
)
def test_forgetting_moves_the_belief_towards_the_prior(backend, forgetting, projection, share):
    X, Y = two_outputs(SAMPLES)
    options = {"forgetting": forgetting, "mean": MEAN, "projection": projection, "share": share}
    oracle = compressed(two_outputs, projection == "condition", 0.1, 9, forgetting, share)
    model = pogp.AbsorbingPOG(KERNEL, NOISE, 0.1, max_size=9, **options)
    trace = model.learn(X, Y)
    assert model.indices.tolist() == oracle.kept[-1]
    np.testing.assert_allclose(trace.mean, [step[0] for step in oracle.steps], atol=1e-7)
    assert_predicts(model, oracle, X + 0.05, tolerance=1e-7)


def test_only_a_model_that_forgets_follows_a_function_that_changes():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (2000, 1))
    sign = np.where(np.arange(2000) < 1000, 1.0, -1.0)
    y = sign * np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=2000)
    queries = np.linspace(-2.9, 2.9, 60)[:, None]
    kernel, errors = pogp.RBF(0.7), []
    for model in (
        pogp.AbsorbingPOG(kernel, 0.01, 0.1, forgetting=0.99),
        pogp.AbsorbingPOG(kernel, 0.01, 0.1),
        pogp.POG(kernel, 0.01, None, view="everywhere", max_size=200),
    ):
        model.learn(X, y)
        errors.append(np.std(model.predict(queries)[0] + np.sin(2 * queries[:, 0])))
    assert errors[0] < 0.15
    assert min(errors[1:]) > 0.5


HUGE = 10**400


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: pogp.Constant(np.array([1.0, 2.0])), "budget must be a finite number"),
        (lambda: pogp.Constant(True), "budget must be a finite number ≥ 0, got True"),
        (lambda: pogp.Constant(HUGE), "budget must be a finite number"),
        (lambda: pogp.Decay(np.array([1.0, 2.0]), 1.0), "initial budget must be a finite number"),
        (lambda: pogp.Decay(0.1, "fast"), "power must be a finite number ≥ 0, got 'fast'"),
        (lambda: make(calibrate="yes"), "calibrate must be True or False, got 'yes'"),
        (lambda: make().sample([[0.0]], 2, seed="a"), "seed must be None, .* got 'a'"),
        (lambda: pogp.metrics.coverage([0.0], [0.0], [1.0], level="a"), "level must .* got 'a'"),
        (lambda: make(lambda t: HUGE).learn([[0.0]], [0.0]), "the budget for t = 0 must be"),
    ],
)
def test_values_of_another_kind_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()


def make(budget=None, **options):
    return pogp.AbsorbingPOG(pogp.RBF(), 0.1, budget, **options)
