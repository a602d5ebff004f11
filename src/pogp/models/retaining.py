"""Models that keep samples: what is kept can be read, and taken back."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from pogp import validation
from pogp.arrays import Array
from pogp.interrupts import Uninterrupted
from pogp.kernels import prior_variance
from pogp.models.posterior_model import PosteriorModel
from pogp.posteriors import CholeskyPosterior, RetainedPosterior
from pogp.trace import FIELDS, Trace

R = TypeVar("R", RetainedPosterior, CholeskyPosterior)


class RetainingModel(PosteriorModel[R]):
    """A model whose posterior is the exact GP on the samples it retains."""

    _posterior_type: type[R]

    def __init__(self, kernel: object, noise: float, mean: float = 0.0) -> None:
        super().__init__(kernel, noise)
        self._mean = validation.finite("mean", mean)

    @property
    def mean(self) -> float:
        """The constant prior mean."""
        return self._mean

    def learn(self, X: ArrayLike, y: ArrayLike) -> Trace:
        """Learn a batch X (n, p), y (n,), or one sample (p,) and a number, in order.

        The batch is learned whole or, where anything in it is wrong or interrupts it, not at all.
        """
        with self._turn:
            X, y = validation.samples(X, y, self._dimension)
            posterior = self._posterior
            if posterior is None:
                if len(y) == 0:  # which does not say how many inputs there will be
                    return Trace(np.empty((0, len(FIELDS))))
                posterior = self._new_posterior(X.shape[1])
            with Uninterrupted() as signals:
                records = self._learn(posterior, X, y, signals)
                with self._lock:
                    self._posterior, self._dimension = posterior, X.shape[1]
                    self._seen += len(y)
            return Trace(records)

    @abstractmethod
    def _learn(self, posterior: R, X: Array, y: Array, signals: Uninterrupted) -> Array:
        """Learn checked samples, all or none of them, and return their records."""

    @property
    def targets(self) -> Array:
        """The retained targets (M,), in order of arrival."""
        with self._lock:
            return np.empty(0) if self._posterior is None else self._posterior.in_order("targets")

    def remove(self, index: int) -> None:
        """Take a retained sample back, by its position in the stream (one of `indices`).

        The posterior is then the one that the other retained samples give.
        """
        position = validation.count("index", index, 0)
        with self.at_rest(), Uninterrupted():
            if self._posterior is None:
                raise ValueError(f"sample {index!r} is not retained: nothing was learned yet")
            self._posterior.remove(position)

    def _remembered_posterior(self, memory: dict[str, Any]) -> R:
        return self._new_posterior(memory["inputs"].shape[1])

    def _new_posterior(self, dimension: int) -> R:
        posterior = self._posterior_type(self._kernel, self._noise, self._mean, dimension)
        posterior.lock = self._lock
        return posterior

    def _latent(self, X: Array) -> tuple[Array, Array]:
        if self._posterior is None:
            return np.full(len(X), self._mean), np.array(prior_variance(self._kernel, X))
        return self._posterior.predict(X)
