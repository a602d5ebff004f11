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


def test_the_function_changed_if_most_watched_samples_are_far_off():
    for off, expected in ((WATCHED // 2, False), (WATCHED // 2 + 1, True)):
        previous = PreviousLeader(1)
        previous.usual_variance[:] = 0.01
        previous.to_watch = WATCHED
        targets = np.where(np.arange(WATCHED) < off, 1.0, 0.1)
        found = [previous.function_changed(np.array([y]), np.array([0.0, 1.0]), 1) for y in targets]
        assert found == [False] * (WATCHED - 1) + [expected]
