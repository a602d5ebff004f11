"""New hyperparameters along the stream, from a bounded, unbiased sample of it.

The evidence of the retained points must not be used for that: they are the surprising ones, and
length-scales would shrink. So the marginal likelihood is that of raw samples in a reservoir. What
the data said, Λ and η, is carried over to the new prior (mathematics.md §5).

The new hyperparameters must earn their place twice on a part of the reservoir that they were not
tuned on: an ordinary GP on the other part must predict it better with them than with the old ones,
and so must the model that they are carried over to.
"""

from dataclasses import dataclass

import numpy as np

from pogp.arrays import Array, Indices
from pogp.kernels import Kernel, evaluate, prior_variance
from pogp.metrics import nlpd
from pogp.posteriors import AbsorbedPosterior
from pogp.reservoir import Reservoir
from pogp.tuning import Tuned, log_marginal_likelihood, tune

HELD_OUT = 1 / 3
LEAST_SAMPLES = 30
"""With fewer samples than this nothing is tuned."""
LEAST_GAIN = 0.01
"""What the new hyperparameters must gain at least, in nats per sample."""


@dataclass(frozen=True)
class Retuned:
    """New hyperparameters, the posterior under them, and the scale of its variances."""

    tuned: Tuned
    posterior: AbsorbedPosterior
    scale: Array


def retuned(
    posterior: AbsorbedPosterior, reservoir: Reservoir, scale: Array, seed: int
) -> Retuned | None:
    """Return better hyperparameters with all that goes with them, or None if there are none."""
    X, Y = reservoir.inputs, reservoir.targets
    if len(Y) < LEAST_SAMPLES:
        return None
    order = np.random.default_rng(seed).permutation(len(Y))
    held = order[: int(HELD_OUT * len(Y))]
    kept = order[len(held) :]
    mean = posterior.mean
    found = tune(
        X[kept],
        Y[kept],
        kernel=posterior.kernel,
        restarts=1,
        seed=seed,
        noise=posterior.noise,
        mean=mean,
    )
    old = _held_out(posterior.kernel, posterior.noise, mean, X, Y, kept, held)
    new = _held_out(found.kernel, found.noise, mean, X, Y, kept, held)
    if new > old - LEAST_GAIN:
        return None
    moved = posterior.under(found.kernel, found.noise)
    before, spread = _score(posterior, scale, X[held], Y[held])
    rescaled = scale * _score(moved, scale, X[held], Y[held])[1] / spread
    after, _ = _score(moved, rescaled, X[held], Y[held])
    if not after < before:
        return None
    return Retuned(found, moved, rescaled)


def log_likelihood(posterior: AbsorbedPosterior, reservoir: Reservoir) -> float:
    """Return log p of the samples in the reservoir under the hyperparameters in force."""
    samples = (reservoir.inputs, reservoir.targets)
    return log_marginal_likelihood(posterior.kernel, posterior.noise, *samples, posterior.mean)


def _score(posterior: AbsorbedPosterior, scale: Array, X: Array, Y: Array) -> tuple[float, Array]:
    """Return the NLPD of samples, and the mean of (y − mean)²/variance for each output."""
    means, latent = posterior.predict(X)
    variances = (latent + posterior.noise)[:, None] * scale
    spread = np.mean((Y - means) ** 2 / variances, axis=0)
    scores = [nlpd(Y[:, o], means[:, o], variances[:, o]) for o in range(Y.shape[1])]
    return float(np.mean(scores)), spread


def _held_out(
    kernel: Kernel, noise: float, mean: Array, X: Array, Y: Array, kept: Indices, held: Indices
) -> float:
    """Return the NLPD of the samples held out, by an ordinary GP on the others."""
    gram = evaluate(kernel, X[kept], X[kept]) + noise * np.eye(len(kept))
    cross = evaluate(kernel, X[kept], X[held])
    solved = np.linalg.solve(gram, np.hstack([cross, Y[kept] - mean]))
    means = mean + cross.T @ solved[:, len(held) :]
    explained = np.sum(cross * solved[:, : len(held)], axis=0)
    variance = np.maximum(prior_variance(kernel, X[held]) - explained, 0.0) + noise
    return float(np.mean([nlpd(Y[held, o], means[:, o], variance) for o in range(Y.shape[1])]))
