"""Rows in the order of their stream or at random, for predictions of other rows.

`python -m benchmarks.row_order` fits `OnlineGP` to recordings (streams of `POGP_DATA`) and the
simulated arm, once in their order and once shuffled. Every tenth row is held out, and so is the
last tenth. It then predicts the rows held out of the past, the last tenth, and the rows at the end
of the recording. The table has the standardised mean squared error, and the share in the 95 % band
of `interval`. `--seed` is that of the model and of the shuffling.
"""

import argparse
import sys
from collections.abc import Iterator

import numpy as np

import pogp
from benchmarks.streams import ARM, recordings, worn_arm
from pogp.arrays import Array

SAMPLES, SHIFT = 7000, 3
Rows = tuple[Array, Array]


def tables() -> Iterator[tuple[str, Rows, Rows | None]]:
    """Yield each stream: its name, its rows and those at the end of the recording, if any."""
    for name, path in recordings().items():
        with np.load(path) as data:
            rows = data["x_train"][:SAMPLES], data["y_train"][:SAMPLES]
            yield name, rows, (data["x_test"], data["y_test"])
    arm = worn_arm(SAMPLES)
    yield ARM, (arm.X, arm.y), None


def scores(model: pogp.OnlineGP, rows: Rows | None) -> str:
    """Return the error and the share in the band."""
    if rows is None:
        return ""
    X, y = rows
    mean, _ = model.predict(X)
    lower, upper = model.interval(X)
    error = np.mean((mean - y) ** 2) / y.var()
    return f"{error:.4f} ({np.mean((lower < y) & (y < upper)):.0%})"


def main() -> int:
    """Print a line per stream and order."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.row_order", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the model and of the shuffling")
    seed = parser.parse_args().seed
    print(f"{'':<16}{'learned':>12}{'held out':>18}{'next':>18}{'later':>18}")
    for name, (X, y), later in tables():
        place = np.arange(len(y))
        past, held = place < len(y) * 9 // 10, place % 10 == SHIFT
        rows = np.flatnonzero(past & ~held)
        asked = [(X[past & held], y[past & held]), (X[~past], y[~past]), later]
        orders = {"in order": rows, "shuffled": np.random.default_rng(seed).permutation(rows)}
        for label, order in orders.items():
            model = pogp.OnlineGP(seed=seed).fit(X[order], y[order])
            cells = "".join(f"{scores(model, each):>18}" for each in asked)
            print(f"{name:<16}{label:>12}{cells}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
