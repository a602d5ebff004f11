"""A batch is learned in blocks where a model is large enough: the same points as one by one."""

import numpy as np
import pytest

import pogp
from pogp.posteriors.slots import BLOCK, BLOCKS_FROM

CAP = BLOCKS_FROM + 12
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (CAP + 7 * BLOCK, 3))
Y = np.sin(2 * X).sum(axis=1) + 0.1 * RNG.normal(size=len(X))
REPEATED = np.where(RNG.random(len(X))[:, None] < 0.3, X[RNG.integers(0, 150, len(X))], X)
TRUE = np.column_stack([Y, np.cos(X[:, 0])])

MODELS = {
    "condition": lambda: pogp.AbsorbingPOG(pogp.RBF(), 0.01, None, max_size=CAP),
    "marginalise": lambda: pogp.AbsorbingPOG(
        pogp.RBF(), 0.01, None, max_size=CAP, projection="marginalise"
    ),
    "budget": lambda: pogp.AbsorbingPOG(pogp.RBF(), 0.01, 0.3, max_size=CAP),
    "little noise": lambda: pogp.AbsorbingPOG(pogp.Matern32(), 1e-6, None, max_size=CAP),
    "smooth": lambda: pogp.AbsorbingPOG(pogp.RBF(3.0), 1e-4, None, max_size=CAP),
    "SOGP": lambda: pogp.SOGP(pogp.RBF(), 0.01, CAP),
    "KRLSALD": lambda: pogp.KRLSALD(pogp.RBF(), 0.01),
}


@pytest.fixture(autouse=True)
def compiled(monkeypatch):
    monkeypatch.setenv("POGP_BACKEND", "compiled")


def both(make, *samples):
    """Return the models and their records: one by one, and in batches of several blocks."""
    one, many = make(), make()
    single = [one.learn(*sample).records for sample in zip(*samples, strict=True)]
    starts = range(0, len(samples[0]), 100)
    batches = [many.learn(*(part[i : i + 100] for part in samples)).records for i in starts]
    return one, many, np.vstack(single), np.vstack(batches)


def assert_the_same(one, many, single, batches, tolerance=1e-7, at=X):
    np.testing.assert_array_equal(one.indices, many.indices)
    np.testing.assert_allclose(batches, single, rtol=tolerance, atol=tolerance)
    for ours, theirs in zip(many.predict(at[:50]), one.predict(at[:50]), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("inputs", [X, REPEATED], ids=["new", "repeated"])
@pytest.mark.parametrize("name", MODELS)
def test_a_batch_keeps_the_points_that_single_samples_keep(name, inputs):
    assert_the_same(*both(MODELS[name], inputs, Y))


def test_many_outputs_and_a_noise_for_each_sample():
    noise = RNG.uniform(0.005, 0.05, len(X))
    assert_the_same(*both(MODELS["condition"], X, TRUE, noise))


def test_a_model_that_is_larger_than_caches():
    cap = 1030
    inputs = np.random.default_rng(2).uniform(-3, 3, (cap + 4 * BLOCK, 6))
    targets, late = np.sin(inputs).sum(axis=1), slice(cap, None)
    many = pogp.AbsorbingPOG(pogp.RBF(), 0.01, None, max_size=cap)
    many.learn(inputs[:cap], targets[:cap])
    assert many.size == cap
    one = many.copy()
    pairs = zip(inputs[late], targets[late], strict=True)
    single = [one.learn(*pair).records for pair in pairs]
    batch = many.learn(inputs[late], targets[late]).records
    assert one.indices.max() >= cap
    assert_the_same(one, many, np.vstack(single), batch, at=inputs)


def test_nothing_drifts_in_a_long_stream():
    rng = np.random.default_rng(1)
    inputs = rng.uniform(-2, 2, (6000, 3))
    model = MODELS["condition"]()
    model.learn(inputs, np.sin(2 * inputs).sum(axis=1) + 0.1 * rng.normal(size=6000))
    core = model._posterior.core
    assert np.abs(core.inverse @ core.gram - np.eye(core.size)).max() < 5e-9
    S, B = core.covariance_of(0), core.inverse @ core.covariance_of(0) @ core.inverse
    np.testing.assert_allclose(core.spread, np.diagonal(B), rtol=1e-6)
    np.testing.assert_allclose(core.weights, core.inverse @ core.values[0], rtol=0, atol=1e-6)
    known = np.linalg.inv(S) - core.inverse
    np.testing.assert_allclose(core.information, known, atol=1e-5 * np.abs(known).max())


@pytest.mark.parametrize("noise", [100.0, 1e6, 1e12])
def test_samples_with_large_noise_in_a_block(noise):
    model = pogp.AbsorbingPOG(pogp.RBF(), 0.01, None, max_size=1000)
    model.learn(X[:200], Y[:200])
    far, noises = X[:20] + 30.0, np.repeat([0.01, noise, 0.01], [20, 20, 20])
    model.learn(np.vstack([X[200:220], far, X[220:240]]), np.zeros(60), noises)
    assert model.size > 200
    expected = pogp.AbsorbingPOG(pogp.RBF(), noise, None, share=0.0)
    expected.learn(far, np.zeros(20))
    variance, prior = model.predict(far, latent=True)[1], expected.predict(far, latent=True)[1]
    np.testing.assert_allclose(variance, prior, rtol=1e-9)
