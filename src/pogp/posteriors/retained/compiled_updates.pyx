# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The retained-data posterior, compiled: the twin of `state.py`.

The learning loop (`compiled_loop.pyx`) never forms the augmented dictionary unless the newest point
stays: three vectors describe it (the diagonal `g` of P, α in `a`, the influence `v`), and an append
followed by a removal is one rank-two update of P (mathematics.md §1).

A block of samples is learned with products of matrices. `_solve_block` solves for all of them.
Every append and removal then updates `solved` as it updates α. The updates of P are deferred until
the block ends.
"""

from libc.math cimport fmax, isfinite
from libc.string cimport memcpy
from scipy.linalg.cython_blas cimport dasum, ddot, dgemv, dger

from pogp.posteriors.linalg.symmetric cimport add, drop, get, put, apply_deferred
from pogp.posteriors.retained.compiled_state cimport RetainedState

from pogp.posteriors import slots

cdef int ONE = 1, BLOCK = slots.BLOCK
cdef char TRANSPOSED = b"T"
cdef double UNIT = 1.0, MINUS = -1.0


cdef class RetainedUpdates(RetainedState):
    """Appends and removals; the loop decides which."""

    def append(self, const double[::1] x, double y, long long arrival):
        """Add (x, y) in the last slot; return the mean and variance of y predicted before that."""
        cdef double mean, s
        self.reserve(self.size + 1)
        with nogil:
            self._solve_block(&x[0], 1)
            s = self._predict(0, 1, &mean)
            self._augment(y, mean, s)
            self._append_newest(&x[0], y, arrival, s)
            memcpy(self.alpha, self.a, self.size * sizeof(double))
            apply_deferred(self.P, <int> self.size)
        return mean, s

    def remove(self, Py_ssize_t j):
        """Remove slot j; the last slot takes its place."""
        cdef Py_ssize_t n = self.size
        cdef double factor
        cdef Py_ssize_t i
        with nogil:
            get(self.P, j, <int> n, self.c)
            factor = self.alpha[j] / self.c[j]
            for i in range(n):
                self.alpha[i] -= self.c[i] * factor
            self.alpha[j] = self.alpha[n - 1]
            self._drop(j, n)
            apply_deferred(self.P, <int> self.size)

    # ---- a block of samples, and the one at hand ----------------------------------------------

    cdef void _solve_block(self, const double* X, Py_ssize_t n) noexcept nogil:
        """Fill `cross`, `priors` and `solved` for the next n ≤ BLOCK samples."""
        cdef Py_ssize_t i, d, p = self.dimension
        for i in range(n):
            self.program.column(self.inputs_p, self.capacity, self.size, X + i * p,
                                self.cross + i * self.capacity, self.stack)
            self.priors[i] = self.program.prior(X + i * p)
            for d in range(p):
                self.samples[d * BLOCK + i] = X[i * p + d]
        if self.size > 0:
            self._times(self.cross, n, self.capacity, self.solved)

    cdef double _predict(self, Py_ssize_t i, Py_ssize_t n, double* mean) noexcept nogil:
        """Go to sample i of the block of n; return the variance of y, and its mean."""
        cdef int m = <int> self.size
        cdef double explained = 0.0
        self.block_at = i
        self.block_left = n - i - 1
        self.k = self.cross + i * self.capacity
        self.w = self.solved + i * self.capacity
        mean[0] = self.mean
        if m > 0:
            if self._careful(self.priors[i]):
                self._refine(self.k, self.w, self.u, self.priors[i])
                explained = ddot(&m, self.w, &ONE, self.u, &ONE)
            explained += ddot(&m, self.k, &ONE, self.w, &ONE)
            mean[0] += ddot(&m, self.k, &ONE, self.alpha, &ONE)
        return fmax(self.priors[i] - explained, 0.0) + self.noise

    cdef bint _augment(self, double y, double mean, double s) noexcept nogil:
        """Describe the augmented dictionary by g, a and v (mathematics.md §1); say if all is finite."""
        cdef Py_ssize_t i, m = self.size
        cdef int n = <int> m + 1
        cdef double r = (y - mean) / s, inverse = 1.0 / s, latent = s - self.noise
        for i in range(m):
            self.g[i] = self.P.diagonal[i] + self.w[i] * self.w[i] * inverse
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
        get(self.P, j, <int> m, self.u)
        factor = self.w[j] / s
        for i in range(m):
            self.c[i] = self.u[i] + self.w[i] * factor
        self.c[m] = -factor

    cdef void _update_vectors(self, Py_ssize_t j, Py_ssize_t n) noexcept nogil:
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

    cdef void _discard_newest(self) noexcept nogil:
        """The newest is removed: P and α stay the same to the last bit."""
        cdef Py_ssize_t m = self.size
        memcpy(self.v, self.w, m * sizeof(double))
        memcpy(self.a, self.alpha, m * sizeof(double))
        memcpy(self.g, self.P.diagonal, m * sizeof(double))

    cdef void _replace(self, Py_ssize_t j, const double* x, double y, long long arrival,
                       double s) noexcept nogil:
        """The newest takes slot j: an update of P by two squares (mathematics.md §1)."""
        cdef Py_ssize_t i, m = self.size
        cdef double p_jj = self.u[j], w_j = self.w[j], scale = 1.0 / (s * self.c[j])
        if self.block_left > 0:
            self._extend_block(x, s)
            self._shrink_block(j, m)
            for i in range(self.block_left):
                self.k[(i + 1) * self.capacity + j] = self.near[i]
                self.w[(i + 1) * self.capacity + j] = self.share[i] - self.c[m] * self.loss[i]
        add(self.P, <int> m, 1.0 / s, self.w)
        add(self.P, <int> m, -1.0 / self.c[j], self.c)
        for i in range(m):
            self.u[i] = (w_j * self.u[i] - p_jj * self.w[i]) * scale  # the newest's column of P
        self.u[j] = p_jj * scale
        self._write_newest(j, x, y, arrival)

    cdef void _append_newest(self, const double* x, double y, long long arrival,
                             double s) noexcept nogil:
        """Nothing is removed: border P and K by the newest."""
        cdef Py_ssize_t i, m = self.size
        cdef double inverse = 1.0 / s
        if self.block_left > 0:
            self._extend_block(x, s)
            for i in range(self.block_left):
                self.k[(i + 1) * self.capacity + m] = self.near[i]
                self.w[(i + 1) * self.capacity + m] = self.share[i]
        add(self.P, <int> m, inverse, self.w)
        for i in range(m):
            self.u[i] = -self.w[i] * inverse
        self.u[m] = inverse
        self.size = m + 1
        self._write_newest(m, x, y, arrival)

    cdef void _write_newest(self, Py_ssize_t j, const double* x, double y,
                            long long arrival) noexcept nogil:
        """Write the newest in slot j: its columns u of P, whatever was deferred, and k of K."""
        cdef Py_ssize_t d
        self.k[j] = self.priors[self.block_at]
        put(self.P, j, <int> self.size, self.u)
        put(self.K, j, <int> self.size, self.k)
        for d in range(self.dimension):
            self.inputs_p[d * self.capacity + j] = x[d]
        self.targets_p[j] = y
        self.arrivals_p[j] = arrival

    cdef void _drop(self, Py_ssize_t j, Py_ssize_t n) noexcept nogil:
        """Remove slot j, whose column of P is c, of n; the last slot moves into its place."""
        cdef Py_ssize_t i, d, last = n - 1
        if self.block_left > 0:
            self._shrink_block(j, n)
            for i in range(1, self.block_left + 1):
                self.k[i * self.capacity + j] = self.k[i * self.capacity + last]
                self.w[i * self.capacity + j] = self.w[i * self.capacity + last]
        add(self.P, <int> n, -1.0 / self.c[j], self.c)
        drop(self.P, j, <int> n, self.z)
        drop(self.K, j, <int> n, self.z)
        self.size = last
        for d in range(self.dimension):
            self.inputs_p[d * self.capacity + j] = self.inputs_p[d * self.capacity + last]
        self.targets_p[j] = self.targets_p[last]
        self.arrivals_p[j] = self.arrivals_p[last]

    # ---- solutions of the samples ahead -------------------------------------------------------

    cdef void _extend_block(self, const double* x, double s) noexcept nogil:
        """The newest is appended: solved −= w·share, as α −= w·r; and its own entry is share."""
        cdef int m = <int> self.size, ld = <int> self.capacity, ahead = <int> self.block_left, i
        cdef double inverse = 1.0 / s, minus = -inverse
        self.program.column(self.samples + self.block_at + 1, BLOCK, ahead, x, self.near, self.stack)
        for i in range(ahead):
            self.share[i] = self.near[i] * inverse
        if m > 0:
            dgemv(&TRANSPOSED, &m, &ahead, &minus, self.k + ld, &ld, self.w, &ONE, &UNIT, self.share,
                  &ONE)
            dger(&m, &ahead, &MINUS, self.w, &ONE, self.share, &ONE, self.w + ld, &ld)

    cdef void _shrink_block(self, Py_ssize_t j, Py_ssize_t n) noexcept nogil:
        """Slot j of n is removed: solved −= c·solved_j/c_j, as for α."""
        cdef int m = <int> n, ld = <int> self.capacity, ahead = <int> self.block_left, i
        for i in range(ahead):
            self.loss[i] = self.w[(i + 1) * self.capacity + j] / self.c[j]
        dger(&m, &ahead, &MINUS, self.c, &ONE, self.loss, &ONE, self.w + ld, &ld)
