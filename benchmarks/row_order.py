"""Rows in the order of their stream or at random, for predictions of other rows.

`python -m benchmarks.row_order` fits `OnlineGP` to recordings (streams of `POGP_DATA`) from which
every tenth row is held out, once in their order and once shuffled. It then predicts the rows held
out, and those at the end of the recording. The table has the standardised mean squared error, and
the share in the 95 % band of `interval`.
"""

import sys

import numpy as np

import pogp
from benchmarks.streams import recordings
from pogp.arrays import Array

SAMPLES, SHIFT = 7000, 3


def scores(model: pogp.OnlineGP, X: Array, y: Array) -> str:
    """Return the error and the share in the band."""
    mean, _ = model.predict(X)
    lower, upper = model.interval(X)
    error = np.mean((mean - y) ** 2) / y.var()
    return f"{error:.4f} ({np.mean((lower < y) & (y < upper)):.0%})"


def main() -> int:
    """Print a line per stream and order."""
    print(f"{'':<16}{'learned':>12}{'held out':>18}{'later':>18}")
    for name, path in recordings().items():
        with np.load(path) as data:
            X, y = data["x_train"][:SAMPLES], data["y_train"][:SAMPLES]
            x_test, y_test = data["x_test"], data["y_test"]
        held = np.arange(len(y)) % 10 == SHIFT
        rows = np.flatnonzero(~held)
        for label, order in (
            ("in order", rows),
            ("shuffled", np.random.default_rng(0).permutation(rows)),
        ):
            model = pogp.OnlineGP().fit(X[order], y[order])
            cells = scores(model, X[held], y[held]), scores(model, x_test, y_test)
            print(f"{name:<16}{label:>12}{cells[0]:>18}{cells[1]:>18}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
