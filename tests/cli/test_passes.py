"""`pogp learn --passes 2`: the sums of the whole table, stopped and continued, bit for bit."""

import numpy as np
import pytest

import pogp
from pogp import cli, sums
from pogp.cli import passes
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
    rows[7], rows[1500] = "1.0,,2.0", "0.5,0.5,word"
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


def test_a_stopped_pass_goes_on_to_the_same_bits(table, tmp_path, monkeypatch):
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
def test_what_two_passes_cannot_do_is_said(table, capsys, more, message):
    assert learn(table, *more) == 2
    assert message in capsys.readouterr().err
    assert cli.main(["learn", "-", "--passes", "2", "--target", "y", "--save", "m.pogp"]) == 2
    assert "reads the table twice" in capsys.readouterr().err
