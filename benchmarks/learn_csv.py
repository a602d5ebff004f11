"""A CSV file through `pogp learn`: beside the parser alone, the core alone, and in what memory.

`python -m benchmarks.learn_csv --megabytes 2000` is the figure of the README. The file is written
to the temporary folder first, and removed in the end.
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
from pogp.cli.rows import Layout, open_table

BLOCK = 200_000
"""Rows that differ; the file repeats them."""
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
    with open_table(str(path), Layout()) as table:
        for batch in table.batches(range(INPUTS + 1), table.start):
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


def learn(path: Path, max_size: int, rows: int) -> tuple[Passage, list[float]]:
    """Run the command; return its way, and its memory in MB at every tenth of the time it took."""
    model = path.with_suffix(".pogp")
    options = ["--budget", "none", "--max-size", str(max_size), "--quiet", "--save", str(model)]
    command = [sys.executable, "-m", "pogp", "learn", str(path), "--target", "y", *options]
    started, sizes = time.perf_counter(), []
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            sizes.append(_resident(process.pid))
            time.sleep(0.1)
    seconds = time.perf_counter() - started
    if process.returncode or pogp.load(model).seen != rows:
        raise RuntimeError(f"pogp learn ended with {process.returncode}")
    along = [max(part) for part in np.array_split(np.array(sizes), 10) if len(part)]
    return Passage(rows, seconds), along


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
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        write(path, data, megabytes)
        size = path.stat().st_size / 1e6
        parsed = parse(path)
        learned, memory = learn(path, max_size, parsed.rows)
    alone = core(data, max_size)
    slower = max(parsed.microseconds, alone.microseconds)
    print(
        f"\nA CSV file of {size:,.0f} MB, {parsed.rows:,} rows of {INPUTS} inputs, through "
        f"`pogp learn` at M = {max_size}:\n"
    )
    print("".join(f"{name:>14}" for name in ("", "µs/row", "rows/s", "MB/s")))
    for name, way in (("parser alone", parsed), ("core alone", alone), ("pogp learn", learned)):
        pace = size * way.rows / parsed.rows / way.seconds
        cells = (f"{way.microseconds:.2f}", f"{way.rows / way.seconds:,.0f}", f"{pace:.1f}")
        print(f"{name:>14}" + "".join(f"{cell:>14}" for cell in cells))
    print(f"\n  pogp learn ÷ the slower of the two: {learned.microseconds / slower:.2f}")
    print("  (start, tuning, scores, checkpoints every 100,000 rows included)")
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
