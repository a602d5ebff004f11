"""`pogp predict` and `pogp info`: what the model itself says, row by row and in a few lines."""

import csv
import gzip
import json
import re
import subprocess

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import norm

import pogp
from pogp import cli
from pogp.cli import info
from pogp.cli.notes import Notes
from pogp.files import persistence
from pogp.report.axes import number

from .. import processes
from ..conftest import smooth_2d

RESULTS = ["mean", "deviation", "lower", "upper"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model that `pogp learn` has made of a table with two inputs."""
    folder = tmp_path_factory.mktemp("predict")
    X, y = smooth_2d(400)
    rows = np.column_stack([X, y]).tolist()
    lines = [f"{a!r},{b!r},{t!r}\n" for a, b, t in rows]
    (folder / "table.csv").write_text(
        "a,b,y\n" + "".join(lines[:150]) + "bad\n" + "".join(lines[150:])
    )
    options = [
        "--method",
        "absorbing",
        "--warmup",
        "50",
        "--max-size",
        "30",
        "--save",
        str(folder / "m.pogp"),
    ]
    assert cli.main(["learn", str(folder / "table.csv"), "--target", "y", *options]) == 0
    return folder


@pytest.fixture(scope="module")
def model(folder):
    return pogp.load(folder / "m.pogp")


@pytest.fixture
def predict(folder, tmp_path, capsys):
    """Predict a text and return the code, what was written, as rows, and what was told."""

    def predict(content, *options):
        path, out = tmp_path / "new", tmp_path / "out.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        command = ["predict", str(folder / "m.pogp"), str(path), "--out", str(out)]
        code = cli.main([*command, *map(str, options)])
        written = out.read_text() if out.exists() else None
        delimiter = ";" if written and ";" in written else ","
        rows = (
            None if written is None else list(csv.reader(written.splitlines(), delimiter=delimiter))
        )
        return code, rows, capsys.readouterr().err

    return predict


def expected(model, X, level=0.95):
    mean, variance = model.predict(np.array(X))
    deviation = np.sqrt(variance)
    width = norm.ppf(0.5 + level / 2) * deviation
    return np.column_stack([mean, deviation, mean - width, mean + width])


def numbers(rows):
    return np.array([[float(cell) for cell in row] for row in rows])


# ---- what is written


def test_the_band_is_that_of_the_model(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, 400)
    y = np.sin(x) + 0.1 * rng.standard_t(2, size=400)  # tails that are not Gaussian
    table, saved, out = (tmp_path / name for name in ("t.csv", "m.pogp", "out.csv"))
    rows = zip(x.tolist(), y.tolist(), strict=True)
    table.write_text("x,y\n" + "".join(f"{a},{b}\n" for a, b in rows))
    options = ["--target", "y", "--max-size", "20", "--save", str(saved), "--quiet"]
    assert cli.main(["learn", str(table), *options]) == 0
    assert cli.main(["predict", str(saved), str(table), "--keep", "none", "--out", str(out)]) == 0
    got = np.loadtxt(out, delimiter=",", skiprows=1)
    np.testing.assert_allclose(got[:, 2:].T, pogp.load(saved).interval(x[:, None]), rtol=1e-9)
    assert 0.93 < np.mean((got[:, 2] < y) & (y < got[:, 3])) < 0.98


def test_all_columns_and_the_results_are_written(predict, model):
    code, (header, *rows), err = predict("b,id,a\n0.5,x,0.25\n-1,é,0.75\n")
    assert (code, err) == (0, "")
    assert header == ["b", "id", "a", *RESULTS]
    assert [row[:3] for row in rows] == [["0.5", "x", "0.25"], ["-1", "é", "0.75"]]
    got = numbers([row[3:] for row in rows])
    exact = expected(model, [[0.25, 0.5], [0.75, -1.0]])
    np.testing.assert_array_equal(got[:, :2], exact[:, :2])  # to the last bit
    np.testing.assert_allclose(got, exact, rtol=1e-12)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.999])
def test_the_interval_is_of_the_level_asked_for(predict, model, level):
    _, (_, row), _ = predict("a,b\n0.1,0.2\n", "--level", level)
    np.testing.assert_allclose(numbers([row[2:]]), expected(model, [[0.1, 0.2]], level), rtol=1e-12)


def test_the_interval_holds_what_it_says(folder, predict):
    X, y = smooth_2d(3000, seed=9)
    text = "a,b,y\n" + "".join(
        f"{a!r},{b!r},{t!r}\n" for (a, b), t in zip(X.tolist(), y.tolist(), strict=True)
    )
    _, (_, *rows), _ = predict(text, "--level", "0.8")
    table = numbers(rows)
    inside = (table[:, 5] <= table[:, 2]) & (table[:, 2] <= table[:, 6])
    assert 0.7 < inside.mean() < 0.9


def test_columns_can_be_chosen(predict):
    text = 'id,a,b,note\n7,0.1,0.2,"x, y"\n'
    assert predict(text, "--keep", "note,id")[1][0] == ["note", "id", *RESULTS]
    assert predict(text, "--keep", "note,id", "--overwrite")[1][1][:2] == ["x, y", "7"]
    assert predict(text, "--keep", "none", "--overwrite")[1][0] == RESULTS
    code, _, err = predict(text, "--keep", "nope", "--overwrite")
    assert code == 2
    assert "no column 'nope'" in err


def test_kept_columns_are_written_unchanged(predict):
    text = 'a;b;t\r\n0.10;2e-1;"x; ""y"""\r\n\r\n 0.3 ;0.4;"two\nlines"\r\n'
    _, _, _ = predict(text)
    code, rows, _ = predict(gzip.compress(text.encode()), "--overwrite")
    assert code == 0
    assert rows[0] == ["a", "b", "t", *RESULTS]
    assert rows[1][:3] == ["0.10", "2e-1", 'x; "y"']


def test_parquet_gives_csv_of_the_same(predict, model, tmp_path):
    table = pa.table({"id": ["r,1", None], "b": [0.5, -1.0], "a": [0.25, 0.75]})
    pq.write_table(table, tmp_path / "t.parquet")
    _, (header, *rows), _ = predict((tmp_path / "t.parquet").read_bytes())
    assert header == ["id", "b", "a", *RESULTS]
    assert [row[0] for row in rows] == ["r,1", ""]
    exact = expected(model, [[0.25, 0.5], [0.75, -1.0]])
    np.testing.assert_allclose(numbers([row[3:] for row in rows]), exact, rtol=1e-12)


def test_many_rows_are_predicted_in_pieces(predict, model):
    X = np.random.default_rng(0).uniform(-1, 1, (20_000, 2))
    text = "a,b\n" + "".join(f"{a!r},{b!r}\n" for a, b in X.tolist())
    _, (_, *rows), _ = predict(text, "--keep", "none")
    np.testing.assert_allclose(numbers(rows), expected(model, X), rtol=1e-9)


# ---- rows that cannot be used


def test_unusable_rows_have_empty_results(predict, model):
    code, rows, err = predict('id,a,b\n1,0.1,0.2\n2,,0.2\n3\n4,x,0.2\n5,"0.3",0.4\n6,1,2,3\n')
    assert code == 0
    assert [row[0] for row in rows[1:]] == ["1", "2", "3", "4", "5", "6"]
    assert [len(row) for row in rows] == [7] * 7
    empty = [row[3:] == [""] * 4 for row in rows[1:]]
    assert empty == [False, False, True, False, False, True]
    assert "line 4: it has 1 cell, not 3; not predicted" in err
    assert "line 5: 'a' is 'x', not a number; taken as missing" in err
    assert "2 of 6 rows not predicted" in err


def test_a_missing_input_is_predicted_with_a_larger_deviation(predict):
    _, (_, *rows), err = predict("a,b\n0.1,0.2\n,0.2\nNA,\n", "--keep", "none")
    known, one, both = (float(row[1]) for row in rows)
    assert known < one
    assert known < both
    assert "2 of 3 rows had missing inputs, which were filled; the first is line 3" in err


def test_a_category_that_was_never_learned_is_reported(tmp_path, capsys):
    table, saved, new = tmp_path / "t.csv", str(tmp_path / "m.pogp"), tmp_path / "new.csv"
    rows = [f"{'day' if i % 3 else 'night'},{i % 3}" for i in range(60)]
    table.write_text("\n".join(["mode,y", *rows]) + "\n")
    assert cli.main(["learn", str(table), "--target", "y", "--save", saved]) == 0
    new.write_text('mode\nday\ndawn\n\nnight\n""\n')
    capsys.readouterr()
    assert cli.main(["predict", saved, str(new)]) == 0
    stranger, gaps, counts = capsys.readouterr().err.splitlines()
    told = "line 3: 'mode' is 'dawn', a category that was never learned; taken as missing"
    assert stranger.endswith(told)
    assert "2 of 4 rows had missing inputs" in gaps
    assert counts == "pogp: 'mode' has categories that were never learned: 'dawn' in 1 row"
    # each is listed once, and all are counted
    new.write_text("mode\n" + 30 * "dawn\n" + 2 * "dusk\n" + "".join(f"{i}x\n" for i in range(200)))
    assert cli.main(["predict", saved, str(new)]) == 0
    *listed, _, gaps, counts = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[2].split(" ")[2] for line in listed[:3]] == [
        "'dawn',",
        "'dusk',",
        "'0x',",
    ]
    assert "232 of 232 rows had missing inputs" in gaps
    assert "'dawn' in 30 rows, 'dusk' in 2 rows, '0x' in 1 row" in counts
    assert counts.endswith("others in 192 rows")


