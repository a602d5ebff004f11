"""The small form of the whole reproduction: run by its command, and its results looked at."""

import multiprocessing
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
from PIL import Image

import pogp
from experiments import streams
from experiments.__main__ import main, planned
from experiments.drawing.report import FIGURES, Report
from experiments.published import SETS
from experiments.records import Records
from experiments.running import run
from experiments.tasks import QUICK, Task
from pogp.cli.console import Console

FORKING = multiprocessing.get_context("fork")


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Records:
    """The records and the report. Of figures that one function draws, the first stands for all.

    The process that runs the tasks is forked, to spare it the imports.
    """
    folder, drawn = tmp_path_factory.mktemp("quick"), dict[object, bytes]()
    draw = Report._drawn

    def draw_once(found: Report, name: str) -> bytes:
        function = getattr(FIGURES[name], "func", FIGURES[name])
        if function not in drawn:
            drawn[function] = draw(found, name)
        return drawn[function]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Report, "_drawn", draw_once)
        patched.setattr(multiprocessing, "get_context", lambda method: FORKING)
        assert main(["--quick", "--records", str(folder), "--jobs", "1"]) == 0
    return Records(folder)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forking where there are threads
def test_everything_planned_is_recorded_once(records: Records, capsys) -> None:
    plan = planned(QUICK, None, Console(None))
    assert all(task in records for task in plan)
    assert len(list(records)) == len(plan)
    with ThreadPoolExecutor(1) as pool:
        run(plan, records, no_run, pool, "again", Console(sys.stderr))
    assert "runs are recorded already" in capsys.readouterr().err


def no_run(task: Task, folder: Path) -> NoReturn:
    raise AssertionError(f"{task} is recorded already")


def mean(records: Records, name: str, case: str, score: str = "smse") -> float:
    results = [record.result for record in records.of("compare", name, case)]
    assert len(results) == QUICK.repeats
    return float(np.mean([result["test"][score] for result in results]))


@pytest.mark.parametrize("name", SETS)
def test_the_methods_stand_as_they_do_in_full(records: Records, name: str) -> None:
    if name in streams.missing():
        pytest.skip(f"{name} is not here")
    smse = {case: mean(records, name, case) for case in ("dense", "absorbing", "random", "window")}
    # What is learned stays: with a quarter of the points or less, absorbing is close to dense.
    assert smse["dense"] < 1.1 * smse["absorbing"]
    assert smse["absorbing"] < smse["random"]
    assert smse["absorbing"] < smse["window"]
    for case in ("dense", "absorbing", "sogp"):
        assert 0.5 < mean(records, name, case, "coverage") <= 1.0
    written, published = (
        np.mean([record.result["size"] for record in records.of("compare", name, case)])
        for case in ("pog-written", "pog-published")
    )
    assert written < published  # erratum 5: one removal per step keeps far more


def test_every_figure_is_drawn_as_wide_as_a_page_and_small(records: Records) -> None:
    drawn = {path.stem: path for path in records.folder.glob("reproduction/*.png")}
    absent = streams.missing()
    assert set(drawn) == {name for name in FIGURES if name.partition("-")[2] not in absent}
    for path in drawn.values():
        assert path.stat().st_size < 150_000
        with Image.open(path) as picture:
            assert picture.width == 1224
            assert len(picture.getcolors() or ()) > 20


def test_missing_data_sets_are_reported_and_the_others_are_run(monkeypatch, capsys) -> None:
    def absent(name: str) -> None:
        raise pogp.datasets.DataUnavailable("set POGP_DATA to a folder that has it")

    monkeypatch.setattr(pogp.datasets, "load", absent)
    plan = planned(QUICK, None, Console(sys.stderr))
    assert {task.topic for task in plan}.isdisjoint(SETS)
    said = capsys.readouterr().err
    for name in SETS:
        assert f"Left out: {name}" in said
    assert "POGP_DATA" in said


def test_only_takes_a_set_with_what_it_needs_or_says_what_there_is() -> None:
    if streams.missing():
        pytest.skip("the paper's data sets are not here")
    plan = planned(QUICK, "kin40", Console(None))
    assert {task.topic for task in plan} == {"kin40"}
    assert "tune" in {task.part for task in planned(QUICK, "compare", Console(None))}
    with pytest.raises(SystemExit, match=r"nothing called 'kin41'.*kin40"):
        planned(QUICK, "kin41", Console(None))
