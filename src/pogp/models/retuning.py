"""New hyperparameters along the stream, from a bounded, unbiased sample of it.

The evidence of the retained points cannot be used for tuning: they are the surprising samples, and
length-scales would shrink. Tuning maximises the marginal likelihood of raw samples in a reservoir.

New hyperparameters are tested on a part of the reservoir that they were not tuned on: an exact GP
on the other part must predict it better than with the old hyperparameters. Then the information of
the data, Λ and η, is transferred to them (mathematics.md §5). If the points are too few for the new
kernel, learning the reservoir from the beginning can be better. The candidate that predicts the
held-out part best is kept. The present model and the transferred one have already learned that
part, so relearning has to be clearly better to be chosen.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from pogp.arrays import Array, Indices
from pogp.kernels import Kernel, evaluate, prior_variance
from pogp.metrics import nlpd
from pogp.posteriors import AbsorbedPosterior
from pogp.reservoir import Reservoir
from pogp.tuning import Tuned, log_marginal_likelihood, tune

HELD_OUT = 1 / 3
MOST_SAMPLES = 600
"""The most samples for tuning and testing: the search is O(n³) per step."""
LEAST_SAMPLES = 30
"""The fewest samples for a tuning."""
LEAST_GAIN = 0.01
"""The gain that new hyperparameters must have, in nats per sample."""

Relearn = Callable[[Kernel, float, Indices], AbsorbedPosterior]
"""Learns some samples of the reservoir from the beginning, under another kernel and noise."""


@dataclass(frozen=True)
class Retuned:
    """New hyperparameters, the posterior under them, and the scale of its variances.

    `relearned` is true if the posterior was learned from the reservoir alone.
    """

    tuned: Tuned
    posterior: AbsorbedPosterior
    scale: Array
    relearned: bool


def retuned(
    posterior: AbsorbedPosterior,
    reservoir: Reservoir,
    scale: Array | None,
    relearn: Relearn,
    seed: int,
) -> Retuned | None:
    """Return better hyperparameters and the posterior under them, or None if there are none.

    `scale` is that of the variances, None if they are not calibrated.
    """
    X, Y, mean = reservoir.inputs, reservoir.targets, posterior.mean
    if len(Y) < LEAST_SAMPLES:
        return None
    order = np.random.default_rng(seed).permutation(len(Y))[:MOST_SAMPLES]
    held, kept = np.split(order, [int(HELD_OUT * len(order))])
    first = (X[kept], Y[kept])
    unseen = (X[held], Y[held])
    kernel, noise = posterior.kernel, posterior.noise
    found = tune(*first, kernel=kernel, restarts=1, seed=seed, noise=noise, mean=mean)
    before = _exact_nlpd(kernel, noise, mean, *first, *unseen)
    if _exact_nlpd(found.kernel, found.noise, mean, *first, *unseen) > before - LEAST_GAIN:
        return None
    found = replace(
        found, log_likelihood=log_likelihood(found.kernel, found.noise, reservoir, mean)
    )
    carried = posterior.under(found.kernel, found.noise)
    relearned = relearn(found.kernel, found.noise, kept)
    as_it_was = carried_over = started = np.ones(Y.shape[1])
    if scale is not None:
        as_it_was, started = scale, _spread(relearned, *unseen)
        carried_over = scale * _spread(carried, *unseen) / _spread(posterior, *unseen)
    scores = (
        _nlpd(posterior, as_it_was, *unseen),
        _nlpd(carried, carried_over, *unseen),
        _nlpd(relearned, started, *unseen),
    )
    best = int(np.argmin(scores))
    if best == 0:
        return None
    if best == 1:
        return Retuned(found, carried, carried_over, relearned=False)
    everything = relearn(found.kernel, found.noise, np.arange(len(Y)))
    return Retuned(found, everything, started, relearned=True)


def log_likelihood(kernel: Kernel, noise: float, reservoir: Reservoir, mean: Array) -> float:
    """Return log p of the samples in the reservoir."""
    return log_marginal_likelihood(kernel, noise, reservoir.inputs, reservoir.targets, mean)


def _spread(posterior: AbsorbedPosterior, X: Array, Y: Array) -> Array:
    """Return the mean of (y − mean)²/variance for each output."""
    means, latent = posterior.predict(X)
    return np.asarray(np.mean((Y - means) ** 2 / (latent + posterior.noise)[:, None], axis=0))


def _nlpd(posterior: AbsorbedPosterior, scale: Array, X: Array, Y: Array) -> float:
    """Return the NLPD of samples, their variances scaled."""
    means, latent = posterior.predict(X)
    return _mean_nlpd(Y, means, (latent + posterior.noise)[:, None] * scale)


def _exact_nlpd(
    kernel: Kernel, noise: float, mean: Array, X: Array, Y: Array, X_held: Array, Y_held: Array
) -> float:
    """Return the NLPD of the samples held out, by an ordinary GP on the others."""
    gram = evaluate(kernel, X, X) + noise * np.eye(len(X))
    cross = evaluate(kernel, X, X_held)
    solved = np.linalg.solve(gram, np.hstack([cross, Y - mean]))
    means = mean + cross.T @ solved[:, len(X_held) :]
    explained = np.sum(cross * solved[:, : len(X_held)], axis=0)
    latent = np.maximum(prior_variance(kernel, X_held) - explained, 0.0)
    return _mean_nlpd(Y_held, means, np.repeat((latent + noise)[:, None], Y.shape[1], axis=1))


def _mean_nlpd(Y: Array, means: Array, variances: Array) -> float:
    return float(nlpd(Y.ravel(), means.ravel(), variances.ravel()))
