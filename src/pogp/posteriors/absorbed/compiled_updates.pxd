# What learning changes of the absorbed posterior; see compiled_updates.pyx.
from pogp.posteriors.absorbed.compiled_products cimport AbsorbedProducts


cdef class AbsorbedUpdates(AbsorbedProducts):
    cdef void _predict_input(self, const double* x) noexcept nogil
    cdef double _regression_weights(self, const double* x, double kappa0, double* k, double* w,
                                    double* u, double* z, double* stack, double* shares, bint mend) noexcept nogil
    cdef double _refine(self, double kappa0, const double* k, double* w, double* u, double* z,
                        double* shares, bint mend) noexcept nogil
    cdef void _fill_moments(self, double* k, double* w, double* g, Py_ssize_t apart, double* shares,
                        double* means, double* explained) noexcept nogil
    cdef bint _fill_surprises(self, const double* y, const double* noises, bint whole) noexcept nogil
    cdef void _fill_b(self) noexcept nogil
    cdef void _append(self, const double* x, const double* noises, long long arrival,
                      double relevance, bint uses_recent) noexcept nogil
    cdef void _price_append(self, const double* noises, double by_gamma) noexcept nogil
    cdef bint _collect_recent(self, const double* x) noexcept nogil
    cdef void _learn_recent(self, double noise) noexcept nogil
    cdef void _absorb(self, const double* y, const double* noises, bint marginalise) noexcept nogil
    cdef void _remove(self, Py_ssize_t j, bint marginalise) noexcept nogil
    cdef void _renew_spread(self) noexcept nogil
    cdef void _bound_spread(self) noexcept nogil
    cdef void _project(self, Py_ssize_t belief, Py_ssize_t j, bint marginalise) noexcept nogil
    cdef void _remove_information(self, Py_ssize_t j, bint marginalise) noexcept nogil
    cdef void _drop(self, Py_ssize_t j) noexcept nogil
    cdef void _forget(self) noexcept nogil
    cdef _predict_one(self, const double* x, double* means, double* latent)
