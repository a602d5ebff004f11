"""The bounded search, on functions whose minimum is known."""

import numpy as np
import pytest

from pogp.search import minimise

LOWER, UPPER = np.full(2, -10.0), np.full(2, 10.0)


class Valley:
    """Rosenbrock's function, whose minimum is 0 at (1, 1); it counts."""

    def __init__(self, height=0.0):
        self.height, self.evaluations, self.values = height, 0, []

    def __call__(self, x):
        self.evaluations += 1
        a, b = 1.0 - x[0], x[1] - x[0] ** 2
        self.values.append(self.height + a**2 + 100.0 * b**2)
        return self.values[-1], np.array([-2.0 * a - 400.0 * x[0] * b, 200.0 * b])


START = np.array([-1.2, 1.0])


@pytest.mark.parametrize("height", [0.0, 1e6])
def test_the_tolerance_is_in_the_unit_of_the_function(height):
    found = minimise(Valley(height), START, LOWER, UPPER, 1e-6, 1000)
    assert found.converged
    assert found.value == pytest.approx(height, abs=1e-5)
    np.testing.assert_allclose(found.point, 1.0, atol=1e-2)


@pytest.mark.parametrize("allowed", [1, 2, 7, 20])
def test_it_never_evaluates_more_often_than_it_may_and_returns_the_best(allowed):
    valley = Valley()
    found = minimise(valley, START, LOWER, UPPER, 1e-9, allowed)
    assert valley.evaluations == allowed
    assert not found.converged
    assert found.value == min(valley.values) == Valley()(found.point)[0]


def test_bounds_hold_from_the_start():
    found = minimise(Valley(), np.array([50.0, -50.0]), LOWER, np.array([0.5, 10.0]), 1e-9, 500)
    np.testing.assert_allclose(found.point, [0.5, 0.25], atol=1e-4)


def test_a_search_that_cannot_win_ends_early():
    alone, beaten = Valley(height=50.0), Valley(height=50.0)
    minimise(alone, START, LOWER, UPPER, 1e-9, 500)
    minimise(beaten, START, LOWER, UPPER, 1e-9, 500, known=0.0)
    assert beaten.evaluations < alone.evaluations


def test_a_search_that_wins_goes_on_to_its_end():
    def bowl(x):
        return float(x @ x), 2.0 * x

    winner = minimise(bowl, np.array([5.0, -3.0]), LOWER, UPPER, 1e-9, 500, known=0.5)
    assert winner.value == pytest.approx(0.0, abs=1e-6)


def test_nowhere_finite():
    found = minimise(lambda x: (np.inf, np.zeros(2)), START, LOWER, UPPER, 1e-6, 50)
    assert found.value == np.inf
    assert not found.converged
