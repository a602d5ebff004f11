"""`pogp learn`: the model that learning in Python gives, whatever happens on the way."""

import gzip
import json
import os
import re
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pogp
from pogp import cli
from pogp.cli import console

from .. import processes
from ..conftest import assert_same_state
from .conftest import OPTIONS, ROWS, SMALL, learn_in_steps, saved, text_of

# ---- the model


def test_the_command_learns_the_same_model_as_python(run, table, expected, tmp_path):
    code, out, err = run(table, "--target", "y")
    assert code == 0
    assert "Learning y from a, b; the first 40 rows tune it ..." in err
    model, notes = saved(tmp_path / "m.pogp")
    assert_same_state(model, expected)
    assert (notes.target, notes.columns) == ("y", ["a", "b"])
    assert (notes.used, notes.skipped) == (ROWS, 0)
    assert notes.position == (os.path.getsize(table), ROWS + 2)
    assert f"Learned {ROWS:,} samples of y from 2 inputs. Keeps 25 points" in out
    assert "m.pogp saved" in err


@pytest.mark.parametrize("size", [1, 130, ROWS])
def test_batches_give_the_same_model_as_one_call(data, expected, size):
    X, y = data
    model = pogp.SelfTuning("absorbing", scale=True, **SMALL)
    for i in range(0, ROWS, size):
        model.learn(X[i : i + size], y[i : i + size])
    assert_same_state(model, expected)


@pytest.mark.parametrize(
    ("method", "options", "arguments"),
    [
        (
            "pog",
            ["--budget", "0.3", "--option", "view=everywhere"],
            {"budget": 0.3, "view": "everywhere"},
        ),
        ("sogp", [], {}),
        ("mcintire", ["--option", "threshold=0.01"], {"threshold": 0.01}),
        ("krls-t", ["--forgetting", "0.99"], {"forgetting": 0.99}),
        ("window", ["--no-scale"], {"scale": False}),
        ("random", ["--seed", "5", "--kernel", "matern32"], {"seed": 5, "kernel": "Matern32"}),
        ("streaming-vfe", ["--option", "batch=50"], {"batch": 50}),
        ("absorbing", ["--no-calibrate", "--budget", "none"], {"calibrate": False, "budget": None}),
    ],
)
def test_every_online_method_is_available(run, table, data, tmp_path, method, options, arguments):
    code, _, _ = run(table, "--target", "y", "--method", method, *options)
    assert code == 0
    cap = "size" if method == "streaming-vfe" else "max_size"
    model = pogp.SelfTuning(method, warmup=40, **{cap: 25, "scale": True, **arguments})
    learn_in_steps(model, *data)
    assert_same_state(saved(tmp_path / "m.pogp")[0], model)


def test_the_default_is_what_the_help_says(run, data, tmp_path):
    X, y = data
    (tmp_path / "short.csv").write_text(text_of(X[:30], y[:30]))
    run(tmp_path / "short.csv", "--target", "y", "--quiet", model=[])
    model = saved(tmp_path / "m.pogp")[0]
    expected = pogp.OnlineGP()
    expected.learn(X[:30], y[:30])
    expected.settle()
    assert model.arguments() == {"max_size": 300, "robust": True, "seed": 0}
    assert_same_state(model, expected)


def test_the_default_model_resumes_in_the_middle_of_a_retuning(run, tmp_path, data):
    X, y = data[0][:300], data[1][:300]
    path, small = tmp_path / "growing.csv", ["--max-size", "20"]
    path.write_text(text_of(X[:101], y[:101]))
    assert run(path, "--target", "y", model=small)[0] == 0
    path.write_text(text_of(X, y))
    assert run(path, "--resume", model=small)[0] == 0
    expected = pogp.OnlineGP(max_size=20)
    expected.learn(X[:101], y[:101])
    expected.settle()
    expected.learn(X[101:], y[101:])
    expected.settle()
    assert_same_state(saved(tmp_path / "m.pogp")[0], expected)


@pytest.mark.parametrize("kind", ["gzip", "parquet", "semicolons", "stdin"])
def test_all_sources_give_the_same_model(run, table, data, expected, tmp_path, kind):
    other, save = tmp_path / "other", tmp_path / "m.pogp"
    if kind == "gzip":
        other.write_bytes(gzip.compress(table.read_bytes()))
    elif kind == "semicolons":
        quoted = re.sub("^", "text;", table.read_text().replace(",", ";"), flags=re.M)
        other.write_text(quoted.replace("text;", '"a;b";').rsplit("\n", 1)[0] + "\n")
    elif kind == "parquet":
        X, y = data
        pq.write_table(pa.table({"y": y, "b": X[:, 1], "a": X[:, 0]}), other, row_group_size=700)
    if kind == "stdin":
        command = ["learn", "-", "--target", "y", "--save", save, *OPTIONS]
        with table.open("rb") as file:
            assert processes.pogp(*command, stdin=file).wait(timeout=120) == 0
    else:
        assert run(other, "--target", "y", "--columns", "a,b")[0] == 0
    assert_same_state(saved(save)[0], expected)


