"""Checks of arguments: every error names the value and what was expected."""

import contextlib
import math
import operator
import sys
from collections.abc import Sequence
from typing import SupportsFloat, SupportsIndex, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from pogp.arrays import LARGEST, Array
from pogp.kernels import Kernel

SMALLEST_NOISE = 1e-12
"""Noise below this fraction of the kernel's variance is refused: K + σ²I is singular in float64."""


LARGEST_WEIGHT = 1e6
"""The largest weight of a sample; the smallest is one over it."""


def samples(X: ArrayLike, y: ArrayLike, dimension: int | None) -> tuple[Array, Array]:
    """Return X (n, p) and y (n,) of a batch, or of one sample given as (p,) and a number."""
    X, Y, _ = _shaped(X, y, dimension, (), "")
    return X, Y[:, 0]


def some_samples(X: ArrayLike, y: ArrayLike, dimension: int | None) -> tuple[Array, Array]:
    """Return the same; at least one sample."""
    X, y = samples(X, y, dimension)
    if len(y) == 0:
        raise ValueError(f"X must have at least one sample, got shape {X.shape}")
    return X, y


def _is_ready(X: ArrayLike, dimension: int | None) -> TypeGuard[Array]:
    """Say whether X is one input as it should be; a call with a single sample is hot."""
    return (
        type(X) is np.ndarray
        and X.shape == (dimension,)
        and X.dtype == np.float64
        and X.flags.c_contiguous
        and bool(np.vdot(X, X) < LARGEST**2)
    )


def vector_samples(
    X: ArrayLike, y: ArrayLike, dimension: int | None, target: tuple[int, ...] | None
) -> tuple[Array, Array, tuple[int, ...]]:
    """Return X (n, p), Y (n, k) and the shape of one target: () for a number, (k,) for several.

    `target` is that shape where it is known. One sample is (p,) or (1, p), and its target a number,
    (k,) or (1, k).
    """
    return _shaped(X, y, dimension, target, "" if target is None else " and the samples before")


def _shaped(
    X: ArrayLike, y: ArrayLike, dimension: int | None, target: tuple[int, ...] | None, before: str
) -> tuple[Array, Array, tuple[int, ...]]:
    """Return the same; `before` is what the shape of y follows from, beside that of X."""
    if target == () and isinstance(y, float) and _is_ready(X, dimension) and abs(y) < LARGEST:
        return X.reshape(1, -1), np.array(((y,),)), target
    X, y = _points(X, dimension), _numbers("y", y)
    if target is None and y.ndim == 1 < y.size and (X.ndim < 2 or len(X) == 1):
        target = _first_target(X, y, dimension)
    if X.ndim == 1:
        X, y = _one_row(X, y, target)
    elif X.ndim == 2 and len(X) == 1 < y.size and y.shape == target:
        y = y.reshape(1, -1)
    _require_inputs(X, dimension)
    if target is None or (y.ndim == 0 and len(X) == 1 and target == ()):
        y = y.reshape(1) if y.ndim == 0 and len(X) == 1 else y
        target = y.shape[1:]
    if y.shape != (len(X), *target) or len(target) > 1 or target == (0,):
        shapes = f"({len(X)},) or ({len(X)}, k)" if len(target) > 1 else f"{(len(X), *target)}"
        hint = "; y.ravel() has it" if target == () and y.shape == (len(X), 1) else ""
        if y.shape[:1] == X.shape[1:]:
            hint = "; X has one row per sample, as X.T would have"
        raise ValueError(
            f"y must have shape {shapes} to go with X of shape {X.shape}{before}, "
            f"got {y.shape}{hint}"
        )
    _require_moderate("X", X)
    _require_moderate("y", y)
    Y = y.reshape(len(X), max(math.prod(target), 1))
    return np.ascontiguousarray(X), np.ascontiguousarray(Y), target


def _first_target(X: Array, y: Array, dimension: int | None) -> tuple[int, ...]:
    """Return the shape of the first target there is, if X is one sample and y its outputs.

    Two vectors of one length may be a batch of one input that was meant to be (n, 1).
    """
    if y.size == X.size and dimension is None:
        raise ValueError(
            f"X of shape {X.shape} and y of shape {y.shape} may be one sample of {X.size} inputs "
            f"and as many outputs, or {X.size} samples of one input: give X and y of shape "
            f"(1, {X.size}) for the first, X of shape ({X.size}, 1) for the second"
        )
    return y.shape


