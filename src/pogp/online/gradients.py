"""Derivatives of the predictions of a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pogp.arrays import Array
from pogp.online.mixture import mixture_slopes
from pogp.online.pooling import Slopes

if TYPE_CHECKING:
    from pogp.online.stream import Stream


def gradient(stream: Stream, X: Array) -> tuple[Array, Array]:
    """Return the derivatives of mean and latent variance by raw inputs, (n, p, k)."""
    ensemble = stream.ensemble
    if stream.seen < 2:
        return (np.zeros((*X.shape, ensemble.outputs)),) * 2
    situations = ensemble.situations(X)
    if len(situations) != 1:
        whole = (np.empty((*X.shape, ensemble.outputs)), np.empty((*X.shape, ensemble.outputs)))
        for _, rows in situations:
            whole[0][rows], whole[1][rows] = gradient(stream, X[rows])
        return whole
    slopes = ensemble.predictors.gradients(X, ensemble.scales)
    of_groups = (group.gradients(X, ensemble.resting) for group in ensemble.groups)
    parts = [(slopes, np.zeros_like(slopes)), *of_groups]
    of_means, of_variances = (np.concatenate(part) for part in zip(*parts, strict=True))
    means, variances, shares = ensemble.predict_members(X)
    mean, variance, weights = ensemble.combine(means, variances, situations[0][0])
    of_mean, of_variance = mixture_slopes(weights, means - mean, of_means, of_variances)
    noise = np.einsum("mk,mn,mnk->nk", weights, 1.0 - shares, variances)
    of_latent = ensemble.band.latent_slope(variance, noise)[:, None] * of_variance
    if stream.past_model is not None:
        of_variance = ensemble.band.latent_slope(variance, 0.0 * noise)[:, None] * of_variance
        slopes_of_mixture = Slopes(of_mean, of_variance, of_latent)
        pooled = stream.past_model.gradient(X, ensemble.predict(X), slopes_of_mixture)
        of_mean, of_latent = pooled
    line = stream.line(X)
    return (of_mean, of_latent) if line is None else line.gradient(X, of_mean, of_latent)
