# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Triangular solves on the leading part of a larger array, which SciPy would first copy."""

import numpy as np

from scipy.linalg.cython_blas cimport dtrsm

cdef char LEFT = b"L", LOWER = b"L", PLAIN = b"N"
cdef double UNIT = 1.0


def solve_lower(const double[:, ::1] factor, Py_ssize_t size, double[:, ::1] rows):
    """Replace each row b (of length `size`) by L⁻¹b; row j of `factor` is column j of L."""
    cdef int n = <int> size, count = <int> rows.shape[0], ld = <int> factor.shape[1]
    if n == 0 or count == 0:
        return
    with nogil:
        dtrsm(&LEFT, &LOWER, &PLAIN, &PLAIN, &n, &count, &UNIT, <double*> &factor[0, 0], &ld,
              &rows[0, 0], &n)
