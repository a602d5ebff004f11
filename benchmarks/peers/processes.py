"""A process of its own for each run: a peer that crashes takes nothing else with it."""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from experiments.records import shortened
from experiments.tasks import Task


def execute(task: Task, folder: Path) -> tuple[dict[str, Any], float]:
    """Run one task in a fresh process; return its result and its seconds."""
    started = time.perf_counter()
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(task, there))
    process.start()
    there.close()
    try:
        result = here.recv()
    except EOFError:
        result = None
    process.join()
    if result is None:
        result = {"failure": f"the process ended with exit code {process.exitcode}"}
    return shortened(result), round(time.perf_counter() - started, 3)


def _run(task: Task, report: Connection) -> None:
    from benchmarks.peers.passage import run

    report.send(run(task))
    report.close()
