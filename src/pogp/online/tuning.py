"""Hyperparameters of a kernel and the noise, for a model with few points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pogp.arrays import Array, Indices
from pogp.backends import BUILT, backend
from pogp.kernels import RBF, Constant, Kernel, Linear, Matern12, Matern32, Stationary
from pogp.online.descent import Descent
from pogp.online.evidence import Evidence, dense, evidence
from pogp.online.samples import Mask, Samples
from pogp.slices import ALLOCATION_TICKS, CALL_TICKS, Work

if BUILT:
    from pogp.online.compiled_evidence import CompiledDense, CompiledEvidence

FAMILIES: dict[str, type[Stationary]] = {"Matern32": Matern32, "RBF": RBF, "Matern12": Matern12}
"""Families of kernels; a linear part and a constant are added to each."""
INDUCING = 100
"""The least inducing inputs of the FITC evidence. A larger group has as many as it has points. If
they are a third of the samples or more, the evidence is dense, which takes about as long."""
NOISY = 0.2
"""If the noise of a group, as a share of the variance, is larger, a third as many inducing inputs
do: the noise limits the error, not the points."""
SAMPLES, DENSE_SAMPLES = 600, 450
"""The most samples of a search: with the FITC evidence, and with the dense one."""
LESS_NOISE = 0.5
"""Hyperparameters with at most this share of the noise are another explanation of the samples."""
COARSE_FROM = 360
"""With more samples, a search without a start begins on a third of them."""
N_STARTS, START_RATIO = 4, 3.0
"""A search without a start begins at the best of so many points, with length-scales that are
divided by this factor from one to the next."""
TOLERANCE = 3e-4
"""A search ends when a step gains less than this share of −log p."""
REACH = 6.0
"""The bounds of logarithms, around the prior mean."""
LEAST_NOISE, MOST_NOISE = 1e-6, 3.0
"""Bounds of the noise, in units of the variance of the targets."""

FAR, GAP, MOST_OUTLIERS = 6.0, 3.0, 0.1
"""Outliers are more than so many deviations off, so many times as frequent as samples between three
and so many deviations, and at most this share of the samples."""
FEW = 225
"""Among fewer samples, an outlier can look like noise."""


@dataclass(frozen=True)
class Prior:
    """The prior of the hyperparameters: their logarithms are normal, in units of deviations.

    Length-scales grow with the square root of the number of inputs, as distances do. The linear
    part of all inputs together has a tenth of the variance.
    """

    family: str
    columns: Indices

    @property
    def mean(self) -> Array:
        """The prior means: length-scales, variance, linear part, constant and noise."""
        count = len(self.columns)
        scales = np.full(count, 0.5 * np.log(count) + 0.5)
        return np.concatenate([scales, [0.0, np.log(0.1 / count), 0.0, np.log(0.01)]])

    @property
    def deviation(self) -> Array:
        """The prior deviations."""
        return np.concatenate([np.full(len(self.columns), 1.5), [1.5, 2.0, 1.5, 3.0]])

    @property
    def starts(self) -> list[Array]:
        """Default starts of a search, with shorter and shorter length-scales.

        At long length-scales a function with many waves looks like noise, and a search that starts
        there stays there.
        """
        start = self.mean
        start[: len(self.columns)] -= 0.5
        start[-1] = np.log(0.1)
        shorter = np.where(np.arange(len(start)) < len(self.columns), np.log(START_RATIO), 0.0)
        return [start - turn * shorter for turn in range(N_STARTS)]

    @property
    def gain_by_chance(self) -> float:
        """The decrease of −log p, over a start that was found on other samples, by chance.

        It is one nat for each parameter: half of it because the start was fitted to other samples,
        and half because the end is fitted to these (Akaike).
        """
        return float(len(self.mean))

    def bounds(self) -> tuple[Array, Array]:
        """Return the lower and the upper bounds."""
        lower, upper = self.mean - REACH, self.mean + REACH
        lower[-1], upper[-1] = np.log(LEAST_NOISE), np.log(MOST_NOISE)
        return lower, upper

    def kernel(self, parameters: Array, alone: bool = False) -> Kernel:
        """Return the kernel of parameters in the order of `mean`.

        With `alone`, its inputs are these columns only.
        """
        count, values = len(self.columns), np.exp(parameters)
        columns = None if alone else self.columns.tolist()
        smooth = FAMILIES[self.family](values[:count], float(values[count]), columns=columns)
        linear = Linear(float(values[count + 1]), columns=columns)
        return smooth + linear + Constant(float(values[count + 2]))


@dataclass(frozen=True)
class Hyperparameters:
    """Logarithms of hyperparameters, −log p there, and which samples are not outliers."""

    prior: Prior
    parameters: Array
    value: float
    kept: Mask
    residuals: Array | None = None
    """Leave-one-out residuals in deviations, (n, k); None if every evaluation failed."""
    gain: float = np.inf
    """The decrease of −log p from the given start."""

    @property
    def is_no_better(self) -> bool:
        """Whether the gain over the start, from as many other samples, is that of chance."""
        return not self.gain > self.prior.gain_by_chance

    @cached_property
    def kernel(self) -> Kernel:
        """The kernel."""
        return self.prior.kernel(self.parameters)

    @property
    def noise(self) -> float:
        """The variance of the noise, in units of the targets' variance."""
        return float(np.exp(self.parameters[-1]))


