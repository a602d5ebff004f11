"""How long the longest steps of `OnlineGP` take: `python -m benchmarks.longest`.

Samples are learned one by one, each stream some times over, in the time of the thread. Of each
sample the quickest run counts, since nothing but the machine differs between them. The table has
the median step and, as its multiples, the longest steps of all, and where the longest one was.
"""

import argparse
import sys
import time
from collections.abc import Iterator

import numpy as np

import pogp
from benchmarks.streams import streams
from benchmarks.workloads import Stream
from pogp.arrays import Array

SAMPLES, RUNS = 5000, 3
INPUTS = (1, 40)


def simulated(inputs: int, samples: int) -> Stream:
    """Return a stream of a smooth function of all inputs, with noise."""
    rng = np.random.default_rng(inputs)
    X = rng.normal(size=(samples, inputs))
    along = X @ rng.normal(size=(inputs, 3)) / np.sqrt(inputs)
    return Stream(X, np.sin(2 * along).sum(axis=1) + 0.1 * rng.normal(size=samples))


def every(chosen: list[str], samples: int) -> Iterator[tuple[str, Stream]]:
    """Yield the streams of `benchmarks.streams`, and simulated ones of few and many inputs."""
    yield from streams(chosen, samples)
    if not chosen:
        for inputs in INPUTS:
            yield f"{inputs} inputs", simulated(inputs, samples)


def steps(data: Stream, max_size: int) -> Array:
    """Return the seconds that each sample takes."""
    model, seconds = pogp.OnlineGP(max_size=max_size), np.empty(len(data.y))
    for i, (x, y) in enumerate(zip(data.X, data.y, strict=True)):
        started = time.thread_time()
        model.learn(x, y)
        seconds[i] = time.thread_time() - started
    return seconds


def table(chosen: list[str], samples: int, runs: int, max_size: int) -> None:
    """Print a line per stream."""
    columns = ("samples", "median µs", "99 %", "99.9 %", "longest", "at")
    print(f"{'':<16}" + "".join(f"{column:>11}" for column in columns))
    for name, data in every(chosen, samples):
        seconds = np.min([steps(data, max_size) for _ in range(runs)], axis=0)
        median = float(np.median(seconds))
        multiples = np.quantile(seconds, [0.99, 0.999, 1.0]) / median
        cells = [f"{len(seconds):,}", f"{1e6 * median:.0f}", *(f"{m:.1f}" for m in multiples)]
        cells.append(f"{int(seconds.argmax()):,}")
        print(f"{name:<16}" + "".join(f"{cell:>11}" for cell in cells), flush=True)


def main() -> int:
    """Run it by itself."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.longest", description=__doc__)
    parser.add_argument("names", nargs="*", help="streams to run (default: all; arm is simulated)")
    parser.add_argument("--samples", type=int, default=SAMPLES, help="at most so many of each")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--max-size", type=int, default=300, help="the most points")
    options = parser.parse_args()
    table(options.names, options.samples, options.runs, options.max_size)
    return 0


if __name__ == "__main__":
    sys.exit(main())
