"""Targets that follow their inputs with a delay: `python -m benchmarks.delays`.

An input keeps its value for a number of samples and then jumps. Between jumps the target is a
function of it, and after a jump it is not. The table has the squared error of `OnlineGP` relative
to the best of running mean, last target, and linear models without and with the last eight targets,
from `FIRST` on. The averages of several streams are geometric.
"""

import argparse
import sys
from collections.abc import Callable

import numpy as np

import pogp
from benchmarks.workloads import Stream
from pogp.arrays import Array

SAMPLES, FIRST, LAGS = 4000, 400, 8
INTERVALS = (60, 200, 500)
"""The samples between two jumps."""


def steps(rng: np.random.Generator, every: int, low: float = -1.0) -> Array:
    """Return an input that jumps to a random value."""
    return np.repeat(rng.uniform(low, 1, SAMPLES // every + 1), every)[:SAMPLES]


def set_point(rng: np.random.Generator, every: int) -> Stream:
    """Return a level that follows a set-point; another input has no effect."""
    u, y = steps(rng, every), np.zeros(SAMPLES)
    for i in range(1, SAMPLES):
        y[i] = 0.95 * y[i - 1] + 0.05 * u[i - 1]
    return Stream(
        np.column_stack([u, rng.normal(size=SAMPLES)]), y + 0.02 * rng.normal(size=SAMPLES)
    )


def valve(rng: np.random.Generator, every: int) -> Stream:
    """Return a flow that follows one of three positions of a valve, and is not linear in it."""
    u = np.repeat(rng.integers(0, 3, SAMPLES // every + 1), every)[:SAMPLES].astype(float)
    y = np.zeros(SAMPLES)
    for i in range(1, SAMPLES):
        y[i] = 0.95 * y[i - 1] + 0.05 * u[i - 1] ** 1.5
    return Stream(u[:, None], y + 0.01 * rng.normal(size=SAMPLES))


def motor(rng: np.random.Generator, every: int) -> Stream:
    """Return a speed that follows a voltage, saturated; the load is a random walk."""
    u, load, y = (
        steps(rng, every, 0.0),
        0.02 * np.cumsum(rng.normal(size=SAMPLES)),
        np.zeros(SAMPLES),
    )
    for i in range(1, SAMPLES):
        pull = np.tanh(3 * u[i]) * (1 - 0.1 * np.tanh(load[i]))
        y[i] = y[i - 1] + 0.1 * (pull - y[i - 1])
    return Stream(np.column_stack([u, load]), y + 0.01 * rng.normal(size=SAMPLES))


def dose(rng: np.random.Generator, every: int) -> Stream:
    """Return a concentration that rises with each dose and decays; another input has no effect."""
    u = np.where(rng.random(SAMPLES) < 1 / every, rng.uniform(1, 3, SAMPLES), 0.0)
    y = np.zeros(SAMPLES)
    for i in range(1, SAMPLES):
        y[i] = 0.9 * y[i - 1] + u[i - 1]
    return Stream(
        np.column_stack([u, rng.normal(size=SAMPLES)]), y + 0.05 * rng.normal(size=SAMPLES)
    )


KINDS: dict[str, Callable[[np.random.Generator, int], Stream]] = {
    "a set-point": set_point,
    "a valve": valve,
    "a motor": motor,
    "doses": dose,
}


def simple_errors(data: Stream) -> list[float]:
    """Return the squared errors of the simple predictors, each sample predicted before."""
    y = data.y
    scaled = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)
    plain = np.column_stack([scaled, np.ones(SAMPLES)])
    lags = np.column_stack([np.append(np.zeros(lag), y[:-lag]) for lag in range(1, LAGS + 1)])
    mean = np.append(0.0, np.cumsum(y)[:-1] / np.arange(1, SAMPLES))
    predictions = [mean, lags[:, 0], *map(least_squares(y), (plain, np.hstack([plain, lags])))]
    return [squared_error(y, each) for each in predictions]


def least_squares(y: Array) -> Callable[[Array], Array]:
    """Return the function that predicts targets by recursive least squares on features."""

    def predicted(H: Array) -> Array:
        P, w, found = 1e3 * np.eye(H.shape[1]), np.zeros(H.shape[1]), np.empty(len(H))
        for i, h in enumerate(H):
            found[i], g = h @ w, P @ h
            g /= 1.0 + h @ g
            w += g * (y[i] - found[i])
            P -= np.outer(g, h @ P)
        return found

    return predicted


def squared_error(y: Array, mean: Array) -> float:
    """Return the sum of squared errors from `FIRST` on."""
    return float(np.sum((y - mean)[FIRST:] ** 2))


def main() -> int:
    """Print a line for each kind of stream."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.delays", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="streams of each kind")
    seeds = parser.parse_args().seeds
    print(f"{'samples between jumps':<24}" + "".join(f"{every:>8}" for every in INTERVALS))
    for name, make in KINDS.items():
        cells = []
        for every in INTERVALS:
            ratios = []
            for seed in range(seeds):
                data = make(np.random.default_rng([seed, every]), every)
                found = pogp.OnlineGP(max_size=100, seed=seed).learn(data.X, data.y)
                ratios.append(squared_error(data.y, found.mean) / min(simple_errors(data)))
            cells.append(f"{np.exp(np.mean(np.log(ratios))):8.2f}")
        print(f"{name:<24}" + "".join(cells), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
