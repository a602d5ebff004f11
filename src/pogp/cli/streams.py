"""The data sets of `pogp run`, cut into a slice for hyperparameters, a stream and a test set."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from pogp import datasets
from pogp.arrays import Array
from pogp.datasets import Dataset

Make = Callable[[int | None, int], Dataset]
"""From a number of training samples, None for the usual, and a seed."""


@dataclass(frozen=True)
class Stream:
    """Samples in the order in which they are learned, after the slice that left the stream."""

    source: str
    x_tune: Array
    y_tune: Array
    x: Array
    y: Array
    x_test: Array
    y_test: Array
    train_variance: float

    @property
    def mean(self) -> float:
        """The prior mean: that of the slice alone, as the rest has not been seen yet."""
        return float(np.mean(self.y_tune))


@dataclass(frozen=True)
class Source:
    """Where the samples come from, and how many of the first are for tuning by default."""

    make: Make
    tune: int

    def cut(self, samples: int | None, tune: int | None, seed: int) -> Stream:
        """Return the data set as a stream."""
        dataset = self.make(samples, seed)
        x, y = dataset.x_train, dataset.y_train
        first = self.tune if tune is None else tune
        if not 2 <= first < len(y):
            raise ValueError(
                f"tuning must leave a stream: with {len(y)} training samples it can have from 2 "
                f"to {len(y) - 1}, got {first}"
            )
        return Stream(
            source=dataset.source,
            x_tune=x[:first],
            y_tune=y[:first],
            x=x[first:],
            y=y[first:],
            x_test=dataset.x_test,
            y_test=dataset.y_test,
            train_variance=float(np.var(y)),
        )


def _simulated(draw: Callable[[int, int], Dataset], usual: int) -> Make:
    """Return how to simulate; the seed is that of the simulation."""
    return lambda samples, seed: draw(usual if samples is None else samples, seed)


def _published(name: str) -> Make:
    """Return how to load in random order; the seed is that of the order."""

    def make(samples: int | None, seed: int) -> Dataset:
        dataset = datasets.load(name)
        available = len(dataset.y_train)
        if samples is not None and samples > available:
            raise ValueError(f"{name} has {available} training samples, fewer than {samples}")
        order = np.random.default_rng(seed).permutation(available)[:samples]
        return replace(dataset, x_train=dataset.x_train[order], y_train=dataset.y_train[order])

    return make


# Slices as in the paper, but for the arm: with 300 samples the likelihood of two seeds in eight
# is highest at no noise at all, and every prediction is then far too sure; with 500 of none.
SOURCES = {
    "arm": Source(_simulated(datasets.arm, 5000), tune=500),
    "gaussian": Source(_simulated(datasets.gaussian, 2200), tune=200),
    "chi_square": Source(_simulated(datasets.chi_square, 2200), tune=200),
    "boston": Source(_published("boston"), tune=50),
    "abalone": Source(_published("abalone"), tune=150),
    "kin40": Source(_published("kin40"), tune=300),
    "kin40k": Source(_published("kin40k"), tune=300),
}
