"""Raw cells as inputs: missing values, times and categories, against brute force."""

import json
import warnings
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pytest

import pogp
from pogp import encoding
from pogp.encoding import Encoder
from pogp.encoding import imputer as imputer_module
from pogp.encoding.columns import CODES, LIMIT, CategoryColumn, TimeColumn, as_times, column_for
from pogp.encoding.imputer import Imputer, unit_points
from pogp.encoding.model import RowByRow


def walk(n=200, p=3, seed=0):
    """Correlated inputs with a memory, and a target."""
    rng = np.random.default_rng(seed)
    X = np.cumsum(rng.normal(size=(n, p)), axis=0) @ rng.normal(size=(p, p)) + 5.0
    return X, np.sin(X[:, 0] / 5) + 0.1 * rng.normal(size=n)


# ---- missing values


def learned(X):
    """Return an imputer that has learned rows."""
    imputer = Imputer(X.shape[1])
    for row in X:
        imputer.learn(imputer.fill(row))
    return imputer


def test_a_gap_is_filled_by_the_conditional_of_a_gaussian():
    X, _ = walk(seed=1)  # no step of which is far off
    imputer = learned(X)
    both = np.column_stack([X, np.diff(X, axis=0, prepend=X[:1])])
    t = np.arange(1, len(X) + 1)
    weight = t * (t + 1) / np.sum(t * (t + 1))
    mean, n = weight @ both, 1 / np.sum(weight**2)
    plain = np.cov(both.T, aweights=weight, ddof=0)
    deviation = np.sqrt(np.diagonal(plain))
    s = 1 + 36 / n
    R = (n * plain / np.outer(deviation, deviation) + s * np.eye(6)) / (n + s)
    covariance = R * np.outer(deviation, deviation)
    # of the row and the row before, x − d
    change = np.block([[np.eye(3), np.zeros((3, 3))], [np.eye(3), -np.eye(3)]])
    mean, covariance = change @ mean, change @ covariance @ change.T
    row, given, gone = np.array([np.nan, X[-1, 1], np.nan]), [1, 3, 4, 5], [0, 2]
    known = np.array([X[-1, 1], *X[-1]]) - mean[given]
    weights = np.linalg.solve(covariance[np.ix_(given, given)], covariance[np.ix_(given, gone)])
    filled = imputer.fill(row)
    np.testing.assert_allclose(filled.row[gone], mean[gone] + known @ weights)
    expected = covariance[np.ix_(gone, gone)] - covariance[np.ix_(gone, given)] @ weights
    np.testing.assert_allclose(filled.covariance, expected, rtol=1e-6)
    points = filled.points()
    np.testing.assert_allclose(points.mean(axis=0), filled.row)
    np.testing.assert_allclose(np.cov(points[:, gone].T, ddof=0), expected, rtol=1e-6)
    alone, other = imputer.fill(row, resting=True), covariance[1, gone] / covariance[1, 1]
    np.testing.assert_allclose(alone.row[gone], mean[gone] + (row[1] - mean[1]) * other)


