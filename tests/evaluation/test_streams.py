"""Data sets cut into a slice for tuning, a stream and a test set."""

import numpy as np
import pytest

import pogp
from pogp.evaluation import streams


@pytest.fixture
def published(tmp_path, monkeypatch):
    """A boston of 40 training samples, numbered."""
    y = np.arange(40.0)
    arrays = {"x_train": y[:, None], "y_train": y, "x_test": y[:7, None], "y_test": y[:7]}
    np.savez(tmp_path / "boston.npz", **arrays)
    monkeypatch.setenv("POGP_DATA", str(tmp_path))
    return streams.SOURCES["boston"]


def test_a_published_set_is_streamed_in_an_order_of_the_seed(published):
    stream, again, other = (published.stream(None, 10, seed) for seed in (1, 1, 2))
    whole = np.concatenate((stream.y_tune, stream.y))
    assert sorted(whole) == list(range(40))
    np.testing.assert_array_equal(stream.y, stream.x[:, 0])
    np.testing.assert_array_equal(stream.y, again.y)
    assert not np.array_equal(stream.y, other.y)
    np.testing.assert_array_equal(stream.y_test, np.arange(7.0))


def test_a_published_set_can_be_cut_short_but_not_stretched(published):
    stream = published.stream(25, 10, seed=0)
    assert len(stream.y) == 15
    assert stream.train_variance == np.var(np.concatenate((stream.y_tune, stream.y)))
    with pytest.raises(ValueError, match="boston has 40 training samples, fewer than 41"):
        published.stream(41, 10, seed=0)


@pytest.mark.parametrize("name", ["arm", "gaussian", "chi_square"])
def test_a_simulated_set_is_streamed_as_it_was_drawn(name):
    stream = streams.SOURCES[name].stream(50, 20, seed=3)
    data = getattr(pogp.datasets, name)(50, seed=3)
    np.testing.assert_array_equal(stream.y, data.y_train[20:])
    assert stream.mean == data.y_train[:20].mean()
