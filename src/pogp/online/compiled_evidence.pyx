# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""FITC's evidence of a stationary kernel with a linear part and a constant: the twin of `evidence.py`.

The samples stay the same over a search, so its memory is used again by each evaluation. Matrices have
a row of m numbers for each sample, which BLAS takes for a column; after the samples come the inducing
inputs themselves.
"""

import numpy as np

from libc.math cimport M_PI, exp, fmax, isfinite, log, sqrt
from libc.string cimport memset
from scipy.linalg.cython_blas cimport daxpy, dcopy, ddot, dgemm, dgemv, dsyrk, dtrsm
from scipy.linalg.cython_lapack cimport dpotrf, dpotri

from pogp.posteriors.linalg.storage cimport fresh, pointer

from pogp.online.evidence import CHUNK, NUGGET as JITTER, Evidence

cdef int ONE = 1
cdef char LEFT = b"L", RIGHT = b"R", LOWER = b"L", PLAIN = b"N", TRANSPOSED = b"T"
cdef double UNIT = 1.0, ZERO = 0.0, MINUS = -1.0
cdef double FAR = 1e12  # a squared distance at which every profile has long been zero
cdef double NUGGET = JITTER
cdef Py_ssize_t ROWS = CHUNK

# the kinds of kernels, and what is before r² in the exponent of their profiles
cdef dict KINDS = {"RBF": (0, 0.5), "Matern12": (1, 1.0), "Matern32": (2, 3.0)}


cdef class CompiledEvidence:
    """The evidence of some samples as a function of the hyperparameters, which are those of `Prior`."""

    cdef int n, m, p, k, kind
    cdef list arrays
    # what stays
    cdef double* X                     # (n + m, p), inputs
    cdef double* products              # (n + m, m), with the inducing ones
    cdef double* squares               # (n,)
    cdef double* Y                     # (n, k)
    cdef double* weights               # (n,)
    cdef double* extra                 # (n,)
    cdef double* ones
    # what each evaluation fills
    cdef double* scaled                # (n + m, p), inputs over length-scales
    cdef double* inducing              # (p, m), of those the inducing ones
    cdef double* profile               # (n + m, m), φ
    cdef double* slope                 # (n + m, m), −φ′(r)/r
    cdef double* L                     # (m, m), and so on as in `evidence.py`
    cdef double* V
    cdef double* A
    cdef double* inverse
    cdef double* a
    cdef double* b
    cdef double* T
    cdef double* noises
    cdef double* in_noises
    cdef double* residuals
    cdef double* gradient
    # work on a chunk
    cdef double* W                     # derivatives in κ(X, Z)
    cdef double* work
    cdef double* rows
    cdef double* columns
    cdef double* along
    cdef double variance, linear, constant, exponent

    def __init__(self, str family, inducing, X, Y, weights, extra):
        both = np.vstack([X, inducing])
        self.n, self.m, self.p, self.k = len(X), len(inducing), X.shape[1], Y.shape[1]
        self.kind, self.exponent = KINDS[family]
        self.arrays = []
        n, m, p, k, most = self.n, self.m, self.p, self.k, max(CHUNK, self.m)
        products = np.matmul(both, inducing.T, out=fresh((n + m, m)))
        self.arrays.append(products)
        self.X, self.products = self._with(both), pointer(products)
        self.squares, self.Y = self._with(np.sum(X**2, axis=1)), self._with(Y)
        self.weights, self.extra = self._with(weights), self._with(extra)
        self.V = self._room(n, m)
        self.profile, self.slope = self._room(n + m, m), self._room(n + m, m)
        self.scaled, self.inducing = self._room(n + m, p), self._room(p, m)
        self.L, self.A, self.inverse = self._room(m, m), self._room(m, m), self._room(m, m)
        self.T, self.a, self.b = self._room(m, m), self._room(k, m), self._room(k, m)
        self.noises, self.in_noises = self._room(n), self._room(n)
        self.residuals = self._room(n, k)
        self.work, self.W = self._room(most, m), self._room(most, m)
        self.ones = self._with(np.ones(most))
        self.rows, self.columns, self.along = self._room(most), self._room(m), self._room(most, p)
        self.gradient = self._room(p + 4)

    cdef double* _room(self, Py_ssize_t rows, Py_ssize_t columns=1) except? NULL:
        room = fresh((rows, columns))
        self.arrays.append(room)
        return pointer(room)

    cdef double* _with(self, values) except? NULL:
        held = fresh(values.shape)
        held[...] = values
        self.arrays.append(held)
        return pointer(held)

    def __call__(self, parameters):
        """Yield ticks, and return the evidence or None: see `evidence.evidence`."""
        cdef Py_ssize_t i, start, stop, n = self.n, m = self.m, p = self.p, k = self.k
        cdef double noise = exp(parameters[p + 3]), value
        cdef int failed = 0
        self._take(parameters)
        with nogil:
            failed = self._factorise()
        if failed:
            return None
        yield 2
        for start in range(0, n, ROWS):
            stop = min(start + ROWS, n)
            with nogil:
                self._forward(start, stop, noise)
            yield 1
        with nogil:
            failed = self._between()
        if failed:
            return None
        value = 0.5 * n * k * log(2.0 * M_PI)
        for i in range(m):
            value += k * log(self.A[i * (m + 1)])
        yield 1
        for start in range(0, n, ROWS):
            stop = min(start + ROWS, n)
            with nogil:
                value += self._backward(start, stop)
            yield 1
        with nogil:
            self._finish(noise)
        gradient = np.array(<double[:p + 4]> self.gradient)
        if not isfinite(value) or not np.isfinite(gradient).all():
            return None
        yield 1
        residuals = np.array(<double[:n, :k]> self.residuals)
        return Evidence(value, gradient, residuals)

    cdef _take(self, parameters):
        """Take over the hyperparameters."""
        cdef Py_ssize_t i, d, m = self.m, p = self.p, count = self.n + self.m
        values = np.exp(parameters)
        inverse = 1.0 / values[:p]
        cdef double* by = pointer(inverse)
        self.variance, self.linear, self.constant = values[p], values[p + 1], values[p + 2]
        for i in range(count):
            for d in range(p):
                self.scaled[i * p + d] = self.X[i * p + d] * by[d]
        for i in range(m):
            for d in range(p):
                self.inducing[d * m + i] = self.scaled[(self.n + i) * p + d]

    cdef void _evaluate(self, Py_ssize_t i, double* out) noexcept nogil:
        """Fill κ between row i and the inducing inputs, with the profile and its slope.

        The slope is zero where the distance is.
        """
        cdef Py_ssize_t j, d, m = self.m
        cdef double* r2 = self.profile + i * m
        cdef double* slope = self.slope + i * m
        cdef double* products = self.products + i * m
        cdef double* column
        cdef double at, difference, s
        # copies, which no store can change: then all but the exponential itself is by the vector
        cdef double exponent = self.exponent, variance = self.variance, linear = self.linear
        cdef double constant = self.constant
        memset(r2, 0, m * sizeof(double))
        for d in range(self.p):
            at, column = self.scaled[i * self.p + d], self.inducing + d * m
            for j in range(m):
                difference = column[j] - at
                r2[j] += difference * difference
        for j in range(m):
            r2[j] = exponent * (r2[j] if r2[j] < FAR else FAR)  # `fmin` is not by the vector
        if self.kind > 0:
            for j in range(m):
                r2[j] = sqrt(r2[j])
        for j in range(m):
            slope[j] = exp(-r2[j])
        if self.kind == 0:
            for j in range(m):
                s, r2[j] = r2[j], slope[j]
                slope[j] = slope[j] if s > 0.0 else 0.0
        elif self.kind == 1:
            for j in range(m):
                s, r2[j] = r2[j], slope[j]
                slope[j] = slope[j] / s if s > 0.0 else 0.0
        else:
            for j in range(m):
                s = r2[j]
                r2[j] = (1.0 + s) * slope[j]
                slope[j] = 3.0 * slope[j] if s > 0.0 else 0.0
        for j in range(m):
            out[j] = variance * r2[j] + linear * products[j] + constant

    cdef int _factorise(self) noexcept nogil:
        """L with LLᵀ = κ(Z, Z) and a nugget; return whether that failed."""
        cdef Py_ssize_t j
        cdef int m = self.m, failed = 0
        cdef double nugget = 0.0
        for j in range(m):
            self._evaluate(self.n + j, self.L + j * m)
            nugget += self.L[j * (m + 1)]
        nugget *= NUGGET / m
        for j in range(m):
            self.L[j * (m + 1)] += nugget
        dpotrf(&LOWER, &m, self.L, &m, &failed)
        memset(self.A, 0, m * m * sizeof(double))
        memset(self.b, 0, self.k * m * sizeof(double))
        for j in range(m):
            self.A[j * (m + 1)] = 1.0
        return failed

    cdef void _forward(self, Py_ssize_t start, Py_ssize_t stop, double noise) noexcept nogil:
        """V = L⁻¹κ(Z, X), Λ, A = I + VΛ⁻¹Vᵀ and b = VΛ⁻¹y, with some more rows."""
        cdef Py_ssize_t i, j, o
        cdef int m = self.m, count = <int> (stop - start)
        cdef double* V = self.V + start * m
        cdef double* out
        cdef double by, prior, share
        for i in range(start, stop):
            self._evaluate(i, self.V + i * m)
        dtrsm(&LEFT, &LOWER, &PLAIN, &PLAIN, &m, &count, &UNIT, self.L, &m, V, &m)
        for i in range(start, stop):
            V, out = self.V + i * m, self.work + (i - start) * m
            prior = self.variance + self.linear * self.squares[i] + self.constant
            self.noises[i] = (fmax(prior - ddot(&m, V, &ONE, V, &ONE), 0.0)
                              + noise / self.weights[i] + self.extra[i])
            by = 1.0 / sqrt(self.noises[i])
            for j in range(m):
                out[j] = by * V[j]
            for o in range(self.k):
                share = self.Y[i * self.k + o] / self.noises[i]
                daxpy(&m, &share, V, &ONE, self.b + o * m, &ONE)
        dsyrk(&LOWER, &PLAIN, &m, &count, &UNIT, self.work, &m, &UNIT, self.A, &m)

    cdef int _between(self) noexcept nogil:
        """A⁻¹, a = A⁻¹b, and what the derivative in κ(Z, Z), whitened, begins with."""
        cdef Py_ssize_t i, j, o
        cdef int m = self.m, k = self.k, failed = 0, size = m * m
        cdef double half = 0.5
        dpotrf(&LOWER, &m, self.A, &m, &failed)
        if failed:
            return failed
        dcopy(&size, self.A, &ONE, self.inverse, &ONE)
        dpotri(&LOWER, &m, self.inverse, &m, &failed)
        self._fill_upper(self.inverse)
        dgemm(&PLAIN, &PLAIN, &m, &k, &m, &UNIT, self.inverse, &m, self.b, &m, &ZERO, self.a, &m)
        for j in range(m):
            for i in range(j, m):
                self.T[j * m + i] = 0.5 * k * (self.inverse[j * m + i] - (1.0 if i == j else 0.0))
        dsyrk(&LOWER, &PLAIN, &m, &k, &half, self.a, &m, &UNIT, self.T, &m)
        memset(self.columns, 0, m * sizeof(double))
        memset(self.gradient, 0, (self.p + 4) * sizeof(double))
        return failed

    cdef void _fill_upper(self, double* matrix) noexcept nogil:
        cdef Py_ssize_t i, j, m = self.m
        for j in range(m):
            for i in range(j + 1, m):
                matrix[i * m + j] = matrix[j * m + i]

    cdef double _backward(self, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
        """Add the derivatives in some rows of V and Λ; return their part of −log p."""
        cdef Py_ssize_t i, j, o, up = 0, down = stop - start
        cdef int m = self.m, k = self.k, count = <int> (stop - start), some
        cdef double* V = self.V + start * m
        cdef double* AV
        cdef double* out
        cdef double value = 0.0, noise, h, misfit, squares, slope, root, share
        cdef double* W = self.W
        dgemm(&PLAIN, &PLAIN, &m, &count, &m, &UNIT, self.inverse, &m, V, &m, &ZERO, W, &m)
        for i in range(start, stop):
            V, AV, noise = self.V + i * m, W + (i - start) * m, self.noises[i]
            h = ddot(&m, V, &ONE, AV, &ONE)
            root = sqrt(fmax(noise - h, 1e-12 * noise))
            share = k / noise
            squares = 0.0
            value += 0.5 * k * log(noise)
            for j in range(m):
                AV[j] *= share
            for o in range(k):
                misfit = self.Y[i * k + o] - ddot(&m, V, &ONE, self.a + o * m, &ONE)
                value += 0.5 * misfit / noise * self.Y[i * k + o]
                squares += misfit * misfit
                self.residuals[i * k + o] = misfit / root
                share = -misfit / noise
                daxpy(&m, &share, self.a + o * m, &ONE, AV, &ONE)
            slope = 0.5 * k / noise - 0.5 * (k * h + squares) / (noise * noise)  # in Λ
            self.in_noises[i] = slope
            share = -2.0 * slope
            daxpy(&m, &share, V, &ONE, AV, &ONE)
            # positive slopes from the front, negative ones from the back: a triangle of T for each
            root = sqrt(slope if slope > 0.0 else -slope)
            if slope > 0.0:
                out = self.work + up * m
                up += 1
            else:
                down -= 1
                out = self.work + down * m
            for j in range(m):
                out[j] = root * V[j]
        some = <int> up
        if some > 0:
            dsyrk(&LOWER, &PLAIN, &m, &some, &UNIT, self.work, &m, &UNIT, self.T, &m)
        some = count - some
        if some > 0:
            dsyrk(&LOWER, &PLAIN, &m, &some, &MINUS, self.work + up * m, &m, &UNIT, self.T, &m)
        dtrsm(&LEFT, &LOWER, &TRANSPOSED, &PLAIN, &m, &count, &UNIT, self.L, &m, W, &m)
        self._pull(W, start, count)
        return value

    cdef void _pull(self, double* W, Py_ssize_t start, int count) noexcept nogil:
        """Add what derivatives W in rows of κ say of the hyperparameters; W is used up."""
        cdef Py_ssize_t i, d, at = start * self.m
        cdef int m = self.m, p = self.p, size = count * m
        cdef double* profile = self.profile + at
        cdef double* slope = self.slope + at
        cdef double* scaled = self.scaled + start * p
        self.gradient[p] += self.variance * ddot(&size, W, &ONE, profile, &ONE)
        self.gradient[p + 1] += self.linear * ddot(&size, W, &ONE, self.products + at, &ONE)
        dgemv(&TRANSPOSED, &m, &count, &UNIT, W, &m, self.ones, &ONE, &ZERO, self.rows, &ONE)
        for i in range(count):
            self.gradient[p + 2] += self.constant * self.rows[i]
        for i in range(size):
            W[i] *= self.variance * slope[i]
        # Σ W_ij (a_id − b_jd)² for every d, expanded: one product for all
        dgemv(&TRANSPOSED, &m, &count, &UNIT, W, &m, self.ones, &ONE, &ZERO, self.rows, &ONE)
        dgemv(&PLAIN, &m, &count, &UNIT, W, &m, self.ones, &ONE, &UNIT, self.columns, &ONE)
        dgemm(&TRANSPOSED, &PLAIN, &p, &count, &m, &UNIT, self.inducing, &m, W, &m, &ZERO,
              self.along, &p)
        for i in range(count):
            for d in range(p):
                self.gradient[d] += scaled[i * p + d] * (self.rows[i] * scaled[i * p + d]
                                                         - 2.0 * self.along[i * p + d])

    cdef void _finish(self, double noise) noexcept nogil:
        """Add the derivatives in κ(Z, Z), in the diagonal of κ(X, X) and in the noise."""
        cdef Py_ssize_t i, d, j
        cdef int m = self.m, p = self.p
        cdef double trace = 0.0
        cdef double* T = self.T
        self._fill_upper(T)
        dtrsm(&LEFT, &LOWER, &TRANSPOSED, &PLAIN, &m, &m, &UNIT, self.L, &m, T, &m)
        dtrsm(&RIGHT, &LOWER, &PLAIN, &PLAIN, &m, &m, &UNIT, self.L, &m, T, &m)
        for j in range(m):
            trace += T[j * (m + 1)]
        for j in range(m):
            T[j * (m + 1)] += NUGGET / m * trace
        self._pull(T, self.n, m)
        for j in range(m):
            for d in range(p):
                self.gradient[d] += self.columns[j] * self.inducing[d * m + j] ** 2
        for i in range(self.n):
            self.gradient[p] += self.variance * self.in_noises[i]
            self.gradient[p + 1] += self.linear * self.squares[i] * self.in_noises[i]
            self.gradient[p + 2] += self.constant * self.in_noises[i]
            self.gradient[p + 3] += noise / self.weights[i] * self.in_noises[i]
