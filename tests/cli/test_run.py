"""The command line, in process and small; its numbers against models run without it."""

import argparse
import io
import json
import math
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import pytest
from PIL import Image

import pogp
from pogp import cli, metrics
from pogp.cli import comparison, options, progress, run, streams
from pogp.report import Record, table

SAMPLES, TUNE, SEED = 300, 60, 4
SMALL = ["run", "--samples", str(SAMPLES), "--tune", str(TUNE), "--seed", str(SEED)]


class Outcome:
    """What one call of the command left behind."""

    def __init__(self, folder, *options):
        self.folder = folder
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            self.code = cli.main([*SMALL, "--out", str(folder), *options])
        self.out, self.err = out.getvalue(), err.getvalue()

    @property
    def record(self):
        return Record.read(self.folder / "run.json")

    def row(self, label):
        """Return the cells of one method: they are two spaces or more apart."""
        (line,) = (line for line in self.out.splitlines() if line.startswith(f"{label}  "))
        return [cell.strip() for cell in line.split("  ") if cell.strip()]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    return Outcome(tmp_path_factory.mktemp("run"), "--dense-limit", "200")


@pytest.fixture(scope="module")
def expected():
    """The three models, learned in one go, and the data."""
    data = pogp.datasets.arm(SAMPLES, seed=SEED)
    x, y = data.x_train, data.y_train
    mean = y[:TUNE].mean()
    tuned = pogp.tune(x[:TUNE], y[:TUNE], mean=mean, seed=SEED)
    pog = pogp.POG(tuned.kernel, tuned.noise, 0.6, view="everywhere", mean=mean)
    trace = pog.learn(x[TUNE:], y[TUNE:])
    random = pogp.RandomSubset(tuned.kernel, tuned.noise, pog.size, seed=SEED, mean=mean)
    random.learn(x[TUNE:], y[TUNE:])
    dense = pogp.DenseGP(tuned.kernel, tuned.noise, mean=mean)
    dense.learn(x[TUNE : TUNE + 200], y[TUNE : TUNE + 200])
    models = {"POG": pog, "random subset": random, "dense GP": dense}
    return data, tuned, trace, models


# ---- the numbers


@pytest.mark.parametrize("label", ["POG", "random subset", "dense GP"])
def test_the_table_holds_what_the_models_give(outcome, expected, label):
    data, _, _, models = expected
    model = models[label]
    mean, variance = model.predict(data.x_test)
    _, smse, msll, nlpd, coverage, order, seen, microseconds, _ = outcome.row(label)
    expect_smse = metrics.smse(data.y_test, mean, np.var(data.y_train))
    assert float(smse) == pytest.approx(expect_smse, abs=6e-5)
    assert float(msll) == pytest.approx(metrics.msll(data.y_test, mean, variance), abs=6e-5)
    assert float(nlpd) == pytest.approx(metrics.nlpd(data.y_test, mean, variance), abs=6e-5)
    expect_coverage = 100 * metrics.coverage(data.y_test, mean, variance)
    assert float(coverage.rstrip("%")) == pytest.approx(expect_coverage, abs=0.06)
    assert (int(order), int(seen)) == (model.size, model.seen)
    assert int(microseconds) >= 0


def test_predict_then_learn_is_scored_and_traced(outcome, expected):
    data, _, trace, _ = expected
    y, variance = data.y_train[TUNE:], np.var(data.y_train)
    pog, steps = outcome.record.methods[0], outcome.record.steps
    assert pog.prequential.smse == pytest.approx(metrics.smse(y, trace.mean, variance))
    assert pog.prequential.coverage == metrics.coverage(y, trace.mean, trace.variance)
    assert f"POG {pog.prequential.smse:.4f} ({100 * pog.prequential.coverage:.1f}%)" in outcome.out
    np.testing.assert_allclose(steps.error, (y - trace.mean) ** 2 / variance, rtol=1e-3)
    for name in ("novelty", "change", "spent"):
        expect = getattr(trace, name)
        np.testing.assert_allclose(getattr(steps, name), expect, rtol=1e-3, atol=1e-9)


