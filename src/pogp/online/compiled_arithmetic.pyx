# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Operations of `OnlineGP` on small arrays, compiled: the twin of `arithmetic.py`.

Each call has a dozen arrays of a few numbers. Typed memoryviews would take most of the time, so the
arrays, contiguous and of float64, are accessed by pointers.
"""

cimport numpy as cnp

from libc.math cimport HUGE_VAL, exp, fabs, fmax, fmin, isfinite, log, log1p, sqrt

from pogp.online import arithmetic

cnp.import_array()

cdef double FREEDOM = arithmetic.FREEDOM, RATE = arithmetic.RATE, WIDTH = arithmetic.WIDTH
cdef double TAIL_DISCOUNT = arithmetic.TAIL_DISCOUNT, LEAST_ERROR = arithmetic.LEAST_ERROR
cdef double LEAST_VARIANCE = arithmetic.LEAST_VARIANCE
cdef double SURPRISE = arithmetic.SURPRISE
cdef double LARGEST_SQUARE = arithmetic.LARGEST_SQUARE
cdef long long CALIBRATE_AFTER = arithmetic.CALIBRATE_AFTER


cpdef scale_input(cnp.ndarray x_, cnp.ndarray centre_, cnp.ndarray inverse_, double far,
                  cnp.ndarray out_):
    """See `arithmetic.scale_input`."""
    cdef double *x = at(x_), *centre = at(centre_), *inverse = at(inverse_), *out = at(out_)
    cdef Py_ssize_t d
    cdef double value
    cdef bint beyond = False
    for d in range(x_.shape[0]):
        value = (x[d] - centre[d]) * inverse[d]
        if value > far:
            value, beyond = far + log1p(value - far), True
        elif value < -far:
            value, beyond = -far - log1p(-value - far), True
        out[d] = value
    return beyond


cpdef average_steps(cnp.ndarray x_, cnp.ndarray last_, cnp.ndarray average_, double share,
                    double factor, double most):
    """See `arithmetic.average_steps`."""
    cdef double *x = at(x_), *last = at(last_), *average = at(average_)
    cdef Py_ssize_t d
    cdef double step
    cdef bint jumped = False
    for d in range(x_.shape[0]):
        step = fabs(x[d] - last[d])
        jumped = jumped or step > factor * average[d]
        if average[d] > 0.0:
            step = fmin(step, most * average[d])
        average[d] += share * (step - average[d])
        last[d] = x[d]
    return jumped


cpdef combine(cnp.ndarray scores_, cnp.ndarray outer_scores_, cnp.ndarray means_,
              cnp.ndarray variances_, cnp.ndarray level_means_, cnp.ndarray level_variances_,
              cnp.ndarray mean_, cnp.ndarray variance_):
    """See `arithmetic.combine`."""
    cdef double *scores = at(scores_), *outer_scores = at(outer_scores_), *means = at(means_)
    cdef double *variances = at(variances_), *level_means = at(level_means_)
    cdef double *level_variances = at(level_variances_), *mean = at(mean_)
    cdef double *variance = at(variance_)
    cdef Py_ssize_t d, m, o, levels = scores_.shape[0], members = scores_.shape[1]
    cdef Py_ssize_t k = scores_.shape[2], size = members * k
    cdef double top, total, weight, level_mean, level_variance, outer_top, outer_total, difference
    for o in range(k):
        outer_top, outer_total = -HUGE_VAL, 0.0
        for d in range(levels):
            outer_top = fmax(outer_top, outer_scores[d * k + o])
        for d in range(levels):
            outer_total += exp(outer_scores[d * k + o] - outer_top)
        mean[o], variance[o] = 0.0, 0.0
        for d in range(levels):
            top, total, level_mean, level_variance = -HUGE_VAL, 0.0, 0.0, 0.0
            for m in range(members):
                top = fmax(top, scores[d * size + m * k + o])
            for m in range(members):
                total += exp(scores[d * size + m * k + o] - top)
            for m in range(members):
                weight = exp(scores[d * size + m * k + o] - top) / total
                level_mean += weight * means[m * k + o]
            for m in range(members):
                weight = exp(scores[d * size + m * k + o] - top) / total
                difference = means[m * k + o] - level_mean
                level_variance += weight * (variances[m * k + o] + difference * difference)
            mean[o] += exp(outer_scores[d * k + o] - outer_top) / outer_total * level_mean
            level_means[d * k + o], level_variances[d * k + o] = level_mean, level_variance
        for d in range(levels):
            difference = level_means[d * k + o] - mean[o]
            variance[o] += (exp(outer_scores[d * k + o] - outer_top) / outer_total
                            * (level_variances[d * k + o] + difference * difference))
        variance[o] = fmax(variance[o], LEAST_VARIANCE)


cpdef score(cnp.ndarray target_, cnp.ndarray means_, cnp.ndarray variances_, cnp.ndarray discounts_,
            tuple ends, cnp.ndarray gains_, cnp.ndarray scores_):
    """See `arithmetic.score`."""
    cdef double *target = at(target_), *means = at(means_), *variances = at(variances_)
    cdef double *gains = at(gains_)
    cdef Py_ssize_t m, o, i, k = means_.shape[1], start = 0, end
    cdef double difference, least, variance, square, top, total, result
    for o in range(k):
        least = HUGE_VAL
        for m in range(means_.shape[0]):
            difference = target[o] - means[m * k + o]
            least = fmin(least, difference * difference / SURPRISE)
        for m in range(means_.shape[0]):
            i = m * k + o
            difference, variance = target[o] - means[i], fmax(variances[i], least)
            square = fmin(difference * difference / variance, LARGEST_SQUARE)
            gains[i] = -0.5 * log(variance) - 0.5 * (FREEDOM + 1.0) * log1p(square / FREEDOM)
    add_discounted(scores_, discounts_, gains_)
    gained = []
    for end in ends:
        result = 0.0
        for o in range(k):
            top, total = -HUGE_VAL, 0.0
            for m in range(start, end):
                top = fmax(top, gains[m * k + o])
            for m in range(start, end):
                total += exp(gains[m * k + o] - top)
            result += top + log(total / (end - start))
        gained.append(result)
        start = end
    return gained


cpdef add_discounted(cnp.ndarray scores_, cnp.ndarray discounts_, cnp.ndarray gains_):
    """See `arithmetic.add_discounted`."""
    cdef double *discounts = at(discounts_), *gains = at(gains_)
    cdef double *scores = <double*> cnp.PyArray_DATA(scores_)
    cdef Py_ssize_t d, m, members = gains_.shape[0], k = gains_.shape[1]
    if (cnp.PyArray_TYPE(scores_) != cnp.NPY_DOUBLE
            or cnp.PyArray_STRIDE(scores_, 1) != k * <Py_ssize_t> sizeof(double)):
        raise ValueError(f"expected levels that are contiguous float64, got {scores_!r}")
    for d in range(scores_.shape[0]):  # each level is contiguous; the next may be further on
        for m in range(members * k):
            scores[m] = scores[m] * discounts[d] + gains[m]
        scores += cnp.PyArray_STRIDE(scores_, 0) // <Py_ssize_t> sizeof(double)


cpdef calibrate(cnp.ndarray target_, cnp.ndarray mean_, cnp.ndarray variance_, cnp.ndarray extra_,
                cnp.ndarray shift_, cnp.ndarray tilt_, cnp.ndarray extra_shift_,
                cnp.ndarray centre_, cnp.ndarray spread_, cnp.ndarray tail_scale_,
                cnp.ndarray tail_likelihood_, cnp.ndarray averages_, cnp.ndarray freedoms_,
                cnp.ndarray constants_, long long count, long long averaged, cnp.ndarray record_):
    """See `arithmetic.calibrate`."""
    cdef double *target = at(target_), *mean = at(mean_), *variance = at(variance_)
    cdef double *extra = at(extra_), *extra_shift = at(extra_shift_), *shift = at(shift_)
    cdef double *tilt = at(tilt_), *centre = at(centre_), *spread = at(spread_)
    cdef double *tail_scale = at(tail_scale_), *tail_likelihood = at(tail_likelihood_)
    cdef double *freedoms = at(freedoms_), *constants = at(constants_), *record = at(record_)
    cdef double *averages = at(averages_)
    cdef Py_ssize_t o, f, i, k = target_.shape[0]
    cdef double level, q, z, calibrated_extra, total, own, gain, squares, free, largest = 0.0
    cdef double share = fmax(0.01, 1.0 / (count + 1))
    cdef long long window = min(count - CALIBRATE_AFTER, averaged)
    cdef bint moves
    for o in range(k):
        level = log(variance[o])
        q = clip((level - centre[o]) / spread[o], -3.0, 3.0)
        calibrated_extra = extra[o] * exp(2.0 * extra_shift[o])
        total = variance[o] * exp(2.0 * (shift[o] + tilt[o] * q)) + calibrated_extra
        record[o], record[k + o] = mean[o], total
        z = clip((target[o] - mean[o]) / sqrt(total), -sqrt(LARGEST_SQUARE), sqrt(LARGEST_SQUARE))
        largest = fmax(largest, fabs(z))
        if count > CALIBRATE_AFTER:
            moves = fabs(z) > LEAST_ERROR
            gain = RATE * ((fabs(z) > WIDTH) - 0.05) if moves else 0.0
            own = 1.0 - calibrated_extra / total
            shift[o] = clip(shift[o] + gain * own, -3.0, 3.0)
            tilt[o] = clip(tilt[o] + 0.5 * gain * q * own, -1.0, 1.0)
            extra_shift[o] = clip(extra_shift[o] + gain * (1.0 - own), -3.0, 3.0)
            for f in range(freedoms_.shape[0] if moves else 0):
                free, i = freedoms[f], f * k + o
                squares = z * z * exp(-2.0 * tail_scale[i])
                tail_likelihood[i] = (TAIL_DISCOUNT * tail_likelihood[i] + constants[f]
                                      - tail_scale[i]
                                      - 0.5 * (free + 1.0) * log1p(squares / free))
                tail_scale[i] += 0.01 * ((free + 1.0) * squares / (free + squares) - 1.0)
            averages[o] += (shift[o] - averages[o]) / window
            averages[k + o] += (tilt[o] - averages[k + o]) / window
            averages[2 * k + o] += (extra_shift[o] - averages[2 * k + o]) / window
        centre[o] += share * (level - centre[o])
        spread[o] = fmax(0.1, spread[o] + share * (1.25 * fabs(level - centre[o]) - spread[o]))
    return largest


cpdef predict_simple(cnp.ndarray x_, cnp.ndarray mean_, cnp.ndarray last_,
                     cnp.ndarray lags_, cnp.ndarray plain_, cnp.ndarray with_lags_,
                     cnp.ndarray centre_, cnp.ndarray scale_, cnp.ndarray errors_,
                     cnp.ndarray features_, cnp.ndarray means_, cnp.ndarray variances_):
    """See `arithmetic.predict_simple`."""
    cdef double *x = at(x_), *mean = at(mean_), *last = at(last_)
    cdef double *lags = at(lags_), *plain = at(plain_)
    cdef double *with_lags = at(with_lags_), *centre = at(centre_), *scale = at(scale_)
    cdef double *features = at(features_), *means = at(means_), *errors = at(errors_)
    cdef double *variances = at(variances_)
    cdef Py_ssize_t i, o, inputs = x_.shape[0], k = mean_.shape[0], count = lags_.shape[0] * k
    cdef double without_lags, total
    for i in range(inputs):
        features[i] = x[i]
    features[inputs] = 1.0
    for i in range(count):
        o = i % k
        features[inputs + 1 + i] = clip((lags[i] - centre[o]) / scale[o], -1e3, 1e3)
    for o in range(k):
        without_lags, total = 0.0, 0.0
        for i in range(inputs + 1):
            without_lags += features[i] * plain[i * k + o]
        for i in range(inputs + 1 + count):
            total += features[i] * with_lags[i * k + o]
        means[o], means[k + o] = mean[o], last[o]
        means[2 * k + o] = centre[o] + without_lags * scale[o]
        means[3 * k + o] = centre[o] + total * scale[o]
    for i in range(4 * k):
        variances[i] = fmax(errors[i], LEAST_VARIANCE)


cpdef update_simple(cnp.ndarray y_, cnp.ndarray means_, cnp.ndarray errors_, cnp.ndarray mean_,
                    cnp.ndarray last_, cnp.ndarray lags_, cnp.ndarray centre_,
                    cnp.ndarray scale_, cnp.ndarray targets_, long long count, long long window,
                    double share, double bound, double largest_ratio):
    """See `arithmetic.update_simple`."""
    cdef double *y = at(y_), *means = at(means_), *errors = at(errors_), *mean = at(mean_)
    cdef double *last = at(last_), *lags = at(lags_), *targets = at(targets_)
    cdef double *centre = at(centre_), *scale = at(scale_)
    cdef Py_ssize_t i, o, e, k = y_.shape[0]
    cdef double error, bounded, reach, first, rate = share / min(count + 1, window)
    for o in range(k):
        first = y[o]
        for i in range(means_.shape[0]):
            e = i * k + o
            error, bounded = y[o] - means[e], y[o]
            error *= error
            if count == 0 and error == 0.0:
                error = 1.0
            if count > 5 and errors[e] > 0.0:
                error = fmin(error, largest_ratio * errors[e])
            if bound > 0.0:
                reach = bound * sqrt(errors[e])
                bounded = clip(y[o], means[e] - reach, means[e] + reach)
            if i == 0:
                first = bounded
            elif i > 1:
                targets[e - 2 * k] = (bounded - centre[o]) / scale[o]
            errors[e] += rate * (error - errors[e])
        mean[o] += share * (first - mean[o]) / (count + 1)
        last[o] = y[o] if share >= 1.0 else last[o] + share * (y[o] - last[o])
        if not bound > 0.0:
            for i in range(lags_.shape[0] - 1, 0, -1):
                lags[i * k + o] = last[o] if count == 0 else lags[(i - 1) * k + o]
            lags[o] = last[o]


cpdef write_errors(cnp.ndarray y_, cnp.ndarray means_, cnp.ndarray variances_, Py_ssize_t start,
                   cnp.ndarray noise_, cnp.ndarray unit_, cnp.ndarray shift_, cnp.ndarray extra_,
                   cnp.ndarray row_):
    """See `arithmetic.write_errors`."""
    cdef double *y = at(y_), *means = at(means_), *variances = at(variances_), *row = at(row_)
    cdef double *noise = at(noise_), *unit = at(unit_), *shift = at(shift_), *extra = at(extra_)
    cdef Py_ssize_t o, i, b, k = y_.shape[0], last = noise_.shape[0] - 1
    cdef double target
    for o in range(k):
        target = y[o] - shift[o]
        row[o], row[k + o] = target - means[o], target - means[2 * k + o]
        for i in range(2):
            b = i * last
            row[(2 + i) * k + o] = y[o] - means[(start + b) * k + o]
            row[(4 + i) * k + o] = (variances[(start + b) * k + o] - extra[o]
                                    - noise[b] * unit[o] * unit[o])
        row[6 * k + o] = extra[o]


cpdef write_sample(cnp.ndarray x_, cnp.ndarray y_, bint outlier, double weight, extra_,
                   shift_, Py_ssize_t index, cnp.ndarray inputs_, cnp.ndarray rows_):
    """See `arithmetic.write_sample`."""
    cdef Py_ssize_t i, p = x_.shape[0], k = y_.shape[0]
    cdef double *x = at(x_), *y = at(y_), *extra = NULL, *shift = NULL
    cdef double *input = at(inputs_) + index * p, *row = at(rows_) + index * (3 * k + 2)
    if extra_ is not None:
        extra = at(extra_)
    if shift_ is not None:
        shift = at(shift_)
    for i in range(p):
        input[i] = x[i]
    for i in range(k):
        row[i], row[k + 2 + i] = y[i], 0.0 if extra is NULL else extra[i]
        row[2 * k + 2 + i] = 0.0 if shift is NULL else shift[i]
    row[k], row[k + 1] = outlier, weight


cpdef within_reach(cnp.ndarray inputs_, cnp.ndarray rows_, long long seen, long long count,
                   cnp.ndarray centre_, cnp.ndarray reach_, cnp.ndarray target_centre_,
                   cnp.ndarray target_reach_):
    """See `arithmetic.within_reach`."""
    cdef double *inputs = at(inputs_), *rows = at(rows_), *centre = at(centre_)
    cdef double *reach = at(reach_), *target_centre = at(target_centre_)
    cdef double *target_reach = at(target_reach_), *row
    cdef Py_ssize_t d, o, index, p = inputs_.shape[1], k = target_centre_.shape[0], outside, used
    cdef long long i
    for d in range(p):
        outside, used = 0, 0
        for i in range(seen - count, seen):
            index = i % inputs_.shape[0]
            row = rows + index * rows_.shape[1]
            if row[k] != 0.0:
                continue
            used += 1
            outside += fabs(inputs[index * p + d] - centre[d]) > reach[d]
            for o in range(k if d == 0 else 0):
                if not fabs(row[o] - target_centre[o]) <= target_reach[o]:
                    return False
        if 2 * outside >= used:
            return False
    return True


cpdef least_squares(cnp.ndarray P_, cnp.ndarray w_, cnp.ndarray h_, cnp.ndarray y_,
                    cnp.ndarray gain_, double forgetting, double largest):
    """See `arithmetic.least_squares`."""
    cdef double *P = at(P_), *w = at(w_), *h = at(h_), *y = at(y_), *g = at(gain_)
    cdef Py_ssize_t i, j, o, n = P_.shape[0], k = w_.shape[1]
    cdef double q = 0.0, error, biggest = -HUGE_VAL, smallest = HUGE_VAL
    cdef bint finite = True
    for i in range(n):
        g[i] = 0.0
        for j in range(n):
            g[i] += P[i * n + j] * h[j]
        q += h[i] * g[i]
    q = forgetting + fmax(q, 0.0)
    for o in range(k):
        error = y[o]
        for i in range(n):
            error -= h[i] * w[i * k + o]
        for i in range(n):
            w[i * k + o] += g[i] * (error / q)
            finite = finite and isfinite(w[i * k + o])
    for i in range(n):
        for j in range(n):
            P[i * n + j] -= g[i] * (g[j] / q)
        biggest, smallest = fmax(biggest, P[i * n + i]), fmin(smallest, P[i * n + i])
    if smallest <= 0.0 or not finite:
        return False
    if biggest < largest:
        for i in range(n * n):
            P[i] /= forgetting
    return True
