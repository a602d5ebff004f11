"""Exponents: slopes of logarithms, by least squares."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Slope:
    """The slope of a straight line by least squares, and its standard error."""

    value: float
    error: float

    @classmethod
    def of(cls, x: ArrayLike, y: ArrayLike) -> Slope:
        """Fit; needs three points or more.

        >>> Slope.of([0.0, 1.0, 2.0, 3.0], [1.0, 3.0, 5.0, 7.0])
        Slope(value=2.0, error=0.0)
        """
        x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
        if len(x) < 3 or np.ptp(x) == 0:
            raise ValueError(f"a slope needs three points at two places or more, got {x!r}")
        centred = x - np.mean(x)
        value = float(centred @ y / (centred @ centred))
        residuals = y - np.mean(y) - value * centred
        return cls(value, sqrt(residuals @ residuals / (len(x) - 2) / (centred @ centred)))
