"""What tuning costs: evaluations, their time beside a Cholesky factorisation, and all of it.

`python -m benchmarks.tuning` runs `pogp.tune` cold and warm on frozen data. The factorisation is of
a matrix of the same size, timed before and after in the same process.
"""

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.linalg.lapack import dpotrf

import pogp
from benchmarks.workloads import microseconds
from pogp.arrays import Array
from pogp.tuning import Tuned

SIZES = ((100, 5), (300, 8), (500, 20), (1000, 8))
"""Samples and inputs."""
NEARBY = 0.2
"""How far a warm start is from the optimum, in the logarithm of each parameter."""


def samples(n: int, p: int, seed: int = 0) -> tuple[Array, Array]:
    """Return the frozen data: four inputs matter much, one a little, the others not at all."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] ** 2 + 0.3 * X[:, 2] * X[:, 3] + 0.1 * X[:, 4]
    return X, y - y.mean() + 0.2 * rng.standard_normal(n)


def cholesky(n: int) -> float:
    """Return the seconds of one factorisation."""
    points = np.linspace(0.0, 1.0, n)[:, None]
    matrix = pogp.RBF(0.1)(points) + 0.1 * np.eye(n)
    # Transposed it is in LAPACK's order.
    return float(np.median(microseconds(lambda: dpotrf(matrix.T, lower=1), 21))) / 1e6


def timed(action: Callable[[], Tuned]) -> tuple[Tuned, float]:
    """Return what came, and the processor's seconds."""
    started = time.process_time()
    found = action()
    return found, time.process_time() - started


def table(sizes: tuple[tuple[int, int], ...]) -> None:
    """Print a line per size and way to start."""
    print("\nTuning, seconds of one processor; an evaluation beside one Cholesky of that size:\n")
    columns = ("n", "p", "start", "restarts", "evaluations", "÷Cholesky", "seconds", "log p")
    print("".join(f"{name:>13}" for name in columns))
    for n, p in sizes:
        X, y = samples(n, p)
        best, _ = timed(partial(pogp.tune, X, y))
        away = NEARBY * np.random.default_rng(1).standard_normal(best.kernel.theta.size)
        near = best.kernel.with_theta(best.kernel.theta + away)
        warm = partial(pogp.tune, X, y, kernel=near, noise=1.2 * best.noise)
        for name, restarts, way in (
            ("cold", 3, partial(pogp.tune, X, y)),
            ("cold", 0, partial(pogp.tune, X, y)),
            ("warm", 1, warm),
            ("warm", 0, warm),
        ):
            before = cholesky(n)
            found, seconds = timed(partial(way, restarts=restarts))
            floor = (before + cholesky(n)) / 2  # the machine may have become faster or slower
            cells = (
                f"{n}",
                f"{p}",
                name,
                f"{restarts}",
                f"{found.evaluations}",
                f"{seconds / found.evaluations / floor:.1f}",
                f"{seconds:.2f}",
                f"{found.log_likelihood:.3f}",
            )
            print("".join(f"{cell:>13}" for cell in cells), flush=True)


def main() -> int:
    """Run it by itself."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tuning", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    table(SIZES[:2] if parser.parse_args().quick else SIZES)
    return 0


if __name__ == "__main__":
    sys.exit(main())
