# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The state of the absorbed posterior, compiled: its arrays, properties, copies and saved form.

Of the latest samples, from which new points learn, κ(Z, xᵢ) is kept by slot (see `recent.py`).
"""

import numpy as np

from libc.string cimport memcpy

from pogp.kernels.compiled cimport Program
from pogp.posteriors.linalg.storage cimport Matrix, aligned, pointer
from pogp.posteriors.linalg.symmetric cimport Sym, Symmetric

from pogp.posteriors.absorbed.recent import MOST as ROOM, PER_POINT, Recent, recent_of
from pogp.posteriors.absorbed.state import (
    check_consistent, check_state, spread_of, state_matrices,
)
from pogp.posteriors.slots import BLOCK, BLOCKS_FROM

cdef Py_ssize_t VECTORS = 18, LEAST = BLOCKS_FROM, EACH = PER_POINT, MOST = ROOM


cdef class AbsorbedState:
    """K, Q and the beliefs at the retained points, by slot (see `state.py`)."""

    compiled = True

    def __init__(self, program, double noise, mean, Py_ssize_t dimension, forgetting=(1.0,),
                 bint informed=True, bint taught=True):
        self._called_with = (program, noise, mean, dimension, forgetting, informed, taught)
        self.program = Program(program, dimension)
        self.noise = noise
        self._mean = np.array(mean, dtype=np.float64)
        self._forgetting = np.array(forgetting, dtype=np.float64)
        self.prior, self.forgetting_p = pointer(self._mean), pointer(self._forgetting)
        self.outputs, self.beliefs = len(mean), len(forgetting)
        self.dimension = dimension
        self.informed = informed and tuple(forgetting) == (1.0,)
        self.taught = taught and forgetting[0] == 1.0
        self.lead = 0
        self._allocate(16)

    # ---- properties -------------------------------------------------------------------------

    @property
    def mean(self):
        return self._mean.copy()

    @property
    def forgetting(self):
        return tuple(self._forgetting.tolist())

    @property
    def inputs(self):
        return self._inputs[:, :self.size].T.copy()

    @property
    def arrivals(self):
        return self._arrivals[:self.size].copy()

    @property
    def relevance(self):
        return self._relevance[:self.size].copy()

    @property
    def values(self):
        return self._values[:, :, :self.size].transpose(0, 2, 1).copy()

    @property
    def weights(self):
        return self._weights[:, :self.size].T.copy()

    @property
    def spread(self):
        return self._spread[:self.size].copy()

    @property
    def gram(self):
        return self._K.full(<int> self.size)

    @property
    def inverse(self):
        return self._Q.full(<int> self.size)

    @property
    def information(self):
        return self._L.full(<int> self.size if self.informed else 0)

    @property
    def covariance(self):
        return np.array([self.covariance_of(b) for b in range(self.beliefs)])

    def covariance_of(self, Py_ssize_t belief):
        """Return S of one belief."""
        cdef Symmetric S = self._S[belief]
        found = S.full(<int> self.size)
        if self.shift[belief] > 0.0:  # in place: fresh pages take longer than the sums
            gram = self.gram
            found *= self.kept[belief]
            gram *= self.shift[belief]
            found += gram
        return found

    def times_inverse(self, rows):
        """See `state.AbsorbedState.times_inverse`."""
        cdef int m = <int> self.size
        found = self._Q.times(rows, m)
        found += self._Q.times(rows - self._K.times(found, m), m)
        return found

    def times_covariance(self, Py_ssize_t belief, rows):
        """See `state.AbsorbedState.times_covariance`."""
        cdef int m = <int> self.size
        cdef Symmetric S = self._S[belief]
        found = S.times(rows, m)
        if self.shift[belief] > 0.0:
            found *= self.kept[belief]
            found += self.shift[belief] * self._K.times(rows, m)
        return found

    def follow(self, Py_ssize_t belief):
        """See `state.AbsorbedState.follow`."""
        if belief != self.lead:
            self.lead, self.first, self.held = belief, 0, 0
            values = self._values[belief, :, :self.size]
            self._weights[:, :self.size] = values @ self.inverse
            self._spread[:self.size] = spread_of(self.inverse, self.covariance_of(belief))

    @property
    def nbytes(self):
        arrays = (*self._parts(), self._cross, self._scratch, self._foreseen, self._K,
                  self._Q, self._L, *self._S)
        return sum(array.nbytes for array in arrays)

    def regression(self, const double[:, ::1] X):
        """See `state.AbsorbedState.regression`."""
        cdef int m = <int> self.size
        k = self.program.cross(self._inputs, self.size, X)
        w = self.times_inverse(k)
        gamma = self.program.priors(X) - np.einsum("ij,ij->i", w, 2.0 * k - self._K.times(w, m))
        return w, np.maximum(gamma, 0.0), k

    def state(self):
        """See `state.AbsorbedState.state`; the arrays are copies."""
        cdef int m = <int> self.size
        cdef Symmetric S
        state = self._Q.state("inverse", m)
        for belief, S in enumerate(self._S):
            state |= S.state(f"covariance{belief}", m)
        if self.informed:
            state |= self._L.state("information", m)
        for name in ("inputs", "arrivals", "relevance", "values", "weights", "spread"):
            state[name] = getattr(self, name)
        if self.taught:
            order = (self.first + np.arange(self.held)) % self.rows  # the oldest first
            parts = (self._recent.T, self._targets, self._their_noises, self._arrived)
            state |= Recent(*(part[order] for part in parts)).state()
        return {**state, "kept": self._kept.copy(), "shift": self._shift.copy(), "lead": self.lead}

    def restore(self, state, bint trusted=False):
        """See `state.AbsorbedState.restore`."""
        matrices = state_matrices(self.beliefs, self.informed)
        check_state(state, self.dimension, self.outputs, self.beliefs, matrices)
        self._adopt(state, self.capacity)
        if not trusted:
            check_consistent(self)

    def _adopt(self, state, Py_ssize_t capacity):
        cdef int size = <int> len(state["arrivals"])
        cdef Symmetric S
        if max(size + 1, capacity) > self.capacity:
            self._allocate(max(size + 1, capacity))
        self.size = size
        self.lead = state["lead"]
        self._inputs[:, :size] = state["inputs"].T
        self._arrivals[:size] = state["arrivals"]
        self._relevance[:size] = state["relevance"]
        self._values[:, :, :size] = state["values"].transpose(0, 2, 1)
        self._weights[:, :size] = state["weights"].T
        self._spread[:size] = state["spread"]
        self._kept[:], self._shift[:] = state["kept"], state["shift"]
        rows = np.ascontiguousarray(state["inputs"], dtype=np.float64)
        self._evaluate(pointer(rows), size)
        self._Q.restore("inverse", state, size)
        for belief, S in enumerate(self._S):
            S.restore(f"covariance{belief}", state, size)
        if self.informed:
            self._L.restore("information", state, size)
        if self.taught:
            self._adopt_recent(recent_of(state, self.dimension, self.outputs))

    def _adopt_recent(self, found):
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

    cdef void _evaluate(self, const double* rows, Py_ssize_t size) noexcept nogil:
        """Fill K, one triangle, at points that are also given row by row."""
        cdef Py_ssize_t j
        cdef double* column
        for j in range(size):
            column = self.K.base + j * (self.capacity + 1)
            self.program.column(self.points + j, self.capacity, size - j, rows, column, self.stack)
            self.K.diagonal[j] = column[0] = self.program.prior(rows)
            rows += self.dimension
        self.K.due = 0

    def _parts(self):
        return (self._inputs, self._arrivals, self._relevance, self._values, self._weights,
                self._spread, self._kept, self._shift, self._recent, self._targets,
                self._their_noises, self._arrived, self._retained, self._row_of)

    def copy(self):
        """Return an independent copy, which continues bit for bit."""
        cdef AbsorbedState other = type(self)(*self._called_with)
        cdef Symmetric mine, theirs
        cdef Py_ssize_t row
        if other.capacity != self.capacity:
            other._allocate(self.capacity)
        other.size, other.lead, other.first, other.held = self.size, self.lead, self.first, self.held
        for part, place in zip(self._parts(), other._parts()):
            place[...] = part
        for mine, theirs in zip((self._K, self._Q, self._L, *self._S),
                                (other._K, other._Q, other._L, *other._S)):
            theirs.follow(mine, <int> self.size)
        for row in range(self._used()):
            memcpy(other.cross + row * self.capacity, self.cross + row * self.capacity,
                   self.size * sizeof(double))
        return other

    def reserve(self, Py_ssize_t points):
        """Make room for so many points, by doubling; nothing but memory changes."""
        if points > self.capacity:
            self._adopt(self.state(), max(points, 2 * self.capacity))

    cdef _allocate(self, Py_ssize_t capacity):
        """Start empty, with room for so many points, rounded up to whole cache lines."""
        cdef Py_ssize_t belief, rows
        cdef Symmetric S
        capacity = (capacity + 7) // 8 * 8
        self.blocks = tuple(self._forgetting) == (1.0,) and capacity >= LEAST
        self._inputs = aligned((self.dimension, capacity))
        self._arrivals = np.zeros(capacity, dtype=np.int64)
        self._relevance = aligned((capacity,))
        self._values = aligned((self.beliefs, self.outputs, capacity))
        self._weights = aligned((self.outputs, capacity))
        self._spread = aligned((capacity,))
        self._K, self._Q = Symmetric(capacity), Symmetric(capacity, 3 if self.blocks else 1)
        self._L = Symmetric(capacity if self.informed else 8)
        self._S = [Symmetric(capacity, 2 if self.blocks else 1) for _ in range(self.beliefs)]
        self._foreseen = Matrix(self.blocks * 4 * BLOCK, capacity)
        self._samples = aligned((self.dimension, BLOCK))
        self.at, self.ahead, self.foretold = 0, 0, -1
        self.foreseen, self.samples = pointer(self._foreseen.values), pointer(self._samples)
        self._kept, self._shift = np.ones(self.beliefs), np.zeros(self.beliefs)
        rows = VECTORS + 1 + max(self.beliefs, 2) + self.program.depth
        self._scratch = aligned((rows, capacity))
        self._numbers = aligned((2 * self.beliefs * (self.outputs + 1),))
        self._pointers = np.zeros(self.beliefs, dtype=np.intp)
        cdef long long[::1] arrivals_v = self._arrivals
        cdef Py_ssize_t[::1] pointers = self._pointers
        for belief in range(self.beliefs):
            S = self._S[belief]
            pointers[belief] = <Py_ssize_t> &S.at
        self.S = <Sym**> &pointers[0]
        self.K, self.Q, self.L = &self._K.at, &self._Q.at, &self._L.at
        self.arrivals_p = &arrivals_v[0]
        self.relevance_p, self.spread_p = pointer(self._relevance), pointer(self._spread)
        self.kept, self.shift = pointer(self._kept), pointer(self._shift)
        self.points = pointer(self._inputs)
        self.values, self.alpha = pointer(self._values), pointer(self._weights)
        cdef double* start = pointer(self._scratch)
        self.k, self.t, self.u = start, start + capacity, start + 2 * capacity
        self.w, self.q, self.z = start + 3 * capacity, start + 6 * capacity, start + 9 * capacity
        self.edge, self.left = start + 12 * capacity, start + 13 * capacity
        self.b, self.g = start + VECTORS * capacity, start + (VECTORS + 1) * capacity
        self.stack = self.g + max(self.beliefs, 2) * capacity
        self.means = pointer(self._numbers)
        self.surprise = self.means + self.beliefs * self.outputs
        self.explained = self.surprise + self.beliefs * self.outputs
        self.variances = self.explained + self.beliefs
        self.capacity = capacity
        self.size = 0
        self._allocate_recent()

    # ---- the latest samples -----------------------------------------------------------------------

    cdef _allocate_recent(self):
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

    cdef Py_ssize_t _used(self) noexcept nogil:
        """The number of rows that have been used."""
        return min(self.first + self.held, self.rows)

    cdef Py_ssize_t _row(self, Py_ssize_t age) noexcept nogil:
        """The row of a sample, counted from the oldest."""
        cdef Py_ssize_t row = self.first + age
        return row if row < self.rows else row - self.rows

    cdef void _keep(self, const double* x, const double* y, double noise, long long arrival,
                    Py_ssize_t points, bint appended) noexcept nogil:
        """Store the current sample; `points` is the number before it, `appended` whether it is one."""
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
        """Drop the oldest samples until at most so many are left."""
        if self.held > most:
            self.first = self._row(self.held - most)
            self.held = most
