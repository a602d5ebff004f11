"""Offline models around an inducing posterior: the part of the protocol that they share."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pogp import validation
from pogp.arrays import Array
from pogp.kernels import prior_variance
from pogp.models.base import Model
from pogp.posteriors.inducing import InducingPosterior


class InducingModel(Model):
    """A model that is fitted to all samples at once and sees them through a few inputs."""

    def __init__(self, kernel: object, noise: float, size: int, mean: float, seed: int) -> None:
        super().__init__(kernel, noise)
        self._most = validation.count("size", size, 1)
        self._mean = validation.finite("mean", mean)
        self._seed = validation.seed(seed)
        self._posterior: InducingPosterior | None = None

    @property
    def mean(self) -> float:
        """The constant prior mean."""
        return self._mean

    @property
    def seed(self) -> int:
        """The seed of whatever `fit` draws."""
        return self._seed

    @property
    def size(self) -> int:
        """The model order M: how many inducing inputs there are, 0 before `fit`."""
        return 0 if self._posterior is None else self._posterior.size

    @property
    def dictionary(self) -> Array:
        """The inducing inputs (M, p)."""
        if self._posterior is None:
            return np.empty((0, self._dimension or 0))
        return self._posterior.inputs.copy()

    @property
    def nbytes(self) -> int:
        """Bytes held by what was fitted."""
        return 0 if self._posterior is None else self._posterior.nbytes

    def _samples(self, X: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
        X, y = validation.samples(X, y, self._dimension)
        if len(y) == 0:
            raise ValueError(f"X must have at least one sample, got shape {X.shape}")
        return X, y

    def _latent(self, X: Array) -> tuple[Array, Array]:
        if self._posterior is None:
            return np.full(len(X), self._mean), np.array(prior_variance(self._kernel, X))
        return self._posterior.predict(X)

    def _latent_gradient(self, X: Array) -> tuple[Array, Array]:
        if self._posterior is None:
            return np.zeros_like(X), self._kernel.diag_gradient(X)
        return self._posterior.gradient(X)

    def _latent_covariance(self, X: Array) -> Array:
        if self._posterior is None:
            return np.array(self._kernel(X))
        return self._posterior.covariance(X)
