"""Work in slices gives what it gives in one go."""

import pytest

from pogp.slices import Sliced, finished


def steps(count):
    """Work that remembers in which order it was done."""
    done = []
    for i in range(count):
        done.append(i)
        yield 1
    return done


@pytest.mark.parametrize("slice_", [1, 3, 7, 100])
def test_slices_give_the_same_as_one_go(slice_):
    work = Sliced(steps(20))
    advances = 0
    while not work.done:
        work.advance(slice_)
        advances += 1
        assert work.ticks == min(advances * slice_, 20)
    assert work.result() == list(range(20)) == finished(steps(20))


def test_nothing_is_done_before_it_is_asked_for_or_in_between():
    seen = []

    def work():
        for i in range(4):
            seen.append(i)
            yield 1

    sliced = Sliced(work())
    assert not seen
    sliced.advance(0)
    assert not seen
    sliced.advance(2)
    assert seen == [0, 1]
    assert sliced.result() is None
    assert seen == [0, 1, 2, 3]


def test_what_takes_longer_counts_for_more():
    def work():
        yield 3
        yield 1

    sliced = Sliced(work())
    sliced.advance(2)
    assert sliced.ticks == 3
    assert not sliced.done


def test_errors_are_handed_on_each_time():
    def work():
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
