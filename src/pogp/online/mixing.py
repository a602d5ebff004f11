"""The arithmetic of `OnlineGP` on small arrays, in NumPy; its twin is `compiled_mixing.pyx`.

Arrays are by belief, or member, and output (k of them); those named `out` are written on.
"""

from itertools import pairwise

import numpy as np

from pogp.arrays import Array

FREEDOM = 4.0
"""Degrees of freedom of the Student-t by which members are scored."""
FOLLOW = 0.02
"""How fast noises and widths follow the residuals."""
CARRY = 0.99
"""How long the correlation of successive residuals is remembered, per sample."""
DOUBT = 5.0
"""It is shrunk as if so many samples had shown none."""

WIDTH = 1.959963984540054
"""Deviations of a normal 95 % band."""
STILL = 1e-3
"""An error of fewer deviations says nothing of the band: the stream is at rest."""
REMEMBERED = 0.998
"""The discount of the likelihoods of Student-t bands."""
FIRST = 20
"""Samples before a band is corrected."""
LEAST_VARIANCE = 1e-300
"""Variances are no less than this."""


def scale(x: Array, centre: Array, inverse: Array, far: float, out: Array) -> None:
    """Fill an input in units of its deviations; beyond `far` it grows by its logarithm only."""
    np.multiply(x - centre, inverse, out=out)
    size = np.abs(out)
    beyond = size > far
    if beyond.any():
        out[beyond] = (np.sign(out) * (far + np.log1p(np.maximum(size - far, 0.0))))[beyond]


def correct(
    mean: Array,
    latent: Array,
    factor: Array,
    noise: float,
    extra: float,
    product: Array,
    square: Array,
    residual: Array,
    narrow: Array,
    centre: Array,
    scale: Array,
    variance: Array,
    corrected: Array,
    means: Array,
    variances: Array,
) -> None:
    """Fill variances, beliefs corrected by their last residuals, and all members in user's units.

    `mean` and `residual` are (beliefs, k), `latent` and `variance` are (beliefs,), `means` and
    `variances` are (2·beliefs, k): as they are, then corrected. Only `variance` has the `extra`
    variance of the sample, which is none of the beliefs'.
    """
    own = latent + factor * noise
    variance[...] = own + extra
    reach = 3.0 * np.sqrt(own)[:, None]
    returns = np.clip(product / (square + DOUBT), -1.0, 1.0)
    corrected[...] = mean + returns * np.clip(residual, -reach, reach)
    count = len(mean)
    means[:count], means[count:] = centre + mean * scale, centre + corrected * scale
    variances[:count] = own[:, None] * scale**2
    variances[count:] = own[:, None] * narrow * scale**2


def take(
    y: Array,
    centre: Array,
    scale: Array,
    mean: Array,
    variance: Array,
    corrected: Array,
    product: Array,
    square: Array,
    residual: Array,
    unit: Array,
    narrow: Array,
    factor: Array,
    noise: float,
    extra: float,
    kept: float,
    guard: float,
    least: float,
    target: Array,
    noises: Array,
) -> None:
    """Take note of a sample before it is learned, and fill what the core needs of it.

    That is its scaled target (k,), and its noise for each belief, (beliefs,). Noises grow where
    `guard` is positive: the sample is an outlier, and a total variance s becomes s|z|/guard. Only
    the share `kept` of a residual is expected to return. The factors of the noise then follow the
    squared errors, see `follow`.
    """
    target[...] = (y - centre) / scale
    noises[...] = factor * noise + extra
    error = target - mean
    z = error / np.sqrt(variance)[:, None]
    left = (variance[:, None] - extra) * narrow
    misfit = (target - corrected) ** 2 / (left + extra)
    narrow *= np.exp(FOLLOW * (np.minimum(misfit, 9.0) - 1.0) * (left / (left + extra)))
    np.clip(narrow, 0.01, 10.0, out=narrow)
    follow(factor, np.mean(np.minimum(z**2, 9.0), axis=1), variance, noise, extra, least)
    if guard > 0.0:
        beyond = np.abs(z).max(axis=1) / guard - 1.0
        noises += np.maximum(beyond, 0.0) * variance
        unit[...], residual[...] = 0.0, 0.0
        return
    now = np.clip(z, -4.0, 4.0)
    product *= CARRY
    product += now * unit
    square *= CARRY
    square += unit**2
    unit[...], residual[...] = now, kept * error


