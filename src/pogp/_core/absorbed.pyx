# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The absorbed posterior and its learning loop, compiled: the twin of `absorbed_reference.py`.

K, Q, C and Λ are kept by their lower triangles (`slots.pxd`). A sample that leaves no point behind
touches C and Λ by one rank-one update each and Q not at all.
"""

import numpy as np

from libc.math cimport HUGE_VAL, fmax, fmin, log1p, sqrt
from libc.string cimport memcpy
from scipy.linalg.cython_blas cimport ddot, dsymm, dsymv, dsyr, dsyr2

from pogp._core.gaussians cimport distance_of_cost, hellinger_cost
from pogp._core.program cimport Program
from pogp._core.slots cimport aligned, full, get_column, move_last, pack, pointer, put_column, unpack

from pogp._core.absorbed_reference import NUGGET as NUGGET_RATIO, check_state
from pogp._core.slots_reference import TIE, TIE_FLOOR

cdef enum Rule:
    KEEP        # nothing goes
    CSATO       # α²/B, Csató & Opper
    ERROR       # (α/Q)², the KRLS tracker
    HELLINGER   # the whole posterior, exactly

cdef dict RULES = {"keep": KEEP, "csato": CSATO, "error": ERROR, "hellinger": HELLINGER}
cdef int ONE = 1
cdef char LOWER = b"L", LEFT = b"L"
cdef double UNIT = 1.0, ZERO = 0.0, MINUS = -1.0
cdef double NUGGET = NUGGET_RATIO, TIED = 1.0 + TIE, FLOOR = TIE_FLOOR
cdef Py_ssize_t VECTORS = 14
cdef Py_ssize_t RECORD = 7  # len(pogp.trace.FIELDS)


cdef class Absorbed:
    """Q, Λ, η, C and α of the retained points, with the loop that learns without the GIL."""

    cdef readonly Py_ssize_t size, capacity, dimension
    cdef readonly double noise, mean, nugget
    cdef Program program
    cdef object _inputs, _arrivals, _alpha, _eta, _K, _Q, _C, _L, _scratch
    cdef double* points            # (p, capacity)
    cdef long long* arrivals_p     # (capacity,)
    cdef double* alpha
    cdef double* eta
    cdef double* K                 # (capacity, capacity), lower triangles
    cdef double* Q
    cdef double* C
    cdef double* L                 # Λ
    # the sample at hand
    cdef double* k                 # κ(Z, x)
    cdef double* w                 # Qk
    cdef double* c                 # Ck
    cdef double* b                 # Bk = w − c
    cdef double gamma, latent
    # by slot, with the newest in the last one until it is placed
    cdef double* dq                # diagonal of Q
    cdef double* dc                # diagonal of C
    cdef double* dl                # diagonal of Λ
    cdef double* a                 # α
    cdef double* costs
    # work: columns of what goes
    cdef double* q
    cdef double* t
    cdef double* u
    cdef double* z
    cdef double* kept              # κ(Z, x) for the slots as they are after the step
    cdef double* stack
    cdef int ld                    # the capacity, as BLAS wants it

    def __init__(self, program, double noise, double mean, Py_ssize_t dimension):
        self.program = Program(program, dimension)
        self.noise = noise
        self.mean = mean
        self.dimension = dimension
        self.nugget = fmin(NUGGET * self.program.kappa0, noise / 2)
        self._allocate(16)

    # ---- what can be seen -------------------------------------------------------------------

    @property
    def inputs(self):
        return np.ascontiguousarray(self._inputs[:, :self.size].T)

    @property
    def arrivals(self):
        return self._arrivals[:self.size].copy()

    @property
    def weights(self):
        return self._alpha[:self.size].copy()

    @property
    def evidence(self):
        return self._eta[:self.size].copy()

    @property
    def gram(self):
        return full(self._K, self.size)

    @property
    def inverse(self):
        return full(self._Q, self.size)

    @property
    def precision(self):
        return full(self._C, self.size)

    @property
    def information(self):
        return full(self._L, self.size)

    @property
    def nbytes(self):
        arrays = (self._inputs, self._arrivals, self._alpha, self._eta, self._K, self._Q, self._C,
                  self._L, self._scratch)
        return sum(array.nbytes for array in arrays)

    def predict(self, const double[:, ::1] X):
        """See `absorbed_reference.Absorbed.predict`; many threads may call it while none learns."""
        cross = self.program.cross(self._inputs, self.size, X)
        solved = np.empty_like(cross)
        cdef int m = <int> self.size, n = <int> X.shape[0]
        cdef double* cross_p = pointer(cross)
        cdef double* solved_p = pointer(solved)
        if m > 0 and n > 0:
            with nogil:
                dsymm(&LEFT, &LOWER, &m, &n, &UNIT, self.C, &self.ld, cross_p, &m, &ZERO, solved_p, &m)
        explained = np.sum(cross * solved, axis=1)
        return (self.mean + cross @ self._alpha[:m],
                np.maximum(self.program.kappa0 - explained, 0.0))

    def state(self):
        """See `absorbed_reference.Absorbed.state`; the arrays are copies."""
        return {
            "inputs": self.inputs, "arrivals": self.arrivals, "weights": self.weights,
            "evidence": self.evidence, "gram": pack(self._K, self.size),
            "inverse": pack(self._Q, self.size), "precision": pack(self._C, self.size),
            "information": pack(self._L, self.size), "nugget": self.nugget,
        }

    def _adopt(self, state, Py_ssize_t capacity):
        cdef Py_ssize_t size = len(state["arrivals"])
        self._allocate(max(size + 1, capacity))
        self.size = size
        self._inputs[:, :size] = state["inputs"].T
        self._arrivals[:size] = state["arrivals"]
        self._alpha[:size] = state["weights"]
        self._eta[:size] = state["evidence"]
        for name, matrix in (("gram", self._K), ("inverse", self._Q), ("precision", self._C),
                             ("information", self._L)):
            unpack(state[name], matrix, size)
        self.nugget = state["nugget"]

    def restore(self, state):
        """Take over a state that `state` returned."""
        self._adopt(check_state(state, self.dimension), 0)

    def reserve(self, Py_ssize_t points):
        """Make room for so many points, by doubling; nothing but memory changes."""
        if points > self.capacity:
            self._adopt(self.state(), max(points, 2 * self.capacity))

    # ---- one sample -------------------------------------------------------------------------

    def learn(self, str rule, const double[:, ::1] X, const double[::1] y, long long first,
              const double[::1] limits, Py_ssize_t max_size, Py_ssize_t max_removals,
              double tolerance, bint project):
        """Learn the samples in order and return their records; see `absorption.learn`."""
        cdef Py_ssize_t i, n = y.shape[0]
        cdef int code = RULES[rule]
        records = np.empty((n, RECORD))
        cdef double[:, ::1] out = records
        self.reserve(min(self.size + n, 1 + max(self.size, min(max_size, self.size + n))))
        with nogil:
            for i in range(n):
                self._step(&X[i, 0], y[i], first + i, limits[i], max_size, max_removals, code,
                           tolerance, project, &out[i, 0])
        return records

    cdef void _step(self, const double* x, double y, long long arrival, double limit,
                    Py_ssize_t max_size, Py_ssize_t max_removals, int rule, double tolerance,
                    bint project, double* record) noexcept nogil:
        cdef Py_ssize_t n = self.size + 1, gone = 0, j
        cdef double mean = self._glance(x), s = self.latent + self.noise
        cdef double moved = self.latent * (y - mean) / s, shrunk = self.latent * self.latent / s
        cdef double cost, spent = 0.0, after = mean + moved, variance = s - shrunk
        cdef bint placed = False, forced
        if n > 1 and self.gamma - self.nugget <= tolerance * self.program.kappa0:
            self._absorb(y, mean, False, &after, &variance)
            placed, gone, n = True, 1, n - 1
        while n > 1 and rule != KEEP:
            forced = n > max_size
            if not forced and gone >= max_removals:
                break
            if placed:
                self._diagonals()
            else:
                self._augmented_diagonals(y, mean, s)
                self.arrivals_p[n - 1] = arrival
            j = self._cheapest(rule, project, n, &cost)
            if not forced and not spent + distance_of_cost(cost) <= limit:
                break
            spent += distance_of_cost(cost)
            if placed:
                self._remove(j, project)
            elif j == n - 1:
                self._absorb(y, mean, project, &after, &variance)
            else:
                self._append(x, y, mean, s, arrival)
                self._remove(j, project)
            if placed or j != n - 1:
                self._marginal(&after, &variance)
            placed = True
            n -= 1
            gone += 1
        if not placed:
            self._append(x, y, mean, s, arrival)
        record[0] = mean
        record[1] = s
        record[2] = <double> self.size
        record[3] = <double> gone
        record[4] = (spent if rule == HELLINGER else distance_of_cost(
            hellinger_cost(after - mean - moved, s - shrunk, variance - s + shrunk)))
        record[5] = distance_of_cost(hellinger_cost(moved, s, -shrunk))
        record[6] = distance_of_cost(hellinger_cost(after - mean, s, variance - s))

    cdef double _glance(self, const double* x) noexcept nogil:
        """Fill k, w, c, b, γ and the latent variance for x; return the mean."""
        cdef int m = <int> self.size
        cdef Py_ssize_t i
        cdef double kappa0 = self.program.kappa0
        self.gamma = kappa0 + self.nugget
        self.latent = kappa0
        if m == 0:
            return self.mean
        self.program.column(self.points, self.capacity, m, x, self.k, self.stack)
        memcpy(self.kept, self.k, m * sizeof(double))
        self.kept[m] = kappa0
        dsymv(&LOWER, &m, &UNIT, self.Q, &self.ld, self.k, &ONE, &ZERO, self.w, &ONE)
        dsymv(&LOWER, &m, &UNIT, self.C, &self.ld, self.k, &ONE, &ZERO, self.c, &ONE)
        for i in range(m):
            self.b[i] = self.w[i] - self.c[i]
        self.gamma = fmax(kappa0 - ddot(&m, self.k, &ONE, self.w, &ONE), 0.0) + self.nugget
        self.latent = fmax(kappa0 - ddot(&m, self.k, &ONE, self.c, &ONE), 0.0)
        return self.mean + ddot(&m, self.k, &ONE, self.alpha, &ONE)

    cdef void _refine(self) noexcept nogil:
        """Refine w and γ by the residual: an error in them would be multiplied by 1/γ."""
        cdef int m = <int> self.size
        cdef double explained
        if m == 0:
            return
        self._residual()
        dsymv(&LOWER, &m, &UNIT, self.Q, &self.ld, self.u, &ONE, &UNIT, self.w, &ONE)
        self._residual()
        explained = ddot(&m, self.k, &ONE, self.w, &ONE) + ddot(&m, self.w, &ONE, self.u, &ONE)
        self.gamma = fmax(self.program.kappa0 - explained, 0.0) + self.nugget

    cdef void _residual(self) noexcept nogil:
        """Fill u = k − Kw."""
        cdef int m = <int> self.size
        memcpy(self.u, self.k, m * sizeof(double))
        dsymv(&LOWER, &m, &MINUS, self.K, &self.ld, self.w, &ONE, &UNIT, self.u, &ONE)

    cdef void _marginal(self, double* mean, double* variance) noexcept nogil:
        """The marginal of y at the newest input as things stand; `kept` is κ(Z, x)."""
        cdef int m = <int> self.size
        dsymv(&LOWER, &m, &UNIT, self.C, &self.ld, self.kept, &ONE, &ZERO, self.u, &ONE)
        mean[0] = self.mean + ddot(&m, self.kept, &ONE, self.alpha, &ONE)
        variance[0] = self.noise + fmax(
            self.program.kappa0 - ddot(&m, self.kept, &ONE, self.u, &ONE), 0.0)

    cdef void _diagonals(self) noexcept nogil:
        cdef Py_ssize_t i, step = self.capacity + 1
        for i in range(self.size):
            self.dq[i] = self.Q[i * step]
            self.dc[i] = self.C[i * step]
            self.dl[i] = self.L[i * step]
            self.a[i] = self.alpha[i]

    cdef void _augmented_diagonals(self, double y, double mean, double s) noexcept nogil:
        """The same with the newest appended, which has not been done yet."""
        cdef Py_ssize_t i, m = self.size
        cdef double r = (y - mean) / s
        self._diagonals()
        for i in range(m):
            self.dq[i] += self.w[i] * self.w[i] / self.gamma
            self.dc[i] += self.c[i] * self.c[i] / s
            self.a[i] -= self.c[i] * r
        self.dq[m] = 1.0 / self.gamma
        self.dc[m] = 1.0 / s
        self.dl[m] = 1.0 / (self.noise - self.nugget)
        self.a[m] = r

    # ---- what each removal would cost -------------------------------------------------------

    cdef Py_ssize_t _cheapest(self, int rule, bint project, Py_ssize_t n,
                              double* cost) noexcept nogil:
        """Return the slot that costs least (the oldest of equally cheap ones), and its cost."""
        cdef Py_ssize_t i, best = -1
        cdef double lowest = HUGE_VAL, spread
        for i in range(n):
            spread = self.dq[i] - self.dc[i]
            if rule == CSATO:
                self.costs[i] = self.a[i] * self.a[i] / spread
            elif rule == ERROR:
                self.costs[i] = (self.a[i] / self.dq[i]) * (self.a[i] / self.dq[i])
            else:
                self.costs[i] = removal_cost(project, self.dq[i], spread, self.dl[i], self.a[i])
            if self.costs[i] < lowest:
                lowest = self.costs[i]
        lowest = lowest * TIED + FLOOR
        for i in range(n):
            if self.costs[i] <= lowest and (best < 0 or self.arrivals_p[i] < self.arrivals_p[best]):
                best = i
        best = max(best, 0)  # where no cost is a number
        cost[0] = self.costs[best]
        return best

    # ---- what learning changes (mathematics.md §4) --------------------------------------------

    cdef void _append(self, const double* x, double y, double mean, double s,
                      long long arrival) noexcept nogil:
        cdef int m = <int> self.size
        cdef Py_ssize_t i, d
        cdef double by_gamma, by_s = 1.0 / s, r = (y - mean) / s
        cdef double observed = self.noise - self.nugget
        self._refine()
        by_gamma = 1.0 / self.gamma
        if m > 0:
            dsyr(&LOWER, &m, &by_gamma, self.w, &ONE, self.Q, &self.ld)
            dsyr(&LOWER, &m, &by_s, self.c, &ONE, self.C, &self.ld)
        for i in range(m):
            self.u[i] = -self.w[i] * by_gamma
            self.z[i] = -self.c[i] * by_s
            self.q[i] = 0.0
            self.alpha[i] -= self.c[i] * r
        self.u[m], self.z[m], self.q[m] = by_gamma, by_s, 1.0 / observed
        self.k[m] = self.program.kappa0 + self.nugget
        put_column(self.Q, self.capacity, m, m + 1, self.u)
        put_column(self.C, self.capacity, m, m + 1, self.z)
        put_column(self.L, self.capacity, m, m + 1, self.q)
        put_column(self.K, self.capacity, m, m + 1, self.k)
        self.alpha[m] = r
        self.eta[m] = (y - self.mean) / observed
        for d in range(self.dimension):
            self.points[d * self.capacity + m] = x[d]
        self.arrivals_p[m] = arrival
        self.kept[m] = self.program.kappa0
        self.size = m + 1

    cdef void _absorb(self, double y, double mean, bint project, double* after,
                      double* variance) noexcept nogil:
        """Observe y without a new point; return the marginal of y at x afterwards."""
        cdef int m = <int> self.size
        cdef Py_ssize_t i
        cdef double spread = self.noise - self.nugget + (0.0 if project else self.gamma)
        cdef double gained = ddot(&m, self.k, &ONE, self.b, &ONE), s = gained + spread
        cdef double by_s = 1.0 / s, by_spread = 1.0 / spread, r = (y - mean) / s
        dsyr(&LOWER, &m, &by_s, self.b, &ONE, self.C, &self.ld)
        dsyr(&LOWER, &m, &by_spread, self.w, &ONE, self.L, &self.ld)
        for i in range(m):
            self.alpha[i] += self.b[i] * r
            self.eta[i] += self.w[i] * (y - self.mean) * by_spread
        after[0] = mean + gained * r
        variance[0] = self.noise + fmax(self.latent - gained * gained * by_s, 0.0)

    cdef void _remove(self, Py_ssize_t j, bint project) noexcept nogil:
        """Let slot j go, by conditioning (`project`) or by marginalising; the last takes its place."""
        cdef int n = <int> self.size
        cdef Py_ssize_t i, d, last = n - 1
        cdef double down, q_j
        get_column(self.Q, self.capacity, j, n, self.q)
        get_column(self.C, self.capacity, j, n, self.u)
        get_column(self.L, self.capacity, j, n, self.t)
        if project:
            self._condition(j, n)
        else:
            self._marginalise(j, n)
        q_j = self.q[j]
        down = -1.0 / q_j
        dsyr(&LOWER, &n, &down, self.q, &ONE, self.Q, &self.ld)
        if j < last:
            move_last(self.K, self.capacity, j, n, self.z)
            move_last(self.Q, self.capacity, j, n, self.z)
            move_last(self.C, self.capacity, j, n, self.z)
            move_last(self.L, self.capacity, j, n, self.z)
            for d in range(self.dimension):
                self.points[d * self.capacity + j] = self.points[d * self.capacity + last]
            self.arrivals_p[j] = self.arrivals_p[last]
            self.alpha[j] = self.alpha[last]
            self.eta[j] = self.eta[last]
            self.kept[j] = self.kept[last]
        self.size = n - 1

    cdef void _condition(self, Py_ssize_t j, int n) noexcept nogil:
        """C, Λ, α and η without slot j; its columns are q of Q, u of C and t of Λ."""
        cdef Py_ssize_t i
        cdef double b_j = self.q[j] - self.u[j], q_j = self.q[j], half = 0.5, t_j = self.t[j]
        cdef double by_b = 1.0 / sqrt(b_j), by_q = 1.0 / sqrt(q_j)
        cdef double a_j = self.alpha[j] / b_j, e_j = self.eta[j], b, onto
        for i in range(n):
            b = self.q[i] - self.u[i]
            onto = -self.q[i] / q_j
            self.alpha[i] -= b * a_j
            self.eta[i] += onto * e_j
            self.u[i] = by_b * b - by_q * self.q[i]
            self.z[i] = by_b * b + by_q * self.q[i]
            self.t[i] += 0.5 * t_j * onto
            self.dq[i] = onto
        # bbᵀ/b_j − qqᵀ/q_j as the symmetric product of their difference and their sum
        dsyr2(&LOWER, &n, &half, self.u, &ONE, self.z, &ONE, self.C, &self.ld)
        dsyr2(&LOWER, &n, &UNIT, self.dq, &ONE, self.t, &ONE, self.L, &self.ld)

    cdef void _marginalise(self, Py_ssize_t j, int n) noexcept nogil:
        cdef Py_ssize_t i
        cdef double q_j = self.q[j], b_j = self.q[j] - self.u[j], l_j = self.q[j] + self.t[j]
        cdef double by_q = 1.0 / sqrt(q_j), by_l = 1.0 / sqrt(l_j), half = 0.5
        cdef double a_j = self.alpha[j], e_j = self.eta[j] / l_j, total, share
        for i in range(n):
            share = self.q[i] / q_j
            total = self.q[i] + self.t[i]
            self.alpha[i] -= share * a_j
            self.eta[i] -= total * e_j
            self.z[i] = self.q[i] - self.u[i] - 0.5 * b_j * share - 0.5 * self.q[i]
            self.dq[i] = share
            self.u[i] = by_q * self.q[i] - by_l * total
            self.t[i] = by_q * self.q[i] + by_l * total
        dsyr2(&LOWER, &n, &UNIT, self.dq, &ONE, self.z, &ONE, self.C, &self.ld)
        dsyr2(&LOWER, &n, &half, self.u, &ONE, self.t, &ONE, self.L, &self.ld)

    cdef _allocate(self, Py_ssize_t capacity):
        """Start afresh, empty, with room for so many points (a whole number of cache lines)."""
        capacity = (capacity + 7) // 8 * 8
        self._inputs = aligned((self.dimension, capacity))
        self._arrivals = np.zeros(capacity, dtype=np.int64)
        self._alpha, self._eta = aligned((capacity,)), aligned((capacity,))
        self._K, self._Q = aligned((capacity, capacity)), aligned((capacity, capacity))
        self._C, self._L = aligned((capacity, capacity)), aligned((capacity, capacity))
        self._scratch = aligned((VECTORS + self.program.depth, capacity))
        cdef long long[::1] arrivals_v = self._arrivals
        self.arrivals_p = &arrivals_v[0]
        self.points, self.alpha, self.eta = (pointer(self._inputs), pointer(self._alpha),
                                             pointer(self._eta))
        self.K, self.Q, self.C, self.L = (pointer(self._K), pointer(self._Q), pointer(self._C),
                                          pointer(self._L))
        cdef double* start = pointer(self._scratch)
        self.k, self.w, self.c, self.b = (start, start + capacity, start + 2 * capacity,
                                          start + 3 * capacity)
        self.dq, self.dc, self.dl, self.a = (start + 4 * capacity, start + 5 * capacity,
                                             start + 6 * capacity, start + 7 * capacity)
        self.costs, self.q, self.t, self.u = (start + 8 * capacity, start + 9 * capacity,
                                              start + 10 * capacity, start + 11 * capacity)
        self.z, self.kept = start + 12 * capacity, start + 13 * capacity
        self.stack = start + VECTORS * capacity
        self.capacity = capacity
        self.ld = <int> capacity
        self.size = 0


cdef inline double removal_cost(bint project, double q, double spread, double known,
                                double alpha) noexcept nogil:
    """−log BC of the whole posterior before and after a removal (mathematics.md §4)."""
    cdef double p = 1.0 / q, v = spread / (q * q), c = 1.0 / (q + known), e = alpha / q
    cdef double root, difference, tau, kappa, scale
    if project:
        root = sqrt(v * p)
        difference = sqrt(v) - sqrt(p)
        kappa = fmax(1.0 / c - 1.0 / v, 0.0)
        scale = v * (1.0 / v + 1.0 / p + 0.5 * kappa)  # 2vA
        return (0.5 * log1p(difference * difference / (2.0 * root) + 0.25 * kappa * root)
                + e * e / (4.0 * v) * (v / p + 0.5 * v * kappa) / scale)
    root = sqrt(c * p)
    difference = sqrt(c) - sqrt(p)
    tau = fmax(v - c, 0.0)
    return (0.5 * log1p(difference * difference / (2.0 * root))
            + 0.5 * log1p(0.5 * tau / (c + p)) + e * e / (4.0 * (c + p) + 2.0 * tau))