def _one_row(X: Array, y: Array, target: tuple[int, ...] | None) -> tuple[Array, Array]:
    """Return one sample (p,) and its target, a number, (k,) or (1, k), as a batch."""
    outputs = y[0] if y.ndim == 2 and len(y) == 1 else y
    if target is None:
        target = outputs.shape if y.ndim == 2 else ()
    if outputs.size != math.prod(target) or outputs.ndim > 1:
        expected = f"of shape {target}" if target else "one number"
        raise ValueError(
            f"X of shape {X.shape} is one sample of {X.size} inputs, so y must be {expected}, "
            f"got shape {y.shape}; n samples of one input have shape (n, 1)"
        )
    return X.reshape(1, -1), outputs.reshape(1, *target)


def noise_variances(noise: ArrayLike, count: int) -> Array:
    """Return one noise variance for each of `count` samples."""
    noises = _numbers("noise", noise)
    if noises.ndim > 1 or (noises.ndim == 1 and len(noises) != count):
        raise ValueError(f"noise must be a number or have shape ({count},), got {noises.shape}")
    _require_moderate("noise", np.atleast_1d(noises))
    noises = np.ascontiguousarray(np.broadcast_to(noises, (count,)))
    if not (noises > 0).all():
        raise ValueError(f"noise must be positive, got {noises[~(noises > 0)][0]}")
    return noises


def neighbourhoods(around: Sequence[Array | None] | None, X: Array) -> Sequence[Array | None]:
    """Return the points (m, p) around each row of X (n, p), None where there are none."""
    if around is None:
        return [None] * len(X)
    if len(around) != len(X):
        raise ValueError(
            f"around must have an entry for each of {len(X)} samples, got {len(around)}"
        )
    found = [None if points is None else _numbers("around", points) for points in around]
    for points in found:
        if points is not None:
            if points.ndim != 2 or points.shape[1] != X.shape[1] or len(points) == 0:
                raise ValueError(f"around must have points (m, {X.shape[1]}), got {points.shape}")
            _require_moderate("around", points)
    return found


def weights(weight: ArrayLike | None, count: int) -> list[float]:
    """Return one weight for each of `count` samples; all are 1 if None is given."""
    if weight is None:
        return [1.0] * count
    array = _numbers("weight", weight)
    if array.shape not in ((), (count,)):
        raise ValueError(f"weight must be a number or have shape ({count},), got {array.shape}")
    good = (array >= 1 / LARGEST_WEIGHT) & (array <= LARGEST_WEIGHT)
    if not good.all():
        raise ValueError(
            f"weight must be between {1 / LARGEST_WEIGHT:g} and {LARGEST_WEIGHT:g}, got "
            f"{np.atleast_1d(array)[~np.atleast_1d(good)][0]}; leave out samples of no weight"
        )
    return [float(each) for each in np.broadcast_to(array, (count,))]


def finite_vector(name: str, value: ArrayLike) -> Array:
    """Return a finite number, or a vector of them, as an array of no or one dimension."""
    array = _numbers(name, value)
    if array.ndim > 1 or array.size == 0 or isinstance(value, bool) or not np.isfinite(array).all():
        raise ValueError(f"{name} must be a finite number, or one for each output, got {value!r}")
    return array.copy()


def queries(X: ArrayLike, dimension: int | None) -> tuple[Array, bool]:
    """Return X (n, p), and whether it was given as a single point (p,)."""
    if _is_ready(X, dimension):
        return X.reshape(1, -1), True
    X = _points(X, dimension)
    single = X.ndim == 1
    if single:
        X = X.reshape(1, -1)
    _require_inputs(X, dimension)
    _require_moderate("X", X)
    return np.ascontiguousarray(X), single


def noise_variance(noise: object, kernel: Kernel) -> float:
    """Return the noise variance, checked by itself and against the kernel's."""
    value = positive("noise", noise)
    kappa0 = kernel.kappa0
    if kappa0 is not None and value < SMALLEST_NOISE * kappa0:
        raise ValueError(
            f"noise must be at least {SMALLEST_NOISE} of the kernel's variance {kappa0:g}, "
            f"where float64 can still solve for the posterior; got {value!r}"
        )
    return value


def positive(name: str, value: object) -> float:
    """Return a finite number above zero."""
    number = finite(name, value)
    if number <= 0:
        raise ValueError(f"{name} must be positive, got {value!r}")
    return number


