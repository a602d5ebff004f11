"""Algebra in slices is that in one go."""

import numpy as np
import pytest

from pogp.posteriors.linalg.sliced import (
    STRIP,
    congruent,
    factor,
    inverse,
    inverse_root,
    product,
    solved,
    squared,
)
from pogp.slices import finished

SIZES = [1, STRIP, STRIP + 1, 3 * STRIP - 5]


def problem(size):
    """A positive definite matrix, its Cholesky factor, and any matrix."""
    rng = np.random.default_rng(size)
    A = rng.normal(size=(size, size + 3))
    matrix = A @ A.T + np.eye(size)
    return matrix, np.linalg.cholesky(matrix), np.asfortranarray(rng.normal(size=(size, size + 7)))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_factor_equals_that_of_cholesky(size, order):
    matrix, L, _ = problem(size)
    np.testing.assert_allclose(finished(factor(matrix.copy(order=order))), L, atol=1e-12)


def test_a_matrix_that_is_not_positive_definite_has_no_factor():
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        finished(factor(np.diag([1.0] * STRIP + [-1.0])))


@pytest.mark.parametrize("size", SIZES)
def test_triangles_are_solved_and_inverted(size):
    matrix, L, B = problem(size)
    expected = np.linalg.solve(L, B)
    np.testing.assert_allclose(finished(solved(L, B.copy(order="F"))), expected, atol=1e-11)
    expected = np.linalg.solve(L.T, B)
    found = finished(solved(L, B.copy(order="F"), transposed=True))
    np.testing.assert_allclose(found, expected, atol=1e-11)
    np.testing.assert_allclose(finished(inverse_root(L)), np.linalg.inv(L), atol=1e-11)
    np.testing.assert_allclose(finished(inverse(L)), np.linalg.inv(matrix), atol=1e-11)


@pytest.mark.parametrize("size", SIZES)
def test_products_agree_with_numpy(size):
    matrix, L, B = problem(size)
    np.testing.assert_allclose(finished(congruent(matrix, L)), L.T @ matrix @ L, rtol=1e-9)
    np.testing.assert_allclose(np.tril(finished(squared(B))), np.tril(B.T @ B), atol=1e-10)
    np.testing.assert_allclose(finished(product(matrix, B)), matrix @ B, atol=1e-10)


def test_no_slice_is_of_more_than_some_columns():
    matrix, L, B = problem(10 * STRIP)
    for work in (factor(matrix), solved(L, B), inverse(L), squared(B), congruent(matrix, L)):
        ticks = list(work)
        assert len(ticks) >= 10
        assert max(ticks) < 0.4 * sum(ticks)
