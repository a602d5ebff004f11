# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The state of the absorbed posterior, compiled: its arrays, properties, copies and saved form.

Of the latest samples, from which new points learn, κ(Z, xᵢ) is kept by slot (see `recent.py`).
"""

import numpy as np

from libc.string cimport memcpy

from pogp.kernels.compiled cimport Program
from pogp.posteriors.linalg.storage cimport Matrix, aligned, pointer
from pogp.posteriors.linalg.symmetric cimport Sym, Symmetric

from pogp.posteriors import slots
from pogp.posteriors.absorbed import recent
from pogp.posteriors.absorbed.recent import Recent, recent_of
from pogp.posteriors.absorbed.state import (
    check_consistent, check_state, spread_of, state_matrices,
)

cdef Py_ssize_t VECTORS = 18       # of length `capacity`, before b, g and the stack
cdef Py_ssize_t BLOCK = slots.BLOCK, BLOCKS_FROM = slots.BLOCKS_FROM
cdef Py_ssize_t PER_POINT = recent.PER_POINT, MOST_RECENT = recent.MOST


cdef class AbsorbedState:
    """K, Q and the beliefs at the retained points, by slot (see `state.py`)."""

    compiled = True

    def __init__(self, program, double noise, mean, Py_ssize_t dimension, forgetting=(1.0,),
                 bint has_information=True, bint uses_recent=True, Py_ssize_t capacity=16):
        self._called_with = (
            program, noise, mean, dimension, forgetting, has_information, uses_recent)
        self.program = Program(program, dimension)
        self.noise = noise
        self._mean = np.array(mean, dtype=np.float64)
        self._forgetting = np.array(forgetting, dtype=np.float64)
        self.prior, self.forgetting_p = pointer(self._mean), pointer(self._forgetting)
        self.outputs, self.beliefs = len(mean), len(forgetting)
        self.dimension = dimension
        self.has_information = has_information and tuple(forgetting) == (1.0,)
        self.uses_recent = uses_recent and forgetting[0] == 1.0
        self.forgets = min(forgetting) < 1.0
        self.lead = 0
        self._allocate(capacity)

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
        return self._spread[0, :self.size].copy()

    @property
    def taken(self):
        return self._spread[1, :self.size].copy()

    @property
    def gram(self):
        return self._K.full(<int> self.size)

    @property
    def inverse(self):
        return self._Q.full(<int> self.size)

    @property
    def information(self):
        return self._L.full(<int> self.size if self.has_information else 0)

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

    def set_lead(self, Py_ssize_t belief):
        """See `state.AbsorbedState.set_lead`."""
        if belief != self.lead:
            self.lead, self.oldest, self.n_recent = belief, 0, 0
            values = self._values[belief, :, :self.size]
            self._weights[:, :self.size] = values @ self.inverse
            self._spread[0, :self.size] = spread_of(self.inverse, self.covariance_of(belief))

    @property
    def nbytes(self):
        arrays = (*self._parts(), *self._recent_parts(), self._recent_cross, self._scratch,
                  self._block_products, self._K, self._Q, self._L, *self._S)
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
        if self.has_information:
            state |= self._L.state("information", m)
        for name in ("inputs", "arrivals", "relevance", "values", "weights", "spread"):
            state[name] = getattr(self, name)
        state |= {"taken": self.taken} if self.taken.any() else {}
        if self.uses_recent:
            order = (self.oldest + np.arange(self.n_recent)) % self.recent_room  # the oldest first
            parts = (self._recent_inputs.T, self._recent_targets, self._recent_noises,
                     self._recent_arrivals)
            state |= Recent(*(part[order] for part in parts)).state()
        return {**state, "kept": self._kept.copy(), "shift": self._shift.copy(), "lead": self.lead}

    def restore(self, state, bint trusted=False):
        """See `state.AbsorbedState.restore`."""
        matrices = state_matrices(self.beliefs, self.has_information)
        state = check_state(state, self.dimension, self.outputs, self.beliefs, matrices)
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
        self._spread[0, :size], self._spread[1, :size] = state["spread"], state.get("taken", 0.0)
        self._kept[:], self._shift[:] = state["kept"], state["shift"]
        rows = np.ascontiguousarray(state["inputs"], dtype=np.float64)
        self._evaluate(pointer(rows), size)
        self._Q.restore("inverse", state, size)
        for belief, S in enumerate(self._S):
            S.restore(f"covariance{belief}", state, size)
        if self.has_information:
            self._L.restore("information", state, size)
        if self.uses_recent:
            self._adopt_recent(recent_of(state, self.dimension, self.outputs))

    def _adopt_recent(self, found):
        n, m = len(found), self.size
        self.oldest, self.n_recent = 0, n
        self._recent_is_point[:] = 0
        self._recent_inputs[:, :n], self._recent_targets[:n] = found.inputs.T, found.targets
        self._recent_noises[:n], self._recent_arrivals[:n] = found.noises, found.arrivals
        self._recent_cross.values[:n, :m] = self.program.cross(self._inputs, m, found.inputs)
        rows = {arrival: row for row, arrival in enumerate(found.arrivals.tolist())}
        for slot, arrival in enumerate(self.arrivals.tolist()):
            if arrival in rows:
                self._recent_row[slot] = rows[arrival]
                self._recent_is_point[rows[arrival]] = 1

    cdef void _evaluate(self, const double* rows, Py_ssize_t size) noexcept nogil:
        """Fill K, one triangle, at points that are also given row by row."""
        cdef Py_ssize_t j
        cdef double* column
        for j in range(size):
            column = self.K.base + j * (self.capacity + 1)
            self.program.column(self.points + j, self.capacity, size - j, rows, column, self.stack)
            self.K.diagonal[j] = column[0] = self.program.prior(rows)
            rows += self.dimension
        self.K.deferred = 0

    def _parts(self):
        return (self._inputs, self._arrivals, self._relevance, self._values, self._weights,
                self._spread, self._kept, self._shift)

    def _recent_parts(self):
        return (self._recent_inputs, self._recent_targets, self._recent_noises,
                self._recent_arrivals, self._recent_is_point, self._recent_row)

    def copy(self):
        """Return an independent copy, which continues bit for bit."""
        cdef AbsorbedState other = self._copied(self.capacity, self.uses_recent)
        cdef Py_ssize_t row
        other.oldest, other.n_recent = self.oldest, self.n_recent
        for part, place in zip(self._recent_parts(), other._recent_parts()):
            place[...] = part
        for row in range(self._used()):
            memcpy(other.recent_cross + row * self.capacity, self.recent_cross + row * self.capacity,
                   self.size * sizeof(double))
        return other

    def compact_copy(self):
        """Return a copy without room for more points and without the latest samples."""
        return self._copied(self.size, False)

    def _copied(self, Py_ssize_t capacity, bint uses_recent):
        cdef AbsorbedState other = type(self)(*self._called_with[:6], uses_recent, capacity)
        cdef Symmetric mine, theirs
        other.size, other.lead = self.size, self.lead
        for part, place in zip(self._parts(), other._parts()):
            width = min(part.shape[part.ndim - 1], place.shape[part.ndim - 1])
            place[..., :width] = part[..., :width]
        for mine, theirs in zip((self._K, self._Q, self._L, *self._S),
                                (other._K, other._Q, other._L, *other._S)):
            theirs.copy_from(mine, <int> self.size)
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
        self.uses_blocks = tuple(self._forgetting) == (1.0,) and capacity >= BLOCKS_FROM
        self._inputs = aligned((self.dimension, capacity))
        self._arrivals = np.zeros(capacity, dtype=np.int64)
        self._relevance = aligned((capacity,))
        self._values = aligned((self.beliefs, self.outputs, capacity))
        self._weights = aligned((self.outputs, capacity))
        self._spread = aligned((2, capacity))
        self._K, self._Q = Symmetric(capacity), Symmetric(capacity, 3 if self.uses_blocks else 1)
        self._L = Symmetric(capacity if self.has_information else 8)
        self._S = [Symmetric(capacity, 2 if self.uses_blocks else 1) for _ in range(self.beliefs)]
        self._block_products = Matrix(self.uses_blocks * 4 * BLOCK, capacity)
        self._block_inputs = aligned((self.dimension, BLOCK))
        self.block_at, self.block_left, self.prepared_slot = 0, 0, -1
        self.block_products = pointer(self._block_products.values)
        self.block_inputs = pointer(self._block_inputs)
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
        self.taken_p = self.spread_p + capacity
        self.kept, self.shift = pointer(self._kept), pointer(self._shift)
        self.points = pointer(self._inputs)
        self.values, self.alpha = pointer(self._values), pointer(self._weights)
        cdef double* start = pointer(self._scratch)
        self.k, self.t, self.u = start, start + capacity, start + 2 * capacity
        self.w, self.q, self.z = start + 3 * capacity, start + 6 * capacity, start + 9 * capacity
        self.edge, self.slot_products = start + 12 * capacity, start + 13 * capacity
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
        self.recent_room = min(PER_POINT * self.capacity, MOST_RECENT) if self.uses_recent else 0
        self.oldest, self.n_recent = 0, 0
        self._recent_cross = Matrix(self.recent_room + RECENT_AT_ONCE, self.capacity)
        self._recent_inputs = aligned((self.dimension, self.recent_room))
        self._recent_targets = aligned((self.recent_room, self.outputs))
        self._recent_noises = aligned((self.recent_room,))
        self._recent_kappa = aligned((1 + self.program.depth, self.recent_room))
        self._recent_vector = aligned((self.outputs,))
        flags = np.zeros((2, self.recent_room + 1), dtype=np.int64)
        self._recent_arrivals, self._recent_is_point = flags
        self._recent_row = np.zeros(self.capacity, dtype=np.int64)
        cdef long long[::1] arrivals = self._recent_arrivals, is_point = self._recent_is_point
        cdef long long[::1] row = self._recent_row
        self.recent_arrivals, self.recent_is_point = &arrivals[0], &is_point[0]
        self.recent_row = &row[0]
        self.recent_cross = pointer(self._recent_cross.values)
        self.recent_inputs = pointer(self._recent_inputs)
        self.recent_targets = pointer(self._recent_targets)
        self.recent_noises = pointer(self._recent_noises)
        self.recent_kappa = pointer(self._recent_kappa)
        self.recent_vector = pointer(self._recent_vector)

    cdef Py_ssize_t _used(self) noexcept nogil:
        """The number of rows that have been used."""
        return min(self.oldest + self.n_recent, self.recent_room)

    cdef Py_ssize_t _row(self, Py_ssize_t age) noexcept nogil:
        """The row of a sample, counted from the oldest."""
        cdef Py_ssize_t row = self.oldest + age
        return row if row < self.recent_room else row - self.recent_room

    cdef void _store_recent(self, const double* x, const double* y, double noise, long long arrival,
                    Py_ssize_t points, bint appended) noexcept nogil:
        """Store the current sample; `points` is the number before it, `appended` whether it is one."""
        cdef Py_ssize_t age, row, d, o
        if appended:
            for age in range(self.n_recent):
                row = self._row(age)
                self.recent_cross[row * self.capacity + points] = self.recent_kappa[row]
        self._trim_recent(max(min(PER_POINT * points, MOST_RECENT), 1) - 1)
        row = self._row(self.n_recent)
        self.n_recent += 1
        memcpy(self.recent_cross + row * self.capacity, self.k, (points + appended) * sizeof(double))
        for d in range(self.dimension):
            self.recent_inputs[d * self.recent_room + row] = x[d]
        for o in range(self.outputs):
            self.recent_targets[row * self.outputs + o] = y[o] - self.prior[o]
        self.recent_noises[row], self.recent_arrivals[row] = noise, arrival
        self.recent_is_point[row] = appended
        if appended:
            self.recent_row[points] = row

    cdef void _trim_recent(self, Py_ssize_t most) noexcept nogil:
        """Drop the oldest samples until at most so many are left."""
        if self.n_recent > most:
            self.oldest = self._row(self.n_recent - most)
            self.n_recent = most