def probability(name: str, value: object) -> float:
    """Return a number between zero and one, neither of them included."""
    number = finite(name, value)
    if not 0 < number < 1:
        raise ValueError(f"{name} must be between 0 and 1, got {value!r}")
    return number


def non_negative(name: str, value: object) -> float:
    """Return a finite number that is zero or more."""
    number = finite(name, value)
    if number < 0:
        raise ValueError(f"{name} must be at least 0, got {value!r}")
    return number


def finite(name: str, value: object) -> float:
    """Return a finite number."""
    number = math.nan
    # float and int first: to look whether a class has the methods of a protocol takes long
    if isinstance(value, float | SupportsFloat) and not isinstance(value, bool | str | complex):
        with contextlib.suppress(TypeError, ValueError, OverflowError):  # many numbers, say
            number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    return number


def count(name: str, value: object, least: int) -> int:
    """Return a whole number that is at least `least`, and that the machine can count to."""
    number = _whole(name, value, least)
    if number > sys.maxsize:
        raise ValueError(f"{name} must be at most {sys.maxsize}, got {value!r}")
    return number


def seed(value: object) -> int:
    """Return a whole number of any length that generators can start from."""
    return _whole("seed", value, 0)


def generator(value: int | np.random.Generator | None) -> np.random.Generator:
    """Return a generator that starts from a seed, or the one that is given."""
    try:
        return np.random.default_rng(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"seed must be None, a whole number ≥ 0 or a Generator, got {value!r}"
        ) from None


def flag(name: str, value: object) -> bool:
    """Return a truth value."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def position(name: str, value: object, least: int) -> int:
    """Return a number of samples: a whole one that a float64 can hold as well."""
    number = _whole(name, value, least)
    if number > 2**53:
        raise ValueError(f"{name} must be at most 2**53, got {value!r}")
    return number


def _whole(name: str, value: object, least: int) -> int:
    if isinstance(value, int | SupportsIndex) and not isinstance(value, bool | np.ndarray):
        number = operator.index(value)
        if number >= least:
            return number
    raise ValueError(f"{name} must be a whole number ≥ {least}, got {value!r}")


def _points(X: ArrayLike, dimension: int | None) -> Array:
    """Return inputs as numbers; one number is a point of one input."""
    array = _numbers("X", X)
    return array.reshape(1) if array.ndim == 0 and dimension in (None, 1) else array


def _numbers(name: str, value: ArrayLike) -> Array:
    if type(value) is np.ndarray and value.dtype == np.float64:
        return value
    try:
        if isinstance(value, (float, int)):
            return np.array(value, dtype=np.float64)
        array = np.asarray(value)
        if array.dtype.kind in "cUSMm" or np.ma.is_masked(value):
            raise TypeError
        if array.dtype.kind == "O" and any(isinstance(item, str | bytes) for item in array.flat):
            raise TypeError
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"{name} must be an array of real numbers, nothing masked or missing, "
            f"got {_described(value)}"
        ) from None


def _require_inputs(X: Array, dimension: int | None) -> None:
    if X.ndim != 2 or X.shape[1] == 0:
        least = f"p = {dimension}" if dimension else "p ≥ 1"
        raise ValueError(f"X must have shape (n, p) with {least}, or (p,), got {X.shape}")
    if dimension is not None and X.shape[1] != dimension:
        hint = "; n points of one input have shape (n, 1)" if dimension == 1 else ""
        raise ValueError(
            f"X must have {dimension} inputs per sample, as the kernel's length-scales or the "
            f"samples before, got {X.shape[1]}{hint}"
        )


def _require_moderate(name: str, array: Array) -> None:
    if np.vdot(array, array) < LARGEST**2:  # all are, at the price of one call; NaN falls through
        return
    bad = np.argwhere(~(np.abs(array) < LARGEST))
    if len(bad):
        place = tuple(int(i) for i in bad[0])
        raise ValueError(
            f"{name} must be finite and below {LARGEST:g} in size, "
            f"got {array[place]} in row {place[0]}"
        )


def _described(value: object) -> str:
    """Name a value that may be large."""
    if isinstance(value, np.ndarray) and value.size:
        return f"{value.dtype} of shape {value.shape} that begins with {value.flat[0]}"
    return f"{value!r:.100}"
