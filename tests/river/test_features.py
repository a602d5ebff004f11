"""Features of River's samples by name: those that come and go, and frames."""

import random
from datetime import datetime, timedelta
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pogp
import pogp.sklearn
from pogp import encoding
from pogp.encoding import Encoder
from pogp.river import POGRegressor
from pogp.river.features import in_order

from ..conftest import assert_same_state
from .test_regressor import (
    DICTS,
    KERNEL,
    NAMES,
    NOISE,
    WARMUP,
    X,
    Y,
    assert_predicts,
    beneath,
    learn,
    make,
    untuned,
    with_holes,
)

# ---- features


def test_the_order_of_features_never_matters():
    expected = learn(make(), DICTS)
    assert expected.inputs == NAMES
    rng = random.Random(0)
    shuffled = [dict(rng.sample(list(x.items()), len(x))) for x in DICTS]
    assert_same_state(learn(make(), shuffled).model, expected.model)
    frame = pd.DataFrame(X, columns=NAMES)[["x10", "height", "x2"]]
    many = make()
    many.learn_many(frame, pd.Series(Y))
    assert_same_state(many.model, expected.model)
    assert_predicts(expected, many.predict_many(frame[["x2", "x10", "height"]]), shuffled)


def test_names_are_sorted_whatever_they_are():
    names = ["x10", "x2", 10, 2, "b", ("a", 1), "2", "x02", -1]
    expected = in_order(names)
    assert expected.index(2) < expected.index(10)
    assert expected.index("x2") < expected.index("x10")
    assert expected[expected.index(2) + 1] == "2"
    for seed in range(5):
        assert in_order(random.Random(seed).sample(names, len(names))) == expected
    numbered = [dict(enumerate(x)) for x in X]
    model = learn(make(), numbered)
    assert model.inputs == (0, 1, 2)
    many = make()
    many.learn_many(pd.DataFrame(X)[[2, 0, 1]], pd.Series(Y))
    assert_same_state(model.model, learn(make(), DICTS).model)
    assert_same_state(many.model, model.model)


def encoded(array, **options):
    """The model beneath, behind an encoder that looks at the first rows before it begins."""
    model, encoder = beneath(**options), Encoder.numbers(NAMES)
    encoder.prime(list(array[:WARMUP].T))
    encoding.learn(model, encoder, list(array.T), Y)
    return model, encoder


def test_a_feature_may_appear_while_the_model_warms_up():
    late = [x if t >= 20 else {"x2": x["x2"]} for t, x in enumerate(DICTS)]
    model = learn(make(), late[:10])
    assert model.inputs == ("x2",)
    assert model.predict_one(DICTS[30]) == pytest.approx(Y[:10].mean())  # the others are unknown
    learn(model, late[10:], Y[10:])
    assert model.inputs == NAMES
    array = X.copy()
    array[:20, [0, 2]] = np.nan
    expected, _ = encoded(array)
    assert_same_state(model.model, expected)


def test_a_missing_feature_is_filled_and_adds_to_the_variance():
    ragged, array = with_holes()
    expected, encoder = encoded(array)
    model = learn(make(), ragged)
    assert_same_state(model.model, expected)
    query = {"x2": 5.5}
    mean, variance = encoding.predict(expected, encoder, [[None], [5.5], [None]])
    found = model.predict_one(query, with_dist=True)
    assert (found.mu, found.sigma**2) == pytest.approx((mean[0], variance[0]))
    for missing in (None, np.nan):
        assert model.predict_one({**query, "height": missing}) == model.predict_one(query)
    known = model.predict_one({name: float(X[:, i].mean()) for i, name in enumerate(NAMES)}, True)
    assert known.sigma < model.predict_one({}, with_dist=True).sigma


@pytest.mark.parametrize("missing", [None, np.nan])
def test_a_feature_may_be_missing_in_the_first_sample(missing):
    rng = np.random.default_rng(0)
    a, b = rng.uniform(size=(2, 200))
    rows = [{"a": a[i] if i else missing, "b": b[i]} for i in range(200)]
    model = learn(POGRegressor(), rows, 10 * a + 0.1 * rng.normal(size=200))
    assert model.inputs == ("a", "b")
    for value in (0.1, 0.9):
        assert model.predict_one({"a": value, "b": 0.5}) == pytest.approx(10 * value, abs=0.3)


