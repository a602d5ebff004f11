"""The units in which a stream is modelled, estimated from some of its samples."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from types import ModuleType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pogp.arrays import Array, Indices, spread
from pogp.online import arithmetic_core

FAR = 6.0
"""Inputs beyond so many deviations are compressed to a logarithm. An input that grows steadily,
such as time, is 3√3 deviations away when the number of samples has doubled and it is tuned
again."""
VERY_FAR = 2.0 * FAR
"""Where an input is beyond so many deviations, either the linear models predict or the others."""
FARTHEST = 1e6
"""Linear models get inputs that are at most so many deviations away, so that none overflows."""
OUTSIDE = 4.0
"""The known range of an input ends at so many deviations."""
ROUNDING = 16 * np.finfo(np.float64).eps
"""A smaller deviation, relative to the size of the values, is a rounding error."""
LEAST_INPUT, LEAST_TARGET = 1e-290, 1e-140
"""Inputs and targets with a smaller deviation count as constant: one over it, or over its square,
overflows."""


@dataclass(frozen=True)
class Scales:
    """The centres and deviations of inputs and targets.

    Inputs far outside their known range are compressed to a logarithm. This keeps their order, and
    no kernel gets an input of a thousand deviations. A constant column is left out.
    """

    centre: Array
    deviation: Array
    """Zero for a constant column."""
    target_centre: Array
    target_deviation: Array
    """Zero for a constant output."""

    @classmethod
    def of(cls, X: Array, Y: Array) -> Self:
        """Return the scales of samples."""
        return cls(*_moments(X, LEAST_INPUT), *_moments(Y, LEAST_TARGET))

    def completed(self, known: Scales | None) -> Scales:
        """Return these scales with the known ones of inputs that are constant in the samples."""
        if known is None or not (constant := (self.deviation == 0) & (known.deviation > 0)).any():
            return self
        centre = np.where(constant, known.centre, self.centre)
        deviation = np.where(constant, known.deviation, self.deviation)
        return replace(self, centre=centre, deviation=deviation)

    @property
    def varying(self) -> Indices:
        """The columns that vary."""
        return np.flatnonzero(self.deviation > 0)

    @property
    def usable(self) -> bool:
        """Whether an output and an input vary."""
        return bool((self.target_deviation > 0).any()) and len(self.varying) > 0

    def vary(self, columns: Indices) -> bool:
        """Return whether all these columns vary."""
        return bool((self.deviation[columns] > 0).all())

    @cached_property
    def unit(self) -> Array:
        """The unit of each output: its deviation, or one if it is constant."""
        return np.where(self.target_deviation > 0, self.target_deviation, 1.0)

    @cached_property
    def inverse(self) -> Array:
        """One over each deviation, zero for a constant column."""
        varies = self.deviation > 0
        return np.where(varies, 1.0 / np.where(varies, self.deviation, 1.0), 0.0)

    @cached_property
    def reach(self) -> Array:
        """The known range of each input, around its centre; that of a constant is rounding."""
        constant = 1e-9 * np.maximum(np.abs(self.centre), 1e-300)
        return np.where(self.deviation > 0, OUTSIDE * self.deviation, constant)

    @cached_property
    def _arithmetic(self) -> ModuleType:
        return arithmetic_core()

    def inputs(self, X: Array) -> Array:
        """Return raw inputs in these units."""
        scaled = (X - self.centre) * self.inverse
        size = np.abs(scaled)
        if size.max(initial=0.0) > FAR:
            near = np.sign(scaled) * (FAR + np.log1p(np.maximum(size - FAR, 0.0)))
            scaled = np.where(size > FAR, near, scaled)
        return np.ascontiguousarray(scaled)

    def input(self, x: Array) -> Array:
        """Return one raw input in these units."""
        scaled = np.empty(len(x))
        self._arithmetic.scale_input(x, self.centre, self.inverse, FAR, scaled)
        return scaled

    def are_far(self, X: Array, deviations: float | Array = FAR) -> NDArray[np.bool_]:
        """Return which rows have an input beyond so many deviations, by default compressed ones."""
        with np.errstate(over="ignore"):
            return np.asarray((np.abs(X - self.centre) * self.inverse > deviations).any(axis=-1))

    def straight(self, X: Array) -> Array:
        """Return raw inputs in these units, not compressed."""
        with np.errstate(over="ignore"):
            return np.clip((X - self.centre) * self.inverse, -FARTHEST, FARTHEST)

    def slopes(self, X: Array) -> Array:
        """Return the derivatives of `inputs` by the raw inputs, (n, p)."""
        size = np.abs((X - self.centre) * self.inverse)
        return self.inverse / (1.0 + np.maximum(size - FAR, 0.0))

    def user_inputs(self, U: Array) -> Array:
        """Return inputs in these units as raw inputs, up to rounding."""
        size = np.abs(U)
        far = np.sign(U) * (FAR + np.expm1(np.maximum(size - FAR, 0.0)))
        return np.asarray(self.centre + np.where(size > FAR, far, U) * self.deviation)

    def targets(self, Y: Array) -> Array:
        """Return raw targets in these units."""
        return np.asarray((Y - self.target_centre) / self.unit)

    def equals(self, other: Self) -> bool:
        """Return whether all numbers are the same."""
        names = [field.name for field in fields(self)]
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    def state(self) -> dict[str, Any]:
        """Return the state, as arrays."""
        return {field.name: getattr(self, field.name).copy() for field in fields(self)}

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Self:
        """Return the scales that `state` described."""
        return cls(*(np.array(state[field.name], dtype=np.float64) for field in fields(cls)))


def _moments(values: Array, least: float) -> tuple[Array, Array]:
    """Return the means and the deviations, which are zero for constants."""
    centre = values.mean(axis=0)
    deviation = np.where(np.ptp(values, axis=0) > 0, spread(values), 0.0)
    return centre, np.where(
        deviation > np.maximum(ROUNDING * np.abs(centre), least), deviation, 0.0
    )
