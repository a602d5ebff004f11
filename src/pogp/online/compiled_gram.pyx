# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""A stationary kernel with a linear part and a constant between samples, and its derivatives.

The samples do not change during a search, so all evaluations use the same memory. Matrices have a row
of m numbers for each sample, which is a column for BLAS. Of symmetric matrices the lower triangle is
filled.
"""

import numpy as np

from libc.math cimport isfinite, sqrt
from libc.string cimport memset
from scipy.linalg.cython_blas cimport ddot, dgemm, dgemv, dtrsm
from scipy.linalg.cython_lapack cimport dpotrf

from pogp.kernels.vectors cimport pogp_add_squares, pogp_decay
from pogp.posteriors.linalg.storage cimport Matrix, fresh, pointer

from pogp.online.evidence import CHUNK, Evidence

cdef int ONE = 1
cdef char LEFT = b"L", RIGHT = b"R", LOWER = b"L", PLAIN = b"N", TRANSPOSED = b"T"
cdef double UNIT = 1.0, ZERO = 0.0, MINUS = -1.0
cdef double FAR = 1e12  # a squared distance at which every profile is zero

# the kinds of kernels, and the factor of r² in the exponent of their profiles
cdef dict KINDS = {"RBF": (0, 0.5), "Matern12": (1, 1.0), "Matern32": (2, 3.0)}


cdef int factorise(double* A, int n, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Fill columns of the Cholesky factor after the preceding ones; return whether that failed."""
    cdef int columns = <int> (stop - start), below = n - <int> start, before = <int> start
    cdef int failed = 0
    cdef double* corner = A + start * (n + 1)
    if before > 0:
        dgemm(&PLAIN, &TRANSPOSED, &below, &columns, &before, &MINUS, A + start, &n, A + start, &n,
              &UNIT, corner, &n)
    dpotrf(&LOWER, &columns, corner, &n, &failed)
    below -= columns
    if below > 0 and not failed:
        dtrsm(&RIGHT, &LOWER, &TRANSPOSED, &PLAIN, &below, &columns, &UNIT, corner, &n,
              corner + columns, &n)
    return failed