def test_the_hyperparameters_are_those_of_the_slice(outcome, expected):
    data, tuned, _, _ = expected
    found = outcome.record.hyperparameters
    assert found.noise == pytest.approx(tuned.noise)
    assert found.lengthscales == pytest.approx(tuned.kernel.lengthscale.tolist())
    assert found.variance == pytest.approx(tuned.kernel.variance)
    assert found.mean == data.y_train[:TUNE].mean()
    assert f"noise variance {tuned.noise:.3g}" in outcome.out


def test_the_contrast_is_paired_over_the_test_set(outcome, expected):
    data, _, _, models = expected
    ours, theirs = (
        (data.y_test - models[label].predict(data.x_test)[0]) ** 2 / np.var(data.y_train)
        for label in ("POG", "random subset")
    )
    contrast = outcome.record.method("random").contrast
    assert contrast.difference == pytest.approx(np.mean(theirs - ours))
    standard_error = np.std(theirs - ours, ddof=1) / math.sqrt(len(ours))
    assert contrast.standard_error == pytest.approx(standard_error)


def test_the_file_says_what_was_printed(outcome):
    fields = json.loads((outcome.folder / "run.json").read_text())
    assert outcome.out == table.text(outcome.record) + "\n"
    assert fields["settings"] == {
        "data": "arm",
        "samples": SAMPLES,
        "tune": TUNE,
        "budget": 0.6,
        "view": "everywhere",
        "max_size": None,
        "max_removals": None,
        "dense_limit": 200,
        "seed": SEED,
    }
    assert fields["environment"]["pogp"] == pogp.__version__
    assert fields["environment"]["backend"] == pogp.backend()


def test_checkpoints_lead_to_the_end(outcome):
    for method in outcome.record.methods:
        seen = [point.seen for point in method.checkpoints]
        assert seen == sorted(set(seen))
        assert seen[-1] == (200 if method.name == "dense" else SAMPLES - TUNE)


def test_the_dense_limit_is_told(outcome):
    assert f"fed the first 200 of {SAMPLES - TUNE} samples only" in outcome.out


def test_evaluation_takes_no_time_from_learning(monkeypatch):
    class Clock:
        now = 0.0

        def __call__(self):
            return self.now

    class Model(pogp.RandomSubset):
        def learn(self, X, y):
            clock.now += 2.0 * len(y)
            return super().learn(X, y)

        def predict(self, X, latent=False):
            clock.now += 1000.0
            return super().predict(X, latent)

    clock = Clock()
    monkeypatch.setattr(comparison.time, "perf_counter", clock)
    stream = streams.SOURCES["arm"].cut(100, 10, seed=0)
    model = Model(pogp.RBF(), 0.1, 20)
    passage = comparison.follow("random", model, stream, 90, 7, progress.Console(None))
    assert passage.seconds == 2.0 * 90


# ---- what is written where


def test_the_figure_is_a_real_one(outcome):
    with Image.open(outcome.folder / "run.png") as image:
        assert image.format == "PNG"
        assert min(image.size) > 800
        assert len(image.convert("RGB").getcolors(1 << 24)) > 50


def test_progress_goes_to_stderr_a_line_per_tenth(outcome):
    lines = [line for line in outcome.err.splitlines() if line.startswith("POG ")]
    assert 8 <= len(lines) <= 10
    assert "240/240" in lines[-1]
    assert f"M {outcome.record.methods[0].final.size}, error " in lines[-1]
    assert "\r" not in outcome.err


