"""Models that keep samples, which can be read and removed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pogp import validation
from pogp.arrays import Array
from pogp.compression import Compression
from pogp.criteria import Criterion
from pogp.interrupts import Uninterrupted
from pogp.models.base import Argument, Model
from pogp.posteriors import CholeskyPosterior, RetainedPosterior
from pogp.trace import Trace, blank

Retained = RetainedPosterior | CholeskyPosterior


class RetainedModel(Model):
    """A model whose posterior is the exact GP on the samples it retains."""

    _posterior: Retained | None
    mean = Argument[float]("The constant prior mean.")

    def __init__(
        self, kernel: object, noise: float, mean: float, compression: Compression[Criterion]
    ) -> None:
        super().__init__(kernel, noise, mean)
        self._compression = compression

    def learn(self, X: ArrayLike, y: ArrayLike) -> Trace:
        """Learn a batch X (n, p), y (n,), or one sample (p,) and a number, in order.

        The batch is learned completely or, if it is invalid or interrupted, not at all.
        """
        with self._learn_lock:
            X, y = validation.samples(X, y, self._dimension)
            posterior = self._posterior
            if posterior is None:
                if len(y) == 0:  # the number of inputs is not known yet
                    return Trace(blank(0))
                posterior = self._new_posterior(X.shape[1])
            plan = self._compression.plan(self._seen, len(y))
            with Uninterrupted() as signals:
                records = posterior.learn(X, y, self._seen, plan, signals, self._state_lock)
                with self._state_lock:
                    self._posterior, self._dimension = posterior, X.shape[1]
                    self._seen += len(y)
            return Trace(records)

    @property
    def targets(self) -> Array:
        """The retained targets (M,), in order of arrival."""
        with self._state_lock:
            return np.empty(0) if self._posterior is None else self._posterior.in_order("targets")

    def remove(self, index: int) -> None:
        """Remove a retained sample, by its position in the stream (one of `indices`).

        The posterior is then the one that the other retained samples give.
        """
        position = validation.count("index", index, 0)
        with self.locked(), Uninterrupted():
            if self._posterior is None:
                raise ValueError(f"sample {index!r} is not retained: nothing was learned yet")
            self._posterior.remove(position)

    def _prune_to_cap(self) -> None:
        if isinstance(self._posterior, RetainedPosterior):
            self._posterior.prune(self._compression.cap)

    def _restored(self, state: dict[str, Any]) -> Retained:
        posterior = self._new_posterior(state["inputs"].shape[1])
        posterior.restore(state)
        return posterior

    def _new_posterior(self, dimension: int) -> Retained:
        prior = (self._kernel, self._noise, self._mean, dimension)
        return RetainedPosterior(*prior, self._compression.criterion)
