"""Models on the absorbed posterior: several outputs, and a noise for each sample."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pogp import validation
from pogp.arrays import Array
from pogp.compression import Compression
from pogp.criteria import AbsorbedCriterion
from pogp.interrupts import Lock, Uninterrupted
from pogp.kernels import prior_variance
from pogp.models.base import Model
from pogp.posteriors import AbsorbedPosterior
from pogp.trace import Trace, blank

ONE = np.ones(1)
ONE.flags.writeable = False


class AbsorbedModel(Model):
    """Points hold a belief about the function; the information of removed points is kept.

    Targets are y (n,), or y (n, k) for k outputs that share the points, the kernel and the noise.
    Then means and variances are (n, k), covariances (n, n, k) and samples (draws, n, k).
    """

    multi_output = True
    _posterior: AbsorbedPosterior | None

    def __init__(
        self,
        kernel: object,
        noise: float,
        mean: ArrayLike,
        compression: Compression[AbsorbedCriterion],
        forgetting: float = 1.0,
    ) -> None:
        super().__init__(kernel, noise)
        self._prior_mean = validation.finite_vector("mean", mean)
        self._mean = self._prior_mean.tolist()
        # the shape of one target: () for a number, (k,) for several, None while it is not known
        self._target: tuple[int, ...] | None = self._prior_mean.shape or None
        self._compression = compression
        self._max_size = compression.max_size
        self._forgetting = validation.finite("forgetting", forgetting)
        if not 0 < self._forgetting <= 1:
            raise ValueError(f"forgetting must be in (0, 1], got {forgetting!r}")

    @property
    def mean(self) -> float | Array:
        """The constant prior mean, a number or one for each output."""
        return self._prior_mean.copy() if self._prior_mean.ndim else float(self._prior_mean)

    @property
    def max_size(self) -> int | None:
        """The cap on the model order."""
        return self._max_size

    def learn(self, X: ArrayLike, y: ArrayLike, noise: ArrayLike | None = None) -> Trace:
        """Learn a batch X (n, p), y (n,) or (n, k), or one sample (p,) and its target, in order.

        `noise`, a number or one for each sample, is the noise variance of these samples where it
        is not the model's. The batch is learned completely or, if it is invalid or interrupted,
        not at all.
        """
        with self._learn_lock:
            X, Y, target = validation.vector_samples(X, y, self._dimension, self._target)
            if len(Y) == 0 and self._posterior is None:  # the shape of targets is not known yet
                return Trace(blank(0, Y.shape[1]), flat=target == ())
            noises = self._noises(noise, X)
            posterior = self._posterior or self._begin(X.shape[1], Y.shape[1])
            relevance, plan = self._relevance(X), self._compression.plan(self._seen, len(Y))
            samples, core = (X, Y, noises, relevance), posterior.core
            in_place = core.in_place(X, Y, noises)
            changed: Lock = self._state_lock if in_place else nullcontext()
            with Uninterrupted() as signals, changed:
                if in_place:
                    records = core.learn(posterior.criterion, *samples, self._seen, plan)
                else:
                    core, records = posterior.learned(*samples, self._seen, plan, signals)
                with self._state_lock:
                    posterior.core = core
                    self._posterior, self._dimension, self._target = posterior, X.shape[1], target
                    self._seen += len(Y)
                    trace = Trace(records, flat=target == ())
                    self._learned(X, Y, trace, noise is not None)
            return trace

    def _prune_to_cap(self) -> None:
        if self._posterior is not None and self.size > self._compression.cap:
            self._posterior.prune(-np.inf, self._compression.cap)

    def _learned(self, X: Array, Y: Array, trace: Trace, own_noise: bool) -> None:
        """Count samples that were learned, and note whether they had their own noise."""

    def _relevance(self, X: Array) -> Array:
        """Return the factors by which the cost of removing each of these inputs is multiplied."""
        return ONE if len(X) == 1 else np.ones(len(X))

    def _noises(self, noise: ArrayLike | None, X: Array) -> Array:
        if noise is None:
            return np.array([self._noise]) if len(X) == 1 else np.full(len(X), self._noise)
        return validation.noise_variances(noise, len(X))

    def _begin(self, dimension: int, outputs: int) -> AbsorbedPosterior:
        prior = np.array(np.broadcast_to(self._prior_mean, (outputs,)))
        options = (self._compression.criterion, self._forgetting)
        return AbsorbedPosterior(self._kernel, self._noise, prior, dimension, *options)

    def state(self) -> dict[str, Any]:
        """Return everything that was learned, as a flat mapping to arrays and numbers."""
        with self._state_lock:
            return {**super().state(), "flat": self._target == ()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
        super().restore(state)
        if self._posterior is not None:
            self._target = () if state["flat"] else (state["weights"].shape[-1],)

    def _restored(self, state: dict[str, Any]) -> AbsorbedPosterior:
        posterior = self._begin(state["inputs"].shape[1], state["weights"].shape[-1])
        posterior.restore(state)
        return posterior

    def _latent(self, X: Array) -> tuple[Array, Array]:
        shape = (len(X), *(self._target or ()))
        if self._posterior is None:
            mean = np.array(np.broadcast_to(self._prior_mean, shape))
            variance = np.array(prior_variance(self._kernel, X))
        else:
            mean, variance = self._posterior.predict(X)
            mean = mean.reshape(shape)
        return mean, variance if mean.ndim == 1 else np.repeat(variance[:, None], shape[1], axis=1)

    def _latent_gradient(self, X: Array) -> tuple[Array, Array]:
        mean, variance = super()._latent_gradient(X)
        if not self._target:
            return mean.reshape(X.shape), variance
        shape = (*X.shape, *self._target)
        if mean.shape != shape:  # of the prior
            mean = np.zeros(shape)
        return mean, np.repeat(variance[:, :, None], shape[2], axis=2)

    def covariance(self, X: ArrayLike, latent: bool = False) -> Array:
        """Return the covariance of y (or, latent, of f) between rows: (n, n) or (n, n, k)."""
        with self._state_lock:
            shared = super().covariance(X, latent)
        return np.repeat(shared[:, :, None], self._target[0], axis=2) if self._target else shared
