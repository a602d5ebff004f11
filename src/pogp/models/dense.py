"""The dense GP: nothing is forgotten."""

from typing import Any

import numpy as np

from pogp.arrays import Array
from pogp.compression import movement
from pogp.interrupts import Uninterrupted
from pogp.models.retaining import RetainingModel
from pogp.posteriors import FactoredPosterior
from pogp.trace import FIELDS


class DenseGP(RetainingModel[FactoredPosterior]):
    """Keep everything: the exact posterior, at O(t²) memory and O(t²) time for the t-th sample.

    A batch is learned in blocks, which is far faster than its samples one by one and agrees with
    them to rounding.

    >>> import numpy as np, pogp
    >>> model = DenseGP(pogp.RBF(), noise=0.01)
    >>> trace = model.learn(np.linspace(0, 3, 20)[:, None], np.sin(np.linspace(0, 3, 20)))
    >>> model.size
    20
    """

    one_thread = False  # its products are large
    _posterior_type = FactoredPosterior

    def __init__(self, kernel: object, noise: float, *, mean: float = 0.0) -> None:
        super().__init__(kernel, noise, mean)

    def arguments(self) -> dict[str, Any]:
        """Return what the model would have to be called with to start again."""
        return {"kernel": self._kernel, "noise": self._noise, "mean": self._mean}

    def _learn(
        self, posterior: FactoredPosterior, X: Array, y: Array, signals: Uninterrupted
    ) -> Array:
        before = posterior.size
        mean, variance = posterior.append(X, y, self._seen, signals)
        novelty, change = movement(self._noise, mean, variance, y)
        records = np.zeros((len(y), len(FIELDS)))
        records[:, 0] = mean
        records[:, 1] = variance
        records[:, 2] = np.arange(before + 1, before + len(y) + 1)
        records[:, 5] = novelty
        records[:, 6] = change
        return records
