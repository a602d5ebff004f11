"""Minimising a function within bounds, one evaluation at a time: work can pause in between."""

from __future__ import annotations

import numpy as np

from pogp.arrays import Array

ENOUGH = 1e-4
"""A step must bring this share of what the slope promises (Armijo)."""
STEEP, FURTHER = 0.9, 4.0
"""Where the slope is still this share of what it was, the next step goes so many times as far."""
FLAT = 1e-10
"""Curvature along a step below this share says nothing."""


class Descent:
    """BFGS with projection onto bounds: `point` is where to evaluate next, None at the end.

    Meant for few evaluations that cost much. A step that promises enough is taken as it is, without
    a search for the best one along the line. The search ends where a step gains less than
    `tolerance` of the value.
    """

    def __init__(self, start: Array, lower: Array, upper: Array, tolerance: float) -> None:
        self.start = np.clip(start, lower, upper)
        self.point: Array | None = self.start
        self._lower, self._upper, self._tolerance = lower, upper, tolerance
        self._at, self._value, self._gradient = self.start, np.inf, np.zeros_like(start)
        self._inverse: Array | None = None  # of the Hessian
        self._direction = np.zeros_like(start)
        self._length = 1.0

    def tell(self, value: float, gradient: Array) -> None:
        """Take note of value and gradient at `point`, and choose the next one."""
        if self.point is None:
            return
        step, gain = self.point - self._at, self._value - value
        slope = float(self._gradient @ step)
        if not gain >= -ENOUGH * slope:
            # to the minimum of the parabola through what is known, well within the step
            bend = -gain - slope
            share = -0.5 * slope / bend if np.isfinite(bend) and bend > 0 else 0.1
            self._length *= min(max(share, 0.1), 0.5)
        else:
            first = not np.isfinite(self._value)
            steep = not first and float(gradient @ step) < STEEP * slope
            if not first:
                self._learn(step, gradient - self._gradient)
            self._at, self._value, self._gradient = self.point, value, gradient
            if not first and gain <= self._tolerance * max(abs(value), abs(value + gain), 1.0):
                self.point = None
                return
            if steep:
                self._length *= FURTHER
            else:
                self._direct()
        point = np.clip(self._at + self._length * self._direction, self._lower, self._upper)
        self.point = None if np.array_equal(point, self._at) else point

    def _learn(self, step: Array, change: Array) -> None:
        """Update the inverse Hessian by what a step showed (BFGS)."""
        curvature = float(step @ change)
        if curvature <= FLAT * float(step @ step):
            return
        if self._inverse is None:
            self._inverse = curvature / float(change @ change) * np.eye(len(step))
        turned = self._inverse @ change
        both = np.outer(turned, step)
        size = (1.0 + float(change @ turned) / curvature) / curvature
        self._inverse = self._inverse + size * np.outer(step, step) - (both + both.T) / curvature

    def _direct(self) -> None:
        """Choose a direction: down, and not out of bounds."""
        gradient = self._gradient
        stuck = (self._at <= self._lower) & (gradient > 0) | (self._at >= self._upper) & (
            gradient < 0
        )
        free = np.where(stuck, 0.0, gradient)
        if self._inverse is None:
            norm = float(np.linalg.norm(free))
            self._direction = -free / norm if norm > 0 else -free
        else:
            turned = np.where(stuck, 0.0, self._inverse @ free)
            self._direction = -turned if float(turned @ free) > 0 else -free
        self._length = 1.0
