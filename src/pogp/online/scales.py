"""The units in which a stream is modelled, found from some of its samples."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from types import ModuleType
from typing import Any, Self

import numpy as np

from pogp.arrays import Array, Indices, spread
from pogp.online import mixing_core

FAR = 6.0
"""Beyond so many deviations inputs grow by their logarithm only. An input that grows steadily, such
as time, is 3√3 deviations away when the number of samples has doubled and scales are found anew."""
OUTSIDE = 4.0
"""An input is outside what is known beyond so many deviations."""
STILL = 16 * np.finfo(np.float64).eps
"""A deviation below this, relative to the size of the values, is rounding."""
LEAST_INPUT, LEAST_TARGET = 1e-290, 1e-140
"""Inputs and targets whose deviation is below this do not move: one over it, or its square, is no
float64."""


@dataclass(frozen=True)
class Scales:
    """Inputs and targets centred, in units of their deviations.

    An input far outside what the scales were found on is brought in: its logarithm keeps the order
    of such inputs, and no kernel sees a thousand deviations. A column that did not move is left
    out.
    """

    centre: Array
    deviation: Array
    """Zero for a column that did not move."""
    target_centre: Array
    target_deviation: Array
    """Zero for an output that did not move."""

    @classmethod
    def of(cls, X: Array, Y: Array) -> Self:
        """Return the scales of some samples."""
        return cls(*_moments(X, LEAST_INPUT), *_moments(Y, LEAST_TARGET))

    @property
    def live(self) -> Indices:
        """The columns that moved."""
        return np.flatnonzero(self.deviation > 0)

    @property
    def alive(self) -> bool:
        """Whether any output moved, and any input."""
        return bool((self.target_deviation > 0).any()) and len(self.live) > 0

    def know(self, columns: Indices) -> bool:
        """Return whether each of these columns moved."""
        return bool((self.deviation[columns] > 0).all())

    @cached_property
    def unit(self) -> Array:
        """The unit of each output."""
        return np.where(self.target_deviation > 0, self.target_deviation, 1.0)

    @cached_property
    def inverse(self) -> Array:
        """One over each deviation, zero for a column that did not move."""
        moved = self.deviation > 0
        return np.where(moved, 1.0 / np.where(moved, self.deviation, 1.0), 0.0)

    @cached_property
    def reach(self) -> Array:
        """How far from its centre each input is known; one that did not move is nowhere else."""
        still = 1e-9 * np.maximum(np.abs(self.centre), 1e-300)
        return np.where(self.deviation > 0, OUTSIDE * self.deviation, still)

    @cached_property
    def _mixing(self) -> ModuleType:
        return mixing_core()

    def inputs(self, X: Array) -> Array:
        """Return inputs as the models see them."""
        scaled = (X - self.centre) * self.inverse
        size = np.abs(scaled)
        if size.max(initial=0.0) > FAR:
            near = np.sign(scaled) * (FAR + np.log1p(np.maximum(size - FAR, 0.0)))
            scaled = np.where(size > FAR, near, scaled)
        return np.ascontiguousarray(scaled)

    def input(self, x: Array) -> Array:
        """Return one input as the models see it."""
        scaled = np.empty(len(x))
        self._mixing.scale(x, self.centre, self.inverse, FAR, scaled)
        return scaled

    def slopes(self, X: Array) -> Array:
        """Return how fast each of these inputs moves as the models see it, (n, p)."""
        size = np.abs((X - self.centre) * self.inverse)
        return self.inverse / (1.0 + np.maximum(size - FAR, 0.0))

    def user_inputs(self, U: Array) -> Array:
        """Return inputs of the models as the user sees them, to rounding."""
        size = np.abs(U)
        far = np.sign(U) * (FAR + np.expm1(np.maximum(size - FAR, 0.0)))
        return np.asarray(self.centre + np.where(size > FAR, far, U) * self.deviation)

    def targets(self, Y: Array) -> Array:
        """Return targets as the models see them."""
        return np.asarray((Y - self.target_centre) / self.unit)

    def state(self) -> dict[str, Any]:
        """Return the state, as arrays."""
        return {field.name: getattr(self, field.name).copy() for field in fields(self)}

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Self:
        """Return the scales that `state` described."""
        return cls(*(np.array(state[field.name], dtype=np.float64) for field in fields(cls)))


def _moments(values: Array, least: float) -> tuple[Array, Array]:
    """Return the means and the deviations, which are zero where they are rounding."""
    centre = values.mean(axis=0)
    deviation = np.where(np.ptp(values, axis=0) > 0, spread(values), 0.0)
    return centre, np.where(deviation > np.maximum(STILL * np.abs(centre), least), deviation, 0.0)
