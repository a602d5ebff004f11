"""Jumps of inputs: which samples belong to one, and what members learn from earlier ones."""

import numpy as np
import pytest

import pogp
from pogp.online import arithmetic
from pogp.online.jumps import MEMORY, WINDOW, InputJumps
from pogp.online.mixture import AT_JUMP


def found(inputs: np.ndarray) -> list[bool]:
    """Return for each row whether it belongs to a jump."""
    jumps = InputJumps(inputs.shape[1])
    return [jumps.learn(x) for x in inputs]


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_a_rare_step_is_a_jump_and_the_next_samples_belong_to_it(unit):
    noise = np.random.default_rng(0).normal(size=400)
    setpoint = np.repeat([1.0, 3.0, 2.0, 5.0], 100)
    inside = np.array(found(np.column_stack([unit * setpoint, noise])))
    after = np.arange(400) % 100 < MEMORY
    after[:100] = False
    np.testing.assert_array_equal(inside, after)


@pytest.mark.parametrize("every", [1, MEMORY // 2])
def test_steps_that_are_frequent_are_no_jumps(every):
    switch = (np.arange(2000) // every % 2).astype(float)
    assert not any(found(switch[:, None])[200:])


def test_smooth_and_shuffled_inputs_have_no_jumps():
    t = np.arange(3000)
    rng = np.random.default_rng(1)
    inputs = np.column_stack(
        [np.sin(t / 50), rng.normal(size=3000), np.cumsum(rng.normal(size=3000))]
    )
    assert np.mean(found(inputs)[50:]) < 0.01


def test_an_absurd_value_does_not_hide_the_next_jump():
    setpoint = np.repeat(np.arange(8.0), 100)[:, None]
    setpoint[350] = 1e12
    inside = found(setpoint)
    assert all(inside[start] for start in (100, 200, 300, 500, 600, 700))


def test_compiled_average_steps_equal_the_reference():
    compiled = pytest.importorskip("pogp.online.compiled_arithmetic")
    rng = np.random.default_rng(2)
    states = [(np.zeros(3), np.array([0.0, 1e-3, 2.0])) for _ in range(2)]
    for i in range(50):
        x = rng.normal(size=3) * rng.choice([0.0, 1.0, 1e6], 3)
        arguments = (1.0 / (i + 1), 10.0, WINDOW)
        pair = [
            core.average_steps(x, *state, *arguments)
            for core, state in zip((arithmetic, compiled), states, strict=True)
        ]
        assert pair[0] == pair[1]
        np.testing.assert_allclose(states[0], states[1], rtol=1e-14)


def test_steps_of_older_files_are_those_of_the_latest_samples():
    inputs = np.random.default_rng(3).normal(size=(200, 2))
    jumps, older = InputJumps(2), InputJumps(2)
    for x in inputs:
        jumps.learn(x)
    older.restore({}, inputs)
    np.testing.assert_allclose(older.average, jumps.average, rtol=1e-9)
    np.testing.assert_array_equal(older.last, jumps.last)
    empty = InputJumps(2)
    empty.restore({}, np.empty((0, 2)))
    assert not empty.includes(inputs).any()


@pytest.fixture(scope="module")
def delayed() -> tuple[np.ndarray, np.ndarray]:
    """A target that follows a set-point, which jumps every 400 samples, with a delay."""
    rng, n = np.random.default_rng(4), 3300
    setpoint, y = np.repeat(rng.uniform(-1, 1, n // 400 + 1), 400)[:n], np.zeros(n)
    for i in range(1, n):
        y[i] = 0.95 * y[i - 1] + 0.05 * setpoint[i - 1]
    return np.column_stack([setpoint, rng.normal(size=n)]), y + 0.02 * rng.normal(size=n)


def test_a_target_with_a_delay_is_predicted_after_jumps(delayed):
    """The last target is hardly wrong at a jump; a function of the inputs is."""
    X, y = delayed
    trace = pogp.OnlineGP(max_size=50).learn(X, y)
    at = np.arange(len(y)) % 400 < MEMORY
    later = np.arange(len(y)) >= 1200
    ours, last = (y - trace.mean)[at & later], np.diff(y, prepend=0.0)[at & later]
    assert np.mean(ours**2) < 1.2 * np.mean(last**2)


def test_predictions_at_a_jump_are_those_of_learning(delayed):
    X, y = delayed
    model = pogp.OnlineGP(max_size=30)
    model.learn(X[:800], y[:800])
    for i in (800, 801, 815):
        model.learn(X[model.seen : i], y[model.seen : i])
        far_and_near = np.vstack([X[i], X[i - 1]])
        mean, variance = model.predict(far_and_near)
        trace = model.copy().learn(X[i], y[i])
        np.testing.assert_allclose([mean[0], variance[0]], [trace.mean[0], trace.variance[0]])


def test_a_model_that_is_loaded_after_a_jump_continues_bit_for_bit(delayed):
    X, y = delayed
    whole, parts = pogp.OnlineGP(max_size=30), pogp.OnlineGP(max_size=30)
    trace = whole.learn(X[:1000], y[:1000])
    parts.learn(X[:805], y[:805])
    assert parts._stream is not None
    assert parts._stream.ensemble.jumps.left > 0
    assert parts._stream.ensemble.occasion_scores[AT_JUMP].any()
    rest = pogp.from_bytes(parts.to_bytes()).learn(X[805:1000], y[805:1000])
    np.testing.assert_array_equal(rest.mean, trace.mean[805:])


def test_a_relation_is_kept_while_its_input_does_not_change():
    """Targets change with each step, so that tuning starts again with samples at one set-point."""
    rng = np.random.default_rng(5)
    setpoint = np.repeat(rng.uniform(0, 100, 14), 200)
    X = np.column_stack([setpoint, rng.normal(size=2800)])
    y = 2 * setpoint + 5 + 0.1 * rng.normal(size=2800)
    trace = pogp.OnlineGP(max_size=30).learn(X, y)
    at = np.arange(1200, 2800, 200)
    assert np.median(np.abs(y - trace.mean)[at]) < 1.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"average": np.array([-1.0, 1.0])},
        {"last": np.array([np.nan, 1.0])},
        {"average": np.ones(3)},
        {"left": MEMORY},
        {"count": -1},
    ],
)
def test_impossible_steps_in_a_file_are_refused(wrong):
    state = {"last": np.zeros(2), "average": np.ones(2), "count": 30, "left": 2}
    with pytest.raises(ValueError, match=r"steps"):
        InputJumps(2).restore({**state, **wrong}, np.empty((0, 2)))
