# A kernel as the compiled loops see it: sums and products of elementary kernels, in postfix order.

cdef enum Kind:
    RBF
    MATERN12
    MATERN32
    MATERN52
    RATIONAL_QUADRATIC
    PERIODIC
    LINEAR
    CONSTANT
    ADD
    MULTIPLY


cdef class Program:
    cdef readonly double kappa0        # κ(x, x); at the origin, if it depends on x
    cdef readonly bint varies          # whether it does
    cdef readonly Py_ssize_t depth     # how many columns an evaluation holds at once
    cdef readonly Py_ssize_t dimension
    cdef Py_ssize_t length
    cdef object _kinds, _variances, _shapes, _counts, _columns, _factors, _periods
    cdef int[::1] kinds                # (length,)
    cdef double[::1] variances         # (length,); unused for LINEAR, ADD and MULTIPLY
    cdef double[::1] shapes            # (length,); α of RATIONAL_QUADRATIC
    cdef Py_ssize_t[::1] counts        # (length,); how many inputs a kernel is of
    cdef Py_ssize_t[:, ::1] columns    # (length, p); which
    cdef double[:, ::1] factors        # (length, p); what differences, or LINEAR's inputs, are multiplied by
    cdef double[:, ::1] periods        # (length, p); of PERIODIC

    cdef void column(self, const double* points, Py_ssize_t stride, Py_ssize_t n,
                     const double* x, double* out, double* stack) noexcept nogil
    cdef void _leaf(self, Py_ssize_t step, const double* points, Py_ssize_t stride, Py_ssize_t n,
                    const double* x, double* out) noexcept nogil
    cdef double prior(self, const double* x) noexcept nogil
    cdef double _scalar(self, const double* x) noexcept nogil
