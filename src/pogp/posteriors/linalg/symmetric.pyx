# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""A symmetric matrix that may owe updates: A = base + Σ (uvᵀ + vuᵀ) over the pairs that are due.

A pair costs a pass over the matrix when it is applied by itself (`dsyr2`) and a fraction of that
when many are applied together (`dsyr2k`); until then a product pays O(n) for each that is due. Which
updates are due is part of the state, so that a copy goes on bit for bit.
"""

import numpy as np

from libc.string cimport memcpy
from scipy.linalg.cython_blas cimport dgemv, dsymm, dsymv, dsyr2k

from pogp.posteriors.linalg.storage cimport (
    aligned, full, get_column, leave, move_last, pack, pointer, put_column, square, unpack,
)

from pogp.posteriors.slots import DUE

cdef int ONE = 1, LIMIT = DUE
cdef char LOWER = b"L", LEFT = b"L", PLAIN = b"N", TRANSPOSED = b"T"
cdef double UNIT = 1.0, ZERO = 0.0


cdef void product(Sym* A, int n, const double* x, double* out) noexcept nogil:
    """out = Ax."""
    product_by(A, n, x, out, A.shares)


cdef void product_by(Sym* A, int n, const double* x, double* out, double* shares) noexcept nogil:
    """The same by a work space (2 · DUE,) of the caller's own."""
    cdef double* other = shares + LIMIT
    cdef double* rows = <double*> x
    dsymv(&LOWER, &n, &UNIT, A.base, &A.ld, rows, &ONE, &ZERO, out, &ONE)
    if A.due > 0:
        dgemv(&TRANSPOSED, &n, &A.due, &UNIT, A.left, &A.ld, rows, &ONE, &ZERO, shares, &ONE)
        dgemv(&TRANSPOSED, &n, &A.due, &UNIT, A.right, &A.ld, rows, &ONE, &ZERO, other, &ONE)
        dgemv(&PLAIN, &n, &A.due, &UNIT, A.left, &A.ld, other, &ONE, &UNIT, out, &ONE)
        dgemv(&PLAIN, &n, &A.due, &UNIT, A.right, &A.ld, shares, &ONE, &UNIT, out, &ONE)


cdef void get(Sym* A, Py_ssize_t j, int n, double* out) noexcept nogil:
    """out = A_j."""
    get_column(A.base, A.capacity, j, n, out)
    if A.due > 0:  # the rows j of left and right are vectors of stride `capacity`
        dgemv(&PLAIN, &n, &A.due, &UNIT, A.left, &A.ld, A.right + j, &A.ld, &UNIT, out, &ONE)
        dgemv(&PLAIN, &n, &A.due, &UNIT, A.right, &A.ld, A.left + j, &A.ld, &UNIT, out, &ONE)


