"""Missing values and times: what a table with gaps loses, and what the calendar gains.

`python -m benchmarks.raw_tables turbine_nox pol` empties a tenth of the cells of every input column
at random (streams of `POGP_DATA`). With `--shuffled` the rows of the stream are in random order,
and the test rows are of the same stream. `--seed` is that of the model and of the gaps.
`--boosting` adds gradient boosting that is fitted to all rows at once (LightGBM). `python -m
benchmarks.raw_tables demand` learns a synthetic demand with daily and weekly rhythm from its time
and the temperature. `python -m benchmarks.raw_tables sensors` has four simulated inputs, two with a
memory: gaps at random, in outages, and with absurd cells.
"""

import argparse
import os
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

import pogp
from pogp import encoding
from pogp.arrays import Array
from pogp.encoding import Encoder
from pogp.encoding.columns import Cells
from pogp.encoding.model import interval_row, mixed

FIRST = 600
"""Samples that are not scored in the stream."""
SHARE = 0.1


def scores(y: Array, mean: Array, variance: Array) -> str:
    """Return the error and the coverage."""
    smse = np.mean((y - mean) ** 2) / np.var(y)
    return f"SMSE {smse:.4f}, {np.mean(np.abs(y - mean) < 1.96 * np.sqrt(variance)):.1%} in band"


def banded(y: Array, mean: Array, lower: Array, upper: Array) -> str:
    """Return the error and the share of targets between the bounds."""
    smse = np.mean((y - mean) ** 2) / np.var(y)
    return f"SMSE {smse:.4f}, {np.mean((lower < y) & (y < upper)):.1%} in band"


class Split(NamedTuple):
    """Rows to learn, in their order, and rows to test."""

    X: Array
    y: Array
    x_test: Array
    y_test: Array


