# A kernel as the compiled loops see it: sums and products of stationary kernels, in postfix order.

cdef enum Kind:
    RBF
    MATERN12
    MATERN32
    MATERN52
    ADD
    MULTIPLY


cdef class Program:
    cdef readonly double kappa0        # κ(x, x)
    cdef readonly Py_ssize_t depth     # how many columns an evaluation holds at once
    cdef readonly Py_ssize_t dimension
    cdef Py_ssize_t length
    cdef object _kinds, _variances, _inverses
    cdef int[::1] kinds                # (length,)
    cdef double[::1] variances         # (length,); unused for ADD and MULTIPLY
    cdef double[:, ::1] inverses       # (length, p), one over each length-scale

    cdef void column(self, const double* points, Py_ssize_t stride, Py_ssize_t n,
                     const double* x, double* out, double* stack) noexcept nogil
