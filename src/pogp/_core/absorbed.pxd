# K, Q and the beliefs by slot, and what learning changes of them; see absorbed.pyx.
from pogp._core.program cimport Program
from pogp._core.symmetric cimport Sym, Symmetric


cdef class Absorbed:
    cdef readonly Py_ssize_t size, capacity, dimension, outputs, beliefs
    cdef readonly double noise
    cdef readonly bint informed
    cdef readonly Py_ssize_t lead      # the belief that prices points
    cdef Program program
    cdef Symmetric _K, _Q, _L          # L is Λ
    cdef list _S
    cdef object _mean, _forgetting, _inputs, _arrivals, _relevance, _values, _weights, _spread
    cdef object _called_with, _kept, _shift, _scratch, _numbers, _pointers
    cdef Sym* K
    cdef Sym* Q
    cdef Sym* L
    cdef Sym** S                       # (beliefs,); a belief is kept·S + shift·K
    cdef double* prior                 # (outputs,), the prior means
    cdef double* forgetting_p          # (beliefs,)
    cdef double* kept
    cdef double* shift
    cdef double* points                # (p, capacity)
    cdef long long* arrivals_p         # (capacity,)
    cdef double* relevance_p           # (capacity,)
    cdef double* values                # (beliefs, outputs, capacity)
    cdef double* alpha                 # (outputs, capacity), of the leading belief
    cdef double* spread_p              # (capacity,), the diagonal of QSQ, likewise
    # the sample at hand
    cdef double* k                     # κ(Z, x)
    cdef double* w                     # Qk
    cdef double* g                     # (beliefs, capacity), Sw
    cdef double* b                     # QSw, of the leading belief
    cdef double kappa0, gamma
    cdef bint refined                  # whether w and γ are, by their residual
    cdef double* means                 # (beliefs, outputs), predicted
    cdef double* explained             # (beliefs,), wᵀSw
    cdef double* variances             # (beliefs,), s
    cdef double* surprise              # (beliefs, outputs), (y − mean)/s
    # work
    cdef double* q                     # columns of what goes
    cdef double* t
    cdef double* u
    cdef double* z
    cdef double* stack

    cdef void _glance(self, const double* x) noexcept nogil
    cdef double _regress(self, const double* x, double kappa0, double* k, double* w, double* u,
                         double* z, double* stack, double* shares, bint mend,
                         bint* refined) noexcept nogil
    cdef double _refine(self, double kappa0, const double* k, double* w, double* u, double* z,
                        double* shares, bint mend) noexcept nogil
    cdef void _expected(self, double* k, double* w, double* g, Py_ssize_t apart, double* shares,
                        double* means, double* explained) noexcept nogil
    cdef bint _expect(self, const double* y, const double* noises, bint whole) noexcept nogil
    cdef void _follow(self) noexcept nogil
    cdef void _append(self, const double* x, const double* noises, long long arrival,
                      double relevance) noexcept nogil
    cdef void _price_append(self, const double* noises, double by_gamma) noexcept nogil
    cdef void _absorb(self, const double* y, const double* noises, bint marginalise) noexcept nogil
    cdef void _remove(self, Py_ssize_t j, bint marginalise) noexcept nogil
    cdef void _project(self, Py_ssize_t belief, Py_ssize_t j, bint marginalise) noexcept nogil
    cdef void _remove_information(self, Py_ssize_t j, bint marginalise) noexcept nogil
    cdef void _drop(self, Py_ssize_t j) noexcept nogil
    cdef void _forget(self) noexcept nogil
    cdef _predict_one(self, const double* x, double* means, double* latent)
    cdef _allocate(self, Py_ssize_t capacity)
