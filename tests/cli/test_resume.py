"""`pogp learn --save`, `--resume` and `--from`: models that continue."""

import re
import subprocess
import sys

import pytest

import pogp
from pogp import cli
from pogp.cli import learning
from pogp.files import persistence

from ..conftest import assert_same_state, smooth_2d
from .conftest import OPTIONS, ROWS, SMALL, learn_in_steps, saved, text_of

# ---- saving and going on


@pytest.mark.parametrize(
    ("method", "rows"), [("absorbing", 20), ("absorbing", 1437), ("streaming-vfe", 1000)]
)
def test_resuming_learns_the_new_rows_of_a_table_that_grew(run, tmp_path, data, method, rows):
    """As if it had been whole at once, if not for what was settled at its first end."""
    X, y = data
    path, save = tmp_path / "growing.csv", tmp_path / "m.pogp"
    path.write_text(text_of(X[:rows], y[:rows]))
    ask = (path, "--target", "y", "--method", method, "--resume")
    code, _, err = run(*ask)
    assert code == 0
    assert "is not there yet" in err
    path.write_text(text_of(X, y))
    assert run(*ask)[0] == 0
    cap = {"size" if method == "streaming-vfe" else "max_size": 25}
    expected = pogp.SelfTuning(method, scale=True, warmup=40, **cap)
    learn_in_steps(expected, X[:rows], y[:rows])
    expected.settle()
    learn_in_steps(expected, X[rows:], y[rows:])
    model, notes = saved(save)
    assert_same_state(model, expected)
    assert notes.used == notes.journal["seen"] == ROWS
    before = save.read_bytes()
    code, out, err = run(*ask)
    assert "had all rows already" in err
    assert f"Learned {ROWS:,} samples" in out
    assert save.read_bytes() == before


def test_checkpoints_come_every_so_many_samples(run, table, tmp_path, monkeypatch):
    seen, rows = [], 2500
    table.write_text(text_of(*smooth_2d(rows)))
    save = learning.Learning.save

    def noted(self, *arguments):
        save(self, *arguments)
        model, notes = saved(tmp_path / "m.pogp")
        assert model.seen == notes.used
        assert table.read_bytes()[: notes.position.offset].count(b"\n") == model.seen + 1
        seen.append(model.seen)

    monkeypatch.setattr(learning.Learning, "save", noted)
    run(table, "--target", "y", "--checkpoint", "700")
    assert seen == [700, 1400, 2100, rows]
    seen.clear()
    run(table, "--target", "y", "--checkpoint", "1200", "--overwrite")
    assert seen == [2000, rows]  # at the first place to stop after 1200; 2400 is within the last
    seen.clear()
    monkeypatch.setattr(learning.Checkpoints, "SECONDS", 0.0)
    run(table, "--target", "y", "--overwrite")
    assert seen == [1000, 2000, rows]


def test_existing_files_are_not_overwritten(run, table, tmp_path):
    save = tmp_path / "m.pogp"
    save.write_bytes(b"precious")
    code, _, err = run(table, "--target", "y")
    assert code == 2
    assert "exists: --resume continues with it, --overwrite replaces it" in err
    assert "not a pogp file" in run(table, "--resume")[2]
    assert save.read_bytes() == b"precious"
    content = table.read_bytes()
    for options in (
        ["--save", table, "--overwrite"],
        ["--save", table, "--passes", "2", "--overwrite"],
        ["--report", table, "--overwrite"],
        ["--out", table, "--overwrite"],
        ["--out", table],
    ):
        code, _, err = run(table, "--target", "y", *options, model=[])
        assert code == 2
        assert "is where the rows come from" in err
    assert table.read_bytes() == content
    assert run(table, "--target", "y", "--overwrite", "--quiet")[0] == 0
    assert saved(save)[0].seen == ROWS


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--save", "nowhere/m.pogp"], "there is no folder nowhere"),
        (["--report", "nowhere/r.html"], "there is no folder nowhere"),
        (["--report", "."], ". is a folder"),
        (["--save", "m", "--report", "m"], "must name different files"),
        (["--resume", "--overwrite"], "choose one"),
    ],
)
def test_unwritable_paths_are_reported_before_learning(run, table, options, complaint):
    code, _, err = run(table, "--target", "y", *options)
    assert code == 2
    assert complaint in err


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--target", "a"], "predicts 'y' from a, b; got 'a' from a, b"),
        (["--columns", "b,a"], "predicts 'y' from a, b; got 'y' from b, a"),
        (["--max-size", "30"], "was made with max_size 25, got 30"),
        (["--method", "sogp"], "is absorbing, got --method sogp"),
        (["--no-scale"], "was made with scale True, got False"),
    ],
)
def test_resuming_with_other_options_is_refused(run, table, options, complaint):
    run(table, "--target", "y")
    code, _, err = run(table, "--resume", *options, model=[])
    assert code == 2
    assert complaint in err
    assert run(table, "--resume", "--target", "y", "--columns", "a,b")[0] == 0


