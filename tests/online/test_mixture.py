"""The weights of members, and calibrated bands."""

import numpy as np
import pytest
from scipy import stats

from pogp.online.band import Band
from pogp.online.mixture import DISCOUNTS, OUTER, Mixture

from ..conftest import assert_same_state

OUTPUTS = 2


def members(seed, count=5):
    rng = np.random.default_rng(seed)
    scores = 3 * rng.normal(size=(len(DISCOUNTS), count, OUTPUTS))
    means, variances = rng.normal(size=(2, count, OUTPUTS))
    return scores, means, np.exp(variances)


def test_the_mixture_is_that_of_the_definition(backend):
    mixture = Mixture(OUTPUTS)
    mixture.scores = np.random.default_rng(1).normal(size=mixture.scores.shape)
    scores, means, variances = members(0)
    mean, variance = mixture.combine(scores, means, variances)
    weights = mixture.weights(scores)
    for k in range(OUTPUTS):
        outer = np.exp(mixture.scores[:, k]) / np.exp(mixture.scores[:, k]).sum()
        expected = np.zeros(scores.shape[1])
        for d in range(len(DISCOUNTS)):
            expected += outer[d] * np.exp(scores[d, :, k]) / np.exp(scores[d, :, k]).sum()
        np.testing.assert_allclose(weights[:, k], expected)
        np.testing.assert_allclose(mean[k], expected @ means[:, k])
        second = expected @ (variances[:, k] + means[:, k] ** 2)
        np.testing.assert_allclose(variance[k], second - mean[k] ** 2)
    np.testing.assert_allclose(weights.sum(axis=0), 1.0)


def test_many_rows_are_combined_as_one_by_one(backend):
    mixture = Mixture(OUTPUTS)
    scores, _, _ = members(0)
    rng = np.random.default_rng(2)
    means, variances = rng.normal(size=(5, 7, OUTPUTS)), rng.uniform(1, 2, (5, 7, OUTPUTS))
    mean, variance, _ = mixture.combine_many(scores, means, variances)
    for i in range(7):
        one = mixture.combine(scores, means[:, i].copy(), variances[:, i].copy())
        np.testing.assert_allclose(mean[i], one[0])
        np.testing.assert_allclose(variance[i], one[1])


def test_each_discount_is_scored_by_its_own_mixture(backend):
    mixture = Mixture(OUTPUTS)
    scores, means, variances = members(0)
    mixture.combine(scores, means, variances)
    levels = []
    for d in range(len(DISCOUNTS)):
        alone = Mixture(OUTPUTS)
        same = np.repeat(scores[d : d + 1], len(DISCOUNTS), axis=0)
        levels.append(alone.combine(same, means, variances)[:2])
    y = np.array([0.3, -1.0])
    before = mixture.scores.copy()
    mixture.learn(y)
    for d, (mean, variance) in enumerate(levels):
        z = (y - mean) / np.sqrt(variance)
        density = stats.t(4).logpdf(z) - 0.5 * np.log(variance)
        constant = stats.t(4).logpdf(0.0)
        np.testing.assert_allclose(mixture.scores[d], OUTER * before[d] + density - constant)


# ---- bands


def learn(band, y, mean, variance, extra=None):
    return band.learn(y, mean, variance, extra, np.zeros(2 * len(y)))


