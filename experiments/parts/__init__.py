"""The parts of the reproduction, in the order in which they run.

A part is a module with two functions: `tasks(scale)`, what to run, and `run(task, records)`, which
runs one of them and returns its result as plain data. It may read the records of `tune`.
"""

import time
from pathlib import Path
from types import ModuleType
from typing import Any

from experiments.parts import (
    assumption,
    compare,
    consistency,
    frontier,
    parsimony,
    stationarity,
    tune,
)
from experiments.records import Records, shortened
from experiments.tasks import Task

PARTS: dict[str, ModuleType] = {
    "tune": tune,
    "compare": compare,
    "frontier": frontier,
    "consistency": consistency,
    "stationarity": stationarity,
    "parsimony": parsimony,
    "assumption": assumption,
}


def execute(task: Task, folder: Path) -> tuple[dict[str, Any], float]:
    """Run one task; return its result and its seconds."""
    started = time.perf_counter()
    result = PARTS[task.part].run(task, Records(folder, "tune"))
    return shortened(result), round(time.perf_counter() - started, 3)
