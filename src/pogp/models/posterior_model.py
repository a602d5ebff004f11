"""Models around one posterior: the part of the protocol that does not depend on which."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from pogp import validation
from pogp.arrays import Array, Indices
from pogp.kernels import prior_variance
from pogp.models.model import OnlineModel
from pogp.posteriors import AbsorbedPosterior, FactoredPosterior, RetainedPosterior
from pogp.trace import Trace

P = TypeVar("P", RetainedPosterior, FactoredPosterior, AbsorbedPosterior)


class PosteriorModel(OnlineModel, Generic[P]):
    """A model that learns by changing one posterior, which it makes when the first sample comes."""

    _posterior_type: type[P]

    def __init__(self, kernel: object, noise: float, mean: float = 0.0) -> None:
        super().__init__(kernel, noise)
        self._mean = validation.finite("mean", mean)
        self._posterior: P | None = None  # from the first sample on, when p is known

    @property
    def mean(self) -> float:
        """The constant prior mean."""
        return self._mean

    @property
    def size(self) -> int:
        """The model order M: how many points are retained."""
        return 0 if self._posterior is None else self._posterior.size

    @property
    def nbytes(self) -> int:
        """Bytes held by what was learned."""
        return 0 if self._posterior is None else self._posterior.nbytes

    @property
    def dictionary(self) -> Array:
        """The retained inputs (M, p), in order of arrival."""
        if self._posterior is None:
            return np.empty((0, self._dimension or 0))
        return self._posterior.in_order("inputs")

    @property
    def indices(self) -> Indices:
        """The position in the stream, from 0, of each retained point, in order of arrival."""
        if self._posterior is None:
            return np.empty(0, dtype=np.int64)
        return self._posterior.in_order("arrivals")

    def learn(self, X: ArrayLike, y: ArrayLike) -> Trace:
        """Learn a batch X (n, p), y (n,), or one sample (p,) and a number, in order.

        The batch is learned whole or, where anything in it is wrong or interrupts it, not at all.
        """
        X, y = validation.samples(X, y, self._dimension)
        posterior = self._posterior
        if posterior is None:
            posterior = self._new_posterior(X.shape[1])
        records = self._learn(posterior, X, y)
        self._posterior = posterior
        self._dimension = X.shape[1]
        self._seen += len(y)
        return Trace(records)

    @abstractmethod
    def _learn(self, posterior: P, X: Array, y: Array) -> Array:
        """Learn checked samples, all or none of them, and return their records."""

    def memory(self) -> dict[str, Any]:
        """Return everything that was learned, as a flat mapping to arrays and numbers."""
        learned = {} if self._posterior is None else self._posterior.memory()
        return {"seen": self._seen, **learned}

    def remember(self, memory: dict[str, Any]) -> None:
        """Take over what `memory` returned."""
        if "inputs" in memory:
            dimension = memory["inputs"].shape[1]
            self._posterior = self._new_posterior(dimension)
            self._posterior.remember(memory)
            self._dimension = dimension
        self._seen = validation.count("seen", memory["seen"], 0)

    def _new_posterior(self, dimension: int) -> P:
        return self._posterior_type(self._kernel, self._noise, self._mean, dimension)

    def _latent(self, X: Array) -> tuple[Array, Array]:
        if self._posterior is None:
            return np.full(len(X), self._mean), np.array(prior_variance(self._kernel, X))
        return self._posterior.predict(X)

    def _latent_covariance(self, X: Array) -> Array:
        if self._posterior is None:
            return np.array(self._kernel(X))
        return self._posterior.covariance(X)