def test_a_table_shorter_than_the_warmup_is_tuned_on_all_rows(run, tmp_path, data):
    X, y = data
    (tmp_path / "short.csv").write_text(text_of(X[:30], y[:30]))
    code, _, _ = run(tmp_path / "short.csv", "--target", "y")
    assert code == 0
    expected = pogp.SelfTuning("absorbing", scale=True, **SMALL)
    expected.learn(X[:30], y[:30])
    expected.settle()
    assert_same_state(saved(tmp_path / "m.pogp")[0], expected)


def test_a_single_row_is_not_tuned_on(run, tmp_path):
    path, save = tmp_path / "short.csv", tmp_path / "m.pogp"
    path.write_text("a,y\n1,2\n")
    code, out, _ = run(path, "--target", "y")
    assert code == 0
    assert "Still collecting samples" in out
    assert saved(save)[0].warming_up
    path.write_text("a,y\n1,2\n2,3\n4,5\n")
    assert run(path, "--resume")[0] == 0
    expected = pogp.SelfTuning("absorbing", scale=True, **SMALL)
    expected.fit([[1.0], [2.0], [4.0]], [2.0, 3.0, 5.0])
    assert_same_state(saved(save)[0], expected)


# ---- columns


def test_inputs_are_all_columns_that_are_not_excluded(run, tmp_path, data):
    X, y = data
    rows = zip(np.arange(60), X[:60, 0], X[:60, 1], y[:60], strict=True)
    lines = [f"{n},r{n},{a},{b},{t}\n" for n, a, b, t in rows]
    path = tmp_path / "frame.csv"
    path.write_text(",id,a,b,y\n" + "".join(lines))  # as a data frame with its index writes it
    assert run(path, "--target", "y", "--exclude", "id")[0] == 0
    assert saved(tmp_path / "m.pogp")[1].columns == ["a", "b"]


def test_too_many_categories_raise_an_error_with_a_hint(run, tmp_path):
    path = tmp_path / "text.csv"
    path.write_text("id,a,day,y\n" + "".join(f"r{i},{i},mon,{i}\n" for i in range(200)))
    code, out, err = run(path, "--target", "y", "--quiet")
    assert code == 2
    assert out == ""
    (line,) = err.splitlines()
    assert "column 'id': it has more than 100 different texts, 'r100' for example" in line
    assert "--exclude id leaves it out, and --time id reads times such as 2024-01-31 13:00" in line
    assert not (tmp_path / "m.pogp").exists()
    table = pa.table({"a": [1.0, 2.0], "y": ["x", "y"]})
    pq.write_table(table, tmp_path / "text.parquet")
    assert "'y' cannot be the target" in run(tmp_path / "text.parquet", "--target", "y")[2]


def test_missing_values_times_and_categories_are_learned_and_resumed(run, tmp_path):
    """From CSV, JSON lines and Parquet alike, whether stopped in between or not."""
    rng = np.random.default_rng(0)
    start = datetime(2024, 1, 1)
    rows = [
        {
            "when": (start + timedelta(hours=i)).isoformat(),
            "room": None if i % 7 == 3 else ("hall" if i < 60 else "attic" if i % 2 else "hall"),
            "load": None if i % 5 == 1 else round(float(rng.uniform(0, 10)), 3),
            "y": round(float(np.sin(i / 24 * 2 * np.pi) + rng.normal() / 10), 3),
        }
        for i in range(130)
    ]
    cells = [["" if value is None else str(value) for value in row.values()] for row in rows]
    lines = ["when,room,load,y", *map(",".join, cells), "2024-02-01,hall,1,", ""]
    files = [tmp_path / name for name in ("a.csv", "b.jsonl", "c.parquet", "half.csv")]
    files[0].write_text("\n".join(lines))
    files[1].write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    columns["when"] = [datetime.fromisoformat(text) for text in columns["when"]]
    pq.write_table(pa.table(columns), files[2])
    files[3].write_text("\n".join(lines[:50]) + "\n")
    models = []
    for path in files:
        save = path.with_suffix(".pogp")
        code, out, _ = run(path, "--target", "y", "--save", save, "--quiet")
        assert code == 0
        assert re.search(r"had missing values \(.+: [\d,]+\), which were\sfilled", out)
        if path == files[3]:
            path.write_text("\n".join(lines))
            assert run(path, "--save", save, "--resume", "--quiet")[0] == 0
        models.append(saved(save))
    assert "line 132: 'y' is empty; skipped" in run(files[0], "--target", "y")[2]
    first, notes = models[0]
    assert (notes.used, notes.filled) == (130, sum("" in row for row in cells))
    assert notes.encoding().kinds == ["time", "category", "number"]
    assert notes.encoding().columns[1].state() == {"values": ["hall", "attic"]}
    for model, other in models[1:3]:
        assert_same_state(model, first)
        assert other.encoder == notes.encoder
    assert models[3][1].encoder == notes.encoder


