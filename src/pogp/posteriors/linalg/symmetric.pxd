# A symmetric matrix by slot with deferred updates; see symmetric.pyx.
from pogp.posteriors.linalg.storage cimport Matrix

cdef struct Sym:
    double* base          # (capacity, capacity), the lower triangle
    double* rows          # (room, row_stride), one row per deferred update
    double* signs         # (room,), theirs
    double* diagonal      # (capacity,), of the matrix as it is, all updates included
    double* shares        # (room,), for products
    double* work          # (apart,)
    Py_ssize_t capacity
    int ld, row_stride, deferred, room
    bint defers_all       # whether all the room may be used; otherwise a small matrix defers less
    int parts             # of each row that are in use: 1, or more while a block is learned


cdef void product(Sym* A, int n, const double* x, double* out, double* shares) noexcept nogil
cdef void times_base(Sym* A, int n, const double* x, double* out) noexcept nogil
cdef void both_times_base(Sym* A, int n, const double* x, double* out, const double* other,
                          double* second) noexcept nogil
cdef void all_times_base(Sym* A, int n, int count, const double* X, double* Y,
                         int apart) noexcept nogil
cdef void add_deferred_product(Sym* A, int n, int parts, const double* x, double* out,
                    double* shares) noexcept nogil
cdef void add_deferred_column(Sym* A, int n, int parts, Py_ssize_t j, double* out) noexcept nogil
cdef void get(Sym* A, Py_ssize_t j, int n, double* out) noexcept nogil
cdef void add(Sym* A, int n, double scale, const double* u) noexcept nogil
cdef void add_pair(Sym* A, int n, const double* u, const double* v) noexcept nogil
cdef void put(Sym* A, Py_ssize_t j, int n, const double* column) noexcept nogil
cdef void drop(Sym* A, Py_ssize_t j, int n, double* work) noexcept nogil
cdef void blend(Sym* A, int n, double kept, double shift, Sym* other) noexcept nogil
cdef void apply_deferred(Sym* A, int n) noexcept nogil


cdef class Symmetric:
    cdef Sym at
    cdef Matrix _room, _owed
    cdef object _base, _rows, _signs, _diagonal, _shares

    cdef object times(self, object rows, int n)
    cdef object full(self, int n)
    cdef dict state(self, str name, int n)
    cdef void restore(self, str name, dict state, int n) except *
    cdef void hold(self, object packed, int n) except *
    cdef void copy_from(self, Symmetric other, int n) except *