@pytest.mark.parametrize("count", [1, 2, 5, 9])
def test_points_have_the_moments_of_a_normal_and_no_place_twice(count):
    points = unit_points(count)
    np.testing.assert_allclose(points.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(points.T @ points / len(points), np.eye(count), atol=1e-12)
    for axis in np.abs(points).T:
        assert len(np.unique(axis.round(6))) >= 5  # an even function does not look constant


@pytest.mark.parametrize("cell", [timedelta(hours=1), np.timedelta64(1, "h")])
def test_of_a_duration_the_error_says_what_to_do(cell):
    with pytest.raises(TypeError, match=r"column 'd': .*total_seconds\(\)"):
        Encoder.of(["d"], [[cell]]).learn([[cell]])


def test_one_absurd_value_hardly_changes_what_is_filled():
    rng = np.random.default_rng(0)
    common = rng.normal(size=(600, 1))
    X = 20.0 + common + 0.5 * rng.normal(size=(600, 3))
    absurd = X.copy()
    absurd[300, 1], absurd[450, 0], absurd[599, 2] = 999.0, -999.0, 999.0
    row = np.array([np.nan, *X[7, 1:]])
    clean, told = (learned(table).fill(row) for table in (X, absurd))
    deviation = np.sqrt(clean.covariance[0, 0])
    assert abs(told.row[0] - clean.row[0]) < 0.1 * deviation
    np.testing.assert_allclose(np.sqrt(told.covariance[0, 0]), deviation, rtol=0.05)
    guided = learned(X).fill(np.array([np.nan, X[7, 1], 999.0]))  # the absurd one is no guide
    assert abs(guided.row[0] - 20.0) < 3.0


def test_a_change_of_level_is_followed_within_some_rows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(700, 2))
    X[600:, 0] += 30.0
    imputer, errors = learned(X[:600]), []
    for row in X[600:]:
        filled = imputer.fill(np.array([np.nan, row[1]]))
        errors.append(abs(filled.row[0] - row[0]) / np.sqrt(1.0 + filled.covariance[0, 0]))
        imputer.learn(imputer.fill(row))
    assert errors[0] > 10.0
    assert np.mean(np.array(errors[10:]) < 2.0) > 0.9


def test_a_column_of_zeros_and_a_few_other_values_keeps_them():
    rng = np.random.default_rng(2)
    few = np.where(rng.random(4000) < 0.03, rng.uniform(0, 9, 4000), 0.0)
    imputer = learned(np.column_stack([few, rng.normal(size=4000)]))
    np.testing.assert_allclose(imputer.covariance[0, 0], few.var(), rtol=0.2)


@pytest.mark.parametrize("memory", [1.0, 0.9])
def test_a_gap_in_a_column_with_a_memory_is_as_unsure_as_it_is_long(memory):
    """Outages of ten rows: 95 % of the values lie in their band, wherever in the outage."""
    rng = np.random.default_rng(3)
    noise, X = rng.normal(size=(3000, 2)), np.zeros((3000, 2))
    for i in range(1, 3000):
        X[i] = memory * X[i - 1] + noise[i]
    table = X.copy()
    table[np.arange(3000) % 60 >= 50, 0] = np.nan
    imputer, errors, deviations = Imputer(2), [], []
    for row, cells in zip(X, table, strict=True):
        filled = imputer.fill(cells)
        if len(filled.missing):
            deviations.append(np.sqrt(filled.covariance[0, 0]))
            errors.append((filled.row[0] - row[0]) / deviations[-1])
        imputer.learn(filled)
    far = np.abs(np.array(errors)[100:].reshape(-1, 10)) > 1.96
    widths = np.array(deviations)[100:].reshape(-1, 10).mean(axis=0)
    assert 0.92 < np.mean(~far) < 0.98
    assert np.mean(~far[:, 5:]) > 0.9
    assert (np.diff(widths) > 0).all()
    np.testing.assert_allclose(widths[0], 1.0, rtol=0.15)


def test_at_rest_a_row_does_not_follow_the_last_one():
    X = np.sin(np.arange(400) / 30)[:, None]
    model, encoder = pogp.OnlineGP(), Encoder.numbers("a")
    encoding.learn(model, encoder, list(X.T), X[:, 0])
    next_row = encoding.fill(model, encoder, [[None]])[0]
    model.settle()
    any_row = encoding.fill(model, encoder, [[None]])[0]
    assert next_row.covariance[0, 0] < 0.01
    assert any_row.covariance[0, 0] > 0.3


def test_bands_of_rows_with_gaps_hold_where_the_function_is_even():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(1500, 2))
    y = X[:, 0] ** 2 + X[:, 1] + 0.1 * rng.normal(size=1500)
    model, encoder = pogp.OnlineGP(max_size=40), Encoder.numbers("ab")
    encoding.learn(model, encoder, list(X[:1000].T), y[:1000])  # of gaps it knows nothing
    model.settle()
    mean, variance = encoding.predict(model, encoder, [[None] * 500, X[1000:, 1]])
    inside = np.abs(y[1000:] - mean) < 1.96 * np.sqrt(variance)
    assert 0.88 < inside.mean() < 0.99


