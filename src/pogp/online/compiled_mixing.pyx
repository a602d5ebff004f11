# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The arithmetic of `OnlineGP` on small arrays, compiled: the twin of `mixing.py`."""

import numpy as np

from libc.math cimport HUGE_VAL, exp, fabs, fmax, fmin, isfinite, log, log1p, sqrt

from pogp.online.mixing import CARRY as KEPT, DOUBT as DOUBTED, FOLLOW as FOLLOWED
from pogp.online.mixing import FIRST as BEFORE, FREEDOM as FREE, REMEMBERED as KEPT_LONG
from pogp.online.mixing import WIDTH as WIDE

cdef double CARRY = KEPT, DOUBT = DOUBTED, FOLLOW = FOLLOWED, FREEDOM = FREE, WIDTH = WIDE
cdef double REMEMBERED = KEPT_LONG
cdef long long FIRST = BEFORE


cdef inline double clip(double value, double lower, double upper) noexcept nogil:
    return fmin(fmax(value, lower), upper)


def scale(const double[:] x, const double[:] centre, const double[:] inverse, double far,
          double[:] out):
    """See `mixing.scale`."""
    cdef Py_ssize_t d
    cdef double value
    for d in range(x.shape[0]):
        value = (x[d] - centre[d]) * inverse[d]
        if value > far:
            value = far + log1p(value - far)
        elif value < -far:
            value = -far - log1p(-value - far)
        out[d] = value


def correct(const double[:, :] mean, const double[:] latent, const double[:] factor, double noise,
            double extra, const double[:, :] product, const double[:, :] square,
            const double[:, :] residual, const double[:, :] narrow, const double[:] centre,
            const double[:] scale, double[:] variance, double[:, :] corrected, double[:, :] means,
            double[:, :] variances):
    """See `mixing.correct`."""
    cdef Py_ssize_t b, o, count = mean.shape[0], outputs = mean.shape[1]
    cdef double reach, returns, total
    for b in range(count):
        variance[b] = latent[b] + factor[b] * noise + extra
        reach = 3.0 * sqrt(variance[b])
        for o in range(outputs):
            returns = clip(product[b, o] / (square[b, o] + DOUBT), -1.0, 1.0)
            corrected[b, o] = mean[b, o] + returns * clip(residual[b, o], -reach, reach)
            total = variance[b] * (scale[o] * scale[o])
            means[b, o] = centre[o] + mean[b, o] * scale[o]
            means[count + b, o] = centre[o] + corrected[b, o] * scale[o]
            variances[b, o] = total
            variances[count + b, o] = total * narrow[b, o]


def take(const double[:] y, const double[:] centre, const double[:] scale,
         const double[:, :] mean, const double[:] variance, const double[:, :] corrected,
         double[:, :] product, double[:, :] square, double[:, :] residual, double[:, :] unit,
         double[:, :] narrow, const double[:] factor, double noise, double extra, double kept,
         double guard, double[:] target, double[:] noises, double[:] squares):
    """See `mixing.take`."""
    cdef Py_ssize_t b, o, outputs = mean.shape[1]
    cdef double error, z, misfit, largest, total, now
    for o in range(outputs):
        target[o] = (y[o] - centre[o]) / scale[o]
    for b in range(mean.shape[0]):
        largest, total = 0.0, 0.0
        noises[b] = factor[b] * noise + extra
        for o in range(outputs):
            error = target[o] - mean[b, o]
            z = error / sqrt(variance[b])
            misfit = target[o] - corrected[b, o]
            misfit = misfit * misfit / (variance[b] * narrow[b, o])
            narrow[b, o] = clip(narrow[b, o] * exp(FOLLOW * (fmin(misfit, 9.0) - 1.0)), 0.01, 10.0)
            total += fmin(z * z, 9.0)
            largest = fmax(largest, fabs(z))
            if guard > 0.0:
                unit[b, o], residual[b, o] = 0.0, 0.0
                continue
            now = clip(z, -4.0, 4.0)
            product[b, o] = product[b, o] * CARRY + now * unit[b, o]
            square[b, o] = square[b, o] * CARRY + unit[b, o] * unit[b, o]
            unit[b, o], residual[b, o] = now, kept * error
        squares[b] = total / outputs
        if guard > 0.0:
            noises[b] += fmax(largest / guard - 1.0, 0.0) * variance[b]