def split(name: str, shuffled: bool, rows: int | None) -> Split:
    """Return a stream and its test rows."""
    with np.load(Path(os.environ["POGP_DATA"]) / "streams" / f"{name}.npz") as data:
        X, y, x_test, y_test = (data[part] for part in ("x_train", "y_train", "x_test", "y_test"))
    if shuffled:
        order = np.random.default_rng(5).permutation(len(y))
        learned, held = np.split(order, [min(rows or len(y), len(y) * 9 // 10)])
        return Split(X[learned], y[learned], X[held], y[held])
    return Split(X[:rows], y[:rows], x_test, y_test)


def emptied(X: Array, seed: int) -> Array:
    """Return a table with a tenth of its cells missing."""
    return np.where(np.random.default_rng(seed).random(X.shape) < SHARE, np.nan, X)


def gaps(name: str, data: Split, max_size: int, seed: int) -> None:
    """Compare a complete stream with one that has gaps: row by row, and on test rows.

    The test rows are predicted as they are and with gaps of their own.
    """
    for label, table in (("complete", data.X), ("with gaps", emptied(data.X, seed + 1))):
        model = pogp.OnlineGP(max_size=max_size, seed=seed)
        encoder = Encoder.numbers(range(data.X.shape[1]))
        _, trace, filled, _ = encoding.learn(model, encoder, list(table.T), data.y)
        stream = scores(data.y[FIRST:], trace.mean[FIRST:], trace.variance[FIRST:])
        print(f"{name}, {label} ({filled} rows filled): stream {stream}", flush=True)
        model.settle()  # the test rows do not follow at once
        for rows, x_test in (
            ("complete", data.x_test),
            ("with gaps", emptied(data.x_test, seed + 2)),
        ):
            filled_rows = encoding.fill(model, encoder, list(x_test.T))
            mean, _ = mixed(model, filled_rows, encoder.dimension)
            bands = np.array([interval_row(model, row, 0.95) for row in filled_rows]).T
            print(f"    test rows, {rows}: {banded(data.y_test, mean, *bands)}", flush=True)


def boosting(name: str, data: Split) -> None:
    """Print the test errors of gradient boosting, which takes missing values as they are."""
    from lightgbm import LGBMRegressor

    spread = np.var(data.y_test)
    for label, table in (("complete", data.X), ("with gaps", emptied(data.X, seed=1))):
        trees = LGBMRegressor(n_estimators=800, num_leaves=63, learning_rate=0.05, verbose=-1)
        trees.fit(table, data.y)
        errors = [
            np.mean((data.y_test - trees.predict(rows)) ** 2) / spread
            for rows in (data.x_test, emptied(data.x_test, seed=2))
        ]
        print(f"{name}, {label}, boosting: test rows: complete SMSE {errors[0]:.4f}; ", end="")
        print(f"with gaps SMSE {errors[1]:.4f}", flush=True)


def demand(hours: int = 24 * 7 * 12) -> tuple[list[str], Array, Array]:
    """Return hourly times, temperature, and a demand that follows the day and the week."""
    rng, t = np.random.default_rng(0), np.arange(hours)
    times = [str(each) for each in np.datetime64("2024-01-01T00") + t]
    weather = np.convolve(rng.normal(size=hours + 71), np.ones(72) / np.sqrt(72), mode="valid")
    temperature = 10 + 6 * np.sin(2 * np.pi * (t - 9) / 24) + 3 * weather
    day = np.exp(-(((t % 24) - 8) ** 2) / 8) + 1.3 * np.exp(-(((t % 24) - 19) ** 2) / 10)
    weekend = (t // 24) % 7 >= 5
    heating = np.maximum(16 - temperature, 0) ** 1.3
    return (
        times,
        temperature,
        50 + 20 * day * np.where(weekend, 0.5, 1) + heating + rng.normal(size=hours),
    )


def calendar() -> None:
    """Compare the calendar with the elapsed time alone."""
    times, temperature, y = demand()
    elapsed = np.arange(len(y)) / 24
    tables: dict[str, list[Cells]] = {
        "the calendar": [times, temperature],
        "elapsed time alone": [elapsed, temperature],
    }
    for label, cells in tables.items():
        model, encoder = pogp.OnlineGP(), Encoder.of(["time", "temperature"], cells)
        trace = encoding.learn(model, encoder, cells, y).trace
        print(f"demand, {label}: {scores(y[FIRST:], trace.mean[FIRST:], trace.variance[FIRST:])}")


def sensors(seed: int, rows: int = 3000) -> tuple[Array, Array]:
    """Return two inputs with a memory and two without, and a target that is not linear in them."""
    rng = np.random.default_rng([seed, 3])
    X = rng.normal(size=(rows, 4))
    for i in range(1, rows):
        X[i, :2] = 0.95 * X[i - 1, :2] + np.sqrt(1 - 0.95**2) * X[i, :2]
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.3 * X[:, 2] ** 2
    return X, y + 0.1 * rng.normal(size=rows)


def outages(X: Array, seed: int) -> Array:
    """Return a table with a tenth of its cells missing, ten in a row."""
    off = np.random.default_rng([seed, 4]).random((len(X) // 10 + 1, X.shape[1])) < SHARE
    return np.where(np.repeat(off, 10, axis=0)[: len(X)], np.nan, X)


def simulated(seeds: int = 3) -> None:
    """Print errors and bands by where the gaps are, along the stream and at rest."""
    for kind in ("gaps at random", "outages", "one absurd cell", "0.5 % absurd cells"):
        found: dict[str, list[tuple[float, float]]] = {}
        for seed in range(seeds):
            X, y = sensors(seed)
            table = X.copy()
            if kind == "one absurd cell":
                table[1000, 0] = 999.0
            elif kind == "0.5 % absurd cells":
                table[np.random.default_rng([seed, 5]).random(X.shape) < 0.005] = 999.0
            table = outages(table, seed) if kind == "outages" else emptied(table, seed)
            learned, later = slice(None, 2400), slice(2400, None)
            model, encoder = pogp.OnlineGP(max_size=100, seed=seed), Encoder.numbers("abcd")
            trace = encoding.learn(model, encoder, list(table[learned].T), y[learned]).trace
            gone, error = np.isnan(table[learned]), y[learned] - trace.mean
            inside = np.abs(error) < 1.96 * np.sqrt(trace.variance)
            scored = np.arange(len(error)) >= FIRST
            memory, others = gone[:, :2].any(axis=1), gone[:, 2:].any(axis=1)
            for label, chosen in (
                ("no gap", ~memory & ~others),
                ("a gap in an input with a memory", memory & ~others),
                ("a gap in another", others & ~memory),
            ):
                at = chosen & scored
                told = float(np.sqrt(np.mean(error[at] ** 2))), float(inside[at].mean())
                found.setdefault(f"stream, {label}", []).append(told)
            model.settle()
            for label, column in (("an input with a memory", 0), ("another", 2)):
                asked = X[later].copy()
                asked[:, column] = np.nan
                mean, variance = encoding.predict(model, encoder, list(asked.T))
                error = y[later] - mean
                inside = np.abs(error) < 1.96 * np.sqrt(variance)
                told = float(np.sqrt(np.mean(error**2))), float(inside.mean())
                found.setdefault(f"at rest, a gap in {label}", []).append(told)
        for label, scores_ in found.items():
            error_, share = np.mean(scores_, axis=0)
            print(f"{kind}: {label}: RMSE {error_:.2f}, {share:.1%} in band", flush=True)


def main() -> int:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.raw_tables")
    parser.add_argument("names", nargs="*", default=["demand"], help="streams, demand or sensors")
    parser.add_argument("--shuffled", action="store_true")
    parser.add_argument("--rows", type=int, help="rows to learn, all by default")
    parser.add_argument("--max-size", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0, help="of the model, and of the gaps")
    parser.add_argument("--boosting", action="store_true")
    options = parser.parse_args()
    for name in options.names:
        if name in ("demand", "sensors"):
            calendar() if name == "demand" else simulated()
            continue
        data = split(name, options.shuffled, options.rows)
        if options.boosting:
            boosting(name, data)
        gaps(name, data, options.max_size, options.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
