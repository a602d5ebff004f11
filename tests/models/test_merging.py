"""Merging: what models learned apart is what one would have learned from all."""

import numpy as np
import pytest

import pogp
from pogp.models.merging import best_points

from ..conftest import assert_same_state, extended_solution, rbf, smooth_2d

KERNEL, WRITTEN, NOISE, MEAN = pogp.RBF(0.25, 1.3), rbf(0.25, 1.3), 0.05, 0.3
X, Y = smooth_2d(120)
PARTS = [slice(0, 50), slice(50, 60), slice(60, 120)]
QUERIES = X[:40] + 0.05


def learned(rows, budget=None, noise=NOISE, Y=Y, **options):
    arguments = {"mean": MEAN, "share": 0.0, **options}
    model = pogp.AbsorbingPOG(KERNEL, noise, budget, **arguments)
    model.learn(X[rows], Y[rows])
    return model


@pytest.mark.parametrize("noise", [0.1, 1e-4, 1e-8])
def test_the_union_is_the_dense_gp_on_all_samples(backend, noise):
    smooth = np.sin(X.sum(axis=1))
    first, *others = (learned(rows, noise=noise, Y=smooth) for rows in PARTS)
    for other in others:
        before = other.state()
        assert first.merge(other) is first
        assert_same_state(other, before)
    assert (first.size, first.seen) == (120, 120)
    np.testing.assert_array_equal(first.indices, np.arange(120))
    np.testing.assert_array_equal(first.dictionary, X)
    expected = extended_solution(WRITTEN, noise, MEAN, X, smooth, QUERIES)
    np.testing.assert_allclose(first.predict(QUERIES, latent=True), expected, atol=1e-8)


def test_several_models_are_merged_at_once():
    first, *others = (learned(rows, max_size=20) for rows in PARTS)
    at_once = first.copy().merge(*others)
    assert (at_once.size, at_once.seen) == (20, 120)
    assert first.copy().merge() is not first
    free = [learned(rows) for rows in PARTS]
    one_by_one = free[0].copy().merge(free[1]).merge(free[2])
    np.testing.assert_array_equal(free[0].merge(*free[1:]).indices, one_by_one.indices)
    np.testing.assert_allclose(free[0].predict(QUERIES), one_by_one.predict(QUERIES), atol=1e-9)


def test_points_are_chosen_by_what_they_add_to_the_fit():
    rng = np.random.default_rng(2)
    root, g = rng.normal(size=(12, 12)), rng.normal(size=(12, 2))
    P = root @ root.T

    def fit(which):
        return np.sum(g[which] * np.linalg.solve(P[np.ix_(which, which)], g[which]))

    expected = []
    for _ in range(5):
        others = [j for j in range(12) if j not in expected]
        expected.append(max(others, key=lambda j: fit([*expected, j])))
    np.testing.assert_array_equal(best_points(P, g, 5), sorted(expected))


def test_evidence_of_many_models_is_projected_onto_few_points(backend):
    parts = [learned(rows, max_size=30) for rows in np.split(np.arange(120), 4)]
    union = parts[0].copy().change(max_size=None).merge(*parts[1:])
    merged = parts[0].copy().merge(*parts[1:])
    assert (union.size, merged.size, merged.seen) == (120, 30, 120)
    places = np.flatnonzero(np.isin(union.indices, merged.indices))
    np.testing.assert_array_equal(union.dictionary[places], merged.dictionary)
    # with all samples as points, those that stay know the regression of all samples on them
    K, Z = WRITTEN, merged.dictionary
    F = np.linalg.solve(np.linalg.cholesky(K(Z, Z)), K(Z, X))
    P = np.eye(30) + F @ F.T / NOISE
    G = np.linalg.solve(np.linalg.cholesky(K(Z, Z)), K(Z, QUERIES))
    expected = MEAN + G.T @ np.linalg.solve(P, F @ (Y - MEAN) / NOISE)
    np.testing.assert_allclose(merged.predict(QUERIES)[0], expected, atol=1e-8)


def test_a_model_is_not_merged_twice(backend):
    model, other = learned(PARTS[0]), learned(PARTS[1])
    before = model.state()
    for others in ([model], [other, other], [other, model]):
        with pytest.raises(ValueError, match="would count twice"):
            model.merge(*others)
    assert_same_state(model, before)


def test_learning_goes_on_after_a_merge():
    merged = learned(PARTS[0]).merge(learned(PARTS[1]))
    trace, whole = merged.learn(X[60:], Y[60:]), learned(slice(0, 60))
    expected = whole.learn(X[60:], Y[60:])
    np.testing.assert_allclose(trace.records, expected.records, atol=1e-7)
    np.testing.assert_allclose(merged.predict(QUERIES), whole.predict(QUERIES), atol=1e-8)
    np.testing.assert_array_equal(merged.indices, whole.indices)


def test_many_outputs_merge(backend):
    both = np.column_stack([Y, -2 * Y])
    merged = learned(PARTS[0], Y=both).merge(learned(slice(50, 120), Y=both))
    expected = extended_solution(WRITTEN, NOISE, MEAN, X, -2 * Y, QUERIES)
    mean, variance = merged.predict(QUERIES, latent=True)
    np.testing.assert_allclose((mean[:, 1], variance[:, 1]), expected, atol=1e-8)


