"""Linear algebra of the posteriors: symmetric matrices by slot, and triangular solves."""

import numpy as np
from scipy.linalg import solve_triangular

from pogp.arrays import Array
from pogp.backends import BUILT, backend

if BUILT:
    from pogp.posteriors.linalg import triangular


def solve_lower(factor: Array, size: int, rows: Array) -> Array:
    """Return the rows b as L⁻¹b, where row j of `factor` is column j of L (leading part)."""
    if backend() == "compiled":
        solved = np.array(rows, order="C")
        triangular.solve_lower(factor, size, solved)
        return solved
    return np.asarray(solve_triangular(factor[:size, :size], rows.T, lower=False, trans="T").T)
