"""The first slice of a stream: what is predicted meanwhile, when it ends, and idle beginnings."""

import pickle

import numpy as np
import pytest

import pogp

from ...conftest import assert_same_state, smooth_1d
from .test_model import QUERIES, SOME, WARMUP, N, X, Y, tuning

# ---- the warm-up


def test_during_the_warm_up_it_predicts_the_moments_of_the_targets():
    model = tuning("pog")
    trace = model.learn(X[:20], Y[:20])
    assert (model.size, model.seen, model.warming_up, model.model) == (0, 20, True, None)
    assert model.dictionary.shape == (0, 1)
    assert model.nbytes == 20 * 2 * 8
    for t in range(2, 20):
        assert trace.mean[t] == pytest.approx(Y[:t].mean())
        assert trace.variance[t] == pytest.approx(Y[:t].var())
    mean, variance = model.predict(X)
    np.testing.assert_allclose(mean, Y[:20].mean())
    np.testing.assert_allclose(variance, Y[:20].var())
    assert model.predict([0.5]) == (mean[0], variance[0])


def test_before_the_first_sample_a_vector_of_means_says_how_many_outputs():
    model = tuning(mean=[1.0, 2.0])
    assert model.predict(QUERIES)[0].shape == (9, 2)
    with pytest.raises(ValueError, match=r"y must have shape \(70, 2\)"):
        model.learn(X, Y)


@pytest.mark.parametrize("method", ["absorbing", "dense"])
def test_settling_tunes_on_the_samples_so_far(method):
    model, whole = tuning(method), tuning(method, warmup=25)
    model.learn(X[:25], Y[:25])
    model.settle()
    whole.learn(X[:25], Y[:25])
    assert not model.warming_up
    assert_same_state(model, whole)
    model.settle()
    assert_same_state(model, whole)
    np.testing.assert_array_equal(
        model.learn(X[25:], Y[25:]).records, whole.learn(X[25:], Y[25:]).records
    )


@pytest.mark.parametrize("count", [0, 1])
def test_settling_needs_two_samples(count):
    model = tuning()
    model.learn(X[:count], Y[:count])
    with pytest.raises(ValueError, match=f"at least 2 samples.*got {count}"):
        model.settle()
    assert (model.warming_up, model.seen) == (True, count)
    for method in ("dense", "spgp"):
        with pytest.raises(ValueError, match=f"at least 2 samples.*got {count}"):
            tuning(method).fit(X[:count], Y[:count])


@pytest.mark.parametrize(("count", "scale"), [(2, False), (3, True)])
def test_two_samples_are_enough(count, scale):
    model = tuning("dense", scale=scale).fit(X[:count], Y[:count])
    mean, variance = model.predict(QUERIES)
    assert np.isfinite(mean).all()
    assert (variance > 0).all()


@pytest.mark.parametrize("method", ["absorbing", "dense", "vfe"])
def test_fitting_starts_afresh(method):
    model = tuning(method).fit(X[20:], 2 * Y[20:])
    model = pickle.loads(pickle.dumps(model)).fit(X, Y)
    assert_same_state(model, tuning(method).fit(X, Y))
    before = model.state()
    with pytest.raises(ValueError, match="nan"):
        model.fit(X, np.full(N, np.nan))
    assert_same_state(model, before)


@pytest.mark.parametrize("method", SOME)
def test_fitting_is_learning_and_settling(method):
    for count in (25, N):
        fitted, learned = tuning(method).fit(X[:count], Y[:count]), tuning(method)
        learned.learn(X[:count], Y[:count])
        learned.settle()
        assert_same_state(fitted, learned)


# ---- streams that begin with nothing


def idle_at_first(samples):
    """A stream whose target begins to change after so many samples."""
    inputs = np.vstack([smooth_1d(samples, seed=5)[0], X])
    return inputs, np.append(np.full(samples, 7.0), Y)


@pytest.mark.parametrize("idle", [16, 45, 400])
def test_the_slice_begins_where_the_target_begins_to_change(idle):
    inputs, targets = idle_at_first(idle)
    end = min(idle + WARMUP, 10 * WARMUP)
    whole, singly, changing = tuning(), tuning(), tuning()
    whole.learn(inputs, targets)
    for x, y in zip(inputs[:end], targets[:end], strict=True):
        assert singly.warming_up
        singly.learn(x, y)
    assert not singly.warming_up
    singly.learn(inputs[end:], targets[end:])
    assert_same_state(singly, whole)
    if idle < 400:  # else the patience ends before the idleness
        changing.learn(X, Y)
        assert whole.kernel == changing.kernel
        assert whole.noise == changing.noise


def test_less_than_half_of_a_slice_may_be_idle():
    inputs, targets = idle_at_first(15)
    model = tuning()
    model.learn(inputs[:WARMUP], targets[:WARMUP])
    assert not model.warming_up


def test_an_offline_method_waits_as_well():
    inputs, targets = idle_at_first(40)
    late, early = tuning("vfe").fit(inputs, targets), tuning("vfe").fit(X, Y)
    assert late.kernel == early.kernel


def test_a_warm_up_that_waits_is_saved_with_all_its_samples(tmp_path):
    inputs, targets = idle_at_first(100)
    model = tuning()
    model.learn(inputs[:90], targets[:90])
    model.save(tmp_path / "m.pogp")
    again = pogp.load(tmp_path / "m.pogp")
    model.learn(inputs[90:], targets[90:])
    again.learn(inputs[90:], targets[90:])
    assert not again.warming_up
    assert_same_state(again, model)