def test_resuming_another_table_is_refused(run, table, tmp_path, data, expected):
    X, y = data
    other = tmp_path / "other.csv"
    run(table, "--target", "y")
    other.write_text(text_of(X[::-1], y[::-1]))
    code, _, err = run(other, "--resume")
    assert code == 2
    assert "does not begin as the table that was learned before. It has changed, or it is an" in err
    second = tmp_path / "second.pogp"
    assert run(other, "--from", tmp_path / "m.pogp", "--save", second)[0] == 0
    model, notes = saved(second)
    both = expected.copy()
    both.learn(X[::-1], y[::-1])
    assert_same_state(model, both)
    assert (model.seen, notes.used) == (2 * ROWS, ROWS)
    assert notes.journal["after"] == ROWS
    assert run(other, "--from", second, "--save", second)[0] == 0  # itself, no need to be asked
    assert saved(second)[0].seen == 3 * ROWS


def test_learning_continues_with_a_model_saved_in_python(run, table, tmp_path, data, expected):
    X, y = data
    model = pogp.SelfTuning("absorbing", scale=True, **SMALL)
    model.learn(X[:100], y[:100])
    model.save(tmp_path / "python.pogp")
    rest = tmp_path / "rest.csv"
    rest.write_text(text_of(X[100:], y[100:]))
    assert run(rest, "--target", "y", "--from", tmp_path / "python.pogp")[0] == 0
    assert_same_state(saved(tmp_path / "m.pogp")[0], expected)
    bare = tmp_path / "bare.pogp"
    pogp.POG(pogp.RBF(), 0.1).save(bare)
    assert (
        "holds a POG saved in Python"
        in run(rest, "--target", "y", "--from", bare, "--overwrite")[2]
    )
    model.save(bare)
    code, _, err = run(rest, "--save", bare, "--resume")
    assert code == 2
    assert "has no position in a table to resume at" in err


def test_a_line_that_was_half_written_at_first_is_told_and_passed_over(run, tmp_path, data):
    X, y = data
    path, save = tmp_path / "growing.csv", tmp_path / "m.pogp"
    lines = text_of(X[:500], y[:500]).splitlines(keepends=True)
    path.write_text("".join(lines[:401]) + lines[401][:-6])
    assert run(path, "--target", "y")[0] == 0
    assert saved(save)[0].seen == 401  # many tables end without a line end
    for more, seen in ((lines[401][:-3], 401), (lines[401] + "".join(lines[402:]), 500)):
        path.write_text("".join(lines[:401]) + more)
        code, _, err = run(path, "--resume")
        assert code == 0
        assert "line 402: it was incomplete when it was read before, and stays as it was" in err
        assert saved(save)[0].seen == seen
    assert "incomplete" not in run(path, "--resume")[2]


def test_a_last_line_without_an_end_is_left_while_the_table_grows(run, tmp_path, data):
    X, y = data
    path, save, whole = (tmp_path / name for name in ("growing.csv", "m.pogp", "whole.csv"))
    lines = text_of(X[:500], y[:500]).splitlines(keepends=True)
    path.write_text("".join(lines[:301]))
    assert run(path, "--target", "y")[0] == 0
    for end, seen in ((lines[401][:-9], 400), (lines[401][:-6], 400), (lines[401][:-1], 400)):
        path.write_text("".join(lines[:401]) + end)
        code, _, err = run(path, "--resume")
        assert code == 0
        assert "line 402: it has no line end yet and is left for the next --resume" in err
        assert saved(save)[0].seen == seen
    path.write_text("".join(lines[:450]) + lines[450].rstrip())
    assert "line 451: it has no line end" in run(path, "--resume")[2]
    assert saved(save)[0].seen == 449
    code, _, err = run(path, "--resume")  # nothing was added: it is whole
    assert (code, "line end" in err) == (0, False)
    path.write_text("".join(lines))
    assert "incomplete" not in run(path, "--resume")[2]
    whole.write_text("".join(lines))
    assert run(whole, "--target", "y", "--save", tmp_path / "w.pogp")[0] == 0
    assert_same_state(saved(save)[0], saved(tmp_path / "w.pogp")[0])


