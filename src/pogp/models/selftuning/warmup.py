"""The first slice of a stream, on which hyperparameters are found."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pogp.arrays import Array, Indices
from pogp.kernels import RBF, Kernel, as_kernel
from pogp.kernels.stationary import STATIONARY
from pogp.models.selftuning.scaling import Units
from pogp.trace import Trace, blank
from pogp.tuning import tune

NOISE_SHARE = 0.1
"""Of the variance of the targets, while nothing better is known."""
LEAST = 2
"""One sample does not show the scale of the data."""
PATIENCE = 10
"""If the stream begins with a constant target, the warm-up lasts until it changes, but no longer
than this many slices."""


class Warmup:
    """The samples collected so far, the prior until they are complete, and the one found on them.

    A constant target, as of a machine that is switched off, says nothing about later ones. If more
    than half of the slice is constant, the slice begins where the target first changes.
    """

    def __init__(self, kernel: Kernel, family: str | None, samples: int, seed: int) -> None:
        if family is not None and family not in STATIONARY:
            raise ValueError(f"family must be one of {list(STATIONARY)}, got {family!r}")
        self.kernel = kernel
        self.family = family
        self.samples = samples
        self.seed = seed
        self.inputs = np.empty((0, 0))
        self.targets = np.empty((0, 1))
        self.weights = np.empty(0)

    @property
    def room(self) -> int:
        """How many samples are still missing, if the next target differs from those so far."""
        return self.wanted(self.targets) - len(self.inputs)

    def wanted(self, Y: Array) -> int:
        """Return how many samples it takes, if the stream begins with these targets."""
        differs = (Y[:1] != Y).any(axis=1)
        still = int(np.argmax(differs)) if differs.any() else len(Y)
        waits = 2 * still > self.samples
        return min(still + self.samples, PATIENCE * self.samples) if waits else self.samples

    @property
    def nbytes(self) -> int:
        """Bytes held by the samples."""
        return self.inputs.nbytes + self.targets.nbytes

    def take(self, X: Array, Y: Array, weights: Array | None = None) -> None:
        """Set the samples, copied, all of weight one by default."""
        self.inputs, self.targets = X.copy(), Y.copy()
        self.weights = np.ones(len(Y)) if weights is None else weights.copy()

    def collect(
        self, X: Array, Y: Array, target: tuple[int, ...], weights: Array | None = None
    ) -> Trace:
        """Add the samples that there is room for, each predicted by the targets before it."""
        if len(self.inputs) == 0:
            self.take(X[:0], Y[:0])
        before, outputs = len(self.inputs), Y.shape[1]
        together = np.vstack([self.targets, Y])
        records = blank(min(len(Y), self.wanted(together) - before), outputs)
        trace = Trace(records, flat=target == ())
        each = np.ones(len(Y)) if weights is None else weights
        for i in range(len(trace)):
            trace.means[i], trace.variances[i] = self._moments()
            inputs, targets = np.vstack([self.inputs, X[i]]), np.vstack([self.targets, Y[i]])
            self.take(inputs, targets, np.append(self.weights, each[i]))
        return trace

    def slice(self) -> tuple[Array, Array]:
        """Return the samples to tune by."""
        return self.inputs[-self.samples :], self.targets[-self.samples :]

    def _moments(self) -> tuple[Array, float]:
        """Return the mean of the targets, and their variance pooled over the outputs.

        While they have no spread it is their size that says how large one may be.
        """
        if len(self.targets) == 0:
            return np.zeros(self.targets.shape[1]), 1.0
        mean = self.targets.mean(axis=0)
        spread = float(np.mean((self.targets - mean) ** 2))
        return mean, spread or float(np.mean(self.targets**2)) or 1.0

    def prior(self, target: tuple[int, ...]) -> tuple[Kernel, float, Array]:
        """Return the kernel, noise and prior mean while nothing better is known."""
        mean, variance = self._moments()
        mean = mean.reshape(target) if len(self.targets) else np.zeros(target)
        return RBF(variance=(1 - NOISE_SHARE) * variance), NOISE_SHARE * variance, mean

    def tuned(
        self,
        target: tuple[int, ...],
        units: Units,
        noise: float | None = None,
        mean: ArrayLike | None = None,
    ) -> tuple[Kernel, float, Array]:
        """Return the kernel, noise and prior mean that the samples, in some units, suggest.

        The search starts at `noise`, if given; the mean is theirs, unless given.
        """
        start = self.kernel if self.family is None else STATIONARY[self.family]
        inputs, targets = self.slice()
        X, Y = units.inputs(inputs), units.targets(targets)
        level = Y.mean(axis=0) if mean is None else np.broadcast_to(mean, Y.shape[1:])
        once = _once(np.column_stack([inputs, targets]))
        options: dict[str, Any] = {"seed": self.seed, "noise": noise, "mean": level}
        found = tune(X[once], Y[once], kernel=start, prior=True, **options)
        return found.kernel, found.noise, level.reshape(target)

    def state(self) -> dict[str, Any]:
        """Return the state, as arrays and numbers."""
        if len(self.inputs) == 0:
            return {}
        samples = {"warmup_inputs": self.inputs.copy(), "warmup_targets": self.targets.copy()}
        weighed = {"warmup_weights": self.weights.copy()} if (self.weights != 1).any() else {}
        return samples | weighed

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
        inputs, targets = state["warmup_inputs"], state["warmup_targets"]
        if not inputs.ndim == targets.ndim == 2 or len(inputs) != len(targets):
            raise ValueError(f"samples of shapes {inputs.shape} and {targets.shape}")
        weights = state.get("warmup_weights", np.ones(len(inputs)))
        if weights.shape != (len(inputs),) or not (weights > 0).all():
            raise ValueError(f"weights of shape {weights.shape}, or not positive")
        self.take(inputs, targets, weights)
        if self.room <= 0:
            raise ValueError(f"{len(inputs)} samples, for a warm-up of {self.samples}")


def _once(samples: Array) -> Indices:
    """Return where each sample comes first.

    An exact repetition is taken for a copy, not a second measurement. It would suggest that there
    is no noise, and the likelihood would grow without bound.
    """
    first = np.sort(np.unique(samples, axis=0, return_index=True)[1])
    return first if len(first) >= LEAST else np.arange(len(samples))


def kernel_or_family(kernel: object) -> Kernel | str:
    """Return a kernel, or the name of the class of kernels to tune."""
    if kernel is None:
        return RBF.__name__
    if not isinstance(kernel, str | type):
        return as_kernel(kernel)
    for name, family in STATIONARY.items():
        if kernel in (name, family):
            return name
    raise ValueError(
        f"kernel must be a kernel, or one of the classes {', '.join(STATIONARY)}; got {kernel!r}"
    )
