# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The absorbed posterior, compiled: the twin of `state.py`.

Updates of Q, S and Λ are deferred (`symmetric.pyx`). When a new point learns from recent samples,
products with e = [−w, 1] follow from the append, and those with a are found before it. Forgetting
changes two numbers: the covariance of a belief is kept·S + shift·K, which is written out once half
of it is forgotten.
"""

import numpy as np

from libc.math cimport fabs, fmax, fmin, isfinite, sqrt
from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport dasum, daxpy, ddot, dgemv, dscal

from pogp.posteriors.absorbed.compiled_products cimport AbsorbedProducts
from pogp.posteriors.absorbed.compiled_state cimport RECENT_AT_ONCE
from pogp.posteriors.linalg.storage cimport pointer
from pogp.posteriors.linalg.symmetric cimport (
    Symmetric, add, add_pair, blend, drop, get, product, put, times_base, add_deferred_product,
)

from pogp.posteriors.absorbed import recent, state

cdef int ONE = 1
cdef Py_ssize_t PER_POINT = recent.PER_POINT, MOST_RECENT = recent.MOST
cdef char PLAIN = b"N", TRANSPOSED = b"T"
cdef double REFINE = state.REFINE, MEND = state.MEND, EXACT = state.EXACT
cdef double GLIMPSE_BELOW = state.GLIMPSE_BELOW
cdef double KNOWN = state.KNOWN, ROUNDING = state.ROUNDING
cdef double LOST = state.LOST, OUTSIDE = state.OUTSIDE
cdef double HALF = 0.5, UNIT = 1.0, MINUS = -1.0
cdef double MUCH = 1000.0           # noise, beside the kernel's variance


cdef class AbsorbedUpdates(AbsorbedProducts):
    """Predictions and updates; the loop decides which."""

    def predict(self, const double[:, ::1] X):
        """See `state.AbsorbedState.predict`."""
        cdef int m = <int> self.size
        cdef Py_ssize_t belief
        cdef Symmetric S
        if X.shape[0] == 1:
            means, latent = np.empty((self.beliefs, 1, self.outputs)), np.empty((self.beliefs, 1))
            self._predict_one(&X[0, 0], pointer(means), pointer(latent))
            return means, latent
        w, gamma, k = self.regression(X)
        means = self._mean + w @ self._values[:, :, :m].transpose(0, 2, 1)
        latent = np.empty((self.beliefs, len(w)))
        for belief in range(self.beliefs):
            S = self._S[belief]
            known = self.kept[belief] * np.einsum("ij,ij->i", w, S.times(w, m))
            known += self.shift[belief] * np.einsum("ij,ij->i", w, k)
            latent[belief] = gamma + np.maximum(known, 0.0)
        return means, latent

    cdef _predict_one(self, const double* x, double* means, double* latent):
        """Do the same as `_predict_input` in a work space of its own, so that threads may predict."""
        cdef Py_ssize_t belief, stride = self.capacity
        cdef double kappa0 = self.program.prior(x), gamma
        room = np.empty((4 + self.program.depth) * stride + self.Q.room)
        cdef double* k = pointer(room)
        cdef double* w = k + stride
        cdef double* u = w + stride
        cdef double* z = u + stride
        cdef double* stack = z + stride
        cdef double* shares = stack + self.program.depth * stride
        with nogil:
            gamma = self._regression_weights(x, kappa0, k, w, u, z, stack, shares, False)
            self._fill_moments(k, w, u, 0, shares, means, latent)
        for belief in range(self.beliefs):
            latent[belief] += gamma

    # ---- one sample -------------------------------------------------------------------------

    cdef void _predict_input(self, const double* x) noexcept nogil:
        """Fill k, w, γ, g, wᵀSw and the means for x; a large residual corrects Q."""
        self.kappa0 = self.program.prior(x)
        self.gamma = self._regression_weights(x, self.kappa0, self.k, self.w, self.u, self.z,
                                              self.stack, self.Q.shares, True)
        self._fill_moments(self.k, self.w, self.g, self.capacity, self.Q.shares, self.means,
                       self.explained)

    cdef double _regression_weights(self, const double* x, double kappa0, double* k, double* w,
                                    double* u, double* z, double* stack, double* shares, bint mend) noexcept nogil:
        """Fill k and w = Qk, refined where that matters; return γ."""
        cdef int m = <int> self.size
        cdef double gamma = kappa0
        if m > 0:
            self._unrefined_weights(x, k, w, stack, shares)
            gamma -= ddot(&m, k, &ONE, w, &ONE)
            if gamma < REFINE * kappa0 or (
                    self.forgets and gamma < GLIMPSE_BELOW * kappa0
                    and self._seems_wrong(kappa0, k, w, u)):
                gamma = self._refine(kappa0, k, w, u, z, shares, mend)
        return fmax(gamma, 0.0)

    cdef double _refine(self, double kappa0, const double* k, double* w, double* u, double* z,
                        double* shares, bint mend) noexcept nogil:
        """Refine w by its residual, which corrects Q if it is large; return the new γ."""
        cdef int m = <int> self.size, length = m + (self.Q.parts - 1) * self.Q.ld
        cdef Py_ssize_t i
        cdef double largest = self._residual(kappa0, k, w, u), change = 0.0, by
        cdef double gamma = kappa0 - ddot(&m, <double*> k, &ONE, w, &ONE) - ddot(&m, u, &ONE, w, &ONE)
        if largest > 0.0:
            product(self.Q, m, u, z, shares)
            gamma -= ddot(&m, u, &ONE, z, &ONE)
            for i in range(m):
                change = fmax(change, fabs(z[i]))
        if change > EXACT:
            if self.block_left:
                self._fill_parts(z, m)
            daxpy(&length, &UNIT, z, &ONE, w, &ONE)
            if mend and largest > MEND * kappa0:
                by = 1.0 / ddot(&m, <double*> k, &ONE, w, &ONE)
                largest = 0.5 * by * by * ddot(&m, <double*> k, &ONE, z, &ONE)
                for i in range(length):
                    z[i] = by * z[i] - largest * w[i]
                add_pair(self.Q, m, w, z)
        return gamma

    cdef void _fill_moments(self, double* k, double* w, double* g, Py_ssize_t apart, double* shares,
                        double* means, double* explained) noexcept nogil:
        """Fill the means, g = Sw (one `apart` from the next) and wᵀSw of all beliefs."""
        cdef int m = <int> self.size
        cdef Py_ssize_t belief, o, at
        cdef double* mine
        for belief in range(self.beliefs):
            mine = g + belief * apart
            explained[belief] = 0.0
            if m > 0:
                self._times_covariance(belief, m, w, mine, shares)
                if self.forgetting_p[belief] < 1.0:  # Kw = k
                    dscal(&m, &self.kept[belief], mine, &ONE)
                    daxpy(&m, &self.shift[belief], k, &ONE, mine, &ONE)
                explained[belief] = fmax(ddot(&m, w, &ONE, mine, &ONE), 0.0)
            for o in range(self.outputs):
                at = belief * self.outputs + o
                means[at] = self.prior[o]
                if m > 0:
                    means[at] += ddot(&m, w, &ONE, self.values + at * self.capacity, &ONE)

    cdef bint _fill_surprises(self, const double* y, const double* noises, bint whole) noexcept nogil:
        """Fill the variances and surprises, with γ if `whole`; return whether all are finite."""
        cdef Py_ssize_t belief, o, at
        cdef bint finite = True
        for belief in range(self.beliefs):
            self.variances[belief] = noises[belief] + self.explained[belief]
            if whole:
                self.variances[belief] += self.gamma
            for o in range(self.outputs):
                at = belief * self.outputs + o
                self.surprise[at] = (y[o] - self.means[at]) / self.variances[belief]
                finite = finite and isfinite(self.surprise[at])
        return finite

    cdef void _fill_b(self) noexcept nogil:
        """Fill b = Qg of the leading belief."""
        if self.size > 0:
            self._times_inverse(<int> self.size, self.g + self.lead * self.capacity, self.b)

    # ---- what learning changes (mathematics.md §4) --------------------------------------------

    cdef void _append(self, const double* x, const double* noises, long long arrival,
                      double relevance, bint uses_recent) noexcept nogil:
        """Observe the sample as a new point; its variances and surprises are with γ."""
        cdef int m = <int> self.size, n = m + 1
        cdef Py_ssize_t i, d, o, at, belief, stride = self.capacity
        cdef double by_gamma, latent, s
        cdef double* g
        if noises[0] > MUCH * self.kappa0:
            self._end_block()  # S₀ would have this noise, which would cancel
        by_gamma = 1.0 / self.gamma
        for belief in range(self.beliefs):
            g = self.g + belief * stride
            latent, s = self.gamma + self.explained[belief], self.variances[belief]
            g[m] = latent
            for o in range(self.outputs):
                at = belief * self.outputs + o
                self.values[at * stride + m] = self.means[at] - self.prior[o]
                daxpy(&n, &self.surprise[at], g, &ONE, self.values + at * stride, &ONE)
            if self.block_left:  # Q₀ has nothing there, and S₀ the noise
                memset(self.u, 0, m * sizeof(double))
                self.u[m], g[m], g[stride + m] = noises[0], -noises[0], 0.0
                self.w[stride + m], self.w[2 * stride + m] = -noises[0], 0.0
            else:
                for i in range(m):
                    self.u[i] = (g[i] - self.shift[belief] * self.k[i]) / self.kept[belief]
                self.u[m] = (latent - self.shift[belief] * self.kappa0) / self.kept[belief]
            put(self.S[belief], m, n, self.u)
            if self.block_left and uses_recent:
                s -= self.gamma  # with the square of the same g that `_learn_recent` would subtract
            add(self.S[belief], n, -1.0 / (s * self.kept[belief]), g)
        self._price_append(noises, by_gamma)
        memset(self.t, 0, n * sizeof(double))
        put(self.Q, m, n, self.t)
        self.w[m] = -1.0
        add(self.Q, n, by_gamma, self.w)
        self.k[m], self.t[m] = self.kappa0, 1.0 / noises[0]
        put(self.K, m, n, self.k)
        if self.has_information:
            put(self.L, m, n, self.t)
        if self.block_left:
            self._extend_block(x, m)
        for d in range(self.dimension):
            self.points[d * stride + m] = x[d]
        self.arrivals_p[m] = arrival
        self.relevance_p[m], self.taken_p[m] = relevance, 0.0
        self.size = n

    cdef void _price_append(self, const double* noises, double by_gamma) noexcept nogil:
        """Update what prices need of the leading belief, before the append."""
        cdef Py_ssize_t i, o, at, m = self.size, stride = self.capacity
        cdef double s = self.variances[self.lead], difference
        for i in range(m):
            difference = self.b[i] - self.w[i]
            self.spread_p[i] += self.w[i] * self.w[i] * by_gamma - difference * difference / s
        self.spread_p[m] = (self.explained[self.lead] + noises[self.lead]) * by_gamma / s
        for o in range(self.outputs):
            at = self.lead * self.outputs + o
            self.alpha[o * stride + m] = self.surprise[at]
            for i in range(m):
                self.alpha[o * stride + i] += (self.b[i] - self.w[i]) * self.surprise[at]

    # ---- new points learn from recent samples -------------------------------------------------

    cdef bint _collect_recent(self, const double* x) noexcept nogil:
        """Collect the information of recent samples about x, the next point; say if there is any.

        Fills κ(xᵢ, x), b, h, q = a, z = Sa and edge = QSa.
        """
        cdef int m = <int> self.size
        cdef int ld = <int> self.capacity, count
        cdef Py_ssize_t age = 0, i, row, o, part
        cdef double slopes[RECENT_AT_ONCE]
        cdef double slope, rounding
        cdef double* cross
        if self.n_recent == 0:
            return False
        self.program.column(self.recent_inputs, self.recent_room, self._used(), x,
                            self.recent_kappa, self.recent_kappa + self.recent_room)
        rounding = ROUNDING * self.kappa0 * (1.0 + dasum(&m, self.w, &ONE))
        memset(self.t, 0, m * sizeof(double))
        memset(self.recent_vector, 0, self.outputs * sizeof(double))
        self.recent_precision = 0.0
        while age < self.n_recent:
            count = <int> min(RECENT_AT_ONCE, self.n_recent - age)
            cross = self.recent_cross + self._row(age) * ld
            if self._row(age) + count > self.recent_room:  # some rows are at the end, some at the start
                cross = self.recent_cross + self.recent_room * ld
                for i in range(count):
                    memcpy(cross + i * ld, self.recent_cross + self._row(age + i) * ld,
                           m * sizeof(double))
            for i in range(count):
                slopes[i] = self.recent_kappa[self._row(age + i)]
            dgemv(&TRANSPOSED, &m, &count, &MINUS, cross, &ld, self.w, &ONE, &UNIT, slopes, &ONE)
            for i in range(count):
                row = self._row(age + i)
                if fabs(slopes[i]) <= rounding or self.recent_is_point[row]:
                    slopes[i] = 0.0
                    continue
                slope = slopes[i] / self.gamma
                slopes[i] = slope / self.recent_noises[row]
                self.recent_precision += slope * slopes[i]
                for o in range(self.outputs):
                    self.recent_vector[o] += slopes[i] * self.recent_targets[row * self.outputs + o]
            dgemv(&PLAIN, &m, &count, &UNIT, cross, &ld, slopes, &ONE, &UNIT, self.t, &ONE)
            age += count
        if not self.recent_precision > 0.0:
            return False
        if not self.block_left:
            times_base(self.Q, m, self.t, self.q)
        else:
            self._solve_both(self.likely_slot, m, self.t, self.q)
            for part in range(3):
                memset(self.q + part * self.capacity + m, 0, (self.capacity - m) * sizeof(double))
        add_deferred_product(self.Q, m, self.Q.parts, self.t, self.q, self.Q.shares)
        self._times_covariance(0, m, self.q, self.z, self.Q.shares)
        self._times_inverse(m, self.z, self.edge)
        return True

    cdef void _learn_recent(self, double noise) noexcept nogil:
        """Add that information, now that x is appended; w is −e, and b is from before."""
        cdef int n = <int> self.size, m = n - 1
        cdef Py_ssize_t i, o, part, stride = self.capacity
        cdef double gamma = self.gamma, s = self.variances[0], b = self.recent_precision
        cdef double c = ddot(&m, self.g, &ONE, self.q, &ONE), by_s = c / s
        cdef double vee = gamma * (s - gamma) / s, vea = 1.0 - gamma * by_s
        cdef double open = fmax(b - (ddot(&m, self.q, &ONE, self.z, &ONE) - c * by_s), 0.0)
        cdef double D = vea * vea + vee * open, ratio = vea / vee, by_g = ratio * gamma / s - by_s
        cdef double r, t, first, second, moved
        cdef double* Qe = self.u
        cdef double* Qv = self.t
        for part in range(self.S[0].parts):
            for i in range(part * stride, part * stride + m):
                self.z[i] += by_g * self.g[i]
        self.z[m], self.g[m], self.q[m] = -noise * by_g, -noise, 0.0
        if self.S[0].parts > 1:
            self.z[stride + m], self.g[stride + m] = 0.0, 0.0
        self.edge[m], self.b[m] = 0.0, 0.0
        for i in range(n):
            moved = self.b[i] - self.w[i]
            Qe[i] = -self.w[i] - gamma / s * moved
            Qv[i] = self.edge[i] - by_s * moved - ratio * Qe[i]
            self.spread_p[i] += vee / D * Qv[i] * Qv[i] - Qe[i] * Qe[i] / vee
        for o in range(self.outputs):
            r = ddot(&n, self.w, &ONE, self.values + o * stride, &ONE)
            t = self.recent_vector[o] - ddot(&m, self.q, &ONE, self.values + o * stride, &ONE)
            second = (vea * r - vee * t) / D
            first = (open * r + vea * t) / D + ratio * second
            daxpy(&n, &first, Qe, &ONE, self.alpha + o * stride, &ONE)
            daxpy(&n, &second, Qv, &ONE, self.alpha + o * stride, &ONE)
            first *= -gamma / s
            daxpy(&n, &first, self.g, &ONE, self.values + o * stride, &ONE)
            daxpy(&n, &second, self.z, &ONE, self.values + o * stride, &ONE)
        if not self.block_left:
            add(self.S[0], n, -gamma / (s * (s - gamma)), self.g)
        add(self.S[0], n, vee / D, self.z)
        if self.has_information:
            for i in range(n):
                self.t[i] = 0.5 * b * self.w[i] - self.q[i]
            add_pair(self.L, n, self.w, self.t)

    # ---- and without a new point ---------------------------------------------------------------

    cdef void _absorb(self, const double* y, const double* noises, bint marginalise) noexcept nogil:
        """Observe y without a new point."""
        cdef int m = <int> self.size
        cdef Py_ssize_t i, o, at, belief, stride = self.capacity
        cdef double s
        cdef double* g
        self._fill_surprises(y, noises, marginalise)
        for belief in range(self.beliefs):
            g, s = self.g + belief * stride, self.variances[belief]
            for o in range(self.outputs):
                at = belief * self.outputs + o
                daxpy(&m, &self.surprise[at], g, &ONE, self.values + at * stride, &ONE)
                if belief == self.lead:
                    daxpy(&m, &self.surprise[at], self.b, &ONE, self.alpha + o * stride, &ONE)
            if belief == self.lead:
                for i in range(m):
                    self.spread_p[i] -= self.b[i] * self.b[i] / s
            add(self.S[belief], m, -1.0 / (s * self.kept[belief]), g)
        if self.has_information:
            s = noises[0] + (self.gamma if marginalise else 0.0)
            add(self.L, m, 1.0 / s, self.w)

    cdef void _remove(self, Py_ssize_t j, bint marginalise) noexcept nogil:
        """Remove slot j."""
        cdef int n = <int> self.size
        cdef Py_ssize_t belief, i
        self._column(j, n)
        for belief in range(self.beliefs):
            self._project(belief, j, marginalise)
        if self.has_information:
            self._remove_information(j, marginalise)
        add(self.Q, n, -1.0 / self.q[j], self.q)
        if self.block_left:
            self._shrink_block(j, n)
        for i in range(n):
            self.taken_p[i] += fabs(self.edge[i])
        self._drop(j)
        self._renew_spread()

    cdef void _renew_spread(self) noexcept nogil:
        """Compute the least certain slot of the spread again."""
        cdef int n = <int> self.size
        cdef Py_ssize_t i, worst = -1
        cdef double most = 1.0, q, spread, doubt, outside
        cdef double* c = self.g + self.lead * self.capacity
        for i in range(n):
            q, spread = self.Q.diagonal[i], self.spread_p[i]
            outside = (-spread if spread < 0.0 else spread - q) * (1.0 / OUTSIDE)
            doubt = self.taken_p[i] * (1.0 / LOST)
            doubt = outside if outside > doubt else doubt
            if doubt > most * q:
                worst, most = i, doubt / q
        if worst >= 0:
            self._column(worst, n)
            self._times_belief(self.lead, worst, n, c)
            q = dasum(&n, self.q, &ONE)
            self.spread_p[worst] = fmax(ddot(&n, self.q, &ONE, c, &ONE),
                                        KNOWN * self.K.diagonal[worst] * q * q)
            self.taken_p[worst] = 0.0
        self._bound_spread()

    cdef void _bound_spread(self) noexcept nogil:
        """Keep diag(QSQ) between 0 and diag(Q), where it is, since S never exceeds K."""
        cdef Py_ssize_t i
        for i in range(self.size):
            self.spread_p[i] = fmin(fmax(self.spread_p[i], 0.0), self.Q.diagonal[i])

    cdef void _project(self, Py_ssize_t belief, Py_ssize_t j, bint marginalise) noexcept nogil:
        """Project one belief on the other slots; q is column j of Q."""
        cdef int n = <int> self.size
        cdef Py_ssize_t i, o, stride = self.capacity
        cdef double b_j, a_j, t, share
        cdef double* c = self.g + belief * stride
        cdef double* values
        cdef bint leads = belief == self.lead
        if marginalise and not leads:  # then S and m just lose a row
            return
        self._times_belief(belief, j, n, c)
        if leads:
            self._times_inverse(n, c, self.b)
        b_j = dasum(&n, self.q, &ONE)
        b_j = fmax(ddot(&n, self.q, &ONE, c, &ONE), KNOWN * self.K.diagonal[j] * b_j * b_j)
        for o in range(self.outputs):
            values = self.values + (belief * self.outputs + o) * stride
            a_j = ddot(&n, self.q, &ONE, values, &ONE)
            if marginalise:
                share = -a_j / self.q[j]
                daxpy(&n, &share, self.q, &ONE, self.alpha + o * stride, &ONE)
            else:
                share = -a_j / b_j
                daxpy(&n, &share, c, &ONE, values, &ONE)
                if leads:
                    daxpy(&n, &share, self.b, &ONE, self.alpha + o * stride, &ONE)
        if marginalise:
            for i in range(n):
                t = self.q[i] / self.q[j]
                self.edge[i] = t * (2.0 * self.b[i] - b_j * t)
                self.spread_p[i] -= self.edge[i]
        else:
            if leads:
                for i in range(n):
                    self.edge[i] = self.b[i] * self.b[i] / b_j
                    self.spread_p[i] -= self.edge[i]
            add(self.S[belief], n, -1.0 / (b_j * self.kept[belief]), c)

    cdef void _remove_information(self, Py_ssize_t j, bint marginalise) noexcept nogil:
        cdef int n = <int> self.size
        cdef Py_ssize_t i
        cdef double by_q = 1.0 / self.q[j]
        get(self.L, j, n, self.t)
        if marginalise:
            add(self.L, n, by_q, self.q)
            daxpy(&n, &UNIT, self.q, &ONE, self.t, &ONE)
            add(self.L, n, -1.0 / self.t[j], self.t)
        else:
            for i in range(n):
                self.u[i] = -by_q * self.q[i]
                self.z[i] = self.t[i] + HALF * self.t[j] * self.u[i]
            add_pair(self.L, n, self.u, self.z)

    cdef void _drop(self, Py_ssize_t j) noexcept nogil:
        """Delete slot j; the last slot takes its place."""
        cdef int n = <int> self.size
        cdef Py_ssize_t last = n - 1, d, at, row, stride = self.capacity
        cdef double* each
        if self.n_recent > 0:
            row = self.recent_row[j]
            if self.recent_arrivals[row] == self.arrivals_p[j]:
                self.recent_is_point[row] = 0
            self.recent_row[j] = self.recent_row[last]
            for at in range(self.n_recent):
                each = self.recent_cross + self._row(at) * stride
                each[j] = each[last]
            self._trim_recent(max(min(PER_POINT * last, MOST_RECENT), 1))
        drop(self.K, j, n, self.u)
        drop(self.Q, j, n, self.u)
        if self.has_information:
            drop(self.L, j, n, self.u)
        for at in range(self.beliefs):
            drop(self.S[at], j, n, self.u)
        for at in range(self.beliefs * self.outputs):
            self.values[at * stride + j] = self.values[at * stride + last]
        for at in range(self.outputs):
            self.alpha[at * stride + j] = self.alpha[at * stride + last]
        self.spread_p[j], self.taken_p[j] = self.spread_p[last], self.taken_p[last]
        for d in range(self.dimension):
            self.points[d * stride + j] = self.points[d * stride + last]
        self.arrivals_p[j], self.relevance_p[j] = self.arrivals_p[last], self.relevance_p[last]
        self.size = last

    cdef void _forget(self) noexcept nogil:
        """Move each belief towards the prior (mathematics.md §5)."""
        cdef int n = <int> self.size, count
        cdef Py_ssize_t i, o, belief, stride = self.capacity
        cdef double share, root
        for belief in range(self.beliefs):
            share = self.forgetting_p[belief]
            if share == 1.0:
                continue
            root = sqrt(share)
            for o in range(belief * self.outputs, (belief + 1) * self.outputs):
                dscal(&n, &root, self.values + o * stride, &ONE)
            if belief == self.lead:
                for o in range(self.outputs):
                    dscal(&n, &root, self.alpha + o * stride, &ONE)
                for i in range(n):
                    self.spread_p[i] *= share
                    self.spread_p[i] += (1.0 - share) * self.Q.diagonal[i]
            self.kept[belief] *= share
            self.shift[belief] = share * self.shift[belief] + 1.0 - share
            if self.kept[belief] < HALF:
                blend(self.S[belief], n, self.kept[belief], self.shift[belief], self.K)
                self.kept[belief], self.shift[belief] = 1.0, 0.0
