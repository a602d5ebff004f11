# A symmetric matrix by slot that may owe updates; see symmetric.pyx.

cdef class Symmetric:
    cdef object _base, _left, _right, _diagonal, _shares
    cdef double* base          # (capacity, capacity), the lower triangle
    cdef double* left          # (DUE, capacity), one row per update that is due
    cdef double* right
    cdef double* diagonal      # (capacity,), of the matrix as it is, all updates included
    cdef double* shares        # (2 · DUE,), for products
    cdef Py_ssize_t capacity
    cdef int ld, due

    cdef void product(self, int n, const double* x, double* out) noexcept nogil
    cdef void column(self, Py_ssize_t j, int n, double* out) noexcept nogil
    cdef void add(self, int n, double scale, const double* u, const double* v) noexcept nogil
    cdef void put(self, Py_ssize_t j, int n, const double* column) noexcept nogil
    cdef void move_last(self, Py_ssize_t j, int n, double* work) noexcept nogil
    cdef void settle(self, int n) noexcept nogil
    cdef object times(self, object rows, int n)
    cdef object quadratic(self, object rows, int n)
    cdef object _base_times(self, object rows, int n)
    cdef object full(self, int n)
    cdef dict state(self, str name, int n)
    cdef void restore(self, str name, dict state, int n) except *
