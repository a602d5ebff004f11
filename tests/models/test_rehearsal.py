"""Raw samples looked at again, by the points that there are now."""

import numpy as np
import pytest

import pogp
from pogp.models import absorbing
from pogp.models.retuning import Retuned
from pogp.posteriors.absorbed.information import information_of
from pogp.slices import finished

from ..conftest import assert_same_state, smooth_5d

KERNEL, MEAN = pogp.RBF([1.2, 0.9, 1.5, 1.1, 1.3], 1.7), 0.3
PROJECTIONS = pytest.mark.parametrize("projection", ["condition", "marginalise"])


def learned(samples=160, noise=0.05, **options):
    """A model of a small stream, all of which is in its reservoir."""
    arguments = {"budget": None, "max_size": 25, "mean": MEAN, "share": 0.0, **options}
    model = pogp.AbsorbingPOG(KERNEL, noise, **arguments)
    model.learn(*smooth_5d(samples))
    return model


def dense_twin(model, X, Y, noise, marginalise, queries):
    """Mean and latent variance given y_i = w_iᵀu + an error, by the covariances themselves."""
    Z = model.dictionary
    prior = KERNEL(Z)
    w = np.linalg.solve(prior, KERNEL(Z, X))
    gamma = KERNEL.diag(X) - np.sum(KERNEL(Z, X) * w, axis=0)
    explained = w.T @ prior @ w + np.diag(noise + marginalise * np.maximum(gamma, 0.0))
    cross = KERNEL(queries, Z) @ w
    solved = np.linalg.solve(explained, np.column_stack([Y - MEAN, cross.T]))
    variance = KERNEL.diag(queries) - np.sum(cross * solved[:, -len(queries) :].T, axis=1)
    return MEAN + cross @ solved[:, : -len(queries)], variance


@PROJECTIONS
@pytest.mark.parametrize("noise", [0.05, 1e-4])
def test_with_all_samples_it_is_the_regression_on_the_points(backend, projection, noise):
    model = learned(noise=noise, projection=projection)
    X, y = smooth_5d(160)
    queries = smooth_5d(40, seed=9)[0]
    mean, variance = dense_twin(model, X, y[:, None], noise, projection == "marginalise", queries)
    found = model.rehearsed().predict(queries, latent=True)
    np.testing.assert_allclose(found[0], mean[:, 0], atol=1e-7)
    np.testing.assert_allclose(found[1], variance, atol=1e-7)


@pytest.mark.parametrize("outputs", [1, 2])
def test_without_old_samples_there_is_nothing_to_rehearse(backend, outputs):
    """Two samples for each point are exactly as the present points would learn them."""
    X, y = smooth_5d(50)
    model = pogp.AbsorbingPOG(KERNEL, 0.05, None, max_size=25, mean=MEAN, share=0.0)
    model.learn(X, np.column_stack([y, y**2])[:, :outputs])
    assert model.size == 25
    queries = smooth_5d(40, seed=9)[0]
    for ours, again in zip(model.predict(queries), model.rehearsed().predict(queries), strict=True):
        np.testing.assert_allclose(ours, again, atol=1e-9)


def test_a_state_without_recent_samples_continues(backend):
    model = learned()
    state = {name: part for name, part in model.state().items() if not name.startswith("recent_")}
    again = pogp.AbsorbingPOG(KERNEL, 0.05, None, max_size=25, mean=MEAN, share=0.0)
    again.restore(state)
    X, y = smooth_5d(100, seed=3)
    again.learn(X, y)
    assert len(again.state()["recent_arrivals"]) == 50
    assert pogp.metrics.smse(y, again.predict(X)[0], y.var()) < 0.5


def test_rehearsing_part_of_the_stream_replaces_its_information():
    model = learned(reservoir=40)
    again = model.rehearsed()
    part = learned(reservoir=40)
    part._posterior.rehearse(part._raw_samples.inputs, part._raw_samples.targets, 0.0)
    before, after, alone = (
        finished(information_of(m._posterior.core)) for m in (model, again, part)
    )
    expected = 0.75 * before.matrices + alone.matrices
    np.testing.assert_allclose(after.matrices, expected, rtol=1e-10, atol=1e-9)
    expected = 0.75 * before.vectors + alone.vectors
    np.testing.assert_allclose(after.vectors, expected, rtol=1e-8, atol=1e-8)