def test_a_key_that_no_row_has_is_a_missing_value(predict, folder, tmp_path, capsys):
    code, rows, err = predict('{"id": 7, "a": 0.1}\n')
    assert (code, rows[0]) == (0, ["id", "a", *RESULTS])
    assert np.isfinite(float(rows[1][2]))
    assert "1 of 1 rows had missing inputs" in err
    assert predict('{"a": 0.1}\n', "--columns", "a,b", "--overwrite")[0] == 2
    assert "has no column 'b'" in predict("a\n0.1\n", "--overwrite")[2]
    more = tmp_path / "more.jsonl"
    more.write_text('{"a": 0.1, "y": 1.0}\n')
    assert cli.main(["learn", str(more), "--from", str(folder / "m.pogp")]) == 0
    assert "1 row had missing values" in capsys.readouterr().out


def test_a_time_that_cannot_be_read_is_reported(tmp_path, capsys):
    table, saved, new = tmp_path / "t.csv", str(tmp_path / "m.pogp"), tmp_path / "new.csv"
    rows = [f"2024-01-{i // 24 + 1:02}T{i % 24:02}:00,{i % 24}" for i in range(120)]
    table.write_text("\n".join(["when,y", *rows]) + "\n")
    options = ["--save", saved, "--method", "sogp", "--warmup", "30", "--max-size", "20"]
    assert cli.main(["learn", str(table), "--target", "y", *options]) == 0
    new.write_text("id,when\n1,2024-01-06T00:00\n2,soon\n3,2024-01-06T02:00\n4,\n")
    capsys.readouterr()
    assert cli.main(["predict", saved, str(new)]) == 0
    unread, gaps = capsys.readouterr().err.splitlines()
    assert unread.endswith("line 3: 'when' is 'soon', not a time; taken as missing")
    assert gaps == "pogp: 2 of 4 rows had missing inputs, which were filled; the first is line 3"
    assert cli.main(["info", saved]) == 0
    assert "predicts y from 1 column (7 inputs)." in capsys.readouterr().out


