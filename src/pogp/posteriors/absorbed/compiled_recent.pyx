# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The latest samples, from which new points learn, compiled: see `recent.py`, and `state.py`.

κ(Z, xᵢ) of each sample is kept by slot. All that e = [−w, 1] needs is known from the append; what a
needs is found before it, by the same products as for a sample.
"""

import numpy as np

from libc.math cimport fabs, fmax
from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport dasum, daxpy, ddot, dgemv

from pogp.posteriors.absorbed.compiled_updates cimport AbsorbedUpdates
from pogp.posteriors.linalg.storage cimport Matrix, aligned, pointer
from pogp.posteriors.linalg.symmetric cimport add, add_pair, times_base, times_due

from pogp.posteriors.absorbed.recent import MOST as ROOM, PER_POINT, Recent, recent_of
from pogp.posteriors.absorbed.state import ROUNDING as ROUNDED

cdef int ONE = 1
cdef Py_ssize_t EACH = PER_POINT, MOST = ROOM
cdef double ROUNDING = ROUNDED, UNIT = 1.0, MINUS = -1.0
cdef char PLAIN = b"N", TRANSPOSED = b"T"


cdef enum:
    TOGETHER = 16                  # rows at a time: a second product finds them in the cache


cdef class AbsorbedRecent(AbsorbedUpdates):
    """Knows the latest samples."""

    cdef _allocate(self, Py_ssize_t capacity):
        AbsorbedUpdates._allocate(self, capacity)
        self.rows = min(EACH * self.capacity, MOST) if self.taught else 0
        self.first, self.held = 0, 0
        self._cross = Matrix(self.rows + TOGETHER, self.capacity)
        self._recent = aligned((self.dimension, self.rows))
        self._targets, self._their_noises = aligned((self.rows, self.outputs)), aligned((self.rows,))
        self._open = aligned((1 + self.program.depth, self.rows))
        self._lesson = aligned((self.outputs,))
        self._arrived, self._retained = (np.zeros(self.rows + 1, dtype=np.int64) for _ in range(2))
        self._row_of = np.zeros(self.capacity, dtype=np.int64)
        cdef long long[::1] arrived = self._arrived, retained = self._retained
        cdef long long[::1] row_of = self._row_of
        self.arrived, self.retained, self.row_of = &arrived[0], &retained[0], &row_of[0]
        self.cross, self.recent = pointer(self._cross.values), pointer(self._recent)
        self.targets, self.noise_of = pointer(self._targets), pointer(self._their_noises)
        self.open, self.h = pointer(self._open), pointer(self._lesson)

    # ---- state --------------------------------------------------------------------------------

    def _order(self):
        """Return the rows of the samples, the oldest first."""
        return (self.first + np.arange(self.held)) % max(self.rows, 1)

    @property
    def nbytes(self):
        arrays = (self._cross.values, self._recent, self._targets, self._their_noises)
        return AbsorbedUpdates.nbytes.__get__(self) + sum([array.nbytes for array in arrays])

    def state(self):
        """See `state.AbsorbedState.state`."""
        state = AbsorbedUpdates.state(self)
        if self.taught:
            order = self._order()
            parts = (self._recent.T, self._targets, self._their_noises, self._arrived)
            state |= Recent(*(part[order] for part in parts)).state()
        return state

    def _adopt(self, state, Py_ssize_t capacity):
        AbsorbedUpdates._adopt(self, state, capacity)
        if not self.taught:
            return
        found = recent_of(state, self.dimension, self.outputs)
        n, m = len(found), self.size
        self.first, self.held = 0, n
        self._retained[:] = 0
        self._recent[:, :n], self._targets[:n] = found.inputs.T, found.targets
        self._their_noises[:n], self._arrived[:n] = found.noises, found.arrivals
        self._cross.values[:n, :m] = self.program.cross(self._inputs, m, found.inputs)
        rows = {arrival: row for row, arrival in enumerate(found.arrivals.tolist())}
        for slot, arrival in enumerate(self.arrivals.tolist()):
            if arrival in rows:
                self._row_of[slot] = rows[arrival]
                self._retained[rows[arrival]] = 1

    def follow(self, Py_ssize_t belief):
        """See `state.AbsorbedState.follow`."""
        if belief != self.lead:
            self.first, self.held = 0, 0
        AbsorbedUpdates.follow(self, belief)

    def copy(self):
        """See `state.AbsorbedState.copy`."""
        cdef AbsorbedRecent other = AbsorbedUpdates.copy(self)
        cdef Py_ssize_t row, used = self._used()
        other.first, other.held = self.first, self.held
        other._recent[:, :used] = self._recent[:, :used]
        for mine, theirs in ((self._targets, other._targets), (self._their_noises, other._their_noises),
                             (self._arrived, other._arrived), (self._retained, other._retained),
                             (self._row_of, other._row_of)):
            theirs[...] = mine
        for row in range(used):
            memcpy(other.cross + row * self.capacity, self.cross + row * self.capacity,
                   self.size * sizeof(double))
        return other

    # ---- learning -----------------------------------------------------------------------------

    cdef inline Py_ssize_t _used(self) noexcept nogil:
        """How many rows have been in use."""
        return min(self.first + self.held, self.rows)

    cdef inline Py_ssize_t _row(self, Py_ssize_t age) noexcept nogil:
        """The row of a sample, counted from the oldest."""
        cdef Py_ssize_t row = self.first + age
        return row if row < self.rows else row - self.rows

    cdef bint _ask(self, const double* x) noexcept nogil:
        """Find what the samples say of x, which will be appended; return whether they do at all.

        Fills κ(xᵢ, x), b, h, q = a, z = Sa and edge = QSa.
        """
        cdef int m = <int> self.size
        cdef int ld = <int> self.capacity, count
        cdef Py_ssize_t age = 0, i, row, o, part
        cdef double slopes[TOGETHER]
        cdef double slope, rounding
        cdef double* cross
        if self.held == 0:
            return False
        self.program.column(self.recent, self.rows, self._used(), x, self.open, self.open + self.rows)
        rounding = ROUNDING * self.kappa0 * (1.0 + dasum(&m, self.w, &ONE))
        memset(self.t, 0, m * sizeof(double))
        memset(self.h, 0, self.outputs * sizeof(double))
        self.known = 0.0
        while age < self.held:
            count = <int> min(TOGETHER, self.held - age)
            cross = self.cross + self._row(age) * ld
            if self._row(age) + count > self.rows:  # some of the rows are at the end, some at the start
                cross = self.cross + self.rows * ld
                for i in range(count):
                    memcpy(cross + i * ld, self.cross + self._row(age + i) * ld, m * sizeof(double))
            for i in range(count):
                slopes[i] = self.open[self._row(age + i)]
            dgemv(&TRANSPOSED, &m, &count, &MINUS, cross, &ld, self.w, &ONE, &UNIT, slopes, &ONE)
            for i in range(count):
                row = self._row(age + i)
                if fabs(slopes[i]) <= rounding or self.retained[row]:
                    slopes[i] = 0.0
                    continue
                slope = slopes[i] / self.gamma
                slopes[i] = slope / self.noise_of[row]
                self.known += slope * slopes[i]
                for o in range(self.outputs):
                    self.h[o] += slopes[i] * self.targets[row * self.outputs + o]
            dgemv(&PLAIN, &m, &count, &UNIT, cross, &ld, slopes, &ONE, &UNIT, self.t, &ONE)
            age += count
        if not self.known > 0.0:
            return False
        if not self.ahead:
            times_base(self.Q, m, self.t, self.q)
        else:
            self._solve(self.likely, m, self.t, self.q)
            for part in range(3):
                memset(self.q + part * self.capacity + m, 0, (self.capacity - m) * sizeof(double))
        times_due(self.Q, m, self.Q.parts, self.t, self.q, self.Q.shares)
        self._times_covariance(0, m, self.q, self.z, self.Q.shares)
        self._times_inverse(m, self.z, self.edge)
        return True

    cdef void _teach(self, double noise) noexcept nogil:
        """Let that count, now that x is appended: w is −e, and b as it was before."""
        cdef int n = <int> self.size, m = n - 1
        cdef Py_ssize_t i, o, part, stride = self.capacity
        cdef double gamma = self.gamma, s = self.variances[0], b = self.known
        cdef double c = ddot(&m, self.g, &ONE, self.q, &ONE), by_s = c / s
        cdef double vee = gamma * (s - gamma) / s, vea = 1.0 - gamma * by_s
        cdef double open = fmax(b - (ddot(&m, self.q, &ONE, self.z, &ONE) - c * by_s), 0.0)
        cdef double D = vea * vea + vee * open, ratio = vea / vee, by_g = ratio * gamma / s - by_s
        cdef double r, t, first, second, moved
        cdef double* Qe = self.u
        cdef double* Qv = self.t
        for part in range(self.S[0].parts):
            for i in range(part * stride, part * stride + m):
                self.z[i] += by_g * self.g[i]
        self.z[m], self.g[m], self.q[m] = -noise * by_g, -noise, 0.0
        if self.S[0].parts > 1:
            self.z[stride + m], self.g[stride + m] = 0.0, 0.0
        self.edge[m], self.b[m] = 0.0, 0.0
        for i in range(n):
            moved = self.b[i] - self.w[i]
            Qe[i] = -self.w[i] - gamma / s * moved
            Qv[i] = self.edge[i] - by_s * moved - ratio * Qe[i]
            self.spread_p[i] += vee / D * Qv[i] * Qv[i] - Qe[i] * Qe[i] / vee
        for o in range(self.outputs):
            r = ddot(&n, self.w, &ONE, self.values + o * stride, &ONE)
            t = self.h[o] - ddot(&m, self.q, &ONE, self.values + o * stride, &ONE)
            second = (vea * r - vee * t) / D
            first = (open * r + vea * t) / D + ratio * second
            daxpy(&n, &first, Qe, &ONE, self.alpha + o * stride, &ONE)
            daxpy(&n, &second, Qv, &ONE, self.alpha + o * stride, &ONE)
            first *= -gamma / s
            daxpy(&n, &first, self.g, &ONE, self.values + o * stride, &ONE)
            daxpy(&n, &second, self.z, &ONE, self.values + o * stride, &ONE)
        add(self.S[0], n, -gamma / (s * (s - gamma)), self.g)
        add(self.S[0], n, vee / D, self.z)
        if self.informed:
            for i in range(n):
                self.t[i] = 0.5 * b * self.w[i] - self.q[i]
            add_pair(self.L, n, self.w, self.t)

    cdef void _keep(self, const double* x, const double* y, double noise, long long arrival,
                    Py_ssize_t points, bint appended) noexcept nogil:
        """Keep the sample at hand, which may have been appended to so many points."""
        cdef Py_ssize_t age, row, d, o
        if appended:
            for age in range(self.held):
                row = self._row(age)
                self.cross[row * self.capacity + points] = self.open[row]
        self._shorten(max(min(EACH * points, MOST), 1) - 1)
        row = self._row(self.held)
        self.held += 1
        memcpy(self.cross + row * self.capacity, self.k, (points + appended) * sizeof(double))
        for d in range(self.dimension):
            self.recent[d * self.rows + row] = x[d]
        for o in range(self.outputs):
            self.targets[row * self.outputs + o] = y[o] - self.prior[o]
        self.noise_of[row], self.arrived[row], self.retained[row] = noise, arrival, appended
        if appended:
            self.row_of[points] = row

    cdef void _shorten(self, Py_ssize_t most) noexcept nogil:
        """Keep no more than so many samples."""
        if self.held > most:
            self.first = self._row(self.held - most)
            self.held = most

    cdef void _drop(self, Py_ssize_t j) noexcept nogil:
        """Take out the row of slot j; the last slot takes its place."""
        cdef Py_ssize_t age, row = self.row_of[j], last = self.size - 1
        cdef double* each
        if self.held > 0:
            if self.arrived[row] == self.arrivals_p[j]:
                self.retained[row] = 0
            self.row_of[j] = self.row_of[last]
            for age in range(self.held):
                each = self.cross + self._row(age) * self.capacity
                each[j] = each[last]
            self._shorten(max(min(EACH * last, MOST), 1))
        AbsorbedUpdates._drop(self, j)
