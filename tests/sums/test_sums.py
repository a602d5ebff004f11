"""Sums over the parts of a table give the regression on the points of all its rows."""

import dataclasses
import pickle

import numpy as np
import pytest

import pogp
from pogp import sums
from pogp.sums import points
from pogp.sums.drawing import draw
from pogp.sums.rows import BLOCK

from ..conftest import assert_same_state, smooth_2d

KERNEL, NOISE, MEAN = pogp.RBF([0.5, 0.7], 1.3), 0.05, 0.3
X, Y = smooth_2d(3000)
QUERIES = X[:50] + 0.03


def plan(outputs=1, units=None):
    points = np.random.default_rng(1).uniform(X.min(axis=0), X.max(axis=0), (25, 2))
    units = np.ones(outputs) if units is None else np.array(units)
    mean = np.full(outputs, MEAN)
    return sums.Plan(points, KERNEL, NOISE, mean, units, outputs == 1, 30)


PLAN = plan()


def brute_force(Z, X, y, noises, queries):
    """The posterior where f(x) is its regression on f(Z): normal equations, nothing factored."""
    cross, at = KERNEL(Z, X), KERNEL(Z, queries)
    gram = KERNEL(Z)
    A = gram + (cross / noises) @ cross.T
    mean = MEAN + at.T @ np.linalg.solve(A, (cross / noises) @ (y - MEAN))
    nystroem = np.sum(at * np.linalg.solve(gram, at), axis=0)
    known = np.sum(at * np.linalg.solve(A, at), axis=0)
    return mean, KERNEL.variance - nystroem + known


def latent(model):
    mean, variance = model.predict(QUERIES, latent=True)
    return mean, variance / model.scale


def test_the_model_is_the_regression_on_the_points(backend):
    model = PLAN.model(PLAN.sums([(X, Y)]))
    expected = brute_force(PLAN.points, X, Y, np.full(len(X), NOISE), QUERIES)
    np.testing.assert_allclose(latent(model), expected, rtol=1e-7, atol=1e-8)
    assert (model.seen, model.size, model.max_size) == (3000, 25, 30)
    assert pogp.from_bytes(model.to_bytes()).predict(QUERIES[0]) == model.predict(QUERIES[0])


def test_noise_and_weights_of_rows_count():
    rng = np.random.default_rng(2)
    noise, weights = rng.uniform(0.01, 0.2, 3000), rng.integers(0, 4, 3000)
    model = PLAN.model(PLAN.sums([(X, Y, noise, weights)]))
    repeated = np.repeat(np.arange(3000), weights)
    expected = brute_force(PLAN.points, X[repeated], Y[repeated], noise[repeated], QUERIES)
    np.testing.assert_allclose(latent(model), expected, rtol=1e-7, atol=1e-8)
    alike = PLAN.sums([(X[:9], Y[:9], NOISE, 1.0), (X[9:], Y[9:])])
    assert alike.to_bytes() == PLAN.sums([(X, Y)]).to_bytes()


def test_outputs_of_different_units_are_modelled_each_in_its_own():
    units = np.array([0.5, 2.0])
    both = plan(2, units)
    targets = MEAN + units * np.column_stack([Y - MEAN, MEAN - Y])
    model = both.model(both.sums([(X, targets)]))
    expected = brute_force(PLAN.points, X, Y, np.full(len(X), NOISE), QUERIES)
    mean, variance = model.predict(QUERIES, latent=True)
    np.testing.assert_allclose((mean[:, 0] - MEAN) / 0.5, expected[0] - MEAN, rtol=1e-7)
    np.testing.assert_allclose((MEAN - mean[:, 1]) / 2.0, expected[0] - MEAN, rtol=1e-7)
    np.testing.assert_allclose(model.scale[1] / model.scale[0], 16.0)
    np.testing.assert_allclose(variance / model.scale, np.column_stack(2 * [expected[1]]))


@pytest.mark.parametrize("parts", [2, 7, 128])
@pytest.mark.parametrize("order", ["as they come", "sorted"])
def test_the_division_into_parts_is_rounding(parts, order):
    rows = np.arange(3000) if order == "as they come" else np.argsort(X[:, 0])
    whole = PLAN.sums([(X, Y)])
    added = sums.total(PLAN.sums([(X[i], Y[i])]) for i in np.array_split(rows, parts))
    for name in ("gram", "vector", "squares", "slack"):
        expected = getattr(whole, name)
        np.testing.assert_allclose(
            getattr(added, name), expected, rtol=0, atol=1e-13 * np.abs(expected).max()
        )
    assert added.count == whole.count
    one, other = PLAN.model(whole), PLAN.model(added)
    mean, variance = one.predict(QUERIES)
    np.testing.assert_allclose(other.predict(QUERIES)[0], mean, rtol=1e-10)
    np.testing.assert_allclose(other.predict(QUERIES)[1], variance, rtol=1e-9)