cdef void invert(double* L, double* out, int n, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Fill columns of (LLᵀ)⁻¹, from row `start` on."""
    cdef Py_ssize_t j
    cdef int columns = <int> (stop - start), below = n - <int> start
    cdef double* corner = L + start * (n + 1)
    for j in range(start, stop):
        memset(out + j * n + start, 0, below * sizeof(double))
        out[j * (n + 1)] = 1.0
    out += start * (n + 1)
    dtrsm(&LEFT, &LOWER, &PLAIN, &PLAIN, &below, &columns, &UNIT, corner, &n, out, &n)
    dtrsm(&LEFT, &LOWER, &TRANSPOSED, &PLAIN, &below, &columns, &UNIT, corner, &n, out, &n)


cdef class Gram:
    """κ between rows of inputs and m inducing inputs, which may be the samples themselves."""

    cdef _hold(self, str family, X, inducing, rows, Y, weights, extra):
        """Copy the samples, and reserve memory; `rows` and `inducing` are the inputs of the kernel."""
        self.n, self.m, self.p, self.k = len(X), len(inducing), X.shape[1], Y.shape[1]
        self.kind, self.exponent = KINDS[family]
        self.arrays = []
        n, m, p, k, count, most = self.n, self.m, self.p, self.k, len(rows), max(CHUNK, self.m)
        cdef Matrix products = Matrix(count, m)
        np.matmul(rows, inducing.T, out=products.values)
        self.arrays.append(products)
        self.X, self.products, self.Y = self._with(rows), pointer(products.values), self._with(Y)
        self.weights, self.extra = self._with(weights), self._with(extra)
        self.profile, self.slope = self._room(count, m), self._room(count, m)
        self.scaled, self.inducing = self._room(count, p), self._room(p, m)
        self.in_noises, self.residuals, self.a = self._room(n), self._room(n, k), self._room(k, m)
        self.ones = self._with(np.ones(most))
        self.rows, self.columns, self.along = self._room(most), self._room(m), self._room(most, p)
        self.gradient = self._room(p + 4)

    cdef double* _room(self, Py_ssize_t rows, Py_ssize_t columns=1) except? NULL:
        cdef Matrix room
        room = Matrix(rows, columns)  # its memory is reused by the next search
        self.arrays.append(room)
        return pointer(room.values)

    cdef double* _with(self, values) except? NULL:
        held = fresh(values.shape)
        held[...] = values
        self.arrays.append(held)
        return pointer(held)

    cdef _take(self, parameters, Py_ssize_t count):
        """Set the hyperparameters; the inducing inputs are the last m of `count` rows."""
        cdef Py_ssize_t i, d, m = self.m, p = self.p, first = count - self.m
        values = np.exp(parameters)
        inverse = 1.0 / values[:p]
        cdef double* by = pointer(inverse)
        self.variance, self.linear, self.constant = values[p], values[p + 1], values[p + 2]
        for i in range(count):
            for d in range(p):
                self.scaled[i * p + d] = self.X[i * p + d] * by[d]
        for i in range(m):
            for d in range(p):
                self.inducing[d * m + i] = self.scaled[(first + i) * p + d]
        memset(self.columns, 0, m * sizeof(double))
        memset(self.gradient, 0, (p + 4) * sizeof(double))

    cdef Py_ssize_t _reading(self, Py_ssize_t count) noexcept nogil:
        """Return the ticks to evaluate so many numbers of the kernel or of its derivatives."""
        return count * (12 + self.p) // 4

    cdef object _found(self, double value):
        """Return the evidence, or None if it is not finite."""
        cdef Py_ssize_t n = self.n, k = self.k, p = self.p
        cdef double[::1] gradient = <double[:p + 4]> self.gradient
        cdef double[:, ::1] residuals = <double[:n, :k]> self.residuals
        if not isfinite(value) or not np.isfinite(gradient).all():
            return None
        return Evidence(value, np.array(gradient), np.array(residuals))

    cdef void _evaluate(self, Py_ssize_t i, Py_ssize_t first, double* out) noexcept nogil:
        """Fill κ between row i and the inducing inputs from `first` on, its profile and its slope.

        The slope is zero if the distance is.
        """
        cdef Py_ssize_t j, d, m = self.m, count = self.m - first
        cdef double* r2 = self.profile + i * m + first
        cdef double* slope = self.slope + i * m + first
        cdef double* products = self.products + i * m + first
        cdef double s
        # local copies, which no store can change, let the compiler vectorise the loops
        cdef double exponent = self.exponent, variance = self.variance, linear = self.linear
        cdef double constant = self.constant
        out += first
        memset(r2, 0, count * sizeof(double))
        for d in range(self.p):
            pogp_add_squares(self.scaled[i * self.p + d], 1.0, self.inducing + d * m + first, r2, count)
        for j in range(count):
            r2[j] = exponent * (r2[j] if r2[j] < FAR else FAR)  # `fmin` is not vectorised
        if self.kind > 0:
            for j in range(count):
                r2[j] = sqrt(r2[j])
        pogp_decay(r2, slope, count)
        if self.kind == 0:
            for j in range(count):
                s, r2[j] = r2[j], slope[j]
                slope[j] = slope[j] if s > 0.0 else 0.0
        elif self.kind == 1:
            for j in range(count):
                s, r2[j] = r2[j], slope[j]
                slope[j] = slope[j] / s if s > 0.0 else 0.0
        else:
            for j in range(count):
                s = r2[j]
                r2[j] = (1.0 + s) * slope[j]
                slope[j] = 3.0 * slope[j] if s > 0.0 else 0.0
        for j in range(count):
            out[j] = variance * r2[j] + linear * products[j] + constant

    cdef void _evaluate_half(self, Py_ssize_t i, Py_ssize_t own, Py_ssize_t start,
                             double* out) noexcept nogil:
        """Fill κ between row i and the inducing inputs from itself on; before, derivatives are zero."""
        cdef Py_ssize_t m = self.m
        self._evaluate(i, own, out)
        memset(self.profile + i * m + start, 0, (own - start) * sizeof(double))
        memset(self.slope + i * m + start, 0, (own - start) * sizeof(double))

    cdef void _pull(self, double* W, Py_ssize_t start, int count, int first) noexcept nogil:
        """Add the derivatives in the hyperparameters, given those in rows of κ from a column on (W).

        W is overwritten.
        """
        cdef Py_ssize_t i, j, d
        cdef int m = self.m, p = self.p, wide = self.m - first
        cdef double variance = self.variance
        cdef double* row
        cdef double* slope
        cdef double* scaled = self.scaled + start * p
        W += first
        dgemv(&TRANSPOSED, &wide, &count, &UNIT, W, &m, self.ones, &ONE, &ZERO, self.rows, &ONE)
        for i in range(count):
            row, j = W + i * m, (start + i) * m + first
            self.gradient[p] += variance * ddot(&wide, row, &ONE, self.profile + j, &ONE)
            self.gradient[p + 1] += self.linear * ddot(&wide, row, &ONE, self.products + j, &ONE)
            self.gradient[p + 2] += self.constant * self.rows[i]
            slope = self.slope + j
            for j in range(wide):
                row[j] *= variance * slope[j]
        # Σ W_ij (a_id − b_jd)² for every d, expanded into one matrix product
        dgemv(&TRANSPOSED, &wide, &count, &UNIT, W, &m, self.ones, &ONE, &ZERO, self.rows, &ONE)
        dgemv(&PLAIN, &wide, &count, &UNIT, W, &m, self.ones, &ONE, &UNIT, self.columns + first,
              &ONE)
        dgemm(&TRANSPOSED, &PLAIN, &p, &count, &wide, &UNIT, self.inducing + first, &m, W, &m,
              &ZERO, self.along, &p)
        for i in range(count):
            for d in range(p):
                self.gradient[d] += scaled[i * p + d] * (self.rows[i] * scaled[i * p + d]
                                                         - 2.0 * self.along[i * p + d])

    cdef void _pull_rest(self, double noise) noexcept nogil:
        """Add the rest of the expanded squares, and the derivative in the noise."""
        cdef Py_ssize_t i, d, j, m = self.m, p = self.p
        for j in range(m):
            for d in range(p):
                self.gradient[d] += self.columns[j] * self.inducing[d * m + j] ** 2
        for i in range(self.n):
            self.gradient[p + 3] += noise / self.weights[i] * self.in_noises[i]
