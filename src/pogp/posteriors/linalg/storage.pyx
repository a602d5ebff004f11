# cython: language_level=3, boundscheck=False, wraparound=False
"""Memory for the compiled cores: aligned arrays, and symmetric matrices by their triangles."""

from math import prod

import numpy as np

cimport numpy as cnp

from libc.string cimport memcpy

cnp.import_array()


cdef object aligned(tuple shape):
    """Return zeros that start on a cache line, so that BLAS takes the same path after a copy."""
    room = fresh(shape)
    room[...] = 0.0
    return room


cdef object fresh(tuple shape):
    """Return the same without zeros; memory costs nothing until it is used."""
    cdef Py_ssize_t count = prod(shape)
    cdef cnp.ndarray buffer = np.empty(count + 8)
    cdef Py_ssize_t first = (-(<Py_ssize_t> cnp.PyArray_DATA(buffer) // 8)) & 7
    return buffer[first:first + count].reshape(shape)


# Memory of matrices that were freed, to be used again. A long batch is learned on a copy of the
# model, and fresh pages for it take longer than the copying.
cdef dict spare = {}               # by shape; the shape that was freed last is the last one
cdef Py_ssize_t SPARE = 16 << 20   # bytes, or what one model takes as long as there is one: six
                                   # matrices as large as the largest
cdef Py_ssize_t used = 0, left = 0 # bytes of matrices in use, and of spare ones


cdef class Matrix:
    """Memory for so many rows and columns, not initialised."""

    def __init__(self, Py_ssize_t rows, Py_ssize_t columns):
        global used, left
        used += 8 * rows * columns
        same = spare.get((rows, columns))
        if same:
            left -= 8 * rows * columns
            self.values = same.pop()
        else:
            self.values = fresh((rows, columns))

    @property
    def nbytes(self):
        return self.values.nbytes

    def __del__(self):
        global used, left
        cdef Py_ssize_t size = self.values.nbytes
        shape = self.values.shape
        used, left = used - size, left + size
        same = spare.pop(shape, [])
        same.append(self.values)
        spare[shape] = same
        cdef Py_ssize_t largest = 8 * max([rows * columns for rows, columns in spare])
        while left > max(SPARE, min(6 * largest, used)):
            oldest = next(iter(spare))
            if spare[oldest]:
                left -= spare[oldest].pop().nbytes
            else:
                del spare[oldest]


cdef double* pointer(object array) except? NULL:
    """Return where a contiguous array of float64 starts; NULL if it is empty."""
    cdef cnp.ndarray held = array
    if cnp.PyArray_TYPE(held) != cnp.NPY_DOUBLE or not cnp.PyArray_IS_C_CONTIGUOUS(held):
        raise ValueError(f"expected a contiguous array of float64, got {array!r}")
    return <double*> cnp.PyArray_DATA(held) if cnp.PyArray_SIZE(held) else NULL


cdef object pack(object matrix, Py_ssize_t n):
    """Return the triangle of the leading n slots, in the order of `np.triu_indices`."""
    packed = np.empty(n * (n + 1) // 2)
    cdef double* out = pointer(packed)
    cdef double* start = pointer(matrix)
    cdef Py_ssize_t j, stride = matrix.shape[1]
    for j in range(n):
        memcpy(out, start + j * (stride + 1), (n - j) * sizeof(double))
        out += n - j
    return packed


cdef void unpack(object packed, object matrix, Py_ssize_t n) except *:
    """Fill the leading n slots from what `pack` returned."""
    contiguous = np.ascontiguousarray(packed)
    cdef double* source = pointer(contiguous)
    cdef double* start = pointer(matrix)
    cdef Py_ssize_t j, stride = matrix.shape[1]
    for j in range(n):
        memcpy(start + j * (stride + 1), source, (n - j) * sizeof(double))
        source += n - j
