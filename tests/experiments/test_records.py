from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from experiments import running
from experiments.parts import PARTS
from experiments.records import Record, Records, environment, shortened
from experiments.tasks import FULL, QUICK, Task
from pogp.cli.console import Console


def never(task: Task, folder: Path) -> tuple[dict[str, object], float]:
    raise AssertionError(f"{task} was run")


def record(task: Task, value: float = 1.0) -> Record:
    return Record(task, {"value": value}, 0.1, environment(), "make reproduce")


def test_records_survive_and_know_what_was_run(tmp_path: Path) -> None:
    done, other = Task("tune", "kin40", "a", 0, {"b": 1}), Task("tune", "kin40", "a", 0, {"b": 2})
    Records(tmp_path).add(record(done))
    again = Records(tmp_path)
    assert done in again
    assert other not in again
    assert list(again) == [record(done)]
    assert {"commit", "cpu", "numpy", "backend"} <= set(environment())


def test_a_line_that_a_crash_cut_short_did_not_happen(tmp_path: Path) -> None:
    first, second = Task("tune", "kin40", "a", 0), Task("tune", "kin40", "a", 1)
    records = Records(tmp_path)
    records.add(record(first))
    path = tmp_path / "tune-kin40.jsonl"
    path.write_text(path.read_text() + record(second).line()[:-20])
    again = Records(tmp_path)
    assert first in again
    assert second not in again


def test_tidying_follows_the_plan_and_leaves_other_files(tmp_path: Path) -> None:
    plan = [Task("tune", "kin40", "a", seed) for seed in range(3)]
    records = Records(tmp_path)
    for task in (
        plan[2],
        Task("tune", "kin40", "gone", 0),
        plan[0],
        Task("tune", "boston", "a", 0),
    ):
        records.add(record(task))
    records.tidy(plan)
    assert [each.task for each in Records(tmp_path).of("tune", "kin40")] == [plan[0], plan[2]]
    assert len(Records(tmp_path).of("tune", "boston")) == 1


def test_results_are_plain_and_short() -> None:
    result = {"a": np.float64(1 / 3), "b": [np.int64(3), 1e-12 / 7], "c": "x", "d": np.ones(2)}
    assert shortened(result) == {"a": 0.333333, "b": [3, 1.42857e-13], "c": "x", "d": [1.0, 1.0]}


def test_the_weight_of_a_task_does_not_make_it_another() -> None:
    assert Task("a", "b", "c", 0, weight=1).key == Task("a", "b", "c", 0, weight=2).key


@pytest.mark.parametrize("scale", [FULL, QUICK])
def test_every_task_of_the_plan_is_another_run(scale) -> None:
    plan = [task for part in PARTS.values() for task in part.tasks(scale)]
    assert len({task.key for task in plan}) == len(plan)
    assert {task.part for task in plan} == set(PARTS)


def test_recorded_runs_are_not_repeated(tmp_path: Path) -> None:
    plan = [Task("tune", "kin40", "a", seed) for seed in range(2)]
    records = Records(tmp_path)
    for task in plan:
        records.add(record(task))
    with ThreadPoolExecutor(1) as pool:  # what it runs would fail
        running.run(plan, records, never, pool, "make reproduce", Console(None))
    assert len(list(Records(tmp_path))) == 2
