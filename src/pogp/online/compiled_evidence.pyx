# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The evidence of samples under the kernels of `compiled_gram.pyx`: the twin of `evidence.py`.

For FITC, the inducing inputs follow the samples in the rows of the kernel matrix.
"""

import numpy as np

from libc.math cimport M_PI, exp, fmax, log, sqrt
from libc.string cimport memset
from scipy.linalg.cython_blas cimport daxpy, ddot, dgemm, dsyrk, dtrsm

from pogp.online.compiled_gram cimport Gram, factorise, invert

from pogp.online.evidence import CHUNK, NUGGET as JITTER
from pogp.online.evidence import factor_ticks, inverse_ticks, solve_ticks, strips
from pogp.slices import PRODUCTS_PER_TICK

cdef int ONE = 1
cdef char LEFT = b"L", RIGHT = b"R", LOWER = b"L", PLAIN = b"N", TRANSPOSED = b"T"
cdef double UNIT = 1.0, ZERO = 0.0, MINUS = -1.0
cdef double NUGGET = JITTER
cdef Py_ssize_t ROWS = CHUNK


cdef class CompiledDense(Gram):
    """The dense evidence as a function of the hyperparameters: see `evidence.dense`."""

    cdef double* L                     # (n, n), C = κ(X, X) + noise, then LLᵀ = C
    cdef double* W                     # (n, n), C⁻¹, then derivatives in κ(X, X)
    cdef list strips                   # the columns of each slice

    def __init__(self, str family, X, Y, weights, extra):
        self._hold(family, X, X, X, Y, weights, extra)
        self.L, self.W = self._room(self.n, self.n), self._room(self.n, self.n)
        self.strips = list(strips(self.n))

    def __call__(self, parameters):
        """Yield ticks, and return the evidence or None."""
        cdef Py_ssize_t i, start, stop, n = self.n, k = self.k, wide
        cdef double noise = exp(parameters[self.p + 3]), value
        cdef int failed = 0
        self._take(parameters, n)
        for start, stop in self.strips:
            wide = (stop - start) * (n - (start + stop) // 2)
            yield self._reading(wide) + factor_ticks(n, start, stop)
            with nogil:
                failed = self._forward(start, stop, noise)
            if failed:
                return None
        with nogil:
            value = self._solve()
        for start, stop in self.strips:
            yield self._reading((stop - start) * (n - start)) + inverse_ticks(n, start, stop)
            with nogil:
                self._backward(start, stop)
        self._pull_rest(noise)
        return self._found(value)

    cdef int _forward(self, Py_ssize_t start, Py_ssize_t stop, double noise) noexcept nogil:
        """Fill the next columns of C and of its factor; return whether that failed."""
        cdef Py_ssize_t i, n = self.n
        for i in range(start, stop):
            self._evaluate_half(i, i, start, self.L + i * n)
            self.L[i * (n + 1)] += noise / self.weights[i] + self.extra[i]
        return factorise(self.L, self.n, start, stop)

    cdef double _solve(self) noexcept nogil:
        """Fill a = C⁻¹y; return −log p."""
        cdef Py_ssize_t i, o, n = self.n, k = self.k
        cdef int rows = self.n, outputs = self.k
        cdef double value = 0.5 * n * k * log(2.0 * M_PI)
        for o in range(k):
            for i in range(n):
                self.a[o * n + i] = self.Y[i * k + o]
        dtrsm(&LEFT, &LOWER, &PLAIN, &PLAIN, &rows, &outputs, &UNIT, self.L, &rows, self.a, &rows)
        dtrsm(&LEFT, &LOWER, &TRANSPOSED, &PLAIN, &rows, &outputs, &UNIT, self.L, &rows, self.a,
              &rows)
        for i in range(n):
            value += k * log(self.L[i * (n + 1)])
            for o in range(k):
                value += 0.5 * self.Y[i * k + o] * self.a[o * n + i]
        return value

    cdef void _backward(self, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
        """Fill columns of C⁻¹, and add the derivatives in them."""
        cdef Py_ssize_t i, j, o, n = self.n, k = self.k
        cdef double* row
        cdef double* a
        cdef double by, root
        invert(self.L, self.W, self.n, start, stop)
        for i in range(start, stop):
            row, root = self.W + i * n, sqrt(self.W[i * (n + 1)])
            memset(row + start, 0, (i - start) * sizeof(double))  # the other triangle
            for o in range(k):
                self.residuals[i * k + o] = self.a[o * n + i] / root
            for j in range(i, n):
                row[j] *= k
            for o in range(k):
                a = self.a + o * n
                by = a[i]
                for j in range(i, n):
                    row[j] -= by * a[j]
            row[i] *= 0.5  # the others count twice
            self.in_noises[i] = row[i]
        self._pull(self.W + start * n, start, <int> (stop - start), <int> start)


cdef class CompiledEvidence(Gram):
    """The FITC evidence as a function of the hyperparameters: see `evidence.evidence`."""

    cdef double* squares               # (n,)
    cdef double* L                     # (m, m), and so on as in `evidence.py`
    cdef double* V
    cdef double* A
    cdef double* inverse
    cdef double* b
    cdef double* T
    cdef double* noises
    cdef list strips                   # the columns of each slice of a factor
    # temporary memory for a slice
    cdef double* W                     # derivatives in κ(X, Z)
    cdef double* work

    def __init__(self, str family, inducing, X, Y, weights, extra):
        self._hold(family, X, inducing, np.vstack([X, inducing]), Y, weights, extra)
        n, m, most = self.n, self.m, max(CHUNK, self.m)
        self.squares = self._with(np.sum(X**2, axis=1))
        self.V, self.b = self._room(n, m), self._room(self.k, m)
        self.L, self.A, self.inverse = self._room(m, m), self._room(m, m), self._room(m, m)
        self.T, self.noises = self._room(m, m), self._room(n)
        self.work, self.W = self._room(most, m), self._room(most, m)
        self.strips = list(strips(m))

    def __call__(self, parameters):
        """Yield ticks, and return the evidence or None."""
        cdef Py_ssize_t i, start, stop, n = self.n, m = self.m, k = self.k
        cdef double noise = exp(parameters[self.p + 3]), value
        cdef int failed = 0
        cdef Py_ssize_t per = PRODUCTS_PER_TICK, square = m * m
        yield self._reading(square)
        self._take(parameters, n + m)
        with nogil:
            self._begin()
        for start, stop in self.strips:
            yield factor_ticks(m, start, stop)
            with nogil:
                failed = factorise(self.L, self.m, start, stop)
            if failed:
                return None
        for start in range(0, n, ROWS):
            stop = min(start + ROWS, n)
            yield (stop - start) * (self._reading(m) + square // per)
            with nogil:
                self._forward(start, stop, noise)
        for start, stop in self.strips:
            yield factor_ticks(m, start, stop)
            with nogil:
                failed = factorise(self.A, self.m, start, stop)
            if failed:
                return None
        for start, stop in self.strips:
            yield inverse_ticks(m, start, stop)
            with nogil:
                invert(self.A, self.inverse, self.m, start, stop)
        yield 2 * square
        with nogil:
            self._between()
        value = 0.5 * n * k * log(2.0 * M_PI)
        for i in range(m):
            value += k * log(self.A[i * (m + 1)])
        for start in range(0, n, ROWS):
            stop = min(start + ROWS, n)
            yield (stop - start) * (self._reading(m) // 2 + 3 * square // (2 * per))
            with nogil:
                value += self._backward(start, stop)
        yield square
        with nogil:
            self._fill_upper(self.T)
        for side, form in ((LEFT, TRANSPOSED), (RIGHT, PLAIN)):
            for start in range(0, m, ROWS):
                stop = min(start + ROWS, m)
                yield solve_ticks(m, stop - start)
                with nogil:
                    self._whiten_back(side, form, start, stop - start)
        yield self._reading(square)
        with nogil:
            self._finish(noise)
        return self._found(value)

    cdef void _begin(self) noexcept nogil:
        """Fill L with κ(Z, Z) and a nugget, A with the identity, and b with zeros."""
        cdef Py_ssize_t j, m = self.m
        cdef double nugget = 0.0
        for j in range(m):
            self._evaluate_half(self.n + j, j, 0, self.L + j * m)
            nugget += self.L[j * (m + 1)]
        nugget *= NUGGET / m
        memset(self.A, 0, m * m * sizeof(double))
        memset(self.b, 0, self.k * m * sizeof(double))
        for j in range(m):
            self.L[j * (m + 1)] += nugget
            self.A[j * (m + 1)] = 1.0

    cdef void _forward(self, Py_ssize_t start, Py_ssize_t stop, double noise) noexcept nogil:
        """Add some rows to V = L⁻¹κ(Z, X), Λ, A = I + VΛ⁻¹Vᵀ and b = VΛ⁻¹y."""
        cdef Py_ssize_t i, j, o
        cdef int m = self.m, count = <int> (stop - start)
        cdef double* V = self.V + start * m
        cdef double* out
        cdef double by, prior, share
        for i in range(start, stop):
            self._evaluate(i, 0, self.V + i * m)
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

    cdef void _between(self) noexcept nogil:
        """Fill a = A⁻¹b, and the first terms of the derivative in the whitened κ(Z, Z)."""
        cdef Py_ssize_t i, j
        cdef int m = self.m, k = self.k
        cdef double half = 0.5
        self._fill_upper(self.inverse)
        dgemm(&PLAIN, &PLAIN, &m, &k, &m, &UNIT, self.inverse, &m, self.b, &m, &ZERO, self.a, &m)
        for j in range(m):
            for i in range(j, m):
                self.T[j * m + i] = 0.5 * k * (self.inverse[j * m + i] - (1.0 if i == j else 0.0))
        dsyrk(&LOWER, &PLAIN, &m, &k, &half, self.a, &m, &UNIT, self.T, &m)

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
            # rows of positive slope from the front, of negative slope from the back: one update of T each
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
        self._pull(W, start, count, 0)
        return value

    cdef void _whiten_back(self, char side, char form, Py_ssize_t start, int count) noexcept nogil:
        """Transform the derivative in the whitened κ(Z, Z) to that in κ(Z, Z): L⁻ᵀT, then TL⁻¹.

        The first is done for some columns, the second for some rows.
        """
        cdef int m = self.m
        if side == LEFT:
            dtrsm(&side, &LOWER, &form, &PLAIN, &m, &count, &UNIT, self.L, &m, self.T + start * m, &m)
        else:
            dtrsm(&side, &LOWER, &form, &PLAIN, &count, &m, &UNIT, self.L, &m, self.T + start, &m)

    cdef void _finish(self, double noise) noexcept nogil:
        """Add the derivatives in κ(Z, Z), in the diagonal of κ(X, X) and in the noise."""
        cdef Py_ssize_t i, j, p = self.p
        cdef int m = self.m
        cdef double trace = 0.0
        cdef double* row
        for j in range(m):
            trace += self.T[j * (m + 1)]
        for j in range(m):
            self.T[j * (m + 1)] += NUGGET / m * trace
        for j in range(m):  # only the lower triangle is used, so its numbers count twice
            row = self.T + j * m
            memset(row, 0, j * sizeof(double))
            for i in range(j + 1, m):
                row[i] *= 2.0
        self._pull(self.T, self.n, m, 0)
        for i in range(self.n):
            self.gradient[p] += self.variance * self.in_noises[i]
            self.gradient[p + 1] += self.linear * self.squares[i] * self.in_noises[i]
            self.gradient[p + 2] += self.constant * self.in_noises[i]
        self._pull_rest(noise)
