"""`python -m experiments`: run what is missing, then write the report."""

import argparse
import multiprocessing
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

# Before NumPy is imported: the runs are many and small, threads would be in each other's way.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from experiments import streams
from experiments.parts import PARTS, execute
from experiments.records import COMMITTED, Records
from experiments.running import run
from experiments.tasks import FULL, QUICK, Scale, Task
from pogp.cli.console import Console

DOCS = Path(__file__).parents[1] / "docs"
EPILOG = """\
examples:
  make reproduce                 everything, then docs/reproduction.md and its pictures
  make reproduce ONLY=kin40      one data set, or one part: tune, compare, frontier, …
  make reproduce-quick           a small form of all, in build/reproduce-quick
  make reproduce ARGS=--draw-only   the report again, from the records there are
An interrupted run continues where it stopped; --fresh starts again.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run and draw; return the exit code."""
    # Here, as the processes that run tasks need none of it; first, as an hour's runs would be
    # for nothing without it.
    from experiments.drawing import report

    arguments = _parser().parse_args(argv)
    scale = QUICK if arguments.quick else FULL
    folder = arguments.records or (Path("build/reproduce-quick") if arguments.quick else COMMITTED)
    console = Console(sys.stderr)
    if not arguments.draw_only:
        plan = planned(scale, arguments.only, console)
        if arguments.fresh:
            for path in {folder / f"{task.part}-{task.topic}.jsonl" for task in plan}:
                path.unlink(missing_ok=True)
        records = Records(folder)
        # Fresh processes: a fork would inherit the threads of the libraries in use.
        context = multiprocessing.get_context("spawn")
        try:
            with ProcessPoolExecutor(arguments.jobs, mp_context=context) as pool:
                run(plan, records, execute, pool, _command(arguments), console)
            records.tidy(plan)
        except KeyboardInterrupt:
            console.note("\nInterrupted: finished runs are recorded; the same command continues.")
            return 130
    return report.draw(Records(folder), DOCS if folder == COMMITTED else folder, console)


def _command(arguments: argparse.Namespace) -> str:
    """Return the command that runs the same again, wherever its records are kept."""
    only = ["--only", arguments.only] if arguments.only else []
    return " ".join(["python -m experiments", *["--quick"] * arguments.quick, *only])


def planned(scale: Scale, only: str | None, console: Console) -> list[Task]:
    """Return the tasks that can be run here, and say which cannot."""
    absent = streams.missing()
    for name, reason in absent.items():
        console.note(f"Left out: {name} is not here. {reason}")
    plan = [task for part in PARTS.values() for task in part.tasks(scale)]
    plan = [task for task in plan if task.topic not in absent]
    if only is None:
        return plan
    names = sorted({name for task in plan for name in (task.part, task.topic)})
    if only not in names:
        raise SystemExit(f"there is nothing called {only!r} to run; there are {', '.join(names)}")
    # A data set's runs need its hyperparameters, whichever part is asked for.
    return [task for task in plan if only in (task.part, task.topic) or _needed(task, only)]


def _needed(task: Task, only: str) -> bool:
    return task.part == "tune" and only in ("compare", "frontier", "assumption")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", metavar="NAME", help="a data set, a topic or a part")
    parser.add_argument("--quick", action="store_true", help="a small form of everything")
    parser.add_argument("--fresh", action="store_true", help="run again what is recorded")
    parser.add_argument("--draw-only", action="store_true", help="run nothing, write the report")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N")
    parser.add_argument("--records", type=Path, metavar="DIR", help="where the records are")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