def test_one_instant_is_one_input_in_any_format_and_time_zone(run, tmp_path):
    hours = [datetime(2024, 1, 1, tzinfo=UTC) + timedelta(hours=i) for i in range(60)]
    tokyo = [hour.astimezone(timezone(timedelta(hours=9))) for hour in hours]
    texts = [hour.isoformat() for hour in tokyo]
    unix = [f"{hour.timestamp():.0f}" for hour in hours]
    files = [tmp_path / name for name in ("a.csv", "b.csv", "c.jsonl", "d.parquet")]
    for path, cells in zip(files, (texts, unix), strict=False):
        path.write_text("\n".join(["t,y", *(f"{t},{i}" for i, t in enumerate(cells)), ""]))
    lines = [json.dumps({"t": t, "y": i}) for i, t in enumerate(texts)]
    files[2].write_text("\n".join(lines) + "\n")
    times = pa.array(hours, pa.timestamp("us", tz="Asia/Tokyo"))
    pq.write_table(pa.table({"t": times, "y": range(60)}), files[3])
    models = []
    for path in files:
        save = path.with_suffix(f"{path.suffix}.pogp")
        assert run(path, "--target", "y", "--time", "t", "--save", save, "--quiet")[0] == 0
        models.append(saved(save))
    for model, notes in models[1:]:
        assert_same_state(model, models[0][0])
        assert notes.encoder == models[0][1].encoder


@pytest.mark.parametrize("passes", [1, 2])
def test_columns_without_a_value_are_named_and_are_no_gaps(run, tmp_path, capsys, passes):
    rng = np.random.default_rng(0)
    path, new = tmp_path / "a.jsonl", tmp_path / "new.csv"
    rows = [{"x": x, "note": "", "place": {"lat": 1}, "y": x} for x in rng.uniform(size=80)]
    rows[50]["x"] = None
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    model = OPTIONS if passes == 1 else ["--passes", "2"]
    code, out, _ = run(path, "--target", "y", "--quiet", model=model)
    assert code == 0
    assert re.search(r"\b1( row)? had missing values( \(x: 1\))?, which were\sfilled", out)
    assert "note and place have no value in any row and were not used." in out
    new.write_text("x,note,place\n0.5,,\n,,\n")
    assert cli.main(["predict", str(tmp_path / "m.pogp"), str(new)]) == 0
    assert "1 of 2 rows had missing inputs" in capsys.readouterr().err


def test_columns_are_decided_by_their_first_values_also_after_the_first_rows(run, tmp_path):
    rng = np.random.default_rng(0)
    path, save = tmp_path / "a.csv", tmp_path / "a.pogp"
    lines = [f",,{x},{x:.3f}" for x in rng.uniform(size=20)]
    for i, x in enumerate(rng.uniform(size=80)):
        load = "offline" if i == 7 else f"{x:.3f}"
        lines.append(f"{'hall' if i % 2 else 'attic'},{load},{x},{x + i % 2:.3f}")
    path.write_text("\n".join(["room,load,x,y", *lines[:20], ""]))
    assert run(path, "--target", "y", "--save", save, "--quiet")[0] == 0
    assert saved(save)[1].encoding().kinds == ["undecided", "undecided", "number"]
    path.write_text("\n".join(["room,load,x,y", *lines, ""]))
    code, _, err = run(path, "--save", save, "--resume", "--quiet")
    assert code == 0
    assert "line 29: 'load' is 'offline', not a number" in err
    encoder = saved(save)[1].encoding()
    assert encoder.kinds == ["category", "number", "number"]
    assert encoder.dimension == 3
    assert list(encoder.columns[0].values) == ["attic", "hall"]


