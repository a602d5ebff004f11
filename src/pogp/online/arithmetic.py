"""Operations of `OnlineGP` on small arrays, in NumPy; see `compiled_arithmetic.pyx` for the twin.

Arrays have an axis for beliefs or members and one for outputs (k of them). Arrays that a function
fills or updates are arguments, so that no call allocates memory in the compiled twin.
"""

from itertools import pairwise

import numpy as np

from pogp.arrays import Array

FREEDOM = 4.0
"""Degrees of freedom of the Student-t distribution by which members are scored."""
RATE = 0.02
"""The rate at which noise factors and bands follow the errors."""
LAG_DISCOUNT = 0.99
"""The discount of the sums from which the correlation of successive residuals is estimated."""
PRIOR_COUNT = 5.0
"""The estimate is shrunk as if so many samples without correlation had been seen."""

WIDTH = 1.959963984540054
"""The half-width of the 95 % band of a normal distribution, in deviations."""
LEAST_ERROR = 1e-3
"""A smaller error, in deviations, does not change the band: the target does not move."""
TAIL_DISCOUNT = 0.998
"""The discount of the likelihoods of Student-t bands."""
CALIBRATE_AFTER = 20
"""The band is not calibrated on the first samples."""
LEAST_VARIANCE = 1e-300
"""A lower limit of variances."""
SURPRISE = 9.0
"""A squared error in deviations that surprises a member."""
LARGEST_SQUARE = 1e200
"""A squared error in deviations counts for at most so much, so that nothing overflows."""


def scale_input(x: Array, centre: Array, inverse: Array, far: float, out: Array) -> bool:
    """Fill an input in units of its deviations, compressed to a logarithm beyond `far`.

    Return whether a column is compressed.
    """
    np.multiply(x - centre, inverse, out=out)
    size = np.abs(out)
    beyond = size > far
    if beyond.any():
        out[beyond] = (np.sign(out) * (far + np.log1p(np.maximum(size - far, 0.0))))[beyond]
    return bool(beyond.any())


