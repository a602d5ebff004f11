"""The kernel and the noise that suit some samples, for a model that will have few points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pogp.arrays import Array, Indices
from pogp.backends import BUILT, backend
from pogp.kernels import RBF, Constant, Kernel, Linear, Matern12, Matern32, Stationary
from pogp.online.descent import Descent
from pogp.online.evidence import Evidence, dense, evidence
from pogp.online.rows import Mask, Samples
from pogp.slices import CALLS, FRESH, Work

if BUILT:
    from pogp.online.compiled_evidence import CompiledDense, CompiledEvidence

FAMILIES: dict[str, type[Stationary]] = {"Matern32": Matern32, "RBF": RBF, "Matern12": Matern12}
"""The smoothness of the kernel; each comes with a linear part and a constant."""
INDUCING = 150
"""Inducing inputs of the evidence; that of no more samples is of the dense process."""
COARSE = 360
"""Samples beyond which a search without a start begins on a third of them."""
LADDER, SHORTER = 4, 3.0
"""A search without a start begins at the best of so many points; length-scales are so many times
shorter at each."""
TOLERANCE = 3e-4
"""A search ends where a step gains less than this share of −log p."""
REACH = 6.0
"""How far, in nats, a logarithm may go from where data in units of their deviations put it."""
LEAST_NOISE, MOST_NOISE = 1e-6, 3.0
"""Of the variance of the targets."""

FAR, GAP, MOST_OUTLIERS = 6.0, 3.0, 0.1
"""Outliers are so many deviations off, so many times as frequent as samples more than three off,
and no more than this share."""
FEW = 225
"""Samples below which an outlier hides itself."""


@dataclass(frozen=True)
class Prior:
    """What is expected of hyperparameters before anything is seen, in units of deviations.

    Normal in their logarithms. Length-scales grow with the root of the number of inputs, as
    distances do; the linear part of all inputs together has a tenth of the variance.
    """

    family: str
    columns: Indices

    @property
    def mean(self) -> Array:
        """The means: of length-scales, variance, linear part, constant and noise."""
        count = len(self.columns)
        scales = np.full(count, 0.5 * np.log(count) + 0.5)
        return np.concatenate([scales, [0.0, np.log(0.1 / count), 0.0, np.log(0.01)]])

    @property
    def deviation(self) -> Array:
        """Their deviations."""
        return np.concatenate([np.full(len(self.columns), 1.5), [1.5, 2.0, 1.5, 3.0]])

    @property
    def starts(self) -> list[Array]:
        """Where a search without a better idea may start: with shorter and shorter length-scales.

        From long ones, targets that change fast look like noise, and the search does not leave that
        behind.
        """
        start = self.mean
        start[: len(self.columns)] -= 0.5
        start[-1] = np.log(0.1)
        shorter = np.where(np.arange(len(start)) < len(self.columns), np.log(SHORTER), 0.0)
        return [start - turn * shorter for turn in range(LADDER)]

    def bounds(self) -> tuple[Array, Array]:
        """Return the least and the largest values."""
        lower, upper = self.mean - REACH, self.mean + REACH
        lower[-1], upper[-1] = np.log(LEAST_NOISE), np.log(MOST_NOISE)
        return lower, upper

    def kernel(self, parameters: Array, alone: bool = False) -> Kernel:
        """Return the kernel of some parameters, which are those of `mean`.

        If `alone`, for inputs that are these columns and no others.
        """
        count, values = len(self.columns), np.exp(parameters)
        columns = None if alone else self.columns.tolist()
        smooth = FAMILIES[self.family](values[:count], float(values[count]), columns=columns)
        linear = Linear(float(values[count + 1]), columns=columns)
        return smooth + linear + Constant(float(values[count + 2]))


@dataclass(frozen=True)
class Found:
    """Hyperparameters, −log p there, and which samples are not outliers."""

    prior: Prior
    parameters: Array
    value: float
    kept: Mask
    residuals: Array | None = None
    """Of each sample given the others, (n, k), in deviations; None if the search found nothing."""
    gain: float = np.inf
    """By how much −log p is lower than at the start that was given."""

    @property
    def as_before(self) -> bool:
        """Whether it is no better than the start, which as many samples of the same kind gave.

        A nat for each parameter is chance: half of it the start loses as it was fitted to others,
        and half of it the end gains as it is fitted to these (Akaike).
        """
        return not self.gain > len(self.parameters)

    @property
    def kernel(self) -> Kernel:
        """The kernel."""
        return self.prior.kernel(self.parameters)

    @property
    def noise(self) -> float:
        """The variance of the noise, in units of the targets' deviation."""
        return float(np.exp(self.parameters[-1]))


