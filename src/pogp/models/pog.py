"""Parsimonious Online Gaussian Processes: the paper's model (Algorithm 1)."""

import sys
from typing import Any

import numpy as np

from pogp import validation
from pogp.arrays import Array
from pogp.budgets import Budget, Constant, as_budget, budgets_for
from pogp.compression import Plan
from pogp.criteria import Criterion, Everywhere, Newest
from pogp.interrupts import Uninterrupted
from pogp.models.retaining import RetainingModel
from pogp.posteriors import RetainedPosterior

VIEWS: dict[str, type[Criterion]] = {"newest": Newest, "everywhere": Everywhere}


class POG(RetainingModel[RetainedPosterior]):
    """Append each sample, then let go of as many retained ones as the budget allows.

    Parameters
    ----------
    kernel
        The covariance function: one of ours, or a callable κ(A, B) → (n, m).
    noise
        The variance of the observation noise.
    budget
        The Hellinger distance that the compression of one step may cost: a number ≥ 0, `Constant`,
        `Decay`, a callable of the number of samples learned before, or None to remove only what
        `max_size` asks for.
    view
        Where the distance is measured. "newest" is the paper's Algorithm 2: the marginal of y at
        the newest input. "everywhere" is the whole posterior. A `pogp.criteria.Criterion` of your
        own measures what it likes, and the budget is in its unit.
    max_size
        A cap on the model order, kept whatever it costs.
    max_removals
        At most so many removals per sample under the budget. 1 gives the paper's published
        figures, 0 keeps everything that `max_size` allows.
    mean
        The constant prior mean.

    >>> import numpy as np, pogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (2000, 1))
    >>> model = POG(pogp.RBF(lengthscale=1.0), noise=0.01, budget=1e-3, max_removals=1)
    >>> trace = model.learn(X, np.sin(X[:, 0]))
    >>> model.seen, model.size < 50
    (2000, True)
    >>> mean, variance = model.predict([1.0])
    >>> abs(mean - np.sin(1.0)) < 0.1
    np.True_
    """

    _posterior_type = RetainedPosterior
    changeable = ("budget", "view", "max_size", "max_removals")

    def __init__(
        self,
        kernel: object,
        noise: float,
        budget: float | Budget | None = 1e-5,
        *,
        view: str | Criterion = "newest",
        max_size: int | None = None,
        max_removals: int | None = None,
        mean: float = 0.0,
    ) -> None:
        super().__init__(kernel, noise, mean)
        self._budget = as_budget(budget)
        self._view = view
        self._criterion = _criterion(view)
        self._max_size = None if max_size is None else validation.count("max_size", max_size, 1)
        self._max_removals = (
            None if max_removals is None else validation.count("max_removals", max_removals, 0)
        )
        constant = self._budget is None or isinstance(self._budget, Constant)
        self._plan_of_one = self._plan(1) if constant else None  # a call with one sample is hot

    @property
    def budget(self) -> Budget | None:
        """The compression budget, as a callable of the number of samples learned before."""
        return self._budget

    @property
    def view(self) -> str | Criterion:
        """Where the distance is measured: "newest", "everywhere", or a criterion of your own."""
        return self._view

    @property
    def max_size(self) -> int | None:
        """The cap on the model order."""
        return self._max_size

    @property
    def max_removals(self) -> int | None:
        """How many points may go per sample under the budget."""
        return self._max_removals

    def arguments(self) -> dict[str, Any]:
        """Return what the model would have to be called with to start again."""
        return {
            "kernel": self._kernel,
            "noise": self._noise,
            "budget": self._budget,
            "view": self._view,
            "max_size": self._max_size,
            "max_removals": self._max_removals,
            "mean": self._mean,
        }

    def _keep_to_cap(self) -> None:
        if self._posterior is not None and self._max_size is not None:
            self._posterior.prune(self._criterion, self._max_size)

    def _learn(
        self, posterior: RetainedPosterior, X: Array, y: Array, signals: Uninterrupted
    ) -> Array:
        plan = (self._plan_of_one if len(y) == 1 else None) or self._plan(len(y))
        return posterior.learn(self._criterion, X, y, self._seen, plan, signals)

    def _plan(self, count: int) -> Plan:
        return Plan(
            limits=self._limits(count),
            max_size=sys.maxsize if self._max_size is None else self._max_size,
            max_removals=sys.maxsize if self._max_removals is None else self._max_removals,
        )

    def _limits(self, count: int) -> Array:
        """Return what the compression of each of the next samples may cost."""
        if self._budget is None:
            return np.full(count, -np.inf)
        if isinstance(self._budget, Constant):
            return np.full(count, self._criterion.limit(np.array(self._budget.eps)))
        return self._criterion.limit(budgets_for(self._budget, self._seen, count))


def _criterion(view: object) -> Criterion:
    if isinstance(view, Criterion):
        return view
    if isinstance(view, str) and view in VIEWS:
        return VIEWS[view]()
    raise ValueError(f"view must be one of {sorted(VIEWS)} or a Criterion, got {view!r}")
