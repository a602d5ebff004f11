"""The reservoir: every sample of the stream is in it with the same chance."""

import numpy as np
import pytest

from pogp.reservoir import Reservoir

from .conftest import assert_same_state

CAPACITY = 10


def filled(samples, seed=0, start=0, capacity=CAPACITY):
    """A reservoir of samples that say where in the stream they were."""
    reservoir = Reservoir(capacity, 2, 1, seed)
    offer(reservoir, samples, start)
    return reservoir


def offer(reservoir, samples, start):
    places = np.arange(start, start + samples, dtype=float)
    reservoir.add(np.column_stack([places, -places]), 10 * places[:, None])


def assert_even(counts, draws):
    """χ² of the counts is not far above its expectation, their number; fixed seeds, so no luck."""
    expected = draws * CAPACITY / len(counts)
    assert counts.sum() == draws * CAPACITY
    statistic = np.sum((counts - expected) ** 2) / expected
    assert statistic < len(counts) + 4 * np.sqrt(2 * len(counts))


@pytest.mark.parametrize("samples", [11, 60])
def test_every_sample_has_the_same_chance(samples):
    counts = np.zeros(samples)
    for seed in range(300):
        counts[filled(samples, seed).positions] += 1
    assert_even(counts, 300)


@pytest.mark.parametrize(
    ("ours", "theirs", "after"), [(5, 7, 0), (20, 50, 0), (8, 40, 0), (9, 30, 30)]
)
def test_a_join_is_a_sample_of_both(ours, theirs, after):
    counts = np.zeros(ours + theirs + after)
    for seed in range(300):
        one, other = filled(ours, seed), filled(theirs, seed + 1000, start=ours)
        one.join(other)
        assert one.seen == ours + theirs
        offer(one, after, ours + theirs)
        np.testing.assert_array_equal(one.inputs[:, 0], one.positions)
        np.testing.assert_array_equal(one.targets[:, 0], 10.0 * one.positions)
        assert len(np.unique(one.positions)) == CAPACITY
        counts[one.positions] += 1
    assert_even(counts, 300)


def test_while_there_is_room_all_are_in_it():
    one = filled(4)
    np.testing.assert_array_equal(one.positions, np.arange(4))
    one.join(filled(5, start=4))
    assert sorted(one.positions) == list(range(9))
    one.join(filled(0))
    assert (len(one), one.seen) == (9, 9)
    empty = filled(0)
    empty.join(one)
    assert sorted(empty.positions) == list(range(9))


def test_batches_and_copies_draw_alike():
    whole, parts, singly = filled(3000), filled(1000), filled(0)
    again = Reservoir(CAPACITY, 2, 1, 0)
    again.restore(parts.state())
    offer(parts, 2000, 1000)
    offer(again, 2000, 1000)
    for place in range(3000):
        offer(singly, 1, place)
    for other in (parts, again, singly):
        assert_same_state(other, whole)
    assert not np.array_equal(filled(3000, seed=1).positions, whole.positions)


def test_one_of_less_capacity_is_gone_on_with():
    small, large = filled(300), Reservoir(2 * CAPACITY, 2, 1, 0)
    large.restore(small.state())
    assert (large.capacity, len(large)) == (CAPACITY, CAPACITY)
    offer(small, 100, 300)
    offer(large, 100, 300)
    assert_same_state(large, small)


def test_streams_may_be_longer_than_any_sampler_of_numpy_allows():
    one, other = filled(30), filled(30, seed=1)
    one.seen, other.seen = 3_000_000_000, 3_000_000_000
    one.join(other)
    assert (len(one), one.seen) == (CAPACITY, 6_000_000_000)
    assert 0 < np.sum(one.positions >= 3_000_000_000) < CAPACITY


def test_a_state_that_does_not_fit_is_refused():
    memory = filled(30).state()
    with pytest.raises(ValueError, match="reservoir of shapes"):
        Reservoir(CAPACITY, 3, 1, 0).restore(memory)
    with pytest.raises(ValueError, match="reservoir of shapes"):
        Reservoir(CAPACITY, 2, 1, 0).restore({**memory, "reservoir_seen": 5})


def test_a_stream_made_with_the_same_seed_is_drawn_without_bias():
    X = np.random.default_rng(0).uniform(-1, 1, (20_000, 1))
    reservoir = Reservoir(500, 1, 1, 0)
    reservoir.add(X, X)
    assert abs(np.mean(reservoir.inputs > 0) - 0.5) < 0.1
