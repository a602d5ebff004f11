"""When the latest samples are unlike what the scales were found on."""

import numpy as np

from pogp.online.changes import awake, inputs_outside, targets_changed, unchanged
from pogp.online.rows import Rows
from pogp.online.scales import Scales

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(500, 3)), rng.normal(size=(500, 2))
X[:, 2] = 7.0
SCALES = Scales.of(X, Y)


def test_a_target_is_awake_if_it_moves_at_half_of_the_samples():
    rest = np.full((30, 1), 20.0)
    assert not awake(X[:30], rest)
    spike = rest.copy()
    spike[3] = 1e3
    assert not awake(X[:30], spike)
    assert awake(X[:30], rest + Y[:30, :1])
    assert not awake(np.zeros((30, 3)), Y[:30])  # no input moves


def test_targets_change_if_they_spread_or_go_elsewhere():
    last = Y[:30].copy()
    assert not targets_changed(last, SCALES)
    assert targets_changed(last * [1.0, 20.0], SCALES)
    assert targets_changed(last + np.array([8.0, 0.0]), SCALES)
    last[4] = 1e6  # an outlier is no change
    assert not targets_changed(last, SCALES)


def test_what_is_unchanged_at_first_glance_is_so_when_looked_at():
    rows = Rows(3, 2, 0)
    seen = []
    for i in range(2000):
        shift = np.array([3.0 * (i // 30 % 3), 0.0])
        rows.add(X[i % 500], Y[i % 500] + shift, False, None)
        if i % 30 == 29:
            last = rows.latest(i - 29)
            seen.append(unchanged(rows, 30, SCALES))
            changed = targets_changed(last.Y, SCALES) or len(inputs_outside(last.X, SCALES))
            assert not (seen[-1] and changed)
    assert any(seen)
    assert not all(seen)


def test_inputs_outside_are_named():
    last = X[:30].copy()
    assert inputs_outside(last, SCALES).tolist() == []
    last[:20, 1] += 50.0
    last[:, 2] += 1.0  # which was at rest
    assert inputs_outside(last, SCALES).tolist() == [1, 2]
