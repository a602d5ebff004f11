# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The arithmetic of `OnlineGP` on small arrays, compiled: the twin of `mixing.py`.

Each call has a dozen arrays of a few numbers, so that typed memoryviews would take most of the time.
Arrays are contiguous, of float64, and used through their pointers.
"""

cimport numpy as cnp

from libc.math cimport HUGE_VAL, exp, fabs, fmax, fmin, isfinite, log, log1p, sqrt

from pogp.online.mixing import CARRY as KEPT, DOUBT as DOUBTED, FOLLOW as FOLLOWED
from pogp.online.mixing import FIRST as BEFORE, FREEDOM as FREE, LEAST_VARIANCE as TINY
from pogp.online.mixing import REMEMBERED as KEPT_LONG
from pogp.online.mixing import STILL as AT_REST, WIDTH as WIDE

cnp.import_array()

cdef double CARRY = KEPT, DOUBT = DOUBTED, FOLLOW = FOLLOWED, FREEDOM = FREE, WIDTH = WIDE
cdef double REMEMBERED = KEPT_LONG, STILL = AT_REST, LEAST_VARIANCE = TINY
cdef long long FIRST = BEFORE


cdef inline double clip(double value, double lower, double upper) noexcept nogil:
    return fmin(fmax(value, lower), upper)


cpdef scale(cnp.ndarray x_, cnp.ndarray centre_, cnp.ndarray inverse_, double far, cnp.ndarray out_):
    """See `mixing.scale`."""
    cdef double *x = at(x_), *centre = at(centre_), *inverse = at(inverse_), *out = at(out_)
    cdef Py_ssize_t d
    cdef double value
    for d in range(x_.shape[0]):
        value = (x[d] - centre[d]) * inverse[d]
        if value > far:
            value = far + log1p(value - far)
        elif value < -far:
            value = -far - log1p(-value - far)
        out[d] = value


cpdef correct(cnp.ndarray mean_, cnp.ndarray latent_, cnp.ndarray factor_, double noise,
            double extra, cnp.ndarray product_, cnp.ndarray square_, cnp.ndarray residual_,
            cnp.ndarray narrow_, cnp.ndarray centre_, cnp.ndarray scale_, cnp.ndarray variance_,
            cnp.ndarray corrected_, cnp.ndarray means_, cnp.ndarray variances_):
    """See `mixing.correct`."""
    cdef double *mean = at(mean_), *latent = at(latent_), *factor = at(factor_)
    cdef double *product = at(product_), *square = at(square_), *residual = at(residual_)
    cdef double *narrow = at(narrow_), *centre = at(centre_), *scale = at(scale_)
    cdef double *variance = at(variance_), *corrected = at(corrected_)
    cdef double *means = at(means_), *variances = at(variances_)
    cdef Py_ssize_t b, o, i, count = mean_.shape[0], k = mean_.shape[1]
    cdef double reach, returns, own, total
    for b in range(count):
        own = latent[b] + factor[b] * noise
        variance[b] = own + extra
        reach = 3.0 * sqrt(own)
        for o in range(k):
            i = b * k + o
            returns = clip(product[i] / (square[i] + DOUBT), -1.0, 1.0)
            corrected[i] = mean[i] + returns * clip(residual[i], -reach, reach)
            total = own * (scale[o] * scale[o])
            means[i] = centre[o] + mean[i] * scale[o]
            means[count * k + i] = centre[o] + corrected[i] * scale[o]
            variances[i] = total
            variances[count * k + i] = total * narrow[i]


cpdef take(cnp.ndarray y_, cnp.ndarray centre_, cnp.ndarray scale_, cnp.ndarray mean_,
         cnp.ndarray variance_, cnp.ndarray corrected_, cnp.ndarray product_, cnp.ndarray square_,
         cnp.ndarray residual_, cnp.ndarray unit_, cnp.ndarray narrow_, cnp.ndarray factor_,
         double noise, double extra, double kept, double guard, double least,
         cnp.ndarray target_, cnp.ndarray noises_):
    """See `mixing.take`."""
    cdef double *y = at(y_), *centre = at(centre_), *scale = at(scale_), *mean = at(mean_)
    cdef double *variance = at(variance_), *corrected = at(corrected_), *product = at(product_)
    cdef double *square = at(square_), *residual = at(residual_), *unit = at(unit_)
    cdef double *narrow = at(narrow_), *factor = at(factor_), *target = at(target_)
    cdef double *noises = at(noises_)
    cdef Py_ssize_t b, o, i, k = mean_.shape[1]
    cdef double error, z, left, misfit, largest, total, now
    for o in range(k):
        target[o] = (y[o] - centre[o]) / scale[o]
    for b in range(mean_.shape[0]):
        largest, total = 0.0, 0.0
        noises[b] = factor[b] * noise + extra
        for o in range(k):
            i = b * k + o
            error = target[o] - mean[i]
            z = error / sqrt(variance[b])
            misfit = target[o] - corrected[i]
            left = (variance[b] - extra) * narrow[i]
            misfit = misfit * misfit / (left + extra)
            misfit = (fmin(misfit, 9.0) - 1.0) * (left / (left + extra))
            narrow[i] = clip(narrow[i] * exp(FOLLOW * misfit), 0.01, 10.0)
            total += fmin(z * z, 9.0)
            largest = fmax(largest, fabs(z))
            if guard > 0.0:
                unit[i], residual[i] = 0.0, 0.0
                continue
            now = clip(z, -4.0, 4.0)
            product[i] = product[i] * CARRY + now * unit[i]
            square[i] = square[i] * CARRY + unit[i] * unit[i]
            unit[i], residual[i] = now, kept * error
        if guard > 0.0:
            noises[b] += fmax(largest / guard - 1.0, 0.0) * variance[b]
        factor[b] = followed(factor[b], total / k, variance[b], noise, extra, least)


cpdef surprise(cnp.ndarray y_, cnp.ndarray centre_, cnp.ndarray scale_, cnp.ndarray mean_,
             cnp.ndarray variance_):
    """See `mixing.surprise`."""
    cdef double *y = at(y_), *centre = at(centre_), *scale = at(scale_), *mean = at(mean_)
    cdef double *variance = at(variance_)
    cdef Py_ssize_t b, o, k = y_.shape[0]
    cdef double largest, least = HUGE_VAL
    for b in range(mean_.shape[0]):
        largest = 0.0
        for o in range(k):
            largest = fmax(largest, fabs((y[o] - centre[o]) / scale[o] - mean[b * k + o]))
        least = fmin(least, largest / sqrt(variance[b]))
    return least


cdef inline double followed(double factor, double square, double variance, double noise,
                            double extra, double least) noexcept nogil:
    cdef double excess = square - 1.0
    cdef double share = (variance - extra if excess > 0.0 else factor * noise) / variance
    return clip(factor * exp(FOLLOW * excess * share), least, 1e6)


cpdef follow(cnp.ndarray factor_, cnp.ndarray squares_, cnp.ndarray variance_, double noise,
           double extra, double least):
    """See `mixing.follow`."""
    cdef double *factor = at(factor_), *squares = at(squares_), *variance = at(variance_)
    cdef Py_ssize_t b
    for b in range(factor_.shape[0]):
        factor[b] = followed(factor[b], squares[b], variance[b], noise, extra, least)


cpdef combine(cnp.ndarray scores_, cnp.ndarray outer_scores_, cnp.ndarray means_,
            cnp.ndarray variances_, cnp.ndarray level_means_, cnp.ndarray level_variances_,
            cnp.ndarray mean_, cnp.ndarray variance_):
    """See `mixing.combine`."""
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
    """See `mixing.score`."""
    cdef double *target = at(target_), *means = at(means_), *variances = at(variances_)
    cdef double *gains = at(gains_)
    cdef Py_ssize_t m, o, i, k = means_.shape[1], start = 0, end
    cdef double difference, top, total, result
    for m in range(means_.shape[0]):
        for o in range(k):
            i = m * k + o
            difference = target[o] - means[i]
            gains[i] = (-0.5 * log(variances[i]) - 0.5 * (FREEDOM + 1.0)
                        * log1p(difference * difference / variances[i] / FREEDOM))
    discount(scores_, discounts_, gains_)
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


cpdef discount(cnp.ndarray scores_, cnp.ndarray discounts_, cnp.ndarray gains_):
    """See `mixing.discount`."""
    cdef double *discounts = at(discounts_), *gains = at(gains_)
    cdef double *scores = <double*> cnp.PyArray_DATA(scores_)
    cdef Py_ssize_t d, m, members = gains_.shape[0], k = gains_.shape[1]
    if (cnp.PyArray_TYPE(scores_) != cnp.NPY_DOUBLE
            or cnp.PyArray_STRIDE(scores_, 1) != k * <Py_ssize_t> sizeof(double)):
        raise ValueError(f"expected levels that are contiguous float64, got {scores_!r}")
    for d in range(scores_.shape[0]):  # of some of all members: one level is contiguous
        for m in range(members * k):
            scores[m] = scores[m] * discounts[d] + gains[m]
        scores += cnp.PyArray_STRIDE(scores_, 0) // <Py_ssize_t> sizeof(double)


cpdef calibrate(cnp.ndarray target_, cnp.ndarray mean_, cnp.ndarray variance_, cnp.ndarray extra_,
              cnp.ndarray shift_, cnp.ndarray tilt_, cnp.ndarray lean_, cnp.ndarray centre_,
              cnp.ndarray size_, cnp.ndarray scale_, cnp.ndarray likelihood_, cnp.ndarray usual_,
              cnp.ndarray freedoms_, cnp.ndarray constants_, long long count, long long lately,
              cnp.ndarray record_):
    """See `mixing.calibrate`."""
    cdef double *target = at(target_), *mean = at(mean_), *variance = at(variance_)
    cdef double *extra = at(extra_), *lean = at(lean_)
    cdef double *shift = at(shift_), *tilt = at(tilt_), *centre = at(centre_), *size = at(size_)
    cdef double *scale = at(scale_), *likelihood = at(likelihood_), *freedoms = at(freedoms_)
    cdef double *constants = at(constants_), *record = at(record_), *usual = at(usual_)
    cdef Py_ssize_t o, f, i, k = target_.shape[0]
    cdef double level, q, z, gap, own, gain, squares, free, share = fmax(0.01, 1.0 / (count + 1))
    cdef double largest = 0.0, reported
    cdef bint told
    for o in range(k):
        level = log(variance[o])
        q = clip((level - centre[o]) / size[o], -3.0, 3.0)
        gap = extra[o] * exp(2.0 * lean[o])
        reported = variance[o] * exp(2.0 * (shift[o] + tilt[o] * q)) + gap
        record[o], record[k + o] = mean[o], reported
        z = (target[o] - mean[o]) / sqrt(reported)
        largest = fmax(largest, fabs(z))
        if count > FIRST:
            told = fabs(z) > STILL
            gain = FOLLOW * ((fabs(z) > WIDTH) - 0.05) if told else 0.0
            own = 1.0 - gap / reported
            shift[o] = clip(shift[o] + gain * own, -3.0, 3.0)
            tilt[o] = clip(tilt[o] + 0.5 * gain * q * own, -1.0, 1.0)
            lean[o] = clip(lean[o] + gain * (1.0 - own), -3.0, 3.0)
            for f in range(freedoms_.shape[0] if told else 0):
                free, i = freedoms[f], f * k + o
                squares = z * z * exp(-2.0 * scale[i])
                likelihood[i] = (REMEMBERED * likelihood[i] + constants[f] - scale[i]
                                 - 0.5 * (free + 1.0) * log1p(squares / free))
                scale[i] += 0.01 * ((free + 1.0) * squares / (free + squares) - 1.0)
            usual[o] += (shift[o] - usual[o]) / min(count - FIRST, lately)
            usual[k + o] += (tilt[o] - usual[k + o]) / min(count - FIRST, lately)
            usual[2 * k + o] += (lean[o] - usual[2 * k + o]) / min(count - FIRST, lately)
        centre[o] += share * (level - centre[o])
        size[o] = fmax(0.1, size[o] + share * (1.25 * fabs(level - centre[o]) - size[o]))
    return largest


cpdef foresee(cnp.ndarray x_, cnp.ndarray mean_, cnp.ndarray last_, cnp.ndarray held_,
            cnp.ndarray plain_, cnp.ndarray informed_, cnp.ndarray centre_, cnp.ndarray scale_,
            cnp.ndarray errors_, cnp.ndarray features_, cnp.ndarray means_, cnp.ndarray variances_):
    """See `mixing.foresee`."""
    cdef double *x = at(x_), *mean = at(mean_), *last = at(last_), *held = at(held_)
    cdef double *plain = at(plain_), *informed = at(informed_), *centre = at(centre_)
    cdef double *scale = at(scale_), *features = at(features_), *means = at(means_)
    cdef double *errors = at(errors_), *variances = at(variances_)
    cdef Py_ssize_t i, o, inputs = x_.shape[0], k = mean_.shape[0], lags = held_.shape[0]
    cdef double without, total
    for i in range(inputs):
        features[i] = x[i]
    features[inputs] = 1.0
    for i in range(lags * k):
        o = i % k
        features[inputs + 1 + i] = clip((held[i] - centre[o]) / scale[o], -1e3, 1e3)
    for o in range(k):
        without, total = 0.0, 0.0
        for i in range(inputs + 1):
            without += features[i] * plain[i * k + o]
        for i in range(inputs + 1 + lags * k):
            total += features[i] * informed[i * k + o]
        means[o], means[k + o] = mean[o], last[o]
        means[2 * k + o] = centre[o] + without * scale[o]
        means[3 * k + o] = centre[o] + total * scale[o]
    for i in range(4 * k):
        variances[i] = fmax(errors[i], LEAST_VARIANCE)


cpdef average(cnp.ndarray y_, cnp.ndarray means_, cnp.ndarray errors_, cnp.ndarray mean_,
            cnp.ndarray last_, cnp.ndarray held_, cnp.ndarray centre_, cnp.ndarray scale_,
            cnp.ndarray targets_, long long count, long long window, double counts, double guard,
            double largest):
    """See `mixing.average`."""
    cdef double *y = at(y_), *means = at(means_), *errors = at(errors_), *mean = at(mean_)
    cdef double *last = at(last_), *held = at(held_), *targets = at(targets_)
    cdef double *centre = at(centre_), *scale = at(scale_)
    cdef Py_ssize_t i, o, e, k = y_.shape[0], lags = held_.shape[0]
    cdef double error, bounded, reach, first, share = counts / min(count + 1, window)
    for o in range(k):
        first = y[o]
        for i in range(means_.shape[0]):
            e = i * k + o
            error, bounded = y[o] - means[e], y[o]
            error *= error
            if count > 5 and errors[e] > 0.0:
                error = fmin(error, largest * errors[e])
            if guard > 0.0:
                reach = guard * sqrt(errors[e])
                bounded = clip(y[o], means[e] - reach, means[e] + reach)
            if i == 0:
                first = bounded
            elif i > 1:
                targets[e - 2 * k] = (bounded - centre[o]) / scale[o]
            errors[e] += share * (error - errors[e])
        mean[o] += counts * (first - mean[o]) / (count + 1)
        last[o] = y[o] if counts >= 1.0 else last[o] + counts * (y[o] - last[o])
        if not guard > 0.0:
            for i in range(lags - 1, 0, -1):
                held[i * k + o] = last[o] if count == 0 else held[(i - 1) * k + o]
            held[o] = last[o]


cpdef keep(cnp.ndarray x_, cnp.ndarray y_, bint odd, double weight, extra_, Py_ssize_t place,
         cnp.ndarray inputs_, cnp.ndarray marked_):
    """See `mixing.keep`."""
    cdef Py_ssize_t i, p = x_.shape[0], k = y_.shape[0]
    cdef double *x = at(x_), *y = at(y_), *extra = NULL
    cdef double *row = at(inputs_) + place * p, *marked = at(marked_) + place * (2 * k + 2)
    if extra_ is not None:
        extra = at(extra_)
    for i in range(p):
        row[i] = x[i]
    for i in range(k):
        marked[i], marked[k + 2 + i] = y[i], 0.0 if extra is NULL else extra[i]
    marked[k], marked[k + 1] = odd, weight


cpdef near(cnp.ndarray inputs_, cnp.ndarray marked_, long long seen, long long count,
           cnp.ndarray centre_, cnp.ndarray reach_, cnp.ndarray target_centre_,
           cnp.ndarray target_reach_):
    """See `mixing.near`."""
    cdef double *inputs = at(inputs_), *marked = at(marked_), *centre = at(centre_)
    cdef double *reach = at(reach_), *target_centre = at(target_centre_)
    cdef double *target_reach = at(target_reach_), *row
    cdef Py_ssize_t d, o, place, p = inputs_.shape[1], k = target_centre_.shape[0], outside, rows
    cdef long long i
    for d in range(p):
        outside, rows = 0, 0
        for i in range(seen - count, seen):
            place = i % inputs_.shape[0]
            row = marked + place * marked_.shape[1]
            if row[k] != 0.0:
                continue
            rows += 1
            outside += fabs(inputs[place * p + d] - centre[d]) > reach[d]
            for o in range(k if d == 0 else 0):
                if not fabs(row[o] - target_centre[o]) <= target_reach[o]:
                    return False
        if 2 * outside >= rows:
            return False
    return True


cpdef least_squares(cnp.ndarray P_, cnp.ndarray w_, cnp.ndarray h_, cnp.ndarray y_,
                  cnp.ndarray gain_, double forgetting, double largest):
    """See `mixing.least_squares`."""
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
