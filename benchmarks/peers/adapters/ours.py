"""The models of this package, sample by sample as any other peer: `predict`, then `learn`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import pogp
from benchmarks.peers.adapters import Prediction, Setting
from pogp.arrays import Array
from pogp.models import Model


class Ours:
    """A model of the package."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def rows(self, X: Array) -> Sequence[Array]:
        """Return the rows as they are."""
        return list(X)

    def predict(self, row: Array) -> Prediction:
        """Predict one row."""
        mean, variance = self.model.predict(row)
        return float(mean), float(variance)

    def learn(self, row: Array, y: float) -> None:
        """Learn one sample."""
        self.model.learn(row, y)

    def to_bytes(self) -> bytes:
        """Return what `save` writes to a file."""
        return self.model.to_bytes()


class InBatches(Ours):
    """A model that learns mini-batches: samples wait until there are enough of them."""

    def __init__(self, model: Model, batch: int) -> None:
        super().__init__(model)
        self._batch = batch
        self._waiting: list[tuple[Array, float]] = []

    def learn(self, row: Array, y: float) -> None:
        """Keep the sample, and learn all that wait once there are enough."""
        self._waiting.append((row, y))
        if len(self._waiting) == self._batch:
            X, targets = zip(*self._waiting, strict=True)
            self.model.learn(np.array(X), np.array(targets))
            self._waiting.clear()


def online(setting: Setting, **options: Any) -> Ours:
    """Return `OnlineGP`, which needs nothing but a seed."""
    return Ours(pogp.OnlineGP(seed=setting.seed, **options))


def tuned_once(setting: Setting, *, method: str, batch: int = 1, **options: Any) -> Ours:
    """Return a method by name, scaled and tuned on the first slice."""
    model = pogp.SelfTuning(method, warmup=setting.first, scale=True, seed=setting.seed, **options)
    return InBatches(model, batch) if batch > 1 else Ours(model)
