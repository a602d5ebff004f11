cdef int factorise(double* A, int n, Py_ssize_t start, Py_ssize_t stop) noexcept nogil
cdef void invert(double* L, double* out, int n, Py_ssize_t start, Py_ssize_t stop) noexcept nogil


cdef class Gram:
    cdef int n, m, p, k, kind
    cdef list arrays
    # constant during a search
    cdef double* X                     # (rows, p), inputs
    cdef double* products              # (rows, m), inner products with the inducing inputs
    cdef double* Y                     # (n, k)
    cdef double* weights               # (n,)
    cdef double* extra                 # (n,)
    cdef double* ones
    # filled by each evaluation
    cdef double* scaled                # (rows, p), inputs over length-scales
    cdef double* inducing              # (p, m), those of the inducing inputs
    cdef double* profile               # (rows, m), φ
    cdef double* slope                 # (rows, m), −φ′(r)/r
    cdef double* a
    cdef double* in_noises
    cdef double* residuals
    cdef double* gradient
    # temporary memory for a slice
    cdef double* rows
    cdef double* columns
    cdef double* along
    cdef double variance, linear, constant, exponent

    cdef _hold(self, str family, X, inducing, rows, Y, weights, extra)
    cdef double* _room(self, Py_ssize_t rows, Py_ssize_t columns=*) except? NULL
    cdef double* _with(self, values) except? NULL
    cdef _take(self, parameters, Py_ssize_t count)
    cdef Py_ssize_t _reading(self, Py_ssize_t count) noexcept nogil
    cdef object _found(self, double value)
    cdef void _evaluate(self, Py_ssize_t i, Py_ssize_t first, double* out) noexcept nogil
    cdef void _evaluate_half(self, Py_ssize_t i, Py_ssize_t own, Py_ssize_t start, double* out) noexcept nogil
    cdef void _pull(self, double* W, Py_ssize_t start, int count, int first) noexcept nogil
    cdef void _pull_rest(self, double noise) noexcept nogil
