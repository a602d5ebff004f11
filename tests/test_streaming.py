"""`pogp.stream`: the predictions of `learn`, for rows of every kind."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import pogp
from pogp import encoding
from pogp.encoding import Encoder

from .conftest import smooth_2d

X, Y = smooth_2d(150, seed=0)


def model():
    return pogp.AbsorbingPOG(pogp.RBF(), 0.01, max_size=20)


def dicts():
    return [{"a": x[0], "y": y, "b": x[1]} for x, y in zip(X, Y, strict=True)]


def test_steps_are_what_learning_the_batch_reports():
    batch, single = pogp.OnlineGP(max_size=30), pogp.OnlineGP(max_size=30)
    trace = batch.learn(X, Y)
    steps = list(pogp.stream(single, zip(X, Y, strict=True)))
    assert [step.mean for step in steps[2:]] == pytest.approx(trace.mean[2:], rel=1e-12)
    assert [step.deviation**2 for step in steps[2:]] == pytest.approx(trace.variance[2:], rel=1e-12)
    assert [step.row for step in steps] == list(range(1, 151))
    numbers = ("mean", "deviation", "lower", "upper", "surprise")
    first = [getattr(step, name) for step in steps[:2] for name in numbers]
    assert np.isnan(first).all()  # the scale is not known yet
    assert not steps[0].alarm
    expected = np.abs(Y - trace.mean) / np.sqrt(trace.variance)
    assert [step.surprise for step in steps[2:]] == pytest.approx(expected[2:], rel=1e-9)
    assert np.concatenate([step.trace.records for step in steps]) == pytest.approx(
        trace.records, rel=1e-9, abs=1e-12
    )
    assert single.to_bytes() == batch.to_bytes()


@pytest.mark.parametrize("make", [pogp.OnlineGP, pogp.SelfTuning])
def test_the_first_rows_of_several_outputs_have_no_prediction_either(make):
    first, second, third = pogp.stream(make(), zip(X[:3], np.column_stack([Y, Y])[:3], strict=True))
    assert np.isnan(first.mean).all()
    assert np.isnan(second.deviation).all()
    assert third.mean.shape == (2,)
    assert np.isfinite(third.lower).all()


def test_a_model_with_a_prior_predicts_the_first_row():
    first, *_ = pogp.stream(model(), zip(X, Y, strict=True))
    assert (first.mean, first.deviation**2) == pytest.approx((0.0, 1.01))


KINDS = {
    "pairs": lambda: zip(X, Y, strict=True),
    "pairs of lists": lambda: [(list(x), y) for x, y in zip(X, Y, strict=True)],
    "tuples": lambda: [(*x, y) for x, y in zip(X, Y, strict=True)],
    "array": lambda: np.column_stack([X, Y]),
    "dicts": dicts,
    "pairs of dicts": lambda: [({"a": x[0], "b": x[1]}, y) for x, y in zip(X, Y, strict=True)],
    "arrow batches": lambda: pa.Table.from_pylist(dicts()).to_batches(max_chunksize=40),
    "arrow table": lambda: [pa.Table.from_pylist(dicts())],
}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_every_kind_teach_the_same(kind):
    expected, found = model(), model()
    expected.learn(X, Y)
    steps = list(pogp.stream(found, KINDS[kind](), target="y"))
    assert len(steps) == 150
    assert found.predict(X)[0] == pytest.approx(expected.predict(X)[0], rel=1e-9)


def table(n=300):
    """Hours, a temperature with gaps, a mode, and a demand that follows from them."""
    rng, t = np.random.default_rng(0), np.arange(n)
    temperature, work = 10 + rng.normal(size=n), t // 24 % 7 < 5
    demand = 5 * np.sin(t * 2 * np.pi / 24) + 3 * work + temperature + 0.1 * rng.normal(size=n)
    start, gaps = np.datetime64("2024-01-01T00"), rng.random(n) < 0.1
    gaps[0] = False
    return [
        {
            "time": (start + i).item(),
            "temperature": None if gaps[i] else float(temperature[i]),
            "mode": "work" if work[i] else "weekend",
            "demand": float(demand[i]),
        }
        for i in t.tolist()
    ], gaps


def test_missing_values_times_and_categories_are_encoded_as_in_a_table():
    rows, gaps = table()
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    y = columns.pop("demand")
    batch, encoder = pogp.OnlineGP(max_size=30), Encoder.of(list(columns), list(columns.values()))
    trace = encoding.learn(batch, encoder, list(columns.values()), y).trace
    single = pogp.OnlineGP(max_size=30)
    steps = list(pogp.stream(single, rows, target="demand"))
    assert single.to_bytes() == batch.to_bytes()
    known = [not gap and step.row not in (1, 2, 121) for gap, step in zip(gaps, steps, strict=True)]
    assert [s.mean for s, k in zip(steps, known, strict=True) if k] == pytest.approx(
        trace.mean[known], rel=1e-9
    )  # in row 121 there is a new category, which the batch knew beforehand
    wide = np.array([step.upper - step.lower for step in steps])
    assert np.median(wide[150:][gaps[150:]]) > 2 * np.median(wide[150:][~gaps[150:]])
    arrow = [pa.Table.from_pylist(rows)]
    again = [step.mean for step in pogp.stream(pogp.OnlineGP(max_size=30), arrow, target="demand")]
    np.testing.assert_array_equal(again, [step.mean for step in steps])


def test_a_stream_goes_on_with_its_encoder_and_reads_numbers_in_text():
    rows, _ = table(60)
    texts = [{name: str(cell) for name, cell in row.items()} for row in rows]  # "None" is missing
    names = ["time", "temperature", "mode"]
    encoder = Encoder.of(names, [[row[name]] for row in rows[:1] for name in names])
    halves, whole = pogp.OnlineGP(max_size=10), pogp.OnlineGP(max_size=10)
    for part in (texts[:30], texts[30:]):
        list(pogp.stream(halves, part, target="demand", encoder=encoder))
    list(pogp.stream(whole, rows, target="demand"))
    assert halves.to_bytes() == whole.to_bytes()


def test_the_first_value_decides_what_a_column_holds():
    rng = np.random.default_rng(0)
    rooms = rng.choice(["hall", "attic", "cellar"], 200)
    warmth = {"hall": 20.0, "attic": 26.0, "cellar": 12.0}
    rows = [
        {"room": room if i > 4 else "", "x": x, "y": warmth[room] + 0.1 * rng.normal()}
        for i, (room, x) in enumerate(zip(rooms, rng.uniform(size=200), strict=True))
    ]
    steps = list(pogp.stream(pogp.OnlineGP(), rows, target="y"))
    assert np.mean([abs(step.target - step.mean) for step in steps[100:]]) < 0.3


def test_a_text_among_numbers_and_an_absent_key_are_missing_values():
    def learned(cell):
        rows = dicts()
        rows[70]["a"] = cell
        if cell == "absent":
            del rows[70]["a"]
        return [step.mean for step in pogp.stream(pogp.OnlineGP(max_size=10), rows, target="y")]

    expected = learned(None)
    np.testing.assert_array_equal(learned("absent"), expected)
    with pytest.warns(UserWarning, match="column 'a': 'offline' among its numbers"):
        np.testing.assert_array_equal(learned("offline"), expected)
    np.testing.assert_array_equal(learned(str(X[70, 0])), learned(X[70, 0]))


def test_a_step_comes_before_its_row_is_learned_and_may_forbid_it():
    learner = model()
    for step in pogp.stream(learner, zip(X, Y, strict=True)):
        assert learner.seen == min(step.row - 1, 100)
        step.learn = step.row <= 100
    assert learner.seen == 100


def test_a_row_without_a_target_is_predicted_and_not_learned():
    learner = model()
    rows = [*dicts()[:20], {"a": 0.1, "b": 0.2, "y": None}, {"a": 0.1, "b": 0.2}]
    *_, last, after = pogp.stream(learner, rows, target="y")
    assert np.isnan(last.surprise)
    assert not last.alarm
    assert after.mean == learner.predict([0.1, 0.2])[0]
    assert learner.seen == 20


def test_a_target_in_text_may_be_a_number_or_missing():
    rows = [{"x": "1", "y": "2.5"}, {"x": "2", "y": ""}, {"x": "3", "y": "NA"}, {"x": 4, "y": 1}]
    one = model()
    targets = [step.target for step in pogp.stream(one, rows, target="y")]
    np.testing.assert_array_equal(targets, [2.5, np.nan, np.nan, 1.0])
    assert one.seen == 2


@pytest.mark.parametrize("model", ["online", pogp.OnlineGP])
def test_files_without_a_model_are_refused_before_a_row_is_read(model):
    with pytest.raises(TypeError, match=r"such as pogp.OnlineGP\(\), got"):
        pogp.stream(model, iter([(1.0, 2.0)]))


def test_several_outputs_are_judged_by_the_worst():
    Y2 = np.column_stack([Y, -Y])
    Y2[120, 1] += 10
    steps = list(pogp.stream(model(), zip(X, Y2, strict=True), alarm=0.02))
    assert steps[120].alarm
    assert steps[120].mean.shape == (2,)
    z = np.abs(Y2[120] - steps[120].mean) / steps[120].deviation
    assert steps[120].surprise == pytest.approx(z.max())


def test_an_alarm_goes_on_over_streams():
    judge, learner = pogp.Alarm(0.05), model()
    rows = list(zip(X, Y, strict=True))
    first = list(pogp.stream(learner, rows[:70], alarm=judge))
    second = list(pogp.stream(learner, rows[70:], alarm=judge))
    whole = list(pogp.stream(model(), rows, alarm=0.05))
    assert [s.alarm for s in first + second] == [s.alarm for s in whole]


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([{"a": 1.0, "y": 1.0}], {}, "target must be one of the names a, y, got None"),
        ([{"a": 1.0, "y": 1.0}], {"target": "z"}, "target must be one of the names a, y, got 'z'"),
        ([{"a": 1.0, "y": 1.0}, {"a": 2.0, "y": "x"}], {"target": "y"}, "row 2: 'y' must be a num"),
        ([{"a": 1.0, "y": 1.0}, {"b": 1.0, "y": 1.0}], {"target": "y"}, "a row has no a"),
        (
            [{"a": "north", "y": 1.0}],
            {"target": "y", "times": ["a"]},
            "column 'a': it must have times such as 2024-01-31 13:00, got 'north'",
        ),
        ([(1.0, 2.0, 3.0), (1.0, 3.0)], {}, "a row must have 2 inputs, got 1"),
        ([(1.0,)], {}, "a row must have inputs and a target"),
        (pd.DataFrame({"a": [1.0], "y": [1.0]}), {"target": "y"}, "got a DataFrame: give its rows"),
        ([(1.0, 1.0)], {"level": 1.0}, "level must be"),
        ([(1.0, 1.0)], {"alarm": 0.0}, "rate must be"),
    ],
)
def test_bad_rows_and_options_raise(rows, options, message):
    with pytest.raises(ValueError, match=message):
        list(pogp.stream(model(), rows, **options))


def test_a_stuck_sensor_is_an_alarm():
    rng = np.random.default_rng(0)
    x = np.sin(np.arange(500) / 9)
    y = 10 + 5 * x + 0.1 * rng.normal(size=500)
    y[400:450] = y[399]
    steps = pogp.stream(pogp.OnlineGP(max_size=30), zip(x[:, None], y, strict=True), alarm=0.001)
    alarms = [step.alarm for step in steps]
    assert all(alarms[405:450])
    assert not any(alarms[50:400])
    assert not any(alarms[455:])


@pytest.mark.parametrize("target", [np.inf, -np.inf])
def test_an_infinite_target_is_named_with_its_row(target):
    rows = [{"a": float(i), "y": float(i)} for i in range(5)] + [{"a": 5.0, "y": target}]
    model = pogp.OnlineGP()
    with pytest.raises(ValueError, match=r"row 6: the target must be a finite number, got -?inf"):
        list(pogp.stream(model, rows, target="y"))
    assert model.seen == 5