@PROJECTIONS
def test_the_model_itself_stays_as_it_is(projection):
    model, twin = learned(projection=projection), learned(projection=projection)
    again = model.rehearsed()
    assert_same_state(model, twin)
    assert not np.array_equal(
        again.predict(model.dictionary)[0], model.predict(model.dictionary)[0]
    )
    np.testing.assert_array_equal(again.indices, model.indices)


def test_a_sample_is_rehearsed_only_once():
    once = learned().rehearsed()
    assert_same_state(once.rehearsed(), once)
    once.learn(*smooth_5d(30, seed=4))
    twice = once.rehearsed()
    assert (once.seen, once._rehearsed, twice._rehearsed) == (190, 160, 190)
    share = 1 - 30 / 190
    new = once._raw_samples.positions >= 160
    by_hand = once.copy()
    samples = (once._raw_samples.inputs[new], once._raw_samples.targets[new])
    by_hand._posterior.rehearse(*samples, share)
    by_hand._rehearsed = 190
    assert_same_state(twice, by_hand)


def test_where_nothing_was_absorbed_nothing_changes(backend):
    model = learned(max_size=None)
    assert model.size == model.seen
    assert_same_state(model.rehearsed(), model)


def test_several_outputs_rehearse_together(backend):
    X, y = smooth_5d(160)
    Y = np.column_stack([y, 2 - y**2])
    model = pogp.AbsorbingPOG(KERNEL, 0.05, None, max_size=25, mean=MEAN, share=0.0)
    model.learn(X, Y)
    mean, variance = dense_twin(model, X, Y, 0.05, False, X[:9])
    found = model.rehearsed().predict(X[:9], latent=True)
    np.testing.assert_allclose(found[0], mean, atol=1e-7)
    np.testing.assert_allclose(found[1], np.column_stack([variance] * 2), atol=1e-7)


def test_a_rehearsed_model_is_saved_and_continues(tmp_path):
    model = learned().rehearsed()
    model.save(tmp_path / "m.pogp")
    again = pogp.load(tmp_path / "m.pogp")
    for one in (model, again):
        one.learn(*smooth_5d(50, seed=8))
    assert_same_state(again.rehearsed(), model.rehearsed())


def test_samples_rehearsed_by_a_part_are_not_rehearsed_again_after_a_merge():
    one, other = learned(), learned()
    assert one.copy().merge(other)._rehearsed == 0
    merged = one.rehearsed().merge(other)
    assert (merged._rehearsed, merged.seen) == (320, 320)
    assert_same_state(merged.rehearsed(), merged)


def test_meaningless_arguments_are_refused():
    with pytest.raises(ValueError, match="nothing to rehearse"):
        pogp.AbsorbingPOG(KERNEL, 0.1).rehearsed()
    with pytest.raises(ValueError, match="a model that forgets"):
        learned(forgetting=0.99).rehearsed()
    model = learned()
    model.learn(*smooth_5d(5, seed=1), noise=0.5)
    with pytest.raises(ValueError, match="had their own noise"):
        model.rehearsed()
    again = pogp.AbsorbingPOG(KERNEL, 0.05, None, max_size=25, mean=MEAN, share=0.0)
    again.restore(model.state())
    with pytest.raises(ValueError, match="had their own noise"):
        again.rehearsed()


def test_rehearsal_helps_if_points_are_few():
    arm = pogp.datasets.arm(1500)
    model = pogp.AbsorbingPOG(pogp.RBF(2.5), 0.01, None, max_size=50, calibrate=True)
    model.learn(arm.x_train, arm.y_train)
    before, after = (
        pogp.metrics.nlpd(arm.y_test, *m.predict(arm.x_test)) for m in (model, model.rehearsed())
    )
    assert after < before - 0.01


def test_relearning_the_reservoir_counts_as_a_rehearsal(monkeypatch):
    model = learned()
    tuned = pogp.Tuned(model.kernel, model.noise, 0.0, evaluations=1, converged=True)
    found = Retuned(tuned, model.copy()._posterior, np.ones(1), relearned=True)
    monkeypatch.setattr(absorbing, "retuned", lambda *_: found)
    model.retune()
    assert model._rehearsed == model.seen
    assert_same_state(model.rehearsed(), model)


def test_no_more_than_a_thousand_recent_samples_are_kept():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1200, 4))
    model = pogp.AbsorbingPOG(pogp.RBF(0.1), 0.01, None, max_size=520)
    model.learn(X, X.sum(axis=1))
    assert model.size == 520
    kept = model.state()["recent_arrivals"]
    np.testing.assert_array_equal(kept, np.arange(200, 1200))
