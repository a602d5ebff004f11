# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Learning on the absorbed posterior, compiled: the twin of `absorber_reference.py`.

Until the newest sample is placed, the diagonals with it appended are priced without appending it.
"""

import numpy as np

from libc.math cimport HUGE_VAL, fmax, fmin, log1p, sqrt

from pogp._core.absorbed cimport Absorbed
from pogp._core.gaussians cimport distance_of_cost, hellinger_cost
from pogp._core.slots cimport aligned, pointer

from pogp._core.absorber_reference import CAREFUL_REMOVALS as FEW_REMOVALS
from pogp._core.slots_reference import TIE, TIE_FLOOR

cdef enum Score:
    KEEP        # nothing goes
    CSATO       # α²/B, Csató & Opper
    ERROR       # (α/Q)², the KRLS tracker
    HELLINGER   # the whole posterior, exactly

cdef dict SCORES = {"keep": KEEP, "csato": CSATO, "error": ERROR, "hellinger": HELLINGER}
cdef double TIED = 1.0 + TIE, FLOOR = TIE_FLOOR
cdef Py_ssize_t CAREFUL_REMOVALS = FEW_REMOVALS


cdef class Absorber(Absorbed):
    """An absorbed posterior that learns from a stream, without the GIL."""

    cdef object _prices
    # by slot, with the newest in the last one until it is placed
    cdef double* dq                # diagonal of Q
    cdef double* db                # diagonal of B
    cdef double* dl                # diagonal of Λ
    cdef double* squares           # α², added up over the outputs
    cdef double* costs
    cdef int score
    cdef double slack, tolerance, reduce

    cdef _allocate(self, Py_ssize_t capacity):
        Absorbed._allocate(self, capacity)
        self._prices = aligned((5, self.capacity))
        cdef double* start = pointer(self._prices)
        self.dq, self.db, self.dl = start, start + self.capacity, start + 2 * self.capacity
        self.squares, self.costs = start + 3 * self.capacity, start + 4 * self.capacity

    def learn(self, rule, const double[:, ::1] X, const double[:, ::1] Y, const double[::1] noises,
              const double[::1] relevance, long long first, plan):
        """See `absorber_reference.Absorber.learn`."""
        cdef Py_ssize_t i, n = Y.shape[0]
        cdef Py_ssize_t max_size = plan.max_size, max_removals = plan.max_removals
        cdef const double[::1] limits = plan.limits
        records = np.empty((n, 2 * self.outputs + 5))
        cdef double[:, ::1] out = records
        self._set(rule)
        self.reserve(min(self.size + n, 1 + max(self.size, min(max_size, self.size + n))))
        with nogil:
            for i in range(n):
                self._step(&X[i, 0], &Y[i, 0], noises[i], relevance[i], first + i, limits[i],
                           max_size, max_removals, &out[i, 0])
        return records

    def prune(self, rule, double limit, Py_ssize_t max_size):
        """See `absorber_reference.Absorber.prune`."""
        cdef double spent = 0.0, cost
        cdef Py_ssize_t j
        self._set(rule)
        with nogil:
            while self.size > 1 and self.score != KEEP:
                self._diagonals()
                j = self._cheapest(self.size, &cost)
                if self.size <= max_size and not spent + cost <= limit:
                    break
                spent += cost
                self._remove(j, self.slack)
        return spent

    def _set(self, rule):
        self.score, self.slack = SCORES[rule.score], rule.slack
        self.tolerance, self.reduce = rule.tolerance, rule.reduce

    cdef void _step(self, const double* x, const double* y, double noise, double relevance,
                    long long arrival, double limit, Py_ssize_t max_size, Py_ssize_t max_removals,
                    double* record) noexcept nogil:
        cdef Py_ssize_t n = self.size + 1, gone = 0, j, o, outputs = self.outputs
        cdef double s, cost, spent = 0.0
        cdef bint placed = False, forced
        self._glance(x)
        if arrival > self.size:
            self.open += self.gamma - self.nugget
            self.glances += 1
        s = self.latent + noise
        for o in range(outputs):
            self.surprise[o] = (y[o] - self.means[o]) / s
        self._follow_append(s)
        if n > 1 and self.gamma - self.nugget <= self.tolerance * self.program.kappa0:
            self._absorb(y, noise, self.reduce)
            placed, gone, n = True, 1, n - 1
        while n > 1 and self.score != KEEP:
            forced = n > max_size
            if not forced and (gone >= max_removals or (self.careful and gone >= CAREFUL_REMOVALS)):
                break
            if placed:
                self._diagonals()
            else:
                self._augmented_diagonals(s, noise)
                self.arrivals_p[n - 1], self.relevance_p[n - 1] = arrival, relevance
            j = self._cheapest(n, &cost)
            if not forced and not spent + cost <= limit:
                break
            spent += cost
            if not placed and j == n - 1:
                self._absorb(y, noise, self.slack)
            else:
                if not placed:
                    self._append(x, y, noise, arrival, relevance)
                self._remove(j, self.slack)
            placed = True
            n -= 1
            gone += 1
        if not placed:
            self._append(x, y, noise, arrival, relevance)
        self._write(noise, s, gone, spent, record)

    cdef void _write(self, double noise, double s, Py_ssize_t gone, double spent,
                     double* record) noexcept nogil:
        """The record of a step (see `trace`)."""
        cdef Py_ssize_t o, outputs = self.outputs
        cdef double moved, shrunk = self.latent * self.latent / s, gain = self.variance + noise - s
        cdef double appended = noise * (s + self.latent) / s  # s − shrunk, which would cancel
        cdef double compressed = 0.0, novelty = 0.0, change = 0.0
        for o in range(outputs):
            moved = self.latent * self.surprise[o]
            compressed += hellinger_cost(self.after[o] - self.means[o] - moved, appended,
                                         self.variance + noise - appended)
            novelty += hellinger_cost(moved, appended, shrunk)
            change += hellinger_cost(self.after[o] - self.means[o], s, gain)
            record[o] = self.means[o]
            record[outputs + o] = s
        record += 2 * outputs
        record[0] = <double> self.size
        record[1] = <double> gone
        record[2] = spent if self.score == HELLINGER else distance_of_cost(compressed)
        record[3] = distance_of_cost(novelty)
        record[4] = distance_of_cost(change)

    # ---- what each removal would cost -------------------------------------------------------

    cdef void _diagonals(self) noexcept nogil:
        cdef Py_ssize_t i, o
        for i in range(self.size):
            self.dq[i] = self.Q.diagonal[i]
            self.db[i] = self.Q.diagonal[i] - self.C.diagonal[i]
            self.dl[i] = self.L.diagonal[i]
            self.squares[i] = self.alpha[i] * self.alpha[i]
        for o in range(1, self.outputs):
            for i in range(self.size):
                self.squares[i] += (self.alpha[o * self.capacity + i]
                                    * self.alpha[o * self.capacity + i])

    cdef void _augmented_diagonals(self, double s, double noise) noexcept nogil:
        """The same with the newest appended, which has not been done yet."""
        cdef Py_ssize_t i, o, m = self.size
        cdef double by_gamma = 1.0 / self.gamma, by_s = 1.0 / s, a
        for i in range(m):
            self.dq[i] = self.Q.diagonal[i] + self.w[i] * self.w[i] * by_gamma
            self.db[i] = self.dq[i] - (self.C.diagonal[i] + self.c[i] * self.c[i] * by_s)
            self.dl[i] = self.L.diagonal[i]
            self.squares[i] = 0.0
        self.squares[m] = 0.0
        for o in range(self.outputs):
            for i in range(m):
                a = self.alpha[o * self.capacity + i] - self.c[i] * self.surprise[o]
                self.squares[i] += a * a
            self.squares[m] += self.surprise[o] * self.surprise[o]
        self.dq[m] = by_gamma
        self.db[m] = by_gamma - by_s
        self.dl[m] = 1.0 / (noise - self.nugget)

    cdef Py_ssize_t _cheapest(self, Py_ssize_t n, double* cost) noexcept nogil:
        """Return the slot that costs least (the oldest of equally cheap ones), and its cost."""
        cdef Py_ssize_t i, best = -1
        cdef double lowest = HUGE_VAL, within = HUGE_VAL, q, spread
        for i in range(n):
            q = self.dq[i]
            spread = fmax(self.db[i], q * q / (q + self.dl[i]))
            if self.score == CSATO:
                self.costs[i] = self.squares[i] / spread * self.relevance_p[i]
            elif self.score == ERROR:
                self.costs[i] = self.squares[i] / (q * q) * self.relevance_p[i]
            else:
                self.costs[i] = removal_cost(self.slack, q, spread, self.dl[i], self.squares[i],
                                             <double> self.outputs, self.relevance_p[i], within)
            if self.costs[i] < lowest:
                lowest = self.costs[i]
                within = lowest * TIED + FLOOR
        for i in range(n):
            if self.costs[i] <= within and (best < 0 or self.arrivals_p[i] < self.arrivals_p[best]):
                best = i
        best = max(best, 0)  # where no cost is a number
        cost[0] = self.costs[best]
        if self.score == HELLINGER:
            cost[0] = distance_of_cost(cost[0])
        return best


cdef inline double removal_cost(double slack, double q, double spread, double known, double squares,
                                double outputs, double relevance, double within) noexcept nogil:
    """−log BC of the whole posterior before and after a removal (mathematics.md §4), weighted.

    Infinite where a lower bound (log1p(x) ≥ 2x/(2 + x)) is already more than `within`.
    """
    cdef double p = 1.0 / q, v = spread * p * p, c = 1.0 / (q + known), e = squares * p * p
    cdef double tau = fmax(v - c, 0.0), y, s, rest, by_d, rho, total, means, rp, rv, rc, shape
    slack = fmin(slack, p)
    y = 1.0 / (1.0 + slack * known)
    s = slack * y
    rest = (1.0 - slack * q) * y  # 1 − s/c
    by_d = 1.0 / (c + tau * rest)
    rho = c * by_d
    total = p + c + rho * (v + p)
    means = e / (4.0 * total) * (2.0 * rho + tau * rest * by_d * (p * rest - s) * by_d)
    if relevance * means > within:
        return HUGE_VAL
    rp, rv, rc = sqrt(rho * p), sqrt(rho * v), sqrt(c)
    shape = ((rc - rp) * (rc - rp) + (sqrt(p) - rv) * (sqrt(p) - rv)
             + 2.0 * rp * tau / (sqrt(v) + rc)) / (4.0 * rc * rp)
    if relevance * (outputs * shape / (2.0 + shape) + means) > within:
        return HUGE_VAL
    return relevance * (outputs * 0.5 * log1p(shape) + means)
