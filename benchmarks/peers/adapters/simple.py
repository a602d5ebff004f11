"""The simplest predictors: the mean of the targets so far, and the last of them."""

from collections.abc import Sequence
from pickle import dumps

from benchmarks.peers.adapters import Prediction, Setting
from pogp.arrays import Array


class RunningMean:
    """The mean and the variance of the targets so far (Welford's update)."""

    def __init__(self, setting: Setting) -> None:
        self.count, self.mean, self._squares = 0, 0.0, 0.0

    @property
    def variance(self) -> float:
        """The variance of the targets so far; 1 while there is none."""
        return self._squares / self.count if self._squares > 0 else 1.0

    def rows(self, X: Array) -> Sequence[Array]:
        """Return the rows as they are."""
        return list(X)

    def predict(self, row: Array) -> Prediction:
        """Predict the mean so far."""
        return self.mean, self.variance

    def learn(self, row: Array, y: float) -> None:
        """Take the target into the mean."""
        self.count += 1
        before = y - self.mean
        self.mean += before / self.count
        self._squares += before * (y - self.mean)

    def to_bytes(self) -> bytes:
        """Return the pickled numbers."""
        return dumps(vars(self))


class LastValue(RunningMean):
    """The last target, with the mean square of the steps so far as its variance."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._last = 0.0

    def predict(self, row: Array) -> Prediction:
        """Predict the last target."""
        return self._last, self.variance

    def learn(self, row: Array, y: float) -> None:
        """Remember the target, and how far it is from the one before."""
        if self.count:
            self._squares += (y - self._last) ** 2
        self.count += 1
        self._last = y
