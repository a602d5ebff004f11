# What the retained-data posterior knows; see compiled_state.pyx.
from pogp.kernels.compiled cimport Program
from pogp.posteriors.linalg.symmetric cimport Sym, Symmetric


cdef class RetainedState:
    cdef readonly Py_ssize_t size, capacity, dimension
    cdef readonly double noise, mean
    cdef Program program
    cdef Symmetric _P, _K
    cdef object _inputs, _targets, _arrivals, _alpha, _scratch
    cdef double* inputs_p              # (p, capacity)
    cdef double* targets_p             # (capacity,)
    cdef long long* arrivals_p         # (capacity,)
    cdef double* alpha                 # (capacity,)
    cdef Sym* P
    cdef Sym* K
    # a block of samples; vectors by slot, one row per sample
    cdef double* cross                 # κ(Z, x)
    cdef double* solved                # P κ(Z, x)
    cdef double* samples               # (p, BLOCK), the inputs
    cdef double* priors                # (BLOCK,) κ(x, x)
    cdef Py_ssize_t block_at, block_left          # the current sample, and the number after it
    # the current step; vectors by slot of the augmented dictionary
    cdef double* k                     # κ(Z, x)
    cdef double* w                     # P k
    cdef double* v                     # influence on the marginal at x
    cdef double* a                     # α
    cdef double* g                     # diagonal of P
    cdef double* c                     # column of P at the removed point
    cdef double* u                     # work
    cdef double* z                     # work
    cdef double* spare                 # room for four more vectors
    cdef double* stack                 # for the kernel
    cdef double* near                  # (BLOCK,) κ between x and the samples ahead
    cdef double* share                 # (BLOCK,) x's own entry of their solutions
    cdef double* loss                  # (BLOCK,) their changes at a removal
    cdef double variance, shift, gain  # the marginal at x: reference, and how far it moved

    cdef bint _careful(self, double kappa0) noexcept nogil
    cdef double _largest(self) noexcept nogil
    cdef Py_ssize_t _block_length(self, const double* X, Py_ssize_t n) noexcept nogil
    cdef void _refine(self, const double* k, double* w, double* residual,
                      double kappa0) noexcept nogil
    cdef double _residual(self, const double* b, const double* solution,
                          double* residual) noexcept nogil
    cdef void _mend(self, long long first, Py_ssize_t samples) noexcept nogil
    cdef void _mend_slot(self, Py_ssize_t j) noexcept nogil
    cdef void _times(self, double* rows, Py_ssize_t n, Py_ssize_t stride, double* out) noexcept nogil
    cdef _allocate(self, Py_ssize_t capacity)
