"""Variances kept honest, and hyperparameters that a model finds for itself."""

import pickle

import numpy as np
import pytest

import pogp

from .conftest import assert_same_memory, smooth_1d, smooth_2d

KERNEL, NOISE = pogp.RBF(0.6, 1.3), 0.05


# ---- calibration


def running_scale(y, mean, variance):
    """The mean of (y − mean)²/variance by its definition: a start of 20, a window of 1000."""
    scales = [1.0]
    for t, ratio in enumerate((y - mean) ** 2 / variance):
        share = 1 / min(21 + t, 1000)
        scales.append((1 - share) * scales[-1] + share * min(ratio, 25 * scales[-1]))
    return np.array(scales)


@pytest.mark.parametrize("n", [60, 1100])
def test_everything_that_is_reported_is_scaled(backend, n):
    X, y = smooth_2d(n)
    options = {"budget": 0.1, "max_size": 15}
    plain = pogp.AbsorbingPOG(KERNEL, NOISE, **options)
    scaled = pogp.AbsorbingPOG(KERNEL, NOISE, calibrate=True, **options)
    expected, trace = plain.learn(X, y), scaled.learn(X, y)
    scales = running_scale(y, expected.mean, expected.variance)
    assert plain.scale == 1.0
    assert scaled.scale == pytest.approx(scales[-1], rel=1e-12)
    assert scales[-1] < 0.8  # the noise is a fifth of what the model thinks
    np.testing.assert_array_equal(trace.mean, expected.mean)
    np.testing.assert_allclose(trace.variance, scales[:-1] * expected.variance, rtol=1e-12)
    np.testing.assert_array_equal(trace.records[:, 2:], expected.records[:, 2:])
    np.testing.assert_array_equal(scaled.indices, plain.indices)
    for latent in (False, True):
        ours, theirs = (m.predict(X[:9], latent=latent) for m in (scaled, plain))
        np.testing.assert_array_equal(ours[0], theirs[0])
        np.testing.assert_allclose(ours[1], scales[-1] * theirs[1], rtol=1e-12)
        ours, theirs = (m.covariance(X[:9], latent=latent) for m in (scaled, plain))
        np.testing.assert_allclose(ours, scales[-1] * theirs, rtol=1e-12)
    ours, theirs = (m.sample(X[:2], 4000, seed=0) for m in (scaled, plain))
    np.testing.assert_allclose(ours.var(axis=0), scales[-1] * theirs.var(axis=0), rtol=1e-9)


def test_each_output_has_a_scale_of_its_own(backend):
    X, y = smooth_2d(300)
    Y = np.column_stack([y, y + np.random.default_rng(0).normal(size=300)])
    model = pogp.AbsorbingPOG(KERNEL, NOISE, None, max_size=15, calibrate=True)
    model.learn(X, Y)
    assert model.scale.shape == (2,)
    assert model.scale[0] < 1 < 5 < model.scale[1]
    variance = model.predict(X)[1]
    np.testing.assert_allclose(variance[:, 1] / variance[:, 0], model.scale[1] / model.scale[0])
    joint = model.covariance(X[:5])
    np.testing.assert_allclose(joint[:, :, 1] / joint[:, :, 0], model.scale[1] / model.scale[0])


def test_one_outlier_is_no_news(backend):
    X, y = smooth_1d(500)
    model = pogp.AbsorbingPOG(KERNEL, NOISE, 0.1, calibrate=True)
    model.learn(X[:-1], y[:-1])
    before = model.scale
    model.learn(X[-1], 1e6)
    assert before < model.scale < 1.05 * before


def test_the_density_of_what_comes_is_better_where_the_noise_was_wrong():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (2000, 1))
    y = np.sin(2 * X[:, 0]) + np.sqrt(NOISE / 2) * rng.normal(size=2000)
    densities = []
    for calibrate in (False, True):
        model = pogp.AbsorbingPOG(KERNEL, NOISE, 0.05, calibrate=calibrate)
        trace = model.learn(X, y)
        densities.append(pogp.metrics.nlpd(y[500:], trace.mean[500:], trace.variance[500:]))
    assert model.scale == pytest.approx(0.5, abs=0.05)
    assert densities[1] < densities[0] - 0.05


# ---- auto

WARMUP = 40
X, Y = smooth_1d(90)
Y = 5 + 3 * Y


def auto(**options):
    return pogp.AbsorbingPOG.auto(**{"warmup": WARMUP, "seed": 3, **options})


