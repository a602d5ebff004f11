# What the retained-data posterior knows; see retained_state.pyx.
from pogp.kernels.compiled cimport Program


cdef class RetainedState:
    cdef readonly Py_ssize_t size, capacity, dimension
    cdef readonly double noise, mean
    cdef Program program
    cdef object _inputs, _targets, _arrivals, _alpha, _P, _K, _scratch
    cdef double* inputs_p              # (p, capacity)
    cdef double* targets_p             # (capacity,)
    cdef long long* arrivals_p         # (capacity,)
    cdef double* alpha                 # (capacity,)
    cdef double* P                     # (capacity, capacity), lower triangle
    cdef double* K                     # (capacity, capacity), lower triangle
    # P owes the sum of left·rightᵀ + right·leftᵀ over the first `due` rows
    cdef int due
    cdef double* left                  # (BLOCK, capacity)
    cdef double* right                 # (BLOCK, capacity)
    cdef double* diagonal_p            # of P, what is due included
    # a block of samples; vectors by slot, one row per sample
    cdef double* cross                 # κ(Z, x)
    cdef double* solved                # P κ(Z, x)
    cdef double* samples               # (p, BLOCK), the inputs
    cdef double* priors                # (BLOCK,) κ(x, x)
    cdef Py_ssize_t at, ahead          # the sample at hand, and how many come after it
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
    cdef double* near                  # (BLOCK,) κ between x and the samples ahead
    cdef double* share                 # (BLOCK,) x's own entry of their solutions
    cdef double* loss                  # (BLOCK,) what each of them loses by a removal
    cdef double variance, shift, gain  # the marginal at x: reference, and how far it moved

    cdef bint _careful(self, double kappa0) noexcept nogil
    cdef double _largest(self) noexcept nogil
    cdef Py_ssize_t _together(self, const double* X, Py_ssize_t n) noexcept nogil
    cdef void _refine(self, const double* k, double* w, double* residual,
                      double kappa0) noexcept nogil
    cdef double _residual(self, const double* b, const double* solution,
                          double* residual) noexcept nogil
    cdef void _column(self, Py_ssize_t j, Py_ssize_t n, double* out) noexcept nogil
    cdef void _make_room(self) noexcept nogil
    cdef void _owe(self, Py_ssize_t n) noexcept nogil
    cdef void _settle(self) noexcept nogil
    cdef void _mend(self, long long first, Py_ssize_t samples) noexcept nogil
    cdef void _mend_slot(self, Py_ssize_t j) noexcept nogil
    cdef void _times(self, double* rows, Py_ssize_t n, Py_ssize_t stride, double* out) noexcept nogil
    cdef _allocate(self, Py_ssize_t capacity)