def test_with_on_bad_row_fail_prediction_stops(predict):
    code, rows, err = predict("a,b\n0.1,\n0.1,x\n", "--on-bad-row", "fail")
    assert (code, rows) == (3, None)  # nothing half done is left
    assert "line 3: 'b' is 'x', not a number" in err


def test_no_row_at_all_is_an_error(predict):
    assert predict("a,b\n")[0] == 2
    code, rows, err = predict("a,b\n1,2,3\n")
    assert (code, rows) == (2, None)
    assert "no row can be used; " in err


# ---- what is in the way


def test_nothing_is_overwritten_unasked(predict, folder, tmp_path, capsys):
    assert predict("a,b\n1,2\n")[0] == 0
    code, rows, err = predict("a,b\n3,4\n")
    assert code == 2
    assert "exists: --overwrite replaces it" in err
    assert rows[1][:2] == ["1", "2"]
    table = str(folder / "table.csv")
    command = ["predict", str(folder / "m.pogp"), table, "--overwrite", "--out"]
    for place in (table, str(folder / "m.pogp")):
        assert cli.main([*command, place]) == 2
        assert "would be overwritten" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a,c\n1,2\n", "no column 'b'"),
        ("a,b,mean\n1,2,3\n", "a column 'mean' as the results will have"),
        ("", "is empty"),
    ],
)
def test_errors_say_why_a_table_cannot_be_predicted(predict, text, complaint):
    code, rows, err = predict(text)
    assert (code, rows) == (2, None)
    assert complaint in err


