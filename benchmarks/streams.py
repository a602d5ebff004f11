"""Accuracy and cost on streams in the order they were recorded: `python -m benchmarks.streams`.

Each sample is predicted before it is learned. The table has the standardised mean squared error
from sample 600 on (of streams shorter than 1,800 from a third on), the share in the 95 % band, and
the processor's time, all tuning included, beside that of `SelfTuning`, which is tuned once.

The recordings are the files `NAME.npz` in the folder `streams` of `POGP_DATA`, with the arrays
`x_train` and `y_train`. The simulated arm is at hand everywhere: one joint's torque along a smooth
path, with a sensor that drifts, a bearing that wears and a payload that changes half way.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import pogp
from benchmarks.workloads import Stream
from pogp.arrays import Array
from pogp.metrics import coverage, smse
from pogp.models import Model

ARM = "simulated arm"
SAMPLES = 12_000
FROM = 600
"""Scores begin here, or after a third of a short stream."""
PIECE = 500
"""Samples learned in one call."""
GRAVITY = 9.81
LENGTHS, MASSES = (0.5, 0.4), (4.0, 3.0)
"""Of the arm's two links, in m and kg."""


class Scores(NamedTuple):
    """What came of one model on one stream."""

    error: float
    inside: float
    seconds: float
    size: int


def worn_arm(samples: int, seed: int = 0) -> Stream:
    """Simulate a two-link arm: angles, speeds and accelerations in, the shoulder's torque out.

    The path is smooth, sampled at 100 Hz, and does not repeat. Friction doubles along the stream
    (wear), the torque sensor's offset is a random walk (drift), and half way the payload changes.
    """
    rng = np.random.default_rng(seed)
    t = np.arange(samples) / 100
    q, v, a = _path(rng, t)
    along = np.arange(samples) / samples
    load = np.where(along < 0.5, 0.5, 1.5)
    friction = (1 + along)[:, None] * (0.6 * v + np.tanh(5 * v))
    clean = shoulder_torque(q, v, a, load) + friction[:, 0]
    offset = np.cumsum(0.01 * rng.normal(size=samples))
    return Stream(np.hstack([q, v, a]), clean + offset + 0.2 * rng.normal(size=samples))


def _path(rng: np.random.Generator, t: Array) -> tuple[Array, Array, Array]:
    """Return angles, speeds and accelerations (n, 2): sums of four sines for each joint."""
    rates = rng.uniform(0.3, 2.5, (4, 1, 2))
    phases = rng.uniform(0, 2 * np.pi, (4, 1, 2))
    angle = rates * t[:, None] + phases
    size = 0.5
    q = size * np.sin(angle).sum(axis=0)
    v = size * (rates * np.cos(angle)).sum(axis=0)
    return q, v, -size * (rates**2 * np.sin(angle)).sum(axis=0)


def shoulder_torque(q: Array, v: Array, a: Array, load: Array) -> Array:
    """Return the torque of the first joint; links are rods, the load is a point at the hand."""
    (l1, l2), (m1, m2) = LENGTHS, MASSES
    inner = m1 * l1**2 / 3 + (m2 + load) * l1**2
    outer = (m2 / 3 + load) * l2**2
    couple = (m2 / 2 + load) * l1 * l2
    cos, sin = np.cos(q[:, 1]), np.sin(q[:, 1])
    inertia = (inner + outer + 2 * couple * cos) * a[:, 0] + (outer + couple * cos) * a[:, 1]
    moving = -couple * sin * (2 * v[:, 0] * v[:, 1] + v[:, 1] ** 2)
    first = (m1 / 2 + m2 + load) * l1 * np.cos(q[:, 0])
    second = (m2 / 2 + load) * l2 * np.cos(q[:, 0] + q[:, 1])
    return np.asarray(inertia + moving + GRAVITY * (first + second))


