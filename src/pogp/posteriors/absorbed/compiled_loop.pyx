# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Learning on the absorbed posterior, compiled: the twin of `loop.py`.

The removal of the newest sample is priced before it is appended.
"""

import numpy as np

from libc.float cimport DBL_MIN
from libc.math cimport HUGE_VAL, fabs, fmax, isfinite, log1p, sqrt

from pogp.posteriors.absorbed.compiled_updates cimport AbsorbedUpdates
from pogp.posteriors.linalg.gaussians cimport distance_of_cost, hellinger_cost, tie_width
from pogp.posteriors.linalg.storage cimport aligned, pointer

from pogp import criteria, trace
from pogp.posteriors import slots
from pogp.posteriors.absorbed import loop
from pogp.posteriors.absorbed.loop import not_finite
from pogp.trace import blank

cdef enum Native:
    KEEP        # no removals
    CSATO       # α²/B, Csató & Opper
    ERROR       # (α/Q)², the KRLS tracker
    HELLINGER   # the whole posterior, exactly

cdef dict NATIVE = {"keep": KEEP, "csato": CSATO, "error": ERROR, "hellinger": HELLINGER}
cdef double TIE = slots.TIE, TIE_DISTANCE = slots.TIE_DISTANCE
cdef double SAFE_MAGNITUDE = slots.SAFE_MAGNITUDE
cdef double MIN_RELATIVE_VARIANCE = criteria.MIN_RELATIVE_VARIANCE
cdef Py_ssize_t IN_PLACE_SAMPLES = slots.IN_PLACE_SAMPLES
cdef int MAX_REDUNDANT = loop.MAX_REDUNDANT
cdef int SIZE = trace.SIZE, REMOVED = trace.REMOVED, SPENT = trace.SPENT
cdef int NOVELTY = trace.NOVELTY, CHANGE = trace.CHANGE
cdef Py_ssize_t SMALL = 512        # room for so many points is made at once: no step has to wait


cdef class AbsorbedLoop(AbsorbedUpdates):
    """An absorbed posterior that learns from a stream, without the GIL."""

    cdef object _prices, _noises, _x, _criterion
    cdef object _predicted_means, _predicted_latent  # what `predict_input` returns
    cdef object _record                              # and `learn_target`
    # by slot, with the newest in the last one until it is placed
    cdef double* dq                # diagonal of Q
    cdef double* db                # diagonal of QSQ
    cdef double* dl                # diagonal of Λ
    cdef double* squares           # α², added up over the outputs
    cdef double* shapes            # what the removal of a slot changes of the variance,
    cdef double* moves             # and of the means
    cdef double* costs
    cdef double* noises            # (beliefs,), of the sample at hand
    cdef double* x                 # (p,), what `predict_input` was asked for
    cdef int native
    cdef bint marginalise, reduce
    cdef double share, tolerance

    cdef _allocate(self, Py_ssize_t capacity):
        AbsorbedUpdates._allocate(self, capacity)
        self._prices = aligned((7, self.capacity))
        self._noises, self._x = np.empty(self.beliefs), np.empty(self.dimension)
        cdef double* start = pointer(self._prices)
        self.dq, self.db, self.dl = start, start + self.capacity, start + 2 * self.capacity
        self.squares, self.costs = start + 3 * self.capacity, start + 4 * self.capacity
        self.shapes, self.moves = start + 5 * self.capacity, start + 6 * self.capacity
        self.noises, self.x = pointer(self._noises), pointer(self._x)
        size = self.beliefs * self.outputs
        self._predicted_means = self._numbers[:size].reshape(self.beliefs, self.outputs)
        self._predicted_latent, self._record = np.empty(self.beliefs), blank(1, self.outputs)[0]

    def learn(self, criterion, const double[:, ::1] X, const double[:, ::1] Y, const double[::1] noises,
              const double[::1] relevance, long long first, plan):
        """See `loop.AbsorbedLoop.learn`."""
        cdef Py_ssize_t i, belief, n = Y.shape[0], wrong = -1
        cdef Py_ssize_t max_size = plan.max_size, max_removals = plan.max_removals
        cdef const double[::1] limits = plan.limits
        records = blank(n, self.outputs)
        cdef double[:, ::1] out = records
        self._set_criterion(criterion)
        self.reserve(self._capacity_for(n, max_size))
        self.block_delay = 0
        with nogil:
            for i in range(n):
                for belief in range(self.beliefs):
                    self.noises[belief] = noises[i]
                self._advance_block(&X[i, 0], n - i)
                self._predict_input(&X[i, 0])
                if not self._step(&X[i, 0], &Y[i, 0], self.noise, relevance[i], first + i,
                                  limits[i], max_size, max_removals, &out[i, 0]):
                    wrong = i
                    break
            self._end_block()
        if wrong >= 0:
            raise FloatingPointError(not_finite(first + wrong))
        return records

    def in_place(self, const double[:, ::1] X, const double[:, ::1] Y, const double[::1] noises):
        """Whether samples may change this core itself: a single one, or a few that cannot overflow."""
        cdef Py_ssize_t i, o, n = Y.shape[0]
        cdef bint moderate = n <= IN_PLACE_SAMPLES
        if n == 1:  # which is learned whole or not at all
            return True
        for i in range(n if moderate else 0):
            moderate = moderate and SAFE_MAGNITUDE * noises[i] > 1.0
            moderate = moderate and self.program.prior(&X[i, 0]) < SAFE_MAGNITUDE
            for o in range(self.outputs):
                moderate = moderate and fabs(Y[i, o]) < SAFE_MAGNITUDE
        return moderate

    cdef Py_ssize_t _capacity_for(self, Py_ssize_t samples, Py_ssize_t max_size):
        """Return how many points to make room for; for a small cap all of it at once."""
        cdef Py_ssize_t most = self.size + samples
        if self.native == KEEP:
            return most
        if max_size <= SMALL:
            return 1 + max(self.size, max_size)
        return min(most, 1 + max(self.size, min(max_size, most)))

    def prune(self, criterion, double limit, Py_ssize_t max_size):
        """See `loop.AbsorbedLoop.prune`."""
        cdef double spent = 0.0
        cdef Py_ssize_t n_removed = 0, newest = -1
        self._set_criterion(criterion)
        with nogil:
            self._compress(limit, max_size, self.size, self.noise, &n_removed, &spent, &newest)
        return spent

    def _set_criterion(self, criterion):
        self._criterion = criterion
        self.native, self.marginalise = NATIVE[criterion.native], criterion.marginalise
        self.share, self.tolerance, self.reduce = criterion.share, criterion.tolerance, criterion.reduce

    # ---- a sample in two steps, between which OnlineGP weighs the beliefs ----------------------

    def predict_input(self, const double[::1] x):
        """Return the means (beliefs, outputs) and the latent variances (beliefs,) at an input.

        The arrays are overwritten by the next sample.
        """
        cdef Py_ssize_t d, belief
        cdef double* latent = pointer(self._predicted_latent)
        for d in range(self.dimension):
            self.x[d] = x[d]
        with nogil:
            self._predict_input(self.x)
        for belief in range(self.beliefs):
            latent[belief] = self.gamma + self.explained[belief]
        return self._predicted_means, self._predicted_latent

    def learn_target(self, criterion, const double[::1] y, const double[::1] noises, double noise,
                long long arrival, Py_ssize_t max_size):
        """Learn the target of the input that was predicted last, with a noise for each belief.

        `noise` decides which points are novel or redundant. Return the record of the sample, which
        the next one overwrites.
        """
        cdef Py_ssize_t belief
        cdef bint fine
        if criterion is not self._criterion:
            self._set_criterion(criterion)
        if self.size + 1 > self.capacity:  # which clears the work space: predict again
            x = self._x.copy()
            self.reserve(self._capacity_for(1, max_size))
            self.predict_input(x)
        for belief in range(self.beliefs):
            self.noises[belief] = noises[belief]
        cdef double* out = pointer(self._record)
        with nogil:
            fine = self._step(self.x, &y[0], noise, 1.0, arrival, -HUGE_VAL, max_size, 0, out)
        if not fine:
            raise FloatingPointError(not_finite(arrival))
        return self._record

    # ---- one sample ---------------------------------------------------------------------------

    cdef bint _step(self, const double* x, const double* y, double noise, double relevance,
                    long long arrival, double limit, Py_ssize_t max_size, Py_ssize_t max_removals,
                    double* record) noexcept nogil:
        """Learn the sample that was predicted last; False, without a change, if it is not finite."""
        cdef Py_ssize_t n_removed = 0, newest = -1, m = self.size
        cdef double spent = 0.0, closed
        cdef bint absorbed = True, uses_recent, teaches
        if not self._fill_surprises(y, self.noises, True) or not isfinite(self.gamma):
            return False
        teaches = self.uses_recent and self.lead == 0 and not self.marginalise
        self._record_prediction(record)
        self._fill_b()
        closed = fmax(self.share * noise, fmax(self.tolerance, MIN_RELATIVE_VARIANCE) * self.kappa0)
        self.arrivals_p[m], self.relevance_p[m] = arrival, relevance
        if m > 0 and self.gamma <= closed:
            self._absorb(y, self.noises, self.reduce)
        else:
            absorbed = self._newest_is_cheapest(noise, limit, max_size, max_removals, &spent)
            if absorbed:
                self._absorb(y, self.noises, self.marginalise)
            else:
                newest = m
                uses_recent = teaches and self._collect_recent(x)
                self._append(x, self.noises, arrival, relevance, uses_recent)
                if uses_recent:
                    self._learn_recent(self.noises[0])
            if teaches:
                self._store_recent(x, y, self.noises[0], arrival, m, not absorbed)
        n_removed = absorbed
        self._compress(limit, max_size, max_removals, noise, &n_removed, &spent, &newest)
        self._record_changes(x, y, newest, n_removed, absorbed and n_removed == 1, spent, record)
        self._bound_spread()
        self._forget()
        return True

    cdef bint _newest_is_cheapest(self, double noise, double limit, Py_ssize_t max_size,
                           Py_ssize_t max_removals, double* spent) noexcept nogil:
        """Whether the sample would be the first point to be removed; it is absorbed then."""
        cdef Py_ssize_t n = self.size + 1, i
        cdef double cost
        cdef bint forced = n > max_size
        self.likely_slot = -1
        if n == 1 or self.native == KEEP or (not forced and (max_removals == 0 or limit < 0.0)):
            return False
        self._augmented_diagonals()
        if self._any_redundant(self.dq, n - 1, noise):
            return False
        i = self._cheapest(n, -1.0, &cost)
        if not forced and not cost <= limit:
            return False
        if i < n - 1:
            self.likely_slot = i
            return False
        spent[0] += cost
        return True

    cdef bint _redundant(self, Py_ssize_t i, double q, double noise) noexcept nogil:
        """Whether point i is redundant: the others leave 1/q open there, which is too little."""
        return q * fmax(self.share * noise, MIN_RELATIVE_VARIANCE * self.K.diagonal[i]) >= 1.0

    cdef bint _any_redundant(self, const double* dq, Py_ssize_t n, double noise) noexcept nogil:
        cdef Py_ssize_t i
        cdef int found = 0
        cdef double least = self.share * noise, floor = MIN_RELATIVE_VARIANCE, open
        cdef const double* diagonal = self.K.diagonal
        for i in range(n):
            open = floor * diagonal[i]
            found |= dq[i] * (open if open > least else least) >= 1.0
        return found != 0

    cdef void _compress(self, double limit, Py_ssize_t max_size, Py_ssize_t max_removals,
                        double noise, Py_ssize_t* n_removed, double* spent,
                        Py_ssize_t* newest) noexcept nogil:
        """Remove redundant points, then the cheapest ones."""
        cdef Py_ssize_t j
        cdef int redundant = 0
        cdef double cost
        cdef bint close, forced
        if self.native == KEEP:
            return
        while self.size > 1:
            self._end_full_block()
            close = redundant < MAX_REDUNDANT and self._any_redundant(self.Q.diagonal, self.size, noise)
            forced = close or self.size > max_size
            if not forced and (n_removed[0] >= max_removals or limit < 0.0):
                return
            redundant += close
            self._diagonals()
            j = self._cheapest(self.size, noise if close else -1.0, &cost)
            if not forced and not spent[0] + cost <= limit:
                return
            spent[0] += cost
            n_removed[0] += 1
            if newest[0] == self.size - 1:
                newest[0] = j if j < self.size - 1 else -1
            elif newest[0] == j:
                newest[0] = -1
            self._remove(j, self.marginalise)

    # ---- the record (see `trace`) -------------------------------------------------------------

    cdef void _record_prediction(self, double* record) noexcept nogil:
        """Write the prediction of the leading belief, and how far the sample alone moves it."""
        cdef Py_ssize_t o, outputs = self.outputs, at
        cdef double s = self.variances[self.lead], noise = self.noises[self.lead]
        cdef double latent = self.gamma + self.explained[self.lead], moved, novelty = 0.0
        cdef double appended = noise * (s + latent) / s  # s − latent²/s, which would cancel
        for o in range(outputs):
            at = self.lead * outputs + o
            moved = latent * self.surprise[at]
            novelty += hellinger_cost(moved, appended, latent * latent / s)
            record[o], record[outputs + o] = self.means[at], s
        record += 2 * outputs
        record[NOVELTY] = distance_of_cost(novelty)
        record[CHANGE] = latent  # until `_record_changes` has used it

    cdef void _record_changes(self, const double* x, const double* y, Py_ssize_t newest,
                              Py_ssize_t n_removed, bint alone, double spent,
                              double* record) noexcept nogil:
        """Write the changes of the step.

        The newest is in the slot `newest`, or was absorbed, and if `alone` nothing else went.
        """
        cdef Py_ssize_t o, at, outputs = self.outputs, lead = self.lead
        cdef double* rest = record + 2 * outputs
        cdef double noise = self.noises[lead], s = record[outputs], latent = rest[CHANGE]
        cdef double appended = noise * (s + latent) / s, after, variance, moved, known
        cdef double compressed = 0.0, change = 0.0
        known = self.explained[lead]
        if newest >= 0:
            variance = (self.kept[lead] * self.S[lead].diagonal[newest]
                        + self.shift[lead] * self.K.diagonal[newest])
        elif alone:
            variance = self.gamma + known * (1.0 - known / self.variances[lead])
        else:
            self._predict_input(x)
            variance = self.gamma + self.explained[lead]
        variance = fmax(variance, 0.0) + noise
        for o in range(outputs):
            at = lead * outputs + o
            if newest >= 0:
                after = self.prior[o] + self.values[at * self.capacity + newest] - record[o]
            elif alone:
                after = known * self.surprise[at]
            else:
                after = self.means[at] - record[o]
            moved = latent * (y[o] - record[o]) / s
            compressed += hellinger_cost(after - moved, appended, variance - appended)
            change += hellinger_cost(after, s, variance - s)
        rest[SIZE] = <double> self.size
        rest[REMOVED] = <double> n_removed
        rest[SPENT] = spent if self.native == HELLINGER else distance_of_cost(compressed)
        rest[CHANGE] = distance_of_cost(change)

    # ---- what each removal would cost -------------------------------------------------------

    cdef void _diagonals(self) noexcept nogil:
        cdef Py_ssize_t i, o, stride = self.capacity
        cdef double* alpha = self.alpha
        for i in range(self.size):
            self.dq[i] = self.Q.diagonal[i]
            self.db[i] = self.spread_p[i]
            self.dl[i] = self.L.diagonal[i] if self.has_information else 0.0
            self.squares[i] = alpha[i] * alpha[i]
        for o in range(1, self.outputs):
            for i in range(self.size):
                self.squares[i] += alpha[o * stride + i] * alpha[o * stride + i]

    cdef void _augmented_diagonals(self) noexcept nogil:
        """The same as if the sample was appended."""
        cdef Py_ssize_t i, o, m = self.size, stride = self.capacity
        cdef double by_gamma = 1.0 / self.gamma, s = self.variances[self.lead], a, surprise
        cdef double* alpha = self.alpha
        cdef double* b = self.b
        for i in range(m):
            a = b[i] - self.w[i]
            self.dq[i] = self.Q.diagonal[i] + self.w[i] * self.w[i] * by_gamma
            self.db[i] = (self.spread_p[i] + self.w[i] * self.w[i] * by_gamma - a * a / s)
            self.dl[i] = self.L.diagonal[i] if self.has_information else 0.0
            self.squares[i] = 0.0
        self.dq[m] = by_gamma
        self.db[m] = (self.explained[self.lead] + self.noises[self.lead]) * by_gamma / s
        self.dl[m] = 1.0 / self.noises[self.lead]
        self.squares[m] = 0.0
        for o in range(self.outputs):
            surprise = self.surprise[self.lead * self.outputs + o]
            for i in range(m):
                a = alpha[o * stride + i] + (b[i] - self.w[i]) * surprise
                self.squares[i] += a * a
            self.squares[m] += surprise * surprise

    cdef void _price(self, Py_ssize_t n) noexcept nogil:
        """Fill the two parts of the cost of each removal: log1p(shape)/2 for each output, and means."""
        cdef Py_ssize_t i
        cdef double least = DBL_MIN
        for i in range(n):
            self.db[i] = self.db[i] if self.db[i] > least else least
            self.db[i] = self.db[i] if self.db[i] < self.dq[i] else self.dq[i]
        if self.native == HELLINGER and not self.has_information:
            innovation_costs(n, self.dq, self.db, self.squares, self.shapes, self.moves)
        elif self.native == HELLINGER and self.marginalise:
            marginal_costs(n, self.dq, self.db, self.dl, self.squares, self.shapes, self.moves)
        elif self.native == HELLINGER:
            removal_costs(n, self.dq, self.db, self.dl, self.squares, self.shapes, self.moves)
        else:
            for i in range(n):
                self.shapes[i] = 0.0
                self.moves[i] = self.squares[i] / (
                    self.db[i] if self.native == CSATO else self.dq[i] * self.dq[i])

    cdef Py_ssize_t _cheapest(self, Py_ssize_t n, double noise, double* cost) noexcept nogil:
        """Return the slot that costs least (the oldest of equally cheap ones), and its cost.

        Given a noise, only redundant points are looked at. Most points are left out by a lower
        bound, log1p(x) ≥ 2x/(2 + x), without their logarithm.
        """
        cdef Py_ssize_t i, best = -1
        cdef double outputs = <double> self.outputs, lowest = HUGE_VAL, within = HUGE_VAL
        cdef double* costs = self.costs
        self._price(n)
        for i in range(n):
            costs[i] = self.relevance_p[i] * (
                outputs * self.shapes[i] / (2.0 + self.shapes[i]) + self.moves[i])
        for i in range(n):
            if costs[i] > within or (noise >= 0.0 and not self._redundant(i, self.dq[i], noise)):
                costs[i] = HUGE_VAL
                continue
            costs[i] = self.relevance_p[i] * (
                outputs * 0.5 * log1p(self.shapes[i]) + self.moves[i])
            if costs[i] < lowest:
                lowest = costs[i]
                within = lowest + tie_width(lowest, TIE, TIE_DISTANCE)
        for i in range(n):
            if costs[i] <= within and (best < 0 or self.arrivals_p[i] < self.arrivals_p[best]):
                best = i
        best = max(best, 0)  # where no cost is a number
        cost[0] = costs[best]
        if self.native == HELLINGER:
            cost[0] = distance_of_cost(cost[0])
        return best


# −log BC of the posterior before and after each removal (mathematics.md §4), in two parts; loops
# that the compiler makes vectors of.

cdef void innovation_costs(Py_ssize_t n, const double* dq, const double* spread, const double* squares,
                           double* shape, double* means) noexcept nogil:
    """Of the marginals of the part of a point that the others do not explain."""
    cdef Py_ssize_t i
    cdef double p, v, roots, difference
    for i in range(n):
        p = 1.0 / dq[i]
        v = spread[i] * p * p
        difference, roots = sqrt(v) - sqrt(p), sqrt(v) * sqrt(p)
        shape[i] = difference * difference / (2.0 * roots)
        means[i] = squares[i] * p * p / (4.0 * (v + p))


cdef void marginal_costs(Py_ssize_t n, const double* dq, const double* spread, const double* known,
                         const double* squares, double* shape, double* means) noexcept nogil:
    """Of the whole posterior, where the point is marginalised."""
    cdef Py_ssize_t i
    cdef double p, c, tau, first, difference
    for i in range(n):
        p, c = 1.0 / dq[i], 1.0 / (dq[i] + known[i])
        tau = spread[i] * p * p - c
        tau = tau if tau > 0.0 else 0.0
        difference = sqrt(c) - sqrt(p)
        first = difference * difference / (2.0 * sqrt(c) * sqrt(p))
        # the product of the two terms, so that there is one logarithm
        shape[i] = first + (1.0 + first) * tau / (2.0 * (c + p))
        means[i] = squares[i] * p * p / (4.0 * (c + p) + 2.0 * tau)


cdef void removal_costs(Py_ssize_t n, const double* dq, const double* spread, const double* known,
                        const double* squares, double* shape, double* means) noexcept nogil:
    """Of the whole posterior, where the point is conditioned away."""
    cdef Py_ssize_t i
    cdef double p, c, v, excess, roots, difference, ratio
    for i in range(n):
        p, c = 1.0 / dq[i], 1.0 / (dq[i] + known[i])
        v = spread[i] * p * p
        v = v if v > c else c
        excess = (v - c) * (dq[i] + known[i]) / v
        difference, roots = sqrt(v) - sqrt(p), sqrt(v) * sqrt(p)
        shape[i] = difference * difference / (2.0 * roots) + excess * roots / 4.0
        ratio = v * dq[i] + v * excess / 2.0
        means[i] = squares[i] * p * p * ratio / (4.0 * v * (1.0 + ratio))