def test_a_model_saved_in_python_needs_column_names(model, tmp_path, capsys):
    bare, path = tmp_path / "bare.pogp", tmp_path / "new.csv"
    plain = pogp.POG(pogp.RBF(), 0.1)
    plain.learn([[0.0, 1.0], [1.0, 0.0]], [1.0, 2.0])
    plain.save(bare)
    path.write_text("p,q\n0.5,0.25\n")
    assert cli.main(["predict", str(bare), str(path)]) == 2
    assert "--columns has to" in capsys.readouterr().err
    assert cli.main(["predict", str(bare), str(path), "--columns", "p"]) == 2
    assert "the model has 2 inputs, got 1: p" in capsys.readouterr().err
    out = tmp_path / "out.csv"
    assert cli.main(["predict", str(bare), str(path), "--columns", "q,p", "--out", str(out)]) == 0
    mean, variance = plain.predict([0.25, 0.5])
    row = out.read_text().splitlines()[1].split(",")
    assert [float(cell) for cell in row[2:4]] == [mean, np.sqrt(variance)]


def test_several_outputs_are_not_written(tmp_path, capsys):
    model = pogp.AbsorbingPOG(pogp.RBF(), 0.1)
    model.learn([[0.0], [1.0]], [[1.0, 2.0], [3.0, 4.0]])
    model.save(tmp_path / "two.pogp")
    (tmp_path / "new.csv").write_text("x\n1\n")
    command = ["predict", str(tmp_path / "two.pogp"), str(tmp_path / "new.csv"), "--columns", "x"]
    assert cli.main(command) == 2
    assert "predicts 2 outputs" in capsys.readouterr().err


# ---- pipes