def surprise(y: Array, centre: Array, scale: Array, mean: Array, variance: Array) -> float:
    """Return how many deviations a target is off by the belief that it surprises least.

    Of several outputs, the one that is off most counts.
    """
    error = np.abs((y - centre) / scale - mean).max(axis=1)
    return float((error / np.sqrt(variance)).min())


def follow(
    factor: Array, squares: Array, variance: Array, noise: float, extra: float, least: float
) -> None:
    """Let the factors of the noise follow squared errors.

    An error that is too large raises them, less the share that the sample's extra variance has in
    its variance. One that is too small lowers them by the share of the noise alone.
    """
    excess = squares - 1.0
    share = np.where(excess > 0, variance - extra, factor * noise) / variance
    factor *= np.exp(FOLLOW * excess * share)
    np.clip(factor, least, 1e6, out=factor)


def combine(
    scores: Array,
    outer_scores: Array,
    means: Array,
    variances: Array,
    level_means: Array,
    level_variances: Array,
    mean: Array,
    variance: Array,
) -> None:
    """Fill the mixture for each discount, and the mixture of those.

    `scores` is (discounts, members, k), `outer_scores` (discounts, k).
    """
    inner = _softmax(scores, axis=1)
    level_means[...] = np.einsum("dmk,mk->dk", inner, means)
    apart = (means[None] - level_means[:, None]) ** 2
    level_variances[...] = np.einsum("dmk,dmk->dk", inner, variances[None] + apart)
    outer = _softmax(outer_scores, axis=0)
    mean[...] = np.sum(outer * level_means, axis=0)
    apart = (level_means - mean) ** 2
    variance[...] = np.maximum(np.sum(outer * (level_variances + apart), axis=0), LEAST_VARIANCE)


def score(
    target: Array,
    means: Array,
    variances: Array,
    discounts: Array,
    ends: tuple[int, ...],
    gains: Array,
    scores: Array,
) -> list[float]:
    """Fill the members' gains (members, k), and add them to their discounted scores.

    A gain is the log density of the target. The members are in parts, which have these ends. Return
    what each part gains, with equal weights in it.
    """
    gains[...] = densities(target, means, variances)
    discount(scores, discounts, gains)
    return [_gained(gains[start:end]) for start, end in pairwise((0, *ends))]


def densities(target: Array, means: Array, variances: Array) -> Array:
    """Return the log density of the target by a Student-t, up to a constant."""
    squares = (target - means) ** 2 / variances
    tails = np.log1p(squares / FREEDOM)
    return np.asarray(-0.5 * np.log(variances) - 0.5 * (FREEDOM + 1) * tails)


def _gained(gains: Array) -> float:
    top = gains.max(axis=0)
    return float(np.sum(top + np.log(np.mean(np.exp(gains - top), axis=0))))


def discount(scores: Array, discounts: Array, gains: Array) -> None:
    """Add gains (members, k) to discounted scores (discounts, members, k)."""
    scores *= discounts[:, None, None]
    scores += gains


def foresee(
    x: Array,
    mean: Array,
    last: Array,
    held: Array,
    plain: Array,
    informed: Array,
    centre: Array,
    scale: Array,
    errors: Array,
    features: Array,
    means: Array,
    variances: Array,
) -> None:
    """Fill what the simplest predictors say of an input, (4, k), and what the linear ones see.

    `features` are the input, a one and the last targets that were no outliers, `held` (lags, k);
    the coefficients `plain` are for all but these targets. The variances are the `errors`.
    """
    inputs = len(x)
    features[:inputs], features[inputs] = x, 1.0
    features[inputs + 1 :] = np.clip((held - centre) / scale, -1e3, 1e3).ravel()
    means[0], means[1] = mean, last
    means[2] = centre + (features[: inputs + 1] @ plain) * scale
    means[3] = centre + (features @ informed) * scale
    np.maximum(errors, LEAST_VARIANCE, out=variances)


def average(
    y: Array,
    means: Array,
    errors: Array,
    mean: Array,
    last: Array,
    held: Array,
    centre: Array,
    scale: Array,
    targets: Array,
    count: int,
    window: int,
    counts: float,
    guard: float,
    largest: float,
) -> None:
    """Let the errors of the simplest predictors (4, k), the mean and the last targets follow y.

    It counts for `counts` of a sample. With `guard` > 0 it is an outlier, held to so many
    deviations; `targets` (2, k) are filled with what the linear models learn, in their units.
    """
    squares = (y - means) ** 2
    if count > 5:
        squares = np.where(errors > 0, np.minimum(squares, largest * errors), squares)
    bounded = np.broadcast_to(y, means.shape)
    if guard > 0.0:
        reach = guard * np.sqrt(errors)
        bounded = np.clip(y, means - reach, means + reach)
    targets[...] = (bounded[2:] - centre) / scale
    mean += counts * (bounded[0] - mean) / (count + 1)
    last[...] = y if counts >= 1.0 else last + counts * (y - last)
    if not guard > 0.0:
        held[1:], held[0] = last if count == 0 else held[:-1].copy(), last
    errors += counts / min(count + 1, window) * (squares - errors)


