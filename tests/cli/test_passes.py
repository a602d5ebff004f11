"""`pogp learn --passes 2`: the sums of the whole table, stopped and continued, bit for bit."""

import json

import numpy as np
import pytest

import pogp
from pogp import cli, sums
from pogp.cli import passes
from pogp.cli.score import Score
from pogp.encoding import Encoder
from pogp.sums.drawing import draw

from ..conftest import smooth_2d

X, Y = smooth_2d(3000)


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table with two rows that cannot be used, in parts of at least 200 rows."""
    monkeypatch.setattr(passes, "PART", 200)
    monkeypatch.setattr(passes, "EVERY", 2)
    monkeypatch.setattr(passes, "SAMPLE", 250)
    monkeypatch.setattr(passes, "CALIBRATION", 150)
    monkeypatch.setattr("pogp.cli.tables.text.SIZE", 4096)
    rows = [f"{a!r},{b!r},{y!r}" for (a, b), y in zip(X.tolist(), Y.tolist(), strict=True)]
    rows[7], rows[1500] = "1.0,2.0,", "0.5,0.5,word"
    path = tmp_path / "table.csv"
    path.write_text("a,b,y\n" + "\n".join(rows) + "\n")
    return path


def learn(table, *more):
    options = ["--target", "y", "--max-size", "20", "--kernel", "rbf", "--quiet", *more]
    return cli.main(["learn", str(table), "--passes", "2", *options])


def test_the_model_is_that_of_all_rows(table, tmp_path, capsys):
    saved = tmp_path / "m.pogp"
    assert learn(table, "--save", str(saved)) == 0
    assert "20 points hold what 2,998 rows" in capsys.readouterr().out
    good = np.delete(np.arange(3000), [7, 1500])
    drawn = draw([(X[good], Y[good])], 400, dimension=2)
    first, rest = drawn.divided(250)
    plan = sums.plan(*first, max_size=20, kernel="RBF")
    expected = plan.model(plan.sums([(X[good], Y[good])]), rest)
    model = pogp.load(saved)
    assert model.seen == 2998
    np.testing.assert_allclose(model.predict(X[:50]), expected.predict(X[:50]), rtol=1e-9)
    more = tmp_path / "more.csv"
    more.write_text("a,b,y\n" + "\n".join(f"{a},{b},{y}" for (a, b), y in zip(X, Y, strict=True)))
    assert cli.main(["predict", str(saved), str(more), "--out", str(tmp_path / "p.csv")]) == 0
    after = ["--from", str(saved), "--save", str(tmp_path / "n.pogp"), "--quiet"]
    assert cli.main(["learn", str(more), *after]) == 0
    assert pogp.load(tmp_path / "n.pogp").seen == 5998


def test_rows_with_gaps_times_and_texts_are_learned(table, tmp_path, capsys):
    rng = np.random.default_rng(1)
    rooms, gaps = rng.integers(0, 3, 1500), rng.random((1500, 2)) < 0.1
    path, saved = tmp_path / "gaps.csv", tmp_path / "m.pogp"
    cells = np.where(gaps, "", X[:1500].astype(str))
    start = np.datetime64("2026-01-01")
    times = start + rng.integers(0, 30 * 24, 1500).astype("timedelta64[h]")
    hour = (times - times.astype("datetime64[D]")).astype(float) / 24
    targets = Y[:1500] + rooms + np.sin(2 * np.pi * hour)
    rows = (
        f"{a},{b},{'xyz'[room]},{time},{y}"
        for (a, b), room, time, y in zip(cells, rooms, times, targets, strict=True)
    )
    path.write_text("a,b,room,time,y\n" + "\n".join(rows) + "\n")
    assert learn(path, "--save", str(saved), "--max-size", "150") == 0
    out = capsys.readouterr().out
    assert f"1,500 rows of {path} say, {int(gaps.any(axis=1).sum()):,} had missing values" in out
    predicted = tmp_path / "p.csv"
    assert cli.main(["predict", str(saved), str(path), "--out", str(predicted)]) == 0
    complete = ~gaps.any(axis=1)
    mean = np.genfromtxt(predicted, delimiter=",", skip_header=1, usecols=5)
    error = ((mean - targets) ** 2)[complete].mean() / targets.var()
    assert error < 0.1


def test_a_row_with_a_gap_becomes_weighted_points():
    encoder = Encoder.numbers(["a", "b"])
    encoder.learn([X[:, 0], X[:, 0] + 0.1 * X[:, 1]])
    rows, counts = passes.spread(encoder, [X[:3, 0], np.array([0.5, np.nan, 0.5])])
    assert counts.tolist() == [1, 10, 1]
    assert rows[:, 0].tolist() == X[[0, *[1] * 10, 2], 0].tolist()
    middle, deviation = rows[1:11, 1].mean(), rows[1:11, 1].std()
    assert abs(middle - X[1, 0]) < 2 * deviation
    assert 0.05 < deviation < 0.3


def test_what_was_filled_in_a_row_is_unsure_for_the_next():
    walk = np.cumsum(np.random.default_rng(4).normal(size=500))
    encoder = Encoder.numbers(["a"])
    encoder.learn([walk])
    cells = walk[:40].copy()
    cells[0], cells[[10, 11, 12, 13]], cells[20] = np.nan, np.nan, np.nan
    rows, counts = passes.spread(encoder, [cells])
    places = np.repeat(np.arange(40), counts)
    first, early, late, again = (rows[places == i].std() for i in (0, 10, 13, 20))
    assert early < late < first  # which follows nothing
    assert abs(early - again) < 1e-9 * early


def test_a_resumed_pass_gives_the_same_bits(table, tmp_path, monkeypatch):
    whole, part = tmp_path / "whole.pogp", tmp_path / "part.pogp"
    assert learn(table, "--save", str(whole)) == 0

    class StoppedError(Exception):
        pass

    save = passes._State.save

    def save_and_stop(state, path, opened):
        save(state, path, opened)
        raise StoppedError

    monkeypatch.setattr(passes._State, "save", save_and_stop)
    with pytest.raises(StoppedError):
        learn(table, "--save", str(part))
    assert not part.exists()
    monkeypatch.setattr(passes._State, "save", save)
    assert learn(table, "--save", str(part), "--resume") == 0
    assert pogp.load(part).to_bytes() == pogp.load(whole).to_bytes()
    assert not (tmp_path / "part.pogp.passes").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([], "needs --save"),
        (["--save", "m.pogp", "--from", "x.pogp"], "--from is for one pass"),
        (["--save", "m.pogp", "--method", "pog"], "--method is for one pass"),
        (["--save", "m.pogp", "--option", "share=0"], "--option is for one pass"),
    ],
)
def test_options_that_two_passes_do_not_have_are_refused(table, capsys, more, message):
    assert learn(table, *more) == 2
    assert message in capsys.readouterr().err
    assert cli.main(["learn", "-", "--passes", "2", "--target", "y", "--save", "m.pogp"]) == 2
    assert "reads the table twice" in capsys.readouterr().err


def test_a_finished_model_is_described_and_goes_on(table, tmp_path, capsys):
    saved = tmp_path / "m.pogp"
    assert learn(table, "--save", str(saved)) == 0
    capsys.readouterr()
    assert cli.main(["info", str(saved)]) == 0
    assert "2,998 samples" in capsys.readouterr().out
    assert cli.main(["info", str(saved), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["size"] == 20
    resumed = ["learn", str(table), "--save", str(saved), "--resume"]
    before = saved.read_bytes()
    page = tmp_path / "page.html"
    assert cli.main([*resumed, "--report", str(page)]) == 0
    said = capsys.readouterr()
    assert "Nothing new to learn. Keeps 20 points" in said.out
    assert "had all rows already" in said.err
    assert "not written" in said.err
    assert saved.read_bytes() == before
    assert learn(table, "--save", str(saved), "--resume") == 2
    assert "is finished" in capsys.readouterr().err
    with table.open("a") as file:
        file.writelines(f"{a},{b},{y}\n" for (a, b), y in zip(X[:100], Y[:100], strict=True))
    assert cli.main(resumed) == 0
    assert pogp.load(saved).seen == 3098
    assert cli.main(["info", str(saved)]) == 0


def test_one_point_holds(table, tmp_path, capsys):
    assert learn(table, "--save", str(tmp_path / "m.pogp"), "--max-size", "1") == 0
    assert "1 point holds what 2,998 rows" in capsys.readouterr().out


def test_rows_left_out_are_predicted_as_if_they_had_not_been_learned():
    plan = sums.plan(X[:250], Y[:250], max_size=20, kernel="RBF")
    errors = plan.left_out(plan.sums([(X[:60], Y[:60])]), X[:5], Y[:5])
    for i, error in enumerate(errors):
        rest = np.delete(np.arange(60), i)
        mean, _ = plan.model(plan.sums([(X[rest], Y[rest])])).predict(X[i : i + 1])
        np.testing.assert_allclose(error, Y[i] - mean, rtol=1e-6)


def test_a_model_that_is_too_poor_is_reported(table, tmp_path, capsys):
    saved = tmp_path / "m.pogp"
    require = ["--save", str(saved), "--overwrite", "--require"]
    assert learn(table, *require, "0.5") == 0
    assert "Of 150 rows, each predicted from all others" in capsys.readouterr().out
    assert learn(table, *require, "1e-6") == 4
    assert "--require 1e-06 is not met: the mean squared error is 0.0" in capsys.readouterr().err
    resumed = ["learn", str(table), "--save", str(saved), "--resume", "--quiet", "--require"]
    assert cli.main([*resumed, "1e-6"]) == 4
    assert cli.main([*resumed, "0.5"]) == 0
    capsys.readouterr()
    assert cli.main(["info", str(saved)]) == 0
    assert "Of 150 rows" in capsys.readouterr().out
    noise = np.random.default_rng(3).normal(size=3000)
    table.write_text("a,y\n" + "\n".join(f"{a},{y}" for a, y in zip(X[:, 0], noise, strict=True)))
    assert learn(table, *require, "0.5") == 4
    out = " ".join(capsys.readouterr().out.split())
    assert "not clearly better than the mean of the targets" in out
    assert f"Try: pogp learn {table} --target y" in out


def test_a_few_outliers_are_left_out_of_the_error_of_two_passes():
    good = Score.of(Y, 0.1 * np.random.default_rng(0).normal(size=3000))
    spoilt = Y.copy()
    spoilt[::100] += 20.0
    errors = 0.1 * np.random.default_rng(0).normal(size=3000) + spoilt - Y
    score = Score.of(spoilt, errors)
    assert score.surprises == 30
    assert score.error == pytest.approx(good.error, rel=0.05)
    assert "% of the variance (30 surprises left out)." in str(score)
    many = Score.of(Y, np.where(np.arange(3000) % 20 == 0, 3.0, errors - (spoilt - Y)))
    assert (many.surprises, good.surprises) == (0, 0)
    assert Score.of(np.ones(10), np.zeros(10)) is None
    assert Score.of(np.arange(10.0), np.zeros(10)) == (10, 0.0, 0)
