"""One prediction from the predictions of several cases, such as past and future rows.

The mean is that of the logarithmic pool: the weight of a case is its probability over its variance.
The band is that of the mixture of the cases: it covers 95 % of the mixture, symmetrically around
the mean, so that it includes the uncertainty about the case. The variance is that of a normal
distribution with this band. The mean and the band can use different probabilities.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pogp.arrays import Array
from pogp.online.arithmetic import WIDTH
from pogp.online.prediction import Prediction

LEVEL = 0.95
"""The level of the band, whose half-width is `WIDTH` deviations of a normal distribution."""
ROUNDS, ENOUGH = 60, 1e-12
"""Newton's method for the half-width: the most rounds, and the relative step at the end."""


class Slopes(NamedTuple):
    """The derivatives of a `Prediction` by the inputs, (…, n, p, k) each."""

    mean: Array
    variance: Array
    latent: Array


class Probabilities(NamedTuple):
    """The probabilities of the cases for the mean and for the band, (cases, n, k) each.

    Also their derivatives by the inputs, (cases, n, p, k).
    """

    mean: Array
    band: Array


class Coverage(NamedTuple):
    """The mass of normal distributions in a band, its ends in deviations, and the densities there.

    Each is (cases, n, k).
    """

    mass: Array
    above: Array
    below: Array
    upper: Array
    lower: Array


def pooled(cases: Prediction, probabilities: Probabilities) -> Prediction:
    """Return the pool of predictions (cases, n, k)."""
    weights = probabilities.mean * _precisions(cases, probabilities.mean)
    mean = np.sum(weights * cases.mean, axis=0)
    variance = (_half_width(mean, cases, probabilities.band) / WIDTH) ** 2
    latent = variance * np.sum(weights * cases.latent / cases.variance, axis=0)
    return Prediction(mean, variance, latent)


def pooled_slopes(
    cases: Prediction, probabilities: Probabilities, slopes: Slopes, of_probabilities: Probabilities
) -> tuple[Array, Array]:
    """Return the derivatives of the mean and the latent variance of the pool, (n, p, k)."""
    found, precisions = pooled(cases, probabilities), _precisions(cases, probabilities.mean)
    half, deviations = WIDTH * np.sqrt(found.variance), np.sqrt(cases.variance)
    weights, shares = probabilities.mean * precisions, cases.latent / cases.variance
    relative = slopes.variance / _by_input(cases.variance)
    moved = _by_input(precisions) * of_probabilities.mean - _by_input(weights) * relative
    of_weights = moved - _by_input(weights) * moved.sum(axis=0)
    of_mean = np.sum(of_weights * _by_input(cases.mean), axis=0)
    of_mean += np.sum(_by_input(weights) * slopes.mean, axis=0)
    # the half-width follows from the mass in the band, which is constant
    covered = _coverage(found.mean, half, cases)
    by_mean = covered.upper - covered.lower
    by_deviation = covered.upper * covered.above - covered.lower * covered.below
    of_mass = _by_input(covered.mass) * of_probabilities.band
    of_mass += _by_input(probabilities.band * by_mean / deviations) * (of_mean - slopes.mean)
    of_mass -= _by_input(0.5 * probabilities.band * by_deviation) * relative
    density = np.sum(probabilities.band * (covered.upper + covered.lower) / deviations, axis=0)
    of_half = -of_mass.sum(axis=0) / _by_input(density)
    of_variance = _by_input(2.0 * half / WIDTH**2) * of_half
    of_shares = slopes.latent / _by_input(cases.variance) - _by_input(shares) * relative
    share = np.sum(weights * shares, axis=0)
    of_share = np.sum(of_weights * _by_input(shares) + _by_input(weights) * of_shares, axis=0)
    return of_mean, of_variance * _by_input(share) + _by_input(found.variance) * of_share


def _by_input(values: Array) -> Array:
    """Return values (…, n, k) as (…, n, 1, k)."""
    return values[..., None, :]


def _precisions(cases: Prediction, probabilities: Array) -> Array:
    """Return precisions, scaled so that their products with the probabilities sum to one."""
    relative = cases.variance.min(axis=0) / cases.variance
    return np.asarray(relative / np.sum(probabilities * relative, axis=0))


def _coverage(mean: Array, half: Array, cases: Prediction) -> Coverage:
    """Return the coverage of the band from mean − half to mean + half in each case."""
    from scipy.special import ndtr  # slow to import, and only needed at rest

    deviations = np.sqrt(cases.variance)
    above, below = (mean + half - cases.mean) / deviations, (mean - half - cases.mean) / deviations
    upper, lower = (np.exp(-0.5 * end**2) / np.sqrt(2.0 * np.pi) for end in (above, below))
    return Coverage(ndtr(above) - ndtr(below), above, below, upper, lower)


def _half_width(mean: Array, cases: Prediction, probabilities: Array) -> Array:
    """Return the half-width of the band of the mixture, by Newton's method with bisection."""
    deviations = np.sqrt(cases.variance)
    single = np.abs(cases.mean - mean) + WIDTH * deviations
    half, low, high = (
        np.sum(probabilities * single, axis=0),
        np.zeros_like(mean),
        single.max(axis=0),
    )
    for _ in range(ROUNDS):
        covered = _coverage(mean, half, cases)
        missing = LEVEL - np.sum(probabilities * covered.mass, axis=0)
        density = np.sum(probabilities * (covered.upper + covered.lower) / deviations, axis=0)
        low, high = np.where(missing > 0, half, low), np.where(missing > 0, high, half)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = half + missing / density
        inside = (low <= step) & (step <= high)
        before, half = half, np.where(inside, step, 0.5 * (low + high))
        if (np.abs(half - before) <= ENOUGH * half).all():
            break
    return np.asarray(half)
