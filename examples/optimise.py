"""Bayesian optimisation with bounded memory: thousands of noisy evaluations, none dearer than the last.

Hartmann's function of six inputs, seen through noise, is to be made as small as possible. A model
learns every evaluation and says where the next one should be: where the expected improvement is
largest, among points all over the cube and points near the best so far. A GP that kept every
evaluation would be slower with each; here `max_size` bounds the points, and so the memory and the
time of a step, for ever.

Regret is how much larger than the true minimum the function is, without noise, at the point that
would be recommended: the model's best, and for random search the best value it ever saw, which
noise has flattered.

    python examples/optimise.py --figure optimise.png
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices: threads only get in the way

import argparse
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

import pogp

Array = NDArray[np.float64]
NOISE = 0.1
"""The standard deviation of an evaluation; the function spans 3.3."""
START = 60
"""Evaluations at random, by which the kernel is tuned."""

WEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
WIDTHS = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
CENTRES = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
LEAST = -3.32237


def hartmann(X: Array) -> Array:
    """Return Hartmann's function of six inputs in the unit cube, at the rows of X."""
    distances = (WIDTHS * (X[:, None, :] - CENTRES) ** 2).sum(axis=2)
    return np.asarray(-(np.exp(-distances) @ WEIGHTS))


class Search(NamedTuple):
    """After each evaluation: the regret, and the milliseconds that the step took."""

    regret: Array
    times: Array


def at_random(evaluations: int, rng: np.random.Generator) -> Search:
    """Try points at random, and recommend the one with the least value seen."""
    X = rng.uniform(size=(evaluations, 6))
    truth = hartmann(X)
    seen = truth + NOISE * rng.normal(size=evaluations)
    best = [int(np.argmin(seen[: i + 1])) for i in range(evaluations)]
    return Search(truth[best] - LEAST, np.zeros(evaluations))


def improvement(model: pogp.AbsorbingPOG, X: Array, least: float) -> Array:
    """Return how far below `least` the function is expected to be at the rows of X."""
    mean, variance = model.predict(X, latent=True)
    deviation = np.sqrt(variance)
    u = (least - mean) / deviation
    density = np.exp(-(u**2) / 2) / np.sqrt(2 * np.pi)
    return np.asarray(deviation * (u * ndtr(u) + density))


def by_model(evaluations: int, points: int, rng: np.random.Generator) -> Search:
    """Let a model choose, and recommend the point where it expects least."""
    X = rng.uniform(size=(START, 6))
    y = hartmann(X) + NOISE * rng.normal(size=START)
    tuned = pogp.tune(X, y, mean=float(y.mean()), restarts=1)
    model = pogp.AbsorbingPOG(tuned.kernel, tuned.noise, None, max_size=points, mean=float(y.mean()))
    model.learn(X, y)
    best = X[np.argmin(model.predict(X)[0])]
    search = Search(np.empty(evaluations), np.zeros(evaluations))
    search.regret[:START] = hartmann(best[None]) - LEAST
    for i in range(START, evaluations):
        started = perf_counter()
        reach = 10.0 ** rng.uniform(-2.5, -0.5, (300, 1))  # near and less near
        near = np.clip(best + reach * rng.normal(size=(300, 6)), 0, 1)
        candidates = np.vstack([best, model.dictionary, near, rng.uniform(size=(300, 6))])
        mean, _ = model.predict(candidates)
        best = candidates[np.argmin(mean)]
        x = candidates[np.argmax(improvement(model, candidates, mean.min()))]
        y_x = hartmann(x[None])[0] + NOISE * rng.normal()
        model.learn(x, y_x)
        search.times[i] = 1e3 * (perf_counter() - started)
        search.regret[i] = hartmann(best[None])[0] - LEAST
    return search
