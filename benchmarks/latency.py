"""How soon `pogp learn - --out -` answers a row of a pipe: `python -m benchmarks.latency`.

The worn arm of `benchmarks.streams` is written to the pipe. The first rows come at once and are not
counted; then a row comes per interval, and the time until its line is read is measured.
"""

import argparse
import subprocess
import sys
import time

import numpy as np

from benchmarks.streams import worn_arm


def answers(first: int, rows: int, interval: float) -> list[float]:
    """Return the seconds from writing each row to reading its line."""
    arm = worn_arm(first + rows)
    lines = [",".join(map(repr, row)) for row in np.column_stack([arm.X, arm.y]).tolist()]
    command = [sys.executable, "-m", "pogp", "learn", "-", "--target", "y", "--out", "-", "--quiet"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        names = ",".join([*(f"x{i}" for i in range(arm.X.shape[1])), "y"])
        process.stdin.write("\n".join([names, *lines[:first], ""]).encode())
        process.stdin.flush()
        for _ in range(first + 1):
            process.stdout.readline()
        times = []
        for line in lines[first:]:
            time.sleep(interval)
            started = time.perf_counter()
            process.stdin.write(f"{line}\n".encode())
            process.stdin.flush()
            process.stdout.readline()
            times.append(time.perf_counter() - started)
        process.stdin.close()
    return times


def main() -> int:
    """Print the median and the slowest answers."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency", description=__doc__)
    parser.add_argument("--first", type=int, default=500, help="rows that come at once")
    parser.add_argument("--rows", type=int, default=60)
    parser.add_argument("--interval", type=float, default=1.0, help="seconds between rows")
    options = parser.parse_args()
    times = 1000 * np.sort(answers(options.first, options.rows, options.interval))
    print(
        f"{len(times)} rows, one per {options.interval:g} s, after {options.first}: answered in "
        f"{np.median(times):.1f} ms in the median, {times[-1]:.1f} ms at most"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
