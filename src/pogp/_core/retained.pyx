# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The retained-data posterior, compiled: the twin of `retained_reference.Retained`.

P and K are kept by their lower triangles in column-major arrays with leading dimension `capacity`,
inputs one contiguous row per input dimension; the points occupy slots 0 … size − 1.

The learning loop (`learner.pyx`) never forms the augmented dictionary unless the newest point
stays: three vectors describe it (the diagonal `g` of P, α in `a`, the influence `v`), and an append
followed by a removal is one rank-two update of P (mathematics.md §1).

A block of samples is learned with products of matrices. `_foresee` solves for all of them at once;
`solved` is then carried through every append and removal as α is. The updates of P are owed until
the block ends (`_settle`). Between calls nothing is due.
"""

import numpy as np

from libc.math cimport fabs, fmax, isfinite, sqrt
from libc.string cimport memcpy
from scipy.linalg.cython_blas cimport dasum, ddot, dgemv, dger, dsymm, dsymv, dsyr2, dsyr2k

from pogp._core.program cimport Program
from pogp._core.slots cimport aligned, full, get_column, move_last, pack, pointer, put_column, unpack

from pogp._core.retained_reference import (
    CAREFUL_RATIO, EPS, MAX_REFINEMENTS, MEND_INTERVAL, POLISH_INTERVAL, check_state,
)

BLOCK = 32  # samples learned at once, and updates that P may owe

cdef int ONE = 1, LIMIT = BLOCK
cdef char LOWER = b"L", LEFT = b"L", PLAIN = b"N", TRANSPOSED = b"T"
cdef double UNIT = 1.0, ZERO = 0.0, MINUS = -1.0
cdef double CAREFUL = CAREFUL_RATIO, ROUNDING = EPS
cdef int REFINEMENTS = MAX_REFINEMENTS
cdef long long MEND = MEND_INTERVAL, POLISH = POLISH_INTERVAL
cdef Py_ssize_t VECTORS = 16 + 4 * BLOCK  # of length `capacity`, before samples and stack


cdef class Retained:
    """P, α and K of the retained points; knows how to append and remove, and nothing of why."""

    def __init__(self, program, double noise, double mean, Py_ssize_t dimension):
        self.program = Program(program, dimension)
        self.noise = noise
        self.mean = mean
        self.dimension = dimension
        self.careful = noise < CAREFUL * self.program.kappa0
        self._allocate(16)

    # ---- what can be seen -------------------------------------------------------------------

    @property
    def inputs(self):
        return self._inputs[:, :self.size].T.copy()

    @property
    def targets(self):
        return self._targets[:self.size].copy()

    @property
    def arrivals(self):
        return self._arrivals[:self.size].copy()

    @property
    def weights(self):
        return self._alpha[:self.size].copy()

    @property
    def precision(self):
        return full(self._P, self.size)

    @property
    def gram(self):
        return full(self._K, self.size)

    @property
    def diagonal(self):
        return np.diagonal(self._P)[:self.size].copy()

    @property
    def nbytes(self):
        arrays = (self._inputs, self._targets, self._arrivals, self._alpha, self._P, self._K,
                  self._scratch)
        return sum(array.nbytes for array in arrays)

    def column(self, Py_ssize_t j):
        column = np.empty(self.size)
        cdef double[::1] out = column
        get_column(self.P, self.capacity, j, self.size, &out[0])
        return column

    def predict(self, const double[:, ::1] X):
        """See `retained_reference.Retained.predict`. Many threads may call this while none learns."""
        cdef int m = <int> self.size
        cdef Py_ssize_t q, n = X.shape[0]
        cdef double explained
        mean, variance = np.full(n, self.mean), np.full(n, self.program.kappa0)
        if n == 0 or m == 0:
            return mean, variance
        cross, solved, residual = self.project(X)
        cdef double[::1] mean_v = mean, variance_v = variance
        cdef double* cross_p = pointer(cross)
        cdef double* solved_p = pointer(solved)
        cdef double* residual_p = pointer(residual) if self.careful else NULL
        for q in range(n):
            mean_v[q] += ddot(&m, cross_p + q * m, &ONE, self.alpha, &ONE)
            explained = ddot(&m, cross_p + q * m, &ONE, solved_p + q * m, &ONE)
            if self.careful:
                explained += ddot(&m, residual_p + q * m, &ONE, solved_p + q * m, &ONE)
            variance_v[q] = fmax(variance_v[q] - explained, 0.0)
        return mean, variance

    def project(self, const double[:, ::1] X):
        """See `retained_reference.Retained.project`."""
        cdef Py_ssize_t q, queries = X.shape[0], m = self.size
        cross = self.program.cross(self._inputs, m, X)
        solved = np.empty((queries, m))
        residual = np.zeros((queries, m)) if self.careful else None
        if queries == 0 or m == 0:
            return cross, solved, residual
        cdef double* cross_p = pointer(cross)
        cdef double* solved_p = pointer(solved)
        cdef double* residual_p = pointer(residual) if self.careful else NULL
        with nogil:
            self._times(cross_p, queries, m, solved_p)
            if self.careful:
                for q in range(queries):
                    self._refine(cross_p + q * m, solved_p + q * m, residual_p + q * m)
        return cross, solved, residual

    def drift(self):
        product = self.precision @ self.gram + self.noise * self.precision
        return float(np.abs(product - np.eye(self.size)).max(initial=0.0))

    def state(self):
        """See `retained_reference.Retained.state`; the arrays are copies."""
        return {
            "inputs": self.inputs, "targets": self.targets, "arrivals": self.arrivals,
            "weights": self.weights, "precision": pack(self._P, self.size),
            "gram": pack(self._K, self.size),
        }

    def restore(self, state):
        """Take over a state that `state` returned."""
        self._adopt(check_state(state, self.dimension), 0)

    def _adopt(self, state, Py_ssize_t capacity):
        cdef Py_ssize_t j, size = len(state["targets"])
        self._allocate(max(size + 1, capacity))
        self.size = size
        self._inputs[:, :size] = state["inputs"].T
        self._targets[:size] = state["targets"]
        self._arrivals[:size] = state["arrivals"]
        self._alpha[:size] = state["weights"]
        unpack(state["precision"], self._P, size)
        unpack(state["gram"], self._K, size)
        for j in range(size):
            self.diagonal_p[j] = self.P[j * (self.capacity + 1)]

    # ---- what changes it --------------------------------------------------------------------

    def append(self, const double[::1] x, double y, long long arrival):
        """Add (x, y) in the last slot; return the mean and variance of y predicted before that."""
        cdef double mean, s
        self.reserve(self.size + 1)
        with nogil:
            self._foresee(&x[0], 1)
            s = self._predict(0, 1, &mean)
            self._augment(y, mean, s)
            self._stay(&x[0], y, arrival, s)
            memcpy(self.alpha, self.a, self.size * sizeof(double))
            self._settle()
        return mean, s

    def remove(self, Py_ssize_t j):
        """Forget slot j; the last slot moves into its place."""
        cdef Py_ssize_t n = self.size
        cdef double factor
        cdef Py_ssize_t i
        with nogil:
            get_column(self.P, self.capacity, j, n, self.c)
            factor = self.alpha[j] / self.c[j]
            for i in range(n):
                self.alpha[i] -= self.c[i] * factor
            self.alpha[j] = self.alpha[n - 1]
            self._drop(j, n)
            self._settle()

    def mend(self, long long arrival):
        """See `retained_reference.Retained.mend`."""
        with nogil:
            self._mend(arrival, 1)

    def reserve(self, Py_ssize_t points):
        """Make room for so many points, by doubling; nothing but memory changes."""
        if points <= self.capacity:
            return
        self._adopt(self.state(), max(points, 2 * self.capacity))

    # ---- a block of samples, and the one at hand ----------------------------------------------

    cdef void _foresee(self, const double* X, Py_ssize_t n) noexcept nogil:
        """Fill `cross` and `solved` for the next n ≤ BLOCK samples, given the points of now."""
        cdef Py_ssize_t i, d, p = self.dimension
        for i in range(n):
            self.program.column(self.inputs_p, self.capacity, self.size, X + i * p,
                                self.cross + i * self.capacity, self.stack)
            for d in range(p):
                self.samples[d * LIMIT + i] = X[i * p + d]
        if self.size > 0:
            self._times(self.cross, n, self.capacity, self.solved)

    cdef double _predict(self, Py_ssize_t i, Py_ssize_t n, double* mean) noexcept nogil:
        """Turn to sample i of the block of n; return the variance of y there, and its mean."""
        cdef int m = <int> self.size
        cdef double explained = 0.0
        self.at = i
        self.ahead = n - i - 1
        self.k = self.cross + i * self.capacity
        self.w = self.solved + i * self.capacity
        mean[0] = self.mean
        if m > 0:
            if self.careful:
                self._refine(self.k, self.w, self.u)
                explained = ddot(&m, self.w, &ONE, self.u, &ONE)
            explained += ddot(&m, self.k, &ONE, self.w, &ONE)
            mean[0] += ddot(&m, self.k, &ONE, self.alpha, &ONE)
        return fmax(self.program.kappa0 - explained, 0.0) + self.noise

    cdef void _refine(self, const double* k, double* w, double* residual) noexcept nogil:
        """Refine w = Pk until its residual, which is filled in, is rounding."""
        cdef int m = <int> self.size, ld = <int> self.capacity, i
        cdef double largest = self._residual(k, w, residual), rounding
        for i in range(REFINEMENTS):
            rounding = 4.0 * ROUNDING * self.program.kappa0 * (1.0 + dasum(&m, w, &ONE))
            if largest <= rounding:
                break
            dsymv(&LOWER, &m, &UNIT, self.P, &ld, residual, &ONE, &UNIT, w, &ONE)
            largest = self._residual(k, w, residual)

    cdef double _residual(self, const double* b, const double* solution,
                          double* residual) noexcept nogil:
        """Fill b − (K + σ²I)·solution; return its largest entry."""
        cdef int m = <int> self.size, ld = <int> self.capacity
        cdef double largest = 0.0
        cdef Py_ssize_t i
        for i in range(m):
            residual[i] = b[i] - self.noise * solution[i]
        dsymv(&LOWER, &m, &MINUS, self.K, &ld, <double*> solution, &ONE, &UNIT, residual, &ONE)
        for i in range(m):
            largest = fmax(largest, fabs(residual[i]))
        return largest

    cdef bint _augment(self, double y, double mean, double s) noexcept nogil:
        """Describe the augmented dictionary by g, a and v (mathematics.md §1); say if all is finite."""
        cdef Py_ssize_t i, m = self.size
        cdef int n = <int> m + 1
        cdef double r = (y - mean) / s, inverse = 1.0 / s, latent = s - self.noise
        for i in range(m):
            self.g[i] = self.diagonal_p[i] + self.w[i] * self.w[i] * inverse
            self.a[i] = self.alpha[i] - self.w[i] * r
            self.v[i] = self.noise * self.w[i] * inverse
        self.g[m] = inverse
        self.a[m] = r
        self.v[m] = latent * inverse
        self.variance = self.noise + self.noise * self.v[m]
        self.shift = 0.0
        self.gain = 0.0
        return isfinite(s + dasum(&n, self.a, &ONE) + dasum(&n, self.g, &ONE))

    # ---- what a removal changes -------------------------------------------------------------

    cdef void _augmented_column(self, Py_ssize_t j, double s) noexcept nogil:
        """Fill c with column j of the augmented P, and u with that of P if the newest stays."""
        cdef Py_ssize_t i, m = self.size
        cdef double factor
        if j == m:
            for i in range(m):
                self.c[i] = -self.w[i] / s
            self.c[m] = 1.0 / s
            return
        self._column(j, m, self.u)
        factor = self.w[j] / s
        for i in range(m):
            self.c[i] = self.u[i] + self.w[i] * factor
        self.c[m] = -factor

    cdef void _column(self, Py_ssize_t j, Py_ssize_t n, double* out) noexcept nogil:
        """Fill column j of P, what is due included."""
        cdef int m = <int> n, ld = <int> self.capacity
        get_column(self.P, self.capacity, j, n, out)
        if self.due > 0:  # the entries j of left and right are vectors of stride `capacity`
            dgemv(&PLAIN, &m, &self.due, &UNIT, self.left, &ld, self.right + j, &ld, &UNIT, out, &ONE)
            dgemv(&PLAIN, &m, &self.due, &UNIT, self.right, &ld, self.left + j, &ld, &UNIT, out, &ONE)

    cdef void _follow(self, Py_ssize_t j, Py_ssize_t n) noexcept nogil:
        """Carry v, a, g and the marginal at x through the removal of slot j, whose column is c."""
        cdef Py_ssize_t i
        cdef double pivot = self.c[j], by_v = self.v[j] / pivot, by_a = self.a[j] / pivot
        self.shift += by_v * self.a[j]
        self.gain += by_v * self.v[j]
        for i in range(n):
            self.v[i] -= self.c[i] * by_v
            self.a[i] -= self.c[i] * by_a
            self.g[i] -= self.c[i] * self.c[i] / pivot
        self.v[j] = self.v[n - 1]
        self.a[j] = self.a[n - 1]
        self.g[j] = self.g[n - 1]

    cdef void _leave_at_once(self) noexcept nogil:
        """The newest goes: P and α are what they were, to the last bit."""
        cdef Py_ssize_t m = self.size
        memcpy(self.v, self.w, m * sizeof(double))
        memcpy(self.a, self.alpha, m * sizeof(double))
        memcpy(self.g, self.diagonal_p, m * sizeof(double))

    cdef void _replace(self, Py_ssize_t j, const double* x, double y, long long arrival,
                       double s) noexcept nogil:
        """The newest takes slot j: append and removal as one rank-two update of P (mathematics.md §1)."""
        cdef Py_ssize_t i, m = self.size
        cdef double by_w = 1.0 / sqrt(s), by_c = 1.0 / sqrt(self.c[j])
        cdef double p_jj = self.u[j], w_j = self.w[j], scale = 1.0 / (s * self.c[j])
        cdef double* left
        cdef double* right
        if self.ahead > 0:
            self._tell(x, s)
            self._lose(j, m)
            for i in range(self.ahead):
                self.k[(i + 1) * self.capacity + j] = self.near[i]
                self.w[(i + 1) * self.capacity + j] = self.share[i] - self.c[m] * self.loss[i]
        self._make_room()
        left = self.left + self.due * self.capacity
        right = self.right + self.due * self.capacity
        for i in range(m):
            # wwᵀ/s − ccᵀ/c_j as the symmetric product of their difference and their sum
            left[i] = 0.5 * (by_w * self.w[i] - by_c * self.c[i])
            right[i] = by_w * self.w[i] + by_c * self.c[i]
            self.u[i] = (w_j * self.u[i] - p_jj * self.w[i]) * scale  # the newest's column of P
        self.u[j] = p_jj * scale
        self._owe(m)
        self._put(j, m)
        self._place(j, x, y, arrival)

    cdef void _stay(self, const double* x, double y, long long arrival, double s) noexcept nogil:
        """Nothing goes: border P and K by the newest."""
        cdef Py_ssize_t i, m = self.size
        cdef double inverse = 1.0 / s
        cdef double* left
        cdef double* right
        if self.ahead > 0:
            self._tell(x, s)
            for i in range(self.ahead):
                self.k[(i + 1) * self.capacity + m] = self.near[i]
                self.w[(i + 1) * self.capacity + m] = self.share[i]
        self._make_room()
        left = self.left + self.due * self.capacity
        right = self.right + self.due * self.capacity
        for i in range(m):
            left[i] = 0.5 * inverse * self.w[i]
            right[i] = self.w[i]
            self.u[i] = -self.w[i] * inverse
        self.u[m] = inverse
        self._owe(m)
        self.size = m + 1
        self._put(m, m + 1)
        self._place(m, x, y, arrival)

    cdef void _put(self, Py_ssize_t j, Py_ssize_t n) noexcept nogil:
        """Write the newest's columns u of P, whatever was due there, and k of K in slot j."""
        cdef int row
        for row in range(self.due):
            self.left[row * self.capacity + j] = 0.0
            self.right[row * self.capacity + j] = 0.0
        self.diagonal_p[j] = self.u[j]
        self.k[j] = self.program.kappa0
        put_column(self.P, self.capacity, j, n, self.u)
        put_column(self.K, self.capacity, j, n, self.k)

    cdef void _place(self, Py_ssize_t j, const double* x, double y, long long arrival) noexcept nogil:
        cdef Py_ssize_t d
        for d in range(self.dimension):
            self.inputs_p[d * self.capacity + j] = x[d]
        self.targets_p[j] = y
        self.arrivals_p[j] = arrival

    cdef void _drop(self, Py_ssize_t j, Py_ssize_t n) noexcept nogil:
        """Remove slot j, whose column of P is c, of n; the last slot moves into its place."""
        cdef Py_ssize_t i, d, last = n - 1
        cdef double factor = -0.5 / self.c[j]
        cdef double* left
        cdef double* right
        if self.ahead > 0:
            self._lose(j, n)
            for i in range(1, self.ahead + 1):
                self.k[i * self.capacity + j] = self.k[i * self.capacity + last]
                self.w[i * self.capacity + j] = self.w[i * self.capacity + last]
        self._make_room()
        left = self.left + self.due * self.capacity
        right = self.right + self.due * self.capacity
        for i in range(n):
            left[i] = factor * self.c[i]
            right[i] = self.c[i]
        self._owe(n)
        self.size = last
        if j == last:
            return
        move_last(self.P, self.capacity, j, n, self.z)
        move_last(self.K, self.capacity, j, n, self.z)
        for i in range(self.due):
            self.left[i * self.capacity + j] = self.left[i * self.capacity + last]
            self.right[i * self.capacity + j] = self.right[i * self.capacity + last]
        for d in range(self.dimension):
            self.inputs_p[d * self.capacity + j] = self.inputs_p[d * self.capacity + last]
        self.diagonal_p[j] = self.diagonal_p[last]
        self.targets_p[j] = self.targets_p[last]
        self.arrivals_p[j] = self.arrivals_p[last]

    # ---- what the samples ahead are told ------------------------------------------------------

    cdef void _tell(self, const double* x, double s) noexcept nogil:
        """The newest is appended: solved −= w·share, as α −= w·r; and its own entry is share."""
        cdef int m = <int> self.size, ld = <int> self.capacity, ahead = <int> self.ahead, i
        cdef double inverse = 1.0 / s, minus = -inverse
        self.program.column(self.samples + self.at + 1, LIMIT, ahead, x, self.near, self.stack)
        for i in range(ahead):
            self.share[i] = self.near[i] * inverse
        if m > 0:
            dgemv(&TRANSPOSED, &m, &ahead, &minus, self.k + ld, &ld, self.w, &ONE, &UNIT, self.share,
                  &ONE)
            dger(&m, &ahead, &MINUS, self.w, &ONE, self.share, &ONE, self.w + ld, &ld)

    cdef void _lose(self, Py_ssize_t j, Py_ssize_t n) noexcept nogil:
        """Slot j of n is removed: solved −= c·solved_j/c_j, as for α."""
        cdef int m = <int> n, ld = <int> self.capacity, ahead = <int> self.ahead, i
        for i in range(ahead):
            self.loss[i] = self.w[(i + 1) * self.capacity + j] / self.c[j]
        dger(&m, &ahead, &MINUS, self.c, &ONE, self.loss, &ONE, self.w + ld, &ld)

    # ---- what P owes --------------------------------------------------------------------------

    cdef void _make_room(self) noexcept nogil:
        if self.due == LIMIT:
            self._settle()

    cdef void _owe(self, Py_ssize_t n) noexcept nogil:
        """Count in the pair that was written after those that are due."""
        cdef const double* left = self.left + self.due * self.capacity
        cdef const double* right = self.right + self.due * self.capacity
        cdef Py_ssize_t i
        for i in range(n):
            self.diagonal_p[i] += 2.0 * left[i] * right[i]
        self.due += 1

    cdef void _settle(self) noexcept nogil:
        """Apply what is due."""
        cdef int m = <int> self.size, ld = <int> self.capacity
        cdef Py_ssize_t i
        if self.due == 0:
            return
        if self.due == 1:
            dsyr2(&LOWER, &m, &UNIT, self.left, &ONE, self.right, &ONE, self.P, &ld)
        else:
            dsyr2k(&LOWER, &PLAIN, &m, &self.due, &UNIT, self.left, &ld, self.right, &ld, &UNIT,
                   self.P, &ld)
        self.due = 0
        for i in range(m):
            self.diagonal_p[i] = self.P[i * (self.capacity + 1)]

    # ---- staying exact (mathematics.md §6) -------------------------------------------------------

    cdef void _mend(self, long long first, Py_ssize_t samples) noexcept nogil:
        """Do what is due after so many samples; nothing is owed."""
        cdef int m = <int> self.size, ld = <int> self.capacity
        cdef long long t, interval = 1 if self.careful else MEND
        cdef Py_ssize_t i
        if m == 0:
            return
        for t in range(first, first + samples):
            if t % interval == 0:
                self._mend_slot(t // interval % m)
            if t % POLISH == 0:  # α += P(y − mean − Aα)
                for i in range(m):
                    self.c[i] = self.targets_p[i] - self.mean
                self._residual(self.c, self.alpha, self.z)
                dsymv(&LOWER, &m, &UNIT, self.P, &ld, self.z, &ONE, &UNIT, self.alpha, &ONE)

    cdef void _mend_slot(self, Py_ssize_t j) noexcept nogil:
        cdef int m = <int> self.size, ld = <int> self.capacity
        cdef Py_ssize_t i
        cdef double scale
        get_column(self.K, self.capacity, j, m, self.c)
        self.c[j] += self.noise
        scale = 1.0 / self.c[j]
        dsymv(&LOWER, &m, &scale, self.P, &ld, self.c, &ONE, &ZERO, self.u, &ONE)
        self.u[j] -= scale
        for i in range(j):
            self.P[i * self.capacity + j] -= self.u[i]
        for i in range(j + 1, m):
            self.P[j * self.capacity + i] -= self.u[i]
        self.diagonal_p[j] += scale * ddot(&m, self.c, &ONE, self.u, &ONE) - 2.0 * self.u[j]
        self.P[j * (self.capacity + 1)] = self.diagonal_p[j]

    # ---- memory -----------------------------------------------------------------------------

    cdef _allocate(self, Py_ssize_t capacity):
        """Start afresh, empty, with room for so many points (a whole number of cache lines)."""
        capacity = max((capacity + 7) // 8 * 8, BLOCK)
        cdef Py_ssize_t p = self.dimension
        inputs = aligned((p, capacity))
        targets = aligned((capacity,))
        arrivals = np.zeros(capacity, dtype=np.int64)
        alpha = aligned((capacity,))
        P = aligned((capacity, capacity))
        K = aligned((capacity, capacity))
        scratch = aligned((VECTORS + p + self.program.depth, capacity))
        cdef long long[::1] arrivals_v = arrivals
        self._inputs, self._targets, self._arrivals = inputs, targets, arrivals
        self._alpha, self._P, self._K, self._scratch = alpha, P, K, scratch
        self.inputs_p, self.targets_p = pointer(inputs), pointer(targets)
        self.arrivals_p = &arrivals_v[0]
        self.alpha, self.P, self.K = pointer(alpha), pointer(P), pointer(K)
        cdef double* start = pointer(scratch)
        self.v, self.a, self.g, self.c = (start, start + capacity, start + 2 * capacity,
                                          start + 3 * capacity)
        self.u, self.z, self.diagonal_p = (start + 4 * capacity, start + 5 * capacity,
                                           start + 6 * capacity)
        self.near, self.share, self.loss = (start + 7 * capacity, start + 8 * capacity,
                                            start + 9 * capacity)
        self.spare = start + 10 * capacity
        start += 16 * capacity
        self.left, self.right = start, start + LIMIT * capacity
        self.cross, self.solved = start + 2 * LIMIT * capacity, start + 3 * LIMIT * capacity
        start += 4 * LIMIT * capacity
        self.samples, self.stack = start, start + p * capacity
        self.due, self.ahead = 0, 0
        self.capacity = capacity
        self.size = 0

    cdef void _times(self, double* rows, Py_ssize_t n, Py_ssize_t stride, double* out) noexcept nogil:
        """out = rows·P, for n rows `stride` apart."""
        cdef int m = <int> self.size, ld = <int> self.capacity, count = <int> n, apart = <int> stride
        if n == 1:
            dsymv(&LOWER, &m, &UNIT, self.P, &ld, rows, &ONE, &ZERO, out, &ONE)
        else:
            dsymm(&LEFT, &LOWER, &m, &count, &UNIT, self.P, &ld, rows, &apart, &ZERO, out, &apart)