def test_a_table_that_was_stopped_and_has_no_last_line_end_is_learned_whole(run, tmp_path, data):
    X, y = data
    path, save = tmp_path / "t.csv", tmp_path / "m.pogp"
    lines = text_of(X[:300], y[:300]).splitlines(keepends=True)
    bad = [
        *lines[:201],
        lines[201].replace(lines[201].split(",")[-1], "x" * 9 + "\n"),
        *lines[202:],
    ]
    path.write_text("".join(bad).rstrip())
    assert run(path, "--target", "y", "--on-bad-row", "fail")[0] == 3
    assert run(path, "--resume")[0] == 0
    assert saved(save)[0].seen == 299


def test_the_error_of_a_changed_line_says_how_to_continue(run, tmp_path, data):
    """The command in the message learns the rows after that line."""
    X, y = data
    path, save = tmp_path / "growing.csv", tmp_path / "m.pogp"
    text = text_of(X[:500], y[:500])
    lines = text.splitlines(keepends=True)
    path.write_text("".join(lines[:401]) + lines[401][:-6])
    assert run(path, "--target", "y")[0] == 0
    model, notes = saved(save)
    del notes.identity["size"]  # as in older files
    persistence.save(model, save, notes=notes.as_json())
    path.write_text(text)
    code, _, err = run(path, "--resume")
    assert code == 2
    command = re.search(r"sed .* \| pogp learn - --from MODEL --save MODEL", err)[0]
    command = command.replace("pogp learn", f"{sys.executable} -m pogp learn")
    command = command.replace("MODEL", str(save))
    subprocess.run(command, shell=True, check=True)
    assert saved(save)[0].seen == 500


def test_damaged_notes_raise_an_error(run, table, tmp_path):
    run(table, "--target", "y")
    model, notes = saved(tmp_path / "m.pogp")
    broken = notes.as_json() | {"position": ["here", None]}
    persistence.save(model, tmp_path / "m.pogp", notes=broken)
    code, _, err = run(table, "--resume")
    assert code == 2
    assert "its notes are not those of pogp learn" in err


def test_scores_are_printed_without_save(capsys, table):
    assert cli.main(["learn", str(table), "--target", "y", *OPTIONS]) == 0
    captured = capsys.readouterr()
    assert "fell within their 95 % band" in captured.out
    assert "Nothing was saved" in captured.err


# ---- other options for a model that goes on


def test_a_model_of_another_table_continues_with_other_options(run, tmp_path, table):
    assert run(table, "--target", "y")[0] == 0
    start, after = tmp_path / "m.pogp", tmp_path / "after.pogp"
    options = ["--from", start, "--save", after, "--forgetting", "0.99", "--max-size", "10"]
    assert run(table, *options, model=[])[0] == 0
    model = pogp.load(after)
    assert model.seen == 2 * ROWS
    assert model.size <= 10
    assert model.arguments()["forgetting"] == 0.99
    assert pogp.load(start).arguments()["max_size"] == 25


def test_arguments_that_cannot_be_changed_are_refused(run, tmp_path, table):
    assert run(table, "--target", "y")[0] == 0
    code, _, err = run(table, "--from", tmp_path / "m.pogp", "--kernel", "matern12", model=[])
    assert code == 2
    assert "not 'kernel'" in err


def test_the_model_does_not_depend_on_the_parts_that_are_learned_at_once(
    run, table, tmp_path, monkeypatch
):
    found = []
    for seconds in (0.0, 1e6):
        monkeypatch.setattr(learning, "SECONDS", seconds)
        save = tmp_path / f"{seconds}.pogp"
        assert run(table, "--target", "y", "--max-size", "20", "--save", save)[0] == 0
        found.append(pogp.load(save).to_bytes())
    assert found[0] == found[1]
