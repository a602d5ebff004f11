"""Records: a line of JSON for each run, with what it takes to trust it and to run it again."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy

import pogp
from experiments.tasks import Task

ROOT = Path(__file__).parent
COMMITTED = ROOT / "records"


@dataclass(frozen=True)
class Record:
    """A task, what came of it, how long it took, and where and by which code."""

    task: Task
    result: dict[str, Any]
    seconds: float
    environment: dict[str, str]
    command: str

    def line(self) -> str:
        """Return the record as one line of JSON."""
        return json.dumps(asdict(self), allow_nan=False, separators=(", ", ":"))

    @classmethod
    def of(cls, line: str) -> Record:
        """Read what `line` returned."""
        fields = json.loads(line)
        return cls(**fields | {"task": Task(**fields["task"])})


class Records:
    """The records in a folder, a file for each part and topic; only one process writes to it."""

    def __init__(self, folder: Path, part: str = "*") -> None:
        """Read the records of all parts, or of one."""
        self.folder = folder
        self._held: dict[str, Record] = {}
        for path in sorted(folder.glob(f"{part}-*.jsonl")):
            for line in path.read_text(encoding="utf-8").splitlines():
                # A line cut short by a crash is a run that has not happened.
                if line.endswith("}"):
                    record = Record.of(line)
                    self._held[record.task.key] = record

    def __contains__(self, task: Task) -> bool:
        return task.key in self._held

    def __iter__(self) -> Iterator[Record]:
        return iter(self._held.values())

    def of(self, part: str, topic: str | None = None, case: str | None = None) -> list[Record]:
        """Return the records of a part, in order of their repeats."""
        wanted = [
            record
            for record in self
            if record.task.part == part
            and topic in (None, record.task.topic)
            and case in (None, record.task.case)
        ]
        return sorted(wanted, key=lambda record: (record.task.seed, record.task.key))

    def add(self, record: Record) -> None:
        """Keep a record, on disk first."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._path(record.task).open("a", encoding="utf-8") as file:
            file.write(record.line() + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._held[record.task.key] = record

    def forget(self, tasks: Iterable[Task]) -> None:
        """Let go of what is recorded of some tasks, for them to be run again.

        On disk the old lines stay until new ones come after them: the last line of a run counts.
        """
        for task in tasks:
            self._held.pop(task.key, None)

    def tidy(self, plan: Iterable[Task]) -> None:
        """Rewrite the files in the order of the plan, without runs that are no longer in it.

        Parts and topics that the plan leaves out entirely stay as they are.
        """
        files: dict[Path, list[str]] = {}
        for task in plan:
            lines = files.setdefault(self._path(task), [])
            if task in self:
                lines.append(self._held[task.key].line())
        for path, lines in files.items():
            if lines:
                temporary = path.with_suffix(".tmp")
                temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
                temporary.replace(path)

    def _path(self, task: Task) -> Path:
        return self.folder / f"{task.part}-{task.topic}.jsonl"


@cache
def environment() -> dict[str, str]:
    """Return what a result may depend on besides its task."""
    return {
        "commit": _commit(),
        "pogp": pogp.__version__,
        "backend": pogp.backend(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "cpu": f"{_cpu()}, {os.cpu_count()} processors",
        "blas_threads": os.environ.get("OPENBLAS_NUM_THREADS", "unset"),
    }


def shortened(value: Any) -> Any:
    """Return a result with its numbers at six significant digits: records stay small."""
    if isinstance(value, dict):
        return {str(name): shortened(each) for name, each in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [shortened(each) for each in value]
    if isinstance(value, float | np.floating):
        return float(f"{value:.6g}")
    return int(value) if isinstance(value, np.integer) else value


def _commit() -> str:
    """Return the commit that runs, and whether files differ from it."""
    try:
        state = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"]
        return subprocess.run(state, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
