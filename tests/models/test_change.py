"""A running model changes its budget, cap or forgetting, and keeps what it learned."""

from functools import partial

import numpy as np
import pytest

import pogp
from pogp.checks._kit import queries, require_same, stream

KERNEL, NOISE = pogp.RBF((0.7, 0.9), 1.3), 0.05
CAPPED = {
    "newest": partial(pogp.POG, KERNEL, NOISE, None, max_size=40),
    "everywhere": partial(pogp.POG, KERNEL, NOISE, None, view="everywhere", max_size=40),
    "random": partial(pogp.RandomSubset, KERNEL, NOISE, 40),
    "window": partial(pogp.SlidingWindow, KERNEL, NOISE, 40),
    "sogp": partial(pogp.SOGP, KERNEL, NOISE, 40),
    "mcintire": partial(pogp.McIntire, KERNEL, NOISE, 1e-3, max_size=40),
    "krls-t": partial(pogp.KRLST, KERNEL, NOISE, 40),
    "absorbing": partial(pogp.AbsorbingPOG, KERNEL, NOISE, None, max_size=40, calibrate=True),
    "self-tuning": partial(pogp.SelfTuning, "absorbing", warmup=50, max_size=40),
    "online": partial(pogp.OnlineGP, max_size=40),
}


@pytest.mark.parametrize("name", CAPPED)
def test_a_smaller_cap_holds_at_once_and_in_files(name):
    model = CAPPED[name]()
    X, y = stream(model)
    model.learn(X[:60], y[:60])
    assert model.change(max_size=15) is model
    assert model.size <= 15
    assert model.arguments()["max_size"] == 15
    loaded = pogp.from_bytes(model.to_bytes())
    require_same("loaded", loaded, model)
    traces = [each.learn(X[60:], y[60:]) for each in (model, loaded)]
    np.testing.assert_array_equal(traces[0].records, traces[1].records)
    assert traces[0].size.max() <= 15
    require_same("gone on", loaded, model)


@pytest.mark.parametrize("name", CAPPED)
def test_a_larger_cap_is_filled(name):
    model = CAPPED[name]()
    X, y = stream(model)
    model.learn(X[:60], y[:60])
    mean, variance = model.predict(queries(model))
    held = model.change(max_size=60).size
    for before, after in zip((mean, variance), model.predict(queries(model)), strict=True):
        np.testing.assert_array_equal(before, after)
    model.learn(X[60:], y[60:])
    assert held <= model.size <= 60
    if name in ("newest", "everywhere", "random", "window"):
        assert model.size == 60


@pytest.mark.parametrize("make", [pogp.POG, partial(pogp.POG, view="everywhere")])
def test_a_new_budget_applies_from_the_next_sample(make, backend):
    changed = make(KERNEL, NOISE, 1e-3)
    planned = make(KERNEL, NOISE, lambda t: 1e-3 if t < 80 else 0.1)
    X, y = stream(changed)
    changed.learn(X[:80], y[:80])
    changed.change(budget=0.1).learn(X[80:], y[80:])
    planned.learn(X[:80], y[:80])
    planned.learn(X[80:], y[80:])
    require_same("changed", changed, planned)


def test_the_budget_of_an_absorbing_model_changes():
    changed = pogp.AbsorbingPOG(KERNEL, NOISE, 1e-4)
    planned = pogp.AbsorbingPOG(KERNEL, NOISE, lambda t: 1e-4 if t < 80 else 0.3)
    X, y = stream(changed)
    for model in (changed, planned):
        model.learn(X[:80], y[:80])
    changed.change(budget=pogp.Constant(0.3))
    for model in (changed, planned):
        model.learn(X[80:], y[80:])
    require_same("changed", changed, planned)


def forgetful(belief, K, learned, X, y, forgetting):
    """Brute force: (mean, covariance) at some places, the first of which are X, after (X, y)."""
    mean, covariance = belief
    for i in learned:
        gain = covariance[:, i] / (covariance[i, i] + NOISE)
        mean = mean + gain * (y[i] - mean[i])
        covariance = covariance - np.outer(gain, covariance[i])
        mean = np.sqrt(forgetting) * mean
        covariance = forgetting * covariance + (1 - forgetting) * K
    return mean, covariance


