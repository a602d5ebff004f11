# K, Q and the beliefs by slot; see absorbed_state.pyx.
from pogp.kernels.compiled cimport Program
from pogp.posteriors.linalg.symmetric cimport Sym, Symmetric


cdef class AbsorbedState:
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

    cdef _allocate(self, Py_ssize_t capacity)