def test_after_the_warmup_it_is_the_model_that_tune_suggests(backend):
    model = auto(max_size=20, budget=0.05)
    trace = model.learn(X, Y)
    assert not model.warming_up
    assert (model.seen, len(trace), model.calibrate) == (90, 90, True)
    mean = Y[:WARMUP].mean()
    tuned = pogp.tune(X[:WARMUP], Y[:WARMUP], kernel=pogp.RBF, seed=3, mean=mean)
    same = pogp.AbsorbingPOG(
        tuned.kernel, tuned.noise, 0.05, max_size=20, calibrate=True, mean=mean, seed=3
    )
    same.learn(X[:WARMUP], Y[:WARMUP])
    expected = same.learn(X[WARMUP:], Y[WARMUP:])
    np.testing.assert_array_equal(trace.records[WARMUP:], expected.records)
    assert_same_memory(model, same)


def test_meanwhile_it_predicts_what_the_targets_were(backend):
    model = auto()
    trace = model.learn(X[:30], Y[:30])
    assert model.warming_up
    assert (model.size, model.seen) == (0, 30)
    assert trace.mean[0] == 0
    for t in range(2, 30):
        assert trace.mean[t] == pytest.approx(Y[:t].mean())
        assert trace.variance[t] == pytest.approx(Y[:t].var())
    mean, variance = model.predict(X)
    np.testing.assert_allclose(mean, Y[:30].mean())
    np.testing.assert_allclose(variance, Y[:30].var())
    assert (trace.removed == trace.spent).all()


@pytest.mark.parametrize("kernel", [pogp.RBF, pogp.Matern52, pogp.Matern32(0.7)], ids=str)
def test_one_by_one_a_copy_and_a_file_go_on_alike(backend, tmp_path, kernel):
    whole, singly, parts = (auto(kernel=kernel) for _ in range(3))
    expected = whole.learn(X, Y).records
    assert type(whole.kernel) is (kernel if isinstance(kernel, type) else type(kernel))
    steps = [singly.learn(x, y).records for x, y in zip(X, Y, strict=True)]
    np.testing.assert_array_equal(np.concatenate(steps), expected)
    assert_same_memory(singly, whole)
    parts.learn(X[:25], Y[:25])
    parts.save(tmp_path / "model.pogp")
    copies = [parts.copy(), pickle.loads(pickle.dumps(parts)), pogp.load(tmp_path / "model.pogp")]
    for copy in copies:
        assert copy.warming_up
        np.testing.assert_array_equal(copy.predict(X), parts.predict(X))
    for model in (parts, *copies):
        np.testing.assert_array_equal(model.learn(X[25:], Y[25:]).records, expected[25:])
        assert_same_memory(model, whole)


def test_many_outputs_share_what_is_found(backend):
    both = np.column_stack([Y, 1 - Y])
    model = auto()
    trace = model.learn(X[:20], both[:20])
    assert trace.mean.shape == (20, 2)
    assert model.predict(X)[0].shape == (90, 2)
    model.learn(X[20:], both[20:])
    tuned = pogp.tune(
        X[:WARMUP], both[:WARMUP], kernel=pogp.RBF, seed=3, mean=both[:WARMUP].mean(axis=0)
    )
    assert (model.kernel, model.noise) == (tuned.kernel, tuned.noise)
    np.testing.assert_allclose(model.mean, both[:WARMUP].mean(axis=0))
    truth = 5 + 3 * (np.sin(2 * X[:, 0]) + 0.3 * X[:, 0])
    mean = model.predict(X)[0]
    assert np.std(mean[:, 0] - truth) < 0.3
    assert np.std(mean[:, 1] - (1 - truth)) < 0.3


def test_what_is_wrong_changes_nothing(backend):
    model = auto()
    model.learn(X[:30], Y[:30])
    before = model.memory()
    bad = np.where(np.arange(60) == 59, np.nan, Y[30:])
    for arguments, message in [
        ((X[30:], bad), "got nan in row 59"),
        ((X[30:], Y[30:, None]), "y must have shape"),
        ((np.ones((3, 2)), np.ones(3)), "1 inputs per sample"),
        ((X[30:], Y[30:], 0.1), "10 more samples without it"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.learn(*arguments)
        assert_same_memory(model, before)
        assert model.warming_up
    assert len(model.learn(X[:0], Y[:0])) == 0
    assert_same_memory(model, before)


@pytest.mark.parametrize("warmup", [0, 1, -5, 2.5, None, "many"])
def test_a_warmup_is_a_number_of_samples(warmup):
    with pytest.raises(ValueError, match="warmup must be a whole number ≥ 2"):
        pogp.AbsorbingPOG.auto(warmup=warmup)


def test_targets_that_do_not_vary_are_no_obstacle(backend):
    model = auto(warmup=8)
    for _ in range(2):  # it waits for one that differs, though not for ever
        np.testing.assert_allclose(model.learn(X[:60], np.full(60, 7.0)).mean[1:], 7.0, atol=1e-6)
        np.testing.assert_allclose(model.predict(X)[0], 7.0, atol=1e-6)
    assert not model.warming_up
