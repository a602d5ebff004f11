"""Models around one posterior: the part of the protocol that does not depend on which."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Generic, Self, TypeVar

import numpy as np

from pogp import validation
from pogp.arrays import Array, Indices
from pogp.models.base import OnlineModel
from pogp.posteriors import AbsorbedPosterior, FactoredPosterior, RetainedPosterior

P = TypeVar("P", RetainedPosterior, FactoredPosterior, AbsorbedPosterior)


class PosteriorModel(OnlineModel, Generic[P]):
    """A model that learns by changing one posterior, which it makes when the first sample comes."""

    def __init__(self, kernel: object, noise: float) -> None:
        super().__init__(kernel, noise)
        self._posterior: P | None = None  # from the first sample on, when p is known

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
        with self._lock:
            return self._posterior.in_order("inputs")

    @property
    def indices(self) -> Indices:
        """The position in the stream, from 0, of each retained point, in order of arrival."""
        if self._posterior is None:
            return np.empty(0, dtype=np.int64)
        with self._lock:
            return self._posterior.in_order("arrivals")

    def memory(self) -> dict[str, Any]:
        """Return everything that was learned, as a flat mapping to arrays and numbers."""
        with self.at_rest():
            learned = {} if self._posterior is None else self._posterior.memory()
            return {"seen": self._seen, **learned}

    def remember(self, memory: dict[str, Any]) -> None:
        """Take over what `memory` returned."""
        if "inputs" in memory:
            self._posterior = self._remembered_posterior(memory)
            self._posterior.remember(memory)
            self._dimension = memory["inputs"].shape[1]
        last = int(memory["arrivals"].max(initial=-1)) if "arrivals" in memory else -1
        self._seen = validation.position("seen", memory["seen"], last + 1)

    def _become(self, other: Self) -> None:
        posterior = other._posterior
        if isinstance(posterior, RetainedPosterior | FactoredPosterior):  # others learn by copies
            posterior.lock = self._lock
        super()._become(other)

    @abstractmethod
    def _remembered_posterior(self, memory: dict[str, Any]) -> P:
        """Return an empty posterior of the shape that `memory` needs."""

    def _latent_gradient(self, X: Array) -> tuple[Array, Array]:
        if self._posterior is None:
            return np.zeros_like(X), self._kernel.diag_gradient(X)
        return self._posterior.gradient(X)

    def _latent_covariance(self, X: Array) -> Array:
        if self._posterior is None:
            return np.array(self._kernel(X))
        return self._posterior.covariance(X)