def least_squares(
    P: Array, w: Array, h: Array, y: Array, gain: Array, forgetting: float, largest: float
) -> bool:
    """Learn a sample by recursive least squares; return False where rounding has won."""
    g = np.matmul(P, h, out=gain)
    q = forgetting + max(float(h @ g), 0.0)
    w += np.outer(g, (y - h @ w) / q)
    P -= np.outer(g, g / q)
    diagonal = np.diagonal(P)
    if diagonal.min() <= 0.0 or not np.isfinite(w).all():
        return False
    if diagonal.max() < largest:
        P /= forgetting
    return True


def calibrate(
    target: Array,
    mean: Array,
    variance: Array,
    extra: Array,
    shift: Array,
    tilt: Array,
    lean: Array,
    centre: Array,
    size: Array,
    scale: Array,
    likelihood: Array,
    usual: Array,
    freedoms: Array,
    constants: Array,
    count: int,
    lately: int,
    record: Array,
) -> float:
    """Begin the record of a sample; return the largest error in the deviations that it reports.

    A record begins with the means and the variances that are reported, k each. The band then
    follows the errors (see `online/band.py`), and `usual` (3, k) are its shift, tilt and lean,
    averaged over about `lately` samples.
    """
    level = np.log(variance)
    q = np.clip((level - centre) / size, -3.0, 3.0)
    gap = extra * np.exp(2.0 * lean)
    reported = variance * np.exp(2.0 * (shift + tilt * q)) + gap
    record[: len(mean)], record[len(mean) : 2 * len(mean)] = mean, reported
    z = (target - mean) / np.sqrt(reported)
    if count > FIRST:
        told = np.abs(z) > STILL
        gain = FOLLOW * ((np.abs(z) > WIDTH) - 0.05) * told
        own = 1.0 - gap / reported
        shift[...] = np.clip(shift + gain * own, -3.0, 3.0)
        tilt[...] = np.clip(tilt + 0.5 * gain * q * own, -1.0, 1.0)
        lean[...] = np.clip(lean + gain * (1.0 - own), -3.0, 3.0)
        squares, free = z**2 * np.exp(-2.0 * scale), freedoms[:, None]
        density = constants[:, None] - scale - 0.5 * (free + 1) * np.log1p(squares / free)
        likelihood[...] = np.where(told, REMEMBERED * likelihood + density, likelihood)
        scale += 0.01 * told * ((free + 1) * squares / (free + squares) - 1.0)
        usual += (np.array([shift, tilt, lean]) - usual) / min(count - FIRST, lately)
    share = max(0.01, 1.0 / (count + 1))
    centre += share * (level - centre)
    size[...] = np.maximum(0.1, size + share * (1.25 * np.abs(level - centre) - size))
    return float(np.abs(z).max())


def keep(
    x: Array,
    y: Array,
    odd: bool,
    weight: float,
    extra: Array | None,
    place: int,
    inputs: Array,
    marked: Array,
) -> None:
    """Write a sample on a row of `inputs` and of `marked`, as `online/rows.py` has them."""
    inputs[place], row, k = x, marked[place], len(y)
    row[:k], row[k], row[k + 1] = y, odd, weight
    row[k + 2 :] = 0.0 if extra is None else extra


def near(
    inputs: Array,
    marked: Array,
    seen: int,
    count: int,
    centre: Array,
    reach: Array,
    target_centre: Array,
    target_reach: Array,
) -> bool:
    """Whether the latest of some rows, as `online/rows.py` has them, are within reach of centres.

    Of each input more than half have to be, and all targets. Outliers are left out, and where there
    is nothing else, nothing is near.
    """
    places, k = np.arange(seen - count, seen) % len(inputs), len(target_centre)
    places = places[marked[places, k] == 0]
    outside = (np.abs(inputs[places] - centre) > reach).sum(axis=0)
    far = ~(np.abs(marked[places, :k] - target_centre) <= target_reach)
    return bool((2 * outside < len(places)).all() and not far.any())


def _softmax(scores: Array, axis: int) -> Array:
    weights = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return np.asarray(weights / weights.sum(axis=axis, keepdims=True))
