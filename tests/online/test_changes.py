"""Comparisons of the latest samples with the scales."""

import numpy as np

from pogp.online.changes import inputs_outside, started_moving, targets_changed, unchanged
from pogp.online.samples import SampleStore
from pogp.online.scales import Scales

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(500, 3)), rng.normal(size=(500, 2))
X[:, 2] = 7.0
SCALES = Scales.of(X, Y)


def test_a_target_has_started_moving_if_half_of_its_values_differ():
    constant = np.full((30, 1), 20.0)
    assert not started_moving(X[:30], constant)
    spike = constant.copy()
    spike[3] = 1e3
    assert not started_moving(X[:30], spike)
    assert started_moving(X[:30], constant + Y[:30, :1])
    assert not started_moving(np.zeros((30, 3)), Y[:30])  # no input varies


def test_targets_change_if_they_vary_more_widely_or_move_away():
    last = Y[:30].copy()
    assert not targets_changed(last, SCALES)
    assert targets_changed(last * [1.0, 20.0], SCALES)
    assert targets_changed(last + np.array([8.0, 0.0]), SCALES)
    last[4] = 1e6  # an outlier is not a change
    assert not targets_changed(last, SCALES)


def test_the_quick_test_never_misses_a_change():
    store = SampleStore(3, 2, 0)
    seen = []
    for i in range(2000):
        shift = np.array([3.0 * (i // 30 % 3), 0.0])
        store.add(X[i % 500], Y[i % 500] + shift, False, None)
        if i % 30 == 29:
            last = store.latest(i - 29)
            seen.append(unchanged(store, 30, SCALES))
            changed = targets_changed(last.Y, SCALES) or len(inputs_outside(last.X, SCALES))
            assert not (seen[-1] and changed)
    assert any(seen)
    assert not all(seen)


def test_inputs_outside_are_named():
    last = X[:30].copy()
    assert inputs_outside(last, SCALES).tolist() == []
    last[:20, 1] += 50.0
    last[:, 2] += 1.0  # it was constant
    assert inputs_outside(last, SCALES).tolist() == [1, 2]
