"""Points, a kernel and a noise from a sample of a table, by the model that does best on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pogp.arrays import Array
from pogp.kernels import RBF, Kernel, Matern32
from pogp.kernels.stationary import STATIONARY
from pogp.models.absorbing import AbsorbingPOG
from pogp.models.selftuning.warmup import kernel_or_family
from pogp.tuning import tune

FAMILIES = (RBF.__name__, Matern32.__name__)
"""Tried if no kernel is given: smooth, and rough."""
FEW, MANY = 300, 1000
"""Rows of the sample by which a kernel is searched for, and by which it is then refined."""


@dataclass(frozen=True)
class Chosen:
    """What a sample suggests."""

    points: Array
    kernel: Kernel
    noise: float
    score: float
    """The mean log density that the model gave to the later half of the sample before learning."""


def chosen(X: Array, Y: Array, kernel: object, max_size: int, seed: int) -> Chosen:
    """Return what the sample suggests; rows are taken in an order drawn by the seed.

    A model with a cap learns the whole sample in one pass, and what it retains are the points.
    Without a kernel of the user's, the family whose predictions were better is taken.
    """
    order = np.random.default_rng(seed).permutation(len(X))
    X, Y = X[order], Y[order]
    given = None if kernel is None else kernel_or_family(kernel)
    starts = FAMILIES if given is None else (given,)
    return max((_tried(X, Y, start, max_size, seed) for start in starts), key=lambda c: c.score)


def _tried(X: Array, Y: Array, start: Kernel | str, max_size: int, seed: int) -> Chosen:
    kernel, noise = _tuned(X, Y, start, seed)
    options = {"max_size": max_size, "calibrate": True, "mean": Y.mean(axis=0), "reservoir": 0}
    model = AbsorbingPOG(kernel, noise, None, **options)
    trace = model.learn(X, Y)
    later = slice(len(X) // 2, None)
    variance = trace.variance[later]
    z2 = (Y[later] - trace.mean[later]) ** 2 / variance
    score = float(-0.5 * np.mean(np.log(variance) + z2))
    return Chosen(model.dictionary, kernel, noise, score)


def _tuned(X: Array, Y: Array, start: Kernel | str, seed: int) -> tuple[Kernel, float]:
    """Return the kernel and the noise: from several starts on few rows, refined on more.

    Few rows of many inputs can be explained without noise by a kernel that more rows refute, and
    the search may not come back from there. On more rows it starts at the scale of the data, too.
    """
    first = np.sort(np.unique(np.column_stack([X, Y]), axis=0, return_index=True)[1])[:MANY]
    if len(first) < 2:
        raise ValueError("the rows of the sample are all the same: there is nothing to tune by")
    X, Y = X[first], Y[first] - Y.mean(axis=0)
    begin = STATIONARY[start] if isinstance(start, str) else start
    found = tune(X[:FEW], Y[:FEW], kernel=begin, seed=seed)
    if len(X) > FEW:
        found = tune(X, Y, kernel=found.kernel, noise=found.noise, restarts=1, seed=seed)
    return found.kernel, found.noise
