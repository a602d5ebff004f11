"""Work in slices gives what it gives in one go, and its thread ends whatever happens."""

import gc
import os
import threading
import time

import pytest

from pogp.online.slices import Sliced


def steps(count):
    """Work that remembers in which order it was done."""

    def work(tick):
        done = []
        for i in range(count):
            done.append(i)
            tick()
        return done

    return work


def ended(before):
    """Whether there are no more threads than before, soon."""
    for _ in range(100):
        if threading.active_count() <= before:
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("slice_", [1, 3, 7, 100])
def test_slices_give_the_same_as_one_go(slice_):
    work = Sliced(steps(20))
    advances = 0
    while not work.done:
        work.advance(slice_)
        advances += 1
        assert work.ticks == min(advances * slice_, 20)
    assert work.result() == list(range(20)) == Sliced(steps(20)).result()


def test_nothing_is_done_before_it_is_asked_for_or_in_between():
    seen = []

    def work(tick):
        for i in range(4):
            seen.append(i)
            tick()

    sliced = Sliced(work)
    assert not seen
    sliced.advance(0)
    assert not seen
    sliced.advance(2)
    time.sleep(0.02)
    assert seen == [0, 1]
    assert sliced.result() is None
    assert seen == [0, 1, 2, 3]


def test_errors_are_handed_on_each_time():
    def work(tick):
        tick()
        raise ZeroDivisionError("in the work")

    sliced = Sliced(work)
    sliced.advance(1)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="in the work"):
            sliced.advance(1)
    with pytest.raises(ZeroDivisionError):
        sliced.result()
    assert sliced.done


def test_cancelling_ends_the_thread():
    before = threading.active_count()
    sliced = Sliced(steps(50))
    sliced.cancel()  # not begun
    sliced = Sliced(steps(50))
    sliced.advance(3)
    assert threading.active_count() == before + 1
    sliced.cancel()
    sliced.cancel()
    assert ended(before)


def test_work_that_nobody_waits_for_ends():
    before = threading.active_count()
    sliced = Sliced(steps(50))
    sliced.advance(3)
    del sliced
    gc.collect()
    assert ended(before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forking where there are threads
def test_a_forked_process_goes_on():
    sliced = Sliced(steps(20))
    sliced.advance(5)
    child = os.fork()
    if child == 0:
        try:
            sliced.advance(2)
            fine = sliced.ticks == 7 and sliced.result() == list(range(20))
        except BaseException:
            fine = False
        os._exit(0 if fine else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert sliced.result() == list(range(20))
