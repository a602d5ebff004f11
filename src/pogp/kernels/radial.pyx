# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Profiles of stationary kernels and their slopes between many points, in one pass."""

import numpy as np

from libc.math cimport exp, fmin, sqrt

cdef double FAR = 1e12  # a squared distance at which every profile has long been zero

cdef dict KINDS = {"RBF": 0, "Matern12": 1, "Matern32": 2, "Matern52": 3}


def profile_and_slope(str name, const double[:, ::1] A, const double[:, ::1] B):
    """Return φ(r) and −φ′(r)/r, (n, m) each, for rows of A and columns of B.

    The slope is zero where r is.
    """
    cdef Py_ssize_t i, j, d, n = A.shape[0], m = B.shape[1], p = A.shape[1]
    cdef int kind = KINDS[name]
    profiles, slopes = np.zeros((n, m)), np.empty((n, m))
    cdef double[:, ::1] phi = profiles, slope = slopes
    cdef double at, difference, s, falling
    cdef double* r2
    cdef double* out
    if n == 0 or m == 0:
        return profiles, slopes
    with nogil:
        for i in range(n):
            r2, out = &phi[i, 0], &slope[i, 0]
            for d in range(p):
                at = A[i, d]
                for j in range(m):
                    difference = B[d, j] - at
                    r2[j] += difference * difference
            for j in range(m):
                r2[j] = fmin(r2[j], FAR)
            if kind == 0:
                for j in range(m):
                    falling = exp(-0.5 * r2[j])
                    out[j] = falling if r2[j] > 0.0 else 0.0
                    r2[j] = falling
            elif kind == 1:
                for j in range(m):
                    s = sqrt(r2[j])
                    falling = exp(-s)
                    out[j] = falling / s if r2[j] > 0.0 else 0.0
                    r2[j] = falling
            elif kind == 2:
                for j in range(m):
                    s = sqrt(3.0 * r2[j])
                    falling = exp(-s)
                    out[j] = 3.0 * falling if r2[j] > 0.0 else 0.0
                    r2[j] = (1.0 + s) * falling
            else:
                for j in range(m):
                    s = sqrt(5.0 * r2[j])
                    falling = exp(-s)
                    out[j] = (5.0 / 3.0) * (1.0 + s) * falling if r2[j] > 0.0 else 0.0
                    r2[j] = (1.0 + s + s * s / 3.0) * falling
    return profiles, slopes
