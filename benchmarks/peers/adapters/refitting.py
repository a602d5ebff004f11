"""Models without updates: fitted again from scratch on what is kept of the stream."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from pickle import dumps
from typing import Any

import numpy as np

from benchmarks.peers.adapters import Prediction, Setting
from benchmarks.peers.adapters.simple import RunningMean
from pogp.arrays import Array

EARLY = (100, 200, 500)
EVERY = 1_000
"""Fits while little is known, and from then on."""


def is_due(seen: int) -> bool:
    """Return whether a new fit is due after so many samples.

    >>> [seen for seen in range(1, 3001) if is_due(seen)]
    [100, 200, 500, 1000, 2000, 3000]
    """
    return seen in EARLY or seen % EVERY == 0


class Refitted(ABC):
    """A model fitted to the latest `window` samples; until the first fit the running mean."""

    def __init__(self, setting: Setting, window: int | None = None) -> None:
        self.fitted: Any = None
        self._before = RunningMean(setting)
        self._kept: deque[tuple[Array, float]] = deque(maxlen=window)

    @abstractmethod
    def fit(self, X: Array, y: Array) -> Any:
        """Return a model fitted to the samples."""

    @abstractmethod
    def predict_fitted(self, row: Array) -> Prediction:
        """Predict a row (1, p) by the fitted model."""

    def rows(self, X: Array) -> Sequence[Array]:
        """Return rows of shape (1, p)."""
        return list(X[:, None, :])

    def predict(self, row: Array) -> Prediction:
        """Predict by the last fit."""
        return self._before.predict(row) if self.fitted is None else self.predict_fitted(row)

    def learn(self, row: Array, y: float) -> None:
        """Keep the sample, and fit if that is due."""
        self._kept.append((row[0], y))
        self._before.learn(row, y)
        if is_due(self._before.count):
            X, targets = zip(*self._kept, strict=True)
            self.fitted = self.fit(np.array(X), np.array(targets))

    def to_bytes(self) -> bytes:
        """Return the pickled model of the last fit."""
        return dumps(self.fitted)
