"""Rows of the past and future rows, by their distance to the kept samples."""

import numpy as np
import pytest
from scipy.optimize import minimize

from pogp.online.past_probability import PastProbability, logistic, sigmoid


def path(n=400):
    """Inputs along a path that does not return, every other one held out."""
    along = np.linspace(0.0, 60.0, 2 * n)
    inputs = np.column_stack([along, np.sin(along)])
    return inputs[::2], inputs[1::2]


def test_rows_among_kept_samples_are_of_the_past_and_rows_ahead_are_not():
    kept, held = path()
    classifier = PastProbability(kept)
    assert (classifier.predict(held[:-1]) > 0.9).all()
    ahead = kept[-1] + np.linspace(1.0, 30.0, 20)[:, None] * [1.0, 0.0]
    probabilities = classifier.predict(ahead)
    assert (np.diff(probabilities) < 0).all()
    assert (probabilities[1:] < 0.1).all()


@pytest.mark.parametrize("seed", range(4))
def test_rows_without_order_have_a_probability_of_one_half(seed):
    rng = np.random.default_rng(seed)
    classifier = PastProbability(rng.normal(size=(400, 3)))
    probabilities = classifier.predict(rng.normal(size=(200, 3)))
    np.testing.assert_allclose(probabilities, 0.5, atol=0.2)
    assert abs(probabilities.mean() - 0.5) < 0.03
    assert (classifier.predict(100.0 * rng.normal(size=(20, 3))) < 0.55).all()  # not of the past


def test_future_rows_that_were_nearer_give_one_half():
    kept, _ = path()
    classifier = PastProbability(np.vstack([kept, kept]))  # seen before
    np.testing.assert_array_equal(classifier.predict(kept[:5] + 0.01), 0.5)


@pytest.mark.parametrize("count", [12, 13])
def test_identical_inputs(count):
    classifier = PastProbability(np.ones((count, 2)))
    for rows in (np.ones((3, 2)), np.full((3, 2), 1e6)):
        probabilities = classifier.predict(rows)
        assert ((probabilities >= 0.0) & (probabilities <= 1.0)).all()
        assert np.isfinite(classifier.gradient(rows)).all()


def test_gradients_are_finite_differences():
    kept, held = path(60)
    classifier = PastProbability(kept + 0.3 * np.random.default_rng(0).normal(size=kept.shape))
    found = classifier.gradient(held)
    for i, move in enumerate(1e-6 * np.eye(2)):
        expected = (classifier.predict(held + move) - classifier.predict(held - move)) / 2e-6
        np.testing.assert_allclose(found[:, i], expected, rtol=1e-4, atol=1e-6)


def test_the_logistic_regression_is_the_maximum_of_the_posterior():
    rng = np.random.default_rng(0)
    features = np.column_stack([np.ones(200), rng.normal(size=200)])
    labels = (rng.random(200) < sigmoid(features @ [0.3, -2.0])).astype(float)

    def loss(line):
        values = features @ line
        return np.sum(np.logaddexp(0.0, values) - labels * values) + 0.5 * line @ line

    expected = minimize(loss, np.zeros(2), tol=1e-12).x
    np.testing.assert_allclose(logistic(features, labels), expected, rtol=1e-5)
