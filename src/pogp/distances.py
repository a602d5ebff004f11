"""Hellinger distance between normal distributions, without cancellation.

With BC the Bhattacharyya coefficient of two densities, the distance is H = sqrt(1 − BC), a metric
with values in [0, 1]. The paper's printed forms lack a square root and a power of one half; this is
the form its proofs need.

At H = 1e-5 the coefficient is 1 − 1e-10, and computing it directly leaves six correct digits. So
everything here works with the *cost* c = −log BC, built from the differences of the two normals,
and H = sqrt(−expm1(−c)). The cost orders candidates as the distance does, also where the distance
has rounded to one.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pogp.arrays import Array


def hellinger_cost(
    mean_shift: Array | float, variance: Array | float, gain: Array | float
) -> Array | float:
    """Return −log BC of N(μ, variance) and N(μ + mean_shift, variance + gain)."""
    return _cost(mean_shift, variance, variance + gain, gain)


def _cost(
    mean_shift: Array | float, variance: Array | float, other: Array | float, gain: Array | float
) -> Array | float:
    """Return −log BC from both variances and their difference, each as accurate as it is known."""
    product = np.sqrt(variance) * np.sqrt(other)
    difference = gain / (np.sqrt(variance) + np.sqrt(other))  # s₂ − s₁
    cost: Array | float = 0.5 * np.log1p(difference**2 / (2 * product)) + mean_shift**2 / (
        4 * (variance + other)
    )
    return cost


def distance_of_cost(cost: ArrayLike) -> Array:
    """Return the Hellinger distance H whose cost −log BC is given."""
    return np.sqrt(-np.expm1(-np.asarray(cost, dtype=np.float64)))


def cost_of_distance(distance: ArrayLike) -> Array:
    """Return the cost −log BC of a Hellinger distance; infinite from distance one on."""
    squared = np.minimum(np.square(np.asarray(distance, dtype=np.float64)), 1.0)
    with np.errstate(divide="ignore"):
        return -np.log1p(-squared)


def hellinger(mean1: ArrayLike, var1: ArrayLike, mean2: ArrayLike, var2: ArrayLike) -> Array:
    """Return the Hellinger distance between N(mean1, var1) and N(mean2, var2).

    The arguments broadcast. The relative accuracy does not depend on the size of the distance.

    Parameters
    ----------
    mean1, mean2 : array-like
        Means.
    var1, var2 : array-like
        Variances, positive.

    Returns
    -------
    ndarray
        Distances between 0 and 1; a number for four numbers.

    Examples
    --------
    >>> float(hellinger(0.0, 1.0, 0.0, 1.0))
    0.0
    >>> float(hellinger(0.0, 1.0, 2e-12, 1.0))
    7.071067811865475e-13
    >>> float(hellinger(0.0, 1.0, 50.0, 1.0))
    1.0
    """
    arrays = [np.asarray(value, dtype=np.float64) for value in (mean1, var1, mean2, var2)]
    for name, array in zip(("mean1", "var1", "mean2", "var2"), arrays, strict=True):
        if not np.isfinite(array).all():
            raise ValueError(f"{name} must be finite, got {_worst(array, ~np.isfinite(array))}")
    for name, array in (("var1", arrays[1]), ("var2", arrays[3])):
        if not (array > 0).all():
            raise ValueError(f"{name} must be positive, got {_worst(array, ~(array > 0))}")
    m1, v1, m2, v2 = arrays
    return distance_of_cost(_cost(m2 - m1, v1, v2, v2 - v1))


def _worst(array: Array, bad: NDArray[np.bool_]) -> float:
    return float(np.atleast_1d(array)[np.atleast_1d(bad)][0])


def movement(
    noise: float,
    mean: float | Array,
    variance: float | Array,
    y: float | Array,
    shift: float = 0.0,
    gain: float = 0.0,
) -> tuple[Array, Array]:
    """Return how far the marginal at x moves by appending y there, and by all of the step.

    `mean` and `variance` are of y before it was learned; `shift` and `gain` are what compression
    took from the mean and gave to the variance after that.
    """
    latent = variance - noise
    moved = latent * (y - mean) / variance
    shrunk = latent**2 / variance
    return (
        distance_of_cost(hellinger_cost(moved, variance, -shrunk)),
        distance_of_cost(hellinger_cost(moved - shift, variance, gain - shrunk)),
    )
