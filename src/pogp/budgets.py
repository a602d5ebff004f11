"""Compression budgets: the Hellinger distance by which one step may move the posterior.

Theorems 1 and 2 of the paper: a constant budget bounds the memory. A budget that goes to zero makes
the posterior stationary, but the memory may grow.
"""

import math
import operator
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, SupportsFloat, cast

import numpy as np

from pogp import kernels
from pogp.arrays import Array
from pogp.kernels import Kernel

Budget = Callable[[int], float]


@dataclass(frozen=True, init=False, repr=False)
class Constant:
    """A constant: the same budget ε for every sample, or a constant kernel κ(a, b) = ε.

    Parameters
    ----------
    eps : float
        The budget, at least 0.
    variance : float
        The value of the kernel, in place of `eps`.
    columns : sequence of int, optional
        The inputs of the kernel, all if left out.

    Examples
    --------
    >>> Constant(1e-5)(1000)
    1e-05
    >>> from pogp import Linear
    >>> Linear() + Constant(2.0)
    Linear(variance=1.0) + Constant(variance=2.0)
    """

    eps: float
    columns: tuple[int, ...] | None = field(kw_only=True)

    def __init__(
        self,
        eps: float | None = None,
        *,
        variance: float | None = None,
        columns: Sequence[int] | None = None,
    ) -> None:
        if eps is not None and variance is not None:
            raise ValueError(f"expected one number, got eps={eps!r} and variance={variance!r}")
        value = eps if variance is None else variance
        _require_non_negative("budget" if variance is None else "variance", value)
        object.__setattr__(self, "eps", value)
        object.__setattr__(self, "columns", None)
        if columns is not None:
            object.__setattr__(self, "columns", kernels.Constant(columns=columns).columns)

    def __call__(self, t: int) -> float:
        """Return the budget for the sample learned after `t` others."""
        return float(self.eps)

    def to_kernel(self) -> Kernel:
        """Return the constant kernel."""
        return kernels.Constant(self.eps, columns=self.columns)

    def __add__(self, other: object) -> Kernel:
        return _combined(operator.add, self, other)

    def __radd__(self, other: object) -> Kernel:
        return _combined(operator.add, other, self)

    def __mul__(self, other: object) -> Kernel:
        return _combined(operator.mul, self, other)

    def __rmul__(self, other: object) -> Kernel:
        return _combined(operator.mul, other, self)

    def __repr__(self) -> str:
        columns = "" if self.columns is None else f", columns={list(self.columns)}"
        return f"Constant(eps={self.eps!r}{columns})"


@dataclass(frozen=True)
class Decay:
    """A budget that goes to zero: ε_t = initial·(t + 1)^−power.

    Parameters
    ----------
    initial : float
        The budget of the first sample.
    power : float
        The speed of the decay.

    Examples
    --------
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
    """Return a budget as a callable of t, or None for no removals under a budget."""
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
    """Return a description for JSON; raise ValueError for a Python function."""
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


def _combined(combine: Callable[[Kernel, Kernel], Kernel], left: object, right: object) -> Kernel:
    """Return the sum or product of two, either of which may be a constant."""
    first, second = (
        part.to_kernel() if isinstance(part, Constant) else part for part in (left, right)
    )
    if isinstance(first, Kernel) and isinstance(second, Kernel):
        return combine(first, second)
    return cast(Kernel, NotImplemented)


def _require_non_negative(name: str, value: object) -> None:
    number = math.nan
    if isinstance(value, SupportsFloat) and not isinstance(value, bool | np.ndarray):
        with suppress(OverflowError):
            number = float(value)
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"{name} must be a finite number ≥ 0, got {value!r}")


def _checked(budget: Budget, t: int) -> float:
    value = budget(t)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"the budget for t = {t} must be a finite number ≥ 0, got {value!r}")
    return number
