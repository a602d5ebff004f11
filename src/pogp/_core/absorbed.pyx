# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The absorbed posterior, compiled: the twin of `absorbed_reference.py`.

Updates of Q, C and Λ are deferred (`symmetric.pyx`). A sample that leaves no point behind adds one
pair to C and one to Λ, and does not touch Q at all. The marginal at the newest input is followed
through the step by vectors, O(M) for each removal.
"""

import numpy as np

from libc.math cimport fabs, fmax, fmin, sqrt
from scipy.linalg.cython_blas cimport ddot

from pogp._core.program cimport Program
from pogp._core.slots cimport aligned, pointer
from pogp._core.symmetric cimport Symmetric

from pogp._core.absorbed_reference import (
    CAREFUL_RATIO, EPS as EPSILON, MAX_REFINEMENTS as REFINEMENTS,
    check_state, nugget_of,
)

cdef int ONE = 1, MAX_REFINEMENTS = REFINEMENTS
cdef double CAREFUL = CAREFUL_RATIO, EPS = EPSILON
cdef Py_ssize_t VECTORS = 10


cdef class Absorbed:
    """K, Q, Λ, η, C and α of the retained points."""

    def __init__(self, program, double noise, mean, Py_ssize_t dimension, double least):
        self.program = Program(program, dimension)
        self.noise = noise
        self._mean = np.array(mean, dtype=np.float64)
        self.prior = pointer(self._mean)
        self.outputs = len(mean)
        self.dimension = dimension
        self.nugget = nugget_of(self.program.kappa0, noise)
        self.careful = noise < CAREFUL * self.program.kappa0
        self.roomy = least < CAREFUL * self.program.kappa0
        self._allocate(16)

    # ---- what can be seen -------------------------------------------------------------------

    @property
    def mean(self):
        return self._mean.copy()

    @property
    def inputs(self):
        return self._inputs[:, :self.size].T.copy()

    @property
    def arrivals(self):
        return self._arrivals[:self.size].copy()

    @property
    def relevance(self):
        return self._relevance[:self.size].copy()

    @property
    def weights(self):
        return self._alpha[:, :self.size].T.copy()

    @property
    def evidence(self):
        return self._eta[:, :self.size].T.copy()

    @property
    def gram(self):
        return self.K.full(<int> self.size)

    @property
    def inverse(self):
        return self.Q.full(<int> self.size)

    @property
    def precision(self):
        return self.C.full(<int> self.size)

    @property
    def information(self):
        return self.L.full(<int> self.size)

    @property
    def dispersion(self):
        return self.W.full(<int> self.size if self.careful else 0)

    @property
    def nbytes(self):
        arrays = (self._inputs, self._arrivals, self._relevance, self._alpha, self._eta,
                  self._scratch, self.K, self.Q, self.C, self.L, self.W)
        return sum(array.nbytes for array in arrays)

    def predict(self, const double[:, ::1] X):
        """See `absorbed_reference.Absorbed.predict`; many threads may call it while none learns."""
        cdef int m = <int> self.size
        cross = self.program.cross(self._inputs, self.size, X)
        if self.careful and m > 0:
            explained = self._carefully(cross)
        else:
            explained = self.C.quadratic(cross, m)
        return (self._mean + cross @ self._alpha[:, :m].T,
                np.maximum(self.program.kappa0 - explained, 0.0))

    def _carefully(self, cross):
        """Return kᵀCk for each row k, refined (see `absorbed_reference.Absorbed._reduction`)."""
        cdef int m = <int> self.size
        c = self.C.times(cross, m)
        for _ in range(MAX_REFINEMENTS):
            c = c + self.C.times(cross - self.K.times(c, m) - self.W.times(c, m), m)
        return np.sum(c * (2.0 * cross - self.K.times(c, m) - self.W.times(c, m)), axis=1)

    def state(self):
        """See `absorbed_reference.Absorbed.state`; the arrays are copies."""
        cdef int m = <int> self.size
        gram = self.K.state("gram", m)["gram"]  # which owes nothing, ever
        return {
            "inputs": self.inputs, "arrivals": self.arrivals, "relevance": self.relevance,
            "weights": self.weights, "evidence": self.evidence, "gram": gram,
            **self.Q.state("inverse", m), **self.C.state("precision", m),
            **self.L.state("information", m),
            **self.W.state("dispersion", m if self.careful else 0), "nugget": self.nugget,
            "open": self.open, "glances": self.glances,
        }

    def _adopt(self, state, Py_ssize_t capacity):
        cdef int size = <int> len(state["arrivals"])
        self._allocate(max(size + 1, capacity))
        self.size = size
        self._inputs[:, :size] = state["inputs"].T
        self._arrivals[:size] = state["arrivals"]
        self._relevance[:size] = state["relevance"]
        self._alpha[:, :size] = state["weights"].T
        self._eta[:, :size] = state["evidence"].T
        nothing = np.empty((0, size))
        self.K.restore("gram", {**state, "gram_left": nothing, "gram_right": nothing}, size)
        self.Q.restore("inverse", state, size)
        self.C.restore("precision", state, size)
        self.L.restore("information", state, size)
        self.W.restore("dispersion", state, size if self.careful else 0)
        self.nugget, self.open = state["nugget"], state["open"]
        self.glances = state["glances"]

    def restore(self, state):
        """Take over a state that `state` returned."""
        self._adopt(check_state(state, self.dimension, self.outputs), 0)

    def reserve(self, Py_ssize_t points):
        """Make room for so many points, by doubling; nothing but memory changes."""
        if points > self.capacity:
            self._adopt(self.state(), max(points, 2 * self.capacity))

    # ---- staying exact ------------------------------------------------------------------------

    def drift(self, const double[::1] signs):
        """See `absorbed_reference.Absorbed.drift`."""
        cdef int m = <int> self.size
        cdef Py_ssize_t i
        cdef double inverse = 0.0, precision = 0.0, scale = 0.0, largest = 0.0
        if m == 0:
            return 0.0
        with nogil:
            for i in range(m):
                self.k[i] = signs[i]
            self.Q.product(m, self.k, self.u)
            self.K.product(m, self.u, self.z)
            for i in range(m):
                inverse = fmax(inverse, fabs(self.z[i] - self.k[i]))
                scale = fmax(scale, self.L.diagonal[i])
            self.C.product(m, self.k, self.c)
            if self.careful:
                precision, scale = self._residual(self.k), 1.0
            else:  # (I + ΛK)C = Λ
                self.K.product(m, self.c, self.u)
                for i in range(m):
                    self.u[i] = self.k[i] - self.u[i]
                self.L.product(m, self.u, self.z)
                for i in range(m):
                    precision = fmax(precision, fabs(self.z[i] - self.c[i]))
        return max(inverse, precision / scale if scale else 0.0)

    def take_open(self):
        """See `absorbed_reference.Absorbed.take_open`."""
        average = self.open / self.glances if self.glances else 0.0
        self.open, self.glances = 0.0, 0
        return average

    def polish(self):
        """See `absorbed_reference.Absorbed.polish`."""
        with nogil:
            self._polish()

    cdef void _polish(self) noexcept nogil:
        cdef int m = <int> self.size
        cdef Py_ssize_t i, o
        cdef double* alpha
        cdef double* eta
        if m == 0:
            return
        for o in range(self.outputs):
            alpha, eta = self.alpha + o * self.capacity, self.eta + o * self.capacity
            if self.careful:  # (K + W)α = Wη
                for i in range(m):
                    self.t[i] = eta[i] - alpha[i]
                self.W.product(m, self.t, self.z)
                self.K.product(m, alpha, self.u)
                for i in range(m):
                    self.z[i] -= self.u[i]
                self.C.product(m, self.z, self.t)
                for i in range(m):
                    alpha[i] += self.t[i]
                continue
            self.K.product(m, alpha, self.u)
            self.L.product(m, self.u, self.z)
            for i in range(m):
                self.z[i] = eta[i] - alpha[i] - self.z[i]
            self.K.product(m, self.z, self.u)
            self.C.product(m, self.u, self.t)
            for i in range(m):
                alpha[i] += self.z[i] - self.t[i]

    # ---- one sample -------------------------------------------------------------------------

    cdef void _glance(self, const double* x) noexcept nogil:
        """Fill k, w, c, γ, the latent variance and the means for x."""
        cdef int m = <int> self.size
        cdef Py_ssize_t i, o
        cdef double kappa0 = self.program.kappa0, left
        for o in range(self.outputs):
            self.means[o] = self.prior[o]
        self.gamma, self.latent = kappa0 + self.nugget, kappa0
        if m == 0:
            return
        self.program.column(self.points, self.capacity, m, x, self.k, self.stack)
        self.Q.product(m, self.k, self.w)
        left = kappa0 - ddot(&m, self.k, &ONE, self.w, &ONE)
        if left < CAREFUL * kappa0:  # an error in w and γ would be multiplied by 1/γ
            self.K.product(m, self.w, self.u)
            for i in range(m):
                self.u[i] = self.k[i] - self.u[i]
            self.Q.product(m, self.u, self.z)
            for i in range(m):
                self.w[i] += self.z[i]
            self.K.product(m, self.w, self.u)
            for i in range(m):
                self.u[i] = self.k[i] - self.u[i]
            left = kappa0 - (ddot(&m, self.k, &ONE, self.w, &ONE)
                             + ddot(&m, self.w, &ONE, self.u, &ONE))
        self.gamma = fmax(left, 0.0) + self.nugget
        self.latent = fmax(kappa0 - self._quadratic(), 0.0)
        for o in range(self.outputs):
            self.means[o] += ddot(&m, self.k, &ONE, self.alpha + o * self.capacity, &ONE)

    cdef double _quadratic(self) noexcept nogil:
        """Fill c = Ck and return kᵀCk; see `absorbed_reference.Absorbed._reduction`."""
        cdef int m = <int> self.size, turn
        cdef Py_ssize_t i
        cdef double residual, total
        self.C.product(m, self.k, self.c)
        if not self.careful:
            return ddot(&m, self.k, &ONE, self.c, &ONE)
        residual = self._residual(self.k)
        for turn in range(MAX_REFINEMENTS):
            total = 1.0
            for i in range(m):
                total += fabs(self.c[i])
            if residual <= 4.0 * EPS * self.program.kappa0 * total:
                break
            self.C.product(m, self.u, self.z)
            for i in range(m):
                self.c[i] += self.z[i]
            residual = self._residual(self.k)
        return ddot(&m, self.k, &ONE, self.c, &ONE) + ddot(&m, self.c, &ONE, self.u, &ONE)

    cdef double _residual(self, const double* k) noexcept nogil:
        """Fill u = k − (K + W)c; return the largest."""
        cdef int m = <int> self.size
        cdef Py_ssize_t i
        cdef double largest = 0.0
        self.K.product(m, self.c, self.u)
        self.W.product(m, self.c, self.z)
        for i in range(m):
            self.u[i] = k[i] - self.u[i] - self.z[i]
            largest = fmax(largest, fabs(self.u[i]))
        return largest

    cdef double _sharpen(self, const double* a, int n, double slack) noexcept nogil:
        """Take out of W that aᵀu is known but for `slack`; fill b and return s, for C += bbᵀ/s."""
        cdef double known
        self.W.product(n, a, self.z)
        self.C.product(n, self.z, self.b)
        known = ddot(&n, <double*> a, &ONE, self.z, &ONE) + slack
        self.W.add(n, -0.5 / known, self.z, self.z)
        return fmax(known - ddot(&n, self.z, &ONE, self.b, &ONE), EPS * known)

    cdef void _eliminate(self, Py_ssize_t j, int n, double s) noexcept nogil:
        """C += bbᵀ/s, then eliminate slot j by the column that it has in the result."""
        cdef Py_ssize_t i
        cdef double by_s = 1.0 / sqrt(s), share = self.b[j] / s, by_column
        self.C.column(j, n, self.u)
        for i in range(n):
            self.u[i] += self.b[i] * share
        by_column = 1.0 / sqrt(self.u[j])
        for i in range(n):
            self.z[i] = by_s * self.b[i] + by_column * self.u[i]
            self.u[i] = by_s * self.b[i] - by_column * self.u[i]
        self.C.add(n, 0.5, self.u, self.z)

    # ---- what learning changes (mathematics.md §4) --------------------------------------------

    cdef void _follow_append(self, double s) noexcept nogil:
        """The marginal at x, and Qk and Ck there, as they are with the newest in the last slot."""
        cdef Py_ssize_t i, o, m = self.size
        cdef double left = self.nugget / self.gamma, kept = 1.0 - self.latent / s
        for i in range(m):
            self.zq[i] = self.w[i] * left
            self.zc[i] = self.c[i] * kept
        self.zq[m] = 1.0 - left
        self.zc[m] = self.latent / s
        for o in range(self.outputs):
            self.after[o] = self.means[o] + self.latent * self.surprise[o]
        self.variance = self.latent * kept

    cdef void _append(self, const double* x, const double* y, double noise, long long arrival,
                      double relevance) noexcept nogil:
        cdef int m = <int> self.size
        cdef Py_ssize_t i, d, o
        cdef double s = self.latent + noise, by_s = 1.0 / s, by_gamma = 1.0 / self.gamma
        cdef double observed = noise - self.nugget
        if m > 0:
            self.Q.add(m, 0.5 * by_gamma, self.w, self.w)
            self.C.add(m, 0.5 * by_s, self.c, self.c)
        for i in range(m):
            self.u[i] = -self.w[i] * by_gamma
            self.z[i] = -self.c[i] * by_s
            self.t[i] = 0.0
        self.u[m], self.z[m], self.t[m] = by_gamma, by_s, 1.0 / observed
        self.k[m] = self.program.kappa0 + self.nugget
        self.Q.put(m, m + 1, self.u)
        self.C.put(m, m + 1, self.z)
        self.L.put(m, m + 1, self.t)
        self.K.put(m, m + 1, self.k)
        if self.careful:
            self.t[m] = observed
            self.W.put(m, m + 1, self.t)
        for o in range(self.outputs):
            for i in range(m):
                self.alpha[o * self.capacity + i] -= self.c[i] * self.surprise[o]
            self.alpha[o * self.capacity + m] = self.surprise[o]
            self.eta[o * self.capacity + m] = (y[o] - self.prior[o]) / observed
        for d in range(self.dimension):
            self.points[d * self.capacity + m] = x[d]
        self.arrivals_p[m] = arrival
        self.relevance_p[m] = relevance
        self.size = m + 1

    cdef void _absorb(self, const double* y, double noise, double slack) noexcept nogil:
        """Observe y without a new point, and follow the marginal at x."""
        cdef int m = <int> self.size
        cdef Py_ssize_t i, o
        cdef double spread = noise - self.nugget + fmin(slack, self.gamma)
        cdef double gained, s, r, e
        if self.careful:
            s = self._sharpen(self.w, m, spread)
            gained = fmax(s - spread, 0.0)
        else:
            for i in range(m):
                self.b[i] = self.w[i] - self.c[i]
            gained = fmax(ddot(&m, self.k, &ONE, self.b, &ONE), 0.0)
            s = gained + spread
        self.C.add(m, 0.5 / s, self.b, self.b)
        self.L.add(m, 0.5 / spread, self.w, self.w)
        for o in range(self.outputs):
            r, e = (y[o] - self.means[o]) / s, (y[o] - self.prior[o]) / spread
            for i in range(m):
                self.alpha[o * self.capacity + i] += self.b[i] * r
                self.eta[o * self.capacity + i] += self.w[i] * e
            self.after[o] = self.means[o] + gained * r
        for i in range(m):
            self.zq[i] = self.w[i]
            self.zc[i] = self.c[i] + self.b[i] * (gained / s)
        self.variance = fmax(self.latent - gained * gained / s, 0.0)

    cdef void _remove(self, Py_ssize_t j, double slack) noexcept nogil:
        """Let slot j go with so much slack; the last takes its place."""
        cdef int n = <int> self.size
        cdef Py_ssize_t i, d, o, last = n - 1
        self.Q.column(j, n, self.q)
        if self.careful:
            self.K.product(n, self.q, self.z)  # q is refined: what is made of it enters Λ and η
            for i in range(n):
                self.z[i] = (1.0 if i == j else 0.0) - self.z[i]
            self.Q.product(n, self.z, self.t)
            self.Q.add(n, -0.5 / self.q[j], self.q, self.q)
            for i in range(n):
                self.q[i] += self.t[i]
        else:
            self.C.column(j, n, self.b)
            for i in range(n):
                self.b[i] = self.q[i] - self.b[i]
            self.Q.add(n, -0.5 / self.q[j], self.q, self.q)
        self.L.column(j, n, self.t)
        self._project(j, n, slack)
        if j < last:
            self.K.move_last(j, n, self.z)
            self.Q.move_last(j, n, self.z)
            self.C.move_last(j, n, self.z)
            self.L.move_last(j, n, self.z)
            if self.careful:
                self.W.move_last(j, n, self.z)
            for d in range(self.dimension):
                self.points[d * self.capacity + j] = self.points[d * self.capacity + last]
            for o in range(self.outputs):
                self.alpha[o * self.capacity + j] = self.alpha[o * self.capacity + last]
                self.eta[o * self.capacity + j] = self.eta[o * self.capacity + last]
            self.arrivals_p[j] = self.arrivals_p[last]
            self.relevance_p[j] = self.relevance_p[last]
            self.zq[j], self.zc[j] = self.zq[last], self.zc[last]
        self.size = n - 1
        if self.careful:  # where B_jj cancels, and α with it
            self._polish()

    cdef void _project(self, Py_ssize_t j, int n, double slack) noexcept nogil:
        """C, Λ, α and η without slot j; its columns are q of Q, b of B and t of Λ."""
        cdef Py_ssize_t i, o
        cdef double q_j = self.q[j], t_j = self.t[j], b_j, sharper = 0.0, y, s, phi, theta, root
        cdef double by_b, by_q, mixed, q_share, b_share, a_j, e_j, z_q, z_b, z_less, less
        slack = fmin(slack, 1.0 / q_j)
        y = 1.0 / (1.0 + slack * t_j)
        s = slack * y
        if self.careful:
            sharper = self._sharpen(self.q, n, slack * q_j * q_j)
            b_j = fmax(sharper - slack * q_j * q_j, q_j * q_j / (q_j + t_j))
        else:
            b_j = fmax(self.b[j], q_j * q_j / (q_j + t_j))
        phi = q_j * q_j * s / (1.0 - s * fmax(q_j + t_j - q_j * q_j / b_j, 0.0))
        theta = phi / b_j
        b_share, q_share = (1.0 - theta) / b_j, theta / q_j
        mixed = theta * q_j / (q_j + phi)
        by_b, by_q = sqrt((1.0 - mixed) / b_j), sqrt(q_j + phi) / q_j
        z_q, z_b = self.zq[j], self.zq[j] - self.zc[j]
        z_less = z_q - mixed * z_b
        for o in range(self.outputs):
            a_j, e_j = self.alpha[o * self.capacity + j], self.eta[o * self.capacity + j]
            for i in range(n):
                self.alpha[o * self.capacity + i] -= (b_share * self.b[i] + q_share * self.q[i]) * a_j
                self.eta[o * self.capacity + i] -= (y / q_j * self.q[i] + s * self.t[i]) * e_j
            self.after[o] -= (b_share * z_b + q_share * z_q) * a_j
        self.variance = fmax(self.variance + by_q * by_q * z_less * z_less
                             - by_b * by_b * z_b * z_b, 0.0)
        for i in range(n):
            less = by_q * (self.q[i] - mixed * self.b[i])
            self.zc[i] += by_b * by_b * z_b * self.b[i] - by_q * z_less * less
            self.zq[i] -= self.q[i] * (z_q / q_j)
            # the difference of two squares as the product of their difference and their sum
            self.u[i] = by_b * self.b[i] - less
            self.z[i] = by_b * self.b[i] + less
        if self.careful:
            self._eliminate(j, n, sharper)
        else:
            self.C.add(n, 0.5, self.u, self.z)
        root = sqrt(y)
        for i in range(n):
            self.u[i] = -self.q[i] / q_j - s / (root * (1.0 + root)) * self.t[i]
            self.z[i] = -0.5 * t_j * y * self.q[i] / q_j + 0.5 * root * (1.0 + root) * self.t[i]
        self.L.add(n, 1.0, self.u, self.z)

    cdef _allocate(self, Py_ssize_t capacity):
        """Start afresh, empty, with room for so many points (a whole number of cache lines)."""
        capacity = (capacity + 7) // 8 * 8
        self._inputs = aligned((self.dimension, capacity))
        self._arrivals = np.zeros(capacity, dtype=np.int64)
        self._relevance = aligned((capacity,))
        self._alpha, self._eta = aligned((self.outputs, capacity)), aligned((self.outputs, capacity))
        self.K, self.Q = Symmetric(capacity), Symmetric(capacity)
        self.C, self.L = Symmetric(capacity), Symmetric(capacity)
        self.W = Symmetric(capacity if self.roomy else 8)
        cdef Py_ssize_t by_output = (3 * self.outputs + capacity - 1) // capacity
        self._scratch = aligned((VECTORS + by_output + self.program.depth, capacity))
        cdef long long[::1] arrivals_v = self._arrivals
        self.arrivals_p = &arrivals_v[0]
        self.relevance_p = pointer(self._relevance)
        self.points, self.alpha, self.eta = (pointer(self._inputs), pointer(self._alpha),
                                             pointer(self._eta))
        cdef double* start = pointer(self._scratch)
        self.k, self.w, self.c, self.b = (start, start + capacity, start + 2 * capacity,
                                          start + 3 * capacity)
        self.q, self.t, self.u, self.z = (start + 4 * capacity, start + 5 * capacity,
                                          start + 6 * capacity, start + 7 * capacity)
        self.zq, self.zc = start + 8 * capacity, start + 9 * capacity
        self.means = start + VECTORS * capacity
        self.surprise, self.after = self.means + self.outputs, self.means + 2 * self.outputs
        self.stack = start + (VECTORS + by_output) * capacity
        self.capacity = capacity
        self.size = 0