def test_a_table_without_a_usable_row_is_an_error_where_progress_is_shown_too(run, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,y\n1,x\n2,x\n")
    code, _, err = run(path, "--target", "y", "--method", "online")
    assert code == 2
    assert "there are no numbers in the column 'y'" in err


# ---- rows that cannot be used


def spoiled(data, bad):
    """Return CSV with lines put in: {line: text}."""
    lines = text_of(*data).splitlines(keepends=True)
    for line, text in sorted(bad.items()):
        lines.insert(line - 1, text + "\n")
    return "".join(lines)


BAD = {2: "1,2,", 100: "1,2,x", 1003: "1,2", 1004: "1,2,nan", ROWS + 6: "1,2,3,4"}


def test_unusable_rows_are_reported_by_line_and_skipped(run, tmp_path, data, expected):
    path = tmp_path / "spoiled.csv"
    path.write_text(spoiled(data, BAD))
    code, out, err = run(path, "--target", "y", "--quiet")
    assert code == 0
    told = re.findall(r"line (\d+): (.*); skipped", err)
    assert [int(line) for line, _ in told] == list(BAD)
    assert told[0][1] == "'y' is empty"
    assert "5 rows of" in out
    model, notes = saved(tmp_path / "m.pogp")
    assert_same_state(model, expected)
    assert (notes.used, notes.skipped) == (ROWS, 5)


def test_unusable_rows_beyond_the_first_ten_are_counted(run, tmp_path, data):
    path = tmp_path / "spoiled.csv"
    path.write_text(spoiled(data, dict.fromkeys(range(5, 5 + 3 * 20, 3), "1,2,x")))
    _, out, err = run(path, "--target", "y", "--quiet")
    assert err.count("; skipped") == console.LISTED
    assert err.count("counted, not listed") == 1
    assert "20 rows of" in out


def test_bad_rows_and_bad_cells_are_reported_in_order(run, tmp_path, data):
    lines = text_of(*data).splitlines()
    lines[20] = "x,1.0,2.0"
    lines[30] = "1.0,2.0,"
    lines[40] = "1.0,x,2.0"
    path = tmp_path / "odd.csv"
    path.write_text("\n".join(lines))
    assert re.findall(r"line (\d+)", run(path, "--target", "y")[2]) == ["21", "31", "41"]


def test_a_missing_column_is_noticed_before_anything_is_said(run, table):
    code, _, err = run(table, "--target", "z")
    assert code == 2
    assert "no column 'z'" in err
    assert "Learning" not in err


def test_more_than_half_of_the_rows_skipped_is_said(run, tmp_path):
    path = tmp_path / "gaps.csv"
    path.write_text("a,y\n" + "".join(f"{i},{i}\n{i},\n{i},off\n" for i in range(20)))
    code, out, _ = run(path, "--target", "y")
    assert code == 0
    assert "Only 20 of 60 rows could be used: what was learned" in out
    path.write_text("a,y\n" + "".join(f"{i},{i}\n{i},\n" for i in range(20)))
    assert "Only 20" not in run(path, "--target", "y", "--overwrite")[1]


def test_with_on_bad_row_fail_a_run_stops_and_can_be_resumed(run, tmp_path, data, expected):
    path, save = tmp_path / "spoiled.csv", tmp_path / "m.pogp"
    path.write_text(spoiled(data, {1302: "x,2,3"}))
    report = tmp_path / "r.html"
    code, out, err = run(path, "--target", "y", "--on-bad-row", "fail", "--report", report)
    assert (code, out) == (3, "")
    assert f"pogp: error: {path}, line 1302: 'a' is 'x', not a number\n" in err
    assert "1,300 samples" in report.read_text()
    model, notes = saved(save)
    assert model.seen == notes.used == 1300
    path.write_text(text_of(*data))
    assert run(path, "--resume", "--on-bad-row", "fail")[0] == 0
    assert_same_state(saved(save)[0], expected)


# ---- the report


def test_the_report_covers_what_was_resumed(run, tmp_path, data):
    X, y = data
    path, report = tmp_path / "growing.csv", tmp_path / "r.html"
    path.write_text(text_of(X[:1500], y[:1500]))
    assert run(path, "--target", "y", "--report", report)[0] == 0
    assert "1,500 samples" in report.read_text()
    path.write_text(text_of(X, y))
    assert run(path, "--resume", "--report", report)[0] == 0
    page = report.read_text()
    assert f"Learned {ROWS:,} samples of y from 2 inputs" in page
    assert "y, learned from growing.csv" in page


# ---- what is told meanwhile


def test_progress_has_rate_and_time_left(run, table):
    _, _, err = run(table, "--target", "y", "--checkpoint", "160")
    lines = [line for line in err.splitlines() if line.startswith("table.csv")]
    assert 8 <= len(lines) <= 10
    assert re.search(rf" {ROWS:,} +\d+/s +0:00 left  25 points, error 0\.\d+$", lines[-1])


def test_quiet_is_quiet(run, table):
    code, out, err = run(table, "--target", "y", "--quiet")
    assert (code, err) == (0, "")
    assert out.startswith(f"Learned {ROWS:,} samples")


def test_excluding_an_unknown_column_is_an_error(run, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,x,y\n" + "".join(f"{i},{i % 7},{i % 3}\n" for i in range(40)))
    code, _, errors = run(path, "--target", "y", "--exclude", "idd")
    assert code == 2
    assert "no column 'idd' to exclude; did you mean 'id'?" in errors


def test_a_report_replaces_pages_only(run, tmp_path):
    path, precious = tmp_path / "t.csv", tmp_path / "precious.csv"
    path.write_text("x,y\n" + "".join(f"{i % 7},{i % 3}\n" for i in range(40)))
    precious.write_text("my data")
    code, _, errors = run(path, "--target", "y", "--report", precious)
    assert (code, precious.read_text()) == (2, "my data")
    assert "is not an HTML page" in errors
    page = tmp_path / "page.html"
    for more in ([], ["--overwrite"]):
        assert run(path, "--target", "y", "--report", page, *more)[0] == 0


# ---- verdicts


@pytest.fixture
def noise(tmp_path, data):
    path = tmp_path / "noise.csv"
    path.write_text(text_of(data[0][:300], np.random.default_rng(0).normal(size=300)))
    return path


def test_a_useless_model_is_reported_by_learn_page_and_info(run, tmp_path, noise, capsys):
    code, out, _ = run(noise, "--target", "y", "--report", tmp_path / "r.html")
    text = "the mean of the targets so far would be"
    command = f"pogp learn {noise} --max-size 25 --target y --method online"
    assert code == 0
    assert text in out.replace("\n", " ")
    assert f"  Try: {command}\n" in out
    assert command in re.sub(r"</?span>", "", (tmp_path / "r.html").read_text())
    assert cli.main(["info", str(tmp_path / "m.pogp")]) == 0
    assert f"  Try: {command}\n" in capsys.readouterr().out
    assert cli.main(["info", "--json", str(tmp_path / "m.pogp")]) == 0
    found = json.loads(capsys.readouterr().out)["verdicts"]
    assert ("useless", command) in [(each["name"], each["command"]) for each in found]


def test_advice_names_the_table_that_was_just_learned(run, tmp_path, noise, capsys):
    rest = "--max-size 25 --target y --method online\n"
    run(noise, "--target", "y")
    with noise.open("a") as file:
        file.writelines(f"{x},{1000 * x},{(-1) ** x}\n" for x in range(60))
    moved = noise.rename(tmp_path / "moved.csv")
    assert f"Try: pogp learn {moved} {rest}" in run(moved, "--resume")[1]
    assert cli.main(["info", str(tmp_path / "m.pogp")]) == 0
    assert f"Try: pogp learn {moved} {rest}" in capsys.readouterr().out
    other = moved.rename(tmp_path / "other.csv")
    going_on = ("--from", tmp_path / "m.pogp", "--save", tmp_path / "2.pogp")
    out = run(other, "--target", "y", *going_on)[1]
    columns = noise_columns(other)
    assert f"Try: pogp learn {other} {rest.strip()} --columns {columns}\n" in out
    again = run(
        other, "--target", "y", "--from", tmp_path / "2.pogp", "--save", tmp_path / "2.pogp"
    )
    assert "Try: " in again[1]
    assert "--from" not in again[1].split("Try: ")[1]  # that model has learned these rows


def noise_columns(path):
    return ",".join(path.read_text().splitlines()[0].split(",")[:-1])


def test_a_good_model_gets_no_verdict(run, table):
    assert "Try:" not in run(table, "--target", "y", model=[*OPTIONS[:-1], "60"])[1]


def test_the_exit_code_says_whether_the_error_is_low_enough(run, tmp_path, noise, table):
    assert run(table, "--target", "y", "--require", "0.5")[0] == 0
    (tmp_path / "m.pogp").unlink()
    code, _, err = run(noise, "--target", "y", "--require", "0.5")
    assert code == 4
    assert "--require 0.5 is not met: the mean squared error is 1" in err
    assert (tmp_path / "m.pogp").exists()
