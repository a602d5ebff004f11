# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The work of one sample for a group and for an ensemble, compiled: the twin of `steps.py`.

A product with a large matrix evicts everything else from the cache, so that Python code between two
such products is slower than usual. The common cases are implemented here; rare cases call the methods
of the objects that own the arrays.
"""

import numpy as np

cimport numpy as cnp

from libc.math cimport HUGE_VAL, exp, fabs, fmax, fmin, sqrt

from pogp.online.compiled_arithmetic cimport (
    at, calibrate, clip, combine, least_squares, predict_simple, scale_input, score, update_simple,
)

from pogp.online import arithmetic, band, scales, simple_predictors
from pogp.online.mixture import DISCOUNTS, OUTER

cnp.import_array()

cdef object FREEDOMS = band.FREEDOMS, LOG_CONSTANTS = band.LOG_CONSTANTS
cdef double RATE = arithmetic.RATE, LAG_DISCOUNT = arithmetic.LAG_DISCOUNT
cdef double PRIOR_COUNT = arithmetic.PRIOR_COUNT
cdef long long AVERAGED = band.AVERAGED, WINDOW = simple_predictors.WINDOW
cdef double FORGETTING = simple_predictors.FORGETTING, FAR = scales.FAR
cdef double LARGEST_RATIO = simple_predictors.LARGEST_RATIO
cdef double LARGEST_VARIANCE = simple_predictors.LARGEST_VARIANCE


cdef class GroupStep:
    """One sample of a group: see `steps.GroupStep`."""

    cdef object core, criterion
    cdef cnp.ndarray noise_factor, corrected_factor, lag_product, lag_square, residual, last_z
    cdef cnp.ndarray centre, unit, mean, corrected, variance, noises, target
    cdef double noise, least_factor, weight, extra
    cdef Py_ssize_t max_size

    def __init__(self, group):
        beliefs, outputs = group.residual.shape
        self.core, self.criterion, self.max_size = group.core, group.criterion, group.max_size
        self.noise, self.least_factor = group.noise, group.least_factor
        self.noise_factor, self.corrected_factor = group.noise_factor, group.corrected_factor
        self.lag_product, self.lag_square = group.lag_product, group.lag_square
        self.residual, self.last_z = group.residual, group.last_z
        self.centre, self.unit = group.scales.target_centre, group.scales.unit
        self.mean, self.corrected = np.zeros((2, beliefs, outputs))
        self.variance, self.noises = np.ones((2, beliefs))
        self.target = np.zeros(outputs)
        self.weight, self.extra = 1.0, 0.0

    cpdef predict(self, cnp.ndarray scaled, extra, double weight, cnp.ndarray means_,
                  cnp.ndarray variances_):
        """See `steps.GroupStep.predict`."""
        cdef cnp.ndarray latent_
        self.mean, latent_ = self.core.predict_input(scaled)
        self.weight = weight
        self.extra = 0.0 if extra is None else float(np.mean(extra / self.unit**2))
        cdef double *mean = at(self.mean), *latent = at(latent_), *variance = at(self.variance)
        cdef double *lag_product = at(self.lag_product), *lag_square = at(self.lag_square)
        cdef double *residual = at(self.residual), *corrected = at(self.corrected)
        cdef double *noise_factor = at(self.noise_factor), *factor = at(self.corrected_factor)
        cdef double *centre = at(self.centre), *unit = at(self.unit)
        cdef double *means = at(means_), *variances = at(variances_)
        cdef Py_ssize_t b, o, i, beliefs = self.mean.shape[0], k = self.mean.shape[1]
        cdef double reach, rho, own, total, noise = self.noise / weight
        for b in range(beliefs):
            own = latent[b] + noise_factor[b] * noise
            variance[b] = own + self.extra
            reach = 3.0 * sqrt(own)
            for o in range(k):
                i = b * k + o
                rho = clip(lag_product[i] / (lag_square[i] + PRIOR_COUNT), -1.0, 1.0)
                corrected[i] = mean[i] + rho * clip(residual[i], -reach, reach)
                total = own * (unit[o] * unit[o])
                means[i] = centre[o] + mean[i] * unit[o]
                means[beliefs * k + i] = centre[o] + corrected[i] * unit[o]
                variances[i] = total
                variances[beliefs * k + i] = total * factor[i]

    def surprise(self, cnp.ndarray y_):
        """See `steps.GroupStep.surprise`."""
        cdef double *y = at(y_), *centre = at(self.centre), *unit = at(self.unit)
        cdef double *mean = at(self.mean), *variance = at(self.variance)
        cdef Py_ssize_t b, o, k = y_.shape[0]
        cdef double largest, least = HUGE_VAL
        for b in range(self.mean.shape[0]):
            largest = 0.0
            for o in range(k):
                largest = fmax(largest, fabs((y[o] - centre[o]) / unit[o] - mean[b * k + o]))
            least = fmin(least, largest / sqrt(variance[b]))
        return least

    def learn(self, cnp.ndarray y_, long long position, double bound, bint stopped=False):
        """See `steps.GroupStep.learn`."""
        cdef Py_ssize_t b, o, i, k = y_.shape[0]
        cdef double *y = at(y_), *centre = at(self.centre), *unit = at(self.unit)
        cdef double *mean = at(self.mean), *variance = at(self.variance)
        cdef double *noise_factor = at(self.noise_factor), *noises = at(self.noises)
        cdef double *target = at(self.target)
        cdef double error, z, largest, squares, least = HUGE_VAL
        for o in range(k):
            target[o] = (y[o] - centre[o]) / unit[o]
        for b in range(self.mean.shape[0]):
            largest, squares, least = 0.0, 0.0, fmin(least, noise_factor[b])
            noises[b] = noise_factor[b] * (self.noise / self.weight) + self.extra
            for o in range(k):
                i = b * k + o
                error = target[o] - mean[i]
                z = error / sqrt(variance[b])
                squares += fmin(z * z, 9.0)
                largest = fmax(largest, fabs(z))
                if not stopped:
                    self._follow_corrected(i, target[o], variance[b])
                self._remember(i, error, clip(z, -4.0, 4.0), bound > 0.0)
            if bound > 0.0:
                noises[b] += fmax(largest / bound - 1.0, 0.0) * variance[b]
            if not stopped:
                noise_factor[b] = self._followed(noise_factor[b], squares / k, variance[b])
        return self.core.learn_target(self.criterion, self.target, self.noises, least * self.noise,
                                 position, self.max_size)

    cdef int _follow_corrected(self, Py_ssize_t i, double target, double variance) except -1:
        """Update the factor of the variance of one corrected member."""
        cdef double *factor = at(self.corrected_factor)
        cdef double square = target - at(self.corrected)[i]
        cdef double own = (variance - self.extra) * factor[i]
        square = square * square / (own + self.extra)
        square = (fmin(square, 9.0) - 1.0) * (own / (own + self.extra))
        factor[i] = clip(factor[i] * exp(RATE * square), 0.01, 10.0)
        return 0

    cdef int _remember(self, Py_ssize_t i, double error, double z, bint outlier) except -1:
        """See `steps.GroupStep._remember`; an outlier has no residual that recurs."""
        cdef double *lag_product = at(self.lag_product), *lag_square = at(self.lag_square)
        cdef double *residual = at(self.residual), *last_z = at(self.last_z)
        if outlier:
            last_z[i], residual[i] = 0.0, 0.0
            return 0
        lag_product[i] = lag_product[i] * LAG_DISCOUNT + z * last_z[i]
        lag_square[i] = lag_square[i] * LAG_DISCOUNT + last_z[i] * last_z[i]
        last_z[i], residual[i] = z, fmin(self.weight, 1.0) * error
        return 0

    cdef double _followed(self, double factor, double square, double variance) noexcept nogil:
        """Return the noise factor after an error; see `steps.GroupStep._follow`."""
        cdef double excess = square - 1.0, noise = self.noise / self.weight
        cdef double share = (variance - self.extra if excess > 0.0 else factor * noise) / variance
        return clip(factor * exp(RATE * excess * share), self.least_factor, 1e6)


cdef class EnsembleStep:
    """One sample of an ensemble: see `steps.EnsembleStep`."""

    cdef object predictors, band, scales, linear, linear_with_lags
    cdef list groups, parts
    cdef tuple ends
    # of all members
    cdef cnp.ndarray means, variances, gains, scores
    # of the mixtures of several discounts
    cdef cnp.ndarray level_means, level_variances, level_gains, level_scores, mean, variance
    # of the simple predictors
    cdef cnp.ndarray simple_means, simple_variances, average, last, lags, errors
    cdef cnp.ndarray features, features_with_lags, targets, target, target_with_lags
    cdef cnp.ndarray P, w, gain, P_with_lags, w_with_lags, gain_with_lags
    # of the band
    cdef cnp.ndarray zeros, shift, tilt, extra_shift, band_centre, spread, tail_scale
    cdef cnp.ndarray tail_likelihood, averages
    # of the scales
    cdef cnp.ndarray centre, inverse, target_centre, unit
    cdef readonly bint far

    def __init__(self, ensemble):
        predictors, mixture, band = ensemble.predictors, ensemble.mixture, ensemble.band
        self.predictors, self.band, self.scales = predictors, band, ensemble.scales
        self.groups, self.ends = ensemble.groups, ensemble.ends
        self.means, self.variances = ensemble.means, ensemble.variances
        self.gains, self.scores = ensemble.gains, ensemble.scores
        self.parts = [(self.means[rows], self.variances[rows]) for rows in ensemble.parts]
        self.level_means, self.level_variances, self.level_gains = mixture.levels
        self.level_scores, (self.mean, self.variance) = mixture.scores[None], mixture.combined
        self.simple_means, self.simple_variances = self.parts[0]
        self.average, self.last = predictors.mean, predictors.last
        self.lags, self.errors = predictors.lags, predictors.errors
        self.features = predictors.features
        self.features_with_lags = predictors.features_with_lags
        self.targets = predictors.targets
        self.target, self.target_with_lags = predictors.targets
        self.linear, self.linear_with_lags = predictors.linear
        self.P, self.w, self.gain = self.linear.P, self.linear.w, self.linear.gain
        self.P_with_lags, self.w_with_lags = self.linear_with_lags.P, self.linear_with_lags.w
        self.gain_with_lags = self.linear_with_lags.gain
        self.zeros, self.far = np.zeros(ensemble.outputs), False
        self.shift, self.tilt, self.extra_shift = band.shift, band.tilt, band.extra_shift
        self.band_centre, self.spread, self.tail_scale = band.centre, band.spread, band.tail_scale
        self.tail_likelihood, self.averages = band.tail_likelihood, band.averages
        if self.scales is not None:
            self.centre, self.inverse = self.scales.centre, self.scales.inverse
            self.target_centre, self.unit = self.scales.target_centre, self.scales.unit

    def predict(self, cnp.ndarray x, extra, double weight, double more_noise):
        """See `steps.EnsembleStep.predict`."""
        cdef cnp.ndarray scaled = x
        cdef cnp.npy_intp size = x.shape[0]
        cdef Py_ssize_t i
        if self.scales is None:
            self.predictors.predict_one(x, None, self.simple_means, self.simple_variances)
        else:
            scaled = cnp.PyArray_EMPTY(1, &size, cnp.NPY_DOUBLE, 0)
            self.far = scale_input(x, self.centre, self.inverse, FAR, scaled)
            straight = self.scales.straight(x) if self.far else scaled
            predict_simple(straight, self.average, self.last, self.lags, self.w,
                           self.w_with_lags, self.target_centre, self.unit, self.errors,
                           self.features_with_lags, self.simple_means, self.simple_variances)
        if more_noise > 0.0:
            self.simple_variances += more_noise
        for i in range(len(self.groups)):
            group, (means, variances) = self.groups[i], self.parts[i + 1]
            own = scaled if group.scales is self.scales else group.scales.input(x)
            (<GroupStep> group.step).predict(own, extra, weight, means, variances)

    def score(self, cnp.ndarray y, cnp.ndarray scores, gaps, cnp.ndarray record, bint stopped=False):
        """See `steps.EnsembleStep.score`."""
        cdef cnp.ndarray mean = self.mean, variance = self.variance, extra = self.zeros
        cdef Py_ssize_t i
        self._combine(scores)
        if gaps is not None:
            mean, variance, extra = mean + gaps.shift, variance.copy(), gaps.variance
            self.means[self.ends[0]:] += gaps.shift
            self.variances[self.ends[0]:] += extra
            self._combine(scores)
        if stopped:
            error = self.band.learn(y, mean, variance, extra, record, True)
        else:
            error = calibrate(y, mean, variance, extra, self.shift, self.tilt, self.extra_shift,
                              self.band_centre, self.spread, self.tail_scale, self.tail_likelihood,
                              self.averages, FREEDOMS, LOG_CONSTANTS, self.band.count, AVERAGED,
                              record)
            self.band.count += 1
        score(y, self.level_means, self.level_variances, OUTER, (), self.level_gains,
              self.level_scores)
        gains = score(y, self.means, self.variances, DISCOUNTS, self.ends, self.gains, self.scores)
        for i in range(len(self.groups)):
            self.groups[i].race_score += gains[i + 1]
        return error

    cdef _combine(self, cnp.ndarray scores):
        combine(scores, self.level_scores, self.means, self.variances, self.level_means,
                self.level_variances, self.mean, self.variance)

    def learn(self, cnp.ndarray y, double bound, double weight, bint far=False):
        """See `steps.EnsembleStep.learn`."""
        if (self.scales is None or weight != 1.0 or bound > 0.0 or far
                or self.predictors.left_out):
            self.predictors.learn(y, self.simple_means, self.scales, bound, weight, far)
            return
        update_simple(y, self.simple_means, self.errors, self.average, self.last,
                      self.lags, self.target_centre, self.unit, self.targets,
                      self.predictors.count, WINDOW, 1.0, 0.0, LARGEST_RATIO)
        self.predictors.count += 1
        if not least_squares(self.P, self.w, self.features, self.target, self.gain, FORGETTING,
                             LARGEST_VARIANCE):
            self.linear.reset()
        if not least_squares(self.P_with_lags, self.w_with_lags, self.features_with_lags,
                             self.target_with_lags, self.gain_with_lags, FORGETTING,
                             LARGEST_VARIANCE):
            self.linear_with_lags.reset()
