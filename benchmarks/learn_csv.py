"""A CSV file through `pogp learn`: beside the parser alone, the core alone, and in what memory.

`python -m benchmarks.learn_csv --megabytes 2000` makes the figures of the README. The file is
written to the temporary folder first, and removed in the end.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import pogp
from benchmarks.workloads import INPUTS, Stream, stream
from pogp.cli.tables import Choice, Layout, open_table

BLOCK = 200_000
"""Rows that differ; the file repeats them."""
STARTED = 1000
"""Rows after which the command has started, and tuned its model."""
CHUNK = 1000
NAMES = [f"x{i}" for i in range(1, INPUTS + 1)]


@dataclass(frozen=True)
class Passage:
    """One way through the rows."""

    rows: int
    seconds: float

    @property
    def microseconds(self) -> float:
        """Per row."""
        return 1e6 * self.seconds / self.rows


def write(path: Path, data: Stream, megabytes: int) -> None:
    """Write rows again and again, until the file has its size."""
    values = np.column_stack([data.X, data.y])
    with path.open("wb") as file:
        file.write((",".join([*NAMES, "y"]) + "\n").encode())
        begin = file.tell()
        np.savetxt(file, values, fmt="%.6f", delimiter=",")
        length = file.tell() - begin
    block = path.read_bytes()[begin:]
    with path.open("ab") as file:
        for _ in range(max(megabytes * 10**6 // length - 1, 0)):
            file.write(block)


def parse(path: Path) -> Passage:
    """Read all rows and do nothing with them."""
    started, rows = time.perf_counter(), 0
    choice = Choice(range(INPUTS + 1), required=range(INPUTS + 1))
    with open_table(str(path), Layout()) as table:
        for batch in table.batches(choice, table.start):
            rows += len(batch)
    return Passage(rows, time.perf_counter() - started)


def core(data: Stream, max_size: int) -> Passage:
    """Learn rows that are in memory, past the warm-up."""
    model = pogp.SelfTuning("absorbing", budget=None, max_size=max_size, scale=True)
    first = 300 + 3 * max_size
    model.learn(data.X[:first], data.y[:first])
    started = time.perf_counter()
    for i in range(first, len(data.y), CHUNK):
        model.learn(data.X[i : i + CHUNK], data.y[i : i + CHUNK])
    return Passage(len(data.y) - first, time.perf_counter() - started)


def learn(path: Path, max_size: int) -> tuple[float, list[float]]:
    """Run the command; return its seconds, and its memory in MB at every tenth of them."""
    options = ["--method", "absorbing", "--budget", "none", "--max-size", str(max_size)]
    options += ["--quiet", "--overwrite"]
    files = [str(path), "--save", str(path.with_suffix(".pogp"))]
    command = [sys.executable, "-m", "pogp", "learn", *files, "--target", "y", *options]
    started, sizes = time.perf_counter(), []
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            sizes.append(_resident(process.pid))
            time.sleep(0.1)
    seconds = time.perf_counter() - started
    if process.returncode:
        raise RuntimeError(f"pogp learn ended with {process.returncode}")
    return seconds, [max(part) for part in np.array_split(np.array(sizes), 10) if len(part)]


def _resident(pid: int) -> float:
    """Return the memory of a process in MB; 0 once it has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def table(megabytes: int, max_size: int) -> None:
    """Print the three of them for one file."""
    data = stream(BLOCK)
    before = core(data, max_size)
    with tempfile.TemporaryDirectory() as folder:
        path, short = Path(folder) / "table.csv", Path(folder) / "short.csv"
        write(path, data, megabytes)
        write(short, Stream(data.X[:STARTED], data.y[:STARTED]), 0)
        size = path.stat().st_size / 1e6
        parsed = parse(path)
        started, _ = learn(short, max_size)
        seconds, memory = learn(path, max_size)
    after = core(data, max_size)  # the machine may have become faster or slower
    alone = Passage(before.rows + after.rows, before.seconds + after.seconds)
    learned = Passage(parsed.rows - STARTED, seconds - started)
    print(
        f"\nA CSV file of {size:,.0f} MB, {parsed.rows:,} rows of {INPUTS} inputs, through "
        f"`pogp learn` at M = {max_size}:\n"
    )
    print("".join(f"{name:>14}" for name in ("", "µs/row", "rows/s", "MB/s")))
    for name, way in (("parser alone", parsed), ("core alone", alone), ("pogp learn", learned)):
        pace = size * way.rows / parsed.rows / way.seconds
        cells = (f"{way.microseconds:.2f}", f"{way.rows / way.seconds:,.0f}", f"{pace:.1f}")
        print(f"{name:>14}" + "".join(f"{cell:>14}" for cell in cells))
    slower = max(parsed.microseconds, alone.microseconds)
    print(f"\n  pogp learn ÷ the slower of the two: {learned.microseconds / slower:.2f}")
    print(f"  (scores and checkpoints included; before that, {started:.1f} s of start and tuning)")
    print("  memory MB, by tenths: " + "  ".join(f"{value:.0f}" for value in memory), flush=True)


def main() -> int:
    """Run it by itself."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.learn_csv",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--megabytes", type=int, default=200, metavar="N", help="(default: 200)")
    parser.add_argument("--max-size", type=int, default=50, metavar="M", help="(default: 50)")
    arguments = parser.parse_args()
    table(arguments.megabytes, arguments.max_size)
    return 0


if __name__ == "__main__":
    sys.exit(main())
