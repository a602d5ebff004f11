"""Controls: a random subset and a sliding window of the same size.

A rule that chooses points should do better than these.
"""

import numpy as np

from pogp import validation
from pogp.compression import Compression
from pogp.criteria import Oldest, Planned
from pogp.models.base import Argument
from pogp.models.retained import RetainedModel


class SlidingWindow(RetainedModel):
    """Keep the last `max_size` samples.

    >>> import numpy as np, pogp
    >>> model = SlidingWindow(pogp.RBF(), noise=0.1, max_size=3)
    >>> trace = model.learn(np.arange(10.0)[:, None], np.arange(10.0))
    >>> model.indices
    array([7, 8, 9])
    """

    changeable = ("max_size",)

    def __init__(self, kernel: object, noise: float, max_size: int, *, mean: float = 0.0) -> None:
        self._max_size = validation.count("max_size", max_size, 1)
        super().__init__(kernel, noise, mean, Compression(Oldest(), None, self._max_size, 0))

    max_size = Argument[int]("The cap on the model order.")


class RandomSubset(RetainedModel):
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

    changeable = ("max_size",)

    def __init__(
        self, kernel: object, noise: float, max_size: int, *, seed: int = 0, mean: float = 0.0
    ) -> None:
        self._max_size = validation.count("max_size", max_size, 1)
        self._seed = validation.seed(seed)
        criterion = Planned(self._seed, self._max_size)
        super().__init__(kernel, noise, mean, Compression(criterion, None, self._max_size, 0))

    max_size = Argument[int]("The cap on the model order.")
    seed = Argument[int]("The seed of the draws.")

    def _prune_to_cap(self) -> None:
        """Remove a uniform draw, so that the points that stay are one too."""
        surplus = max(self.size - self._max_size, 0)
        rng = np.random.default_rng([self._seed, self._seen])
        for index in rng.choice(self.indices, surplus, replace=False).tolist():
            self.remove(index)
