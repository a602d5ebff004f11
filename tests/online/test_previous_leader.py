"""The group that led before a change."""

import numpy as np
import pytest

from pogp.online.previous_leader import WATCHED, PreviousLeader


def test_invalid_states_are_refused():
    for wrong in (
        {"usual": np.ones(3)},
        {"usual": np.array([1.0, -1.0])},
        {"usual": np.array([1.0, np.nan])},
        {"watched": -1},
        {"watched": WATCHED + 1},
        {"watched": WATCHED, "far": 1},
        {"far": -1},
    ):
        with pytest.raises(ValueError, match=r"usual variances|far off"):
            PreviousLeader(2).restore(wrong, 10)


@pytest.mark.parametrize("surprise", [False, True])
def test_the_function_changed_if_most_watched_samples_are_far_off(surprise):
    for off, expected in ((WATCHED // 2, False), (WATCHED // 2 + 1, True)):
        previous = PreviousLeader(1)
        previous.usual_variance[:] = 0.01
        previous.to_watch = 0 if surprise else WATCHED  # a surprise starts the watch
        targets = np.where(np.arange(WATCHED) < off, 1.0, 0.1)
        found = [
            previous.function_changed(np.array([y]), np.array([0.0, 1.0]), 1, surprise and i == 0)
            for i, y in enumerate(targets)
        ]
        assert found == [False] * (WATCHED - 1) + [expected]


def test_without_a_surprise_nothing_is_watched():
    previous = PreviousLeader(1)
    previous.usual_variance[:] = 0.01
    record = np.array([0.0, 1.0])
    assert not any(previous.function_changed(np.ones(1), record, 1, False) for _ in range(99))