def test_quiet_prints_the_table_and_nothing_else(tmp_path):
    quiet = Outcome(tmp_path, "--quiet", "--no-figure", "--dense-limit", "0")
    assert quiet.code == 0
    assert quiet.err == ""
    assert quiet.row("POG")
    assert "dense GP  " not in quiet.out
    assert "left out (--dense-limit 0)" in quiet.out
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_without_matplotlib_the_table_is_still_there(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    bare = Outcome(tmp_path, "--quiet", "--dense-limit", "0")
    assert bare.code == 0
    assert bare.row("random subset")
    assert "pip install 'pogp[plot]'" in bare.err
    assert not (tmp_path / "run.png").exists()


# ---- options


@pytest.fixture
def asked(outcome, monkeypatch, tmp_path):
    """Return the settings that options lead to; the job itself is spared."""
    seen = []

    def execute(settings, console):
        seen.append(settings)
        return outcome.record

    def ask(*options):
        code = cli.main(["run", "--quiet", "--no-figure", "--out", str(tmp_path), *options])
        assert code == 0
        return seen[-1]

    monkeypatch.setattr(comparison, "execute", execute)
    return ask


@pytest.mark.parametrize(
    ("options", "view", "budget", "max_removals"),
    [
        ([], "everywhere", 0.6, None),
        (["--view", "newest"], "newest", 1e-5, 1),
        (["--view", "newest", "--max-removals", "all"], "newest", 1e-5, None),
        (["--view", "newest", "--budget", "1e-3"], "newest", 1e-3, 1),
        (["--budget", "none", "--max-removals", "2"], "everywhere", None, 2),
    ],
)
def test_the_view_decides_what_was_not_asked_for(asked, options, view, budget, max_removals):
    settings = asked(*options)
    assert (settings.view, settings.budget, settings.max_removals) == (view, budget, max_removals)


def test_the_help_tells_the_defaults(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["run", "--help"])
    assert stop.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    for view, (budget, _) in run.DEFAULTS.items():
        assert f"--view {view} --budget {budget:g}".replace("e-0", "e-") in text
    assert "500 for arm" in text


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--data", "mnist"], "invalid choice: 'mnist'"),
        (["--samples", "many"], "expected a whole number ≥ 2, got 'many'"),
        (["--samples", "1"], "expected a whole number ≥ 2, got '1'"),
        (["--seed", "-1"], "expected a whole number ≥ 0, got '-1'"),
        (["--budget", "-0.1"], "expected a number ≥ 0, got '-0.1'"),
        (["--budget", "nan"], "expected a number ≥ 0, got 'nan'"),
        (["--budget", "small"], "expected a number ≥ 0, got 'small'"),
        (["--max-size", "0"], "expected a whole number ≥ 1, got '0'"),
        (["--max-removals", "some"], "expected a whole number ≥ 0, got 'some'"),
        (["--view", "nowhere"], "invalid choice: 'nowhere'"),
    ],
)
def test_bad_options_are_named(capsys, options, complaint):
    with pytest.raises(SystemExit) as stop:
        cli.main(["run", *options])
    assert stop.value.code == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["learn", "t.csv", "--checkpoint", "0"], "expected a whole number ≥ 1, got '0'"),
        (["learn", "t.csv", "--columns", "a,,b"], "expected names between commas, got 'a,,b'"),
        (["learn", "t.csv", "--columns", "a", "--exclude", "b"], "not allowed with"),
        (["learn", "t.csv", "--resume", "--from", "m.pogp"], "not allowed with"),
        (["learn", "t.csv", "--delimiter", "ab"], "expected one character, or tab, got 'ab'"),
        (["learn", "t.csv", "--kernel", "linear"], "expected one of rbf, matern12"),
        (["learn", "t.csv", "--method", "vfe"], "invalid choice: 'vfe'"),
        (["learn", "t.csv", "--option", "batch"], "expected NAME=VALUE, got 'batch'"),
        (["learn", "t.csv", "--on-bad-row", "weep"], "invalid choice: 'weep'"),
        (["predict", "m.pogp", "t.csv", "--level", "95"], "between 0 and 1, got '95'"),
        (["predict", "m.pogp"], "the following arguments are required: SOURCE"),
    ],
)
def test_bad_options_of_other_commands_are_named(capsys, options, complaint):
    with pytest.raises(SystemExit) as stop:
        cli.main(options)
    assert stop.value.code == 2
    assert complaint in capsys.readouterr().err