def test_pipes_work_and_may_be_closed_early(folder):
    command = ["predict", folder / "m.pogp", "-", "--keep", "a"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with processes.pogp(*command, text=True, **pipes) as process:
        process.stdin.write("b,a\n1,2\n")
        process.stdin.flush()
        assert process.stdout.readline() == "a,mean,deviation,lower,upper\n"
        assert process.stdout.readline().startswith("2,")  # before the input has ended
        process.stdout.close()
        process.stdin.write("3,4\n")
        process.stdin.close()
        assert process.wait(timeout=60) == 141
        assert process.stderr.read() == ""


# ---- info


def test_info_describes_the_model(folder, model, capsys):
    assert cli.main(["info", str(folder / "m.pogp")]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for fact in (
        "predicts y from 2 inputs",
        "method absorbing",
        "400 samples",
        f"{model.size} points",
        "1 row skipped",
        "line 403 comes next",
        "max_size 30",
        f"pogp {pogp.__version__}",
    ):
        assert fact in text


def test_info_for_scripts_has_the_numbers(folder, model, capsys):
    assert cli.main(["info", str(folder / "m.pogp"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    notes = Notes.read(folder / "m.pogp")
    assert (found["samples"], found["size"]) == (400, model.size)
    assert found["schema"] == persistence.SCHEMA
    assert (found["target"], found["columns"]) == ("y", ["a", "b"])
    assert found["source"] == {
        "name": str(folder / "table.csv"),
        "used": 400,
        "skipped": 1,
        "unit": "line",
        "next": notes.position.line,
    }
    X, y = smooth_2d(400)
    spread, scale = X[:50].std(axis=0), y[:50].std()
    np.testing.assert_allclose(
        [found["lengthscales"][name] for name in "ab"], model.kernel.lengthscale * spread
    )
    assert found["noise_variance"] == pytest.approx(model.noise * scale**2)
    assert found["arguments"]["max_size"] == 30
    assert 0 < found["scores"]["rmse"] < y.std()
    assert 0.8 < found["scores"]["coverage_95"] <= 1


def test_info_of_a_model_from_python_and_of_one_that_warms_up(tmp_path, capsys):
    path = tmp_path / "m.pogp"
    model = pogp.POG(pogp.RBF([1.0, 2.0]), 0.25)
    model.learn([[0.0, 1.0]], [1.0])
    model.save(path)
    assert cli.main(["info", str(path)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "predicts y from 2 inputs" in text
    assert "method POG" in text
    assert "x1 1, x2 2" in text
    assert "deviation 0.5" in text
    waiting = pogp.SelfTuning()
    waiting.learn([[0.0, 1.0]], [1.0])
    waiting.save(path)
    assert cli.main(["info", str(path)]) == 0
    assert "still collecting samples" in capsys.readouterr().out


def test_info_lists_the_decisions_of_a_model(tmp_path, capsys):
    path = tmp_path / "m.pogp"
    X, y = smooth_2d(200)
    model = pogp.OnlineGP(max_size=20)
    model.learn(X, y)
    model.save(path)
    assert cli.main(["info", str(path)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    heaviest = max(model.weights, key=model.weights.get)
    assert "method OnlineGP" in text
    assert f"weights {heaviest}: " in text
    assert model.history[-1].why in text
    assert cli.main(["info", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["weights"] == pytest.approx(model.weights)
    assert found["history"] == [[*event, None] for event in model.history]
    assert list(found["relevance"].values()) == pytest.approx(model.relevance.tolist())
    assert list(found["lengthscales"].values()) == pytest.approx(model.lengthscales.tolist())
    assert found["noise_variance"] == pytest.approx(model.noise)
    empty = pogp.OnlineGP()
    empty.save(path)
    assert cli.main(["info", str(path)]) == 0


def test_info_has_the_relevance_of_the_report_and_the_scores_of_the_headline(tmp_path, capsys):
    rng = np.random.default_rng(0)
    X, path, report = rng.uniform(-3, 3, (600, 2)), tmp_path / "m.pogp", tmp_path / "r.html"
    X[:, 1] += np.linspace(0, 20, 600)  # spreads wider than where the length-scales were found
    y = np.sin(X[:, 0]) + np.cos(0.3 * X[:, 1]) + 0.1 * rng.normal(size=600)
    y[[560, 580]] += 30.0
    lines = [",".join(map(repr, row)) for row in np.column_stack([X, y]).tolist()]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,y", *lines]) + "\n")
    learn = ["learn", str(tmp_path / "t.csv"), "--target", "y", "--save", str(path)]
    assert cli.main([*learn, "--max-size", "20", "--report", str(report)]) == 0
    headline = " ".join(capsys.readouterr().out.split())
    assert cli.main(["info", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    for name, value in found["relevance"].items():
        assert re.search(
            rf"<th scope=.row.>{name}</th><td>[^<]*</td><td>{value:.2f}</td>", report.read_text()
        )
    scores = found["scores"]
    assert scores["outliers"] == 2
    assert f"Of the last {scores['samples']} samples" in headline
    without = number(scores["rmse_without_outliers"])
    assert f"samples is {without} without their 2 surprises and " in headline
    assert cli.main(["info", str(path)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"({number(scores['rmse_without_outliers'])} without 2 surprises)" in text
    one = info.text(found | {"scores": scores | {"samples": 1}})
    assert "of the last sample, predicted before it was learned" in one


def test_info_names_the_inputs_that_changed(tmp_path, capsys):
    path, rng = tmp_path / "m.pogp", np.random.default_rng(0)
    X = rng.normal(size=(700, 2))
    X[500:, 1] += 50.0
    rows = np.column_stack([X, X[:, 0] + 0.1 * rng.normal(size=700)]).tolist()
    lines = [",".join(map(repr, row)) for row in rows]
    (tmp_path / "t.csv").write_text("\n".join(["speed,load,y", *lines]) + "\n")
    learn = ["learn", str(tmp_path / "t.csv"), "--target", "y", "--save", str(path)]
    assert cli.main([*learn, "--max-size", "20"]) == 0
    assert "columns 1 outside the known range" in [event.why for event in pogp.load(path).history]
    capsys.readouterr()
    assert cli.main(["info", str(path), "--json"]) == 0
    history = json.loads(capsys.readouterr().out)["history"]
    assert "load outside the known range" in [why for _, _, why, _ in history]
    assert all(row == sample for sample, _, _, row in history)


def test_a_file_that_is_no_model_is_an_error(tmp_path, capsys):
    path = tmp_path / "m.pogp"
    path.write_text("a,b\n1,2\n")
    for command in (["info", str(path)], ["predict", str(path), str(path)]):
        assert cli.main(command) == 2
        assert "not a pogp file" in capsys.readouterr().err
    assert cli.main(["info", str(tmp_path / "missing")]) == 2
    assert "No such file" in capsys.readouterr().err


# ---- help


@pytest.mark.parametrize("command", ["learn", "predict", "info"])
def test_the_help_has_examples_and_exit_codes(capsys, command):
    with pytest.raises(SystemExit) as stop:
        cli.main([command, "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert "examples:" in text
    assert f"pogp {command} " in text
    assert "exit codes:" in text
    assert max(map(len, text.splitlines())) <= 100


def test_output_names_of_other_formats_are_refused(folder, tmp_path, capsys):
    out = tmp_path / "predictions.parquet"
    command = ["predict", str(folder / "m.pogp"), str(folder / "table.csv"), "--out", str(out)]
    assert cli.main(command) == 2
    assert "predictions are written as CSV" in capsys.readouterr().err
    assert not out.exists()
