"""Streams with a few abrupt events, beside the simplest predictors: `python -m benchmarks.events`.

A calm stream (a sine of one input, with noise) gets 1 to 20 events, a thousand deviations large:
single *outliers*, *dropouts* of 5, 20 or 60 rows, *jumps* for good, up and down in turn, or
outliers and dropouts of 20 rows in turn (*mixed*). The table has the squared error of `OnlineGP`
relative to the best of running mean, last target and linear model, which hardly depends on anything
but the events. It is an average over streams.

After the first sample of an event no method knows whether the next sample is back or stays. If p is
the weight of "stays", an outlier costs 1 + p² squared sizes, and a jump 1 + (1 − p)². The lines
*learned* have the p of Krichevsky and Trofimov, which is learned from the earlier surprises: of n,
of which s were followed by a sample like them, p = (s + ½)/(n + 1).
"""

import argparse
import sys

import numpy as np

import pogp
from pogp.arrays import Array

SAMPLES, FIRST = 3000, 400
"""The samples of a stream, and the first of an event."""
SIZE = 1000.0
COUNTS = (1, 2, 3, 5, 10, 20)
LENGTHS = {
    "outliers": (1,),
    "dropouts of 5": (5,),
    "dropouts of 20": (20,),
    "dropouts of 60": (60,),
    "jumps": (0,),
    "mixed": (1, 20),
}
"""The rows of an event, for each kind of stream, in turn; 0 is a jump."""


def levels(lengths: tuple[int, ...], count: int, rng: np.random.Generator) -> Array:
    """Return the level of each sample: 0, or `SIZE` during an event."""
    level, room = np.zeros(SAMPLES), (SAMPLES - FIRST) // count
    for i in range(count):
        length = lengths[i % len(lengths)]
        start = FIRST + i * room + int(rng.integers(room - max(lengths) - 10))
        if length == 0:
            level[start:] = SIZE - level[start]
        else:
            level[start : start + length] = SIZE
    return level


def simple_errors(X: Array, y: Array) -> list[float]:
    """Return the squared errors of running mean, last target and linear model, from `FIRST` on."""
    count = np.arange(1, len(y))
    mean, last = np.cumsum(y)[:-1] / count, y[:-1]
    H, linear = np.column_stack([X, np.ones(len(X))]), np.zeros(len(y) - 1)
    A, b = 1e-6 * np.eye(H.shape[1]), np.zeros(H.shape[1])
    for i in range(len(y) - 1):
        A += np.outer(H[i], H[i])
        b += y[i] * H[i]
        linear[i] = H[i + 1] @ np.linalg.solve(A, b)
    return [squared_error(y, np.append(0.0, each)) for each in (mean, last, linear)]


def squared_error(y: Array, mean: Array) -> float:
    """Return the sum of squared errors from `FIRST` on."""
    return float(np.sum((y - mean)[FIRST:] ** 2))


def ratio(lengths: tuple[int, ...], count: int, seed: int) -> float:
    """Return the squared error of `OnlineGP` relative to that of the best simple predictor."""
    rng = np.random.default_rng([seed, count])
    X = rng.uniform(-3, 3, (SAMPLES, 1))
    y = np.sin(X[:, 0]) + rng.normal(size=SAMPLES) + levels(lengths, count, rng)
    found = pogp.OnlineGP(max_size=50, seed=seed).learn(X, y)
    return squared_error(y, found.mean) / min(simple_errors(X, y))


def learned_ratio(lengths: tuple[int, ...], count: int) -> float:
    """Return the same for the learned weight of "stays", without noise."""
    stays = [[length != 1] * (2 if length > 1 else 1) for length in lengths]
    surprises = [each for i in range(count) for each in stays[i % len(stays)]]
    errors, stayed = 0.0, 0.0
    for n, stay in enumerate(surprises):
        p = (stayed + 0.5) / (n + 1.0)
        errors += 1.0 + (stay - p) ** 2
        stayed += stay
    only_outliers = not any(surprises)
    last = sum(1.0 if stay else 2.0 for stay in surprises)
    return errors / (len(surprises) if only_outliers else last)


def main() -> int:
    """Print a line for each kind of event, and one for the learned weight."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.events", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="streams of each kind")
    seeds = range(parser.parse_args().seeds)
    print(f"{'events':<28}" + "".join(f"{count:>8}" for count in COUNTS))
    for name, lengths in LENGTHS.items():
        found = [np.mean([ratio(lengths, count, seed) for seed in seeds]) for count in COUNTS]
        print(f"{name:<28}" + "".join(f"{each:>8.2f}" for each in found))
        learned = [learned_ratio(lengths, count) for count in COUNTS]
        print(f"{'  learned':<28}" + "".join(f"{each:>8.2f}" for each in learned), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
