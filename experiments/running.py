"""Running what is planned and not yet recorded, with the time left in sight."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from itertools import groupby
from pathlib import Path
from typing import Any

from experiments.records import Record, Records, environment
from experiments.tasks import Task
from pogp.cli.console import Console

Execute = Callable[[Task, Path], tuple[dict[str, Any], float]]
"""Runs one task, given the folder of the records; returns its result and its seconds."""


def run(
    plan: Sequence[Task],
    records: Records,
    execute: Execute,
    pool: Executor,
    command: str,
    console: Console,
) -> None:
    """Run each task that has no record yet; what is done stays done if this is interrupted."""
    for stage in _stages(plan):
        missing = [task for task in stage if task not in records]
        if done := len(stage) - len(missing):
            console.note(f"{stage[0].part}: {done} of {len(stage)} runs are recorded already.")
        if missing:
            _run_stage(missing, records, execute, pool, command, console)


def _stages(plan: Sequence[Task]) -> Iterator[list[Task]]:
    """Yield the tasks part by part: a part may read the records of the parts before it."""
    for _, stage in groupby(plan, key=lambda task: task.part):
        yield list(stage)


def _run_stage(
    tasks: list[Task],
    records: Records,
    execute: Execute,
    pool: Executor,
    command: str,
    console: Console,
) -> None:
    """Run tasks that do not depend on each other, the longest first."""
    tenths = {task.key: max(round(10 * task.weight), 1) for task in tasks}
    done = 0
    with console.progress(tasks[0].part, sum(tenths.values())) as progress:
        longest_first = sorted(tasks, key=lambda task: -task.weight)
        futures: dict[Future[tuple[dict[str, Any], float]], Task] = {
            pool.submit(execute, task, records.folder): task for task in longest_first
        }
        pending = set(futures)
        try:
            while pending:
                finished, pending = wait(pending, return_when=FIRST_COMPLETED)
                for future in finished:
                    task = futures[future]
                    result, seconds = future.result()
                    records.add(Record(task, result, seconds, environment(), command))
                    done += tenths[task.key]
                    progress.update(done, str(task))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