def average_steps(
    x: Array, last: Array, average: Array, share: float, factor: float, most: float
) -> bool:
    """Update the average steps of the inputs, and the last inputs, all (p,).

    A step counts for at most `most` times the average, if there is one. Return whether a step is
    more than `factor` times the average before.
    """
    step = np.abs(x - last)
    jumped = bool((step > factor * average).any())
    average += share * (np.where(average > 0, np.minimum(step, most * average), step) - average)
    last[...] = x
    return jumped


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
    """Fill the mixture of the members for each discount, and the mixture of these mixtures.

    `scores` is (discounts, members, k), `outer_scores` (discounts, k).
    """
    inner = softmax(scores, axis=1)
    level_means[...] = np.einsum("dmk,mk->dk", inner, means)
    apart = (means[None] - level_means[:, None]) ** 2
    level_variances[...] = np.einsum("dmk,dmk->dk", inner, variances[None] + apart)
    outer = softmax(outer_scores, axis=0)
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

    A gain is the log density of the target. `ends` divides the members into parts. The gain of each
    part, with equal weights of its members, is returned.

    If the target surprises all members, a vague one would gain by its large variance, however wrong
    its mean is. No variance is therefore taken to be less than the least squared error over
    `SURPRISE`.
    """
    least = least_variance(target, means)
    gains[...] = log_densities(target, means, np.maximum(variances, least))
    add_discounted(scores, discounts, gains)
    return [_log_mean_density(gains[start:end]) for start, end in pairwise((0, *ends))]


def least_variance(target: Array, means: Array) -> Array:
    """Return the least variance (k,) by which members with these means are scored."""
    return np.asarray(((target - means) ** 2).min(axis=0) / SURPRISE)


def log_densities(target: Array, means: Array, variances: Array) -> Array:
    """Return the log density of the target by a Student-t distribution, up to a constant."""
    with np.errstate(over="ignore"):
        squares = np.minimum((target - means) ** 2 / variances, LARGEST_SQUARE)
    tails = np.log1p(squares / FREEDOM)
    return np.asarray(-0.5 * np.log(variances) - 0.5 * (FREEDOM + 1) * tails)


def _log_mean_density(gains: Array) -> float:
    top = gains.max(axis=0)
    return float(np.sum(top + np.log(np.mean(np.exp(gains - top), axis=0))))


def add_discounted(scores: Array, discounts: Array, gains: Array) -> None:
    """Discount scores (discounts, members, k) and add gains (members, k) to them."""
    scores *= discounts[:, None, None]
    scores += gains


def predict_simple(
    x: Array,
    mean: Array,
    last: Array,
    lags: Array,
    plain: Array,
    with_lags: Array,
    centre: Array,
    scale: Array,
    errors: Array,
    features: Array,
    means: Array,
    variances: Array,
) -> None:
    """Fill the predictions of the simple predictors, (4, k), and the features of the linear ones.

    The features are the input, a one and the last targets that were not outliers, `lags` (n, k).
    The coefficients `plain` are for all but these targets, `with_lags` for all. The variances are
    the `errors`.
    """
    inputs = len(x)
    features[:inputs], features[inputs] = x, 1.0
    features[inputs + 1 :] = np.clip((lags - centre) / scale, -1e3, 1e3).ravel()
    means[0], means[1] = mean, last
    means[2] = centre + (features[: inputs + 1] @ plain) * scale
    means[3] = centre + (features @ with_lags) * scale
    np.maximum(errors, LEAST_VARIANCE, out=variances)


def update_simple(
    y: Array,
    means: Array,
    errors: Array,
    mean: Array,
    last: Array,
    lags: Array,
    centre: Array,
    scale: Array,
    targets: Array,
    count: int,
    window: int,
    share: float,
    bound: float,
    largest_ratio: float,
) -> None:
    """Update the squared errors of the simple predictors (4, k), the mean and the last targets.

    The sample counts for a `share` of one. If `bound` > 0 it is an outlier, and its error is
    clipped at so many deviations. `targets` (2, k) is filled with the scaled targets of the linear
    models.
    """
    squares = (y - means) ** 2
    if count == 0:  # a first target of zero says nothing of the unit
        squares = np.where(squares > 0.0, squares, 1.0)
    if count > 5:
        squares = np.where(errors > 0, np.minimum(squares, largest_ratio * errors), squares)
    bounded = np.broadcast_to(y, means.shape)
    if bound > 0.0:
        reach = bound * np.sqrt(errors)
        bounded = np.clip(y, means - reach, means + reach)
    targets[...] = (bounded[2:] - centre) / scale
    mean += share * (bounded[0] - mean) / (count + 1)
    last[...] = y if share >= 1.0 else last + share * (y - last)
    if not bound > 0.0:
        lags[1:], lags[0] = last if count == 0 else lags[:-1].copy(), last
    errors += share / min(count + 1, window) * (squares - errors)


def least_squares(
    P: Array, w: Array, h: Array, y: Array, gain: Array, forgetting: float, largest: float
) -> bool:
    """Learn a sample by recursive least squares; return False after rounding errors."""
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
    extra_shift: Array,
    centre: Array,
    spread: Array,
    tail_scale: Array,
    tail_likelihood: Array,
    averages: Array,
    freedoms: Array,
    constants: Array,
    count: int,
    averaged: int,
    record: Array,
) -> float:
    """Record the calibrated prediction of a sample, then update the band by its target.

    The record begins with k means and k variances. `averages` (3, k) are those of `shift`, `tilt`
    and `extra_shift` over about `averaged` samples. For the parameters see `online/band.py`. The
    largest error over the outputs, in calibrated deviations, is returned.
    """
    level = np.log(variance)
    q = np.clip((level - centre) / spread, -3.0, 3.0)
    calibrated_extra = extra * np.exp(2.0 * extra_shift)
    total = variance * np.exp(2.0 * (shift + tilt * q)) + calibrated_extra
    record[: len(mean)], record[len(mean) : 2 * len(mean)] = mean, total
    reach = LARGEST_SQUARE**0.5
    z = np.clip((target - mean) / np.sqrt(total), -reach, reach)
    if count > CALIBRATE_AFTER:
        moves = np.abs(z) > LEAST_ERROR
        gain = RATE * ((np.abs(z) > WIDTH) - 0.05) * moves
        own = 1.0 - calibrated_extra / total
        shift[...] = np.clip(shift + gain * own, -3.0, 3.0)
        tilt[...] = np.clip(tilt + 0.5 * gain * q * own, -1.0, 1.0)
        extra_shift[...] = np.clip(extra_shift + gain * (1.0 - own), -3.0, 3.0)
        squares, free = z**2 * np.exp(-2.0 * tail_scale), freedoms[:, None]
        density = constants[:, None] - tail_scale - 0.5 * (free + 1) * np.log1p(squares / free)
        discounted = TAIL_DISCOUNT * tail_likelihood + density
        tail_likelihood[...] = np.where(moves, discounted, tail_likelihood)
        tail_scale += 0.01 * moves * ((free + 1) * squares / (free + squares) - 1.0)
        now = np.array([shift, tilt, extra_shift])
        averages += (now - averages) / min(count - CALIBRATE_AFTER, averaged)
    share = max(0.01, 1.0 / (count + 1))
    centre += share * (level - centre)
    spread[...] = np.maximum(0.1, spread + share * (1.25 * np.abs(level - centre) - spread))
    return float(np.abs(z).max())


def write_errors(
    y: Array,
    means: Array,
    variances: Array,
    start: int,
    noise: Array,
    unit: Array,
    shift: Array,
    extra: Array,
    row: Array,
) -> None:
    """Write the errors of the members that are used at rest to a row (7, k).

    These are the errors of the mean, of the linear model and of the first and the last belief of a
    group, the latent variances of the two beliefs, and the extra variance of the sample. The
    beliefs, with these noises in the group's units, are members from `start` on. `shift` and
    `extra` are the effect of missing values, which the beliefs include.
    """
    last = len(noise) - 1
    row[:2] = y - shift - means[[0, 2]]
    row[2:4] = y - means[[start, start + last]]
    row[4:6] = variances[[start, start + last]] - extra - noise[[0, last], None] * unit**2
    row[6] = extra


def write_sample(
    x: Array,
    y: Array,
    outlier: bool,
    weight: float,
    extra: Array | None,
    shift: Array | None,
    index: int,
    inputs: Array,
    rows: Array,
) -> None:
    """Write a sample to the arrays of `online/samples.py` at an index."""
    inputs[index], row, k = x, rows[index], len(y)
    row[:k], row[k], row[k + 1] = y, outlier, weight
    row[k + 2 : 2 * k + 2] = 0.0 if extra is None else extra
    row[2 * k + 2 :] = 0.0 if shift is None else shift


def within_reach(
    inputs: Array,
    rows: Array,
    seen: int,
    count: int,
    centre: Array,
    reach: Array,
    target_centre: Array,
    target_reach: Array,
) -> bool:
    """Return whether the latest samples of `online/samples.py` are within reach of the centres.

    This holds if all targets are, and more than half of the values of each input. Outliers are left
    out. If only outliers remain, the result is False.
    """
    indices, k = np.arange(seen - count, seen) % len(inputs), len(target_centre)
    indices = indices[rows[indices, k] == 0]
    outside = (np.abs(inputs[indices] - centre) > reach).sum(axis=0)
    far = ~(np.abs(rows[indices, :k] - target_centre) <= target_reach)
    return bool((2 * outside < len(indices)).all() and not far.any())


def softmax(scores: Array, axis: int) -> Array:
    """Return weights in proportion to exp(scores), which sum to one along an axis."""
    weights = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return np.asarray(weights / weights.sum(axis=axis, keepdims=True))


def log_sum_exp(scores: Array) -> Array:
    """Return log Σ exp(scores) over the members, (discounts, 1, k)."""
    top = scores.max(axis=1, keepdims=True)
    return np.asarray(top + np.log(np.exp(scores - top).sum(axis=1, keepdims=True)))