cdef void add(Sym* A, int n, double scale, const double* u, const double* v) noexcept nogil:
    """A += scale (uvᵀ + vuᵀ), now or later."""
    cdef Py_ssize_t i
    cdef double* left
    cdef double* right
    # A small matrix owes less: pairs cost a product a fraction of the matrix itself, and hold less
    # than the matrix where a model is saved.
    if A.due >= min(LIMIT, n // 8 + 1, n // 16 + 4):
        _settle(A, n)
    left = A.left + A.due * A.capacity
    right = A.right + A.due * A.capacity
    for i in range(n):
        left[i] = scale * u[i]
        right[i] = v[i]
        A.diagonal[i] += 2.0 * left[i] * right[i]
    A.due += 1


cdef void put(Sym* A, Py_ssize_t j, int n, const double* column) noexcept nogil:
    """Write column j, and so row j, whatever was due there."""
    cdef int p
    put_column(A.base, A.capacity, j, n, column)
    for p in range(A.due):
        A.left[p * A.capacity + j] = 0.0
        A.right[p * A.capacity + j] = 0.0
    A.diagonal[j] = column[j]


cdef void drop(Sym* A, Py_ssize_t j, int n, double* work) noexcept nogil:
    """Take slot j out of n; the last one takes its place."""
    cdef int p
    if j == n - 1:
        return
    move_last(A.base, A.capacity, j, n, work)
    for p in range(A.due):
        A.left[p * A.capacity + j] = A.left[p * A.capacity + n - 1]
        A.right[p * A.capacity + j] = A.right[p * A.capacity + n - 1]
    A.diagonal[j] = A.diagonal[n - 1]


cdef void blend(Sym* A, int n, double kept, double shift, Sym* other) noexcept nogil:
    """A ← kept·A + shift·other, which owes nothing."""
    cdef Py_ssize_t i, j
    cdef double* mine
    cdef double* theirs
    _settle(A, n)
    for j in range(n):
        mine, theirs = A.base + j * A.capacity, other.base + j * other.capacity
        for i in range(j, n):
            mine[i] = kept * mine[i] + shift * theirs[i]
        A.diagonal[j] = mine[j]


cdef void _settle(Sym* A, int n) noexcept nogil:
    """Apply what is due."""
    cdef Py_ssize_t i
    if A.due > 0:
        dsyr2k(&LOWER, &PLAIN, &n, &A.due, &UNIT, A.left, &A.ld, A.right, &A.ld, &UNIT, A.base,
               &A.ld)
        A.due = 0
    for i in range(n):
        A.diagonal[i] = A.base[i * (A.capacity + 1)]


cdef class Symmetric:
    """Owns the room for `capacity` slots; what the leading n of them hold is the caller's affair."""

    def __init__(self, Py_ssize_t capacity):
        self._base = square(capacity)
        self._left, self._right = aligned((LIMIT, capacity)), aligned((LIMIT, capacity))
        self._diagonal, self._shares = aligned((capacity,)), aligned((2 * LIMIT,))
        self.at.base, self.at.diagonal = pointer(self._base), pointer(self._diagonal)
        self.at.left, self.at.right = pointer(self._left), pointer(self._right)
        self.at.shares = pointer(self._shares)
        self.at.capacity, self.at.ld, self.at.due = capacity, <int> capacity, 0

    def __del__(self):
        leave(self._base)

    @property
    def nbytes(self):
        return self._base.nbytes + self._left.nbytes + self._right.nbytes + self._diagonal.nbytes

    cdef object times(self, object rows, int n):
        """Return xᵀA for each of the rows x; changes nothing, not even work space."""
        solved = np.empty_like(rows)
        cdef int count = <int> rows.shape[0], due = self.at.due
        cdef double* rows_p = pointer(rows)
        cdef double* solved_p = pointer(solved)
        if n > 0 and count > 0:
            with nogil:
                dsymm(&LEFT, &LOWER, &n, &count, &UNIT, self.at.base, &self.at.ld, rows_p, &n,
                      &ZERO, solved_p, &n)
        if due:
            left, right = self._left[:due, :n], self._right[:due, :n]
            solved += (rows @ left.T) @ right + (rows @ right.T) @ left
        return solved

    cdef object full(self, int n):
        """Return A as an ordinary symmetric array."""
        product = self._left[:self.at.due, :n].T @ self._right[:self.at.due, :n]
        return full(self._base, n) + product + product.T

    cdef dict state(self, str name, int n):
        """Return copies of what the leading n slots hold and owe."""
        return {
            name: pack(self._base, n),
            name + "_left": self._left[:self.at.due, :n].copy(),
            name + "_right": self._right[:self.at.due, :n].copy(),
        }

    cdef void restore(self, str name, dict state, int n) except *:
        """Take over what `state` returned."""
        cdef int p
        cdef Py_ssize_t i
        left, right = state[name + "_left"], state[name + "_right"]
        unpack(state[name], self._base, n)
        self.at.due = <int> len(left)
        self._left[:self.at.due, :n] = left
        self._right[:self.at.due, :n] = right
        for i in range(n):  # in the order in which `add` did it
            self.at.diagonal[i] = self.at.base[i * (self.at.capacity + 1)]
            for p in range(self.at.due):
                self.at.diagonal[i] += (2.0 * self.at.left[p * self.at.capacity + i]
                                        * self.at.right[p * self.at.capacity + i])

    cdef void follow(self, Symmetric other, int n) except *:
        """Hold and owe in the leading n slots what another of the same capacity does."""
        cdef Py_ssize_t j, stride = self.at.capacity
        n = min(n, <int> stride)
        for j in range(n):  # one triangle: the other is never read
            memcpy(self.at.base + j * (stride + 1), other.at.base + j * (stride + 1),
                   (n - j) * sizeof(double))
        self._diagonal[:n] = other._diagonal[:n]
        self.at.due = other.at.due
        self._left[:self.at.due, :n] = other._left[:self.at.due, :n]
        self._right[:self.at.due, :n] = other._right[:self.at.due, :n]

    cdef void fill(self, object matrix, int n) except *:
        """Take over an ordinary symmetric array."""
        self._base[:n, :n] = matrix
        self._diagonal[:n] = np.diagonal(matrix)
        self.at.due = 0
