"""Compression budgets: how far, in Hellinger distance, one step may move the posterior.

Theorem 1 and 2 of the paper: a constant budget bounds the memory, a budget that goes to zero makes
the posterior exactly stationary at the price of memory that may grow.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, SupportsFloat

import numpy as np

from pogp.arrays import Array

Budget = Callable[[int], float]


@dataclass(frozen=True)
class Constant:
    """The same budget ε for every sample.

    >>> Constant(1e-5)(1000)
    1e-05
    """

    eps: float

    def __post_init__(self) -> None:
        _require_non_negative("budget", self.eps)

    def __call__(self, t: int) -> float:
        """Return the budget for the sample learned after `t` others."""
        return float(self.eps)


@dataclass(frozen=True)
class Decay:
    """A budget that goes to zero: ε_t = initial·(t + 1)^−power.

    >>> Decay(initial=0.1, power=0.5)(3)
    0.05
    """

    initial: float
    power: float

    def __post_init__(self) -> None:
        _require_non_negative("initial budget", self.initial)
        _require_non_negative("power", self.power)

    def __call__(self, t: int) -> float:
        """Return the budget for the sample learned after `t` others."""
        return float(self.initial * (t + 1) ** -self.power)


def as_budget(budget: object) -> Budget | None:
    """Return a budget as a callable of t, or None for "never remove to save memory"."""
    if budget is None:
        return None
    if callable(budget):
        return budget
    if isinstance(budget, int | float | np.floating | np.integer) and not isinstance(budget, bool):
        return Constant(float(budget))
    raise ValueError(
        f"budget must be a number ≥ 0, None, or a callable of the sample's number, got {budget!r}"
    )


def budgets_for(budget: Budget, first: int, count: int) -> Array:
    """Return ε_t for t = first … first + count − 1, checked, before anything is learned."""
    if isinstance(budget, Constant):
        return np.full(count, budget.eps, dtype=np.float64)
    return np.array([_checked(budget, t) for t in range(first, first + count)], dtype=np.float64)


def budget_spec(budget: Budget | None) -> dict[str, Any] | None:
    """Return a JSON-able description, or raise ValueError for what is code."""
    if budget is None:
        return None
    if isinstance(budget, Constant):
        return {"kind": "Constant", "eps": budget.eps}
    if isinstance(budget, Decay):
        return {"kind": "Decay", "initial": budget.initial, "power": budget.power}
    raise ValueError(
        f"the budget {budget!r} is code and cannot be saved; use a number, Constant or Decay, or "
        "save(path, without_code=True) and supply it again with load(path, budget=...)"
    )


def budget_from_spec(spec: dict[str, Any] | None) -> Budget | None:
    """Return the budget that `budget_spec` described."""
    if spec is None:
        return None
    kinds: dict[str, Callable[..., Budget]] = {"Constant": Constant, "Decay": Decay}
    arguments = dict(spec)
    kind = arguments.pop("kind", None)
    if kind not in kinds:
        raise ValueError(f"unknown kind of budget {kind!r}, expected one of {sorted(kinds)}")
    return kinds[kind](**arguments)


def _require_non_negative(name: str, value: object) -> None:
    if not (isinstance(value, SupportsFloat) and math.isfinite(value) and float(value) >= 0):
        raise ValueError(f"{name} must be a finite number ≥ 0, got {value!r}")


def _checked(budget: Budget, t: int) -> float:
    value = budget(t)
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"the budget for t = {t} must be a finite number ≥ 0, got {value!r}")
    return number
