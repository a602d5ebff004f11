"""Surprises: samples far outside their band, and which of them are outliers."""

from __future__ import annotations

TAIL, FAR = 4.0, 8.0
"""A surprise is more than `FAR` deviations off. Surprises are outliers if there are at least as
many of them as of samples between `TAIL` and `FAR`: heavy tails have no such gap."""
DISCOUNT, RATE = 0.999, 0.2
"""The discount of the counts, and the rate of the running average."""


class Surprises:
    """Counts of surprises, in bounded memory."""

    def __init__(self) -> None:
        self.last = False
        """Whether the last sample was a surprise."""
        self.rate = 0.0
        """The share of surprises among the latest samples."""
        self.n_far = self.n_tail = 0.0  # discounted counts

    def is_outlier(self, error: float) -> bool:
        """Count a sample with an error in deviations; return whether it is an outlier.

        If half of the latest samples are surprises, the function has changed, and they are not
        outliers.
        """
        self.last = far = error > FAR
        self.rate += RATE * (far - self.rate)
        self.n_far = DISCOUNT * self.n_far + far
        self.n_tail = DISCOUNT * self.n_tail + (TAIL < error <= FAR)
        return far and self.rate < 0.5 and self.n_far >= self.n_tail