class BestPoint(NamedTuple):
    """The best evaluation: −log p, the point, its residuals, and −log p at the first start."""

    value: float
    point: Array
    residuals: Array | None
    first: float


def most_samples(points: int) -> int:
    """Return the most samples of a search for a group with so many points."""
    return DENSE_SAMPLES if _inducing(points, SAMPLES) == SAMPLES else SAMPLES


def _inducing(points: int, samples: int) -> int:
    """Return the number of inducing inputs for so many points; with all samples it is dense."""
    count = max(INDUCING, points)
    return samples if 3 * count >= samples else count


def search(
    prior: Prior,
    samples: Samples,
    start: Array | None,
    evaluations: int,
    seed: list[int],
    points: int = 0,
    least_gain: float = -np.inf,
) -> Work[Hyperparameters]:
    """Return the most probable hyperparameters of a group found in a number of evaluations.

    Without a start, as many evaluations on a third of the samples come first, because they cost
    less. A start for few samples is compared with the default ones. If there is much noise at the
    end, an explanation with less noise is looked for. A search that will not gain `least_gain` over
    its start ends early.
    """
    yield CALL_TICKS
    samples = samples._replace(X=samples.X[:, prior.columns])
    X, starts = samples.X, [] if start is None else [start]
    order = np.random.default_rng(seed).permutation(len(X))
    count = _inducing(points, len(X))
    if start is None or len(X) <= COARSE_FROM:
        starts += prior.starts
    if start is None and len(X) > COARSE_FROM:
        some = samples.select(order[: len(X) // 3])
        coarse = yield from _descend(prior, some, X[order[: count * 2 // 3]], starts, evaluations)
        starts = [coarse.point]
    inducing, gains = X[order[:count]], (np.inf, least_gain)
    found = yield from _descend(prior, samples, inducing, starts, evaluations, *gains)
    gain = np.inf if start is None else found.first - found.value
    if start is not None and len(X) > COARSE_FROM and np.exp(found.point[-1]) > NOISY:
        other = yield from _with_less_noise(prior, samples, order, found.point, evaluations)
        if other is not None:
            found = yield from _descend(prior, samples, inducing, [other], 1)
            gain = np.inf
    everything = np.ones(len(X), dtype=bool)
    return Hyperparameters(prior, found.point, found.value, everything, found.residuals, gain)


def _with_less_noise(
    prior: Prior, samples: Samples, order: Indices, present: Array, evaluations: int
) -> Work[Array | None]:
    """Return hyperparameters with less noise that explain the samples better, if there are any.

    At long length-scales a function with many waves looks like noise, more so with few inducing
    inputs. Others are found from short length-scales on a third of the samples. They are compared
    with the present ones by the dense evidence: of another third, where they may be worse by what
    the present ones gain by chance, then of most samples.
    """
    third, others = len(order) // 3, []
    some, rest = samples.select(order[:third]), samples.select(order[third : 2 * third])
    most = samples.select(order[:DENSE_SAMPLES])
    value = (yield from _descend(prior, rest, rest.X, [present], 1)).value
    for start in prior.starts[N_STARTS // 2 :]:
        coarse = yield from _descend(prior, some, some.X, [start], 2 * evaluations)
        if coarse.point[-1] <= present[-1] + np.log(LESS_NOISE):
            check = yield from _descend(prior, rest, rest.X, [coarse.point], 1)
            others += [coarse.point] if check.value < value + prior.gain_by_chance else []
    if not others:
        return None
    value = (yield from _descend(prior, most, most.X, [present], 1)).value
    other = yield from _descend(prior, most, most.X, others, evaluations, value)
    return other.point if other.value < value else None


def _descend(
    prior: Prior,
    samples: Samples,
    inducing: Array,
    starts: list[Array],
    evaluations: int,
    to_beat: float = np.inf,
    least_gain: float = -np.inf,
) -> Work[BestPoint]:
    """Return the best of a number of evaluations: all starts, then a descent from the best one.

    The descent ends early if steps as good as its last would not get it below `to_beat`, or not by
    `least_gain` below the first start.
    """
    mean, deviation = prior.mean, prior.deviation
    lower, upper = prior.bounds()
    yield CALL_TICKS + ALLOCATION_TICKS * len(samples.X) * len(inducing)
    objective = _objective(prior, inducing, samples)
    descents = [
        Descent(np.clip(start, lower + 0.01, upper - 0.01), lower, upper, TOLERANCE)
        for start in starts
    ]
    best, leading, first = BestPoint(np.inf, descents[0].start, None, np.inf), descents[0], np.inf
    for turn in range(len(starts) + evaluations - 1):
        descent = descents[turn] if turn < len(starts) else leading
        point = descent.point
        if point is None:
            break
        found = yield from objective(point)
        yield CALL_TICKS // 2
        if found is None:
            descent.tell(np.inf, np.zeros_like(point))
            continue
        z = (point - mean) / deviation
        value = found.value + 0.5 * float(z @ z)
        first = value if turn == 0 else first
        if value < best.value:
            left, gain = len(starts) + evaluations - 2 - turn, best.value - value
            best, leading = BestPoint(value, point, found.residuals, first), descent
            if turn >= len(starts) and value - left * gain > min(to_beat, first - least_gain):
                break
        descent.tell(value, found.gradient + z / deviation)
    return best


def _objective(
    prior: Prior, inducing: Array, samples: Samples
) -> Callable[[Array], Work[Evidence | None]]:
    """Return the evidence as a function of hyperparameters, by the selected backend."""
    X, Y, weights, extra = samples.X, samples.Y, samples.weights, samples.extra.mean(axis=1)
    few = len(X) <= len(inducing)
    if backend() == "compiled":
        if few:
            return CompiledDense(prior.family, X, Y, weights, extra)
        return CompiledEvidence(prior.family, inducing, X, Y, weights, extra)

    def objective(parameters: Array) -> Work[Evidence | None]:
        kernel, noise = prior.kernel(parameters, alone=True), float(np.exp(parameters[-1]))
        if few:
            return dense(kernel, noise, X, Y, weights, extra)
        return evidence(kernel, noise, inducing, X, Y, weights, extra)

    return objective


def search_without_outliers(
    prior: Prior,
    samples: Samples,
    start: Array | None,
    evaluations: int,
    seed: list[int],
    points: int = 0,
    least_gain: float = -np.inf,
) -> Work[Hyperparameters]:
    """Search, and search once more without the outliers among the samples, if there are any."""
    found = yield from search(prior, samples, start, evaluations, seed, points, least_gain)
    if found.residuals is None:
        return found
    kept = ordinary(found.residuals)
    if kept.all():
        return found
    rest = samples.select(kept)
    again = yield from search(prior, rest, found.parameters, evaluations // 2, seed, points)
    return Hyperparameters(prior, again.parameters, again.value, kept)


def ordinary(residuals: Array) -> Mask:
    """Return which samples are not outliers, by their leave-one-out residuals.

    Heavy tails are not outliers: there must be far more samples beyond `FAR` deviations than
    between three and `FAR`. Few samples with an outlier look like noise, so that it is found by its
    distance from the others.
    """
    size = np.abs(residuals).max(axis=1)
    everything = np.ones(len(size), dtype=bool)
    far = size > FAR
    if len(size) < FEW:
        far |= (size > 2.5) & (size > 12.0 * np.median(size))
    nearly = (size > 3.0) & ~far
    if far.sum() <= GAP * nearly.sum() or far.mean() > MOST_OUTLIERS:
        return everything
    return np.asarray(~far)
