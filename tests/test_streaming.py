"""`pogp.stream`: the predictions of `learn`, for rows of every kind."""

import numpy as np
import pyarrow as pa
import pytest

import pogp

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
    assert [step.mean for step in steps] == pytest.approx(trace.mean, rel=1e-12)
    assert [step.deviation**2 for step in steps] == pytest.approx(trace.variance, rel=1e-12)
    assert [step.row for step in steps] == list(range(1, 151))
    assert np.isnan(steps[0].surprise)
    assert not steps[0].alarm
    expected = np.abs(Y - trace.mean) / np.sqrt(trace.variance)
    assert [step.surprise for step in steps[1:]] == pytest.approx(expected[1:], rel=1e-9)
    assert np.concatenate([step.trace.records for step in steps]) == pytest.approx(
        trace.records, rel=1e-9, abs=1e-12
    )
    assert single.to_bytes() == batch.to_bytes()


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
        ([{"a": 1.0, "y": 1.0}], {}, "target must name"),
        ([{"a": 1.0, "y": 1.0}, {"b": 1.0, "y": 1.0}], {"target": "y"}, "a row has no a"),
        ([(1.0,)], {}, "a row must have inputs and a target"),
        ([(1.0, 1.0)], {"level": 1.0}, "level must be"),
        ([(1.0, 1.0)], {"alarm": 0.0}, "rate must be"),
    ],
)
def test_bad_rows_and_options_raise(rows, options, message):
    with pytest.raises(ValueError, match=message):
        list(pogp.stream(model(), rows, **options))
