"""Missing values and times: what a table with gaps loses, and what the calendar gains.

`python -m benchmarks.raw_tables turbine_nox pol` empties a tenth of the cells of every input column
at random (streams of `POGP_DATA`). `python -m benchmarks.raw_tables demand` learns a synthetic
demand with daily and weekly rhythm from its time and the temperature.
"""

import os
import sys
from pathlib import Path

import numpy as np

import pogp
from pogp import encoding
from pogp.arrays import Array
from pogp.encoding import Encoder
from pogp.encoding.columns import Cells

FIRST = 600
"""Samples that are not scored in the stream."""
SHARE = 0.1


def scores(y: Array, mean: Array, variance: Array) -> str:
    """Return the error and the coverage."""
    smse = np.mean((y - mean) ** 2) / np.var(y)
    return f"SMSE {smse:.4f}, {np.mean(np.abs(y - mean) < 1.96 * np.sqrt(variance)):.1%} in band"


def gaps(name: str) -> None:
    """Compare a complete stream with one that has gaps: row by row, and on test rows after it.

    The test rows are predicted as they are and with gaps of their own.
    """
    with np.load(Path(os.environ["POGP_DATA"]) / "streams" / f"{name}.npz") as data:
        X, y, x_test, y_test = (data[part] for part in ("x_train", "y_train", "x_test", "y_test"))
    rng = np.random.default_rng(1)
    holes, x_gaps = rng.random(X.shape) < SHARE, x_test.copy()
    x_gaps[rng.random(x_test.shape) < SHARE] = np.nan
    for label, table in (("complete", X), ("with gaps", np.where(holes, np.nan, X))):
        model, encoder = pogp.OnlineGP(), Encoder.numbers(range(X.shape[1]))
        _, trace, filled = encoding.learn(model, encoder, list(table.T), y)
        stream = scores(y[FIRST:], trace.mean[FIRST:], trace.variance[FIRST:])
        test = scores(y_test, *model.predict(x_test))
        spoilt = scores(y_test, *encoding.predict(model, encoder, list(x_gaps.T)))
        print(f"{name}, {label} ({filled} rows filled): stream {stream}", flush=True)
        print(f"    test rows: complete {test}; with gaps {spoilt}", flush=True)


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


def main() -> int:
    """Run what is asked for."""
    for name in sys.argv[1:] or ["demand"]:
        if name == "demand":
            calendar()
        else:
            gaps(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
