"""New hyperparameters along the stream: they help, or nothing changes."""

import numpy as np
import pytest

import pogp

from ..conftest import assert_same_state

RNG = np.random.default_rng(0)
X = RNG.uniform(-3, 3, (2000, 2))
NOISE = 0.01


def wave(X, frequency):
    return np.sin(frequency * X).sum(axis=1)


def noisy(f, seed=1):
    return f + np.sqrt(NOISE) * np.random.default_rng(seed).normal(size=len(f))


QUERIES = np.random.default_rng(2).uniform(-3, 3, (500, 2))


def score(model, truth):
    return pogp.metrics.nlpd(noisy(truth, 3), *model.predict(QUERIES))


def test_retuning_corrects_wrong_hyperparameters(backend):
    model = pogp.AbsorbingPOG(pogp.RBF(4.0, 3.0), 0.3, None, max_size=60)
    samples = 400 if backend == "compiled" else 200
    model.learn(X[:samples], noisy(wave(X[:samples], 2.0)))
    before = score(model, wave(QUERIES, 2.0))
    tuned = model.retune()
    assert (model.kernel, model.noise) == (tuned.kernel, tuned.noise)
    assert tuned.noise == pytest.approx(NOISE, rel=0.5)
    assert score(model, wave(QUERIES, 2.0)) < before - 0.5
    assert model.size <= 60
    np.testing.assert_array_equal(model.dictionary, X[model.indices])


def test_retuning_follows_length_scales_that_change():
    y = noisy(np.where(np.arange(2000) < 500, wave(X, 0.7), wave(X, 4.0)))
    tuned = pogp.tune(X[:200], y[:200])
    frozen = pogp.AbsorbingPOG(tuned.kernel, tuned.noise, None, max_size=120)
    frozen.learn(X[200:1500], y[200:1500])
    model = frozen.copy()
    model.retune()
    for one in (frozen, model):
        one.learn(X[1500:], y[1500:])
    assert score(model, wave(QUERIES, 4.0)) < score(frozen, wave(QUERIES, 4.0)) - 0.5


def test_retuning_changes_nothing_without_a_gain():
    y = noisy(wave(X[:300], 2.0))
    found = pogp.tune(X[:300], y)
    model = pogp.AbsorbingPOG(found.kernel, found.noise, None, max_size=60, calibrate=True)
    model.learn(X[:300], y)
    before = model.state()
    tuned = model.retune()
    assert_same_state(model, before)
    assert (tuned.kernel, tuned.noise, tuned.evaluations) == (found.kernel, found.noise, 0)


def test_with_too_few_samples_nothing_is_tuned():
    model = pogp.AbsorbingPOG(pogp.RBF(), NOISE)
    with pytest.raises(ValueError, match="not learned anything"):
        model.retune()
    model.learn(X[:20], wave(X[:20], 2.0))
    assert model.retune().kernel == pogp.RBF()
    with pytest.raises(ValueError, match="seed"):
        model.retune(seed=-1)


def test_a_retuned_model_continues_the_same_after_saving(tmp_path):
    y = noisy(wave(X, 2.0))
    model = pogp.AbsorbingPOG(pogp.RBF(4.0), 0.3, max_size=40, calibrate=True)
    model.learn(X[:500], y[:500])
    model.retune(seed=3)
    model.save(tmp_path / "model.pogp")
    again = pogp.load(tmp_path / "model.pogp")
    for one in (model, again):
        one.learn(X[500:700], y[500:700])
    assert_same_state(model, again)


def test_the_information_is_transferred_exactly():
    """With nothing removed, the belief under another prior is the dense GP under that prior."""
    y = noisy(wave(X[:90], 2.0))
    model = pogp.AbsorbingPOG(pogp.RBF(0.7), 0.1, None, mean=0.3, share=0.0)
    model.learn(X[:90], y)
    moved = model._posterior.under(pogp.Matern52(0.9, 2.0), 0.02)
    dense = pogp.DenseGP(pogp.Matern52(0.9, 2.0), 0.02, mean=0.3)
    dense.learn(X[:90], y)
    means, variances = moved.predict(QUERIES)
    expected = dense.predict(QUERIES, latent=True)
    np.testing.assert_allclose(means[:, 0], expected[0], atol=1e-8)
    np.testing.assert_allclose(variances, expected[1], atol=1e-8)
