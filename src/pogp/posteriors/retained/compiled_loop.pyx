# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The learning loop, compiled: the twin of `loop.py` with the criteria of `criteria.py`."""

from libc.math cimport HUGE_VAL, log1p, sqrt
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from pogp.posteriors.linalg.gaussians cimport distance_of_cost, hellinger_cost, tie_width
from pogp.posteriors.linalg.symmetric cimport get, apply_deferred
from pogp.posteriors.retained.compiled_updates cimport RetainedUpdates

from pogp import trace
from pogp.posteriors import slots
from pogp.posteriors.slots import not_finite
from pogp.trace import blank

cdef enum Native:
    NEWEST
    EVERYWHERE
    OLDEST
    PLANNED

cdef dict NATIVE = {  # by `Criterion.native`
    "newest": NEWEST, "everywhere": EVERYWHERE, "oldest": OLDEST, "planned": PLANNED,
}
cdef double TIE = slots.TIE, TIE_DISTANCE = slots.TIE_DISTANCE
cdef Py_ssize_t BLOCK = slots.BLOCK
cdef int SIZE = 2 + trace.SIZE, REMOVED = 2 + trace.REMOVED, SPENT = 2 + trace.SPENT
cdef int NOVELTY = 2 + trace.NOVELTY, CHANGE = 2 + trace.CHANGE  # after one mean and one variance