def test_order_and_grouping_do_not_matter_without_removals(backend):
    a, b, c = (learned(rows) for rows in PARTS)
    orders = [
        a.copy().merge(b).merge(c),
        c.copy().merge(b).merge(a),
        b.copy().merge(c.copy().merge(a)),
        a.copy().merge(b.copy().merge(c)),
    ]
    for other in orders[1:]:
        np.testing.assert_allclose(other.predict(QUERIES), orders[0].predict(QUERIES), atol=1e-8)
        np.testing.assert_allclose(
            other.covariance(QUERIES), orders[0].covariance(QUERIES), atol=1e-8
        )


@pytest.mark.parametrize("budget", [None, 0.1])
def test_a_model_that_learned_nothing_adds_nothing(backend, budget):
    model = learned(PARTS[0], budget, max_size=30)
    before = model.state()
    model.merge(pogp.AbsorbingPOG(KERNEL, NOISE, mean=MEAN))
    assert_same_state(model, before)
    empty = pogp.AbsorbingPOG(KERNEL, NOISE, None, mean=MEAN)
    empty.merge(pogp.AbsorbingPOG(KERNEL, NOISE, mean=MEAN))
    assert (empty.size, empty.seen) == (0, 0)
    empty.merge(model)
    assert_same_state(model, before)
    assert (empty.budget, empty.max_size) == (None, None)
    np.testing.assert_array_equal(empty.indices, model.indices)
    np.testing.assert_allclose(empty.predict(QUERIES), model.predict(QUERIES), atol=1e-10)


def test_an_input_in_both_models_becomes_one_point(backend):
    again = np.cos(X.sum(axis=1))
    merged = learned(PARTS[0]).merge(learned(slice(30, 80), Y=again))
    np.testing.assert_array_equal(merged.indices, np.append(np.arange(50), np.arange(70, 100)))
    assert merged.seen == 100
    rows = np.r_[0:50, 30:80]
    targets = np.append(Y[:50], again[30:80])
    expected = extended_solution(WRITTEN, NOISE, MEAN, X[rows], targets, QUERIES)
    np.testing.assert_allclose(merged.predict(QUERIES, latent=True), expected, atol=1e-8)


def test_after_a_merge_the_cap_holds_and_one_step_is_spent(backend):
    capped = learned(PARTS[0], max_size=20).merge(learned(PARTS[2]))
    assert capped.size == 20
    rich, thrifty = learned(PARTS[2]), learned(PARTS[0], 0.3)
    order = thrifty.size
    thrifty.merge(rich)
    assert order < thrifty.size < order + rich.size
    rows = np.r_[0:50, 60:120]
    expected = extended_solution(WRITTEN, NOISE, MEAN, X[rows], Y[rows], QUERIES)
    ours = thrifty.predict(QUERIES, latent=True)
    np.testing.assert_allclose(ours, expected, atol=0.1)


def test_the_order_of_many_shards_hardly_matters():
    rng = np.random.default_rng(7)
    inputs = rng.uniform(-1, 1, (1500, 2))
    truth = np.sin(3 * inputs[:, 0]) * np.cos(2 * inputs[:, 1])
    targets = truth + np.sqrt(NOISE) * rng.normal(size=1500)

    def model():
        kernel = pogp.RBF(0.6, 1.3)
        return pogp.AbsorbingPOG(kernel, NOISE, 0.02, max_size=50, mean=MEAN, share=0.0)

    shards = []
    for rows in np.split(np.arange(1500), 50):
        shards.append(model())
        shards[-1].learn(inputs[rows], targets[rows])
    whole = model()
    whole.learn(inputs, targets)
    expected, spread = whole.predict(inputs[:300], latent=True)
    predictions = []
    for seed in range(2):
        merged = model()
        for i in np.random.default_rng(seed).permutation(50):
            merged.merge(shards[i])
        assert merged.seen == 1500
        assert merged.size <= 50
        predictions.append(merged.predict(inputs[:300], latent=True))
    for mean, variance in predictions:  # the noise has a standard deviation of 0.22
        assert np.abs(mean - predictions[0][0]).max() < 0.01
        assert np.abs(mean - expected).max() < 0.01
        assert np.std(mean - truth[:300]) < 0.03
        np.testing.assert_allclose(variance, spread, rtol=0.3)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: pogp.AbsorbingPOG(pogp.RBF(0.7, 1.3), NOISE, mean=MEAN), "same kernel"),
        (lambda: pogp.AbsorbingPOG(pogp.Matern52(0.6, 1.3), NOISE, mean=MEAN), "same kernel"),
        (lambda: pogp.AbsorbingPOG(KERNEL, 2 * NOISE, mean=MEAN), "same noise"),
        (lambda: pogp.AbsorbingPOG(KERNEL, NOISE), "same mean"),
        (lambda: pogp.AbsorbingPOG(KERNEL, NOISE, mean=[MEAN, MEAN]), "same mean"),
        (lambda: pogp.AbsorbingPOG(KERNEL, NOISE, mean=MEAN, forgetting=0.9), "same forgetting"),
        (lambda: pogp.SOGP(KERNEL, NOISE, 10, mean=MEAN), "AbsorbingPOG"),
        (lambda: pogp.POG(KERNEL, NOISE, mean=MEAN), "AbsorbingPOG"),
        (lambda: None, "AbsorbingPOG"),
    ],
)
def test_mismatched_shapes_are_refused_and_change_nothing(other, message):
    model, other = learned(PARTS[0], 0.1), other()
    if other is not None:
        targets = np.column_stack([Y, Y]) if np.size(getattr(other, "mean", 0)) == 2 else Y
        other.learn(X[:20], targets[:20])
    before = model.state()
    with pytest.raises(ValueError, match=message):
        model.merge(other)
    assert_same_state(model, before)


