# K, Q, C, Λ, η and α by slot, and what learning changes of them; see absorbed.pyx.
from pogp._core.program cimport Program
from pogp._core.symmetric cimport Symmetric


cdef class Absorbed:
    cdef readonly Py_ssize_t size, capacity, dimension, outputs
    cdef readonly double noise, nugget
    cdef readonly double open      # γ − ν, added up since the first point went
    cdef readonly Py_ssize_t glances
    cdef bint roomy                # whether the noise may become so little that it is careful
    cdef readonly bint careful     # so little noise that products with C are refined
    cdef Program program
    cdef Symmetric K, Q, C, L, W   # L is Λ; W = Λ⁻¹ where careful
    cdef object _mean, _inputs, _arrivals, _relevance, _alpha, _eta, _scratch
    cdef double* prior             # (outputs,), the prior means
    cdef double* points            # (p, capacity)
    cdef long long* arrivals_p     # (capacity,)
    cdef double* relevance_p       # (capacity,)
    cdef double* alpha             # (outputs, capacity)
    cdef double* eta
    # the sample at hand
    cdef double* means             # (outputs,), predicted
    cdef double* surprise          # (outputs,), (y − mean)/s
    cdef double* k                 # κ(Z, x)
    cdef double* w                 # Qk
    cdef double* c                 # Ck
    cdef double gamma, latent
    # the marginal at x, followed through the step
    cdef double* zq                # Qk and Ck for the points as they are
    cdef double* zc
    cdef double* after             # (outputs,)
    cdef double variance           # of f
    # work
    cdef double* q                 # columns of what goes
    cdef double* t
    cdef double* u
    cdef double* z
    cdef double* b                 # a column of B, or Bk
    cdef double* stack

    cdef void _glance(self, const double* x) noexcept nogil
    cdef void _follow_append(self, double s) noexcept nogil
    cdef void _append(self, const double* x, const double* y, double noise, long long arrival,
                      double relevance) noexcept nogil
    cdef void _absorb(self, const double* y, double noise, double slack) noexcept nogil
    cdef void _remove(self, Py_ssize_t j, double slack) noexcept nogil
    cdef void _project(self, Py_ssize_t j, int n, double slack) noexcept nogil
    cdef double _quadratic(self) noexcept nogil
    cdef double _residual(self, const double* b) noexcept nogil
    cdef double _sharpen(self, const double* a, int n, double slack) noexcept nogil
    cdef void _eliminate(self, Py_ssize_t j, int n, double s) noexcept nogil
    cdef void _polish(self) noexcept nogil
    cdef _allocate(self, Py_ssize_t capacity)