@pytest.mark.parametrize("first", [None, np.nan, ""])
def test_the_first_value_says_what_a_feature_is(first):
    rng = np.random.default_rng(0)
    rooms = rng.choice(["hall", "attic", "cellar"], 200)
    rows = [{"room": room if i > 3 else first, "x": float(i)} for i, room in enumerate(rooms)]
    model = learn(POGRegressor(), rows, [len(room) for room in rooms])
    assert model.encoder.kinds == ["category", "number"]
    for room in ("hall", "attic", "cellar"):
        assert model.predict_one({"room": room, "x": 200.0}) == pytest.approx(len(room), abs=0.3)


@pytest.mark.parametrize("build", [make, POGRegressor])
@pytest.mark.parametrize("place", [10, 50])  # while the first model warms up, and later
def test_a_text_among_numbers_is_a_missing_value(build, place):
    def learned(cell):
        rows = [dict(x) for x in DICTS]
        rows[place]["x2"] = cell
        return learn(build(), rows)

    expected = learned(None)
    with pytest.warns(UserWarning, match="column 'x2': 'offline' among its numbers"):
        model = learned("offline")
    assert_same_state(model.model, expected.model)
    query = {**DICTS[0], "x2": "offline"}
    with pytest.warns(UserWarning, match="column 'x2': 'offline' among its numbers"):
        assert model.predict_one(query) == expected.predict_one({**query, "x2": None})
    assert_same_state(learned(str(DICTS[place]["x2"])).model, learn(build(), DICTS).model)
    frame = pd.DataFrame(DICTS).astype({"x2": object})
    frame.loc[place, "x2"] = "offline"
    many = build()
    with pytest.warns(UserWarning, match="column 'x2': 'offline' among its numbers"):
        many.learn_many(frame, pd.Series(Y))
    assert many.predict_one(DICTS[0]) == pytest.approx(model.predict_one(DICTS[0]), rel=1e-9)


def test_times_and_categories_are_features():
    start = datetime(2024, 1, 1)
    rows = [
        {"when": start + timedelta(hours=i), "room": "ab"[i % 2] if i < 50 else "c", "x": i % 5}
        for i in range(60)
    ]
    model = learn(POGRegressor(), rows)
    assert model.encoder.kinds == ["category", "time", "number"]
    assert list(model.encoder.columns[0].values) == ["a", "b", "c"]
    many = POGRegressor()
    many.learn_many(pd.DataFrame(rows), pd.Series(Y))
    assert many.predict_one(rows[-1]) == pytest.approx(model.predict_one(rows[-1]), rel=1e-9)
    assert np.isfinite(model.predict_one({"room": "unheard of"}))


def test_one_instant_is_one_input_in_any_time_zone():
    here = pd.date_range("2024-01-01", periods=60, freq="h", tz="UTC")
    there = pd.DataFrame({"when": here.tz_convert("Asia/Tokyo")})
    many = POGRegressor()
    many.learn_many(there, pd.Series(Y[:60]))
    one = learn(POGRegressor(), there.to_dict("records"))
    assert one.encoder.columns[0].origin == many.encoder.columns[0].origin == here[0].timestamp()
    row = {"when": here[-1]}
    assert many.predict_one(row) == pytest.approx(one.predict_one(row), rel=1e-9)


@pytest.mark.parametrize("ordered", [False, True])
def test_a_category_of_numbers_in_a_frame_is_a_category(ordered):
    lines = pd.Categorical([None if i == 2 else i % 3 for i in range(60)], ordered=ordered)
    model = POGRegressor()
    model.learn_many(pd.DataFrame({"line": lines}), pd.Series(Y))
    assert model.encoder.kinds == ["category"]
    assert list(model.encoder.columns[0].values) == ["0", "1", "2"]


def test_the_warning_says_how_to_name_all_inputs():
    model = POGRegressor()
    model.learn_one({"a": 1.0}, 1.0)
    told = r"'b' was not in the first sample and is ignored; POGRegressor\(features=\[...\]\) names"
    with pytest.warns(UserWarning, match=told):
        model.learn_one({"a": 2.0, "b": 1.0}, 2.0)


def test_a_feature_that_appears_later_is_ignored():
    expected = learn(make(), DICTS)
    model = learn(make(), DICTS[:WARMUP])
    later = [{**x, "new": 1e6, "note": "hot"} for x in DICTS[WARMUP:]]
    with pytest.warns(UserWarning, match="'new', 'note' were not in the first samples and") as told:
        learn(model, later, Y[WARMUP:])
    assert len(told) == 1
    assert model.inputs == NAMES
    assert_same_state(model.model, expected.model)
    assert model.predict_one({**DICTS[0], "new": 3.0}) == expected.predict_one(DICTS[0])
    frame = pd.DataFrame(DICTS).assign(new=1.0, note="hot")
    assert (
        model.predict_many(frame).tolist()
        == expected.predict_many(frame[["x2", *NAMES[::2]]]).tolist()
    )


