"""`pogp learn --out`: a line per row, exact over interruptions, answered row by row."""

import csv
import json
import os
import subprocess

import numpy as np
import pytest

import pogp
from pogp import cli

from .. import processes
from ..conftest import smooth_2d

OPTIONS = ["--method", "absorbing", "--warmup", "30", "--max-size", "20"]
HEADER = "row,mean,deviation,lower,upper,surprise,alarm"
X, Y = smooth_2d(400, seed=1)


def lines(rows=range(400), broken=()):
    values = np.column_stack([X, Y]).tolist()
    return ["a,b,y"] + [
        f"{values[i][0]!r},{values[i][1]!r},{'' if i in broken else repr(values[i][2])}"
        for i in rows
    ]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines(broken=(100,))) + "\n")
    return path


def learn(*arguments, model=OPTIONS):
    return cli.main(["learn", *map(str, arguments), *model, "--quiet"])


def test_the_lines_are_the_steps_of_pogp_stream(tmp_path, table, capsys):
    out = tmp_path / "out.csv"
    assert learn(table, "--target", "y", "--out", out, "--alarm", 0.05) == 0
    assert "alarms at a false-alarm rate of 5 %" in capsys.readouterr().out
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert out.read_text().splitlines()[0] == HEADER
    keep = np.arange(400) != 100
    model = pogp.SelfTuning("absorbing", warmup=30, max_size=20, scale=True)
    samples = zip(X[keep], Y[keep].tolist(), strict=True)
    steps = list(pogp.stream(model, samples, alarm=0.05))
    assert [int(row["row"]) for row in rows] == (1 + np.flatnonzero(keep)).tolist()
    names = ("mean", "deviation", "lower", "upper", "surprise")
    for row, step in zip(rows, steps, strict=True):
        wanted = [getattr(step, name) for name in names]
        found = [float(row[name] or "nan") for name in names]
        assert found == pytest.approx(wanted, rel=1e-9, nan_ok=True)
        assert row["alarm"] == str(int(step.alarm))


def test_json_lines_equal_csv_lines(tmp_path, table, capsys):
    assert learn(table, "--target", "y", "--out", tmp_path / "a.csv") == 0
    assert learn(table, "--target", "y", "--out", tmp_path / "a.jsonl") == 0
    rows = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    with (tmp_path / "a.csv").open() as file:
        for row, cells in zip(rows, csv.DictReader(file), strict=True):
            assert list(row) == HEADER.split(",")
            assert (row["mean"] is None) == (cells["mean"] == "") == (row["row"] <= 2)
            assert str(row["mean"] or "") == cells["mean"]
            assert row["alarm"] is (cells["alarm"] == "1")
    assert rows[0]["surprise"] is None


def test_resuming_writes_the_file_that_one_run_writes(tmp_path, capsys):
    """The first run ends at a bad row, after which the file has lines that do not count."""
    broken, whole = tmp_path / "table.csv", tmp_path / "whole.csv"
    whole.write_text("\n".join(lines()) + "\n")
    broken.write_text("\n".join(lines(broken=(250,))) + "\n")
    out, save = tmp_path / "out.csv", tmp_path / "m.pogp"
    assert learn(whole, "--target", "y", "--out", tmp_path / "expected.csv", "--alarm", 0.05) == 0
    options = ["--target", "y", "--out", out, "--save", save, "--on-bad-row", "fail"]
    assert learn(broken, *options, "--alarm", 0.05) == 3
    with out.open("a") as file:
        file.write("251,0,0,0,0,0,0\n")
    broken.write_text(whole.read_text())
    assert learn(broken, *options, "--resume") == 0
    assert out.read_text() == (tmp_path / "expected.csv").read_text()


@pytest.fixture
def half(tmp_path, capsys):
    """A table of which a model has learned, and written, the rows before a bad one."""
    path, whole = tmp_path / "table.csv", "\n".join(lines()) + "\n"
    path.write_text("\n".join(lines(broken=(250,))) + "\n")
    out, save = tmp_path / "out.txt", tmp_path / "m.pogp"
    options = ["--target", "y", "--on-bad-row", "fail", "--alarm", 0.05, "--out-format", "jsonl"]
    assert learn(path, *options, "--out", out, "--save", save) == 3
    path.write_text(whole)
    assert learn(path, *options, "--out", tmp_path / "expected.txt") == 0
    return path, out, save, capsys.readouterr().out.splitlines()[-1]


def test_resuming_continues_the_output_without_the_option(tmp_path, half, capsys):
    """The options need not be repeated; the alarms are those of all rows."""
    path, out, save, alarms = half
    assert alarms.endswith("alarms at a false-alarm rate of 5 %.")
    assert cli.main(["learn", str(path), "--save", str(save), "--resume"]) == 0
    captured = capsys.readouterr()
    assert f"Continuing {out} after row 250" in captured.err
    assert captured.out.splitlines()[-1] == alarms
    assert out.read_text() == (tmp_path / "expected.txt").read_text()


def test_an_output_that_was_removed_is_not_begun_again(half, capsys):
    path, out, save, _ = half
    lines_before = out.read_text()
    out.unlink()
    assert cli.main(["learn", str(path), "--save", str(save), "--resume"]) == 0
    assert "no line is written for the rows after row 250" in capsys.readouterr().err
    assert not out.exists()
    out.write_text(lines_before)  # it is back, and too late
    assert learn(path, "--save", save, "--resume", "--out", out, model=[]) == 2
    error = capsys.readouterr().err
    assert "ends with row 250 while the model has learned up to row 400" in error
    assert "--out with a name that is not in use begins with row 401" in error
    assert out.read_text() == lines_before


