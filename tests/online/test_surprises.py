"""Which surprises are outliers."""

import numpy as np
import pytest

from pogp.online.surprises import OCTAVES, Surprises


def after(errors):
    surprises = Surprises()
    for error in errors:
        surprises.is_outlier(error)
    return surprises


@pytest.mark.parametrize(
    ("error", "octave"),
    [(4.1, 0), (8.0, 0), (8.1, 1), (16.0, 1), (16.1, 2), (600.0, 7), (1e9, 7), (np.inf, 7)],
)
def test_errors_are_counted_by_octaves(error, octave):
    assert np.flatnonzero(after([error]).counts).tolist() == [octave]


def test_a_surprise_after_a_quiet_stream_is_an_outlier():
    assert after([1.0] * 50).is_outlier(9.0)
    assert not after([1.0] * 50).is_outlier(8.0)


def test_heavy_tails_have_no_outliers_but_a_gap_makes_one():
    tail = [1.0, 5.0, 1.0, 1.0, 6.0, 1.0, 1.0, 1.0, 7.0, 1.0]
    assert not after(tail).is_outlier(9.0)
    assert after(tail).is_outlier(17.0)
    assert after(tail).is_outlier(np.inf)
    assert not after([*tail, *tail, *[1.0] * 20, 9.0, 1.0, 1.0, 10.0]).is_outlier(17.0)


def test_outliers_of_all_sizes_are_outliers():
    surprises, calm = after([1.0] * 50), [1.0] * 20
    sizes = [20.0, 40.0, 25.0, 30.0, 70.0, 28.0, 130.0, 60.0]
    found = []
    for size in sizes:
        found.append(surprises.is_outlier(size))
        for error in calm:
            surprises.is_outlier(error)
    assert all(found)


def test_surprises_one_after_the_other_are_a_change():
    surprises = after([1.0] * 50)
    assert [surprises.is_outlier(1000.0) for _ in range(5)] == [True, True, True, False, False]


def test_surprises_are_expected_as_often_as_they_came():
    assert after([1.0] * 50).expected(100, 50) == 0.0
    often = after(([1.0] * 99 + [10.0]) * 30)
    assert often.expected(100, 3000) == pytest.approx(1.0, rel=0.06)
    assert often.expected(0, 3000) == 0.0
    assert after([10.0]).expected(5, 1) == 5.0


@pytest.mark.parametrize("errors", [[], [5.0, 9.0], [5.0, 9.0, 100.0, 1.0]])
def test_counts_are_part_of_the_state(errors):
    surprises, other = after(errors), Surprises()
    other.restore(surprises.state())
    assert other.counts == surprises.counts


def test_counts_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match=f"{OCTAVES} numbers >= 0, got"):
        Surprises().restore({"nearly": -1.0, "far": 0.0})
    with pytest.raises(ValueError, match="counts of errors"):
        Surprises().restore({"nearly": 0.0, "far": 0.0, "octaves": np.zeros(3)})