class Best(NamedTuple):
    """The best that a descent has seen: −log p, where, the residuals there, and −log p at first."""

    value: float
    point: Array
    residuals: Array | None
    first: float


def search(
    prior: Prior, samples: Samples, start: Array | None, evaluations: int, seed: list[int]
) -> Work[Found]:
    """Return the most probable hyperparameters found with so many evaluations.

    Without a start, as many evaluations on a third of the samples, which cost less, come first. A
    start that comes from few samples is compared with the usual ones.
    """
    yield CALLS
    samples = samples._replace(X=samples.X[:, prior.columns])
    X, starts = samples.X, [] if start is None else [start]
    order = np.random.default_rng(seed).permutation(len(X))
    if start is None or len(X) <= COARSE:
        starts += prior.starts
    if start is None and len(X) > COARSE:
        some, inducing = order[: len(X) // 3], order[: INDUCING * 2 // 3]
        coarse = yield from _descend(prior, samples.where(some), X[inducing], starts, evaluations)
        starts = [coarse.point]
    found = yield from _descend(prior, samples, X[order[:INDUCING]], starts, evaluations)
    gain = np.inf if start is None else found.first - found.value
    everything = np.ones(len(X), dtype=bool)
    return Found(prior, found.point, found.value, everything, found.residuals, gain)


def _descend(
    prior: Prior, samples: Samples, inducing: Array, starts: list[Array], evaluations: int
) -> Work[Best]:
    """Return the best that is found with so many evaluations, from the best of some starts."""
    mean, deviation = prior.mean, prior.deviation
    lower, upper = prior.bounds()
    yield CALLS + FRESH * len(samples.X) * len(inducing)
    explain = _evidence(prior, inducing, samples)
    descents = [
        Descent(np.clip(start, lower + 0.01, upper - 0.01), lower, upper, TOLERANCE)
        for start in starts
    ]
    best, leading, first = Best(np.inf, descents[0].start, None, np.inf), descents[0], np.inf
    for turn in range(len(starts) + evaluations - 1):
        descent = descents[turn] if turn < len(starts) else leading
        point = descent.point
        if point is None:
            break
        found = yield from explain(point)
        yield CALLS // 2
        if found is None:
            descent.tell(np.inf, np.zeros_like(point))
            continue
        z = (point - mean) / deviation
        value = found.value + 0.5 * float(z @ z)
        first = value if turn == 0 else first
        if value < best.value:
            best, leading = Best(value, point, found.residuals, first), descent
        descent.tell(value, found.gradient + z / deviation)
    return best


def _evidence(
    prior: Prior, inducing: Array, samples: Samples
) -> Callable[[Array], Work[Evidence | None]]:
    """Return the evidence of samples as a function of hyperparameters, compiled if that is live."""
    X, Y, weights, extra = samples.X, samples.Y, samples.weights, samples.extra.mean(axis=1)
    few = len(X) <= len(inducing)
    if backend() == "compiled":
        if few:
            return CompiledDense(prior.family, X, Y, weights, extra)
        return CompiledEvidence(prior.family, inducing, X, Y, weights, extra)

    def explain(parameters: Array) -> Work[Evidence | None]:
        kernel, noise = prior.kernel(parameters, alone=True), float(np.exp(parameters[-1]))
        if few:
            return dense(kernel, noise, X, Y, weights, extra)
        return evidence(kernel, noise, inducing, X, Y, weights, extra)

    return explain


def without_outliers(
    prior: Prior, samples: Samples, start: Array | None, evaluations: int, seed: list[int]
) -> Work[Found]:
    """Return what a search finds, and once more without the samples that do not fit."""
    found = yield from search(prior, samples, start, evaluations, seed)
    if found.residuals is None:
        return found
    kept = ordinary(found.residuals)
    if kept.all():
        return found
    rest = samples.where(kept)
    again = yield from search(prior, rest, found.parameters, evaluations // 2, seed)
    return Found(prior, again.parameters, again.value, kept)


def ordinary(residuals: Array) -> Mask:
    """Return which samples are no outliers, by their residuals given the others.

    Heavy tails have no gap: there are outliers only if far more samples are far off than nearly so.
    Few samples that have an outlier among them are explained by noise; then it is one that stands
    out from the rest.
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
