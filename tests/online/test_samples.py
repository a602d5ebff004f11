"""Kept samples: each once, with its flag, in stream order."""

import numpy as np
import pytest

from pogp.online.prediction import GapEffect
from pogp.online.samples import LATEST, PAST, STOPPED_AFTER, SampleStore

from ..conftest import assert_same_state


def filled(count, seed=0):
    """Samples whose values are their positions; every seventh is an outlier."""
    rows = SampleStore(2, 1, seed)
    for i in range(count):
        add(rows, i)
    return rows


def add(rows, i):
    """Add the sample of a position."""
    gaps = GapEffect(shift=np.array([-3.0 * i]), variance=np.array([0.5 * i]))
    rows.add(np.array([i, -i], dtype=float), np.array([2.0 * i]), i % 7 == 3, gaps)


@pytest.mark.parametrize("count", [0, 1, 10, LATEST, LATEST + 1, 2600])
def test_each_sample_is_kept_once_with_its_flag(count):
    samples = filled(count).all()
    positions = samples.positions
    assert (np.diff(positions) > 0).all()
    np.testing.assert_array_equal(samples.X, np.column_stack([positions, -positions]))
    np.testing.assert_array_equal(samples.Y[:, 0], 2 * positions)
    np.testing.assert_array_equal(samples.outliers, positions % 7 == 3)
    np.testing.assert_array_equal(samples.extra[:, 0], 0.5 * positions)
    np.testing.assert_array_equal(samples.targets_at_inputs[:, 0], 5 * positions)
    assert len(positions) == count if count <= LATEST else LATEST < len(positions) <= LATEST + PAST
    latest = positions[positions >= count - LATEST]
    np.testing.assert_array_equal(latest, np.arange(max(count - LATEST, 0), count))


def test_the_past_is_drawn_uniformly():
    samples = filled(6000).all()
    old = samples.positions[samples.positions < 5000]
    counts = np.histogram(old, bins=5, range=(0, 5000))[0]
    assert counts.min() > 110  # about a sixth of a thousand each
    assert counts.max() < 230


def test_the_latest_samples_since_a_position():
    rows = filled(1500)
    np.testing.assert_array_equal(rows.latest(1490).positions, np.arange(1490, 1500))
    np.testing.assert_array_equal(rows.latest(0).positions, np.arange(500, 1500))
    assert len(rows.latest(1500).positions) == 0


@pytest.mark.parametrize("outputs", [1, 2])
def test_a_target_that_repeats_often_enough_is_stopped(outputs):
    rows, same = SampleStore(1, outputs, 0), np.full(outputs, 3.0)
    targets = [same + 1.0, *[same] * (STOPPED_AFTER + 5), same + 1.0, *[same] * (STOPPED_AFTER + 1)]
    stopped = []
    for y in targets:
        stopped.append(rows.is_stopped(y))
        rows.add(np.zeros(1), y, False, None)
    assert np.flatnonzero(stopped).tolist() == [
        *range(STOPPED_AFTER + 1, STOPPED_AFTER + 6),
        len(targets) - 1,
    ]
    np.testing.assert_array_equal(rows.latest(0).stopped, stopped)
    assert rows.latest(10**6).stopped.shape == (0,)
    if outputs == 2:  # all outputs have to be constant
        assert rows.is_stopped(same)
        assert not rows.is_stopped(np.array([3.0, 4.0]))


@pytest.mark.parametrize("count", [0, 5, 1700])
def test_a_restored_store_continues_as_the_original(count):
    rows, twin = filled(count), SampleStore(2, 1, 0)
    twin.restore(rows.state())
    for each in (rows, twin):
        for i in range(count, count + 500):
            add(each, i)
    assert_same_state(twin.state(), rows.state())
    for one, other in zip(twin.all(), rows.all(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_states_of_another_shape_are_refused():
    state = filled(20).state()
    state["latest_inputs"] = state["latest_inputs"][:-1]
    with pytest.raises(ValueError, match="latest samples of shapes"):
        SampleStore(2, 1, 0).restore(state)


@pytest.mark.parametrize("width", [2, 4], ids=["no weights", "no shifts"])
def test_states_without_later_columns_are_restored(width):
    """Columns that a file does not have are as usual: weight 1, no effect of missing inputs."""
    rows, state = filled(20), filled(20).state()
    state["latest_targets"] = state["latest_targets"][:, :width]
    state["reservoir_targets"] = state["reservoir_targets"][:, :width]
    old = SampleStore(2, 1, 0)
    old.restore(state)
    samples = old.all()
    np.testing.assert_array_equal(samples.targets_at_inputs, rows.all().Y)
    np.testing.assert_array_equal(samples.weights, np.ones(20))
    np.testing.assert_array_equal(samples.extra[:, 0], 0.5 * np.arange(20) * (width == 4))
    assert_same_state({k: old.state()[k] for k in state}, state)


def test_targets_that_were_stuck_are_no_repetitions_by_chance():
    moving, stuck = SampleStore(1, 1, 0), SampleStore(1, 1, 0)
    for i in range(600):
        value, weight = (5.0, 0.0) if 300 < i <= 340 else (float(i), 1.0)
        stuck.add(np.array([float(i)]), np.array([value]), False, None, weight)
        if weight:
            moving.add(np.array([float(i)]), np.array([value]), False, None)
    rates = [rows.repetition_rate(np.array([600.0]), rows.seen) for rows in (moving, stuck)]
    assert rates[0] == pytest.approx(rates[1], rel=0.1)
    assert max(rates) < 0.01
