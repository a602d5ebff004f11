"""The first slice of a stream, by which a model without hyperparameters finds its own."""

from typing import Any

import numpy as np

from pogp import kernels
from pogp.arrays import Array
from pogp.kernels import Kernel, Stationary
from pogp.tuning import tune

NOISE_SHARE = 0.1
"""Of the variance of the targets, while nothing better is known."""


class Warmup:
    """Samples collected, and the prior that they suggest meanwhile and in the end."""

    def __init__(self, kernel: Kernel, family: str | None, samples: int, seed: int) -> None:
        self.kernel = kernel
        self.family = family
        self.samples = samples
        self.seed = seed
        self.inputs = np.empty((0, 0))
        self.targets = np.empty((0, 0))
        if family is not None and not _is_family(family):
            raise ValueError(f"family must name a class of kernels, got {family!r}")

    @property
    def room(self) -> int:
        """How many samples are still missing."""
        return self.samples - len(self.inputs)

    def collect(self, X: Array, Y: Array) -> Array:
        """Add samples; return their records, each predicted by the targets before it."""
        if len(self.inputs) == 0:
            self.inputs, self.targets = np.empty((0, X.shape[1])), np.empty((0, Y.shape[1]))
        outputs = Y.shape[1]
        records = np.zeros((len(Y), 2 * outputs + 5))
        for i, (x, y) in enumerate(zip(X, Y, strict=True)):
            mean, variance = self._moments()
            records[i, :outputs], records[i, outputs : 2 * outputs] = mean, variance
            self.inputs, self.targets = np.vstack([self.inputs, x]), np.vstack([self.targets, y])
        return records

    def _moments(self) -> tuple[Array, float]:
        """Return the mean of the targets, and their variance pooled over the outputs."""
        if len(self.targets) == 0:
            return np.zeros(self.targets.shape[1]), 1.0
        mean = self.targets.mean(axis=0)
        return mean, float(np.mean((self.targets - mean) ** 2)) or 1.0

    def prior(self, target: tuple[int, ...]) -> tuple[Kernel, float, Array]:
        """Return the kernel, noise and prior mean while nothing better is known."""
        mean, variance = self._moments()
        kernel = kernels.RBF(variance=(1 - NOISE_SHARE) * variance)
        return kernel, NOISE_SHARE * variance, mean.reshape(target)

    def tuned(self, target: tuple[int, ...]) -> tuple[Kernel, float, Array]:
        """Return the kernel, noise and prior mean that the samples suggest."""
        start = self.kernel if self.family is None else getattr(kernels, self.family)
        mean = self.targets.mean(axis=0)
        found = tune(self.inputs, self.targets, kernel=start, seed=self.seed, mean=mean)
        return found.kernel, found.noise, mean.reshape(target)

    def memory(self) -> dict[str, Any]:
        """Return the state, as arrays and numbers."""
        if len(self.inputs) == 0:
            return {}
        return {"warmup_inputs": self.inputs.copy(), "warmup_targets": self.targets.copy()}

    def remember(self, memory: dict[str, Any]) -> None:
        """Take over what `memory` returned."""
        inputs, targets = memory["warmup_inputs"], memory["warmup_targets"]
        if not (inputs.ndim == targets.ndim == 2 and len(inputs) == len(targets) < self.samples):
            raise ValueError(f"samples of shapes {inputs.shape} and {targets.shape}")
        self.inputs, self.targets = np.array(inputs), np.array(targets)


def _is_family(name: str) -> bool:
    kind = getattr(kernels, name, None)
    return isinstance(kind, type) and issubclass(kind, Stationary)
