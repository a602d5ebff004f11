"""Points, a kernel and a noise from a sample of a table, by the model that does best on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from logging import getLogger
from typing import Any

import numpy as np

from pogp.arrays import Array
from pogp.kernels import RBF, Kernel, Matern32
from pogp.kernels.stationary import STATIONARY
from pogp.models.absorbing import AbsorbingPOG
from pogp.models.selftuning.warmup import kernel_or_family
from pogp.online.evidence import evidence
from pogp.online.samples import Mask
from pogp.online.tuning import ordinary
from pogp.search import Progress
from pogp.slices import finished
from pogp.tuning import Tuned, tune

LOG = getLogger(__name__)

FAMILIES = (RBF.__name__, Matern32.__name__)
"""Tried if no kernel is given: smooth, and rough."""
FEW, MANY = 300, 1000
"""Rows of the sample by which a kernel is searched for, and by which it is then refined."""
SAME = 1.0
"""Two kernels with log-likelihoods this close are not worth telling apart."""


@dataclass(frozen=True)
class Chosen:
    """Points, kernel and noise found on a sample."""

    points: Array
    kernel: Kernel
    noise: float
    mean: Array
    """Of the sample, (k,)."""
    score: float
    """The mean log density that the model gave to the later half of the sample before learning."""


def chosen(
    X: Array, Y: Array, kernel: object, max_size: int, seed: int, progress: Progress | None = None
) -> Chosen:
    """Return what the sample suggests; rows are taken in an order drawn by the seed.

    A model with a cap learns the whole sample in one pass, and what it retains are the points. Of
    several kernels, the one with the better predictions is taken.
    """
    order = np.random.default_rng(seed).permutation(len(X))
    X, Y = X[order], Y[order]
    given = None if kernel is None else kernel_or_family(kernel)
    starts = FAMILIES if given is None else (given,)
    tried: list[Chosen] = []
    for start in starts:
        for tuned in _tuned(X, Y, start, seed, progress):
            tried.append(_tried(X, Y, tuned, max_size))
            LOG.info(
                "%r, noise %.4g: mean log density %.4f with %d points",
                tuned.kernel,
                tuned.noise,
                tried[-1].score,
                len(tried[-1].points),
            )
    return max(tried, key=lambda c: c.score)


def fitting(X: Array, Y: Array, best: Chosen) -> Mask:
    """Return which rows are not outliers, by their residuals given the other rows."""
    found = finished(evidence(best.kernel, best.noise, best.points, X, Y - best.mean))
    kept = np.ones(len(X), dtype=bool) if found is None else ordinary(found.residuals)
    if not kept.all():
        LOG.info("%d of %d rows are outliers", np.count_nonzero(~kept), len(kept))
    return kept


def _tried(X: Array, Y: Array, tuned: Tuned, max_size: int) -> Chosen:
    mean = np.asarray(Y.mean(axis=0))
    options: dict[str, Any] = {"max_size": max_size, "mean": mean, "reservoir": 0}
    model = AbsorbingPOG(tuned.kernel, tuned.noise, None, calibrate=True, **options)
    trace = model.learn(X, Y)
    later = slice(len(X) // 2, None)
    variance = trace.variance[later]
    z2 = (Y[later] - trace.mean[later]) ** 2 / variance
    score = float(-0.5 * np.mean(np.log(variance) + z2))
    return Chosen(model.dictionary, tuned.kernel, tuned.noise, mean, score)


def _tuned(
    X: Array, Y: Array, start: Kernel | str, seed: int, progress: Progress | None = None
) -> Iterator[Tuned]:
    """Yield kernels and noises: from several starts on few rows, refined on more, and from more.

    Few rows of many inputs can be explained without noise by a kernel that more rows refute, and
    the search may not come back from there. On more rows it also starts at the scale of the data.
    """
    first = np.sort(np.unique(np.column_stack([X, Y]), axis=0, return_index=True)[1])[:MANY]
    if len(first) < 2:
        raise ValueError("the rows of the sample are all the same: there is nothing to tune by")
    X, Y = X[first], Y[first] - Y.mean(axis=0)
    begin = STATIONARY[start] if isinstance(start, str) else start
    options: dict[str, Any] = {"seed": seed, "progress": progress}
    few = tune(X[:FEW], Y[:FEW], kernel=begin, **options)
    if len(X) <= FEW:
        yield few
        return
    refined = tune(X, Y, kernel=few.kernel, noise=few.noise, restarts=0, **options)
    yield refined
    second = tune(X, Y, kernel=begin, restarts=0 if isinstance(begin, type) else 1, **options)
    if abs(second.log_likelihood - refined.log_likelihood) > SAME:
        yield second
