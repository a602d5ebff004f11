"""Scores against their definitions: integrals, densities and quantiles computed the long way."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm

from pogp import metrics

PROBABILISTIC = [metrics.msll, metrics.nlpd, metrics.coverage, metrics.crps]


@pytest.fixture
def predictions():
    """Targets, means and variances of which some fit well and some do not."""
    rng = np.random.default_rng(0)
    mean = rng.normal(3.0, 2.0, 40)
    variance = rng.gamma(2.0, 0.5, 40)
    return mean + 1.5 * rng.standard_normal(40), mean, variance


def test_smse_is_one_for_the_training_mean():
    y = np.random.default_rng(1).normal(5.0, 3.0, 100)
    assert metrics.smse(y, np.full(100, y.mean()), y.var()) == pytest.approx(1.0, rel=1e-12)


def test_smse_is_the_mean_squared_error_over_the_variance():
    assert metrics.smse([1.0, 2.0, 3.0], [1.0, 0.0, 6.0], 2.0) == pytest.approx(13 / 6, rel=1e-15)


def test_nlpd_is_minus_the_log_density(predictions):
    y, mean, variance = predictions
    expected = -norm.logpdf(y, mean, np.sqrt(variance)).mean()
    assert metrics.nlpd(y, mean, variance) == pytest.approx(expected, rel=1e-12)


def test_msll_is_the_papers_formula(predictions):
    terms = [0.5 * ((y - m) ** 2 / v + math.log(v)) for y, m, v in zip(*predictions, strict=True)]
    assert metrics.msll(*predictions) == pytest.approx(sum(terms) / len(terms), rel=1e-12)


def test_msll_and_nlpd_differ_by_the_constant(predictions):
    difference = metrics.nlpd(*predictions) - metrics.msll(*predictions)
    assert difference == pytest.approx(0.918938533204673, rel=1e-12)


def test_crps_is_the_integral_that_defines_it(predictions):
    def score(y, m, v):
        # The integrand breaks at y; beyond 40 deviations of both y and m it is nil.
        s = math.sqrt(v)
        low, high = min(y, m) - 40 * s, max(y, m) + 40 * s
        below, _ = quad(lambda u: ndtr((u - m) / s) ** 2, low, y, points=[m], epsabs=1e-12)
        above, _ = quad(lambda u: ndtr((m - u) / s) ** 2, y, high, points=[m], epsabs=1e-12)
        return below + above

    scores = [score(y, m, v) for y, m, v in zip(*predictions, strict=True)]
    assert metrics.crps(*predictions) == pytest.approx(np.mean(scores), rel=1e-8)


def test_crps_is_the_difference_of_expected_distances():
    # E|X − y| − ½ E|X − X'|, by Monte Carlo.
    x, other = np.random.default_rng(2).normal(1.0, 2.0, (2, 400_000))
    expected = np.abs(x - 4.0).mean() - np.abs(x - other).mean() / 2
    assert metrics.crps([4.0], [1.0], [4.0]) == pytest.approx(expected, abs=0.02)


def test_crps_far_out_is_the_distance():
    # Far from the mean, |z| − 1/√π deviations.
    expected = 1e6 - 1 / math.sqrt(math.pi)
    assert metrics.crps([1e6], [0.0], [1.0]) == pytest.approx(expected, rel=1e-14)


@given(scale=st.floats(1e-3, 1e3), shift=st.floats(-1e3, 1e3))
def test_crps_has_the_units_of_y(scale, shift):
    y, mean, variance = np.array([0.3, -1.0]), np.array([0.0, 0.5]), np.array([1.0, 2.0])
    moved = metrics.crps(shift + scale * y, shift + scale * mean, scale**2 * variance)
    # Adding the shift rounds y and mean to its own precision.
    rounding = 4 * np.finfo(float).eps * abs(shift)
    assert moved == pytest.approx(scale * metrics.crps(y, mean, variance), rel=1e-9, abs=rounding)


@pytest.mark.parametrize("level", [0.05, 0.5, 0.8, 0.95, 0.999])
def test_coverage_of_the_truth_is_the_level(level):
    rng = np.random.default_rng(3)
    n = 100_000
    mean, variance = rng.normal(size=n), rng.gamma(1.0, size=n) + 0.01
    y = rng.normal(mean, np.sqrt(variance))
    error = 4 * math.sqrt(level * (1 - level) / n)
    assert metrics.coverage(y, mean, variance, level) == pytest.approx(level, abs=error)


@pytest.mark.parametrize("level", [0.3, 0.95])
def test_coverage_counts_the_samples_between_the_quantiles(predictions, level):
    y, mean, variance = predictions
    low, high = norm.interval(level, mean, np.sqrt(variance))
    assert metrics.coverage(*predictions, level=level) == np.mean((low <= y) & (y <= high))


def test_every_score_is_a_plain_float(predictions):
    y, mean, variance = predictions
    assert type(metrics.smse(y, mean, np.float64(2.0))) is float
    assert {type(score(y, mean, variance)) for score in PROBABILISTIC} == {float}


@pytest.mark.parametrize(
    ("y", "mean", "variance", "message"),
    [
        ([[1.0]], [1.0], [1.0], r"y must have shape \(n,\).*got shape \(1, 1\)"),
        ([], [], [], r"y must have shape \(n,\) with n ≥ 1, got shape \(0,\)"),
        (1.0, [1.0], [1.0], r"y must have shape \(n,\)"),
        ([1.0, np.nan], [1.0, 1.0], [1.0, 1.0], "y must be finite, got nan at position 1"),
        ([1.0, 1.0], [np.inf, 1.0], [1.0, 1.0], "mean must be finite, got inf at position 0"),
        ([1.0, 1.0], [1.0], [1.0, 1.0], "mean must be as long as y, 2, got 1"),
        ([1.0, 1.0], [1.0, 1.0], [1.0], "variance must be as long as y, 2, got 1"),
        ([1.0, 1.0], [1.0, 1.0], [1.0, 0.0], "variance must be positive, got 0.0 at position 1"),
        ([1.0], [1.0], [-2.0], r"variance must be positive, got -2\.0 at position 0"),
        ([1.0], [1.0], [np.nan], "variance must be finite, got nan at position 0"),
    ],
)
def test_bad_vectors_are_refused(y, mean, variance, message):
    for score in PROBABILISTIC:
        with pytest.raises(ValueError, match=message):
            score(y, mean, variance)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_a_bad_training_variance_is_refused(bad):
    with pytest.raises(ValueError, match=f"train_variance must be positive and finite, got {bad}"):
        metrics.smse([1.0], [1.0], bad)


def test_smse_refuses_vectors_of_different_lengths():
    with pytest.raises(ValueError, match="mean must be as long as y, 2, got 1"):
        metrics.smse([1.0, 2.0], [1.0], 1.0)


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.5, 95, math.nan])
def test_a_bad_level_is_refused(bad):
    with pytest.raises(ValueError, match=f"level must lie strictly between 0 and 1, got {bad}"):
        metrics.coverage([1.0], [1.0], [1.0], level=bad)