@pytest.mark.parametrize(("first", "then"), [(1.0, 0.97), (0.97, 1.0), (0.98, 0.95)])
def test_a_changed_forgetting_is_exact(first, then, backend):
    kernel = pogp.Matern12(0.8)  # points stay apart, and nothing is rounded away
    model = pogp.AbsorbingPOG(kernel, NOISE, None, share=0.0, forgetting=first)
    X, y = stream(model)
    X, y = X[:60], y[:60]
    places = np.vstack([X, queries(model)[:10]])
    K = kernel(places)
    belief = forgetful((np.zeros(len(K)), K), K, range(30), X, y, first)
    model.learn(X[:30], y[:30])
    model.change(forgetting=then)
    belief = forgetful(belief, K, range(30, 60), X, y, then)
    model.learn(X[30:], y[30:])
    mean, variance = model.predict(places, latent=True)
    np.testing.assert_allclose(mean, belief[0], atol=1e-9)
    np.testing.assert_allclose(variance, np.diagonal(belief[1]), atol=1e-9)
    require_same("loaded", pogp.from_bytes(model.to_bytes()), model)


def test_forgetting_by_name_changes_too():
    model = pogp.SelfTuning("krls-t", kernel=KERNEL, noise=NOISE, max_size=20, forgetting=1.0)
    alone = pogp.KRLST(KERNEL, NOISE, 20, forgetting=1.0)
    X, y = stream(alone)
    for each in (model, alone):
        each.learn(X[:80], y[:80])
        each.change(forgetting=0.9)
        each.learn(X[80:], y[80:])
    require_same("inside", model.model, alone)
    assert model.arguments()["forgetting"] == 0.9


def test_options_may_change_while_warming_up():
    model = pogp.SelfTuning("absorbing", warmup=60, max_size=30)
    X, y = stream(model)
    model.learn(X[:40], y[:40])
    model.change(max_size=10).learn(X[40:], y[40:])
    assert model.size <= 10


def test_a_mini_batch_brings_fewer_pseudo_inputs():
    model = pogp.StreamingVFE(KERNEL, NOISE, 20, batch=30)
    X, y = stream(model)
    model.learn(X[:90], y[:90])
    model.change(size=8).learn(X[90:], y[90:])
    assert model.size == 8


def test_an_online_model_can_be_changed_during_a_tuning():
    model = pogp.OnlineGP(max_size=60)
    X, y = stream(model)
    start = 0
    while start < 40 or model._stream.pending is None:
        model.learn(X[start], y[start])
        start += 1
    model.change(max_size=12, robust=False)
    assert (model.max_size, model.robust, model.size <= 12) == (12, False, True)
    assert model.history[-1].what == "changed by the user"
    copy, loaded = model.copy(), pogp.from_bytes(model.to_bytes())
    for each in (model, copy, loaded):
        each.learn(X[start:], y[start:])
    require_same("copied", copy, model)
    require_same("loaded", loaded, model)
    assert model.size <= 12


@pytest.mark.parametrize(
    ("make", "change", "message"),
    [
        (CAPPED["newest"], {"max_size": 0}, "max_size must be a whole number ≥ 1, got 0"),
        (CAPPED["newest"], {"budget": "much"}, "budget must be"),
        (CAPPED["newest"], {"kernel": pogp.RBF()}, "POG can change budget, view, .*not 'kernel'"),
        (CAPPED["absorbing"], {"forgetting": 0.0}, "forgetting must be in"),
        (CAPPED["sogp"], {"forgetting": 0.9}, "SOGP can change max_size, tolerance .*'forgetting'"),
        (CAPPED["online"], {"robust": "yes"}, "robust must be True or False, got 'yes'"),
        (partial(pogp.DenseGP, KERNEL, NOISE), {"max_size": 3}, "DenseGP can change nothing"),
    ],
)
def test_a_wrong_change_is_refused_and_changes_nothing(make, change, message):
    model = make()
    X, y = stream(model)
    model.learn(X[:50], y[:50])
    before = model.copy()
    with pytest.raises(ValueError, match=message):
        model.change(**change)
    require_same("after the error", model, before)
    assert repr(model) == repr(before)