def surprise(const double[:] y, const double[:] centre, const double[:] scale,
             const double[:, :] mean, const double[:] variance):
    """See `mixing.surprise`."""
    cdef Py_ssize_t b, o
    cdef double largest, least = HUGE_VAL
    for b in range(mean.shape[0]):
        largest = 0.0
        for o in range(y.shape[0]):
            largest = fmax(largest, fabs((y[o] - centre[o]) / scale[o] - mean[b, o]))
        least = fmin(least, largest / sqrt(variance[b]))
    return least


def follow(double[:] factor, const double[:] squares, const double[:] variance, double noise,
           double least):
    """See `mixing.follow`."""
    cdef Py_ssize_t b
    cdef double excess, share
    for b in range(factor.shape[0]):
        excess = squares[b] - 1.0
        share = 1.0 if excess > 0.0 else factor[b] * noise / variance[b]
        factor[b] = clip(factor[b] * exp(FOLLOW * excess * share), least, 1e6)


def combine(const double[:, :, :] scores, const double[:, :] outer_scores,
            const double[:, :] means, const double[:, :] variances, double[:, :] level_means,
            double[:, :] level_variances, double[:, :] weights, double[:] mean,
            double[:] variance):
    """See `mixing.combine`."""
    cdef Py_ssize_t d, m, o, levels = scores.shape[0], members = scores.shape[1]
    cdef double top, total, weight, outer_top, outer_total, difference
    weights[:, :] = 0.0
    for o in range(scores.shape[2]):
        outer_top, outer_total = -HUGE_VAL, 0.0
        for d in range(levels):
            outer_top = fmax(outer_top, outer_scores[d, o])
        for d in range(levels):
            outer_total += exp(outer_scores[d, o] - outer_top)
        mean[o], variance[o] = 0.0, 0.0
        for d in range(levels):
            top, total = -HUGE_VAL, 0.0
            level_means[d, o], level_variances[d, o] = 0.0, 0.0
            for m in range(members):
                top = fmax(top, scores[d, m, o])
            for m in range(members):
                total += exp(scores[d, m, o] - top)
            for m in range(members):
                weight = exp(scores[d, m, o] - top) / total
                level_means[d, o] += weight * means[m, o]
                weights[m, o] += exp(outer_scores[d, o] - outer_top) / outer_total * weight
            for m in range(members):
                weight = exp(scores[d, m, o] - top) / total
                difference = means[m, o] - level_means[d, o]
                level_variances[d, o] += weight * (variances[m, o] + difference * difference)
            mean[o] += exp(outer_scores[d, o] - outer_top) / outer_total * level_means[d, o]
        for d in range(levels):
            difference = level_means[d, o] - mean[o]
            variance[o] += (exp(outer_scores[d, o] - outer_top) / outer_total
                            * (level_variances[d, o] + difference * difference))


def densities(const double[:] target, const double[:, :] means, const double[:, :] variances,
              double[:, :] out):
    """See `mixing.densities`."""
    cdef Py_ssize_t m, o
    cdef double difference
    for m in range(means.shape[0]):
        for o in range(means.shape[1]):
            difference = target[o] - means[m, o]
            out[m, o] = (-0.5 * log(variances[m, o]) - 0.5 * (FREEDOM + 1.0)
                         * log1p(difference * difference / variances[m, o] / FREEDOM))


def discount(double[:, :, :] scores, const double[:] discounts, const double[:, :] gains):
    """See `mixing.discount`."""
    cdef Py_ssize_t d, m, o, members = gains.shape[0]
    cdef double top, total, result = 0.0
    for o in range(gains.shape[1]):
        top, total = -HUGE_VAL, 0.0
        for m in range(members):
            top = fmax(top, gains[m, o])
        for m in range(members):
            total += exp(gains[m, o] - top)
            for d in range(scores.shape[0]):
                scores[d, m, o] = scores[d, m, o] * discounts[d] + gains[m, o]
        result += top + log(total / members)
    return result