def test_resuming_takes_no_other_file_for_its_output(tmp_path, half, capsys):
    path, out, save, _ = half
    other = tmp_path / "other.csv"
    for text in ("precious\n" * 10_000, out.read_text()):
        for there in (True, False):
            other.write_text(text)
            moved = out.rename(tmp_path / "moved.txt") if not there else out
            code = learn(path, "--save", save, "--resume", "--out", other, model=[])
            moved.rename(out)
            if text != out.read_text() or there:
                assert code == 2
                message = "does not hold lines" if "precious" in text else f"is not {out}"
                assert message in capsys.readouterr().err
                assert other.read_text() == text
    assert code == 0  # the same lines under another name, which went on
    assert other.read_text() == (tmp_path / "expected.txt").read_text()


def test_alarms_are_counted_from_where_they_could_be_raised(tmp_path, table, capsys):
    save, grown = tmp_path / "m.pogp", "\n".join(lines(range(300))) + "\n"
    table.write_text("\n".join(lines(range(200))) + "\n")
    assert learn(table, "--target", "y", "--save", save) == 0
    table.write_text(grown)
    assert learn(table, "--save", save, "--resume", "--out", tmp_path / "a.csv") == 0
    assert "after row 200 at a false-alarm rate of 1 %" in capsys.readouterr().out


def test_another_rate_of_alarms_is_told_and_none_is_forgotten(tmp_path, table, capsys):
    save, out = tmp_path / "m.pogp", tmp_path / "a.csv"

    def further(count, *options):
        table.write_text("\n".join(lines(range(count))) + "\n")
        capsys.readouterr()
        words = ["learn", table, "--save", save, *options, *OPTIONS]
        assert cli.main([str(word) for word in words]) == 0
        return " ".join(capsys.readouterr())

    assert "5 %" in further(200, "--target", "y", "--out", out, "--alarm", 0.05)
    assert "from here on" not in further(220, "--resume", "--alarm", 0.05)
    told = "Alarms at a false-alarm rate of 2 % from here on (--alarm), 5 % before."
    assert told in further(240, "--resume", "--alarm", 0.02)
    out.unlink()
    assert "false-alarm" not in further(260, "--resume")
    later = further(280, "--resume", "--out", tmp_path / "b.csv")
    assert "after row 260 at a false-alarm rate of 2 %" in later


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--alarm", "0.1"], "got no --out"),
        (["--out", "there.csv"], "exists: --overwrite"),
        (["--out", "new.csv", "--save", "new.csv"], "must name different files"),
        (["--out", "nowhere/a.csv"], "there is no folder"),
        (["--out", "new.csv", "--method", "streaming-vfe"], "methods that learn row by row"),
    ],
)
def test_an_unwritable_output_is_reported_before_learning(
    options, message, table, monkeypatch, capsys
):
    monkeypatch.chdir(table.parent)
    (table.parent / "there.csv").write_text("mine")
    assert learn(table, "--target", "y", *options, model=[]) == 2
    assert message in capsys.readouterr().err
    assert (table.parent / "there.csv").read_text() == "mine"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_reported_with_the_output_file(tmp_path, table, capsys):
    assert learn(table, "--target", "y", "--out", "/dev/full", "--overwrite") == 2
    assert "/dev/full" in capsys.readouterr().err


def test_each_row_of_a_pipe_is_answered_before_the_next_comes():
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    command = ["learn", "-", "--target", "y", "--out", "-", *OPTIONS]
    with processes.pogp(*command, **pipes) as process:
        text = lines(range(60))
        process.stdin.write(f"{text[0]}\n{text[1]}\n".encode())
        process.stdin.flush()
        assert process.stdout.readline().decode().strip() == HEADER
        assert process.stdout.readline().decode().startswith("1,")
        for number, line in enumerate(text[2:], 2):
            process.stdin.write(f"{line}\n".encode())
            process.stdin.flush()
            assert process.stdout.readline().decode().startswith(f"{number},")
        process.stdin.close()
        assert process.wait(60) == 0


def test_advice_on_outliers_writes_the_rows_unless_they_were_written(tmp_path, capfd):
    y = Y.copy()
    y[[200, 250, 300]] += 3.0
    table = tmp_path / "outliers.csv"
    rows = np.column_stack([X, y]).tolist()
    table.write_text("\n".join(["a,b,y", *(",".join(map(repr, row)) for row in rows)]) + "\n")
    for given in ([], ["--out", "-"], ["--out", tmp_path / "lines.csv"]):
        assert learn(table, "--target", "y", *given) == 0
        said = "".join(capfd.readouterr())
        assert (" --out rows.csv\n" in said) == (not given)


def test_a_change_is_named_by_its_row_also_after_rows_that_were_skipped(tmp_path, capfd):
    x = 3 * np.sin(np.arange(500.0))
    y = x + 0.01 * np.cos(7 * np.arange(500)) + 8.0 * (np.arange(500) >= 300)
    rows = [f"{a!r},{b!r}" for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    rows[100:120] = ["1.5,broken"] * 20
    table, model = tmp_path / "level.csv", tmp_path / "level.pogp"
    table.write_text("\n".join(["a,y", *rows]) + "\n")
    assert learn(table, "--target", "y", "--save", model, model=[]) == 0
    assert "changed around row 301:" in " ".join(capfd.readouterr().out.split())
    assert cli.main(["info", str(model)]) == 0
    assert "changed around row 301:" in " ".join(capfd.readouterr().out.split())
