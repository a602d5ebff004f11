"""The honest controls: a random subset and a sliding window of the same size.

A rule for choosing points is worth what it adds to these.
"""

from abc import abstractmethod
from typing import Any

import numpy as np

from pogp import validation
from pogp.arrays import Array, Indices
from pogp.compression import Plan
from pogp.criteria import Criterion, Oldest, Planned
from pogp.interrupts import Uninterrupted
from pogp.models.retaining import RetainingModel
from pogp.posteriors import RetainedPosterior


class _Capped(RetainingModel[RetainedPosterior]):
    """Keep `max_size` samples, chosen without looking at them."""

    _posterior_type = RetainedPosterior
    changeable = ("max_size",)
    _criterion: Criterion

    def __init__(self, kernel: object, noise: float, max_size: int, mean: float) -> None:
        super().__init__(kernel, noise, mean)
        self._max_size = validation.count("max_size", max_size, 1)

    @property
    def max_size(self) -> int:
        """The cap on the model order."""
        return self._max_size

    def arguments(self) -> dict[str, Any]:
        """Return what the model would have to be called with to start again."""
        return {
            "kernel": self._kernel,
            "noise": self._noise,
            "max_size": self._max_size,
            "mean": self._mean,
        }

    @abstractmethod
    def _slots(self, count: int) -> Indices:
        """Return the slots that go at the next samples, where the rule has to be told."""

    def _learn(
        self, posterior: RetainedPosterior, X: Array, y: Array, signals: Uninterrupted
    ) -> Array:
        plan = Plan(np.full(len(y), -np.inf), self._max_size, 0, self._slots(len(y)))
        return posterior.learn(self._criterion, X, y, self._seen, plan, signals)


class SlidingWindow(_Capped):
    """Keep the last `max_size` samples.

    >>> import numpy as np, pogp
    >>> model = SlidingWindow(pogp.RBF(), noise=0.1, max_size=3)
    >>> trace = model.learn(np.arange(10.0)[:, None], np.arange(10.0))
    >>> model.indices
    array([7, 8, 9])
    """

    _criterion = Oldest()

    def __init__(self, kernel: object, noise: float, max_size: int, *, mean: float = 0.0) -> None:
        super().__init__(kernel, noise, max_size, mean)

    def _slots(self, count: int) -> Indices:
        return np.empty(0, dtype=np.int64)

    def _keep_to_cap(self) -> None:
        if self._posterior is not None:
            self._posterior.prune(self._criterion, self._max_size)


class RandomSubset(_Capped):
    """Keep a uniform random sample, of size `max_size`, of all that was learned.

    Reservoir sampling (Vitter 1985, algorithm R): at every moment each sample learned so far is
    retained with the same probability. (After `remove`, or with a larger cap, the places are taken
    by the next samples.)

    >>> import numpy as np, pogp
    >>> model = RandomSubset(pogp.RBF(), noise=0.1, max_size=3, seed=1)
    >>> trace = model.learn(np.arange(10.0)[:, None], np.arange(10.0))
    >>> model.size
    3
    """

    _criterion = Planned()

    def __init__(
        self, kernel: object, noise: float, max_size: int, *, seed: int = 0, mean: float = 0.0
    ) -> None:
        super().__init__(kernel, noise, max_size, mean)
        self._seed = validation.seed(seed)

    @property
    def seed(self) -> int:
        """The seed of the draws."""
        return self._seed

    def arguments(self) -> dict[str, Any]:
        """Return what the model would have to be called with to start again."""
        return {**super().arguments(), "seed": self._seed}

    def _slots(self, count: int) -> Indices:
        """Draw, for the sample t, one of t + 1 places; those beyond the cap are the newest's own.

        The draw depends on the seed and on t alone, so that a batch, a copy and a reloaded model
        draw alike without any state.
        """
        generator = np.random.Generator(np.random.PCG64(self._seed).advance(self._seen))
        positions = np.arange(self._seen, self._seen + count)
        places = (generator.random(count) * (positions + 1)).astype(np.int64)
        return np.minimum(places, self._max_size)

    def _keep_to_cap(self) -> None:
        """Let a uniform draw go, so that those that stay are one too."""
        surplus = max(self.size - self._max_size, 0)
        rng = np.random.default_rng([self._seed, self._seen])
        for index in rng.choice(self.indices, surplus, replace=False).tolist():
            self.remove(index)