def test_settings_are_numbers_words_or_neither():
    read = [options.setting(text)[1] for text in ("a=5", "a=1e-3", "a=True", "a=none", "a=rbf")]
    assert read == [5, 1e-3, True, None, "rbf"]
    assert options.setting("max-removals=1") == ("max_removals", 1)
    assert options.delimiter("tab") == options.delimiter("\\t") == "\t"


def test_a_command_is_needed(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main([])
    assert stop.value.code == 2
    assert "COMMAND" in capsys.readouterr().err


# ---- errors


def complaint(capsys, *options):
    """Run into an error and return its one line."""
    assert cli.main([*SMALL, "--quiet", *options]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("pogp: error: ")
    return line


def test_tuning_must_leave_a_stream(capsys, tmp_path):
    line = complaint(capsys, "--out", str(tmp_path), "--tune", "300")
    assert "with 300 training samples it can have from 2 to 299, got 300" in line


def test_data_that_are_nowhere_are_told_in_one_line(capsys, tmp_path, monkeypatch):
    def load(name):
        raise pogp.datasets.DataUnavailable(f"no {name}. Tried:\n  here: empty\n  there: too\nSo.")

    monkeypatch.setattr(pogp.datasets, "load", load)
    line = complaint(capsys, "--out", str(tmp_path), "--data", "boston")
    assert line == "pogp: error: no boston. Tried: here: empty; there: too; So."


def test_a_folder_that_cannot_be_is_told_before_the_work(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(comparison, "execute", pytest.fail)
    (tmp_path / "file").write_text("")
    assert "file" in complaint(capsys, "--out", str(tmp_path / "file"))


def test_control_c_ends_it_quietly(capsys, tmp_path, monkeypatch):
    def execute(settings, console):
        raise KeyboardInterrupt

    monkeypatch.setattr(comparison, "execute", execute)
    assert cli.main([*SMALL, "--out", str(tmp_path)]) == 130
    assert capsys.readouterr().err == "pogp: interrupted\n"


# ---- streams


@pytest.fixture
def published(tmp_path, monkeypatch):
    """A boston of 40 training samples, numbered."""
    y = np.arange(40.0)
    arrays = {"x_train": y[:, None], "y_train": y, "x_test": y[:7, None], "y_test": y[:7]}
    np.savez(tmp_path / "boston.npz", **arrays)
    monkeypatch.setenv("POGP_DATA", str(tmp_path))
    return streams.SOURCES["boston"]


def test_a_published_set_is_streamed_in_an_order_of_the_seed(published):
    stream, again, other = (published.cut(None, 10, seed) for seed in (1, 1, 2))
    whole = np.concatenate((stream.y_tune, stream.y))
    assert sorted(whole) == list(range(40))
    np.testing.assert_array_equal(stream.y, stream.x[:, 0])
    np.testing.assert_array_equal(stream.y, again.y)
    assert not np.array_equal(stream.y, other.y)
    np.testing.assert_array_equal(stream.y_test, np.arange(7.0))


def test_a_published_set_can_be_cut_short_but_not_stretched(published):
    stream = published.cut(25, 10, seed=0)
    assert len(stream.y) == 15
    assert stream.train_variance == np.var(np.concatenate((stream.y_tune, stream.y)))
    with pytest.raises(ValueError, match="boston has 40 training samples, fewer than 41"):
        published.cut(41, 10, seed=0)


@pytest.mark.parametrize("name", ["arm", "gaussian", "chi_square"])
def test_a_simulated_set_is_streamed_as_it_was_drawn(name):
    stream = streams.SOURCES[name].cut(50, 20, seed=3)
    data = getattr(pogp.datasets, name)(50, seed=3)
    np.testing.assert_array_equal(stream.y, data.y_train[20:])
    assert stream.mean == data.y_train[:20].mean()


# ---- the progress display


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_gets_one_line_that_moves(monkeypatch):
    monkeypatch.setenv("COLUMNS", "90")
    now = iter([0.0, 1.0, 2.0])
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(now))
    terminal = Terminal()
    with progress.Console(terminal).progress("POG", 200) as bar:
        bar.update(50, "M 10, error 0.500")
        bar.update(100, "M 12, error 0.400")
    _, first, second = terminal.getvalue().split("\r")
    assert first.endswith(" 50/200     50/s   0:03 left  M 10, error 0.500")
    assert second.endswith("100/200     50/s   0:02 left  M 12, error 0.400\n")
    assert len(first) == len(second) - 1 == 89
    assert "[############.............]" in second


def test_without_a_total_samples_are_counted_and_the_way_is_told(monkeypatch):
    monkeypatch.setenv("COLUMNS", "90")
    now = iter([0.0, 10.0, 20.0])
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(now))
    terminal = Terminal()
    # Of the second half of the way, which is all that is left, a tenth took ten seconds.
    with progress.Console(terminal).progress("table.csv", done=5000, share=0.5) as bar:
        bar.update(6000, "M 10", 0.55)
        bar.update(8000, "M 12", None)
    _, first, second = terminal.getvalue().split("\r")
    assert first.rstrip().endswith(" 6,000    100/s   1:30 left  M 10")
    assert "[#" in first
    assert second.rstrip().endswith(" 8,000    150/s   0:20  M 12")
    assert "[" not in second


def test_the_rate_is_that_of_the_last_moments(monkeypatch):
    now = iter([0.0, 20.0, *np.arange(21.0, 61.0)])  # twenty seconds of tuning
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(now))
    terminal = Terminal()
    with progress.Console(terminal).progress("table.csv") as bar:
        for done in range(1000, 42_000, 1000):
            bar.update(done, "", done / 100_000)
    *_, last = terminal.getvalue().rstrip().split("\r")
    assert "  1000/s   0:59 left" in last


