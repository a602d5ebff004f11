"""StreamingVFE: what a stream leaves behind is what VFE or the exact GP makes of all of it."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.linalg import block_diag

import pogp
from pogp.posteriors.inducing import NUGGET
from pogp.posteriors.streaming import MiniBatch, Summary

from ...conftest import assert_same_state, rbf, repeated, smooth_1d, smooth_2d

KERNEL, NOISE, MEAN, SIZE = pogp.RBF((0.7, 0.9), 1.3), 0.05, 0.6, 25
X, Y = smooth_2d(300, seed=21)
QUERIES = np.random.default_rng(5).uniform(-1.2, 1.2, (200, 2))
KERNELS = (KERNEL, pogp.Matern32(0.8), pogp.RBF(0.5) + pogp.Matern52((1.0, 2.0)) * pogp.RBF())


def make(kernel=KERNEL, noise=NOISE, size=SIZE, **options):
    return pogp.StreamingVFE(kernel, noise, size, **{"mean": MEAN, "batch": 40, **options})


def learned(samples=150, **options):
    model = make(**options)
    model.learn(X[:samples], Y[:samples])
    return model


def vfe(inputs, samples, kernel=KERNEL, noise=NOISE):
    model = pogp.VFE(kernel, noise, len(inputs), mean=MEAN)
    return model.fit(X[:samples], Y[:samples], inputs=inputs, optimise=False)


def assert_same_posterior(one, other, tolerance):
    np.testing.assert_allclose(one.predict(QUERIES), other.predict(QUERIES), atol=tolerance, rtol=0)
    np.testing.assert_allclose(
        one.covariance(QUERIES), other.covariance(QUERIES), atol=tolerance, rtol=0
    )


# ---- what it must equal


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_one_mini_batch_is_vfe(kernel):
    model = learned(100, kernel=kernel, batch=100)
    offline = vfe(model.dictionary, 100, kernel)
    assert model.size == SIZE
    assert_same_posterior(model, offline, 1e-10)
    assert model.tuned.log_likelihood == pytest.approx(offline.tuned.log_likelihood, abs=1e-8)


@pytest.mark.parametrize(
    ("batch", "noise"), [(300, NOISE), (70, 1e-4), (7, NOISE), (7, 1e-4), (1, NOISE)]
)
def test_with_inputs_fixed_from_the_start_it_is_vfe_on_all_samples(batch, noise):
    inputs = np.random.default_rng(1).uniform(-1, 1, (SIZE, 2))
    model = learned(300, noise=noise, inputs=inputs, batch=batch)
    offline = vfe(inputs, 300, noise=noise)
    assert_same_posterior(model, offline, 1e-6)
    assert model.tuned.log_likelihood == pytest.approx(offline.tuned.log_likelihood, rel=1e-8)
    assert model.indices.tolist() == [-1] * SIZE


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("batch", [100, 30, 1])
def test_with_room_for_all_samples_it_is_the_exact_gp(kernel, batch):
    model, exact = make(kernel, size=120, batch=batch), pogp.DenseGP(kernel, NOISE, mean=MEAN)
    model.learn(X[:100], Y[:100])
    exact.learn(X[:100], Y[:100])
    assert_same_posterior(model, exact, 1e-6)
    assert model.indices.tolist() == list(range(100))
    likelihood = pogp.tuning.log_marginal_likelihood(kernel, NOISE, X[:100], Y[:100], MEAN)
    assert model.tuned.log_likelihood == pytest.approx(likelihood, abs=1e-4)


def test_the_old_posterior_equals_the_formula_of_the_paper():
    """(1) against D_a and ŷ_a as printed, and (2) against the Gaussian it is, by dense algebra."""
    kernel, nugget, kept = pogp.Matern32(0.6, 1.3), 1.3 * NUGGET * np.eye(9), np.array([1, 4, 6])
    Z = np.stack(np.meshgrid([-0.8, 0.0, 0.8], [-0.8, 0.0, 0.8]), axis=-1).reshape(9, 2)
    first = MiniBatch(Summary.nothing(2), X[:60], Y[:60], Z, np.arange(0)).learn(kernel, NOISE)
    old, prior, cross = first.summary, kernel(Z) + nugget, kernel(Z, X[:60])
    S = prior @ np.linalg.inv(prior + cross @ cross.T / NOISE) @ prior
    m = S @ np.linalg.solve(prior, cross @ Y[:60] / NOISE)
    D = np.linalg.inv(np.linalg.inv(S) - np.linalg.inv(prior))
    pseudo_targets = D @ np.linalg.solve(S, m)
    np.testing.assert_allclose(old.operator.T @ old.operator @ D, np.eye(9), atol=1e-9)
    np.testing.assert_allclose(old.operator @ pseudo_targets, old.outcomes, rtol=1e-8)

    kernel, noise = kernel.with_theta(kernel.theta + 0.1), 0.08  # other hyperparameters
    nugget *= np.exp(0.1)
    inputs, points = np.vstack([Z[kept], X[100:106]]), np.vstack([X[100:150], Z])
    cross = kernel(inputs, points)
    cross[:3, 50 + kept] += nugget[:3, :3]  # what is kept is the same variable
    Q = cross.T @ np.linalg.solve(kernel(inputs) + nugget, cross)
    noises = block_diag(noise * np.eye(50), D)
    slack = kernel(points) + block_diag(np.zeros((50, 50)), nugget) - Q
    bound = log_normal(np.append(Y[100:150], pseudo_targets), Q + noises)
    bound -= 0.5 * np.trace(np.linalg.solve(noises, slack))
    # q(a)/p(a) is a density of the pseudo-targets but for this constant
    bound += log_normal(np.zeros(9), S) - log_normal(m, prior) - log_normal(pseudo_targets - m, D)
    mini_batch = MiniBatch(old, X[100:150], Y[100:150], inputs, kept)
    found = mini_batch.learn(kernel, noise).bound
    assert found - first.bound == pytest.approx(bound, abs=1e-6)
    assert mini_batch.bound_and_gradient(kernel, noise)[0] == pytest.approx(found, abs=1e-10)


def log_normal(x, covariance):
    _, log_determinant = np.linalg.slogdet(2 * np.pi * covariance)
    return -0.5 * (log_determinant + x @ np.linalg.solve(covariance, x))


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("kept", [[], [1, 4, 6], list(range(12))], ids=len)
def test_the_gradient_is_that_of_the_bound(kernel, kept):
    kept = np.array(kept, dtype=np.int64)
    first = MiniBatch(Summary.nothing(2), X[:60], Y[:60], X[:12], np.arange(0))
    old = first.learn(pogp.RBF(0.8), 0.1).summary
    inputs = np.vstack([X[:12][kept], X[70:75]])
    for batch in (first, MiniBatch(old, X[60:120], Y[60:120], inputs, kept)):
        _, in_theta, in_noise = batch.bound_and_gradient(kernel, NOISE)

        def bound(theta, noise, batch=batch):
            return batch.learn(kernel.with_theta(theta), noise).bound

        steps, theta = 1e-4 * np.eye(kernel.theta.size), kernel.theta
        expected = [
            (bound(theta + step, NOISE) - bound(theta - step, NOISE)) / 2e-4 for step in steps
        ]
        scale = np.abs(expected).max()
        np.testing.assert_allclose(in_theta, expected, atol=1e-5 * scale)
        slope = (bound(theta, NOISE * 1.0001) - bound(theta, NOISE * 0.9999)) / (2e-4 * NOISE)
        assert in_noise == pytest.approx(slope, rel=1e-5)


# ---- a stream that goes on


@pytest.mark.parametrize("batch", [50, 1])
def test_memory_is_bounded_and_variances_are_positive(batch):
    model = make(size=15, batch=batch, noise=1e-3)
    for start in range(0, 300, 100):
        trace = model.learn(X[start : start + 100], Y[start : start + 100])
        assert trace.size.max() <= 15
        assert (trace.variance > 0).all()
        assert model.nbytes <= 8 * (3 * 15**2 + 15 * (2 + 3))
    mean, variance = model.predict(QUERIES, latent=True)
    assert np.isfinite(mean).all()
    assert (variance >= 0).all()
    assert (model.predict(QUERIES)[1] > 0).all()
    assert np.linalg.eigvalsh(model.covariance(QUERIES)).min() > 0


def test_the_pseudo_inputs_are_samples_in_order_of_arrival():
    model = make()
    for start in range(0, 300, 37):
        model.learn(X[start : start + 37], Y[start : start + 37])
        assert (np.diff(model.indices) > 0).all()
        np.testing.assert_array_equal(model.dictionary, X[model.indices])
        assert model.size == len(model.indices) == min(SIZE, start + 37)
        assert model.seen == min(start + 37, 300)
    assert model.indices.max() > 200  # some are new


def test_the_trace_has_removals_and_changes():
    model, before = make(), 0
    for start in (0, 10, 110):
        untouched = model.copy()
        rows = slice(start, start + 20)
        trace = model.learn(X[rows], Y[rows])
        assert (np.diff(trace.size, prepend=before) == 1 - trace.removed).all()
        assert trace.size[-1] == model.size
        before = model.size
        marginals = untouched.predict(X[rows])
        np.testing.assert_array_equal((trace.mean, trace.variance), marginals)
        change = pogp.hellinger(*marginals, *model.predict(X[rows]))
        np.testing.assert_allclose(trace.change, change, atol=1e-12)
        np.testing.assert_array_equal(trace.novelty, trace.change)
        assert not trace.spent.any()


def test_a_call_is_its_mini_batches():
    whole, parts = make(), make()
    trace = whole.learn(X, Y)
    records = [parts.learn(X[i : i + 40], Y[i : i + 40]).records for i in range(0, 300, 40)]
    np.testing.assert_array_equal(trace.records, np.concatenate(records))
    assert_same_state(whole, parts)


def test_it_predicts_well_with_few_pseudo_inputs():
    inputs, targets = smooth_1d(1000)
    model = pogp.StreamingVFE(pogp.RBF(0.7), 0.01, 20)
    trace = model.learn(inputs, targets)
    assert pogp.metrics.nlpd(targets[500:], trace.mean[500:], trace.variance[500:]) < -0.75
    grid = np.linspace(-2.9, 2.9, 50)[:, None]
    truth = np.sin(2 * grid[:, 0]) + 0.3 * grid[:, 0]
    np.testing.assert_allclose(model.predict(grid)[0], truth, atol=0.1)


def test_regions_that_the_stream_has_left_are_remembered():
    inputs, targets = smooth_1d(600)
    order = np.argsort(inputs[:, 0])
    model = pogp.StreamingVFE(pogp.RBF(0.7), 0.01, 20, batch=50)
    model.learn(inputs[order], targets[order])
    mean, _ = model.predict([[-2.0]])
    np.testing.assert_allclose(mean, np.sin(-4.0) - 0.6, atol=0.1)


@pytest.mark.parametrize("batch", [100, 1])
def test_samples_may_repeat(batch):
    inputs, targets = repeated(150)
    model = pogp.StreamingVFE(pogp.RBF(), 0.01, 30, batch=batch)
    model.learn(inputs, targets)
    exact = pogp.DenseGP(pogp.RBF(), 0.01)
    exact.learn(inputs, targets)
    grid = np.linspace(-2, 2, 40)[:, None]
    np.testing.assert_allclose(model.predict(grid), exact.predict(grid), atol=1e-3)


def test_a_function_may_be_the_kernel():
    model = learned(kernel=rbf((0.7, 0.9), 1.3))
    assert_same_posterior(model, learned(), 1e-8)


# ---- hyperparameters


@pytest.mark.parametrize("lengthscale", [0.2, 2.5])
def test_reoptimising_raises_the_bound_and_finds_the_length_scale(lengthscale):
    inputs, targets = smooth_1d(600)
    start = pogp.RBF(lengthscale)
    fixed, free = (
        pogp.StreamingVFE(start, 0.3, 25, batch=100, reoptimise=reoptimise)
        for reoptimise in (False, True)
    )
    for model in (fixed, free):
        model.learn(inputs, targets)
    assert free.tuned.log_likelihood > fixed.tuned.log_likelihood + 100
    assert free.tuned.noise == pytest.approx(0.01, rel=0.3)
    assert 0.7 < free.tuned.kernel.lengthscale < 2.0
    assert (free.kernel, free.noise) == (start, 0.3)
    assert fixed.tuned.kernel == start
    assert pogp.metrics.nlpd(targets, *free.predict(inputs)) < -0.7


def test_each_search_increases_the_objective():
    model, still = learned(40, reoptimise=True), learned(40)
    assert model.tuned.log_likelihood > still.tuned.log_likelihood
    assert model.tuned.evaluations > 1
    before = model.tuned
    model.learn(X[40:60], Y[40:60])
    assert model.tuned.kernel != before.kernel


def test_few_samples_do_not_move_hyperparameters():
    model = make(reoptimise=True)
    for x, y in zip(X[:30], Y[:30], strict=True):
        model.learn(x, y)
    assert (model.tuned.kernel, model.tuned.noise) == (KERNEL, NOISE)


@pytest.mark.parametrize("targets", [np.zeros(200), np.full(200, 1e6), np.arange(200) % 2 * 1e-6])
def test_reoptimising_on_uninformative_targets_does_no_harm(targets):
    model = pogp.StreamingVFE(pogp.RBF(), 0.1, 10, batch=20, reoptimise=True)
    model.learn(X[:200], targets)
    assert np.isfinite(model.predict(QUERIES)).all()


def test_reoptimising_takes_derivatives():
    model = make(kernel=rbf(0.7), reoptimise=True)
    with pytest.raises(ValueError, match="derivatives"):
        model.learn(X[:40], Y[:40])
    assert model.seen == model.size == 0


# ---- copies and files


@pytest.mark.parametrize(
    "options",
    [{}, {"reoptimise": True}, {"inputs": X[:SIZE]}, {"seed": 7, "batch": 1}],
    ids=["plain", "reoptimised", "fixed", "one by one"],
)
@pytest.mark.parametrize("samples", [0, 130])
def test_copies_and_files_continue_the_same(options, samples, tmp_path):
    model = learned(samples, **options)
    model.save(tmp_path / "model")
    others = [model.copy(), pickle.loads(pickle.dumps(model)), pogp.load(tmp_path / "model")]
    expected = model.learn(X[130:170], Y[130:170])
    for other in others:
        assert other.seen == samples
        np.testing.assert_array_equal(other.learn(X[130:170], Y[130:170]).records, expected.records)
        assert_same_state(other, model)
        np.testing.assert_array_equal(other.predict(QUERIES), model.predict(QUERIES))
        assert repr(other) == repr(model)
        assert other.tuned == model.tuned


def test_the_seed_determines_the_selection():
    assert learned(300, seed=1).indices.tolist() == learned(300, seed=1).indices.tolist()
    assert learned(300, seed=1).indices.tolist() != learned(300, seed=2).indices.tolist()


@pytest.mark.parametrize("name", ["factor", "inner", "weights", "operator", "arrivals", "outcomes"])
def test_a_state_of_the_wrong_shape_is_refused(name):
    memory = learned().state()
    memory[name] = memory[name][:-1]
    model = make()
    with pytest.raises(ValueError, match="shape"):
        model.restore(memory)
    assert model.size == 0


def test_many_may_predict_at_once():
    model = learned()
    expected = model.predict(QUERIES)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: model.predict(QUERIES), range(16)):
            np.testing.assert_array_equal(found, expected)


# ---- before the first sample, and what is refused


def test_an_empty_model_predicts_the_prior():
    for model in (make(), make(inputs=X[:SIZE])):
        mean, variance = model.predict(QUERIES)
        assert (mean == MEAN).all()
        np.testing.assert_allclose(variance, 1.3 + NOISE)
        np.testing.assert_allclose(model.covariance(QUERIES, latent=True), KERNEL(QUERIES))
        assert model.size == model.seen == model.nbytes == 0
        assert model.tuned is None
        assert model.dictionary.shape == (0, 2)
        assert model.indices.shape == (0,)


def test_an_empty_batch_changes_nothing():
    for model in (make(), learned()):
        before = model.state()
        assert len(model.learn(np.empty((0, 2)), np.empty(0))) == 0
        assert_same_state(model, before)


@pytest.mark.parametrize(
    ("samples", "targets", "complaint"),
    [
        (np.zeros((5, 3)), np.zeros(5), "2 inputs"),
        (np.zeros((5, 2)), np.zeros(4), "shape"),
        (np.full((5, 2), np.nan), np.zeros(5), "finite"),
        (np.zeros((5, 2)), [0, 0, 0, 0, np.inf], "finite"),
        ("text", "text", "real numbers"),
    ],
)
def test_bad_samples_change_nothing(samples, targets, complaint):
    for model in (make(), learned()):
        before = model.state()
        with pytest.raises(ValueError, match=complaint):
            model.learn(samples, targets)
        assert_same_state(model, before)


def test_a_batch_is_learned_whole_or_not_at_all():
    inner = rbf((0.7, 0.9))

    def kernel(A, B):
        return np.where((A[:, :1] > 5) | (B[:, 0] > 5), np.nan, inner(A, B))

    model = learned(60, kernel=kernel, batch=10)
    before = model.state()
    bad = X[60:100].copy()
    bad[35, 0] = 6.0  # in the last of four mini-batches
    with pytest.raises(ValueError, match="finite"):
        model.learn(bad, Y[60:100])
    assert_same_state(model, before)


@pytest.mark.parametrize(
    "options",
    [
        {"noise": 0.0},
        {"noise": 1e-14},
        {"size": 0},
        {"size": 2.5},
        {"batch": 0},
        {"mean": np.nan},
        {"seed": -1},
        {"reoptimise": "yes"},
        {"kernel": 3},
        {"inputs": X[: SIZE - 1]},
        {"inputs": np.zeros((SIZE, 3))},
        {"inputs": np.full((SIZE, 2), np.nan)},
    ],
    ids=str,
)
def test_bad_arguments_are_refused(options):
    with pytest.raises(ValueError, match="got"):
        make(**options)


def test_invalid_covariances_are_refused():
    model = make(kernel=lambda A, B: -np.exp(-((A[:, None] - B) ** 2).sum(axis=2)))
    with pytest.raises(ValueError, match="must not be negative"):
        model.learn(X[:10], Y[:10])
    assert model.seen == 0
