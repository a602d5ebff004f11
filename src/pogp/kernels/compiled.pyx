# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Evaluation of built-in kernels without Python: one column κ(Z, x) at a time."""

import numpy as np

from libc.math cimport M_PI, exp, fmin, log1p, rint, sin, sqrt
from libc.stdlib cimport free, malloc

from pogp.kernels.vectors cimport pogp_add_squares, pogp_decay

cdef dict KINDS = {
    "RBF": RBF, "Matern12": MATERN12, "Matern32": MATERN32, "Matern52": MATERN52,
    "RationalQuadratic": RATIONAL_QUADRATIC, "Periodic": PERIODIC, "Linear": LINEAR,
    "Constant": CONSTANT, "+": ADD, "*": MULTIPLY,
}
cdef double SQRT3 = sqrt(3.0), SQRT5 = sqrt(5.0)
cdef double FAR = 1e6  # where every profile has long been zero, and an overflow has not yet come
cdef double FARTHEST = 1e300  # a squared distance, for a profile that is never zero
cdef enum:
    DEEPEST = 64  # a program of this depth has at least 2^63 kernels: see `shallow`


cdef class Program:
    """A kernel's postfix program (see `Kernel.program`) bound to a number of inputs."""

    def __init__(self, program, Py_ssize_t dimension):
        items, self.depth = shallow(program)
        self.length = len(items)
        self.dimension = dimension
        self._kinds = np.empty(self.length, dtype=np.intc)
        self._variances = np.ones(self.length)
        self._shapes = np.ones(self.length)
        self._counts = np.zeros(self.length, dtype=np.intp)
        self._columns = np.zeros((self.length, dimension), dtype=np.intp)
        self._factors = np.ones((self.length, dimension))
        self._periods = np.ones((self.length, dimension))
        self.varies = False
        for i, item in enumerate(items):
            if isinstance(item, str):
                self._kinds[i] = KINDS[item]
            else:
                self._enter(i, item)
        self.kinds = self._kinds
        self.variances = self._variances
        self.shapes = self._shapes
        self.counts = self._counts
        self.columns = self._columns
        self.factors = self._factors
        self.periods = self._periods
        cdef double[::1] origin = np.zeros(max(dimension, 1))
        self.kappa0 = self._scalar(&origin[0])

    def _enter(self, i, step):
        """Note the kernel of one step."""
        columns = np.arange(self.dimension) if step.columns is None else np.array(step.columns)
        if columns.max(initial=-1) >= self.dimension:
            raise ValueError(
                f"inputs must have at least {columns.max() + 1} columns, for the columns "
                f"{columns.tolist()} of {step.kind}, got {self.dimension}"
            )
        count = len(columns)
        self._kinds[i] = KINDS[step.kind]
        self._counts[i] = count
        self._columns[i, :count] = columns
        values = step.parameters
        if step.kind == "Linear":
            self.varies = True
            self._factors[i, :count] = np.sqrt(values["variance"])
            return
        self._variances[i] = values["variance"]
        self._shapes[i] = values.get("alpha", 1.0)
        self._factors[i, :count] = 1.0 / values.get("lengthscale", 1.0)
        self._periods[i, :count] = values.get("period", 1.0)

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

    def priors(self, const double[:, ::1] X):
        """Return κ(x, x) for every row x of X."""
        cdef Py_ssize_t q, queries = X.shape[0]
        values = np.full(queries, self.kappa0)
        cdef double[::1] out = values
        if self.varies:
            with nogil:
                for q in range(queries):
                    out[q] = self.prior(&X[q, 0])
        return values

    cdef double prior(self, const double* x) noexcept nogil:
        """Return κ(x, x)."""
        return self._scalar(x) if self.varies else self.kappa0

    cdef double _scalar(self, const double* x) noexcept nogil:
        cdef double[DEEPEST] stack
        cdef Py_ssize_t step, d, j, height = 0
        cdef int kind
        cdef double scaled
        for step in range(self.length):
            kind = self.kinds[step]
            if kind == ADD or kind == MULTIPLY:
                height -= 1
                if kind == ADD:
                    stack[height - 1] += stack[height]
                else:
                    stack[height - 1] *= stack[height]
                continue
            stack[height] = self.variances[step]
            if kind == LINEAR:
                stack[height] = 0.0
                for j in range(self.counts[step]):
                    d = self.columns[step, j]
                    scaled = x[d] * self.factors[step, j]
                    stack[height] += scaled * scaled
            height += 1
        return stack[0]

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
                self._leaf(step, points, stride, n, x, top)

    cdef void _leaf(self, Py_ssize_t step, const double* points, Py_ssize_t stride, Py_ssize_t n,
                    const double* x, double* out) noexcept nogil:
        """Write the values of the kernel of one step."""
        cdef Py_ssize_t i, j, d
        cdef int kind = self.kinds[step]
        cdef double variance = self.variances[step], period, at, turns, scaled, factor
        cdef const double* row
        for i in range(n):
            out[i] = variance if kind == CONSTANT else 0.0
        if kind == CONSTANT:
            return
        for j in range(self.counts[step]):
            d = self.columns[step, j]
            row, at, factor = points + d * stride, x[d], self.factors[step, j]
            if kind == LINEAR:
                at *= factor
                for i in range(n):
                    out[i] += row[i] * factor * at
            elif kind == PERIODIC:
                period = self.periods[step, j]
                for i in range(n):
                    turns = (row[i] - at) / period
                    scaled = sin(M_PI * (turns - rint(turns))) * factor
                    out[i] += scaled * scaled
            else:
                pogp_add_squares(at, factor, row, out, n)
        if kind != LINEAR:
            profile(kind, variance, self.shapes[step], n, out)


def shallow(program):
    """Return a postfix program in the order that takes the least memory, and its depth.

    Sums and products are the same in either order, to the last bit. With the deeper part first, a
    part of depth k + 1 has two of depth k, so that n kernels are no deeper than 1 + log2(n).
    """
    stack = []
    for item in program:
        if not isinstance(item, str):
            stack.append(([item], 1))
            continue
        (right, after), (left, before) = stack.pop(), stack.pop()
        if after > before:
            right, after, left, before = left, before, right, after
        left.extend(right)
        left.append(item)
        stack.append((left, max(before, after + 1)))
    return stack[0]


cdef void profile(int kind, double variance, double alpha, Py_ssize_t n, double* r2) noexcept nogil:
    """Replace squared distances by the kernel's value."""
    cdef Py_ssize_t i
    cdef double r
    if kind == RATIONAL_QUADRATIC:
        for i in range(n):
            r2[i] = variance * exp(-alpha * log1p(fmin(r2[i], FARTHEST) / (2.0 * alpha)))
    elif kind == MATERN32:
        for i in range(n):
            r = fmin(SQRT3 * sqrt(r2[i]), FAR)
            r2[i] = variance * (1.0 + r) * exp(-r)
    elif kind == MATERN52:
        for i in range(n):
            r = fmin(SQRT5 * sqrt(r2[i]), FAR)
            r2[i] = variance * (1.0 + r + r * r / 3.0) * exp(-r)
    else:
        for i in range(n):
            r2[i] = sqrt(r2[i]) if kind == MATERN12 else r2[i] * (0.5 if kind == RBF else 2.0)
        pogp_decay(r2, r2, n)
        for i in range(n):
            r2[i] *= variance
