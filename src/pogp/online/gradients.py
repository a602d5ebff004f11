"""Derivatives of what a stream predicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pogp.arrays import Array
from pogp.online.mixture import slopes_of
from pogp.online.pooling import Slopes

if TYPE_CHECKING:
    from pogp.online.stream import Stream


def gradient(stream: Stream, X: Array) -> tuple[Array, Array]:
    """Return the derivatives of mean and latent variance by raw inputs, (n, p, k)."""
    if stream.seen < 2:
        return (np.zeros((*X.shape, stream.outputs)),) * 2
    slopes = stream.experts.gradients(X, stream.scales)
    of_groups = (group.gradients(X, stream.resting) for group in stream.groups)
    parts = [(slopes, np.zeros_like(slopes)), *of_groups]
    of_means, of_variances = (np.concatenate(part) for part in zip(*parts, strict=True))
    means, variances, shares = stream.members(X)
    mean, variance, weights = stream.mixture.combine_many(stream.scores_now, means, variances)
    of_mean, of_variance = slopes_of(weights, means - mean, of_means, of_variances)
    noise = np.einsum("mk,mn,mnk->nk", weights, 1.0 - shares, variances)
    of_latent = stream.band.latent_slope(variance, noise)[:, None] * of_variance
    if stream.rest is None:
        return of_mean, of_latent
    of_variance = stream.band.latent_slope(variance, 0.0 * noise)[:, None] * of_variance
    return stream.rest.gradient(X, stream.told(X), Slopes(of_mean, of_variance, of_latent))