def test_a_terminal_is_not_drawn_to_death(monkeypatch):
    now = iter(np.arange(0.0, 1.0, 0.001))
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(now))
    terminal = Terminal()
    with progress.Console(terminal).progress("POG", 800) as bar:
        for done in range(1, 801):
            bar.update(done, "")
    assert 8 <= terminal.getvalue().count("\r") <= 10
    assert "800/800" in terminal.getvalue()


def test_elsewhere_there_is_a_line_now_and_then(monkeypatch):
    now = iter(np.arange(0.0, 200.0))
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(now))
    out = io.StringIO()
    with progress.Console(out).progress("stdin") as lines:
        for done in range(100):
            lines.update(1000 * done, "M 10")
    assert out.getvalue().count("\n") == 3


def test_a_note_takes_the_place_of_the_bar(monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    terminal = Terminal()
    console = progress.Console(terminal)
    with console.progress("POG", 200) as bar:
        bar.update(100, "M 10")
        console.note("line 7: skipped")
    drawn, note = terminal.getvalue().split("\r")[1:]
    assert note == "line 7: skipped".ljust(49) + "\n\n"
    assert len(drawn) == 49


def test_a_narrow_terminal_is_not_overrun(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    terminal = Terminal()
    with progress.Progress("POG", 200, terminal) as bar:
        bar.update(200, "M 10, error 0.500")
    assert len(terminal.getvalue().strip("\r\n")) == 39


# ---- from outside


def test_the_package_is_a_program():
    result = subprocess.run(
        [sys.executable, "-m", "pogp", "--version"], capture_output=True, text=True, timeout=60
    )
    assert (result.returncode, result.stdout) == (0, f"pogp {pogp.__version__}\n")


def test_a_command_is_one_small_module():
    parser = argparse.ArgumentParser()
    subparsers = parser.add_subparsers()
    for command in cli.COMMANDS:
        command.add_parser(subparsers)
    assert callable(parser.parse_args(["run"]).command)