def test_other_shapes_are_refused(backend):
    flat, column = learned(PARTS[0]), learned(PARTS[1], Y=Y[:, None])
    narrow = pogp.AbsorbingPOG(KERNEL, NOISE, mean=MEAN)
    narrow.learn(X[:9, :1], Y[:9])
    before = flat.state()
    for other, message in ((column, "targets of shape"), (narrow, "2 inputs")):
        with pytest.raises(ValueError, match=message):
            flat.merge(other)
        assert_same_state(flat, before)


def test_a_copy_of_a_merged_model_continues_alike():
    empty, other = (pogp.AbsorbingPOG(KERNEL, NOISE, mean=MEAN, seed=seed) for seed in (0, 5))
    inputs = np.random.default_rng(1).uniform(-1, 1, (900, 2))
    other.learn(inputs[:700], inputs[:700, 0])
    merged = empty.merge(other)
    again = merged.copy()
    for model in (merged, again):
        model.learn(inputs[700:], inputs[700:, 1])
    assert_same_state(merged, again)


def test_a_merge_that_is_interrupted_changes_nothing(monkeypatch):
    one, other = (pogp.AbsorbingPOG(KERNEL, NOISE, mean=MEAN, max_size=20) for _ in range(2))
    inputs = np.random.default_rng(3).uniform(-1, 1, (80, 2))
    one.learn(inputs[:40], inputs[:40, 0])
    other.learn(inputs[40:], inputs[40:, 0])
    before = one.state()

    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(one._raw_samples), "join", interrupt)
    with pytest.raises(KeyboardInterrupt):
        one.merge(other)
    assert_same_state(one, before)


# ---- OnlineGP


def online_part(seed, low, high, n=700):
    rng = np.random.default_rng(seed)
    X = rng.uniform(low, high, (n, 2))
    y = 100 + 5 * np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=n)
    return X, y


def online(seed, low, high):
    X, y = online_part(seed, low, high)
    model = pogp.OnlineGP(max_size=80)
    model.learn(X, y)
    return model


def test_online_models_of_two_regions_know_both_after_merging():
    left, right = online(0, -2, 0), online(1, 0, 2)
    before = right.to_bytes()
    X, y = online_part(2, -2, 0, 200)
    Z, z = online_part(3, 0, 2, 200)
    alone = np.sqrt(np.mean((left.predict(Z)[0] - z) ** 2))
    assert left.merge(right) is left
    assert right.to_bytes() == before
    assert left.seen == 1400
    assert left.size <= 80
    assert left.history[-1].what == "merged"
    for inputs, targets in ((X, y), (Z, z)):
        error = np.sqrt(np.mean((left.predict(inputs)[0] - targets) ** 2))
        assert error < 0.5 < alone
    left.learn(X, y)  # goes on, and is tuned anew
    assert any(event.what == "new hyperparameters" for event in left.history[-3:])
    assert pogp.from_bytes(left.to_bytes()).seen == 1600


def test_an_online_model_that_has_hardly_begun_takes_over_the_other():
    X, y = online_part(0, -2, 0, 4)
    model = pogp.OnlineGP(max_size=80)
    model.learn(X, y)
    model.merge(online(1, 0, 2))
    Z, z = online_part(3, 0, 2, 200)
    assert np.sqrt(np.mean((model.predict(Z)[0] - z) ** 2)) < 0.5
    assert model.indices.min() >= 4


def test_an_empty_online_model_becomes_the_other():
    model, other = pogp.OnlineGP(max_size=80), online(0, -2, 0)
    model.merge(pogp.OnlineGP(), other)
    queries = np.zeros((1, 2))
    assert model.predict(queries) == other.predict(queries)
    assert other.merge(pogp.OnlineGP()).seen == 700


def test_online_models_that_do_not_fit_are_refused():
    model, other = online(0, -2, 0), pogp.OnlineGP()
    other.learn(np.zeros((3, 1)), np.arange(3.0))
    before = model.to_bytes()
    for wrong, message in (
        ((model,), "not with itself"),
        ((other,), "same inputs"),
        (("x",), "of its kind"),
    ):
        with pytest.raises(ValueError, match=message):
            model.merge(*wrong)
    assert model.to_bytes() == before
