"""Scores of probabilistic predictions.

Every function takes vectors of length n and returns the mean over the n samples. `mean` and
`variance` describe a normal prediction of `y`, noise included, as `predict` returns it.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pogp import validation

__all__ = ["coverage", "crps", "msll", "nlpd", "smse"]

_Vector = NDArray[np.float64]


def smse(y: ArrayLike, mean: ArrayLike, train_variance: float) -> float:
    """Return the standardised mean squared error, mean((y − mean)²) / train_variance.

    Parameters
    ----------
    y : array-like of shape (n,)
        Targets.
    mean : array-like of shape (n,)
        Predicted means.
    train_variance : float
        The variance of the training targets. Predicting their mean always scores about 1.

    Examples
    --------
    >>> smse([0.0, 1.0], [0.5, 0.5], train_variance=0.25)
    1.0
    """
    if not (math.isfinite(train_variance) and train_variance > 0):
        raise ValueError(f"train_variance must be positive and finite, got {train_variance!r}")
    error = _error(y, mean)
    return float(np.mean(error**2) / train_variance)


def msll(y: ArrayLike, mean: ArrayLike, variance: ArrayLike) -> float:
    """Return the paper's log loss, mean(½((y − mean)²/variance + log variance)).

    This is `nlpd` without the constant ½ log 2π. The paper's formula excludes the constant, and its
    tables include it.

    Parameters
    ----------
    y : array-like of shape (n,)
        Targets.
    mean : array-like of shape (n,)
        Predicted means.
    variance : array-like of shape (n,)
        Predicted variances, noise included.

    Examples
    --------
    >>> msll([1.0, 0.0], [0.0, 0.0], [1.0, 1.0])
    0.25
    """
    error, variances = _error_and_variance(y, mean, variance)
    return float(np.mean(error**2 / variances + np.log(variances)) / 2)


def nlpd(y: ArrayLike, mean: ArrayLike, variance: ArrayLike) -> float:
    """Return the negative log predictive density, mean(½((y − mean)²/variance + log 2π variance)).

    Parameters
    ----------
    y, mean, variance
        As of `msll`.

    Examples
    --------
    >>> round(nlpd([1.0, 0.0], [0.0, 0.0], [1.0, 1.0]), 4)
    1.1689
    """
    return msll(y, mean, variance) + math.log(2 * math.pi) / 2


def coverage(y: ArrayLike, mean: ArrayLike, variance: ArrayLike, level: float = 0.95) -> float:
    """Return the fraction of y with |y − mean| ≤ z √variance, where Φ(z) = (1 + level)/2.

    The interval is the central interval of probability `level` of a normal prediction. Calibrated
    variances score about `level`.

    Parameters
    ----------
    y, mean, variance
        As of `msll`.
    level : float, default 0.95
        The probability of the interval.

    Examples
    --------
    >>> coverage([0.0, 1.9, 2.1, -5.0], [0.0] * 4, [1.0] * 4)
    0.5
    """
    from scipy.special import ndtri  # slow to import

    try:
        validation.probability("level", level)
    except ValueError:
        raise ValueError(f"level must lie strictly between 0 and 1, got {level!r}") from None
    error, variances = _error_and_variance(y, mean, variance)
    half_width = ndtri((1 + level) / 2) * np.sqrt(variances)
    return float(np.mean(np.abs(error) <= half_width))


def crps(y: ArrayLike, mean: ArrayLike, variance: ArrayLike) -> float:
    """Return the continuous ranked probability score, in the units of y; smaller is better.

    The score is the mean of ∫ (F(u) − 1[u ≥ y])² du, where F is the predicted distribution
    function. With σ = √variance and z = (y − mean)/σ, a normal prediction has the closed form
    σ (z (2Φ(z) − 1) + 2φ(z) − 1/√π) (Gneiting & Raftery 2007, eq. 21).

    Parameters
    ----------
    y, mean, variance
        As of `msll`.

    Examples
    --------
    >>> round(crps([1.0, 0.0], [0.0, 0.0], [1.0, 1.0]), 4)
    0.4181
    """
    from scipy.special import erf  # slow to import

    error, variances = _error_and_variance(y, mean, variance)
    deviation = np.sqrt(variances)
    z = error / deviation
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    # 2Φ(z) − 1 = erf(z/√2)
    score = z * erf(z / math.sqrt(2)) + 2 * density - 1 / math.sqrt(math.pi)
    return float(np.mean(deviation * score))


def _error_and_variance(
    y: ArrayLike, mean: ArrayLike, variance: ArrayLike
) -> tuple[_Vector, _Vector]:
    """Return y − mean and the variances, checked."""
    error = _error(y, mean)
    variances = _vector("variance", variance)
    _check_length("variance", variances, error)
    if not (variances > 0).all():
        at = int(np.argmin(variances > 0))
        raise ValueError(f"variance must be positive, got {variances[at]} at position {at}")
    return error, variances


def _error(y: ArrayLike, mean: ArrayLike) -> _Vector:
    """Return y − mean, checked."""
    targets, means = _vector("y", y), _vector("mean", mean)
    _check_length("mean", means, targets)
    return targets - means


def _vector(name: str, value: ArrayLike) -> _Vector:
    """Return `value` as a vector, neither empty nor with a NaN or an infinity in it."""
    vector = np.asarray(value, dtype=np.float64)
    if vector.ndim != 1 or vector.size == 0:
        raise ValueError(f"{name} must have shape (n,) with n ≥ 1, got shape {vector.shape}")
    finite = np.isfinite(vector)
    if not finite.all():
        at = int(np.argmin(finite))
        raise ValueError(f"{name} must be finite, got {vector[at]} at position {at}")
    return vector


def _check_length(name: str, vector: _Vector, targets: _Vector) -> None:
    if len(vector) != len(targets):
        raise ValueError(f"{name} must be as long as y, {len(targets)}, got {len(vector)}")
