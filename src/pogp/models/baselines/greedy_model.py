"""The base class of models that choose inducing inputs among the samples."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import ArrayLike

from pogp import validation
from pogp.arrays import Indices
from pogp.interrupts import Uninterrupted
from pogp.models.base import Argument, Model
from pogp.models.baselines.greedy_rules import Rule, select
from pogp.posteriors.inducing import InducingPosterior, Variational, evidence
from pogp.posteriors.projected import Projection
from pogp.search import Progress

_NEGATIVE = 1e-6
"""A slack further below zero than this share of κ(x, x) is not rounding but the kernel's."""


class GreedyModel(Model):
    """A model that adds the best candidate by a rule, one by one. A subclass has the rule."""

    online = False
    one_thread = False  # its products are large
    _posterior: InducingPosterior | None

    def __init__(
        self,
        kernel: object,
        noise: float,
        size: int,
        candidates: int | None,
        seed: int,
        mean: float,
    ) -> None:
        super().__init__(kernel, noise, mean)
        self._size = validation.count("size", size, 1)
        self._seed = validation.seed(seed)
        self._candidates = candidates
        self._indices: Indices = np.empty(0, dtype=np.int64)

    candidates = Argument[int | None]("How many candidates are drawn at each step; None for all.")
    seed = Argument[int]("The seed of the draws.")
    mean = Argument[float]("The constant prior mean.")

    @property
    def indices(self) -> Indices:
        """The position in X, from 0, of each chosen input, in order of arrival."""
        return self._indices.copy()

    @property
    def nbytes(self) -> int:
        """Bytes held by what was fitted."""
        return super().nbytes + self._indices.nbytes

    def fit(self, X: ArrayLike, y: ArrayLike, *, progress: Progress | None = None) -> Self:
        """Fit all samples at once, in place of what was fitted before; return the model itself.

        Parameters
        ----------
        X, y
            The samples, (n, p) and (n,). No more than n inputs can be chosen, and none that
            follows from the others to within rounding: `size` may end below what was asked for.
        progress
            Called after each choice with its number, from 1, and the objective of mathematics.md
            §7, which falls; raising StopIteration ends the selection there.
        """
        with self._learn_lock:
            X, y = validation.some_samples(X, y, self._dimension)
            residual = y - self._mean
            projection = Projection(self._kernel, self._noise, X, residual, self._size)
            select(self._rule(), projection, self._size, self._seed, progress)
            chosen = np.sort(np.array(projection.chosen, dtype=np.int64))
            try:
                _require_positive(projection)
                found = evidence(Variational(), self._kernel, self._noise, X[chosen], X, residual)
            except LinAlgError as error:
                raise ValueError(
                    f"{self._kernel!r} must be positive definite at the samples: {error}"
                ) from None
            factors = (found.factor, found.inner, found.weights)
            posterior = InducingPosterior(self._kernel, self._mean, X[chosen], *factors)
            with self._state_lock, Uninterrupted():
                self._take_over(posterior, chosen)
                self._seen = len(y)
        return self

    def state(self) -> dict[str, Any]:
        """Return everything that was fitted, as a flat mapping to arrays and numbers."""
        with self._state_lock:
            return {**super().state(), "indices": self._indices.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
        seen = validation.count("seen", state["seen"], 0)
        if seen:
            arrays = {name: state[name] for name in InducingPosterior.ARRAYS}
            posterior = InducingPosterior(self._kernel, self._mean, **arrays)
            self._take_over(posterior, _positions(state["indices"], posterior.size, seen))
        self._seen = seen

    @abstractmethod
    def _rule(self) -> Rule:
        """Return the rule, with nothing cached yet."""

    def _take_over(self, posterior: InducingPosterior, indices: Indices) -> None:
        self._posterior = posterior
        self._indices = indices
        self._dimension = posterior.inputs.shape[1]


def _require_positive(projection: Projection) -> None:
    if projection.size == 0:
        raise LinAlgError(f"κ(x, x) is at most {projection.prior.max():g}")
    worst = float(np.min(projection.slack))
    if worst < -_NEGATIVE * float(np.mean(projection.prior)):
        raise LinAlgError(f"a variance given f at {projection.size} of them is {worst:g}")


def _positions(indices: Any, size: int, seen: int) -> Indices:
    """Return positions in X, checked: as many as inputs, within X and ascending."""
    positions = np.array(indices)
    if positions.shape != (size,) or positions.dtype != np.int64:
        raise ValueError(f"indices must be {size} whole numbers, got {indices!r:.100}")
    if positions[0] < 0 or positions[-1] >= seen or (np.diff(positions) <= 0).any():
        raise ValueError(f"indices must ascend from 0 to below {seen}, got {indices!r:.100}")
    return positions
