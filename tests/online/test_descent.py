"""Descent within bounds, one evaluation at a time."""

import numpy as np
import pytest
from scipy.optimize import rosen, rosen_der

from pogp.online.descent import Descent


def run(function, gradient, start, lower=-np.inf, upper=np.inf, evaluations=200, tolerance=1e-12):
    """Where it ends, and how many evaluations that took."""
    shape = np.shape(start)
    bounds = np.full(shape, lower), np.full(shape, upper)
    descent = Descent(np.array(start, dtype=float), *bounds, tolerance)
    best, count = (np.inf, descent.start), 0
    while descent.point is not None and count < evaluations:
        point = descent.point
        np.testing.assert_array_equal(point, np.clip(point, *bounds))
        value = function(point)
        best = min(best, (value, point), key=lambda pair: pair[0])
        descent.tell(value, gradient(point))
        count += 1
    return best[1], count


def test_it_finds_the_minimum_of_a_bent_valley():
    found, count = run(rosen, rosen_der, [-1.2, 1.0, 0.5])
    np.testing.assert_allclose(found, 1.0, atol=1e-3)
    assert count < 150


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_it_does_not_matter_how_large_values_are(scale):
    A = np.diag([1.0, 10.0, 100.0])
    target = np.array([1.0, -2.0, 0.5])

    def value(x):
        return scale * 0.5 * (x - target) @ A @ (x - target)

    found, _ = run(value, lambda x: scale * A @ (x - target), [0.0, 0.0, 0.0], tolerance=0.0)
    np.testing.assert_allclose(found, target, atol=1e-4)


def test_it_stays_within_bounds_and_uses_them():
    found, _ = run(lambda x: np.sum((x - 3) ** 2), lambda x: 2 * (x - 3), [0.0, 0.0], -1.0, 1.0)
    np.testing.assert_array_equal(found, 1.0)


def test_a_point_without_a_value_is_stepped_back_from():
    def value(x):
        return np.inf if x[0] > 0.5 else (x[0] - 0.4) ** 2

    found, _ = run(value, lambda x: 2 * (x - 0.4), [-3.0])
    np.testing.assert_allclose(found, 0.4, atol=1e-3)


def test_a_start_without_a_value_ends_it():
    found, count = run(lambda x: np.inf, np.zeros_like, [1.0, 2.0])
    np.testing.assert_array_equal(found, [1.0, 2.0])
    assert count == 1


def test_it_ends_where_little_is_gained():
    _, loose = run(rosen, rosen_der, [-1.2, 1.0], tolerance=1e-1)
    _, strict = run(rosen, rosen_der, [-1.2, 1.0], tolerance=1e-8)
    assert loose < strict
