# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Evaluation of built-in kernels without Python: one column κ(Z, x) at a time."""

import numpy as np

from libc.math cimport exp, fmin, sqrt
from libc.stdlib cimport free, malloc

cdef dict KINDS = {
    "RBF": RBF, "Matern12": MATERN12, "Matern32": MATERN32, "Matern52": MATERN52,
    "+": ADD, "*": MULTIPLY,
}
cdef double SQRT3 = sqrt(3.0), SQRT5 = sqrt(5.0)
cdef double FAR = 1e6  # where every profile has long been zero, and an overflow has not yet come


cdef class Program:
    """A kernel's postfix program (see `Kernel.program`) bound to a number of inputs."""

    def __init__(self, program, Py_ssize_t dimension):
        self.length = len(program)
        self.dimension = dimension
        self._kinds = np.empty(self.length, dtype=np.intc)
        self._variances = np.ones(self.length)
        self._inverses = np.ones((self.length, dimension))
        heights = []
        values = []
        for i, item in enumerate(program):
            if isinstance(item, str):
                self._kinds[i] = KINDS[item]
                right, left = values.pop(), values.pop()
                values.append(left + right if item == "+" else left * right)
            else:
                name, lengthscale, variance = item
                self._kinds[i] = KINDS[name]
                self._variances[i] = variance
                self._inverses[i] = 1.0 / np.asarray(lengthscale)
                values.append(variance)
            heights.append(len(values))
        self.kappa0 = values[0]
        self.depth = max(heights)
        self.kinds = self._kinds
        self.variances = self._variances
        self.inverses = self._inverses

    def cross(self, points, Py_ssize_t n, const double[:, ::1] X):
        """Return κ(X, Z), of shape (len(X), n); row d of `points` is input d of the points."""
        values = np.empty((X.shape[0], n))
        cdef double[:, ::1] out = values
        cdef const double[:, ::1] rows = points
        cdef Py_ssize_t q, stride = rows.shape[1], queries = X.shape[0]
        cdef double* stack = <double*> malloc(self.depth * max(n, 1) * sizeof(double))
        if stack == NULL:
            raise MemoryError(f"no memory for {self.depth * n} numbers")
        with nogil:
            if n > 0:
                for q in range(queries):
                    self.column(&rows[0, 0], stride, n, &X[q, 0], &out[q, 0], stack)
            free(stack)
        return values

    cdef void column(self, const double* points, Py_ssize_t stride, Py_ssize_t n,
                     const double* x, double* out, double* stack) noexcept nogil:
        """Write κ(z_i, x), i < n, to `out`; input d of the points starts at points + d·stride.

        `stack` has room for (depth − 1) columns of n.
        """
        cdef Py_ssize_t step, i, height = 0
        cdef int kind
        cdef double* top
        cdef double* below
        for step in range(self.length):
            kind = self.kinds[step]
            if kind == ADD or kind == MULTIPLY:
                top = stack + (height - 2) * n
                below = out if height == 2 else top - n
                height -= 1
                if kind == ADD:
                    for i in range(n):
                        below[i] += top[i]
                else:
                    for i in range(n):
                        below[i] *= top[i]
            else:
                top = out if height == 0 else stack + (height - 1) * n
                height += 1
                squared_distances(points, stride, n, x, &self.inverses[step, 0], self.dimension, top)
                profile(kind, self.variances[step], n, top)


cdef void squared_distances(const double* points, Py_ssize_t stride, Py_ssize_t n, const double* x,
                            const double* inverse, Py_ssize_t dimension, double* out) noexcept nogil:
    cdef Py_ssize_t i, d
    cdef double scaled
    cdef const double* row
    for i in range(n):
        out[i] = 0.0
    for d in range(dimension):
        row = points + d * stride
        for i in range(n):
            scaled = (row[i] - x[d]) * inverse[d]
            out[i] += scaled * scaled


cdef void profile(int kind, double variance, Py_ssize_t n, double* r2) noexcept nogil:
    """Replace squared distances by the kernel's value."""
    cdef Py_ssize_t i
    cdef double r
    if kind == RBF:
        for i in range(n):
            r2[i] = variance * exp(-0.5 * r2[i])
    elif kind == MATERN12:
        for i in range(n):
            r2[i] = variance * exp(-sqrt(r2[i]))
    elif kind == MATERN32:
        for i in range(n):
            r = fmin(SQRT3 * sqrt(r2[i]), FAR)
            r2[i] = variance * (1.0 + r) * exp(-r)
    else:
        for i in range(n):
            r = fmin(SQRT5 * sqrt(r2[i]), FAR)
            r2[i] = variance * (1.0 + r + r * r / 3.0) * exp(-r)
