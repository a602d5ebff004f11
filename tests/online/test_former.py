"""What led before a stream changed."""

import numpy as np
import pytest

from pogp.online.former import WATCHED, Former


def test_a_state_that_cannot_be_is_refused():
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
            Former(2).restore(wrong, 10)


def test_most_samples_that_are_watched_say_whether_it_changed():
    for off, expected in ((WATCHED // 2, False), (WATCHED // 2 + 1, True)):
        former = Former(1)
        former.usual[:] = 0.01
        former.watched = WATCHED
        targets = np.where(np.arange(WATCHED) < off, 1.0, 0.1)
        found = [former.moved(np.array([y]), np.array([0.0, 1.0]), 1) for y in targets]
        assert found == [False] * (WATCHED - 1) + [expected]
