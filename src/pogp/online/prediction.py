"""Predictions, and what uncertain inputs add to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from pogp.arrays import Array
from pogp.online.band import Band


class Prediction(NamedTuple):
    """The mean, the variance of y and the latent variance, (n, k) each."""

    mean: Array
    variance: Array
    latent: Array


class GapEffect(NamedTuple):
    """The change of the mean and the additional variance due to missing values, (k,) each."""

    shift: Array
    variance: Array


def gap_effect(prediction: Prediction, row: int, points: slice) -> GapEffect:
    """Compare the average of the predictions at `points` with the prediction of `row`."""
    means, latents = prediction.mean[points], prediction.latent[points]
    more_latent = np.maximum(latents.mean(axis=0) - prediction.latent[row], 0.0)
    return GapEffect(means.mean(axis=0) - prediction.mean[row], means.var(axis=0) + more_latent)


def predict_around(
    predict: Callable[[Array], Prediction], X: Array, around: Sequence[Array | None], band: Band
) -> Prediction:
    """Predict rows (n, p). A row with points in `around` may be at any of these points."""
    found = predict(np.vstack([X, *(points for points in around if points is not None)]))
    mean, variance, latent = (part[: len(X)].copy() for part in found)
    counts = [0 if points is None else len(points) for points in around]
    ends = np.cumsum([len(X), *counts]).tolist()
    for i in np.flatnonzero(counts).tolist():
        shift, extra = gap_effect(found, i, slice(ends[i], ends[i + 1]))
        mean[i] += shift
        calibrated = band.calibrated_extra(extra)
        variance[i] += calibrated
        latent[i] += calibrated
    return Prediction(mean, variance, latent)
