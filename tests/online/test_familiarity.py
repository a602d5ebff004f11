"""Rows of the past and rows to come, told apart by how near they lie to what was seen."""

import numpy as np
import pytest
from scipy.optimize import minimize

from pogp.online.familiarity import Familiarity, logistic, sigmoid


def path(n=400):
    """Inputs along a path that does not return, every other one held out."""
    along = np.linspace(0.0, 60.0, 2 * n)
    inputs = np.column_stack([along, np.sin(along)])
    return inputs[::2], inputs[1::2]


def test_rows_among_their_neighbours_are_of_the_past_and_rows_ahead_are_not():
    kept, held = path()
    familiar = Familiarity(kept)
    assert (familiar.chances(held[:-1]) > 0.9).all()
    ahead = kept[-1] + np.linspace(1.0, 30.0, 20)[:, None] * [1.0, 0.0]
    chances = familiar.chances(ahead)
    assert (np.diff(chances) < 0).all()
    assert (chances[1:] < 0.1).all()


@pytest.mark.parametrize("seed", range(4))
def test_rows_without_order_are_of_either_kind(seed):
    rng = np.random.default_rng(seed)
    familiar = Familiarity(rng.normal(size=(400, 3)))
    chances = familiar.chances(rng.normal(size=(200, 3)))
    np.testing.assert_allclose(chances, 0.5, atol=0.2)
    assert abs(chances.mean() - 0.5) < 0.03
    assert (familiar.chances(100.0 * rng.normal(size=(20, 3))) < 0.55).all()  # never known as past


def test_rows_to_come_that_were_nearer_say_nothing():
    kept, _ = path()
    familiar = Familiarity(np.vstack([kept, kept]))  # each after half of the stream was seen before
    np.testing.assert_array_equal(familiar.chances(kept[:5] + 0.01), 0.5)


@pytest.mark.parametrize("count", [12, 13])
def test_inputs_that_are_all_the_same(count):
    familiar = Familiarity(np.ones((count, 2)))
    for rows in (np.ones((3, 2)), np.full((3, 2), 1e6)):
        chances = familiar.chances(rows)
        assert ((chances >= 0.0) & (chances <= 1.0)).all()
        assert np.isfinite(familiar.slopes(rows)).all()


def test_slopes_are_those_of_finite_differences():
    kept, held = path(60)
    familiar = Familiarity(kept + 0.3 * np.random.default_rng(0).normal(size=kept.shape))
    found = familiar.slopes(held)
    for i, move in enumerate(1e-6 * np.eye(2)):
        expected = (familiar.chances(held + move) - familiar.chances(held - move)) / 2e-6
        np.testing.assert_allclose(found[:, i], expected, rtol=1e-4, atol=1e-6)


def test_the_regression_is_the_most_probable_one():
    rng = np.random.default_rng(0)
    features = np.column_stack([np.ones(200), rng.normal(size=200)])
    labels = (rng.random(200) < sigmoid(features @ [0.3, -2.0])).astype(float)

    def loss(line):
        values = features @ line
        return np.sum(np.logaddexp(0.0, values) - labels * values) + 0.5 * line @ line

    expected = minimize(loss, np.zeros(2), tol=1e-12).x
    np.testing.assert_allclose(logistic(features, labels), expected, rtol=1e-5)
