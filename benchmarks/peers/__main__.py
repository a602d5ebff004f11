"""`python -m benchmarks.peers`: run what is missing, write the page, print the tables."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.peers import tables
from benchmarks.peers.processes import execute
from benchmarks.peers.readings import recorded
from benchmarks.peers.registry import PEERS
from benchmarks.peers.table_file import LEAST, read_table
from benchmarks.peers.tasks import FULL, QUICK, Scale, available, plan
from experiments.records import Records
from experiments.running import run
from experiments.tasks import Task
from pogp.cli.console import Console

COMMITTED = Path(__file__).parent / "records"
DOCS = Path(__file__).parents[2] / "docs"
EPILOG = """\
examples:
  make peers                                    everything, then docs/comparison.md
  make peers-quick                              a small form, in build/peers-quick
  make peers ARGS='--only arm --peers online'   one stream, one peer
  make peers ARGS=--draw-only                   the page again, from the records there are
  python -m benchmarks.peers --csv data.csv --target y    the same table for your own data
An interrupted run continues where it stopped; --fresh starts again.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run and draw; return the exit code."""
    arguments = _parser().parse_args(argv)
    console = Console(sys.stderr)
    try:
        scale = _scale(arguments)
        if arguments.csv is not None:
            return _own_table(arguments, scale, console)
        folder = arguments.records or (Path("build/peers-quick") if arguments.quick else COMMITTED)
        if not arguments.draw_only:
            names = _chosen(available(scale, console), arguments.only, "stream")
            records = Records(folder)
            _run(plan(scale, names), records, arguments, console)
            # Records of other peers and of more seeds stay, those of another length go.
            records.tidy(plan(replace(scale, seeds=max(scale.seeds, FULL.seeds)), names))
    except ValueError as error:
        raise SystemExit(f"python -m benchmarks.peers: {error}") from None
    except KeyboardInterrupt:
        console.note("\nInterrupted: finished runs are recorded; the same command continues.")
        return 130
    records = Records(folder)
    _print(records)
    if arguments.quick or arguments.print_only:
        return 0
    from benchmarks.peers import report  # needs Matplotlib and Jinja, which runs do not

    return report.draw(records, DOCS if folder == COMMITTED else folder, console)


def _own_table(arguments: argparse.Namespace, scale: Scale, console: Console) -> int:
    """Compare the peers on a user's table; nothing is kept."""
    if arguments.target is None:
        raise ValueError("--csv needs --target, the column to predict")
    # Says at once what is wrong with the table, and what is left out of it.
    read_table(arguments.csv, arguments.target, scale.samples, console.note)
    where = {"table": str(Path(arguments.csv).resolve()), "target": arguments.target}
    tasks = [
        replace(task, options=task.options | where)
        for task in plan(scale, [Path(arguments.csv).stem])
    ]
    with TemporaryDirectory() as folder:
        _run(tasks, Records(Path(folder)), arguments, console)
        _print(Records(Path(folder)))
    return 0


def _run(
    tasks: list[Task], records: Records, arguments: argparse.Namespace, console: Console
) -> None:
    """Run the tasks of the peers that are here, each in a process of its own."""
    chosen = _chosen(list(PEERS), arguments.peers, "peer")
    for name in chosen:
        if reason := PEERS[name].missing:
            console.note(f"Skipped: {PEERS[name].label}, {reason}.")
    here = [name for name in chosen if PEERS[name].missing is None]
    wanted = [task for task in tasks if task.case in here]
    if arguments.fresh:
        records.forget(wanted)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        run(wanted, records, execute, pool, _command(arguments), console)


def _chosen(names: list[str], only: str | None, what: str) -> list[str]:
    """Return the names asked for, or all."""
    if only is None:
        return names
    wanted = only.split(",")
    for name in wanted:
        if name not in names:
            raise ValueError(f"there is no {what} {name!r}; there are {', '.join(names)}")
    return wanted


def _scale(arguments: argparse.Namespace) -> Scale:
    scale = QUICK if arguments.quick else FULL
    if arguments.csv is not None and arguments.seeds is None:
        scale = replace(scale, seeds=1)
    for name, least in (("samples", LEAST), ("seeds", 1)):
        value = getattr(arguments, name)
        if value is not None and value < least:
            raise ValueError(f"--{name} must be {least} or more, got {value}")
        if value is not None:
            scale = replace(scale, **{name: value})
    return scale


def _command(arguments: argparse.Namespace) -> str:
    """Return the command that runs the same again, wherever its records are kept."""
    parts = ["python -m benchmarks.peers", *["--quick"] * arguments.quick]
    for name in ("samples", "seeds"):
        if (value := getattr(arguments, name)) is not None:
            parts.append(f"--{name} {value}")
    return " ".join(parts)


def _print(records: Records) -> None:
    for found in recorded(records):
        print(f"\n{found.title}: {found.samples:,} samples, {found.description}.\n")
        print(tables.text(found))
    print(
        "\nEach sample is predicted, then learned; scores are of targets in units of their\n"
        "deviation, from a third of the stream on (at most 600 samples). Times are of the\n"
        "processor. * of a point: its absolute error. Useful: half the running mean's error."
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="a small form of everything")
    parser.add_argument("--only", metavar="NAMES", help="streams, separated by commas")
    parser.add_argument("--peers", metavar="NAMES", help="peers, separated by commas")
    parser.add_argument("--csv", metavar="FILE", help="compare on a table of your own")
    parser.add_argument("--target", metavar="COLUMN", help="the column of the table to predict")
    parser.add_argument("--samples", type=int, metavar="N", help="at most so many of each stream")
    parser.add_argument("--seeds", type=int, metavar="N", help="runs where there is chance")
    parser.add_argument("--fresh", action="store_true", help="run again what is recorded")
    parser.add_argument("--draw-only", action="store_true", help="run nothing, write the page")
    parser.add_argument("--print-only", action="store_true", help="write no page")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N")
    parser.add_argument("--records", type=Path, metavar="DIR", help="where the records are")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