def test_moments_of_older_files_are_of_the_row_before():
    X, _ = walk()
    imputer = learned(X)
    change = np.block([[np.eye(3), np.zeros((3, 3))], [np.eye(3), -np.eye(3)]])  # its own inverse
    older = {name: imputer.state()[name] for name in ("dimension", "count", "last", "known")}
    older["mean"] = (change @ imputer.mean).tolist()
    older["covariance"] = (change @ imputer.covariance @ change.T).tolist()
    row = np.array([np.nan, *X[-1, 1:]])
    one, two = imputer.fill(row), Imputer.restored(older).fill(row)
    np.testing.assert_allclose(two.row, one.row)
    np.testing.assert_allclose(two.covariance, one.covariance, rtol=1e-6)


def test_rows_without_gaps_are_learned_alike_by_both_implementations(monkeypatch):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(400, 4)) + np.linspace(0, 3, 400)[:, None]
    X[:, 3] = 7.0
    X[:5, 1] = X[100:103, 2] = X[250, 0] = np.nan
    X[150, 0] = X[200, 1] = X[200, 2] = 999.0
    X[300:, 0] += 1e4
    found = []
    for compiled in (imputer_module.COMPILED, False):
        monkeypatch.setattr(imputer_module, "COMPILED", compiled)
        found.append(learned(X).state())
    assert found[0] == found[1]


def test_rows_with_gaps_count_with_their_expected_products():
    """The correlation of two columns survives gaps in each of them, as EM promises."""
    rng = np.random.default_rng(3)
    a = rng.normal(size=1500)
    X = np.column_stack([a, a + 0.5 * rng.normal(size=1500)])
    X[rng.random(X.shape) < 0.2] = np.nan
    found = learned(X).covariance[:2, :2]
    np.testing.assert_allclose(found, [[1.0, 1.0], [1.0, 1.25]], atol=0.1)


def test_the_row_before_counts_only_where_it_fits():
    """A row to predict may be from anywhere: its own values say whether the last row is near."""
    rng = np.random.default_rng(0)
    common = np.cumsum(rng.normal(size=3000))
    X = common[:, None] + rng.normal(size=(3000, 3)).cumsum(axis=0) / 3
    imputer = learned(X)
    errors = []
    for row in X[rng.integers(0, 2000, 200)]:
        filled = imputer.fill(np.array([np.nan, *row[1:]]))
        errors.append((filled.row[0] - row[0]) / np.sqrt(filled.covariance[0, 0]))
    assert np.sqrt(np.mean(np.square(errors))) < 1.5  # 20 if the last row always counted
    near = imputer.fill(np.array([np.nan, *X[-1, 1:]]))
    assert abs(near.row[0] - X[-1, 0]) < 3.0
    assert near.covariance[0, 0] < 3.0


def test_before_anything_is_known_a_gap_is_zero_and_nothing_breaks():
    filled = Imputer(2).fill(np.array([np.nan, 3.0]))
    np.testing.assert_array_equal(filled.row, [0.0, 3.0])
    model, encoder = pogp.OnlineGP(), Encoder.numbers(["a", "b"])
    mean, variance = encoding.predict(model, encoder, [[None], [1.0]])
    assert np.isfinite(mean).all()
    assert (variance > 0).all()
    encoding.learn(model, encoder, [[None, None, 1.0], [None, 2.0, 3.0]], [1.0, 2.0, 3.0])
    assert model.seen == 3


def test_complete_rows_are_learned_as_they_are():
    X, y = walk()
    plain, behind, encoder = pogp.OnlineGP(), pogp.OnlineGP(), Encoder.numbers("abc")
    trace = plain.learn(X, y)
    inputs, other, *_ = encoding.learn(behind, encoder, list(X.T), y)
    np.testing.assert_array_equal(inputs, X)
    np.testing.assert_array_equal(trace.mean, other.mean)
    np.testing.assert_array_equal(plain.predict(X)[1], behind.predict(X)[1])


def holes(X, share=0.2, seed=1):
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


