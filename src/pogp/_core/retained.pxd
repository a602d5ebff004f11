# The state of the retained-data posterior, and what the learning loop may do with it.
from pogp._core.program cimport Program


cdef class Retained:
    cdef readonly Py_ssize_t size, capacity, dimension, rebuilds
    cdef readonly double noise, mean
    cdef Program program
    cdef Py_ssize_t unchecked          # samples since the drift was last measured
    cdef double tolerance
    cdef object _inputs, _targets, _arrivals, _alpha, _P, _K, _scratch
    cdef double* inputs_p              # (p, capacity)
    cdef double* targets_p             # (capacity,)
    cdef long long* arrivals_p         # (capacity,)
    cdef double* alpha                 # (capacity,)
    cdef double* P                     # (capacity, capacity), lower triangle
    cdef double* K                     # (capacity, capacity), lower triangle
    # the step at hand; vectors by slot of the augmented dictionary
    cdef double* k                     # κ(Z, x)
    cdef double* w                     # P k
    cdef double* v                     # influence on the marginal at x
    cdef double* a                     # α
    cdef double* g                     # diagonal of P
    cdef double* c                     # column of P at the point that goes
    cdef double* u                     # work
    cdef double* z                     # work
    cdef double* spare                 # room for four more vectors
    cdef double* stack                 # for the kernel
    cdef double variance, shift, gain  # the marginal at x: reference, and how far it moved

    cdef double _predict(self, const double* x, double* mean) noexcept nogil
    cdef bint _careful(self, double kappa0) noexcept nogil
    cdef void _solve(self, const double* k, double* w, double* residual,
                     double kappa0) noexcept nogil
    cdef double _residual(self, const double* b, const double* solution,
                          double* residual) noexcept nogil
    cdef void _augment(self, double y, double mean, double s) noexcept nogil
    cdef void _augmented_column(self, Py_ssize_t j, double s) noexcept nogil
    cdef void _follow(self, Py_ssize_t j, Py_ssize_t n) noexcept nogil
    cdef void _leave_at_once(self) noexcept nogil
    cdef void _replace(self, Py_ssize_t j, const double* x, double y, long long arrival,
                       double s) noexcept nogil
    cdef void _stay(self, const double* x, double y, long long arrival, double s) noexcept nogil
    cdef void _place(self, Py_ssize_t j, const double* x, double y, long long arrival) noexcept nogil
    cdef void _drop(self, Py_ssize_t j, Py_ssize_t n) noexcept nogil
    cdef void _check_drift(self, long long turn) noexcept nogil
    cdef double _column_drift(self, Py_ssize_t j) noexcept nogil
    cdef void _rebuild(self) noexcept nogil
    cdef void _polish_weights(self) noexcept nogil
    cdef void _times(self, double* matrix, double* rows, Py_ssize_t n, double* out) noexcept nogil
    cdef _allocate(self, Py_ssize_t capacity)
