"""Simulated streams: a robot arm, and the paper's two checks of consistency.

Training samples, test samples, inputs and noise come from separate random generators. For one seed
a longer stream therefore begins with the shorter one, and the test set is the same for every n.
"""

import math

import numpy as np
from numpy.typing import NDArray

from ._dataset import Dataset

_Array = NDArray[np.float64]
_Pair = tuple[_Array, _Array]

# The arm. The joint range sets the difficulty: at 110° an ARD Gaussian process errs on the arm
# as it does on kin40k (SMSE about 0.15, 0.09 and 0.06 after 500, 1000 and 2000 samples).
_LINK = 1 / 8  # eight equal links, so that the arm reaches 1
_TWIST_SIGNS = (1, -1, 1, -1, 1, -1, 1, -1)  # twists of ±90° between successive joint axes
_TARGET = (0.1, 0.1, 0.1)
_JOINT_RANGE = math.radians(110)
# Mean and standard deviation of the distance, by Monte Carlo with 3e7 samples.
_DISTANCE_MEAN = 0.5315
_DISTANCE_STD = 0.1727

# The paper's experiments 1 and 2.
_INPUTS, _SLOPE, _INTERCEPT = 10, 0.5, 2.0
_OMEGA, _POWER = 1.0, 0.1


def arm(n: int, seed: int = 0, *, n_test: int = 1000, noise: float = 0.01) -> Dataset:
    """Simulate an 8-link robot arm: the distance of its hand from a point, by its joint angles.

    The data are the forward kinematics of an all-revolute arm in three dimensions, similar to
    DELVE's kin family and about as hard to learn as kin40k. The links are equal, with
    twists that alternate between 90° and −90°, and reach 1 together. The angles are uniform
    within ±110°, independent, and given in units of their standard deviation. The target is the
    distance to the point (0.1, 0.1, 0.1), shifted and scaled by constants to mean 0 and variance
    1, plus normal noise of variance `noise`, also in the test set.

    Parameters
    ----------
    n : int
        Number of training samples.
    seed : int, default 0
        Seed of the simulation.
    n_test : int, default 1000
        Number of test samples.
    noise : float, default 0.01
        Variance of the noise.

    Examples
    --------
    >>> arm(300)
    Dataset(arm: 300 training and 1000 test samples, 8 inputs)
    """
    _check_counts(n, seed, n_test)
    if not (math.isfinite(noise) and noise >= 0):
        raise ValueError(f"noise must be a finite variance ≥ 0, got {noise!r}")
    train, train_errors, test, test_errors = _generators(seed, 4)
    source = f"simulated 8-link arm after DELVE's kin family, seed {seed}, noise variance {noise}"
    x_train, y_train = _arm_samples(train, train_errors, n, noise)
    x_test, y_test = _arm_samples(test, test_errors, n_test, noise)
    return Dataset("arm", x_train, y_train, x_test, y_test, source)


def gaussian(n: int, seed: int = 0, *, n_test: int = 1000) -> Dataset:
    """Draw the paper's Gaussian check: y = aᵀx + b, with x of ten standard normal inputs.

    Each aᵢ is 0.5 and b is 2, so y ~ N(2, 2.5). There is no noise.

    Parameters
    ----------
    n, seed, n_test
        As of `arm`.

    Examples
    --------
    >>> gaussian(2200)
    Dataset(gaussian: 2200 training and 1000 test samples, 10 inputs)
    """
    _check_counts(n, seed, n_test)
    train, test = _generators(seed, 2)
    source = f"simulated: Koppel, Pradhan & Rajawat (2020), Gaussian check, seed {seed}"
    x_train, y_train = _gaussian_samples(train, n)
    x_test, y_test = _gaussian_samples(test, n_test)
    return Dataset("gaussian", x_train, y_train, x_test, y_test, source)


def chi_square(n: int, seed: int = 0, *, n_test: int = 1000) -> Dataset:
    """Draw the paper's chi-square check: y = x², with x_t ~ N(ω t^(−k), 1), ω = 1, k = 1/10.

    t counts the training samples from 1, so y_t has mean 1 + t^(−2k) and variance
    2 (1 + 2 t^(−2k)): the stream drifts. The test set is drawn at the limit t → ∞: x ~ N(0, 1),
    with mean 1 and variance 2. There is no noise.

    Parameters
    ----------
    n, seed, n_test
        As of `arm`.

    Examples
    --------
    >>> chi_square(2200)
    Dataset(chi_square: 2200 training and 1000 test samples, 1 input)
    """
    _check_counts(n, seed, n_test)
    train, test = _generators(seed, 2)
    t = np.arange(1, n + 1, dtype=np.float64)
    x_train = train.standard_normal((n, 1)) + _OMEGA * t[:, None] ** -_POWER
    x_test = test.standard_normal((n_test, 1))
    source = f"simulated: Koppel, Pradhan & Rajawat (2020), chi-square check, seed {seed}"
    return Dataset("chi_square", x_train, x_train[:, 0] ** 2, x_test, x_test[:, 0] ** 2, source)


def _arm_samples(
    inputs: np.random.Generator, errors: np.random.Generator, count: int, noise: float
) -> _Pair:
    angles = inputs.uniform(-_JOINT_RANGE, _JOINT_RANGE, (count, len(_TWIST_SIGNS)))
    distance = np.sqrt(((_hand(angles) - _TARGET) ** 2).sum(axis=1))
    clean = (distance - _DISTANCE_MEAN) / _DISTANCE_STD
    # A uniform on ±r has standard deviation r/√3.
    x = angles * (math.sqrt(3) / _JOINT_RANGE)
    return x, clean + math.sqrt(noise) * errors.standard_normal(count)


def _hand(angles: _Array) -> _Array:
    """Return the position of the arm's hand, (n, 3), for joint angles (n, 8).

    The Denavit-Hartenberg product R_z(θ₁) T_x(a) R_x(α₁) ⋯ R_z(θ₈) T_x(a) R_x(α₈) applied to the
    origin, from the right: a point is carried from the hand's frame back to the base, and no
    matrix is formed.
    """
    cosines, sines = np.cos(angles).T, np.sin(angles).T
    x = y = z = np.zeros(len(angles))
    for cos, sin, sign in zip(cosines[::-1], sines[::-1], _TWIST_SIGNS[::-1], strict=True):
        x, y, z = x + _LINK, -sign * z, sign * y  # R_x(±90°), then T_x(a)
        x, y = cos * x - sin * y, sin * x + cos * y  # R_z(θ)
    return np.stack((x, y, z), axis=1)


def _gaussian_samples(inputs: np.random.Generator, count: int) -> _Pair:
    x = inputs.standard_normal((count, _INPUTS))
    return x, _SLOPE * x.sum(axis=1) + _INTERCEPT


def _generators(seed: int, count: int) -> list[np.random.Generator]:
    return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(count)]


def _check_counts(n: int, seed: int, n_test: int) -> None:
    for name, value, least in (("n", n, 1), ("seed", seed, 0), ("n_test", n_test, 1)):
        if not isinstance(value, (int, np.integer)) or value < least:
            raise ValueError(f"{name} must be an integer ≥ {least}, got {value!r}")
