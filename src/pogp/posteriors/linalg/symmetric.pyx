# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""A symmetric matrix that may owe updates: A = base + Σ ±uuᵀ over the rows u that are due.

A row costs a pass over the matrix when it is applied by itself (`dsyr`) and a fraction of that
when many are applied together (`dsyrk`); until then a product pays O(n) for each that is due. Which
updates are due is part of the state, so that a copy goes on bit for bit.

Behind a row there may be further parts: what fixed matrices make of u. A sum of rows then is a sum
of those, too (`compiled_updates.pyx`).
"""

import numpy as np

from libc.math cimport HUGE_VAL, copysign, fabs, sqrt
from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport dgemm, dgemv, dnrm2, dswap, dsymm, dsymv, dsyr2k, dsyrk

from pogp.posteriors.linalg.passes cimport add_pair_of, two_products
from pogp.posteriors.linalg.storage cimport (
    Matrix, aligned, get_column, move_last, pack, pointer, put_column, unpack,
)

from pogp.posteriors.slots import DUE, ROOM

cdef enum:
    PANEL = 128  # columns
    FEW = 4  # rows that are multiplied one by one

cdef int ONE = 1, LIMIT = DUE
cdef char LOWER = b"L", LEFT = b"L", PLAIN = b"N", TRANSPOSED = b"T"
cdef double UNIT = 1.0, ZERO = 0.0, MINUS = -1.0, HALF = 0.5


cdef void product(Sym* A, int n, const double* x, double* out, double* shares) noexcept nogil:
    """out = Ax, with a work space (room,) of the caller."""
    times_base(A, n, x, out)
    times_due(A, n, 1, x, out, shares)


cdef void times_base(Sym* A, int n, const double* x, double* out) noexcept nogil:
    """The same without the updates that are due."""
    dsymv(&LOWER, &n, &UNIT, A.base, &A.ld, <double*> x, &ONE, &ZERO, out, &ONE)


cdef void both_times_base(Sym* A, int n, const double* x, double* out, const double* other,
                          double* second) noexcept nogil:
    """The same for two vectors in one pass over the matrix."""
    two_products(n, A.base, A.capacity, x, other, out, second)


cdef void all_times_base(Sym* A, int n, int count, const double* X, double* Y,
                         int apart) noexcept nogil:
    """The same for so many vectors, one `apart` from the next.

    By panels of columns: dsymm on the whole matrix takes long to unfold the triangle.
    """
    cdef int first = 0, width, below
    cdef Py_ssize_t i
    cdef double* panel
    for i in range(count):
        memset(Y + i * apart, 0, n * sizeof(double))
    while first < n:
        width = min(PANEL, n - first)
        below = n - first - width
        panel = A.base + first * (A.capacity + 1)
        dsymm(&LEFT, &LOWER, &width, &count, &UNIT, panel, &A.ld, <double*> X + first, &apart, &UNIT,
              Y + first, &apart)
        if below > 0:
            panel += width
            dgemm(&PLAIN, &PLAIN, &below, &count, &width, &UNIT, panel, &A.ld,
                  <double*> X + first, &apart, &UNIT, Y + first + width, &apart)
            dgemm(&TRANSPOSED, &PLAIN, &width, &count, &below, &UNIT, panel, &A.ld,
                  <double*> X + first + width, &apart, &UNIT, Y + first, &apart)
        first += width


cdef void times_due(Sym* A, int n, int parts, const double* x, double* out,
                    double* shares) noexcept nogil:
    """out += what is due times x: so many parts of it."""
    cdef int p
    if A.due > 0:
        dgemv(&TRANSPOSED, &n, &A.due, &UNIT, A.rows, &A.apart, <double*> x, &ONE, &ZERO, shares,
              &ONE)
        for p in range(A.due):
            shares[p] *= A.signs[p]
        _add_rows(A, n, parts, shares, out)


cdef void column_due(Sym* A, int n, int parts, Py_ssize_t j, double* out) noexcept nogil:
    """out += column j of what is due."""
    cdef int p
    if A.due > 0:
        for p in range(A.due):
            A.shares[p] = A.signs[p] * A.rows[p * A.apart + j]
        _add_rows(A, n, parts, A.shares, out)


cdef inline void _add_rows(Sym* A, int n, int parts, double* shares, double* out) noexcept nogil:
    cdef int length = (parts - 1) * <int> A.capacity + n
    dgemv(&PLAIN, &length, &A.due, &UNIT, A.rows, &A.apart, shares, &ONE, &UNIT, out, &ONE)


cdef void get(Sym* A, Py_ssize_t j, int n, double* out) noexcept nogil:
    """out = A_j."""
    get_column(A.base, A.capacity, j, n, out)
    column_due(A, n, 1, j, out)


cdef void add(Sym* A, int n, double scale, const double* u) noexcept nogil:
    """A += scale uuᵀ; the update is due."""
    cdef Py_ssize_t i, part
    cdef double* row
    cdef double root = sqrt(fabs(scale)), sign = copysign(1.0, scale)
    # A small matrix owes less: rows cost a product a fraction of the matrix itself, and hold less
    # than the matrix where a model is saved.
    if A.parts == 1 and A.due >= (A.room if A.waits else min(LIMIT, n // 8 + 1, n // 16 + 4)):
        settle(A, n)
    row = A.rows + A.due * A.apart
    for part in range(A.parts):
        for i in range(part * A.capacity, part * A.capacity + n):
            row[i] = root * u[i]
        if A.parts > 1:  # which are added up with the gaps between them
            memset(row + part * A.capacity + n, 0, (A.capacity - n) * sizeof(double))
    for i in range(n):
        A.diagonal[i] += sign * row[i] * row[i]
    A.signs[A.due] = sign
    A.due += 1


cdef void add_pair(Sym* A, int n, const double* u, const double* v) noexcept nogil:
    """A += uvᵀ + vuᵀ: the squares of au + v/a and au − v/a, where both are of one size."""
    cdef double a = sqrt(dnrm2(&n, <double*> v, &ONE) / dnrm2(&n, <double*> u, &ONE)), by = 1.0 / a
    cdef Py_ssize_t i, part, turn
    if not 0.0 < a < HUGE_VAL:  # there is nothing to add
        return
    for turn in range(2):
        for part in range(A.parts):
            for i in range(part * A.capacity, part * A.capacity + n):
                A.work[i] = a * u[i] + by * v[i]
        add(A, n, 0.5 - turn, A.work)
        by = -by


cdef void put(Sym* A, Py_ssize_t j, int n, const double* column) noexcept nogil:
    """Write column j, and so row j, whatever was due there."""
    cdef Py_ssize_t p, part
    put_column(A.base, A.capacity, j, n, column)
    for p in range(A.due):
        for part in range(A.parts):
            A.rows[p * A.apart + part * A.capacity + j] = 0.0
    A.diagonal[j] = column[j]


cdef void drop(Sym* A, Py_ssize_t j, int n, double* work) noexcept nogil:
    """Delete slot j of n; the last one takes its place."""
    cdef int p
    if j == n - 1:
        return
    move_last(A.base, A.capacity, j, n, work)
    for p in range(A.due):
        A.rows[p * A.apart + j] = A.rows[p * A.apart + n - 1]
    A.diagonal[j] = A.diagonal[n - 1]


cdef void blend(Sym* A, int n, double kept, double shift, Sym* other) noexcept nogil:
    """A ← kept·A + shift·other, which owes nothing."""
    cdef Py_ssize_t i, j
    cdef double* mine
    cdef double* theirs
    settle(A, n)
    for j in range(n):
        mine, theirs = A.base + j * A.capacity, other.base + j * other.capacity
        for i in range(j, n):
            mine[i] = kept * mine[i] + shift * theirs[i]
        A.diagonal[j] = mine[j]


cdef void settle(Sym* A, int n) noexcept nogil:
    """Apply what is due: the rows to be added, sorted to the front, and those to be subtracted."""
    cdef Py_ssize_t i
    cdef int added = 0, p, subtracted
    cdef double x, z
    for p in range(A.due):
        if A.signs[p] > 0.0:
            if p > added:
                dswap(&n, A.rows + p * A.apart, &ONE, A.rows + added * A.apart, &ONE)
                A.signs[p] = -1.0
            added += 1
    subtracted = A.due - added
    if A.due > 0 and added <= 1 and subtracted <= 1:  # xxᵀ − zzᵀ by one pass over the matrix
        for i in range(n):
            x = A.rows[i] if added else 0.0
            z = A.rows[added * A.apart + i] if subtracted else 0.0
            A.rows[i], A.rows[A.apart + i] = 0.5 * (x - z), x + z
        add_pair_of(n, A.base, A.capacity, A.rows, A.rows + A.apart)
    else:
        _add_squares(A, n, added, A.rows, &UNIT)
        _add_squares(A, n, subtracted, A.rows + added * A.apart, &MINUS)
    A.due = 0
    for i in range(n):
        A.diagonal[i] = A.base[i * (A.capacity + 1)]


cdef inline void _add_squares(Sym* A, int n, int count, double* rows, double* scale) noexcept nogil:
    if count:
        dsyrk(&LOWER, &PLAIN, &n, &count, scale, rows, &A.apart, &UNIT, A.base, &A.ld)


cdef class Symmetric:
    """Room for `capacity` slots. The caller says how many of them are in use."""

    def __init__(self, Py_ssize_t capacity, Py_ssize_t parts=1, bint waits=False):
        cdef int room = ROOM
        self._room, self._owed = Matrix(capacity, capacity), Matrix(room + 1, parts * capacity)
        self._base, self._rows = self._room.values, self._owed.values
        self._diagonal, self._signs, self._shares = (aligned((n,)) for n in (capacity, room, room))
        self.at.base, self.at.diagonal = pointer(self._base), pointer(self._diagonal)
        self.at.rows, self.at.signs = pointer(self._rows), pointer(self._signs)
        self.at.capacity, self.at.ld = capacity, <int> capacity
        self.at.apart, self.at.parts, self.at.due = <int> (parts * capacity), 1, 0
        self.at.room, self.at.waits = room, waits
        self.at.shares, self.at.work = pointer(self._shares), self.at.rows + room * self.at.apart

    @property
    def nbytes(self):
        return self._base.nbytes + self._rows.nbytes + self._diagonal.nbytes

    def _due(self, Py_ssize_t n):
        """Return the rows that are due, and the same with their signs."""
        rows = self._rows[:self.at.due, :n]
        return rows, rows * self._signs[:self.at.due, None]

    cdef object times(self, object rows, int n):
        """Return xᵀA for each of the rows x, without the work space of the matrix."""
        solved = np.empty_like(rows)
        cdef int count = <int> rows.shape[0]
        cdef double* rows_p = pointer(rows)
        cdef double* solved_p = pointer(solved)
        cdef double* shares_p
        cdef Py_ssize_t i
        if count <= FEW:
            shares = np.empty(self.at.room)
            shares_p = pointer(shares)
            with nogil:
                for i in range(count):
                    product(&self.at, n, rows_p + i * n, solved_p + i * n, shares_p)
            return solved
        with nogil:
            all_times_base(&self.at, n, count, rows_p, solved_p, n)
        if self.at.due:
            due, signed = self._due(n)
            solved += (rows @ due.T) @ signed
        return solved

    cdef object full(self, int n):
        """Return A as an ordinary symmetric array."""
        whole, signed = np.empty((n, n)), np.ascontiguousarray(self._due(n)[1])
        cdef Py_ssize_t i, j, length = n
        cdef double* out = pointer(whole)
        cdef double* signed_p = pointer(signed)
        with nogil:
            for j in range(length):
                memcpy(out + j * (length + 1), self.at.base + j * (self.at.capacity + 1),
                       (length - j) * sizeof(double))
            if self.at.due > 0 and n > 0:  # Σ±uuᵀ by halves of pairs
                dsyr2k(&LOWER, &PLAIN, &n, &self.at.due, &HALF, signed_p, &n, self.at.rows,
                       &self.at.apart, &UNIT, out, &n)
            for j in range(length):
                for i in range(j + 1, length):
                    out[i * length + j] = out[j * length + i]
        return whole

    cdef dict state(self, str name, int n):
        """Return copies of the leading n slots, and of the updates that are due as pairs uvᵀ + vuᵀ."""
        due, signed = self._due(n)
        return {name: pack(self._base, n), name + "_left": signed / 2, name + "_right": due.copy()}

    cdef void restore(self, str name, dict state, int n) except *:
        """Take over what `state` returned; pairs of any other kind are applied."""
        cdef Py_ssize_t i, p
        cdef double* row
        packed, left, right = state[name], state[name + "_left"], state[name + "_right"]
        signs = np.where((2 * left == right).all(axis=1), 1.0, -1.0)
        if not (2 * left == signs[:, None] * right).all():
            product = left.T @ right
            packed, signs = packed + (product + product.T)[np.triu_indices(n)], signs[:0]
        self.hold(packed, n)
        self.at.due = <int> len(signs)
        self._rows[:self.at.due, :n], self._signs[:self.at.due] = right[:self.at.due], signs
        for p in range(self.at.due):  # in the order in which `add` did it
            row = self.at.rows + p * self.at.apart
            for i in range(n):
                self.at.diagonal[i] += self.at.signs[p] * row[i] * row[i]

    cdef void hold(self, object packed, int n) except *:
        """Take over a triangle that `pack` returned; nothing is due."""
        cdef Py_ssize_t i
        unpack(packed, self._base, n)
        self.at.due = 0
        for i in range(n):
            self.at.diagonal[i] = self.at.base[i * (self.at.capacity + 1)]

    cdef void follow(self, Symmetric other, int n) except *:
        """Copy the leading n slots of another of the same capacity, and what is due."""
        cdef Py_ssize_t j, stride = self.at.capacity
        n = min(n, <int> stride)
        for j in range(n):  # one triangle: the other is never read
            memcpy(self.at.base + j * (stride + 1), other.at.base + j * (stride + 1),
                   (n - j) * sizeof(double))
        self._diagonal[:n] = other._diagonal[:n]
        self.at.due = other.at.due
        self._rows[:self.at.due, :n] = other._rows[:self.at.due, :n]
        self._signs[:] = other._signs
