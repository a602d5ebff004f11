# The retained-data posterior, and what the learning loop may do with it.
from pogp.posteriors.retained.compiled_state cimport RetainedState


cdef class RetainedUpdates(RetainedState):
    cdef void _solve_block(self, const double* X, Py_ssize_t n) noexcept nogil
    cdef double _predict(self, Py_ssize_t i, Py_ssize_t n, double* mean) noexcept nogil
    cdef bint _augment(self, double y, double mean, double s) noexcept nogil
    cdef void _augmented_column(self, Py_ssize_t j, double s) noexcept nogil
    cdef void _update_vectors(self, Py_ssize_t j, Py_ssize_t n) noexcept nogil
    cdef void _discard_newest(self) noexcept nogil
    cdef void _replace(self, Py_ssize_t j, const double* x, double y, long long arrival,
                       double s) noexcept nogil
    cdef void _append_newest(self, const double* x, double y, long long arrival,
                             double s) noexcept nogil
    cdef void _write_newest(self, Py_ssize_t j, const double* x, double y,
                            long long arrival) noexcept nogil
    cdef void _drop(self, Py_ssize_t j, Py_ssize_t n) noexcept nogil
    cdef void _extend_block(self, const double* x, double s) noexcept nogil
    cdef void _shrink_block(self, Py_ssize_t j, Py_ssize_t n) noexcept nogil
