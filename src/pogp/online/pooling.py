"""One prediction of a row that may be of several kinds, each with a prediction of its own.

The mean is that of the logarithmic pool, where the weight of a prediction is the chance of its kind
over its variance: of kinds that are equally likely the sure one is told. The band is that of the
mixture: 95 % of it lie no farther from the mean. So it is as wide as the doubt about the kind makes
it, and the variance is the one that a normal distribution with such a band has. The mean and the
band may go by different chances: what is told in doubt is one thing, what is possible another.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pogp.arrays import Array
from pogp.online.mixing import WIDTH
from pogp.online.spreading import Prediction

LEVEL = 0.95
"""Of the band, whose half-width is `WIDTH` deviations of a normal."""
ROUNDS, ENOUGH = 60, 1e-12
"""Newton's method for the half-width: the most rounds, and when it has converged."""


class Slopes(NamedTuple):
    """The derivatives of a `Prediction` by the inputs, (…, n, p, k) each."""

    mean: Array
    variance: Array
    latent: Array


class Chances(NamedTuple):
    """The chances of the kinds by which the mean and the band go, (kinds, n, k) each.

    Or the derivatives of both by the inputs, (kinds, n, p, k).
    """

    mean: Array
    band: Array


class Held(NamedTuple):
    """What a band holds of normal distributions, its ends in their deviations, densities there."""

    share: Array
    above: Array
    below: Array
    upper: Array
    lower: Array


def pooled(kinds: Prediction, chances: Chances) -> Prediction:
    """Return the pool of predictions (kinds, n, k)."""
    weights = chances.mean * _precisions(kinds, chances.mean)
    mean = np.sum(weights * kinds.mean, axis=0)
    variance = (_half_width(mean, kinds, chances.band) / WIDTH) ** 2
    latent = variance * np.sum(weights * kinds.latent / kinds.variance, axis=0)
    return Prediction(mean, variance, latent)


def pooled_slopes(
    kinds: Prediction, chances: Chances, slopes: Slopes, of_chances: Chances
) -> tuple[Array, Array]:
    """Return the derivatives of the mean and the latent variance of the pool, (n, p, k)."""
    found, precisions = pooled(kinds, chances), _precisions(kinds, chances.mean)
    half, deviations = WIDTH * np.sqrt(found.variance), np.sqrt(kinds.variance)
    weights, shares = chances.mean * precisions, kinds.latent / kinds.variance
    relative = slopes.variance / _by_input(kinds.variance)
    moved = _by_input(precisions) * of_chances.mean - _by_input(weights) * relative
    of_weights = moved - _by_input(weights) * moved.sum(axis=0)
    of_mean = np.sum(of_weights * _by_input(kinds.mean), axis=0)
    of_mean += np.sum(_by_input(weights) * slopes.mean, axis=0)
    # what the band holds stays what it is
    held = _held(found.mean, half, kinds)
    towards, widened = held.upper - held.lower, held.upper * held.above - held.lower * held.below
    gained = _by_input(held.share) * of_chances.band
    gained += _by_input(chances.band * towards / deviations) * (of_mean - slopes.mean)
    gained -= _by_input(0.5 * chances.band * widened) * relative
    density = np.sum(chances.band * (held.upper + held.lower) / deviations, axis=0)
    of_half = -gained.sum(axis=0) / _by_input(density)
    of_variance = _by_input(2.0 * half / WIDTH**2) * of_half
    of_shares = slopes.latent / _by_input(kinds.variance) - _by_input(shares) * relative
    share = np.sum(weights * shares, axis=0)
    of_share = np.sum(of_weights * _by_input(shares) + _by_input(weights) * of_shares, axis=0)
    return of_mean, of_variance * _by_input(share) + _by_input(found.variance) * of_share


def _by_input(values: Array) -> Array:
    """Return values (…, n, k) as (…, n, 1, k)."""
    return values[..., None, :]


def _precisions(kinds: Prediction, chances: Array) -> Array:
    """Return precisions in units in which, times the chances, they add up to one."""
    relative = kinds.variance.min(axis=0) / kinds.variance
    return np.asarray(relative / np.sum(chances * relative, axis=0))


def _held(mean: Array, half: Array, kinds: Prediction) -> Held:
    """Return what the band from mean − half to mean + half holds of each kind."""
    from scipy.special import ndtr  # slow to import, and only streams that rest need it

    deviations = np.sqrt(kinds.variance)
    above, below = (mean + half - kinds.mean) / deviations, (mean - half - kinds.mean) / deviations
    upper, lower = (np.exp(-0.5 * end**2) / np.sqrt(2.0 * np.pi) for end in (above, below))
    return Held(ndtr(above) - ndtr(below), above, below, upper, lower)


def _half_width(mean: Array, kinds: Prediction, chances: Array) -> Array:
    """Return how far from the mean the band of the mixture reaches."""
    deviations = np.sqrt(kinds.variance)
    alone = np.abs(kinds.mean - mean) + WIDTH * deviations
    half, low, high = np.sum(chances * alone, axis=0), np.zeros_like(mean), alone.max(axis=0)
    for _ in range(ROUNDS):
        held = _held(mean, half, kinds)
        missing = LEVEL - np.sum(chances * held.share, axis=0)
        density = np.sum(chances * (held.upper + held.lower) / deviations, axis=0)
        low, high = np.where(missing > 0, half, low), np.where(missing > 0, high, half)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = half + missing / density
        inside = (low <= step) & (step <= high)
        before, half = half, np.where(inside, step, 0.5 * (low + high))
        if (np.abs(half - before) <= ENOUGH * half).all():
            break
    return np.asarray(half)
