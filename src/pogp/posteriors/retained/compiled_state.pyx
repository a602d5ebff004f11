# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The state of the retained-data posterior, compiled, and how it stays exact.

P and K are symmetric matrices by slot (`linalg/symmetric.pyx`). Inputs have one contiguous row per
dimension. The points occupy slots 0 … size − 1. Updates of P are deferred while a block of
samples is learned, and applied at its end.
"""

import numpy as np

from libc.math cimport fabs, fmax
from scipy.linalg.cython_blas cimport dasum, ddot, dsymv

from pogp.kernels.compiled cimport Program
from pogp.posteriors.linalg.storage cimport aligned, get_column, pack, pointer
from pogp.posteriors.linalg.symmetric cimport Symmetric, all_times_base, get, times_base

from pogp.posteriors import slots
from pogp.posteriors.retained import state
from pogp.posteriors.retained.state import check_state

cdef int ONE = 1, BLOCK = slots.BLOCK
cdef char LOWER = b"L"
cdef double UNIT = 1.0, ZERO = 0.0, MINUS = -1.0
cdef double CAREFUL_RATIO = state.CAREFUL_RATIO, EPS = state.EPS
cdef int MAX_REFINEMENTS = state.MAX_REFINEMENTS
cdef long long MEND_INTERVAL = state.MEND_INTERVAL, POLISH_INTERVAL = state.POLISH_INTERVAL
cdef Py_ssize_t VECTORS = 14 + 2 * BLOCK  # of length `capacity`, before samples and stack


cdef class RetainedState:
    """P, α and K of the retained points."""

    compiled = True

    def __init__(self, program, double noise, double mean, Py_ssize_t dimension):
        self.program = Program(program, dimension)
        self.noise = noise
        self.mean = mean
        self.dimension = dimension
        self._allocate(16)

    # ---- properties -------------------------------------------------------------------------

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
        return self._P.full(<int> self.size)

    @property
    def gram(self):
        return self._K.full(<int> self.size)

    @property
    def diagonal(self):
        return self._P._diagonal[:self.size].copy()

    @property
    def nbytes(self):
        arrays = (self._inputs, self._targets, self._arrivals, self._alpha, self._P, self._K,
                  self._scratch)
        return sum(array.nbytes for array in arrays)

    def column(self, Py_ssize_t j):
        column = np.empty(self.size)
        cdef double[::1] out = column
        get(self.P, j, <int> self.size, &out[0])
        return column

    def predict(self, const double[:, ::1] X):
        """See `state.RetainedState.predict`. Many threads may call this while none learns."""
        cdef int m = <int> self.size
        cdef Py_ssize_t q, n = X.shape[0], width = n * self.size
        mean, variance = np.full(n, self.mean), self.program.priors(X)
        if width == 0:
            return mean, variance
        cdef double[::1] mean_v = mean, variance_v = variance
        cdef double[:, ::1] work = np.empty((3 * n + self.program.depth, m))
        cdef double* cross = &work[0, 0]
        cdef double* solved = cross + width
        cdef double* residual = solved + width
        cdef double explained = 0.0
        with nogil:
            for q in range(n):
                self.program.column(self.inputs_p, self.capacity, m, &X[q, 0], cross + q * m,
                                    residual + width)
            self._times(cross, n, m, solved)
            for q in range(n):
                if self._careful(variance_v[q]):
                    self._refine(cross, solved, residual, variance_v[q])
                    explained = ddot(&m, solved, &ONE, residual, &ONE)
                explained += ddot(&m, cross, &ONE, solved, &ONE)
                mean_v[q] += ddot(&m, cross, &ONE, self.alpha, &ONE)
                variance_v[q] = fmax(variance_v[q] - explained, 0.0)
                cross, solved, explained = cross + m, solved + m, 0.0
        return mean, variance

    def project(self, const double[:, ::1] X):
        """See `state.RetainedState.project`."""
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
            self._times(cross_p, queries, m, solved_p)
            if careful:
                for q in range(queries):
                    self._refine(cross_p + q * m, solved_p + q * m, residual_p + q * m, kappa0)
        return cross, solved, residual

    def state(self):
        """See `state.RetainedState.state`; the arrays are copies."""
        return {
            "inputs": self.inputs, "targets": self.targets, "arrivals": self.arrivals,
            "weights": self.weights, "precision": pack(self._P._base, self.size),
            "gram": pack(self._K._base, self.size),
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
        self._P.hold(state["precision"], <int> size)
        self._K.hold(state["gram"], <int> size)

    # ---- products -----------------------------------------------------------------------------

    cdef void _times(self, double* rows, Py_ssize_t n, Py_ssize_t stride, double* out) noexcept nogil:
        """out = rows·P, for n rows `stride` apart."""
        if n == 1:
            times_base(self.P, <int> self.size, rows, out)
        else:
            all_times_base(self.P, <int> self.size, <int> n, rows, out, <int> stride)

    cdef bint _careful(self, double kappa0) noexcept nogil:
        """Whether the noise is so small beside κ(x, x) that products with P are refined."""
        return self.noise < CAREFUL_RATIO * kappa0

    cdef double _largest(self) noexcept nogil:
        """The largest κ(z, z) of the points."""
        cdef Py_ssize_t i
        cdef double largest = 0.0
        if not self.program.varies:
            return self.program.kappa0
        for i in range(self.size):
            largest = fmax(largest, self.K.diagonal[i])
        return largest

    cdef Py_ssize_t _block_length(self, const double* X, Py_ssize_t n) noexcept nogil:
        """How many of the next n samples may be learned at once.

        Products are refined with P alone, so nothing may be deferred where that happens.
        """
        cdef Py_ssize_t i
        if self._careful(self._largest()):
            return 1
        if self.program.varies:
            for i in range(n):
                if self._careful(self.program.prior(X + i * self.dimension)):
                    return max(i, 1)
        return n

    cdef void _refine(self, const double* k, double* w, double* residual,
                      double kappa0) noexcept nogil:
        """Refine w = Pk until its residual, which is filled in, is rounding."""
        cdef int m = <int> self.size, i
        cdef double largest = self._residual(k, w, residual), rounding
        for i in range(MAX_REFINEMENTS):
            rounding = 4.0 * EPS * kappa0 * (1.0 + dasum(&m, w, &ONE))
            if largest <= rounding:
                break
            dsymv(&LOWER, &m, &UNIT, self.P.base, &self.P.ld, residual, &ONE, &UNIT, w, &ONE)
            largest = self._residual(k, w, residual)

    cdef double _residual(self, const double* b, const double* solution,
                          double* residual) noexcept nogil:
        """Fill b − (K + σ²I)·solution; return its largest entry."""
        cdef int m = <int> self.size
        cdef double largest = 0.0
        cdef Py_ssize_t i
        for i in range(m):
            residual[i] = b[i] - self.noise * solution[i]
        dsymv(&LOWER, &m, &MINUS, self.K.base, &self.K.ld, <double*> solution, &ONE, &UNIT, residual,
              &ONE)
        for i in range(m):
            largest = fmax(largest, fabs(residual[i]))
        return largest

    # ---- staying exact (mathematics.md §6) -------------------------------------------------------

    cdef void _mend(self, long long first, Py_ssize_t samples) noexcept nogil:
        """Correct rounding errors after so many samples; P has no deferred updates."""
        cdef int m = <int> self.size
        cdef long long t, interval = 1 if self._careful(self._largest()) else MEND_INTERVAL
        cdef Py_ssize_t i
        if m == 0:
            return
        for t in range(first, first + samples):
            if t % interval == 0:
                self._mend_slot(t // interval % m)
            if t % POLISH_INTERVAL == 0:  # α += P(y − mean − Aα)
                for i in range(m):
                    self.c[i] = self.targets_p[i] - self.mean
                self._residual(self.c, self.alpha, self.z)
                dsymv(&LOWER, &m, &UNIT, self.P.base, &self.P.ld, self.z, &ONE, &UNIT, self.alpha,
                      &ONE)

    cdef void _mend_slot(self, Py_ssize_t j) noexcept nogil:
        cdef int m = <int> self.size
        cdef Py_ssize_t i
        cdef double scale
        cdef double* P = self.P.base
        get_column(self.K.base, self.capacity, j, m, self.c)
        self.c[j] += self.noise
        scale = 1.0 / self.c[j]
        dsymv(&LOWER, &m, &scale, P, &self.P.ld, self.c, &ONE, &ZERO, self.u, &ONE)
        self.u[j] -= scale
        for i in range(j):
            P[i * self.capacity + j] -= self.u[i]
        for i in range(j + 1, m):
            P[j * self.capacity + i] -= self.u[i]
        P[j * (self.capacity + 1)] += (scale * ddot(&m, self.c, &ONE, self.u, &ONE)
                                       - 2.0 * self.u[j])
        self.P.diagonal[j] = P[j * (self.capacity + 1)]

    def mend(self, long long arrival):
        """See `state.RetainedState.mend`."""
        with nogil:
            self._mend(arrival, 1)

    # ---- memory -----------------------------------------------------------------------------

    cdef _allocate(self, Py_ssize_t capacity):
        """Start empty, with room for so many points, rounded up to whole cache lines."""
        capacity = max((capacity + 7) // 8 * 8, BLOCK)
        cdef Py_ssize_t p = self.dimension
        self._inputs, self._targets = aligned((p, capacity)), aligned((capacity,))
        self._arrivals, self._alpha = np.zeros(capacity, dtype=np.int64), aligned((capacity,))
        self._P, self._K = Symmetric(capacity, 1, True), Symmetric(capacity)
        self._scratch = aligned((VECTORS + p + self.program.depth, capacity))
        cdef long long[::1] arrivals_v = self._arrivals
        self.inputs_p, self.targets_p = pointer(self._inputs), pointer(self._targets)
        self.arrivals_p, self.alpha = &arrivals_v[0], pointer(self._alpha)
        self.P, self.K = &self._P.at, &self._K.at
        cdef double* start = pointer(self._scratch)
        self.v, self.a, self.g = start, start + capacity, start + 2 * capacity
        self.c, self.u, self.z = start + 3 * capacity, start + 4 * capacity, start + 5 * capacity
        self.near, self.share = start + 6 * capacity, start + 7 * capacity
        self.loss, self.priors = start + 8 * capacity, start + 9 * capacity
        self.spare, self.cross = start + 10 * capacity, start + 14 * capacity
        self.solved = self.cross + BLOCK * capacity
        self.samples = self.solved + BLOCK * capacity
        self.stack = self.samples + p * capacity
        self.block_left = 0
        self.capacity = capacity
        self.size = 0

    def reserve(self, Py_ssize_t points):
        """Make room for so many points, by doubling; nothing but memory changes."""
        if points <= self.capacity:
            return
        self._adopt(self.state(), max(points, 2 * self.capacity))
