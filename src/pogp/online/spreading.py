"""Predictions at rows that may be at any of some points, because they have gaps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from pogp.arrays import Array
from pogp.online.band import Band


class Prediction(NamedTuple):
    """The mean, the variance of y and that of the function, (n, k) each."""

    mean: Array
    variance: Array
    latent: Array


class Spread(NamedTuple):
    """What the gaps of a row change, (k,) each: its mean, and its variance, which they add to."""

    shift: Array
    variance: Array


def spread(found: Prediction, row: int, points: slice) -> Spread:
    """Return how predictions at some points, taken together, differ from that of a row."""
    means, latents = found.mean[points], found.latent[points]
    beyond = np.maximum(latents.mean(axis=0) - found.latent[row], 0.0)
    return Spread(means.mean(axis=0) - found.mean[row], means.var(axis=0) + beyond)


def gathered(
    predict: Callable[[Array], Prediction], X: Array, around: Sequence[Array | None], band: Band
) -> Prediction:
    """Return predictions at rows (n, p), each of them spread over points if it has some."""
    found = predict(np.vstack([X, *(points for points in around if points is not None)]))
    mean, variance, latent = (part[: len(X)].copy() for part in found)
    counts = [0 if points is None else len(points) for points in around]
    ends = np.cumsum([len(X), *counts]).tolist()
    for i in np.flatnonzero(counts).tolist():
        shift, extra = spread(found, i, slice(ends[i], ends[i + 1]))
        mean[i] += shift
        gap = band.gap(extra)
        variance[i] += gap
        latent[i] += gap
    return Prediction(mean, variance, latent)