def recordings() -> dict[str, Path]:
    """Return the files of `POGP_DATA/streams` by name; none where there is no such folder."""
    folder = os.environ.get("POGP_DATA")
    files = sorted(Path(folder, "streams").glob("*.npz")) if folder else []
    return {path.stem: path for path in files}


def recorded(path: Path, samples: int) -> Stream:
    """Read a recording, at most so many samples of it."""
    with np.load(path) as data:
        return Stream(data["x_train"][:samples], data["y_train"][:samples])


def streams(chosen: list[str], samples: int) -> Iterator[tuple[str, Stream]]:
    """Yield the recordings that are there and the simulated arm, or those of the names given."""
    files = recordings()
    missing = set(chosen) - {*files, "arm"}
    if missing:
        raise SystemExit(f"no such stream in POGP_DATA/streams: {', '.join(sorted(missing))}")
    for name, path in files.items():
        if not chosen or name in chosen:
            yield name, recorded(path, samples)
    if not chosen or "arm" in chosen:
        yield ARM, worn_arm(samples)


def scored(models: list[Model], data: Stream, first: int) -> list[Scores]:
    """Stream the data through models, each sample predicted before it is learned.

    They take turns, piece by piece: where the machine's speed changes, it does so for all.
    """
    means: list[list[Array]] = [[] for _ in models]
    variances: list[list[Array]] = [[] for _ in models]
    seconds = [0.0 for _ in models]
    for start in range(0, len(data.y), PIECE):
        piece = slice(start, start + PIECE)
        for i, model in enumerate(models):
            started = time.process_time()
            trace = model.learn(data.X[piece], data.y[piece])
            seconds[i] += time.process_time() - started
            means[i].append(trace.mean)
            variances[i].append(trace.variance)
    y = data.y[first:]
    found = []
    for i, model in enumerate(models):
        mean, variance = np.concatenate(means[i])[first:], np.concatenate(variances[i])[first:]
        inside = coverage(y, mean, variance)
        found.append(Scores(smse(y, mean, float(y.var())), inside, seconds[i], model.size))
    return found


def persistence(data: Stream, first: int) -> float:
    """Return the error of taking each target for the last one."""
    y = data.y
    return smse(y[first:], y[first - 1 : -1], float(y[first:].var()))


def table(chosen: list[str], samples: int, max_size: int) -> None:
    """Print a line per stream."""
    print(f"\nPredicted before learned, at most {max_size} points; SMSE (in the 95 % band):\n")
    columns = ("samples", "inputs", "persistence", "SelfTuning", "OnlineGP", "points", "time÷")
    widths = (9, 8, 13, 18, 18, 8, 8)
    print(f"{'':<16}" + "".join(f"{c:>{w}}" for c, w in zip(columns, widths, strict=True)))
    for name, data in streams(chosen, samples):
        first = min(FROM, len(data.y) // 3)
        once = pogp.SelfTuning("absorbing", max_size=max_size, scale=True)
        before, after = scored([once, pogp.OnlineGP(max_size=max_size)], data, first)
        cells = (
            f"{len(data.y):,}",
            f"{data.X.shape[1]}",
            f"{persistence(data, first):.5f}",
            f"{before.error:.5f} ({before.inside:.1%})",
            f"{after.error:.5f} ({after.inside:.1%})",
            f"{after.size}",
            f"{after.seconds / before.seconds:.2f}",
        )
        line = "".join(f"{cell:>{w}}" for cell, w in zip(cells, widths, strict=True))
        print(f"{name:<16}{line}", flush=True)


def main() -> int:
    """Run it by itself."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streams", description=__doc__)
    parser.add_argument("names", nargs="*", help="streams to run (default: all; arm is simulated)")
    parser.add_argument("--samples", type=int, default=SAMPLES, help="at most so many of each")
    parser.add_argument("--max-size", type=int, default=300, help="the most points")
    options = parser.parse_args()
    table(options.names, options.samples, options.max_size)
    return 0


if __name__ == "__main__":
    sys.exit(main())
