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
    noise variance is distributed exponentially, with the variance of y as its mean.
    """

    typical: Array
    """The scale of the data, as `Kernel.typical_theta` has it."""
    alike: tuple[Indices, ...]
    """The entries of theta that are alike: a set for each kernel and parameter."""
    spread: float
    """The variance of y."""

    @classmethod
    def of(cls, kernel: Kernel, X: Array, power: float, spread: float) -> Prior:
        """Return the prior for a kernel and data; what has to be scanned has none."""
        sets: dict[str, list[int]] = {}
        scanned = kernel.scans(X)
        for place, name in enumerate(kernel.parameter_names):
            if name.endswith("]") and place not in scanned:
                sets.setdefault(name[: name.rindex("[")], []).append(place)
        alike = tuple(np.array(places) for places in sets.values() if len(places) > 1)
        return cls(kernel.typical_theta(X, power), alike, spread)

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
        return float(value), gradient
