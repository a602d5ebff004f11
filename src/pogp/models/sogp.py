"""Sparse online Gaussian processes (Csató & Opper 2002)."""

from typing import Any

import numpy as np

from pogp import validation
from pogp.arrays import Array
from pogp.compression import Plan
from pogp.models.posterior_model import PosteriorModel
from pogp.posteriors import AbsorbedPosterior


class SOGP(PosteriorModel[AbsorbedPosterior]):
    """Keep at most `max_size` basis points, and in them what all samples taught.

    A sample whose input the basis already explains (its prior variance given the basis is below
    `tolerance`, as a fraction of κ(x, x)) is absorbed without a new point. Any other becomes one,
    and above `max_size` the point with the smallest score α_j²/B_jj goes, projected onto the others
    so that KL(q′‖q) is least.

    >>> import numpy as np, pogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> model = SOGP(pogp.RBF(), noise=0.01, max_size=15)
    >>> trace = model.learn(X, np.sin(X[:, 0]))
    >>> mean, variance = model.predict([1.0])
    >>> bool(abs(mean - np.sin(1.0)) < 0.05), model.size <= 15
    (True, True)
    """

    _posterior_type = AbsorbedPosterior

    def __init__(
        self,
        kernel: object,
        noise: float,
        max_size: int,
        *,
        tolerance: float = 1e-6,
        mean: float = 0.0,
    ) -> None:
        super().__init__(kernel, noise, mean)
        self._max_size = validation.count("max_size", max_size, 1)
        self._tolerance = validation.finite("tolerance", tolerance)
        if self._tolerance < 0:
            raise ValueError(f"tolerance must be at least 0, got {tolerance!r}")

    @property
    def max_size(self) -> int:
        """The cap on the model order."""
        return self._max_size

    @property
    def tolerance(self) -> float:
        """The novelty below which a sample is absorbed without a new point."""
        return self._tolerance

    def arguments(self) -> dict[str, Any]:
        """Return what the model would have to be called with to start again."""
        return {
            "kernel": self._kernel,
            "noise": self._noise,
            "max_size": self._max_size,
            "tolerance": self._tolerance,
            "mean": self._mean,
        }

    def _learn(self, posterior: AbsorbedPosterior, X: Array, y: Array) -> Array:
        plan = Plan(np.full(len(y), -np.inf), self._max_size, 0)
        return posterior.learn("csato", X, y, self._seen, plan, self._tolerance)
