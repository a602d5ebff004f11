# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The retained-data posterior, compiled: the twin of `retained_reference.Retained`.

P and K are kept by their lower triangles in column-major arrays with leading dimension `capacity`,
inputs one contiguous row per input dimension; the points occupy slots 0 … size − 1.

The learning loop (`learner.pyx`) never forms the augmented dictionary unless the newest point
stays: three vectors describe it (the diagonal `g` of P, α in `a`, the influence `v`), and an append
followed by a removal is one rank-two update of P in place (mathematics.md §1).
"""

import numpy as np

from libc.math cimport fabs, fmax, sqrt
from libc.string cimport memcpy
from scipy.linalg.cython_blas cimport dasum, ddot, dsymm, dsymv, dsyr, dsyr2
from scipy.linalg.cython_lapack cimport dpotrf, dpotri

from pogp._core.program cimport Program
from pogp._core.slots cimport aligned, full, get_column, move_last, pack, pointer, put_column, unpack

from pogp._core.retained_reference import (
    CAREFUL_RATIO, DRIFT_TOLERANCE, EPS, MAX_REFINEMENTS, MIN_CHECK_INTERVAL, QUERIES as BLOCK,
    check_state,
)

cdef int ONE = 1
cdef char LOWER = b"L"
cdef char LEFT = b"L"
cdef double UNIT = 1.0, ZERO = 0.0, HALF = 0.5, MINUS = -1.0
cdef double CAREFUL = CAREFUL_RATIO, TOLERANCE = DRIFT_TOLERANCE, ROUNDING = EPS
cdef int REFINEMENTS = MAX_REFINEMENTS
cdef Py_ssize_t QUERIES = BLOCK
cdef Py_ssize_t CHECK_INTERVAL = MIN_CHECK_INTERVAL
cdef Py_ssize_t VECTORS = 12  # scratch vectors of length `capacity`, before the kernel's stack


cdef class Retained:
    """P, α and K of the retained points; knows how to append and remove, and nothing of why."""

    def __init__(self, program, double noise, double mean, Py_ssize_t dimension):
        self.program = Program(program, dimension)
        self.noise = noise
        self.mean = mean
        self.dimension = dimension
        self.tolerance = TOLERANCE
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
        cdef Py_ssize_t start, q, count, n = X.shape[0]
        cdef double explained
        cdef double* cross_p
        cdef double* solved_p
        cdef double* residual_p
        mean, variance = np.empty(n), np.empty(n)
        cdef double[::1] mean_v = mean, variance_v = variance
        for start in range(0, n, QUERIES):
            count = min(QUERIES, n - start)
            cross, solved, residual = self.project(X[start:start + count])
            cross_p, solved_p = pointer(cross), pointer(solved)
            residual_p = NULL if residual is None else pointer(residual)
            for q in range(count):
                explained = 0.0
                mean_v[start + q] = self.mean
                if m > 0:
                    mean_v[start + q] += ddot(&m, cross_p + q * m, &ONE, self.alpha, &ONE)
                    explained = ddot(&m, cross_p + q * m, &ONE, solved_p + q * m, &ONE)
                    if residual_p != NULL:
                        explained += ddot(&m, residual_p + q * m, &ONE, solved_p + q * m, &ONE)
                variance_v[start + q] = fmax(self.program.prior(&X[start + q, 0]) - explained, 0.0)
        return mean, variance

    def project(self, const double[:, ::1] X):
        """See `retained_reference.Retained.project`."""
        cdef Py_ssize_t q, queries = X.shape[0], m = self.size
        cross = self.program.cross(self._inputs, m, X)
        solved = np.empty((queries, m))
        cdef double kappa0 = self.program.priors(X).max(initial=0.0)
        cdef bint careful = self._careful(kappa0)
        residual = np.zeros((queries, m)) if careful else None
        if queries == 0 or m == 0:
            return cross, solved, residual
        cdef double* cross_p = pointer(cross)
        cdef double* solved_p = pointer(solved)
        cdef double* residual_p = pointer(residual) if careful else NULL
        with nogil:
            if careful:
                for q in range(queries):
                    self._solve(cross_p + q * m, solved_p + q * m, residual_p + q * m, kappa0)
            else:
                self._times(self.P, cross_p, queries, solved_p)
        return cross, solved, residual

    def drift(self):
        product = self.precision @ self.gram + self.noise * self.precision
        return float(np.abs(product - np.eye(self.size)).max(initial=0.0))

    def state(self):
        """See `retained_reference.Retained.state`; the arrays are copies."""
        return {
            "inputs": self.inputs, "targets": self.targets, "arrivals": self.arrivals,
            "weights": self.weights, "precision": pack(self._P, self.size),
            "gram": pack(self._K, self.size), "rebuilds": self.rebuilds, "unchecked": self.unchecked,
            "tolerance": self.tolerance,
        }

    def restore(self, state):
        """Take over a state that `state` returned."""
        self._adopt(check_state(state, self.dimension), 0)

    def _adopt(self, state, Py_ssize_t capacity):
        cdef Py_ssize_t size = len(state["targets"])
        self._allocate(max(size + 1, capacity))
        self.size = size
        self._inputs[:, :size] = state["inputs"].T
        self._targets[:size] = state["targets"]
        self._arrivals[:size] = state["arrivals"]
        self._alpha[:size] = state["weights"]
        unpack(state["precision"], self._P, size)
        unpack(state["gram"], self._K, size)
        self.rebuilds = state["rebuilds"]
        self.unchecked = state["unchecked"]
        self.tolerance = state["tolerance"]

    # ---- what changes it --------------------------------------------------------------------

    def append(self, const double[::1] x, double y, long long arrival):
        """Add (x, y) in the last slot; return the mean and variance of y predicted before that."""
        cdef double mean, s
        self.reserve(self.size + 1)
        with nogil:
            self._check_drift(arrival)
            s = self._predict(&x[0], &mean)
            self._augment(y, mean, s)
            self._stay(&x[0], y, arrival, s)
            memcpy(self.alpha, self.a, self.size * sizeof(double))
        return mean, s

    def remove(self, Py_ssize_t j):
        """Forget slot j; the last slot moves into its place."""
        cdef Py_ssize_t n = self.size
        cdef double factor
        with nogil:
            get_column(self.P, self.capacity, j, n, self.c)
            factor = self.alpha[j] / self.c[j]
            for i in range(n):
                self.alpha[i] -= self.c[i] * factor
            self.alpha[j] = self.alpha[n - 1]
            self._drop(j, n)
            self.size = n - 1

    def rebuild(self):
        """Solve afresh for P and α by Cholesky factorisation."""
        with nogil:
            self._rebuild()

    def reserve(self, Py_ssize_t points):
        """Make room for so many points, by doubling; nothing but memory changes."""
        if points <= self.capacity:
            return
        self._adopt(self.state(), max(points, 2 * self.capacity))

    cdef double _predict(self, const double* x, double* mean) noexcept nogil:
        """Fill k and w = Pk; return the variance of y at x, and its mean."""
        cdef int m = <int> self.size
        cdef double explained = 0.0, kappa0 = self.program.prior(x)
        mean[0] = self.mean
        if m > 0:
            self.program.column(self.inputs_p, self.capacity, m, x, self.k, self.stack)
            self._solve(self.k, self.w, self.u, kappa0)
            explained = ddot(&m, self.k, &ONE, self.w, &ONE)
            if self._careful(kappa0):
                explained += ddot(&m, self.w, &ONE, self.u, &ONE)
            mean[0] += ddot(&m, self.k, &ONE, self.alpha, &ONE)
        return fmax(kappa0 - explained, 0.0) + self.noise

    cdef inline bint _careful(self, double kappa0) noexcept nogil:
        """Whether the noise is so small beside κ(x, x) that products with P are refined."""
        return self.noise < CAREFUL * kappa0

    cdef void _solve(self, const double* k, double* w, double* residual,
                     double kappa0) noexcept nogil:
        """Fill w = (K + σ²I)⁻¹k; where the noise is small, refined, with its residual."""
        cdef int m = <int> self.size, ld = <int> self.capacity, i
        cdef double largest, rounding
        dsymv(&LOWER, &m, &UNIT, self.P, &ld, <double*> k, &ONE, &ZERO, w, &ONE)
        if not self._careful(kappa0):
            return
        largest = self._residual(k, w, residual)
        for i in range(REFINEMENTS):
            rounding = 4.0 * ROUNDING * kappa0 * (1.0 + dasum(&m, w, &ONE))
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

    cdef void _augment(self, double y, double mean, double s) noexcept nogil:
        """Describe the augmented dictionary by g, a and v (mathematics.md §1)."""
        cdef Py_ssize_t i, m = self.size
        cdef double r = (y - mean) / s, inverse = 1.0 / s, latent = s - self.noise
        for i in range(m):
            self.g[i] = self.P[i * (self.capacity + 1)] + self.w[i] * self.w[i] * inverse
            self.a[i] = self.alpha[i] - self.w[i] * r
            self.v[i] = self.noise * self.w[i] * inverse
        self.g[m] = inverse
        self.a[m] = r
        self.v[m] = latent * inverse
        self.variance = self.noise + self.noise * self.v[m]
        self.shift = 0.0
        self.gain = 0.0

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
        get_column(self.P, self.capacity, j, m, self.u)
        factor = self.w[j] / s
        for i in range(m):
            self.c[i] = self.u[i] + self.w[i] * factor
        self.c[m] = -factor

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
        cdef Py_ssize_t i, m = self.size
        memcpy(self.v, self.w, m * sizeof(double))
        memcpy(self.a, self.alpha, m * sizeof(double))
        for i in range(m):
            self.g[i] = self.P[i * (self.capacity + 1)]

    cdef void _replace(self, Py_ssize_t j, const double* x, double y, long long arrival,
                       double s) noexcept nogil:
        """The newest takes slot j: append and removal as one rank-two update of P (mathematics.md §1)."""
        cdef int m = <int> self.size, ld = <int> self.capacity
        cdef Py_ssize_t i
        cdef double by_w = 1.0 / sqrt(s), by_c = 1.0 / sqrt(self.c[j])
        cdef double p_jj = self.u[j], w_j = self.w[j], scale = 1.0 / (s * self.c[j])
        for i in range(m):
            self.u[i] = (w_j * self.u[i] - p_jj * self.w[i]) * scale  # the newest's column of P
        self.u[j] = p_jj * scale
        for i in range(m):
            self.z[i] = by_w * self.w[i] - by_c * self.c[i]
            self.c[i] = by_w * self.w[i] + by_c * self.c[i]
        # wwᵀ/s − ccᵀ/c_j as the symmetric product of their difference and their sum
        dsyr2(&LOWER, &m, &HALF, self.z, &ONE, self.c, &ONE, self.P, &ld)
        put_column(self.P, self.capacity, j, m, self.u)
        self.k[j] = self.program.prior(x)
        put_column(self.K, self.capacity, j, m, self.k)
        self._place(j, x, y, arrival)

    cdef void _stay(self, const double* x, double y, long long arrival, double s) noexcept nogil:
        """Nothing goes: border P and K by the newest."""
        cdef int m = <int> self.size, ld = <int> self.capacity
        cdef Py_ssize_t i
        cdef double inverse = 1.0 / s
        if m > 0:
            dsyr(&LOWER, &m, &inverse, self.w, &ONE, self.P, &ld)
        for i in range(m):
            self.u[i] = -self.w[i] * inverse
        self.u[m] = inverse
        self.k[m] = self.program.prior(x)
        put_column(self.P, self.capacity, m, m + 1, self.u)
        put_column(self.K, self.capacity, m, m + 1, self.k)
        self._place(m, x, y, arrival)
        self.size = m + 1

    cdef void _place(self, Py_ssize_t j, const double* x, double y, long long arrival) noexcept nogil:
        cdef Py_ssize_t d
        for d in range(self.dimension):
            self.inputs_p[d * self.capacity + j] = x[d]
        self.targets_p[j] = y
        self.arrivals_p[j] = arrival

    cdef void _drop(self, Py_ssize_t j, Py_ssize_t n) noexcept nogil:
        """Remove slot j, whose column of P is c, of n; the last slot moves into its place."""
        cdef int order = <int> n, ld = <int> self.capacity
        cdef double factor = -1.0 / self.c[j]
        cdef Py_ssize_t d, last = n - 1
        dsyr(&LOWER, &order, &factor, self.c, &ONE, self.P, &ld)
        if j == last:
            return
        move_last(self.P, self.capacity, j, n, self.z)
        move_last(self.K, self.capacity, j, n, self.z)
        for d in range(self.dimension):
            self.inputs_p[d * self.capacity + j] = self.inputs_p[d * self.capacity + last]
        self.targets_p[j] = self.targets_p[last]
        self.arrivals_p[j] = self.arrivals_p[last]

    # ---- drift (mathematics.md §6) -----------------------------------------------------------------

    cdef void _check_drift(self, long long turn) noexcept nogil:
        """Once in a while, measure (K + σ²I)P_j − e_j for the slot whose turn it is; mend it."""
        cdef Py_ssize_t j
        self.unchecked += 1
        if self.unchecked < max(self.size, CHECK_INTERVAL) or self.size == 0:
            return
        self.unchecked = 0
        j = turn % self.size
        if not self._column_drift(j) <= self.tolerance:
            self._rebuild()
            self.tolerance = fmax(TOLERANCE, 10.0 * self._column_drift(j))
        else:
            self._polish_weights()

    cdef double _column_drift(self, Py_ssize_t j) noexcept nogil:
        cdef Py_ssize_t i
        get_column(self.P, self.capacity, j, self.size, self.c)
        for i in range(self.size):
            self.z[i] = 0.0
        self.z[j] = 1.0
        return self._residual(self.z, self.c, self.u)

    cdef void _rebuild(self) noexcept nogil:
        cdef int m = <int> self.size, ld = <int> self.capacity, failed = 1
        cdef Py_ssize_t i, j
        cdef double jitter = 0.0, trace = 0.0
        for i in range(m):
            trace += self.K[i * (ld + 1)]
        while failed and m > 0 and jitter <= trace:
            for j in range(m):
                memcpy(self.P + j * (ld + 1), self.K + j * (ld + 1), (m - j) * sizeof(double))
                self.P[j * (ld + 1)] += self.noise + jitter
            dpotrf(&LOWER, &m, self.P, &ld, &failed)
            jitter = fmax(10.0 * jitter, ROUNDING * trace)
        if m > 0:
            dpotri(&LOWER, &m, self.P, &ld, &failed)
            for i in range(m):
                self.c[i] = self.targets_p[i] - self.mean
            dsymv(&LOWER, &m, &UNIT, self.P, &ld, self.c, &ONE, &ZERO, self.alpha, &ONE)
            self._polish_weights()
        self.rebuilds += 1

    cdef void _polish_weights(self) noexcept nogil:
        """α += P(y − mean − (K + σ²I)α)."""
        cdef int m = <int> self.size, ld = <int> self.capacity
        cdef Py_ssize_t i
        for i in range(m):
            self.c[i] = self.targets_p[i] - self.mean
        self._residual(self.c, self.alpha, self.z)
        dsymv(&LOWER, &m, &UNIT, self.P, &ld, self.z, &ONE, &UNIT, self.alpha, &ONE)

    # ---- memory -----------------------------------------------------------------------------

    cdef _allocate(self, Py_ssize_t capacity):
        """Start afresh, empty, with room for so many points (a whole number of cache lines)."""
        capacity = (capacity + 7) // 8 * 8
        cdef Py_ssize_t p = self.dimension, i
        inputs = aligned((p, capacity))
        targets = aligned((capacity,))
        arrivals = np.zeros(capacity, dtype=np.int64)
        alpha = aligned((capacity,))
        P = aligned((capacity, capacity))
        K = aligned((capacity, capacity))
        scratch = aligned((VECTORS + self.program.depth, capacity))
        cdef long long[::1] arrivals_v = arrivals
        self._inputs, self._targets, self._arrivals = inputs, targets, arrivals
        self._alpha, self._P, self._K, self._scratch = alpha, P, K, scratch
        self.inputs_p, self.targets_p = pointer(inputs), pointer(targets)
        self.arrivals_p = &arrivals_v[0]
        self.alpha, self.P, self.K = pointer(alpha), pointer(P), pointer(K)
        cdef double* start = pointer(scratch)
        self.k, self.w, self.v, self.a = (start, start + capacity, start + 2 * capacity,
                                          start + 3 * capacity)
        self.g, self.c, self.u, self.z = (start + 4 * capacity, start + 5 * capacity,
                                          start + 6 * capacity, start + 7 * capacity)
        self.spare = start + 8 * capacity
        self.stack = start + VECTORS * capacity
        self.capacity = capacity
        self.size = 0

    cdef void _times(self, double* matrix, double* rows, Py_ssize_t n, double* out) noexcept nogil:
        """out = rows·matrix, for n rows of length `size`."""
        cdef int m = <int> self.size, ld = <int> self.capacity, count = <int> n
        if n == 1:
            dsymv(&LOWER, &m, &UNIT, matrix, &ld, rows, &ONE, &ZERO, out, &ONE)
        else:
            dsymm(&LEFT, &LOWER, &m, &count, &UNIT, matrix, &ld, rows, &m, &ZERO, out, &m)
