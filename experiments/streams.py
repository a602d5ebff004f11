"""The paper's data sets as streams: an order, a first slice for tuning, the rest, a test set.

Repeat 0 has the order of the authors' files, the others a random one. Whatever is learned before
the stream, hyperparameters and the mean, comes from the first slice; the test set is only scored.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import pogp
from experiments.published import SETS
from pogp.arrays import Array
from pogp.kernels import kernel_from_spec


@dataclass(frozen=True)
class Stream:
    """Samples in the order in which they are learned, after the slice that left the stream."""

    x_tune: Array
    y_tune: Array
    x: Array
    y: Array
    x_test: Array
    y_test: Array
    train_variance: float


@dataclass(frozen=True)
class Hyperparameters:
    """What the first slice gives: the kernel, the noise and the prior mean."""

    kernel: pogp.Kernel
    noise: float
    mean: float

    @classmethod
    def of(cls, result: dict[str, Any]) -> "Hyperparameters":
        """Read the result of a `tune` task."""
        return cls(kernel_from_spec(result["kernel"]), result["noise"], result["mean"])


@cache
def stream(name: str, seed: int, samples: int | None) -> Stream:
    """Return a data set in the order of one repeat."""
    data = pogp.datasets.load(name)
    count = len(data.y_train)
    order = np.arange(count) if seed == 0 else np.random.default_rng(seed).permutation(count)
    x, y = data.x_train[order[:samples]], data.y_train[order[:samples]]
    first = SETS[name].tune
    return Stream(
        x_tune=x[:first],
        y_tune=y[:first],
        x=x[first:],
        y=y[first:],
        x_test=data.x_test,
        y_test=data.y_test,
        train_variance=float(np.var(y)),
    )


def missing() -> dict[str, str]:
    """Return the data sets that cannot be had here, each with the reason."""
    reasons = {}
    for name in SETS:
        try:
            pogp.datasets.load(name)
        except (pogp.datasets.DataUnavailable, pogp.datasets.DigestError, OSError) as error:
            reasons[name] = str(error)
    return reasons
