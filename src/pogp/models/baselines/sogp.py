"""Sparse online Gaussian processes (Csató & Opper 2002), also weighted (McIntire et al. 2016)."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from pogp import validation
from pogp.arrays import Array
from pogp.compression import Compression
from pogp.criteria import AbsorbedCriterion, LeastDivergence
from pogp.models.absorbed import AbsorbedModel
from pogp.models.base import Argument

Weight = Callable[[Array], ArrayLike]


class SOGP(AbsorbedModel):
    """Keep at most `max_size` basis points with the information of all samples.

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

    changeable = ("max_size", "tolerance")

    def __init__(
        self,
        kernel: object,
        noise: float,
        max_size: int,
        *,
        tolerance: float = 1e-6,
        mean: ArrayLike = 0.0,
    ) -> None:
        self._tolerance = validation.non_negative("tolerance", tolerance)
        criterion: AbsorbedCriterion = LeastDivergence(tolerance=self._tolerance)
        size = validation.count("max_size", max_size, 1)
        super().__init__(kernel, noise, mean, Compression(criterion, None, size))

    tolerance = Argument[float]("The variance left open, of κ(x, x), up to which no point is made.")


class McIntire(AbsorbedModel):
    """SOGP whose size follows from a threshold on the weighted divergence of a removal.

    Removing point j moves the belief by about ½α_j²/B_jj in KL. McIntire, Ratner & Ermon (2016)
    weigh that by how much the point's place matters to the task, and keep a point only while the
    product is above a threshold, so that the size is dynamic. Here every point, also the newest, is
    tried after every sample, the cheapest first, and points go while what they cost together is
    within `threshold`; `max_size` is a hard cap beside it. The projection is SOGP's.

    `weight` maps inputs (n, p) to n factors ≥ 0, taken when a sample arrives; without it all places
    matter alike.

    >>> import numpy as np, pogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> model = McIntire(pogp.RBF(), 0.01, 0.05, weight=lambda X: np.where(X[:, 0] > 0, 1.0, 0.01))
    >>> trace = model.learn(X, np.sin(X[:, 0]))
    >>> np.sum(model.dictionary > 0) > np.sum(model.dictionary < 0)
    np.True_
    """

    changeable = ("threshold", "max_size", "tolerance")

    def __init__(
        self,
        kernel: object,
        noise: float,
        threshold: float,
        *,
        weight: Weight | None = None,
        max_size: int | None = None,
        tolerance: float = 1e-6,
        mean: ArrayLike = 0.0,
    ) -> None:
        self._threshold = validation.non_negative("threshold", threshold)
        self._tolerance = validation.non_negative("tolerance", tolerance)
        if weight is not None and not callable(weight):
            raise ValueError(f"weight must be a function of inputs (n, p), got {weight!r}")
        self._weight = weight
        criterion: AbsorbedCriterion = LeastDivergence(tolerance=self._tolerance)
        compression = Compression(criterion, self._threshold, max_size)
        super().__init__(kernel, noise, mean, compression)

    threshold = Argument[float]("The weighted divergence that one step may cost.")
    weight = Argument[Weight | None]("How much places matter.")
    tolerance = Argument[float]("The variance left open, of κ(x, x), up to which no point is made.")

    def _relevance(self, X: Array) -> Array:
        if self._weight is None:
            return np.ones(len(X))
        weights = np.array(self._weight(X), dtype=np.float64)
        if weights.shape != (len(X),) or not (np.isfinite(weights) & (weights >= 0)).all():
            raise ValueError(
                f"weight must return {len(X)} finite numbers ≥ 0 for X of shape {X.shape}, "
                f"got {weights!r:.100}"
            )
        return weights
