"""`pogp run`, in process and small: its numbers against models run without it."""

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
from pogp.cli import comparison, options, run
from pogp.evaluation import passage, streams
from pogp.evaluation.methods import METHODS
from pogp.report import run_text
from pogp.report.run_record import Record

SAMPLES, TUNE, SEED, CAP = 300, 60, 4, 40
LABELS = ["OnlineGP", "AbsorbingPOG", "POG", "random subset", "dense GP"]
SMALL = ["run", "--samples", str(SAMPLES), "--tune", str(TUNE), "--seed", str(SEED)]
SMALL += ["--max-size", str(CAP)]


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
    """The data, the hyperparameters and the models, each learned in one call."""
    data = pogp.datasets.arm(SAMPLES, seed=SEED)
    x, y = data.x_train, data.y_train
    mean = y[:TUNE].mean()
    tuned = pogp.tune(x[:TUNE], y[:TUNE], mean=mean, seed=SEED)
    given = {"kernel": tuned.kernel, "noise": tuned.noise, "mean": mean}
    models = {
        "OnlineGP": pogp.OnlineGP(max_size=CAP, seed=SEED),
        "AbsorbingPOG": pogp.AbsorbingPOG(**given, budget=None, max_size=CAP),
        "POG": pogp.POG(**given, budget=0.6, view="everywhere", max_size=CAP),
        "random subset": pogp.RandomSubset(**given, max_size=CAP, seed=SEED),
        "dense GP": pogp.DenseGP(**given),
    }
    traces = {}
    for label, model in models.items():
        stop = TUNE + (200 if label == "dense GP" else SAMPLES)
        traces[label] = model.learn(x[TUNE:stop], y[TUNE:stop])
    return data, tuned, traces, models


# ---- the numbers


@pytest.mark.parametrize("label", LABELS)
def test_the_table_has_the_scores_of_the_models(outcome, expected, label):
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


@pytest.mark.parametrize("label", LABELS)
def test_predictions_before_learning_are_scored(outcome, expected, label):
    data, _, traces, models = expected
    y = data.y_train[TUNE : TUNE + models[label].seen]
    (method,) = (m for m in outcome.record.methods if METHODS[m.name].label == label)
    expect = metrics.smse(y, traces[label].mean, np.var(data.y_train))
    assert method.prequential.smse == pytest.approx(expect, rel=1e-6)
    expect = metrics.coverage(y, traces[label].mean, traces[label].variance)
    assert method.prequential.coverage == expect


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
    contrast = outcome.record.method("pog").contrast
    assert contrast.difference == pytest.approx(np.mean(ours - theirs))
    standard_error = np.std(ours - theirs, ddof=1) / math.sqrt(len(ours))
    assert contrast.standard_error == pytest.approx(standard_error)


def test_run_json_has_the_printed_numbers(outcome):
    fields = json.loads((outcome.folder / "run.json").read_text())
    assert outcome.out == run_text.text(outcome.record) + "\n"
    assert fields["settings"] == {
        "data": "arm",
        "samples": SAMPLES,
        "tune": TUNE,
        "budget": 0.6,
        "view": "everywhere",
        "max_size": CAP,
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


def test_the_dense_limit_is_printed(outcome):
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
    monkeypatch.setattr(passage.time, "process_time", clock)
    stream = streams.SOURCES["arm"].stream(100, 10, seed=0)
    stages = list(passage.follow(Model(pogp.RBF(), 0.1, 20), stream, [20, 90], chunk=13))
    assert sum(stage.seconds for stage in stages) == 2.0 * 90


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
    assert f"M {CAP}, error " in lines[-1]
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


def test_without_a_cap_all_methods_get_the_size_of_pog(tmp_path):
    free = Outcome(tmp_path, "--quiet", "--no-figure", "--dense-limit", "0", "--max-size", "none")
    sizes = {method.name: method.final.size for method in free.record.methods}
    assert sizes["pog"] > CAP
    assert set(sizes.values()) == {sizes["pog"]}
    assert "the size that POG ends with" in " ".join(free.out.split())


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
def test_the_view_sets_the_default_budget_and_removals(asked, options, view, budget, max_removals):
    settings = asked(*options)
    assert (settings.view, settings.budget, settings.max_removals) == (view, budget, max_removals)


def test_the_help_has_the_defaults(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["run", "--help"])
    assert stop.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    for view, (budget, _) in run.DEFAULTS.items():
        assert f"{budget:g} for {view}".replace("e-0", "e-") in text
    assert f"(default: {run.MAX_SIZE})" in text
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


def test_missing_data_are_reported_in_one_line(capsys, tmp_path, monkeypatch):
    def load(name):
        raise pogp.datasets.DataUnavailable(f"no {name}. Tried:\n  here: empty\n  there: too\nSo.")

    monkeypatch.setattr(pogp.datasets, "load", load)
    line = complaint(capsys, "--out", str(tmp_path), "--data", "boston")
    assert line == "pogp: error: no boston. Tried: here: empty; there: too; So."


def test_an_impossible_folder_is_reported_before_the_run(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(comparison, "execute", pytest.fail)
    (tmp_path / "file").write_text("")
    assert "file" in complaint(capsys, "--out", str(tmp_path / "file"))


def test_control_c_ends_the_command_without_a_traceback(capsys, tmp_path, monkeypatch):
    def execute(settings, console):
        raise KeyboardInterrupt

    monkeypatch.setattr(comparison, "execute", execute)
    assert cli.main([*SMALL, "--out", str(tmp_path)]) == 130
    assert capsys.readouterr().err == "pogp: interrupted\n"


# ---- from outside


def test_the_package_is_a_program():
    result = subprocess.run(
        [sys.executable, "-m", "pogp", "--version"], capture_output=True, text=True, timeout=60
    )
    assert (result.returncode, result.stdout) == (0, f"pogp {pogp.__version__}\n")


def test_only_the_command_that_is_called_is_imported():
    code = (
        "import sys, pogp.cli; pogp.cli.main(['info', 'nowhere']); "
        "print([m for m in pogp.cli.COMMANDS if f'pogp.cli.{m}' in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "['info']\n"