def test_features_can_be_chosen_and_ordered():
    kernel = pogp.RBF([1.0, 4.0])
    chosen = {"features": ["x10", "height"], "kernel": kernel, "noise": NOISE}
    model = learn(make(**chosen), [{**x, "note": "hot"} for x in DICTS])
    assert model.inputs == ("x10", "height")
    expected = beneath(kernel=kernel, noise=NOISE)
    expected.learn(X[:, [2, 0]], Y)
    assert_same_state(model.model, expected)
    absent = make(**chosen)
    assert absent.predict_one({"x2": 1.0}) == 0.0
    absent.learn_one({"height": 1.0}, 2.0)  # the other has no mean yet: it is at 0
    np.testing.assert_array_equal(absent.model.dictionary, [[0.0, 1.0]])


@pytest.mark.filterwarnings("ignore:.* not in the first samples? and")
def test_with_a_kernel_to_use_as_it_is_the_first_sample_says_what_the_inputs_are():
    first = {name: DICTS[0][name] for name in ("x10", "x2")}
    model = learn(untuned(), [first, *DICTS[1:]])
    assert model.inputs == ("x2", "x10")
    expected = beneath(kernel=KERNEL, noise=NOISE)
    expected.learn(X[:, 1:], Y)
    assert_same_state(model.model, expected)
    many = untuned()
    many.learn_many(pd.DataFrame([first]), pd.Series(Y[:1]))
    many.learn_many(pd.DataFrame(DICTS[1:]), pd.Series(Y[1:]))
    assert_same_state(many.model, expected)
    gap = untuned()  # a column with a gap in the first row is a feature
    gap.learn_many(pd.DataFrame([first, *DICTS[1:]]), pd.Series(Y))
    assert gap.inputs == NAMES


def test_samples_without_features_are_samples_too():
    model = learn(make(), [{}] * 5)
    assert model.predict_one({}) == pytest.approx(Y[:5].mean())
    learn(model, DICTS[5:], Y[5:])
    assert (model.inputs, model.model.seen) == (NAMES, 60)
    never = learn(make(), [{}] * 60)
    assert never.inputs == ()
    assert never.predict_one({}) == pytest.approx(Y.mean(), abs=0.2)


# ---- frames


@pytest.mark.parametrize("kind", ["pandas", "nullable", "objects", "polars", "arrow"])
def test_missing_cells_of_a_frame_are_missing_values(kind):
    ragged, array = with_holes()
    ragged[7]["height"] = ragged[40]["height"] = 2.0
    array[[7, 40], 0] = 2.0
    expected = learn(make(), ragged)
    frame = pd.DataFrame(array, columns=NAMES)
    with_null = {name: [x.get(name) for x in ragged] for name in NAMES}
    frame = {
        "pandas": lambda: frame,
        "nullable": lambda: frame.astype("Float64"),
        "objects": lambda: pd.DataFrame(with_null, dtype=object),
        "polars": lambda: pl.DataFrame(with_null),
        "arrow": lambda: pa.table(with_null),
    }[kind]()
    target = {"polars": pl.Series, "arrow": pa.chunked_array}.get(kind, pd.Series)
    cuts = (0, 10, 40, 60)
    model = make()
    for start, end in pairwise(cuts):
        rows = frame.slice(start, end - start) if kind in ("polars", "arrow") else frame[start:end]
        model.learn_many(rows, target(Y[start:end] if kind != "arrow" else [Y[start:end]]))
    assert_same_state(model.model, expected.model)
    assert_predicts(expected, np.asarray(model.predict_many(frame)), ragged)


def test_predictions_keep_the_index_of_the_frame_and_the_name_of_the_target():
    frame = pd.DataFrame(X, columns=NAMES, index=pd.date_range("2024-01-01", periods=60))
    model = make()
    before = model.predict_many(frame)
    assert (before.name, before.dtype, len(before)) == (None, np.float64, 60)
    model.learn_many(frame, pd.Series(Y, name="heat"))  # the index of y may be another
    predicted = model.predict_many(frame)
    assert predicted.name == "heat"
    assert predicted.index.equals(frame.index)
    assert model.predict_many(frame[:0]).empty
    in_polars = model.predict_many(pl.DataFrame(DICTS))
    assert isinstance(in_polars, pl.Series)
    assert in_polars.name == "heat"
    assert in_polars.to_list() == predicted.tolist()


def test_an_empty_frame_teaches_nothing():
    model = make()
    model.learn_many(pd.DataFrame(X[:0], columns=NAMES), pd.Series(Y[:0]))
    assert (model.inputs, model.model.seen) == ((), 0)
