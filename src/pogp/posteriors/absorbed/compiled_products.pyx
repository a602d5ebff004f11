# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Products with Q and S of the absorbed posterior, compiled: one sample at a time, or a block.

A block of samples is learned with products of matrices (mathematics.md §6). While it lasts the base
matrices of Q and S stay as they are, but for slots that come and go, and all else is owed. Let Q₀ and
S₀ be these. Q₀k, S₀Q₀k and Q₀S₀Q₀k are found for all samples at once. A row u that Q owes has S₀u and
Q₀S₀u behind it, a row v of S has Q₀v. So w = Qk, g = Sw and b = Qg are sums of what is at hand.
"""

from libc.math cimport fabs
from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport dasum, daxpy, ddot

from pogp.posteriors.absorbed.compiled_state cimport AbsorbedState
from pogp.posteriors.linalg.storage cimport get_column
from pogp.posteriors.linalg.symmetric cimport (
    all_times_base, both_times_base, column_due, get, product, settle, times_base,
    times_due,
)

from pogp.posteriors.absorbed.state import EXACT as SURE, REFINE as REFINED, ROUNDING as ROUNDED
from pogp.posteriors.slots import BLOCK, BLOCKS_FROM

cdef int ONE = 1
cdef Py_ssize_t SAMPLES = BLOCK, LEAST = BLOCKS_FROM
cdef Py_ssize_t FEW = 8            # samples for which a block is worth it
cdef double EXACT = SURE, REFINE = REFINED, ROUNDING = ROUNDED


cdef class AbsorbedProducts(AbsorbedState):
    """Products with Q and S, in a block or for a single sample."""

    # ---- a block of samples -------------------------------------------------------------------

    cdef void _foresee(self, const double* X, Py_ssize_t n) noexcept nogil:
        """Go to the next of n samples, in this block or as the first of a new one."""
        cdef int m = <int> self.size, count, ld = <int> self.capacity, apart = 4 * ld
        cdef Py_ssize_t i, d, part
        cdef double* row
        if self.ahead > 1:
            self.at, self.ahead = self.at + 1, self.ahead - 1
            self._make_room()
        else:
            self._end_block()
        self.wait -= 1
        if self.ahead > 0 or not self.blocks or m < LEAST or n < FEW or self.wait > 0:
            return
        settle(self.Q, m)
        settle(self.S[0], m)
        if self._in_doubt(X):
            self.wait = SAMPLES
            return
        self.at, self.ahead = 0, min(n, SAMPLES)
        count = <int> self.ahead
        self.Q.parts, self.S[0].parts = 3, 2
        for i in range(count):
            row = self.foreseen + i * apart
            self.program.column(self.points, ld, m, X + i * self.dimension, row, self.stack)
            for part in range(1, 4):
                memset(row + part * ld + m, 0, (ld - m) * sizeof(double))
            for d in range(self.dimension):
                self.samples[d * SAMPLES + i] = X[i * self.dimension + d]
        for part in range(3):
            row = self.foreseen + part * ld
            all_times_base(self.S[0] if part == 1 else self.Q, m, count, row, row + ld, apart)

    cdef bint _in_doubt(self, const double* x) noexcept nogil:
        """Whether w has to be refined at x. It then is at most samples, and a block does not pay."""
        cdef int m = <int> self.size
        cdef double kappa0 = self.program.prior(x)
        self.program.column(self.points, self.capacity, m, x, self.k, self.stack)
        times_base(self.Q, m, self.k, self.w)
        return (kappa0 - ddot(&m, self.k, &ONE, self.w, &ONE) < REFINE * kappa0
                and self._residual(kappa0, self.k, self.w, self.u) > 0.0)

    cdef void _make_room(self) noexcept nogil:
        """End the block if the updates of one more sample, or removal, might not fit."""
        if self.Q.due + 6 > self.Q.room or self.S[0].due + 4 > self.S[0].room:
            self._end_block()

    cdef void _end_block(self) noexcept nogil:
        """Apply all updates that are due."""
        if self.ahead > 0:
            self.ahead, self.foretold, self.Q.parts, self.S[0].parts = 0, -1, 1, 1
            settle(self.Q, <int> self.size)
            settle(self.S[0], <int> self.size)

    cdef void _behind(self, double* v, int n) noexcept nogil:
        """Fill the parts behind v: S₀v and Q₀S₀v."""
        times_base(self.S[0], n, v, v + self.capacity)
        times_base(self.Q, n, v + self.capacity, v + 2 * self.capacity)

    cdef void _solve(self, Py_ssize_t j, int n, const double* v, double* solved) noexcept nogil:
        """Fill Q₀v and the parts behind it; by the same passes `left` of slot j, unless j is −1."""
        cdef Py_ssize_t ld = self.capacity
        cdef double* left = self.left
        if j >= 0:
            self._begin_to_leave(j, n)
        if j < 0 or not left[j] > 0.0:
            times_base(self.Q, n, v, solved)
            self._behind(solved, n)
            return
        both_times_base(self.Q, n, v, solved, left + 3 * ld, left + 4 * ld)
        both_times_base(self.S[0], n, solved, solved + ld, left, left + ld)
        both_times_base(self.Q, n, solved + ld, solved + 2 * ld, left + ld, left + 2 * ld)

    cdef void _begin_to_leave(self, Py_ssize_t j, int n) noexcept nogil:
        """Fill Q₀e_j and S₀e_j; the products with these are zero for a point of this block."""
        cdef Py_ssize_t ld = self.capacity
        self.foretold = j
        get_column(self.Q.base, ld, j, n, self.left)
        get_column(self.S[0].base, ld, j, n, self.left + 3 * ld)
        if not self.left[j] > 0.0:
            memset(self.left + ld, 0, 2 * ld * sizeof(double))
            memset(self.left + 4 * ld, 0, ld * sizeof(double))

    cdef void _tell(self, const double* x, Py_ssize_t m) noexcept nogil:
        """Add slot m: kernel values of the samples ahead, and zeros in products with Q₀ and S₀."""
        cdef Py_ssize_t i, part, ld = self.capacity
        cdef double* row = self.foreseen + 4 * ld * self.at
        self.program.column(self.samples + self.at, SAMPLES, self.ahead, x, self.u, self.stack)
        for i in range(self.ahead):
            row[m] = self.u[i]
            for part in range(1, 4):
                row[part * ld + m] = 0.0
            row += 4 * ld
        for part in range(5):
            self.left[part * ld + m] = 0.0

    cdef void _lose(self, Py_ssize_t j, int n) noexcept nogil:
        """Take row and column j of Q₀ and S₀ out of all products."""
        cdef int length = 2 * <int> self.capacity + n, p
        cdef Py_ssize_t i, ld = self.capacity
        cdef double share
        cdef double* row = self.foreseen + 4 * ld * self.at
        self.foretold = -1
        for i in range(self.ahead):
            share = -row[j]
            daxpy(&length, &share, self.left, &ONE, row + ld, &ONE)
            row[j] = row[n - 1]
            self._lose_in(row + ld, j, n)
            row += 4 * ld
        for p in range(self.Q.due):
            self._lose_in(self.Q.rows + p * self.Q.apart, j, n)
        for p in range(self.S[0].due):
            row = self.S[0].rows + p * self.S[0].apart
            share = -row[j]
            row += ld
            daxpy(&n, &share, self.left, &ONE, row, &ONE)
            row[j] = row[n - 1]

    cdef void _lose_in(self, double* v, Py_ssize_t j, int n) noexcept nogil:
        """The same for v, S₀v and Q₀S₀v."""
        cdef int length = <int> self.capacity + n
        cdef double share = -v[j]
        cdef double* behind = v + self.capacity
        daxpy(&length, &share, self.left + 3 * self.capacity, &ONE, behind, &ONE)
        share = -behind[j]
        behind += self.capacity
        daxpy(&n, &share, self.left, &ONE, behind, &ONE)
        v[j], v[self.capacity + j], behind[j] = v[n - 1], v[self.capacity + n - 1], behind[n - 1]

    # ---- products, in a block or not ------------------------------------------------------------

    cdef void _regression(self, const double* x, double* k, double* w, double* stack,
                          double* shares) noexcept nogil:
        """Fill k and w = Qk; in a block also the parts behind w."""
        cdef int m = <int> self.size
        cdef double* ahead = self.foreseen + 4 * self.capacity * self.at
        if self.ahead:
            memcpy(k, ahead, m * sizeof(double))
            memcpy(w, ahead + self.capacity, 3 * self.capacity * sizeof(double))
            times_due(self.Q, m, 3, k, w, shares)
        else:
            self.program.column(self.points, self.capacity, m, x, k, stack)
            product(self.Q, m, k, w, shares)

    cdef void _column(self, Py_ssize_t j, int n) noexcept nogil:
        """Fill q = Q_j; in a block also the parts behind q, and `left`."""
        cdef Py_ssize_t ld = self.capacity
        if not self.ahead:
            get(self.Q, j, n, self.q)
            return
        if self.foretold != j:
            self._begin_to_leave(j, n)
            if self.left[j] > 0.0:
                times_base(self.S[0], n, self.left, self.left + ld)
                both_times_base(self.Q, n, self.left + ld, self.left + 2 * ld, self.left + 3 * ld,
                                self.left + 4 * ld)
        memcpy(self.q, self.left, 3 * ld * sizeof(double))
        column_due(self.Q, n, 3, j, self.q)

    cdef void _times_covariance(self, Py_ssize_t belief, int n, double* w, double* g,
                                double* shares) noexcept nogil:
        """g = Sw; in a block with the part behind it."""
        if self.ahead:
            memcpy(g, w + self.capacity, 2 * self.capacity * sizeof(double))
            times_due(self.S[0], n, 2, w, g, shares)
        else:
            product(self.S[belief], n, w, g, shares)

    cdef void _times_inverse(self, int n, double* g, double* b) noexcept nogil:
        """b = Qg."""
        if self.ahead:
            memcpy(b, g + self.capacity, n * sizeof(double))
            times_due(self.Q, n, 1, g, b, self.Q.shares)
        else:
            product(self.Q, n, g, b, self.Q.shares)

    cdef double _residual(self, double kappa0, const double* k, double* w, double* u) noexcept nogil:
        """Fill k − Kw; return its largest entry, or 0 if that does not matter or is rounding."""
        cdef int m = <int> self.size
        cdef Py_ssize_t i
        cdef double largest = 0.0, steepest = 0.0
        cdef const double* diagonal = self.Q.diagonal
        times_base(self.K, m, w, u)
        for i in range(m):  # without `fmax`, which is a call
            u[i] = k[i] - u[i]
            largest = fabs(u[i]) if fabs(u[i]) > largest else largest
            steepest = diagonal[i] if diagonal[i] > steepest else steepest
        if largest * steepest > EXACT and largest > ROUNDING * kappa0 * (1.0 + dasum(&m, w, &ONE)):
            return largest
        return 0.0
