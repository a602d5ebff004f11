"""Minimisation within bounds, one evaluation at a time, so that it can be cut into slices."""

from __future__ import annotations

import numpy as np

from pogp.arrays import Array

ARMIJO = 1e-4
"""A step must gain this share of what the slope predicts (Armijo)."""
WOLFE, EXTRAPOLATION = 0.9, 4.0
"""If this share of the slope remains after a step, the next one is so many times as long."""
FLAT = 1e-10
"""A smaller curvature along a step, relative to its square, is ignored."""


class Descent:
    """BFGS with projection onto bounds; `point` is to be evaluated next, None at the end.

    It is for few expensive evaluations: a step with a sufficient gain is accepted without a further
    line search. The descent ends when a step gains less than `tolerance` times the value.
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
        """Accept the value and the gradient at `point`, and choose the next point."""
        if self.point is None:
            return
        step, gain = self.point - self._at, self._value - value
        slope = float(self._gradient @ step)
        if not gain >= -ARMIJO * slope:
            # the minimum of the parabola through the known values, within the step
            bend = -gain - slope
            share = -0.5 * slope / bend if np.isfinite(bend) and bend > 0 else 0.1
            self._length *= min(max(share, 0.1), 0.5)
        else:
            first = not np.isfinite(self._value)
            steep = not first and float(gradient @ step) < WOLFE * slope
            if not first:
                self._update_inverse(step, gradient - self._gradient)
            self._at, self._value, self._gradient = self.point, value, gradient
            if not first and gain <= self._tolerance * max(abs(value), abs(value + gain), 1.0):
                self.point = None
                return
            if steep:
                self._length *= EXTRAPOLATION
            else:
                self._choose_direction()
        point = np.clip(self._at + self._length * self._direction, self._lower, self._upper)
        self.point = None if np.array_equal(point, self._at) else point

    def _update_inverse(self, step: Array, change: Array) -> None:
        """Update the inverse Hessian by a step and the change of the gradient (BFGS)."""
        curvature = float(step @ change)
        if curvature <= FLAT * float(step @ step):
            return
        if self._inverse is None:
            self._inverse = curvature / float(change @ change) * np.eye(len(step))
        product = self._inverse @ change
        both = np.outer(product, step)
        size = (1.0 + float(change @ product) / curvature) / curvature
        self._inverse = self._inverse + size * np.outer(step, step) - (both + both.T) / curvature

    def _choose_direction(self) -> None:
        """Choose a direction of descent that does not leave the bounds."""
        gradient = self._gradient
        at_bound = (self._at <= self._lower) & (gradient > 0) | (self._at >= self._upper) & (
            gradient < 0
        )
        free = np.where(at_bound, 0.0, gradient)
        if self._inverse is None:
            norm = float(np.linalg.norm(free))
            self._direction = -free / norm if norm > 0 else -free
        else:
            product = np.where(at_bound, 0.0, self._inverse @ free)
            self._direction = -product if float(product @ free) > 0 else -free
        self._length = 1.0
