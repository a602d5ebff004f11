"""The frozen workload: eight inputs, a smooth target, dictionaries of a fixed size."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

import pogp
from pogp.arrays import Array
from pogp.models import Model

INPUTS = 8
NOISE = 0.01
KERNEL = pogp.RBF(lengthscale=[1.5] * INPUTS)
SIZES = (25, 50, 100, 200, 392, 800, 2000)
Online = TypeVar("Online", bound=Model)


@dataclass(frozen=True)
class Stream:
    """Samples in the order they come."""

    X: Array
    y: Array


def stream(samples: int, seed: int = 0) -> Stream:
    """Return the frozen stream: standard normal inputs, a sine of their sum, noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((samples, INPUTS))
    y = np.sin(X.sum(axis=1)) + np.sqrt(NOISE) * rng.standard_normal(samples)
    return Stream(X, y)


def full_model(size: int) -> pogp.POG:
    """Return a POG at its cap, past the transient: each further sample replaces one point."""
    return _filled(pogp.POG(KERNEL, NOISE, None, max_size=size), size)


def full_absorbing(size: int) -> pogp.AbsorbingPOG:
    """Return an AbsorbingPOG at its cap."""
    return _filled(pogp.AbsorbingPOG(KERNEL, NOISE, None, max_size=size), size)


def full_sogp(size: int) -> pogp.SOGP:
    """Return a SOGP at its cap; eight inputs are new enough for each sample to become a point."""
    return _filled(pogp.SOGP(KERNEL, NOISE, size), size)


def _filled(model: Online, size: int) -> Online:
    warmup = stream(3 * size, seed=1)
    model.learn(warmup.X, warmup.y)
    return model


def microseconds(action: Callable[[], object], repeats: int) -> Array:
    """Return the processor's time of each of several calls, in microseconds."""
    times = np.empty(repeats)
    for i in range(repeats):
        start = time.thread_time()
        action()
        times[i] = time.thread_time() - start
    return times * 1e6