def fed(band, factor, n=2000, seed=0, freedom=None, outputs=OUTPUTS):
    """A band after targets whose deviation is `factor` times the predicted one."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        variance = np.exp(rng.normal(size=outputs))
        z = rng.standard_normal(outputs) if freedom is None else rng.standard_t(freedom, outputs)
        learn(band, factor * np.sqrt(variance) * z, np.zeros(outputs), variance)
    return band


def test_a_record_begins_with_the_calibrated_prediction():
    band, record = fed(Band(OUTPUTS), 3.0), np.full(2 * OUTPUTS + 1, 7.0)
    mean, variance = np.arange(1.0, OUTPUTS + 1), np.ones(OUTPUTS)
    calibrated = band.calibrated(variance)
    size = band.learn(mean + 1.0, mean, variance, None, record)
    np.testing.assert_allclose(record, [*mean, *calibrated, 7.0])
    assert size == pytest.approx(1.0 / np.sqrt(calibrated.min()))


@pytest.mark.parametrize("factor", [0.3, 1.0, 3.0])
def test_variances_are_calibrated(factor):
    band = fed(Band(OUTPUTS), factor)
    found = band.calibrated(np.ones((1, OUTPUTS)))[0]
    np.testing.assert_allclose(found, factor**2, rtol=0.35)


def test_the_first_samples_do_not_change_the_band():
    band = fed(Band(OUTPUTS), 10.0, n=20)
    np.testing.assert_array_equal(band.calibrated(np.ones(OUTPUTS)), 1.0)


def test_small_and_large_variances_are_calibrated_separately():
    """Small variances that are too small, and large ones that are too large."""
    band, rng = Band(1), np.random.default_rng(0)
    inside = {True: [], False: []}
    for i in range(5000):
        level = rng.choice([-1.0, 1.0])
        predicted, true = np.exp(2 * level), np.exp(level)
        y = rng.normal(size=1) * np.sqrt(true)
        half = 1.96 * np.sqrt(band.calibrated(np.array([predicted])))
        if i > 2000:
            inside[level > 0].append(abs(y[0]) < half[0])
        learn(band, y, np.zeros(1), np.array([predicted]))
    assert 0.92 < np.mean(inside[True]) < 0.98
    assert 0.92 < np.mean(inside[False]) < 0.98


def test_missing_values_are_calibrated_separately():
    """Half of the rows have extra variance, which is a ninth of what it should be."""
    band, rng = Band(1), np.random.default_rng(0)
    inside = {True: [], False: []}
    for i in range(8000):
        gap = bool(rng.random() < 0.5)
        extra = np.full(1, 4.0 * gap)
        y = rng.normal(size=1) * np.sqrt(1.0 + 9.0 * extra)
        half = 1.96 * np.sqrt(band.calibrated(np.ones(1)) + band.calibrated_extra(extra))
        if i > 3000:
            inside[gap].append(abs(y[0]) < half[0])
        learn(band, y, np.zeros(1), np.ones(1), extra)
    assert 0.93 < np.mean(inside[True]) < 0.97
    assert 0.93 < np.mean(inside[False]) < 0.97


@pytest.mark.parametrize("freedom", [3, None])
def test_bands_have_the_tails_of_the_residuals(freedom):
    band = fed(Band(1), 2.0, n=1500, freedom=freedom, outputs=1)
    rng, levels = np.random.default_rng(9), np.array([0.5, 0.8, 0.95, 0.99])
    inside = []
    for _ in range(2000):
        z = 2.0 * (rng.standard_normal(1) if freedom is None else rng.standard_t(freedom, 1))
        deviation = np.sqrt(band.calibrated(np.ones(1)))
        reaches = np.array([band.reach(level)[0] for level in levels])
        assert (np.diff(reaches) > 0).all()
        inside.append(np.abs(z) < reaches * deviation)
        learn(band, z, np.zeros(1), np.ones(1))
    np.testing.assert_allclose(np.mean(inside, axis=0), levels, atol=0.04)
    assert band.reach(0.95) == pytest.approx(1.96, abs=1e-3)
    assert (band.freedom() < 8).all() if freedom else (band.freedom() > 4).all()


def test_restored_states_continue_as_the_original():
    band, twin = fed(Band(OUTPUTS), 2.0, n=100), Band(OUTPUTS)
    twin.restore(band.state())
    assert_same_state(fed(twin, 1.0, 50, 1).state(), fed(band, 1.0, 50, 1).state())
    learn(band, np.full(OUTPUTS, 9.0), np.zeros(OUTPUTS), np.ones(OUTPUTS), np.ones(OUTPUTS))
    twin.restore(band.state())
    assert band.extra_shift.any()
    assert_same_state(fed(twin, 1.0, 50, 1).state(), fed(band, 1.0, 50, 1).state())
    mixture, other = Mixture(OUTPUTS), Mixture(OUTPUTS)
    mixture.combine(*members(0))
    mixture.learn(np.ones(OUTPUTS))
    other.restore(mixture.state())
    assert_same_state(other.state(), mixture.state())
