# Products with Q and S; see compiled_products.pyx.
from pogp.posteriors.absorbed.compiled_state cimport AbsorbedState


cdef class AbsorbedProducts(AbsorbedState):
    cdef void _advance_block(self, const double* X, Py_ssize_t n) noexcept nogil
    cdef bint _needs_refinement(self, const double* x) noexcept nogil
    cdef void _end_full_block(self) noexcept nogil
    cdef void _end_block(self) noexcept nogil
    cdef void _fill_parts(self, double* v, int n) noexcept nogil
    cdef void _solve_both(self, Py_ssize_t j, int n, const double* v, double* solved) noexcept nogil
    cdef void _load_slot(self, Py_ssize_t j, int n) noexcept nogil
    cdef void _extend_block(self, const double* x, Py_ssize_t m) noexcept nogil
    cdef void _shrink_block(self, Py_ssize_t j, int n) noexcept nogil
    cdef void _shrink_row(self, double* v, Py_ssize_t j, int n) noexcept nogil
    cdef void _unrefined_weights(self, const double* x, double* k, double* w, double* stack,
                          double* shares) noexcept nogil
    cdef void _column(self, Py_ssize_t j, int n) noexcept nogil
    cdef void _times_covariance(self, Py_ssize_t belief, int n, double* w, double* g,
                                double* shares) noexcept nogil
    cdef void _times_belief(self, Py_ssize_t belief, Py_ssize_t j, int n, double* c) noexcept nogil
    cdef void _times_inverse(self, int n, double* g, double* b) noexcept nogil
    cdef bint _seems_wrong(self, double kappa0, const double* k, double* w, double* u) noexcept nogil
    cdef double _residual(self, double kappa0, const double* k, double* w, double* u) noexcept nogil
