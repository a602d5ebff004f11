"""Running what is planned and not yet recorded, on all processors, with the time left in sight."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

from experiments.parts import PARTS
from experiments.records import Record, Records, environment, shortened
from experiments.tasks import Task
from pogp.cli.progress import Console


def run(plan: Sequence[Task], records: Records, jobs: int, command: str, console: Console) -> None:
    """Run each task that has no record yet; what is done stays done if this is interrupted."""
    for stage in _stages(plan):
        missing = [task for task in stage if task not in records]
        if done := len(stage) - len(missing):
            console.note(f"{stage[0].part}: {done} of {len(stage)} runs are recorded already.")
        if missing:
            _run_stage(missing, records, jobs, command, console)
    records.tidy(plan)


def _stages(plan: Sequence[Task]) -> Iterator[list[Task]]:
    """Yield the tasks part by part: a part may read the records of the parts before it."""
    for name in PARTS:
        if stage := [task for task in plan if task.part == name]:
            yield stage


def _run_stage(
    tasks: list[Task], records: Records, jobs: int, command: str, console: Console
) -> None:
    """Run tasks that do not depend on each other, the longest first."""
    tenths = {task.key: max(round(10 * task.weight), 1) for task in tasks}
    done = 0
    # Fresh processes: a fork would inherit the threads of the libraries in use.
    context = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(jobs, mp_context=context) as pool,
        console.progress(tasks[0].part, sum(tenths.values())) as progress,
    ):
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


def execute(task: Task, folder: Path) -> tuple[dict[str, Any], float]:
    """Run one task; return its result and its seconds."""
    started = time.perf_counter()
    result = PARTS[task.part].run(task, Records(folder))
    return shortened(result), round(time.perf_counter() - started, 3)
