# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The work of one sample for a group and for an ensemble, compiled: the twin of `steps.py`.

A product with a large matrix evicts everything else from the cache, so that Python code between two
such products is slower than usual. The common cases are implemented here; rare cases call the methods
of the objects that own the arrays.
"""

import numpy as np

cimport numpy as cnp

from libc.math cimport fmin

from pogp.online.compiled_arithmetic cimport (
    at, calibrate, combine, least_squares, predict_members, predict_simple, scale_input, score, surprise,
    update_beliefs, update_simple,
)

from pogp.online import band, scales, simple_predictors
from pogp.online.mixture import DISCOUNTS, OUTER

cnp.import_array()

cdef object FREEDOMS = band.FREEDOMS, LOG_CONSTANTS = band.LOG_CONSTANTS
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

    cpdef predict(self, cnp.ndarray scaled, extra, double weight, cnp.ndarray means,
                  cnp.ndarray variances):
        """See `steps.GroupStep.predict`."""
        cdef cnp.ndarray latent
        self.mean, latent = self.core.glance(scaled)
        self.weight = weight
        self.extra = 0.0 if extra is None else float(np.mean(extra / self.unit**2))
        predict_members(self.mean, latent, self.noise_factor, self.noise / weight, self.extra,
                        self.lag_product, self.lag_square, self.residual, self.corrected_factor,
                        self.centre, self.unit, self.variance, self.corrected, means, variances)

    def surprise(self, cnp.ndarray y):
        """See `steps.GroupStep.surprise`."""
        return surprise(y, self.centre, self.unit, self.mean, self.variance)

    def learn(self, cnp.ndarray y, long long position, double bound, bint stopped=False):
        """See `steps.GroupStep.learn`."""
        cdef Py_ssize_t lead = self.core.lead
        cdef cnp.ndarray corrected_factor = self.corrected_factor, noise_factor = self.noise_factor
        if stopped:
            corrected_factor, noise_factor = corrected_factor.copy(), noise_factor.copy()
        cdef double noise = at(self.noise_factor)[lead] * self.noise
        update_beliefs(y, self.centre, self.unit, self.mean, self.variance, self.corrected,
                       self.lag_product, self.lag_square, self.residual, self.last_z,
                       corrected_factor, noise_factor, self.noise / self.weight, self.extra,
                       fmin(self.weight, 1.0), bound, self.least_factor, self.target, self.noises)
        return self.core.observe(self.criterion, self.target, self.noises, noise, position,
                                 self.max_size)


cdef class EnsembleStep:
    """One sample of an ensemble: see `steps.EnsembleStep`."""

    cdef object predictors, band, scales, linear, linear_with_last
    cdef list groups, parts
    cdef tuple ends
    # of all members
    cdef cnp.ndarray means, variances, gains, scores
    # of the mixtures of several discounts
    cdef cnp.ndarray level_means, level_variances, level_gains, level_scores, mean, variance
    # of the simple predictors
    cdef cnp.ndarray simple_means, simple_variances, average, last, last_ordinary, errors
    cdef cnp.ndarray features, features_with_last, targets, target, target_with_last
    cdef cnp.ndarray P, w, gain, P_with_last, w_with_last, gain_with_last
    # of the band
    cdef cnp.ndarray zeros, shift, tilt, extra_shift, band_centre, spread, tail_scale
    cdef cnp.ndarray tail_likelihood, averages
    # of the scales
    cdef cnp.ndarray centre, inverse, target_centre, unit

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
        self.last_ordinary, self.errors = predictors.last_ordinary, predictors.errors
        self.features = predictors.features
        self.features_with_last = predictors.features_with_last
        self.targets = predictors.targets
        self.target, self.target_with_last = predictors.targets
        self.linear, self.linear_with_last = predictors.linear
        self.P, self.w, self.gain = self.linear.P, self.linear.w, self.linear.gain
        self.P_with_last, self.w_with_last = self.linear_with_last.P, self.linear_with_last.w
        self.gain_with_last = self.linear_with_last.gain
        self.zeros = np.zeros(ensemble.outputs)
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
            scale_input(x, self.centre, self.inverse, FAR, scaled)
            predict_simple(scaled, self.average, self.last, self.last_ordinary, self.w,
                           self.w_with_last, self.target_centre, self.unit, self.errors,
                           self.features_with_last, self.simple_means, self.simple_variances)
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

    def learn(self, cnp.ndarray y, double bound, double weight):
        """See `steps.EnsembleStep.learn`."""
        if self.scales is None or weight != 1.0:
            self.predictors.learn(y, self.simple_means, self.scales, bound, weight)
            return
        update_simple(y, self.simple_means, self.errors, self.average, self.last,
                      self.last_ordinary, self.target_centre, self.unit, self.targets,
                      self.predictors.count, WINDOW, 1.0, bound, LARGEST_RATIO)
        self.predictors.count += 1
        if not least_squares(self.P, self.w, self.features, self.target, self.gain, FORGETTING,
                             LARGEST_VARIANCE):
            self.linear.reset()
        if not least_squares(self.P_with_last, self.w_with_last, self.features_with_last,
                             self.target_with_last, self.gain_with_last, FORGETTING,
                             LARGEST_VARIANCE):
            self.linear_with_last.reset()
