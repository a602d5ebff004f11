# K, Q, the beliefs by slot and the latest samples; see compiled_state.pyx.
from pogp.kernels.compiled cimport Program
from pogp.posteriors.linalg.storage cimport Matrix
from pogp.posteriors.linalg.symmetric cimport Sym, Symmetric


cdef enum:
    RECENT_AT_ONCE = 16  # recent samples at a time: a second product finds them in the cache


cdef class AbsorbedState:
    cdef readonly Py_ssize_t size, capacity, dimension, outputs, beliefs
    cdef readonly double noise
    cdef readonly bint has_information, uses_recent, forgets
    cdef readonly Py_ssize_t lead  # the belief that prices points
    cdef Program program
    cdef Symmetric _K, _Q, _L  # L is Λ
    cdef Matrix _block_products
    cdef list _S
    cdef object _mean, _forgetting, _inputs, _arrivals, _relevance, _values, _weights, _spread
    cdef object _called_with, _kept, _shift, _scratch, _numbers, _pointers, _block_inputs
    cdef Sym* K
    cdef Sym* Q
    cdef Sym* L
    cdef Sym** S  # (beliefs,); a belief is kept·S + shift·K
    cdef double* prior  # (outputs,), the prior means
    cdef double* forgetting_p  # (beliefs,)
    cdef double* kept
    cdef double* shift
    cdef double* points  # (p, capacity)
    cdef long long* arrivals_p  # (capacity,)
    cdef double* relevance_p  # (capacity,)
    cdef double* values  # (beliefs, outputs, capacity)
    cdef double* alpha  # (outputs, capacity), of the leading belief
    cdef double* spread_p  # (capacity,), the diagonal of QSQ, likewise
    cdef double* taken_p  # (capacity,), by removals from each slot of it since it was computed
    # a block of samples; see compiled_products.pyx
    cdef bint uses_blocks  # whether blocks are possible
    cdef Py_ssize_t block_delay  # samples to learn one by one before the next block
    cdef Py_ssize_t block_at, block_left  # the current sample, and the number from it on
    cdef double* block_products  # (…, 4, capacity), k, Q₀k, S₀Q₀k and Q₀S₀Q₀k of each
    cdef double* block_inputs  # (p, BLOCK), the inputs
    cdef Py_ssize_t likely_slot  # the slot that an append will probably remove, or −1
    cdef Py_ssize_t prepared_slot  # the slot of `slot_products`, or −1
    cdef double* slot_products  # (5, capacity), Q₀e_j, S₀Q₀e_j, Q₀S₀Q₀e_j, S₀e_j, Q₀S₀e_j
    # the latest samples, from which new points learn
    cdef Matrix _recent_cross
    cdef object _recent_inputs, _recent_targets, _recent_noises, _recent_arrivals
    cdef object _recent_is_point, _recent_row, _recent_kappa, _recent_vector
    cdef Py_ssize_t recent_room  # room for so many samples, a ring
    cdef Py_ssize_t oldest, n_recent  # the row of the oldest, and the number of samples
    cdef double* recent_cross  # (rows, capacity), κ(Z, xᵢ), and room to gather some
    cdef double* recent_inputs  # (p, rows), the inputs
    cdef double* recent_targets  # (rows, outputs), without the prior mean
    cdef double* recent_noises  # (rows,)
    cdef long long* recent_arrivals  # (rows,)
    cdef long long* recent_is_point  # (rows,), whether the sample is a point
    cdef long long* recent_row  # (capacity,), of the sample that a point was, if it is held
    cdef double* recent_kappa  # (rows,), κ(xᵢ, x), and work for it
    cdef double* recent_vector  # (outputs,), the information of the samples about x
    cdef double recent_precision  # b, its precision
    # the current sample; w, g, q and z have parts, as the deferred rows of Q and S
    cdef double* k  # κ(Z, x)
    cdef double* w  # Qk
    cdef double* g  # (beliefs, capacity), Sw
    cdef double* b  # QSw, of the leading belief
    cdef double kappa0, gamma
    cdef double* means  # (beliefs, outputs), predicted
    cdef double* explained  # (beliefs,), wᵀSw
    cdef double* variances  # (beliefs,), s
    cdef double* surprise  # (beliefs, outputs), (y − mean)/s
    # work
    cdef double* q  # column of Q at a removed slot
    cdef double* t
    cdef double* u
    cdef double* z
    cdef double* edge
    cdef double* stack

    cdef _allocate(self, Py_ssize_t capacity)
    cdef _allocate_recent(self)
    cdef Py_ssize_t _used(self) noexcept nogil
    cdef Py_ssize_t _row(self, Py_ssize_t age) noexcept nogil
    cdef void _store_recent(self, const double* x, const double* y, double noise, long long arrival,
                    Py_ssize_t points, bint appended) noexcept nogil
    cdef void _trim_recent(self, Py_ssize_t most) noexcept nogil
    cdef void _evaluate(self, const double* rows, Py_ssize_t size) noexcept nogil
