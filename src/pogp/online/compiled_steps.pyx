# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""One sample of a stream and of its groups, compiled: the twin of `steps.py`.

After each product with a large matrix the cache has nothing else in it, so that Python between two of
them takes longer than it does by itself. Here is what all samples need; rare cases are left to those who
hold the arrays.
"""

import numpy as np

cimport numpy as cnp

from libc.math cimport fmin

from pogp.online.compiled_mixing cimport (
    at, average, calibrate, combine, correct, foresee, least_squares, scale, score, surprise, take,
)

from pogp.online.band import CONSTANTS, FREEDOMS, LATELY as MANY
from pogp.online.experts import FORGETTING as FORGOTTEN, LARGEST as MOST, OUTLIER as OUTLYING
from pogp.online.experts import WINDOW as AVERAGED
from pogp.online.mixture import DISCOUNTS, OUTER
from pogp.online.scales import FAR as FURTHER

cnp.import_array()

cdef long long LATELY = MANY, WINDOW = AVERAGED
cdef double FORGETTING = FORGOTTEN, LARGEST = MOST, OUTLIER = OUTLYING, FAR = FURTHER


cdef class GroupStep:
    """What a group does with one sample."""

    cdef object core, criterion
    cdef cnp.ndarray factor, product, square, residual, unit, narrow, centre, unit_of_y
    cdef cnp.ndarray mean, corrected, variance, noises, target
    cdef double noise, least, weight, extra
    cdef Py_ssize_t max_size

    def __init__(self, group):
        beliefs, outputs = group.narrow.shape
        self.core, self.criterion, self.max_size = group.core, group.criterion, group.max_size
        self.noise, self.least = group.noise, group.least
        self.factor, self.narrow, self.residual = group.factor, group.narrow, group.residual
        self.product, self.square, self.unit = group.product, group.square, group.unit
        self.centre, self.unit_of_y = group.scales.target_centre, group.scales.unit
        self.mean, self.corrected = np.zeros((2, beliefs, outputs))
        self.variance, self.noises = np.ones((2, beliefs))
        self.target = np.zeros(outputs)
        self.weight, self.extra = 1.0, 0.0

    cpdef glance(self, cnp.ndarray scaled, extra, double weight, cnp.ndarray means,
                 cnp.ndarray variances):
        """See `steps.GroupStep.glance`."""
        cdef cnp.ndarray latent
        self.mean, latent = self.core.glance(scaled)
        self.weight = weight
        self.extra = 0.0 if extra is None else float(np.mean(extra / self.unit_of_y**2))
        correct(self.mean, latent, self.factor, self.noise / weight, self.extra, self.product,
                self.square, self.residual, self.narrow, self.centre, self.unit_of_y,
                self.variance, self.corrected, means, variances)

    def surprise(self, cnp.ndarray y):
        """See `steps.GroupStep.surprise`."""
        return surprise(y, self.centre, self.unit_of_y, self.mean, self.variance)

    def learn(self, cnp.ndarray y, long long position, double guard, bint still=False):
        """See `steps.GroupStep.learn`."""
        cdef Py_ssize_t lead = self.core.lead
        cdef cnp.ndarray narrow = self.narrow, factor = self.factor
        if still:
            narrow, factor = narrow.copy(), factor.copy()
        cdef double own = at(self.factor)[lead] * self.noise
        take(y, self.centre, self.unit_of_y, self.mean, self.variance, self.corrected, self.product,
             self.square, self.residual, self.unit, narrow, factor,
             self.noise / self.weight, self.extra, fmin(self.weight, 1.0), guard, self.least,
             self.target, self.noises)
        return self.core.observe(self.criterion, self.target, self.noises, own, position,
                                 self.max_size)


cdef class StreamStep:
    """What a stream does with one sample beside what its groups learn."""

    cdef object experts, band, scales, line, informed_line
    cdef list groups, parts
    cdef tuple ends
    cdef Py_ssize_t p
    # of all members
    cdef cnp.ndarray means, variances, gains, scores
    # of the mixtures of several discounts
    cdef cnp.ndarray level_means, level_variances, level_gains, level_scores, mean, variance
    # of the simple predictors
    cdef cnp.ndarray told, told_variances, average_, last, held, errors, informed, plain, targets
    cdef cnp.ndarray target, informed_target, P, w, gain, informed_P, informed_w, informed_gain
    # of the band
    cdef cnp.ndarray none, shift, tilt, lean, band_centre, size, scale_, likelihood, usual
    # of the scales
    cdef cnp.ndarray centre, inverse, target_centre, unit

    def __init__(self, stream):
        experts, mixture, band = stream.experts, stream.mixture, stream.band
        self.experts, self.band, self.scales = experts, band, stream.scales
        self.groups, self.ends = stream.groups, stream.ends
        self.means, self.variances, self.gains = stream.means, stream.variances, stream.gains
        self.scores = stream.all_scores
        self.parts = [(self.means[rows], self.variances[rows]) for rows in stream.parts]
        self.level_means, self.level_variances, self.level_gains = mixture.levels
        self.level_scores, (self.mean, self.variance) = mixture.scores[None], mixture.told
        self.told, self.told_variances = self.parts[0]
        self.average_, self.last, self.held = experts.mean, experts.last, experts.held
        self.errors, self.informed, self.plain = experts.errors, experts.informed, experts.plain
        self.targets = experts.targets
        self.target, self.informed_target = experts.targets
        self.line, self.informed_line = experts.linear
        self.P, self.w, self.gain = self.line.P, self.line.w, self.line.gain
        self.informed_P, self.informed_w = self.informed_line.P, self.informed_line.w
        self.informed_gain = self.informed_line.gain
        self.none = np.zeros(stream.outputs)
        self.shift, self.tilt, self.lean = band.shift, band.tilt, band.lean
        self.band_centre, self.size, self.scale_ = band.centre, band.size, band.scale
        self.likelihood, self.usual = band.likelihood, band.usual
        if self.scales is not None:
            self.centre, self.inverse = self.scales.centre, self.scales.inverse
            self.target_centre, self.unit = self.scales.target_centre, self.scales.unit

    def glance(self, cnp.ndarray x, extra, double weight, double added):
        """See `steps.StreamStep.glance`."""
        cdef cnp.ndarray scaled = x
        cdef cnp.npy_intp size = x.shape[0]
        cdef Py_ssize_t i
        if self.scales is None:
            self.experts.glance(x, None, self.told, self.told_variances)
        else:
            scaled = cnp.PyArray_EMPTY(1, &size, cnp.NPY_DOUBLE, 0)
            scale(x, self.centre, self.inverse, FAR, scaled)
            foresee(scaled, self.average_, self.last, self.held, self.w, self.informed_w,
                    self.target_centre, self.unit, self.errors, self.informed, self.told,
                    self.told_variances)
        if added > 0.0:
            self.told_variances += added
        for i in range(len(self.groups)):
            group, (means, variances) = self.groups[i], self.parts[i + 1]
            own = scaled if group.scales is self.scales else group.scales.input(x)
            (<GroupStep> group.step).glance(own, extra, weight, means, variances)

    def judge(self, cnp.ndarray y, cnp.ndarray scores, gaps, cnp.ndarray record, bint still=False):
        """See `steps.StreamStep.judge`."""
        cdef cnp.ndarray mean = self.mean, variance = self.variance, extra = self.none
        cdef Py_ssize_t i
        self._combine(scores)
        if gaps is not None:
            mean, variance, extra = mean + gaps.shift, variance.copy(), gaps.variance
            self.variances[self.ends[0]:] += extra
            self._combine(scores)
        if still:
            off = self.band.learn(y, mean, variance, extra, record, True)
        else:
            off = calibrate(y, mean, variance, extra, self.shift, self.tilt, self.lean,
                            self.band_centre, self.size, self.scale_, self.likelihood, self.usual,
                            FREEDOMS, CONSTANTS, self.band.count, LATELY, record)
            self.band.count += 1
        score(y, self.level_means, self.level_variances, OUTER, (), self.level_gains,
              self.level_scores)
        gained = score(y, self.means, self.variances, DISCOUNTS, self.ends, self.gains,
                       self.scores)
        for i in range(len(self.groups)):
            self.groups[i].gained += gained[i + 1]
        return off

    cdef _combine(self, cnp.ndarray scores):
        combine(scores, self.level_scores, self.means, self.variances, self.level_means,
                self.level_variances, self.mean, self.variance)

    def learn(self, cnp.ndarray y, double guard, double weight):
        """See `steps.StreamStep.learn`."""
        if self.scales is None or weight != 1.0:
            self.experts.learn(y, self.told, self.scales, guard, weight)
            return
        average(y, self.told, self.errors, self.average_, self.last, self.held,
                self.target_centre, self.unit, self.targets, self.experts.count, WINDOW, 1.0,
                guard, OUTLIER)
        self.experts.count += 1
        if not least_squares(self.P, self.w, self.plain, self.target, self.gain, FORGETTING,
                             LARGEST):
            self.line.reset()
        if not least_squares(self.informed_P, self.informed_w, self.informed, self.informed_target,
                             self.informed_gain, FORGETTING, LARGEST):
            self.informed_line.reset()
