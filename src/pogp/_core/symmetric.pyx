# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""A symmetric matrix that may owe updates: A = base + Σ (uvᵀ + vuᵀ) over the pairs that are due.

A pair costs a pass over the matrix when it is applied by itself (`dsyr2`) and a fraction of that
when many are applied together (`dsyr2k`); until then a product pays O(n) for each that is due. Which
updates are due is part of the state, so that a copy goes on bit for bit.
"""

import numpy as np

from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport dgemv, dsymm, dsymv, dsyr2k

from pogp._core.slots cimport aligned, full, get_column, move_last, pack, pointer, put_column, unpack

from pogp._core.slots_reference import DUE

cdef int ONE = 1, LIMIT = DUE
cdef char LOWER = b"L", LEFT = b"L", PLAIN = b"N", TRANSPOSED = b"T"
cdef double UNIT = 1.0, ZERO = 0.0


cdef class Symmetric:
    """Room for `capacity` slots; what the leading n of them hold is the caller's affair."""

    def __init__(self, Py_ssize_t capacity):
        self.capacity = capacity
        self.ld = <int> capacity
        self._base = aligned((capacity, capacity))
        self._left, self._right = aligned((LIMIT, capacity)), aligned((LIMIT, capacity))
        self._diagonal, self._shares = aligned((capacity,)), aligned((2 * LIMIT,))
        self.base, self.diagonal = pointer(self._base), pointer(self._diagonal)
        self.left, self.right = pointer(self._left), pointer(self._right)
        self.shares = pointer(self._shares)
        self.due = 0

    @property
    def nbytes(self):
        return self._base.nbytes + self._left.nbytes + self._right.nbytes + self._diagonal.nbytes

    cdef void product(self, int n, const double* x, double* out) noexcept nogil:
        """out = Ax."""
        cdef double* other = self.shares + LIMIT
        dsymv(&LOWER, &n, &UNIT, self.base, &self.ld, <double*> x, &ONE, &ZERO, out, &ONE)
        if self.due > 0:
            dgemv(&TRANSPOSED, &n, &self.due, &UNIT, self.left, &self.ld, <double*> x, &ONE, &ZERO,
                  self.shares, &ONE)
            dgemv(&TRANSPOSED, &n, &self.due, &UNIT, self.right, &self.ld, <double*> x, &ONE, &ZERO,
                  other, &ONE)
            dgemv(&PLAIN, &n, &self.due, &UNIT, self.left, &self.ld, other, &ONE, &UNIT, out, &ONE)
            dgemv(&PLAIN, &n, &self.due, &UNIT, self.right, &self.ld, self.shares, &ONE, &UNIT, out,
                  &ONE)

    cdef void column(self, Py_ssize_t j, int n, double* out) noexcept nogil:
        """out = A_j."""
        get_column(self.base, self.capacity, j, n, out)
        if self.due > 0:  # the rows j of left and right are vectors of stride `capacity`
            dgemv(&PLAIN, &n, &self.due, &UNIT, self.left, &self.ld, self.right + j, &self.ld, &UNIT,
                  out, &ONE)
            dgemv(&PLAIN, &n, &self.due, &UNIT, self.right, &self.ld, self.left + j, &self.ld, &UNIT,
                  out, &ONE)

    cdef void add(self, int n, double scale, const double* u, const double* v) noexcept nogil:
        """A += scale (uvᵀ + vuᵀ), now or later."""
        cdef Py_ssize_t i
        cdef double* left
        cdef double* right
        if self.due == LIMIT:
            self.settle(n)
        left = self.left + self.due * self.capacity
        right = self.right + self.due * self.capacity
        for i in range(n):
            left[i] = scale * u[i]
            right[i] = v[i]
            self.diagonal[i] += 2.0 * left[i] * right[i]
        self.due += 1

    cdef void put(self, Py_ssize_t j, int n, const double* column) noexcept nogil:
        """Write column j, and so row j, whatever was due there."""
        cdef int p
        put_column(self.base, self.capacity, j, n, column)
        for p in range(self.due):
            self.left[p * self.capacity + j] = 0.0
            self.right[p * self.capacity + j] = 0.0
        self.diagonal[j] = column[j]

    cdef void move_last(self, Py_ssize_t j, int n, double* work) noexcept nogil:
        """Move the last of n slots into slot j < n − 1."""
        cdef int p
        move_last(self.base, self.capacity, j, n, work)
        for p in range(self.due):
            self.left[p * self.capacity + j] = self.left[p * self.capacity + n - 1]
            self.right[p * self.capacity + j] = self.right[p * self.capacity + n - 1]
        self.diagonal[j] = self.diagonal[n - 1]

    cdef void settle(self, int n) noexcept nogil:
        """Apply what is due."""
        cdef Py_ssize_t i
        if self.due > 0:
            dsyr2k(&LOWER, &PLAIN, &n, &self.due, &UNIT, self.left, &self.ld, self.right, &self.ld,
                   &UNIT, self.base, &self.ld)
            self.due = 0
        for i in range(n):
            self.diagonal[i] = self.base[i * (self.capacity + 1)]

    cdef object times(self, object rows, int n):
        """Return xᵀA for each of the rows x; changes nothing, not even work space."""
        product = self._base_times(rows, n)
        if self.due:
            left, right = self._left[:self.due, :n], self._right[:self.due, :n]
            product += (rows @ left.T) @ right + (rows @ right.T) @ left
        return product

    cdef object quadratic(self, object rows, int n):
        """Return xᵀAx for each of the rows x; changes nothing, not even work space."""
        value = np.sum(rows * self._base_times(rows, n), axis=1)
        if self.due:
            left, right = self._left[:self.due, :n], self._right[:self.due, :n]
            value += 2.0 * np.sum((rows @ left.T) * (rows @ right.T), axis=1)
        return value

    cdef object _base_times(self, object rows, int n):
        """Return xᵀ times what is not due for each of the rows x, which are contiguous."""
        solved = np.empty_like(rows)
        cdef int count = <int> rows.shape[0]
        cdef double* rows_p = pointer(rows)
        cdef double* solved_p = pointer(solved)
        if n > 0 and count > 0:
            with nogil:
                dsymm(&LEFT, &LOWER, &n, &count, &UNIT, self.base, &self.ld, rows_p, &n, &ZERO,
                      solved_p, &n)
        return solved

    cdef object full(self, int n):
        """Return A as an ordinary symmetric array."""
        product = self._left[:self.due, :n].T @ self._right[:self.due, :n]
        return full(self._base, n) + product + product.T

    cdef dict state(self, str name, int n):
        """Return copies of what the leading n slots hold and owe."""
        return {
            name: pack(self._base, n),
            name + "_left": self._left[:self.due, :n].copy(),
            name + "_right": self._right[:self.due, :n].copy(),
        }

    cdef void restore(self, str name, dict state, int n) except *:
        """Take over what `state` returned."""
        cdef int p
        cdef Py_ssize_t i
        unpack(state[name], self._base, n)
        left, right = state[name + "_left"], state[name + "_right"]
        self.due = <int> len(left)
        self._left[:self.due, :n] = left
        self._right[:self.due, :n] = right
        for i in range(n):
            self.diagonal[i] = self.base[i * (self.capacity + 1)]
            for p in range(self.due):
                self.diagonal[i] += (2.0 * self.left[p * self.capacity + i]
                                     * self.right[p * self.capacity + i])
