"""Table, reading and figure of records made by hand."""

from dataclasses import replace

import matplotlib
import pytest
from PIL import Image

from pogp.evaluation.scores import Scores
from pogp.report import run_figure, run_text, style
from pogp.report.run_record import (
    Checkpoint,
    Contrast,
    Hyperparameters,
    Method,
    Record,
    Settings,
)
from pogp.report.run_text import reading

STREAMED = 400
SETTINGS = Settings("arm", 500, 100, 0.6, "everywhere", 50, None, 5000, 0)


def make_method(name, smse=0.1, contrast=(0.0, 0.0), size=50, **changes):
    points = [
        Checkpoint(seen, min(size, seen), Scores(smse * STREAMED / seen, -0.5, 0.42, 0.951))
        for seen in (25, 100, STREAMED)
    ]
    prequential = Scores(2 * smse, -0.4, 0.5, 0.9)
    fields = {"microseconds": 12.4, "nbytes": 3 << 20}
    return Method(
        name,
        **fields | changes,
        prequential=prequential,
        contrast=Contrast(*contrast),
        checkpoints=points,
    )


def make_record(*others, **changes):
    fields = {
        "settings": SETTINGS,
        "environment": {"pogp": "0"},
        "inputs": 8,
        "streamed": STREAMED,
        "test_samples": 30,
        "train_variance": 1.0,
        "hyperparameters": Hyperparameters(100, 1.23, [0.5, 2.0], 1.5, 0.01, 0.2, -10.0),
        "methods": [make_method("pog"), *others],
    }
    return Record(**fields | changes)


def test_a_record_survives_its_file(tmp_path):
    record = make_record(make_method("random", 0.2, (0.1, 0.01)))
    record.write(tmp_path / "run.json")
    assert Record.read(tmp_path / "run.json") == record


def test_a_method_is_found_by_name():
    record = make_record(make_method("random"))
    assert record.method("random") is record.methods[1]
    assert record.method("dense") is None


# ---- the table


def test_the_table_is_aligned_and_fits():
    record = make_record(make_method("random"), make_method("dense", size=STREAMED))
    lines = run_text.text(record).splitlines()
    assert max(map(len, lines)) <= 100
    start = next(i for i, line in enumerate(lines) if line.startswith("method"))
    head = "method test SMSE MSLL NLPD in 95% band order samples µs/sample memory"
    assert " ".join(lines[start].split()) == head
    block = lines[start : start + 5]
    assert len(set(map(len, block))) == 1
    row = "POG 0.1000 -0.5000 0.4200 95.1% 50 400 12 3.0 MiB"
    assert " ".join(block[2].split()) == row


def test_the_settings_are_above_the_table():
    settings = replace(SETTINGS, view="newest", budget=None, max_size=70, max_removals=1)
    text = " ".join(run_text.text(make_record(settings=settings, inputs=1)).split())
    assert "arm, seed 0: 400 samples streamed, 30 test samples, 1 input." in text
    assert "Cap on the points kept: 70. POG: view newest, no budget, max-removals 1." in text
    assert "from the 100 samples before those (1.2 s): noise variance 0.01," in text
    assert "signal variance 1.5, length-scales 0.5 to 2." in text


def test_one_lengthscale_is_no_range():
    record = make_record()
    one = replace(record.hyperparameters, lengthscales=[0.25])
    assert "length-scales 0.25." in run_text.text(replace(record, hyperparameters=one))


@pytest.mark.parametrize(
    ("nbytes", "expect"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1 << 30, "1.0 GiB"),
        (1 << 52, "4096.0 TiB"),
    ],
)
def test_memory_is_in_human_units(nbytes, expect):
    assert run_text.human_bytes(nbytes) == expect


# ---- the reading


def read(pog_smse, contrast, *others):
    pog = make_method("pog", pog_smse, contrast)
    return reading(make_record(methods=[pog, make_method("random", 0.2), *others]))


def test_a_clear_gain_is_called_one():
    assert read(0.1, (-0.1, 0.02)) == [
        "POG with 50 points is more accurate than a random subset of 50: its squared error is 50% "
        "lower (5.0 standard errors)."
    ]


def test_a_loss_is_called_one():
    assert read(0.25, (0.05, 0.025)) == [
        "POG with 50 points is less accurate than a random subset of 50: its squared error is 25% "
        "higher (2.0 standard errors)."
    ]


@pytest.mark.parametrize(("smse", "difference"), [(0.19, -0.01), (0.21, 0.01)])
def test_an_unclear_difference_is_not_called_clear(smse, difference):
    (sentence,) = read(smse, (difference, 0.0051))
    assert f"not clearly {'more' if difference < 0 else 'less'} accurate" in sentence


def test_no_difference_is_called_none():
    (sentence,) = read(0.2, (0.0, 0.0))
    assert sentence == "POG with 50 points is exactly as accurate as the random subset."


def test_the_dense_gp_is_compared_with_the_best_bounded_method():
    dense = make_method("dense", 0.0004, (-0.2, 0.01), size=STREAMED, nbytes=36 << 20)
    absorbing = make_method("absorbing", 0.15, (-0.05, 0.01))
    assert read(0.1, (-0.1, 0.02), absorbing, dense)[-1] == (
        "The dense GP keeps 8.0 times as many points as POG and needs 12 times as much memory: its "
        "squared error is over 99% lower."
    )


# ---- the figure


def size_of(path):
    with Image.open(path) as image:
        assert image.format == "PNG"
        return image.size


@pytest.mark.parametrize(
    "others", [(), ("online", "absorbing", "random", "dense")], ids=["alone", "all five"]
)
def test_every_record_can_be_drawn_and_matplotlib_stays_as_it_was(others, tmp_path):
    before = dict(matplotlib.rcParams)
    run_figure.draw(make_record(*map(make_method, others)), tmp_path / "run.png")
    assert size_of(tmp_path / "run.png") == (1152, 1056)
    assert dict(matplotlib.rcParams) == before


def test_the_format_follows_the_name(tmp_path):
    run_figure.draw(make_record(), tmp_path / "run.svg")
    assert "<svg" in (tmp_path / "run.svg").read_text()


def test_every_method_has_a_colour_of_its_own():
    colours = [look.colour for look in style.METHODS.values()]
    assert len(set(colours)) == len(colours)
