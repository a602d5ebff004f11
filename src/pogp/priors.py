"""A weak prior on the hyperparameters of a Gaussian process (mathematics.md §8)."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log

import numpy as np

from pogp.arrays import Array, Indices
from pogp.kernels import Kernel


@dataclass(frozen=True)
class Prior:
    """The density of (theta, log noise), up to a constant; units of inputs and targets cancel.

    Parameters that a kernel has for each input, as length-scales, are alike up to a factor of e or
    so, in units of the scale of their inputs: their logarithms are distributed about a common one
    by a multivariate Cauchy distribution. Its heavy tails allow for inputs that do not matter. The
    other parameters, as the kernel's variance, have a Cauchy distribution each, about the scale of
    the data. The noise variance is distributed exponentially, with the variance of y as its mean.
    """

    typical: Array
    """The scale of the data, as `Kernel.typical_theta` has it."""
    alike: tuple[Indices, ...]
    """The entries of theta that are alike: a set for each kernel and parameter."""
    others: Indices
    spread: float
    """The variance of y."""

    @classmethod
    def of(cls, kernel: Kernel, X: Array, power: float, spread: float) -> Prior:
        """Return the prior for a kernel and data; what has to be scanned has none."""
        sets: dict[str, list[int]] = {}
        scanned = kernel.scans(X)
        for place, name in enumerate(kernel.parameter_names):
            if place not in scanned:
                sets.setdefault(name.partition("[")[0], []).append(place)
        alike = tuple(np.array(places) for places in sets.values() if len(places) > 1)
        others = [places[0] for places in sets.values() if len(places) == 1]
        typical = kernel.typical_theta(X, power)
        return cls(typical, alike, np.array(others, dtype=np.int64), spread)

    def __call__(self, parameters: Array) -> tuple[float, Array]:
        """Return the logarithm of the density and its gradient."""
        noise = exp(parameters[-1]) / self.spread
        value, gradient = log(noise) - noise, np.zeros_like(parameters)
        gradient[-1] = 1.0 - noise
        for places in self.alike:
            apart = parameters[places] - self.typical[places]
            apart -= apart.mean()
            square = float(apart @ apart)
            value -= 0.5 * len(places) * np.log1p(square)
            gradient[places] -= len(places) * apart / (1.0 + square)
        apart = parameters[self.others] - self.typical[self.others]
        value -= float(np.log1p(apart**2).sum())
        gradient[self.others] -= 2.0 * apart / (1.0 + apart**2)
        return float(value), gradient