def calibrate(const double[:] target, const double[:] mean, const double[:] variance,
              double[:] shift, double[:] tilt, double[:] centre, double[:] size,
              double[:, :] scale, double[:, :] likelihood, const double[:] freedoms,
              const double[:] constants, long long count, double[:] reported, double[:] out):
    """See `mixing.calibrate`."""
    cdef Py_ssize_t o, f
    cdef double level, q, gain, squares, free, share = fmax(0.01, 1.0 / (count + 1))
    for o in range(target.shape[0]):
        level = log(variance[o])
        q = clip((level - centre[o]) / size[o], -3.0, 3.0)
        reported[o] = variance[o] * exp(2.0 * (shift[o] + tilt[o] * q))
        out[o] = (target[o] - mean[o]) / sqrt(reported[o])
        if count > FIRST:
            gain = FOLLOW * ((fabs(out[o]) > WIDTH) - 0.05)
            shift[o] = clip(shift[o] + gain, -3.0, 3.0)
            tilt[o] = clip(tilt[o] + 0.5 * gain * q, -1.0, 1.0)
            for f in range(freedoms.shape[0]):
                free = freedoms[f]
                squares = out[o] * out[o] * exp(-2.0 * scale[f, o])
                likelihood[f, o] = (REMEMBERED * likelihood[f, o] + constants[f] - scale[f, o]
                                    - 0.5 * (free + 1.0) * log1p(squares / free))
                scale[f, o] += 0.01 * ((free + 1.0) * squares / (free + squares) - 1.0)
        centre[o] += share * (level - centre[o])
        size[o] = fmax(0.1, size[o] + share * (1.25 * fabs(level - centre[o]) - size[o]))


def foresee(const double[:] x, const double[:] mean, const double[:] last,
            const double[:] held, const double[:, :] plain, const double[:, :] informed, const double[:] centre,
            const double[:] scale, double[:] features, double[:, :] means):
    """See `mixing.foresee`."""
    cdef Py_ssize_t i, o, inputs = x.shape[0], outputs = mean.shape[0]
    cdef double without, total
    for i in range(inputs):
        features[i] = x[i]
    features[inputs] = 1.0
    for o in range(outputs):
        features[inputs + 1 + o] = clip((held[o] - centre[o]) / scale[o], -1e3, 1e3)
    for o in range(outputs):
        without, total = 0.0, 0.0
        for i in range(inputs + 1):
            without += features[i] * plain[i, o]
        for i in range(inputs + 1 + outputs):
            total += features[i] * informed[i, o]
        means[0, o], means[1, o] = mean[o], last[o]
        means[2, o] = centre[o] + without * scale[o]
        means[3, o] = centre[o] + total * scale[o]


def average(const double[:] y, const double[:, :] means, double[:, :] errors, double[:] mean,
            double[:] last, double[:] held, double[:, :] targets, long long count,
            long long window, double counts, double guard, double largest):
    """See `mixing.average`."""
    cdef Py_ssize_t i, o
    cdef double error, bounded, reach, first, share = counts / min(count + 1, window)
    for o in range(y.shape[0]):
        first = y[o]
        for i in range(means.shape[0]):
            error, bounded = y[o] - means[i, o], y[o]
            error *= error
            if count > 5 and errors[i, o] > 0.0:
                error = fmin(error, largest * errors[i, o])
            if guard > 0.0:
                reach = guard * sqrt(errors[i, o])
                bounded = clip(y[o], means[i, o] - reach, means[i, o] + reach)
            if i == 0:
                first = bounded
            elif i > 1:
                targets[i - 2, o] = bounded
            errors[i, o] += share * (error - errors[i, o])
        mean[o] += counts * (first - mean[o]) / (count + 1)
        last[o] = y[o] if counts >= 1.0 else last[o] + counts * (y[o] - last[o])
        if not guard > 0.0:
            held[o] = last[o]


def least_squares(double[:, ::1] P, double[:, ::1] w, const double[:] h, const double[:] y,
                  double forgetting, double largest):
    """See `mixing.least_squares`."""
    cdef Py_ssize_t i, j, o, n = P.shape[0], outputs = w.shape[1]
    cdef double q = 0.0, error, biggest = -HUGE_VAL, smallest = HUGE_VAL
    cdef double[::1] g = np.zeros(n)
    cdef bint finite = True
    for i in range(n):
        for j in range(n):
            g[i] += P[i, j] * h[j]
        q += h[i] * g[i]
    q = forgetting + fmax(q, 0.0)
    for o in range(outputs):
        error = y[o]
        for i in range(n):
            error -= h[i] * w[i, o]
        for i in range(n):
            w[i, o] += g[i] * (error / q)
            finite = finite and isfinite(w[i, o])
    for i in range(n):
        for j in range(n):
            P[i, j] -= g[i] * (g[j] / q)
        biggest, smallest = fmax(biggest, P[i, i]), fmin(smallest, P[i, i])
    if smallest <= 0.0 or not finite:
        return False
    if biggest < largest:
        for i in range(n):
            for j in range(n):
                P[i, j] /= forgetting
    return True