def test_the_trace_has_what_is_predicted_for_rows_with_gaps():
    X, y = walk(200)
    table = holes(X)
    model, encoder = pogp.OnlineGP(max_size=40), Encoder.numbers("abc")
    encoding.learn(model, encoder, list(table[:150].T), y[:150])
    for row, target in zip(table[150:], y[150:], strict=True):
        cells = [[cell] for cell in row]
        told = encoding.predict(model, encoder, cells)
        trace = encoding.learn(model, encoder, cells, [target]).trace
        np.testing.assert_allclose(trace.mean, told[0], rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(trace.variance, told[1], rtol=1e-9)


def test_gaps_do_not_bias_a_curved_function_at_the_imputed_value():
    """The targets at a gap of x in x² are 1 on average; at x = 0, the imputed value, it is 0."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1200, 2))
    y = X[:, 0] ** 2 + X[:, 1] + 0.1 * rng.normal(size=len(X))
    table = np.where((rng.random(len(X)) < 0.3)[:, None] & [True, False], np.nan, X)
    model, encoder = pogp.OnlineGP(max_size=60), Encoder.numbers("ab")
    encoding.learn(model, encoder, list(table.T), y)
    at_zero = np.column_stack([np.zeros(21), np.linspace(-1, 1, 21)])
    mean, _ = model.predict(at_zero, anywhere=True)
    assert abs(np.mean(mean - at_zero[:, 1])) < 0.04


def test_bands_of_lines_are_around_their_means_after_a_rest():
    X, y = walk(120)
    table = holes(X)
    model, encoder = pogp.OnlineGP(max_size=40), Encoder.numbers("abc")
    encoding.learn(model, encoder, list(table[:100].T), np.cumsum(y[:100]))
    model.settle()  # the last residual says nothing of the next row, until it comes
    rows = RowByRow(model, encoder.learn(list(table[100:].T)), 0.95)
    for x, _ in rows.samples(np.cumsum(y)[100:]):
        assert rows.reach(0.95) == pytest.approx(1.96, rel=1e-4)
        assert np.isfinite(rows.predict(x)).all()


def test_a_missing_input_adds_to_the_variance():
    X, y = walk(400)
    model, encoder = pogp.OnlineGP(), Encoder.numbers("abc")
    encoding.learn(model, encoder, list(holes(X).T), y)
    row = [[value] for value in X[-1]]
    _, known = encoding.predict(model, encoder, row)
    _, guessed = encoding.predict(model, encoder, [[None], *row[1:]])
    _, all_guessed = encoding.predict(model, encoder, [[None]] * 3)
    assert known[0] < guessed[0]
    assert known[0] < all_guessed[0]


def test_batches_and_saving_do_not_matter(tmp_path):
    X, y = walk(160)
    cells = holes(X)
    cells[60:63, 1] = 9e3, np.nan, -9e3  # some of them doubted
    whole, encoder = pogp.OnlineGP(), Encoder.numbers("abc")
    encoding.learn(whole, encoder, list(cells.T), y)
    parts, other = pogp.OnlineGP(), Encoder.numbers("abc")
    encoding.learn(parts, other, list(cells[:70].T), y[:70])
    parts.save(tmp_path / "m.pogp")
    parts = pogp.load(tmp_path / "m.pogp")
    other = Encoder.restored(json.loads(json.dumps(other.state())))
    encoding.learn(parts, other, list(cells[70:].T), y[70:])
    assert encoder.state() == other.state()
    one, two = (
        encoding.predict(model, each, list(cells[:20].T))
        for model, each in ((whole, encoder), (parts, other))
    )
    np.testing.assert_array_equal(one, two)


def test_what_goes_wrong_changes_nothing():
    encoder, model = Encoder.of(["a", "t"], [[1.0], ["x"]]), pogp.OnlineGP()
    encoding.learn(model, encoder, [[1.0, 2.0], ["x", "y"]], [1.0, 2.0])
    before = encoder.state()
    for cells, y in [
        ([[1.0, 2.0], ["z", "w"]], [np.nan, 1.0]),
        ([[1.0, np.inf], ["z", "w"]], [0.0, 1.0]),
        ([range(200), [f"id{i}" for i in range(200)]], range(200)),
    ]:
        with pytest.raises(ValueError, match=r"column|y must"):
            encoding.learn(model, encoder, cells, y)
        assert encoder.state() == before
        assert model.seen == 2


# ---- categories


def test_categories_are_apart_and_new_ones_may_appear():
    distances = np.linalg.norm(CODES[:, None] - CODES[None], axis=2) + 9 * np.eye(LIMIT)
    assert distances.min() >= 1
    assert distances[:8, :8].min() >= np.sqrt(2) - 1e-12
    column = CategoryColumn().admit(["a", None, "b", "NA"])
    np.testing.assert_array_equal(column.encode(["b", "a"]), CODES[[1, 0]])
    assert np.isnan(column.encode(["c", ""])).all()
    grown = column.admit(["c"])
    np.testing.assert_array_equal(grown.encode(["a", "c"]), CODES[[0, 2]])


def test_too_many_categories_are_refused_by_the_name_of_the_column():
    encoder = Encoder.of(["id"], [["a"]])
    with pytest.raises(
        ValueError, match=r"column 'id': it has more than 100 different texts, 'r100' .* free text"
    ):
        encoder.learn([[f"r{i}" for i in range(500)]])
    with pytest.raises(ValueError, match=r"'100' .* all of them numbers; .* pandas\.to_numeric"):
        Encoder.of(["id"], [["0"]]).learn([[str(i) for i in range(500)]])


def test_texts_of_numbers_are_categories_with_a_warning():
    encoder = Encoder.of(["size"], [["0.5"]])
    cells = [f"{i / 2}" for i in range(30)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder.learn([cells[:10]])  # a few doses, perhaps
        Encoder.of(["code"], [["1"]]).learn([[str(i) for i in range(90)]])
    with pytest.warns(UserWarning, match=r"column 'size': .* '5\.0', are learned as categories"):
        encoder.learn([cells[10:11]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder.learn([cells[11:]])


# ---- times


def test_times_are_read_in_all_their_forms():
    moment = datetime(2024, 2, 29, 18, 30)
    column = TimeColumn(0.0)
    expected = column.encode([moment])
    unix = (moment - datetime(1970, 1, 1)).total_seconds()
    for cell in (
        "2024-02-29T18:30",
        "2024/02/29 18:30:00",
        "2024-02-29T18:30Z",
        "2024-02-29 23:30+05:00",
        moment.replace(tzinfo=UTC),
        moment.replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=5))),
        np.datetime64(moment),
        unix,
        1000 * unix,
        str(unix),
    ):
        np.testing.assert_allclose(column.encode([cell]), expected)
    array = np.array([moment, None], dtype="datetime64[ns]")
    np.testing.assert_allclose(column.encode(array)[0], expected[0])
    assert np.isnan(column.encode(array)[1]).all()
    np.testing.assert_array_equal(
        column.encode([date(2024, 2, 29)]), column.encode([datetime(2024, 2, 29)])
    )


def test_times_return_to_their_place_in_the_period():
    start = datetime(2024, 1, 1, 6)  # a Monday
    column = TimeColumn().admit([start])
    rows = column.encode([start + timedelta(days=days) for days in (0, 1, 7, 365.2425)])
    np.testing.assert_allclose(rows[:, 0], [0, 1, 7, 365.2425])
    np.testing.assert_allclose(rows[1, 1:3], rows[0, 1:3], atol=1e-9)
    np.testing.assert_allclose(rows[2, 3:5], rows[0, 3:5], atol=1e-9)
    np.testing.assert_allclose(rows[3, 5:7], rows[0, 5:7], atol=1e-9)
    np.testing.assert_allclose(rows[0, 1:3], [1.0, 0.0], atol=1e-9)  # a quarter of the day
    np.testing.assert_allclose(
        rows[0, 3:5], [np.sin(np.pi / 14), np.cos(np.pi / 14)]
    )  # of the week


# ---- which kind a column is


@pytest.mark.parametrize(
    ("cells", "in_text", "kind", "inputs"),
    [
        ([7.5, 2], False, "number", [7.5, 2]),
        (["7.5", "2", ""], True, "number", [7.5, 2, np.nan]),
        (["hi", "lo", None, "mid", "hi", "four"], False, "category", [1, -1, np.nan, 2, 1, -2]),
        (["2024-01-31", "2024-02-02"], True, "time", [0, 2]),
        ([datetime(2024, 1, 31), datetime(2024, 1, 31, 12)], False, "time", [0, 0.5]),
    ],
)
def test_the_first_value_decides_what_a_column_holds_in_one_input(cells, in_text, kind, inputs):
    encoder = Encoder.of(["a", "b"], [[None, ""], [1.0, 2.0]], numbers_in_text=in_text)
    assert encoder.kinds == ["undecided", "number"]
    encoder.learn([["", None], [1.0, 2.0]])
    assert np.isnan(encoder.encode([cells, np.ones(len(cells))])[:, 0]).all()  # not learned
    encoder = Encoder.restored(json.loads(json.dumps(encoder.state())))
    encoder.learn([cells, np.ones(len(cells))])
    encoder = Encoder.restored(json.loads(json.dumps(encoder.state())))
    assert encoder.kinds == [kind, "number"]
    assert encoder.dimension == len(encoder.labels) == len(encoder.origins) == 2
    np.testing.assert_array_equal(encoder.encode([cells, np.ones(len(cells))])[:, 0], inputs)


def test_a_state_with_another_width_is_refused():
    state = Encoder.of(["a"], [["x"]]).state()
    state["columns"][0]["width"] = 3
    with pytest.raises(ValueError, match="a column of category cannot have 3 inputs"):
        Encoder.restored(state)


def test_columns_are_decided_without_learning():
    encoder = Encoder.of(["a", "b"], [[None], ["x"]])
    encoder.decide([[None, "hi"], ["x", "y"]])
    assert encoder.kinds == ["category", "category"]
    assert [list(column.values) for column in encoder.columns] == [["hi"], []]
    assert encoder.imputer.count == 0


def test_a_text_among_numbers_is_a_missing_value_and_a_warning_tells():
    encoder = Encoder.numbers(["a"])
    with pytest.warns(UserWarning, match="column 'a': 'offline' among its numbers counts as a mis"):
        rows = encoder.encode([["7.5", "offline", "NA", 2, "1e999"]])
    np.testing.assert_array_equal(rows[:, 0], [7.5, np.nan, np.nan, 2, np.nan])
    for cell in (np.inf, 1e200, 10**400):  # numbers that no model takes
        with pytest.raises(ValueError, match="column 'a': it must have finite numbers"):
            encoder.encode([[cell]])


@pytest.mark.parametrize(
    ("cells", "in_text", "kind"),
    [
        ([1, None, 2.5], False, "number"),
        ([None, ""], False, "undecided"),
        (np.full(3, np.nan), False, "undecided"),
        (np.array([np.nan, 1.0]), False, "number"),
        (["1", "", "x", "2"], True, "number"),
        (["1", "2"], False, "category"),
        (["red", None], True, "category"),
        ([True, False], False, "number"),
        ([datetime(2024, 1, 1), None], False, "time"),
        (["2024-01-01", "2024-01-02 10:00"], True, "time"),
        (["2024-01-01", "soon"], True, "category"),
    ],
)
def test_the_kind_of_a_column_is_seen_from_its_cells(cells, in_text, kind):
    assert column_for(cells, in_text).kind == kind


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("20240201", "2024-02-01"),
        ("202402011330", "2024-02-01 13:30"),
        ("20240201133015", "2024-02-01 13:30:15"),
        ("18500101", "1850-01-01"),
        ("1611110712345", "2021-01-20 02:45:12.345"),  # milliseconds
        ("1706745600", "2024-02-01"),
        ("202413011330", "1976-05-31 17:50:11.330"),  # has no 13th month
    ],
)
def test_numbers_that_read_as_dates_are_these_dates(written, meant):
    cells = [written] if written[:4] == "1850" else [written, int(written), float(written)]
    expected = np.datetime64(meant, "us").astype(float) / 1e6
    assert as_times(cells) == pytest.approx([expected] * len(cells))
