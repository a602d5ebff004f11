"""Alarms on the simulated arm with injected faults: `python -m benchmarks.alarms`.

The arm of `benchmarks.streams` (a two-link arm with wear, drift and a change of payload) gets
three kinds of faults in its torque sensor, at random places and for a random time: *jumps* (an
offset of 2 to 5 N m, either way), *stuck* values (the sensor repeats its last value) and *drifts*
(an offset that grows to 4 to 8 N m). `pogp.stream` follows the arm with `OnlineGP`. The table has
the share of rows outside all faults that raise an alarm and, for each kind, how many faults raised
an alarm while they lasted, and after how many rows in the median. Beside it stands a plain rule on
the same predictions: an alarm where the target is further than three deviations from the mean.

A row belongs to a fault from its onset until `AFTER` rows after its end, since the return to normal
is a change too.
"""

import argparse
import sys
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import pogp
from benchmarks.streams import worn_arm
from pogp.arrays import Array

KINDS = ("jump", "stuck", "drift")
EACH = 4
"""Faults of each kind in a stream."""
LENGTHS = (40, 120)
AFTER = 150
"""Rows after a fault that count as its aftermath, neither as false alarms nor as finds."""
FIRST = 600
"""Faults begin here; false alarms are counted from here on."""


class Fault(NamedTuple):
    """What was wrong, and when: from `start` to `stop`."""

    kind: str
    start: int
    stop: int


class Found(NamedTuple):
    """What a rule made of a stream."""

    false_rate: float
    delays: dict[str, list[int | None]]  # None: not found


def inject(y: Array, rng: np.random.Generator) -> tuple[Array, list[Fault]]:
    """Return the targets with faults, and the faults, in order and apart from each other."""
    y, kinds = y.copy(), rng.permutation(np.repeat(KINDS, EACH))
    places = np.linspace(FIRST, len(y) - LENGTHS[1], len(kinds) + 1)
    faults = []
    for kind, low, high in zip(kinds, places[:-1], places[1:], strict=True):
        length = int(rng.integers(*LENGTHS))
        start = int(rng.uniform(low, max(high - length - AFTER, low + 1)))
        rows = slice(start, start + length)
        sign = rng.choice((-1.0, 1.0))
        if kind == "jump":
            y[rows] += sign * rng.uniform(2, 5)
        elif kind == "stuck":
            y[rows] = y[start - 1]
        else:
            y[rows] += sign * rng.uniform(4, 8) * np.linspace(0, 1, length)
        faults.append(Fault(str(kind), start, start + length))
    return y, faults


def judged(alarms: NDArray[np.bool_], faults: list[Fault]) -> Found:
    """Count false alarms outside all faults, and find the delay of each fault."""
    ordinary = np.ones(len(alarms), dtype=bool)
    ordinary[:FIRST] = False
    delays: dict[str, list[int | None]] = {kind: [] for kind in KINDS}
    for fault in faults:
        ordinary[fault.start : fault.stop + AFTER] = False
        rows = np.flatnonzero(alarms[fault.start : fault.stop])
        delays[fault.kind].append(int(rows[0]) if len(rows) else None)
    return Found(float(alarms[ordinary].mean()), delays)


def run(samples: int, seed: int, rate: float, max_size: int) -> tuple[Found, Found]:
    """Return what the calibrated alarm and the rule of three deviations make of one stream."""
    arm = worn_arm(samples, seed)
    y, faults = inject(arm.y, np.random.default_rng(seed))
    rows = zip(arm.X, y, strict=True)
    steps = list(pogp.stream(pogp.OnlineGP(max_size=max_size), rows, alarm=rate))
    calibrated = np.array([step.alarm for step in steps])
    plain = np.array([step.surprise > 3 for step in steps])
    return judged(calibrated, faults), judged(plain, faults)


def line(name: str, found: list[Found]) -> str:
    """Return a line of the table: of all streams together."""
    cells = [f"{np.mean([each.false_rate for each in found]):.2%}"]
    for kind in KINDS:
        delays = [delay for each in found for delay in each.delays[kind]]
        hits = [delay for delay in delays if delay is not None]
        after = f" after {np.median(hits):.0f}" if hits else ""
        cells.append(f"{len(hits)}/{len(delays)}{after}")
    return f"{name:<22}" + "".join(f"{cell:>18}" for cell in cells)


def main() -> int:
    """Print a line per seed and rule, and the sums."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.alarms",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--samples", type=int, default=8000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument("--max-size", type=int, default=100)
    options = parser.parse_args()
    columns = ("false alarms", *(f"{kind}s found" for kind in KINDS))
    print(f"{options.samples} rows, promised rate {options.rate:.2%}; found, and median delay\n")
    print(" " * 22 + "".join(f"{name:>18}" for name in columns))
    results = []
    for seed in range(options.seeds):
        results.append(run(options.samples, seed, options.rate, options.max_size))
        print(line(f"seed {seed}", [results[-1][0]]), flush=True)
    calibrated, plain = zip(*results, strict=True)
    print(line("pogp, all seeds", list(calibrated)))
    print(line("three sigma", list(plain)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