def test_the_same_parts_give_the_same_bits_however_they_are_batched_or_grouped():
    parts = []
    for number, rows in enumerate(np.array_split(np.arange(3000), 11)):
        batches = [(X[i], Y[i]) for i in np.array_split(rows, number + 1)]
        parts.append(PLAN.sums(batches))
        assert parts[-1].to_bytes() == PLAN.sums([(X[rows], Y[rows])]).to_bytes()
    whole = sums.total(parts).to_bytes()
    assert sums.total(dict(reversed(list(enumerate(parts))))).to_bytes() == whole
    groups = [sums.total(parts[start : start + 4]) for start in range(0, 11, 4)]
    assert sums.total(groups).to_bytes() == whole
    pieces = np.array_split(np.arange(3000), [5, BLOCK + 1, 2 * BLOCK])
    assert PLAN.sums((X[i], Y[i]) for i in pieces).to_bytes() == PLAN.sums([(X, Y)]).to_bytes()


def test_plans_and_sums_go_through_bytes_and_pickles():
    part = PLAN.sums([(X[:100], Y[:100])])
    again = sums.Sums.from_bytes(part.to_bytes())
    assert again.to_bytes() == part.to_bytes()
    assert (again.count, again.skipped) == (100, 0)
    for other in (sums.Plan.from_bytes(PLAN.to_bytes()), pickle.loads(pickle.dumps(PLAN))):
        assert other.fingerprint == PLAN.fingerprint
        assert other.sums([(X[:100], Y[:100])]).to_bytes() == part.to_bytes()
    for damaged in (part.to_bytes()[:-1], PLAN.to_bytes(), b"nothing"):
        with pytest.raises(pogp.FormatError):
            sums.Sums.from_bytes(damaged)
    with pytest.raises(pogp.FormatError, match="not a plan"):
        sums.Plan.from_bytes(part.to_bytes())
    bad = dataclasses.replace(part, gram=part.gram[:-1])
    with pytest.raises(pogp.FormatError, match="gram"):
        sums.Sums.from_bytes(bad.to_bytes())


def test_sums_of_two_plans_do_not_mix():
    other = plan(2)
    part, theirs = PLAN.sums([(X[:9], Y[:9])]), other.sums([(X[:9], np.column_stack([Y, Y])[:9])])
    with pytest.raises(ValueError, match="two plans"):
        part + theirs
    with pytest.raises(ValueError, match="from this plan"):
        PLAN.model(theirs)
    with pytest.raises(ValueError, match="empty"):
        sums.total([])


@pytest.mark.parametrize(
    ("row", "column", "value", "message"),
    [(1500, 0, np.nan, "X .* got nan in row 1500"), (7, -1, np.inf, "y .* got inf in row 7")],
)
def test_a_bad_row_is_named_or_skipped(row, column, value, message):
    table = np.column_stack([X, Y])
    table[row, column] = value
    batches = [(part[:, :-1], part[:, -1]) for part in np.array_split(table, 7)]
    with pytest.raises(ValueError, match=f"partition 3: {message}"):
        PLAN.sums(batches, where="partition 3")
    part = PLAN.sums(batches, skip=True)
    assert (part.count, part.skipped) == (2999, 1)
    good = np.delete(table, row, axis=0)
    assert dataclasses.replace(part, skipped=0).to_bytes() == (
        PLAN.sums([(good[:, :-1], good[:, -1])]).to_bytes()
    )


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ((X, Y[:-1]), "X has 3000 rows and y 2999"),
        ((X[:, :1], Y), r"X must have shape \(n, 2\)"),
        ((X, np.column_stack([Y, Y])), r"y must have shape \(n\)"),
        ((X, np.full(3000, "word")), "y must be numbers"),
        ((X, Y, np.zeros(3000)), "noise must be positive .* in row 0"),
        ((X, Y, None, np.full(3000, -1.0)), "weights at least 0 .* in row 0"),
        ((X, Y, np.ones(2)), "noise must have 3000 values"),
        (X, "a batch must be"),
    ],
)
def test_invalid_batches_are_refused(batch, message):
    with pytest.raises(ValueError, match=message):
        PLAN.sums([batch])


def test_no_rows_give_the_prior():
    nothing = PLAN.sums([])
    assert nothing.count == 0
    mean, variance = PLAN.model(nothing).predict(QUERIES, latent=True)
    np.testing.assert_allclose(mean, MEAN)
    np.testing.assert_allclose(variance, KERNEL.variance)
    part = PLAN.sums([(X, Y)])
    assert (part + nothing).to_bytes() == part.to_bytes()


