# Symmetric matrices by slot: the lower triangle in column-major order, leading dimension `stride`.
# Seen as a NumPy array of shape (stride, stride), row j is column j of the matrix.
from libc.string cimport memcpy


cdef inline void get_column(const double* matrix, Py_ssize_t stride, Py_ssize_t j, Py_ssize_t n,
                            double* out) noexcept nogil:
    """Copy column j of the leading n slots."""
    cdef Py_ssize_t i
    for i in range(j):
        out[i] = matrix[i * stride + j]
    memcpy(out + j, matrix + j * (stride + 1), (n - j) * sizeof(double))


cdef inline void put_column(double* matrix, Py_ssize_t stride, Py_ssize_t j, Py_ssize_t n,
                            const double* column) noexcept nogil:
    """Write column j, and so row j, of the leading n slots."""
    cdef Py_ssize_t i
    for i in range(j):
        matrix[i * stride + j] = column[i]
    memcpy(matrix + j * (stride + 1), column + j, (n - j) * sizeof(double))


cdef inline void move_last(double* matrix, Py_ssize_t stride, Py_ssize_t j, Py_ssize_t n,
                           double* work) noexcept nogil:
    """Move the last of n slots into slot j < n − 1."""
    get_column(matrix, stride, n - 1, n, work)
    work[j] = work[n - 1]
    put_column(matrix, stride, j, n - 1, work)


cdef class Matrix:
    cdef object values


cdef object aligned(tuple shape)
cdef object fresh(tuple shape)
cdef double* pointer(object array) except? NULL
cdef object pack(object matrix, Py_ssize_t n)
cdef void unpack(object packed, object matrix, Py_ssize_t n) except *
