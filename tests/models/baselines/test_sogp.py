"""SOGP as its users meet it."""

import os
import pickle

import numpy as np
import pytest

import pogp

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1200, 3))
Y = np.sin(X.sum(axis=1)) + 0.1 * RNG.normal(size=1200) + 5


def model(**options):
    return pogp.SOGP(pogp.RBF(), 0.01, 40, mean=5.0, **options)


def test_batches_copies_and_files_continue_the_same(tmp_path):
    one = model()
    one.learn(X[:300], Y[:300])
    one.save(tmp_path / "model.pogp")
    others = [one.copy(), pickle.loads(pickle.dumps(one)), pogp.load(tmp_path / "model.pogp")]
    singly = one.copy()
    expected = one.learn(X[300:420], Y[300:420])
    for other in others:
        np.testing.assert_array_equal(other.learn(X[300:420], Y[300:420]).records, expected.records)
        np.testing.assert_array_equal(other.predict(X[:420]), one.predict(X[:420]))
    steps = [singly.learn(x, y).records for x, y in zip(X[300:420], Y[300:420], strict=True)]
    np.testing.assert_array_equal(np.concatenate(steps), expected.records)


def test_the_dictionary_is_bounded_and_made_of_samples(backend):
    one = model()
    trace = one.learn(X[:400], Y[:400])
    assert trace.size.max() == one.size == 40
    np.testing.assert_array_equal(one.dictionary, X[one.indices])
    assert (np.diff(one.indices) > 0).all()
    assert (one.predict(X)[1] > 0.01).all()


def test_redundant_samples_are_absorbed_without_a_new_point(backend):
    one = model()
    one.learn(np.zeros((50, 3)), np.full(50, 6.0))
    assert one.size == 1
    mean, _ = one.predict(np.zeros(3))
    assert mean == pytest.approx(5 + 50 / 50.01, rel=1e-6)


def test_bad_input_changes_nothing(backend):
    one = model()
    one.learn(X[:100], Y[:100])
    before = one.state()
    bad = X[:80].copy()
    bad[-1, 1] = np.nan
    with pytest.raises(ValueError, match="got nan"):
        one.learn(bad, Y[:80])
    for name, value in one.state().items():
        np.testing.assert_array_equal(value, before[name])
    for options in ({"tolerance": -1.0}, {"tolerance": np.nan}):
        with pytest.raises(ValueError, match="tolerance"):
            model(**options)


def test_a_long_run_stays_exact():
    rng = np.random.default_rng(3)
    inputs = rng.normal(size=(100_000, 3))
    inputs[::4] = np.round(inputs[::4], 1)
    one = model()
    one.learn(inputs, np.sin(inputs.sum(axis=1)) + 5)
    core = one._posterior.core
    gram = one.kernel(core.inputs)
    w = np.linalg.solve(gram, one.kernel(core.inputs, X))
    left = one.kernel.diag(X) - np.sum(w * (gram @ w), axis=0)
    expected = left + np.einsum("mn,mk,kn->n", w, core.covariance[0], w)
    np.testing.assert_allclose(one.predict(X)[0], 5 + w.T @ core.values[0, :, 0], atol=1e-8)
    np.testing.assert_allclose(one.predict(X, latent=True)[1], expected, atol=1e-10)
    assert np.abs(core.gram @ core.inverse - np.eye(one.size)).max() < 1e-8


@pytest.mark.skipif("POGP_DATA" not in os.environ, reason="POGP_DATA is not set")
def test_on_abalone_fifty_points_are_as_good_as_all():
    data = pogp.datasets.load("abalone")
    first = slice(0, 150)
    mean = data.y_train[first].mean()
    tuned = pogp.tune(data.x_train[first], data.y_train[first], mean=mean)
    errors = []
    for one in (
        pogp.DenseGP(tuned.kernel, tuned.noise, mean=mean),
        pogp.SOGP(tuned.kernel, tuned.noise, 50, mean=mean),
    ):
        one.learn(data.x_train[150:], data.y_train[150:])
        predicted, _ = one.predict(data.x_test)
        errors.append(pogp.metrics.smse(data.y_test, predicted, data.y_train.var()))
    assert errors[1] <= 1.01 * errors[0]
