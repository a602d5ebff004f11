"""A bounded search for the minimum of a smooth function with gradients.

L-BFGS-B of SciPy, with three additions: the search stops at a gain that is too small in the
function's own unit, whatever its value; it never evaluates more often than it may; and it returns
the best point seen, also where it was cut short.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite

import numpy as np

from pogp.arrays import Array

_MEMORY = 50
"""How many past steps the search remembers, at most. With more steps than parameters it is BFGS,
which needs half as many evaluations as the customary ten on strongly correlated parameters."""
_PATIENCE = 2
"""The search ends after this many steps with too little gain in total, not after one."""
_HOPE = 30.0
"""A search ends if even so many times its last gain would not bring it to a value known before."""
_SAME = 1e-3
"""Values this close are those of one minimum, as far as a further search is concerned."""


Progress = Callable[[int, float], object]
"""Told the number of a step, from 1, and the objective; may raise StopIteration to end there."""


@dataclass(frozen=True)
class Found:
    """The best point seen, the value there, and whether the search stopped by its tolerance."""

    point: Array
    value: float
    converged: bool


def minimise(
    function: Callable[[Array], tuple[float, Array]],
    start: Array,
    lower: Array,
    upper: Array,
    tolerance: float,
    max_evaluations: int,
    known: float = inf,
) -> Found:
    """Search within bounds, from `start`, until the last two steps gain less than `tolerance`.

    `function` returns the value and the gradient. `known` is a value found before: a search that
    comes out above it, or at it, ends early.

    >>> lower, upper = np.full(2, -9.0), np.full(2, 9.0)
    >>> found = minimise(lambda x: (float(x @ x), 2.0 * x), np.ones(2), lower, upper, 1e-6, 50)
    >>> found.point.round(3) + 0.0, found.converged
    (array([0., 0.]), True)
    """
    # Slow to import, and only a search needs it.
    from scipy.optimize import Bounds, OptimizeResult, minimize

    watched = _Watched(function, np.clip(start, lower, upper), max_evaluations)
    gains = _Gains(tolerance, known)

    def after_step(intermediate_result: OptimizeResult) -> None:
        gains.add(float(intermediate_result.fun))

    try:
        minimize(
            watched,
            watched.best,
            jac=True,
            bounds=Bounds(lower, upper),
            method="L-BFGS-B",
            callback=after_step,
            options={
                "maxcor": min(2 * start.size, _MEMORY),
                "maxfun": 2 * max_evaluations,
                "maxiter": max_evaluations,
                "ftol": 0.0,
            },
        )
    except _ExhaustedError:
        return Found(watched.best, watched.value, converged=False)
    return Found(watched.best, watched.value, converged=isfinite(watched.value))


class _ExhaustedError(Exception):
    """The function was evaluated as often as it may be."""


class _Watched:
    """A function that counts its evaluations and remembers the best."""

    def __init__(
        self, function: Callable[[Array], tuple[float, Array]], start: Array, evaluations: int
    ) -> None:
        self._function = function
        self._left = evaluations
        self.best, self.value = start, inf

    def __call__(self, point: Array) -> tuple[float, Array]:
        if self._left <= 0:
            raise _ExhaustedError
        self._left -= 1
        value, gradient = self._function(point)
        if value < self.value:
            self.best, self.value = point.copy(), value
        return value, gradient


class _Gains:
    """The values after the last steps; StopIteration once they gain too little."""

    def __init__(self, tolerance: float, known: float) -> None:
        self._tolerance, self._known = tolerance, known
        self._values: list[float] = []

    def add(self, value: float) -> None:
        """Take note of the value after another step."""
        self._values = [*self._values[-_PATIENCE:], value]
        if len(self._values) <= _PATIENCE:
            return
        gain = self._values[0] - value
        hopeless = value - _HOPE * gain > self._known
        nothing_new = value > self._known - _SAME and gain < _SAME
        if gain < self._tolerance or hopeless or nothing_new:
            raise StopIteration