def test_a_plan_from_a_sample_models_the_table_and_goes_on_learning():
    rng = np.random.default_rng(3)
    inputs = rng.uniform(-1, 1, (6000, 2)) * [1.0, 100.0] + [0.0, 1e4]
    truth = 50 + 10 * np.sin(3 * inputs[:, 0]) * np.cos((inputs[:, 1] - 1e4) / 50)
    targets = truth + rng.normal(size=6000)
    made = sums.plan(inputs[:400], targets[:400], max_size=60, kernel="RBF")
    calibration = (inputs[1500:3500], targets[1500:3500])
    model = made.model(made.sums([(inputs[:5000], targets[:5000])]), calibration)
    test = slice(5000, None)
    mean, variance = model.predict(inputs[test])
    assert np.sqrt(np.mean((mean - truth[test]) ** 2)) < 0.2  # the noise is 1
    assert 0.92 < pogp.metrics.coverage(targets[test], mean, variance) < 0.98
    again = model.copy()
    trace = model.learn(inputs[test], targets[test])
    assert model.seen == 6000
    assert np.sqrt(np.mean((trace.mean - truth[test]) ** 2)) < 0.2
    again.learn(inputs[test], targets[test])
    assert_same_state(again, model.state())
    with pytest.raises(ValueError, match="no raw samples"):
        model.retune()


def test_the_search_for_a_plan_reports_its_progress(caplog):
    steps = []
    with caplog.at_level("INFO", logger="pogp.sums"):
        plan = sums.plan(
            X[:60], Y[:60], max_size=10, kernel="RBF", progress=lambda *step: steps.append(step)
        )
    assert steps[0][0] == 1
    assert len(steps) > 5
    assert [record.name for record in caplog.records].count("pogp.sums.points") == 1
    assert "mean log density" in caplog.text
    assert repr(plan.kernel) in caplog.text


def test_hyperparameters_of_few_rows_are_refined_on_more(monkeypatch):
    monkeypatch.setattr(points, "FEW", 30)  # far too few for ten inputs
    monkeypatch.setattr(points, "MANY", 150)
    rng = np.random.default_rng(2)
    inputs = rng.uniform(-2, 2, (200, 10))
    targets = np.sin(2 * inputs[:, 0]) + inputs[:, 1] ** 2 + 0.1 * rng.normal(size=200)
    found = sums.plan(inputs, targets, max_size=40, kernel="RBF", seed=0)
    assert 0.005 < found.noise < 0.02
    assert (found.kernel.lengthscale[2:] > 10 * found.kernel.lengthscale[:2].max()).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_size": 0}, "max_size"),
        ({"scale": "yes"}, "scale must be True or False"),
        ({"kernel": "Fourier"}, "kernel must be"),
        ({"y": Y[:10]}, "y must have shape"),
        ({"X": X[:1], "y": Y[:1]}, "at least 2 rows"),
    ],
)
def test_invalid_samples_are_refused(change, message):
    arguments = {"X": X[:60], "y": Y[:60], **change}
    with pytest.raises(ValueError, match=message):
        sums.plan(**arguments)


def test_outliers_do_not_affect_points_kernel_and_noise():
    rng = np.random.default_rng(5)
    clean = np.sin(2 * X[:400, 0]) + X[:400, 1] + 0.1 * rng.normal(size=400)
    dirty = clean + 15 * (rng.random(400) < 0.005)
    assert 1 <= np.count_nonzero(dirty - clean) <= 10
    found, without = (sums.plan(X[:400], y, max_size=40, kernel="RBF") for y in (dirty, clean))
    np.testing.assert_allclose(found.noise, without.noise, rtol=0.1)
    np.testing.assert_allclose(found.kernel.lengthscale, without.kernel.lengthscale, rtol=0.3)
    np.testing.assert_allclose(found.mean, without.mean, atol=0.01)
    assert abs(found.size - without.size) <= 5


def test_rows_far_from_the_prediction_of_the_sample_have_less_weight():
    first = PLAN.sums([(X[:500], Y[:500])])
    bounded = dataclasses.replace(PLAN, sample=(first.gram, first.vector))
    assert bounded.fingerprint != PLAN.fingerprint
    assert sums.Plan.from_bytes(bounded.to_bytes()).fingerprint == bounded.fingerprint
    whole, same = PLAN.sums([(X, Y)]), bounded.sums([(X, Y)])
    np.testing.assert_array_equal(same.gram, whole.gram)  # none of these rows is far
    dirty = Y + 50 * (np.random.default_rng(4).random(3000) < 0.01)
    found = bounded.sums([(X, dirty)])
    parts = [bounded.sums([(X[rows], dirty[rows])]) for rows in np.array_split(range(3000), 7)]
    np.testing.assert_allclose(sums.total(parts).gram, found.gram, rtol=1e-9, atol=1e-9)
    clean, without, within = (
        latent(p.model(p.sums([(X, y)])))[0]
        for p, y in ((PLAN, Y), (PLAN, dirty), (bounded, dirty))
    )
    assert np.std(within - clean) < 0.1 * np.std(without - clean)
    errors = bounded.left_out(found, X[:5], dirty[:5])[:, 0]
    mean = bounded.model(found).predict(X[:5])[0]
    np.testing.assert_allclose(errors, dirty[:5] - mean, rtol=0.1)


@pytest.mark.parametrize("seed", [0, 5])
def test_a_sample_does_not_depend_on_inputs_that_were_drawn_with_its_seed(seed):
    X = np.random.default_rng(seed).random((1000, 1))
    (first, _), _ = draw([(X, X[:, 0])], 500, dimension=1, seed=seed).divided(200)
    assert 0.4 < first.mean() < 0.6
