"""`kill -9` at random moments: the file always loads, and `--resume` goes on as if never stopped.

`POGP_KILLS=100` kills a hundred times.
"""

import os
import random
import subprocess
import time

import numpy as np
import pytest

import pogp
from pogp import cli
from pogp.cli.notes import Notes

from .. import processes
from ..conftest import assert_same_state, smooth_2d

KILLS = int(os.environ.get("POGP_KILLS", "3"))
ROWS, EVERY = 500, 20
LONGEST = 0.05
"""Seconds from the first checkpoint of a run to its end, at most."""


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Rows of which some are bad and some have two lines; and where each usable row ends."""
    X, y = smooth_2d(ROWS)
    path, ends, text = tmp_path_factory.mktemp("kill") / "table.csv", [], "a,b,note,y\n"
    for i, row in enumerate(np.column_stack([X, y]).tolist()):
        note = '"two\nlines"' if i % 7 == 0 else "x"
        if i % 11 == 5:
            text += f"{row[0]!r},{row[1]!r},{note},\n"  # no target
        else:
            text += f"{row[0]!r},{row[1]!r},{note},{row[2]!r}\n"
            ends.append(len(text))
    path.write_text(text)
    return path, ends


def arguments(path, save):
    options = ["--warmup", "40", "--max-size", "20", "--checkpoint", str(EVERY), "--quiet"]
    names = ["--target", "y", "--columns", "a,b"]
    return ["learn", str(path), "--save", str(save), *names, *options, "--resume"]


@pytest.fixture(scope="module")
def uninterrupted(table, tmp_path_factory):
    path, ends = table
    save = tmp_path_factory.mktemp("kill") / "whole.pogp"
    assert cli.main(arguments(path, save)) == 0
    model, notes = pogp.load(save), Notes.read(save)
    assert (notes.used, notes.skipped) == (len(ends), ROWS - len(ends))
    return model, notes


def run_and_kill(path, save, rng):
    """Start the command and kill it after its first checkpoint; return whether it was still on."""
    before = save.stat().st_ino if save.exists() else None
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = processes.pogp(*arguments(path, save), **silent)
    while process.poll() is None and (not save.exists() or save.stat().st_ino == before):
        time.sleep(0.001)
    time.sleep(rng.uniform(0.0, LONGEST))
    process.kill()
    code = process.wait()
    assert code in (-9, 0)
    return code == -9


def test_a_killed_run_resumes_to_the_model_of_an_uninterrupted_one(table, uninterrupted, tmp_path):
    (path, ends), (expected, complete) = table, uninterrupted
    save, rng, kills, reached = tmp_path / "m.pogp", random.Random(0), 0, 0
    while kills < KILLS or reached < len(ends):
        killed = (
            run_and_kill(path, save, rng)
            if kills < KILLS
            else bool(cli.main(arguments(path, save)))
        )
        kills += killed
        model, notes = pogp.load(save), Notes.read(save)
        assert model.seen == notes.used >= reached
        reached = notes.used
        if reached < len(ends):
            assert reached % EVERY == 0
            assert notes.position.offset == ends[reached - 1]
        else:
            assert_same_state(model, expected)
            assert notes.position == complete.position
            assert notes.skipped == complete.skipped
            assert notes.journal["moments"] == complete.journal["moments"]
            if kills < KILLS:
                save.unlink()
                reached = 0
    left = [each.name for each in tmp_path.iterdir()]
    assert left == ["m.pogp"], "killed writers leave nothing behind that the next does not remove"