cdef class RetainedLoop(RetainedUpdates):
    """A retained-data posterior that learns a batch by itself, without the GIL."""

    cdef double* costs
    # the view "everywhere"; see `criteria.Everywhere`
    cdef double* excess                # h − 1 − σ²g
    cdef double* remainder             # α with R eliminated from I + σ²P
    cdef double* eliminated            # column of I + σ²P at the point to remove
    cdef double* history               # two rows per point removed in this step
    cdef double* pivots
    cdef Py_ssize_t history_rows
    cdef double spent                  # cost of the removals so far

    def __dealloc__(self):
        free(self.history)
        free(self.pivots)

    cdef _allocate(self, Py_ssize_t capacity):
        RetainedUpdates._allocate(self, capacity)
        self.costs = self.spare
        self.excess = self.spare + self.capacity
        self.remainder = self.spare + 2 * self.capacity
        self.eliminated = self.spare + 3 * self.capacity
        self.history_rows = 0  # its rows are as long as the capacity was

    def learn(self, criterion, const double[:, ::1] X, const double[::1] y, long long first, plan):
        """Learn the samples in order and return their records; see `loop.learn`.

        FloatingPointError if numbers would not be finite: nothing has changed if it is the first
        sample. Apart from that, memory is all that can fail, and it is reserved before.
        """
        cdef Py_ssize_t i, start = 0, count, n = y.shape[0], planned = -1
        cdef Py_ssize_t failed = -1
        cdef int code = NATIVE[criterion.native]
        cdef Py_ssize_t max_size = plan.max_size, max_removals = plan.max_removals
        cdef const double[::1] limits = plan.limits
        cdef const long long[::1] slots = plan.slots
        records = blank(n)
        cdef double[:, ::1] out = records
        self.reserve(min(self.size + n, 1 + max(self.size, min(max_size, self.size + n))))
        with nogil:
            while start < n and failed < 0:
                count = self._block_length(&X[start, 0], min(BLOCK, n - start))
                self._solve_block(&X[start, 0], count)
                for i in range(start, start + count):
                    if code == PLANNED:
                        planned = slots[i]
                    self.arrivals_p[self.size] = first + i
                    if not self._step(i - start, count, &X[i, 0], y[i], limits[i], max_size,
                                      max_removals, code, planned, &out[i, 0]):
                        failed = i
                        break
                else:
                    apply_deferred(self.P, <int> self.size)
                    self._mend(first + start, count)
                start += count
        if failed >= 0:
            raise FloatingPointError(not_finite(first + failed, y[failed]))
        return records

    # ---- one sample: Algorithms 1 and 2 -----------------------------------------------------

    cdef bint _step(self, Py_ssize_t at, Py_ssize_t count, const double* x, double y, double limit,
                    Py_ssize_t max_size, Py_ssize_t max_removals, int criterion, Py_ssize_t planned,
                    double* record) noexcept nogil:
        """Learn sample `at` of a block of `count`; False, before any change, if it is not finite."""
        cdef Py_ssize_t m = self.size, n = m + 1, n_removed = 0, j
        cdef double mean, s = self._predict(at, count, &mean), cost, spent = 0.0
        cdef long long arrival = self.arrivals_p[m]
        cdef bint forced
        if not self._augment(y, mean, s):
            return False
        if criterion == EVERYWHERE:
            self._begin_everywhere(n)
        while n > 1:
            forced = n > max_size
            if not forced and n_removed >= max_removals:
                break
            j = self._cheapest(criterion, planned, n, &cost)
            if not forced and not cost <= limit:
                break
            if n_removed == 0:
                self._augmented_column(j, s)
            else:
                get(self.P, j, <int> n, self.c)
            if criterion == EVERYWHERE and not self._eliminate(j, n, n_removed):
                break
            spent = cost
            self._update_vectors(j, n)
            if n_removed > 0:
                self._drop(j, n)
            elif j < m:
                self._replace(j, x, y, arrival, s)
            else:
                self._discard_newest()
                self.shift = (s - self.noise) * (y - mean) / s  # what `_record` has, bit for bit
                self.gain = (s - self.noise) * (s - self.noise) / s
            n -= 1
            n_removed += 1
        if n_removed == 0:
            self._append_newest(x, y, arrival, s)
        memcpy(self.alpha, self.a, self.size * sizeof(double))
        self._record(y, mean, s, n_removed, spent, record)
        return True

    cdef void _record(self, double y, double mean, double s, Py_ssize_t n_removed, double spent,
                      double* record) noexcept nogil:
        cdef double latent = s - self.noise
        cdef double moved = latent * (y - mean) / s, shrunk = latent * latent / s
        record[0] = mean
        record[1] = s
        record[SIZE] = <double> self.size
        record[REMOVED] = <double> n_removed
        record[SPENT] = distance_of_cost(spent)
        record[NOVELTY] = distance_of_cost(hellinger_cost(moved, s, -shrunk))
        record[CHANGE] = distance_of_cost(hellinger_cost(moved - self.shift, s, self.gain - shrunk))

    # ---- what each removal would cost -------------------------------------------------------

    cdef Py_ssize_t _cheapest(self, int criterion, Py_ssize_t planned, Py_ssize_t n,
                              double* cost) noexcept nogil:
        """Return the slot that costs least (the oldest of equally cheap ones), and its cost."""
        cdef Py_ssize_t i, best = planned
        cdef double lowest
        if criterion == OLDEST:
            best = 0
            for i in range(1, n):
                if self.arrivals_p[i] < self.arrivals_p[best]:
                    best = i
        if criterion == OLDEST or criterion == PLANNED:
            cost[0] = self._newest_cost(best)
            return best
        if criterion == NEWEST:
            self._newest_costs(n)
        else:
            for i in range(n):
                self.costs[i] = self.spent + self._everywhere_increment(i)
        lowest = HUGE_VAL
        for i in range(n):
            if self.costs[i] < lowest:
                lowest = self.costs[i]
        lowest += tie_width(lowest, TIE, TIE_DISTANCE)
        best = -1
        for i in range(n):
            if self.costs[i] <= lowest and (best < 0 or self.arrivals_p[i] < self.arrivals_p[best]):
                best = i
        best = max(best, 0)  # where no cost is a number
        cost[0] = self.costs[best]
        return best

    cdef inline double _newest_cost(self, Py_ssize_t i) noexcept nogil:
        """Algorithm 2: how far the marginal at x is from the reference without slot i."""
        cdef double ratio = self.v[i] / self.g[i]
        return hellinger_cost(self.shift + ratio * self.a[i], self.variance,
                              self.gain + ratio * self.v[i])

    cdef void _newest_costs(self, Py_ssize_t n) noexcept nogil:
        """`_newest_cost` of every slot that may be the cheapest, infinity for the others.

        log1p(t) is between t − t²/2 and t, which leaves few slots for which it has to be called.
        """
        cdef Py_ssize_t i
        cdef double variance = self.variance, shift0 = self.shift, gain0 = self.gain
        cdef double ratio, shift, gain, other, s1 = sqrt(variance), s2, difference, t
        cdef double lowest = HUGE_VAL
        cdef const double* v = self.v
        cdef const double* g = self.g
        cdef const double* a = self.a
        cdef double* spread = self.z
        cdef double* costs = self.costs
        for i in range(n):
            ratio = v[i] / g[i]
            shift = shift0 + ratio * a[i]
            gain = gain0 + ratio * v[i]
            other = variance + gain
            s2 = sqrt(other)
            difference = gain / (s1 + s2)
            spread[i] = difference * difference / (2.0 * s1 * s2)
            costs[i] = shift * shift / (4.0 * (variance + other))
        for i in range(n):
            t = costs[i] + 0.5 * spread[i]
            lowest = t if t < lowest else lowest
        lowest += tie_width(lowest, TIE, TIE_DISTANCE)
        for i in range(n):
            t = spread[i]
            if costs[i] + 0.5 * (t - 0.5 * t * t) <= lowest:
                costs[i] += 0.5 * (t - 0.5 * t * t if t < 1e-8 else log1p(t))
            else:
                costs[i] = HUGE_VAL

    cdef inline double _everywhere_increment(self, Py_ssize_t i) noexcept nogil:
        """What slot i adds to the distance of the whole process; see `criteria.Everywhere`."""
        cdef double g = self.g[i], a = self.a[i], b = self.remainder[i], e = self.excess[i]
        cdef double q = self.noise * g, root = sqrt(q), h = 1.0 + q + e
        return (0.5 * log1p(((1.0 - root) * (1.0 - root) + e) / (2.0 * root))
                + (a * a * (1.0 - q + e) + 2.0 * q * (a - b) * (a + b)) / (4.0 * g * h))

    cdef void _begin_everywhere(self, Py_ssize_t n) noexcept nogil:
        cdef Py_ssize_t i
        self.spent = 0.0
        for i in range(n):
            self.excess[i] = 0.0
            self.remainder[i] = self.a[i]

    cdef bint _eliminate(self, Py_ssize_t j, Py_ssize_t n, Py_ssize_t n_removed) noexcept nogil:
        """Eliminate slot j from I + σ²P; `c` is its column of P. False if there is no memory."""
        cdef Py_ssize_t i, row
        cdef double* p
        cdef double* h
        cdef double pivot, scale, factor
        if not self._extend_history(n_removed + 1):
            return False
        self.spent += self._everywhere_increment(j)
        for i in range(n):
            self.eliminated[i] = self.noise * self.c[i]
        for row in range(n_removed):
            p = self.history + 2 * row * self.capacity
            h = p + self.capacity
            scale = self.noise * p[j]
            factor = h[j] / self.pivots[row]
            for i in range(n):
                self.eliminated[i] += scale * p[i] - factor * h[i]
        self.eliminated[j] += 1.0
        pivot = self.eliminated[j]
        self.pivots[n_removed] = pivot
        scale = 1.0 / sqrt(self.g[j])
        factor = self.remainder[j] / pivot
        p = self.history + 2 * n_removed * self.capacity
        h = p + self.capacity
        for i in range(n):
            p[i] = self.c[i] * scale
            h[i] = self.eliminated[i]
            self.excess[i] += self.noise * p[i] * p[i] - h[i] * h[i] / pivot
            self.remainder[i] -= h[i] * factor
        self.excess[j] = self.excess[n - 1]
        self.remainder[j] = self.remainder[n - 1]
        for row in range(2 * (n_removed + 1)):
            p = self.history + row * self.capacity
            p[j] = p[n - 1]
        return True

    cdef bint _extend_history(self, Py_ssize_t rows) noexcept nogil:
        cdef double* grown
        cdef Py_ssize_t wanted
        if rows <= self.history_rows:
            return True
        wanted = 2 * rows
        grown = <double*> realloc(self.history, 2 * wanted * self.capacity * sizeof(double))
        if grown == NULL:
            return False
        self.history = grown
        grown = <double*> realloc(self.pivots, wanted * sizeof(double))
        if grown == NULL:
            return False
        self.pivots = grown
        self.history_rows = wanted
        return True
