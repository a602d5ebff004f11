"""The numbers of the package: every value is a float64, every count an int64."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]

LARGEST = 1e100
"""Inputs, targets and kernel values beyond this are refused: their squares would overflow."""

_SQUARABLE = 1e-140
"""Deviations below this are divided by their range before they are squared, or would vanish."""


def diagonal_of(matrix: Array) -> Array:
    """Return the diagonal as a view to write on.

    >>> matrix = np.zeros((2, 2))
    >>> diagonal_of(matrix)[:] += 3.0
    >>> matrix
    array([[3., 0.],
           [0., 3.]])
    """
    view: Array = np.einsum("ii->i", matrix)
    return view


def spread(values: Array) -> Array:
    """Return the standard deviation of each column; one where all values are the same.

    >>> spread(np.array([[1.0, 0.0, 5.0], [3.0, 2e-200, 5.0]]))
    array([1.e+000, 1.e-200, 1.e+000])
    """
    ranges, deviations = np.ptp(values, axis=0), np.std(values, axis=0)
    moved = ranges > 0
    tiny = moved & ~(deviations > _SQUARABLE)
    if tiny.any():  # squares are no float64
        within = ranges * np.std(values / np.where(moved, ranges, 1.0), axis=0)
        deviations = np.where(tiny, within, deviations)
    return np.where(moved, deviations, 1.0)
