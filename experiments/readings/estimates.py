"""A mean over repeats with its standard error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import nan, sqrt

import numpy as np

CLEAR = 2.0
"""Standard errors from which a difference counts as clear."""


@dataclass(frozen=True)
class Estimate:
    """The mean over repeats, how far it may be off, and how far the repeats are apart.

    The repeats differ in the order of the stream and so in the slice that is tuned on; they share
    the test set, so its own chance is not in the error. One repeat has no error (NaN).
    """

    mean: float
    error: float
    spread: float
    """Standard deviation of single repeats."""
    repeats: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Estimate:
        """Estimate from the values of the repeats.

        >>> Estimate.of([1.0, 2.0, 3.0, 2.0])
        Estimate(mean=2.0, error=0.408248290463863, spread=0.816496580927726, repeats=4)
        """
        each = np.fromiter(values, dtype=np.float64)
        if not len(each):
            raise ValueError("a mean needs at least one repeat, got none")
        spread = float(np.std(each, ddof=1)) if len(each) > 1 else nan
        return cls(float(np.mean(each)), spread / sqrt(len(each)), spread, len(each))

    def above(self, figure: float) -> float:
        """Return by how many standard errors this is above a figure; NaN where there are none.

        >>> Estimate.of([1.0, 2.0, 3.0, 2.0]).above(1.0)
        2.449489742783178
        """
        return (self.mean - figure) / self.error if self.error else nan

    @property
    def clear(self) -> bool:
        """Whether a difference is hardly chance."""
        return self.mean != 0 and abs(self.mean) >= CLEAR * self.error

    def text(self, decimals: int) -> str:
        """Return the mean, and the error where there is one.

        >>> Estimate.of([0.1, 0.2]).text(3), Estimate.of([0.1]).text(3), Estimate.of([8, 8]).text(0)
        ('0.150 ± 0.050', '0.100', '8')
        """
        error = f" ± {number(self.error, decimals)}" if self.error > 0 else ""
        return f"{number(self.mean, decimals)}{error}"


def number(value: float, decimals: int, sign: str = "-") -> str:
    """Return a number with a true minus sign, and with no sign where only zeros are left.

    >>> number(-0.26, 1), number(-0.01, 1), number(1234.5, 0), number(0.2, 1, sign="+")
    ('−0.3', '0.0', '1,234', '+0.2')
    """
    written = f"{value:{sign},.{decimals}f}"
    if not any(digit in written for digit in "123456789"):
        return written.lstrip("+-")
    return written.replace("-", "−")
