"""Peers that need a first slice of the stream: its scales, and what else is fitted to it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from benchmarks.peers.adapters import Prediction, Setting
from benchmarks.peers.adapters.simple import RunningMean
from pogp.arrays import Array


class FirstSlice(ABC):
    """Collect the slice, predicting the running mean; then continue in its standard deviations."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self._before = RunningMean(setting)
        self._slice: list[tuple[Array, float]] = []
        self._ready = False

    @abstractmethod
    def begin(self, X: Array, y: Array) -> None:
        """Make the model from the slice, in scaled units."""

    @abstractmethod
    def predict_scaled(self, x: Array) -> tuple[float, float]:
        """Return mean and variance of the target at one scaled input (1, p)."""

    @abstractmethod
    def learn_scaled(self, x: Array, y: float) -> None:
        """Learn one scaled sample."""

    @abstractmethod
    def to_bytes(self) -> bytes:
        """Return the model as it would be saved."""

    def rows(self, X: Array, y: Array) -> Sequence[Array]:
        """Return rows of shape (1, p)."""
        return list(X[:, None, :])

    def predict(self, row: Array) -> Prediction:
        """Predict in the units of the stream."""
        if not self._ready:
            return self._before.predict(row)
        mean, variance = self.predict_scaled((row - self._middle) / self._spread)
        return mean * self._y_spread + self._y_middle, variance * self._y_spread**2

    def learn(self, row: Array, y: float) -> None:
        """Learn in the units of the slice, or collect it."""
        if self._ready:
            scaled = (y - self._y_middle) / self._y_spread
            self.learn_scaled((row - self._middle) / self._spread, scaled)
            return
        self._before.learn(row, y)
        self._slice.append((row, y))
        if len(self._slice) == self.setting.first:
            self._begin()

    def _begin(self) -> None:
        X, y = np.vstack([row for row, _ in self._slice]), np.array([y for _, y in self._slice])
        self._middle, self._spread = X.mean(axis=0), _spread(X)
        self._y_middle, self._y_spread = float(y.mean()), float(_spread(y))
        self.begin((X - self._middle) / self._spread, (y - self._y_middle) / self._y_spread)
        self._slice.clear()
        self._ready = True


def _spread(values: Array) -> Array:
    """Return standard deviations, 1 where there is none."""
    spread = values.std(axis=0)
    return np.asarray(np.where(spread > 0, spread, 1.0))
