# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""A symmetric matrix with deferred updates: A = base + Σ ±uuᵀ over the deferred rows u.

A row costs a pass over the matrix when it is applied by itself (`dsyr`) and a fraction of that
when many are applied together (`dsyrk`); until then each deferred row adds O(n) to
a product. Deferred rows are part of the state, so that a copy continues bit for bit.

A row may have further parts: products of fixed matrices with u. A sum of rows then sums these
products, too (`compiled_updates.pyx`).
"""

import numpy as np

from libc.math cimport HUGE_VAL, copysign, fabs, sqrt
from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport dgemm, dgemv, dnrm2, dswap, dsymm, dsymv, dsyr2k, dsyrk

from pogp.posteriors.linalg.passes cimport add_pair_of, two_products
from pogp.posteriors.linalg.storage cimport (
    Matrix, aligned, get_column, move_last, pack, pointer, put_column, unpack,
)

from pogp.posteriors import slots

cdef enum:
    PANEL = 128  # columns
    FEW = 4  # rows that are multiplied one by one

cdef int ONE = 1, MAX_DEFERRED = slots.MAX_DEFERRED
cdef char LOWER = b"L", LEFT = b"L", PLAIN = b"N", TRANSPOSED = b"T"
cdef double UNIT = 1.0, ZERO = 0.0, MINUS = -1.0, HALF = 0.5


cdef void product(Sym* A, int n, const double* x, double* out, double* shares) noexcept nogil:
    """out = Ax, with a work space (room,) of the caller."""
    times_base(A, n, x, out)
    add_deferred_product(A, n, 1, x, out, shares)


cdef void times_base(Sym* A, int n, const double* x, double* out) noexcept nogil:
    """The same without the deferred updates."""
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


cdef void add_deferred_product(Sym* A, int n, int parts, const double* x, double* out,
                    double* shares) noexcept nogil:
    """out += the deferred updates times x, in so many parts."""
    cdef int p
    if A.deferred > 0:
        dgemv(&TRANSPOSED, &n, &A.deferred, &UNIT, A.rows, &A.row_stride, <double*> x, &ONE, &ZERO,
              shares, &ONE)
        for p in range(A.deferred):
            shares[p] *= A.signs[p]
        _add_rows(A, n, parts, shares, out)


cdef void add_deferred_column(Sym* A, int n, int parts, Py_ssize_t j, double* out) noexcept nogil:
    """out += column j of the deferred updates."""
    cdef int p
    if A.deferred > 0:
        for p in range(A.deferred):
            A.shares[p] = A.signs[p] * A.rows[p * A.row_stride + j]
        _add_rows(A, n, parts, A.shares, out)


cdef inline void _add_rows(Sym* A, int n, int parts, double* shares, double* out) noexcept nogil:
    cdef int length = (parts - 1) * <int> A.capacity + n
    dgemv(&PLAIN, &length, &A.deferred, &UNIT, A.rows, &A.row_stride, shares, &ONE, &UNIT, out, &ONE)


cdef void get(Sym* A, Py_ssize_t j, int n, double* out) noexcept nogil:
    """out = A_j."""
    get_column(A.base, A.capacity, j, n, out)
    add_deferred_column(A, n, 1, j, out)


cdef void add(Sym* A, int n, double scale, const double* u) noexcept nogil:
    """A += scale uuᵀ; the update is deferred."""
    cdef Py_ssize_t i, part
    cdef double* row
    cdef double root = sqrt(fabs(scale)), sign = copysign(1.0, scale)
    # Small matrices defer fewer updates: a deferred row costs a noticeable fraction of a product
    # and of the saved file.
    if A.parts == 1 and A.deferred >= (A.room if A.defers_all else min(MAX_DEFERRED, n // 8 + 1, n // 16 + 4)):
        apply_deferred(A, n)
    row = A.rows + A.deferred * A.row_stride
    for part in range(A.parts):
        for i in range(part * A.capacity, part * A.capacity + n):
            row[i] = root * u[i]
        if A.parts > 1:  # which are added up with the gaps between them
            memset(row + part * A.capacity + n, 0, (A.capacity - n) * sizeof(double))
    for i in range(n):
        A.diagonal[i] += sign * row[i] * row[i]
    A.signs[A.deferred] = sign
    A.deferred += 1


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
    """Write column j, and so row j; deferred updates no longer change it."""
    cdef Py_ssize_t p, part
    put_column(A.base, A.capacity, j, n, column)
    for p in range(A.deferred):
        for part in range(A.parts):
            A.rows[p * A.row_stride + part * A.capacity + j] = 0.0
    A.diagonal[j] = column[j]


cdef void drop(Sym* A, Py_ssize_t j, int n, double* work) noexcept nogil:
    """Delete slot j of n; the last one takes its place."""
    cdef int p
    if j == n - 1:
        return
    move_last(A.base, A.capacity, j, n, work)
    for p in range(A.deferred):
        A.rows[p * A.row_stride + j] = A.rows[p * A.row_stride + n - 1]
    A.diagonal[j] = A.diagonal[n - 1]


cdef void blend(Sym* A, int n, double kept, double shift, Sym* other) noexcept nogil:
    """A ← kept·A + shift·other, which has no deferred updates."""
    cdef Py_ssize_t i, j
    cdef double* mine
    cdef double* theirs
    apply_deferred(A, n)
    for j in range(n):
        mine, theirs = A.base + j * A.capacity, other.base + j * other.capacity
        for i in range(j, n):
            mine[i] = kept * mine[i] + shift * theirs[i]
        A.diagonal[j] = mine[j]


cdef void apply_deferred(Sym* A, int n) noexcept nogil:
    """Apply the deferred updates: first the rows to add, sorted to the front, then the others."""
    cdef Py_ssize_t i
    cdef int added = 0, p, subtracted
    cdef double x, z
    for p in range(A.deferred):
        if A.signs[p] > 0.0:
            if p > added:
                dswap(&n, A.rows + p * A.row_stride, &ONE, A.rows + added * A.row_stride, &ONE)
                A.signs[p] = -1.0
            added += 1
    subtracted = A.deferred - added
    if A.deferred > 0 and added <= 1 and subtracted <= 1:  # xxᵀ − zzᵀ by one pass over the matrix
        for i in range(n):
            x = A.rows[i] if added else 0.0
            z = A.rows[added * A.row_stride + i] if subtracted else 0.0
            A.rows[i], A.rows[A.row_stride + i] = 0.5 * (x - z), x + z
        add_pair_of(n, A.base, A.capacity, A.rows, A.rows + A.row_stride)
    else:
        _add_squares(A, n, added, A.rows, &UNIT)
        _add_squares(A, n, subtracted, A.rows + added * A.row_stride, &MINUS)
    A.deferred = 0
    for i in range(n):
        A.diagonal[i] = A.base[i * (A.capacity + 1)]


cdef inline void _add_squares(Sym* A, int n, int count, double* rows, double* scale) noexcept nogil:
    if count:
        dsyrk(&LOWER, &PLAIN, &n, &count, scale, rows, &A.row_stride, &UNIT, A.base, &A.ld)


cdef class Symmetric:
    """Room for `capacity` slots. The caller says how many of them are in use."""

    def __init__(self, Py_ssize_t capacity, Py_ssize_t parts=1, bint defers_all=False):
        cdef int room = slots.DEFERRED_ROOM
        self._room, self._owed = Matrix(capacity, capacity), Matrix(room + 1, parts * capacity)
        self._base, self._rows = self._room.values, self._owed.values
        self._diagonal, self._signs, self._shares = (aligned((n,)) for n in (capacity, room, room))
        self.at.base, self.at.diagonal = pointer(self._base), pointer(self._diagonal)
        self.at.rows, self.at.signs = pointer(self._rows), pointer(self._signs)
        self.at.capacity, self.at.ld = capacity, <int> capacity
        self.at.row_stride, self.at.parts, self.at.deferred = <int> (parts * capacity), 1, 0
        self.at.room, self.at.defers_all = room, defers_all
        self.at.shares, self.at.work = pointer(self._shares), self.at.rows + room * self.at.row_stride

    @property
    def nbytes(self):
        return self._base.nbytes + self._rows.nbytes + self._diagonal.nbytes

    def _deferred_rows(self, Py_ssize_t n):
        """Return the deferred rows, and the same with their signs."""
        rows = self._rows[:self.at.deferred, :n]
        return rows, rows * self._signs[:self.at.deferred, None]

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
        if self.at.deferred:
            deferred, signed = self._deferred_rows(n)
            solved += (rows @ deferred.T) @ signed
        return solved

    cdef object full(self, int n):
        """Return A as an ordinary symmetric array."""
        whole, signed = np.empty((n, n)), np.ascontiguousarray(self._deferred_rows(n)[1])
        cdef Py_ssize_t i, j, length = n
        cdef double* out = pointer(whole)
        cdef double* signed_p = pointer(signed)
        with nogil:
            for j in range(length):
                memcpy(out + j * (length + 1), self.at.base + j * (self.at.capacity + 1),
                       (length - j) * sizeof(double))
            if self.at.deferred > 0 and n > 0:  # Σ±uuᵀ by halves of pairs
                dsyr2k(&LOWER, &PLAIN, &n, &self.at.deferred, &HALF, signed_p, &n, self.at.rows,
                       &self.at.row_stride, &UNIT, out, &n)
            for j in range(length):
                for i in range(j + 1, length):
                    out[i * length + j] = out[j * length + i]
        return whole

    cdef dict state(self, str name, int n):
        """Return copies of the leading n slots, and the deferred updates as pairs uvᵀ + vuᵀ."""
        rows, signed = self._deferred_rows(n)
        return {name: pack(self._base, n), name + "_left": signed / 2, name + "_right": rows.copy()}

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
        self.at.deferred = <int> len(signs)
        self._rows[:len(signs), :n], self._signs[:len(signs)] = right[:len(signs)], signs
        for p in range(self.at.deferred):  # in the order in which `add` did it
            row = self.at.rows + p * self.at.row_stride
            for i in range(n):
                self.at.diagonal[i] += self.at.signs[p] * row[i] * row[i]

    cdef void hold(self, object packed, int n) except *:
        """Take over a triangle that `pack` returned; nothing is deferred."""
        cdef Py_ssize_t i
        unpack(packed, self._base, n)
        self.at.deferred = 0
        for i in range(n):
            self.at.diagonal[i] = self.at.base[i * (self.at.capacity + 1)]

    cdef void copy_from(self, Symmetric other, int n) except *:
        """Copy the leading n slots of another, and its deferred updates."""
        cdef Py_ssize_t j, stride = self.at.capacity, theirs = other.at.capacity
        n = min(n, <int> stride)
        for j in range(n):  # one triangle: the other is never read
            memcpy(self.at.base + j * (stride + 1), other.at.base + j * (theirs + 1),
                   (n - j) * sizeof(double))
        self._diagonal[:n] = other._diagonal[:n]
        self.at.deferred = other.at.deferred
        self._rows[:self.at.deferred, :n] = other._rows[:self.at.deferred, :n]
        self._signs[:] = other._signs
