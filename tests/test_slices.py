"""Work in slices gives what it gives in one go."""

from itertools import pairwise

import numpy as np
import pytest

from pogp.slices import STEP_TICKS, STEPS_PER_SAMPLE, Sliced, finished, quota


@pytest.fixture(autouse=True)
def slices_of_one_tick(monkeypatch):
    monkeypatch.setattr("pogp.slices.SLICE", 1)


def steps(count):
    """Work that remembers in which order it was done."""
    done = []
    for i in range(count):
        yield 1
        done.append(i)
    return done


@pytest.mark.parametrize("slice_", [1, 3, 7, 100])
def test_slices_give_the_same_as_one_go(slice_):
    work = Sliced(steps(20))
    advances = 0
    while not work.done:
        work.advance(slice_)
        advances += 1
    assert advances == -(-20 // slice_)
    assert work.result() == list(range(20)) == finished(steps(20))


def test_nothing_is_done_before_it_is_asked_for_or_in_between():
    seen = []

    def work():
        for i in range(4):
            yield 1
            seen.append(i)

    sliced = Sliced(work())
    assert not seen
    sliced.advance(0)
    assert not seen
    sliced.advance(2)
    assert seen == [0, 1]
    assert sliced.result() is None
    assert seen == [0, 1, 2, 3]


def done_with(costs, ticks):
    """How many slices are done after each advance."""
    seen, counts = [], []

    def work():
        for cost in costs:
            yield cost
            seen.append(cost)

    sliced = Sliced(work())
    while not sliced.done:
        sliced.advance(ticks)
        counts.append(len(seen))
    return counts


def test_a_slice_that_does_not_fit_waits_and_no_ticks_are_saved_for_it():
    assert done_with([2, 2, 2, 3, 1, 1], 5) == [2, 4, 6]


def test_a_longer_slice_is_done_alone_and_the_rest_is_owed():
    assert done_with([1, 12, 1, 1], 5) == [1, 2, 2, 4]


def test_slices_together_take_no_more_than_the_ticks():
    costs = np.random.default_rng(0).integers(1, 10, 200).tolist()
    counts = [0, *done_with(costs, 10)]
    assert all(sum(costs[a:b]) <= 10 for a, b in pairwise(counts))


def test_more_inputs_and_points_allow_for_more_work():
    assert quota(0, 0) == STEPS_PER_SAMPLE * STEP_TICKS
    assert quota(1, 0) < quota(9, 0) < quota(9, 300)


def test_errors_are_handed_on_each_time():
    def work():
        yield 1
        yield 1
        raise ZeroDivisionError("in the work")

    sliced = Sliced(work())
    sliced.advance(1)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="in the work"):
            sliced.advance(1)
    with pytest.raises(ZeroDivisionError):
        sliced.result()
    assert sliced.done
    with pytest.raises(ZeroDivisionError):
        finished(work())


def test_the_smallest_slice_has_a_price(monkeypatch):
    monkeypatch.setattr("pogp.slices.SLICE", 5)
    work = Sliced(steps(20))
    work.advance(15)
    left = 0
    while not work.done:
        work.advance(15)
        left += 1
    assert left == 6  # three at a time; the first was begun when nothing was known of it
