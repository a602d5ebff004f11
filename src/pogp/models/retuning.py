"""New hyperparameters along the stream, from a bounded, unbiased sample of it.

The evidence of the retained points must not be used for that: they are the surprising ones, and
length-scales would shrink. So the marginal likelihood is that of raw samples in a reservoir.

The new hyperparameters must earn their place on a part of the reservoir that they were not tuned
on: an ordinary GP on the other part must predict it better with them than with the old ones. Then
what the data said, Λ and η, is carried over to them (mathematics.md §5). Where the points are too
few for the new kernel, learning the reservoir afresh can be better than that. Whatever predicts the
part held out best is kept. What has learned that part already, the model as it was and the one
carried over, is favoured by that: to start afresh takes a clear gain.
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
"""No more than these are tuned by and held out: the search is O(n³) a step."""
LEAST_SAMPLES = 30
"""With fewer samples than this nothing is tuned."""
LEAST_GAIN = 0.01
"""What the new hyperparameters must gain at least, in nats per sample."""

Relearn = Callable[[Kernel, float, Indices], AbsorbedPosterior]
"""Learns some of the samples in the reservoir afresh, under another kernel and noise."""


@dataclass(frozen=True)
class Retuned:
    """New hyperparameters, the posterior under them, and the scale of its variances.

    `afresh` tells whether that was learned from the reservoir alone.
    """

    tuned: Tuned
    posterior: AbsorbedPosterior
    scale: Array
    afresh: bool


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
    afresh = relearn(found.kernel, found.noise, kept)
    as_it_was = carried_over = started = np.ones(Y.shape[1])
    if scale is not None:
        as_it_was, started = scale, _spread(afresh, *unseen)
        carried_over = scale * _spread(carried, *unseen) / _spread(posterior, *unseen)
    scores = (
        _nlpd(posterior, as_it_was, *unseen),
        _nlpd(carried, carried_over, *unseen),
        _nlpd(afresh, started, *unseen),
    )
    best = int(np.argmin(scores))
    if best == 0:
        return None
    if best == 1:
        return Retuned(found, carried, carried_over, afresh=False)
    everything = relearn(found.kernel, found.noise, np.arange(len(Y)))
    return Retuned(found, everything, started, afresh=True)


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
