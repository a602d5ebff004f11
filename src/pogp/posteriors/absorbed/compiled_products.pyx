# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Products with Q and S of the absorbed posterior, compiled: one sample at a time, or a block.

A block of samples is learned with products of matrices (mathematics.md §6). During a block, all
updates of Q and S are deferred. Their base matrices Q₀ and S₀ change only by slots that are added or
removed. Q₀k, S₀Q₀k and Q₀S₀Q₀k are computed for all samples at once. A deferred row u of Q has two
more parts, S₀u and Q₀S₀u, and a row v of S has one, Q₀v. So w = Qk, g = Sw and b = Qg are sums of
known vectors.
"""

from libc.math cimport fabs
from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport dasum, daxpy, ddot, dscal, idamax

from pogp.posteriors.absorbed.compiled_state cimport AbsorbedState
from pogp.posteriors.linalg.storage cimport get_column
from pogp.posteriors.linalg.symmetric cimport (
    all_times_base, both_times_base, add_deferred_column, get, product, apply_deferred, times_base,
    add_deferred_product,
)

from pogp.posteriors import slots
from pogp.posteriors.absorbed import state

cdef int ONE = 1
cdef Py_ssize_t BLOCK = slots.BLOCK, BLOCKS_FROM = slots.BLOCKS_FROM
cdef Py_ssize_t SMALLEST_BLOCK = 8  # samples for which a block is worth it
cdef double EXACT = state.EXACT, GLIMPSE = state.GLIMPSE, REFINE = state.REFINE, ROUNDING = state.ROUNDING


cdef class AbsorbedProducts(AbsorbedState):
    """Products with Q and S, in a block or for a single sample."""

    # ---- a block of samples -------------------------------------------------------------------

    cdef void _advance_block(self, const double* X, Py_ssize_t n) noexcept nogil:
        """Advance to the next of n samples, in this block or as the first of a new one."""
        cdef int m = <int> self.size, count, ld = <int> self.capacity, apart = 4 * ld
        cdef Py_ssize_t i, d, part
        cdef double* row
        if self.block_left > 1:
            self.block_at, self.block_left = self.block_at + 1, self.block_left - 1
            self._end_full_block()
        else:
            self._end_block()
        self.block_delay -= 1
        if self.block_left > 0 or not self.uses_blocks or m < BLOCKS_FROM or n < SMALLEST_BLOCK or self.block_delay > 0:
            return
        apply_deferred(self.Q, m)
        apply_deferred(self.S[0], m)
        if self._needs_refinement(X):
            self.block_delay = BLOCK
            return
        self.block_at, self.block_left = 0, min(n, BLOCK)
        count = <int> self.block_left
        self.Q.parts, self.S[0].parts = 3, 2
        for i in range(count):
            row = self.block_products + i * apart
            self.program.column(self.points, ld, m, X + i * self.dimension, row, self.stack)
            for part in range(1, 4):
                memset(row + part * ld + m, 0, (ld - m) * sizeof(double))
            for d in range(self.dimension):
                self.block_inputs[d * BLOCK + i] = X[i * self.dimension + d]
        for part in range(3):
            row = self.block_products + part * ld
            all_times_base(self.S[0] if part == 1 else self.Q, m, count, row, row + ld, apart)

    cdef bint _needs_refinement(self, const double* x) noexcept nogil:
        """Whether w has to be refined at x: it then is at most samples, and blocks do not pay."""
        cdef int m = <int> self.size
        cdef double kappa0 = self.program.prior(x)
        self.program.column(self.points, self.capacity, m, x, self.k, self.stack)
        times_base(self.Q, m, self.k, self.w)
        return (kappa0 - ddot(&m, self.k, &ONE, self.w, &ONE) < REFINE * kappa0
                and self._residual(kappa0, self.k, self.w, self.u) > 0.0)

    cdef void _end_full_block(self) noexcept nogil:
        """End the block if there may be no room for the updates of one more sample or removal."""
        if self.Q.deferred + 6 > self.Q.room or self.S[0].deferred + 4 > self.S[0].room:
            self._end_block()

    cdef void _end_block(self) noexcept nogil:
        """Apply all deferred updates."""
        if self.block_left > 0:
            self.block_left, self.prepared_slot, self.Q.parts, self.S[0].parts = 0, -1, 1, 1
            apply_deferred(self.Q, <int> self.size)
            apply_deferred(self.S[0], <int> self.size)

    cdef void _fill_parts(self, double* v, int n) noexcept nogil:
        """Fill the further parts of v: S₀v and Q₀S₀v."""
        times_base(self.S[0], n, v, v + self.capacity)
        times_base(self.Q, n, v + self.capacity, v + 2 * self.capacity)

    cdef void _solve_both(self, Py_ssize_t j, int n, const double* v, double* solved) noexcept nogil:
        """Fill Q₀v and its further parts, and in the same passes those of slot j unless it is −1."""
        cdef Py_ssize_t ld = self.capacity
        cdef double* left = self.slot_products
        if j >= 0:
            self._load_slot(j, n)
        if j < 0 or not left[j] > 0.0:
            times_base(self.Q, n, v, solved)
            self._fill_parts(solved, n)
            return
        both_times_base(self.Q, n, v, solved, left + 3 * ld, left + 4 * ld)
        both_times_base(self.S[0], n, solved, solved + ld, left, left + ld)
        both_times_base(self.Q, n, solved + ld, solved + 2 * ld, left + ld, left + 2 * ld)

    cdef void _load_slot(self, Py_ssize_t j, int n) noexcept nogil:
        """Fill Q₀e_j and S₀e_j; their products are zero for a point added in this block."""
        cdef Py_ssize_t ld = self.capacity
        self.prepared_slot = j
        get_column(self.Q.base, ld, j, n, self.slot_products)
        get_column(self.S[0].base, ld, j, n, self.slot_products + 3 * ld)
        if not self.slot_products[j] > 0.0:
            memset(self.slot_products + ld, 0, 2 * ld * sizeof(double))
            memset(self.slot_products + 4 * ld, 0, ld * sizeof(double))

    cdef void _extend_block(self, const double* x, Py_ssize_t m) noexcept nogil:
        """Add slot m: kernel values of the remaining samples, zeros in products with Q₀ and S₀."""
        cdef Py_ssize_t i, part, ld = self.capacity
        cdef double* row = self.block_products + 4 * ld * self.block_at
        self.program.column(self.block_inputs + self.block_at, BLOCK, self.block_left, x, self.u,
                            self.stack)
        for i in range(self.block_left):
            row[m] = self.u[i]
            for part in range(1, 4):
                row[part * ld + m] = 0.0
            row += 4 * ld
        for part in range(5):
            self.slot_products[part * ld + m] = 0.0

    cdef void _shrink_block(self, Py_ssize_t j, int n) noexcept nogil:
        """Remove row and column j of Q₀ and S₀ from all products."""
        cdef int length = 2 * <int> self.capacity + n, p
        cdef Py_ssize_t i, ld = self.capacity
        cdef double share
        cdef double* row = self.block_products + 4 * ld * self.block_at
        self.prepared_slot = -1
        for i in range(self.block_left):
            share = -row[j]
            daxpy(&length, &share, self.slot_products, &ONE, row + ld, &ONE)
            row[j] = row[n - 1]
            self._shrink_row(row + ld, j, n)
            row += 4 * ld
        for p in range(self.Q.deferred):
            self._shrink_row(self.Q.rows + p * self.Q.row_stride, j, n)
        for p in range(self.S[0].deferred):
            row = self.S[0].rows + p * self.S[0].row_stride
            share = -row[j]
            row += ld
            daxpy(&n, &share, self.slot_products, &ONE, row, &ONE)
            row[j] = row[n - 1]

    cdef void _shrink_row(self, double* v, Py_ssize_t j, int n) noexcept nogil:
        """The same for v, S₀v and Q₀S₀v."""
        cdef int length = <int> self.capacity + n
        cdef double share = -v[j]
        cdef double* part = v + self.capacity
        daxpy(&length, &share, self.slot_products + 3 * self.capacity, &ONE, part, &ONE)
        share = -part[j]
        part += self.capacity
        daxpy(&n, &share, self.slot_products, &ONE, part, &ONE)
        v[j], v[self.capacity + j], part[j] = v[n - 1], v[self.capacity + n - 1], part[n - 1]

    # ---- products, in a block or not ------------------------------------------------------------

    cdef void _unrefined_weights(self, const double* x, double* k, double* w, double* stack,
                          double* shares) noexcept nogil:
        """Fill k and w = Qk; in a block also its further parts."""
        cdef int m = <int> self.size
        cdef double* ahead = self.block_products + 4 * self.capacity * self.block_at
        if self.block_left:
            memcpy(k, ahead, m * sizeof(double))
            memcpy(w, ahead + self.capacity, 3 * self.capacity * sizeof(double))
            add_deferred_product(self.Q, m, 3, k, w, shares)
        else:
            self.program.column(self.points, self.capacity, m, x, k, stack)
            product(self.Q, m, k, w, shares)

    cdef void _column(self, Py_ssize_t j, int n) noexcept nogil:
        """Fill q = Q_j; in a block also its further parts, and `slot_products`."""
        cdef Py_ssize_t ld = self.capacity
        cdef double* found = self.slot_products
        if not self.block_left:
            get(self.Q, j, n, self.q)
            return
        if self.prepared_slot != j:
            self._load_slot(j, n)
            if found[j] > 0.0:
                times_base(self.S[0], n, found, found + ld)
                both_times_base(self.Q, n, found + ld, found + 2 * ld, found + 3 * ld, found + 4 * ld)
        memcpy(self.q, found, 3 * ld * sizeof(double))
        add_deferred_column(self.Q, n, 3, j, self.q)

    cdef void _times_covariance(self, Py_ssize_t belief, int n, double* w, double* g,
                                double* shares) noexcept nogil:
        """g = Sw; in a block with its further part."""
        if self.block_left:
            memcpy(g, w + self.capacity, 2 * self.capacity * sizeof(double))
            add_deferred_product(self.S[0], n, 2, w, g, shares)
        else:
            product(self.S[belief], n, w, g, shares)

    cdef void _times_belief(self, Py_ssize_t belief, Py_ssize_t j, int n, double* c) noexcept nogil:
        """c = Sq for one belief, where q is column j of Q."""
        self._times_covariance(belief, n, self.q, c, self.Q.shares)
        if self.forgetting_p[belief] < 1.0:  # Kq = e_j
            dscal(&n, &self.kept[belief], c, &ONE)
            c[j] += self.shift[belief]

    cdef void _times_inverse(self, int n, double* g, double* b) noexcept nogil:
        """b = Qg."""
        if self.block_left:
            memcpy(b, g + self.capacity, n * sizeof(double))
            add_deferred_product(self.Q, n, 1, g, b, self.Q.shares)
        else:
            product(self.Q, n, g, b, self.Q.shares)

    cdef bint _seems_wrong(self, double kappa0, const double* k, double* w, double* u) noexcept nogil:
        """Whether k − Kw at the heaviest point is an error that is not rounding."""
        cdef int m = <int> self.size
        cdef Py_ssize_t i = idamax(&m, w, &ONE) - 1, j
        cdef double error, steepest = 0.0
        cdef const double* diagonal = self.Q.diagonal
        get_column(self.K.base, self.capacity, i, m, u)
        error = fabs(k[i] - ddot(&m, u, &ONE, w, &ONE))
        if not error > ROUNDING * kappa0 * (1.0 + dasum(&m, w, &ONE)):
            return False
        for j in range(m):
            steepest = diagonal[j] if diagonal[j] > steepest else steepest
        return error * steepest > GLIMPSE

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
