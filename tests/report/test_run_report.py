"""Table, reading and figure of records made by hand."""

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from pogp.report import Record, figures, style, table
from pogp.report.record import (
    Checkpoint,
    Contrast,
    Hyperparameters,
    Method,
    Scores,
    Settings,
    Steps,
)
from pogp.report.run_prose import reading

STREAMED = 400
SETTINGS = Settings("arm", 500, 100, 0.6, "everywhere", None, None, 5000, 0)


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
    rng = np.random.default_rng(0)
    draws = [rng.uniform(0.1, 0.6, STREAMED).tolist() for _ in range(4)]
    fields = {
        "settings": SETTINGS,
        "environment": {"pogp": "0"},
        "source": "made up",
        "inputs": 8,
        "streamed": STREAMED,
        "test_samples": 30,
        "train_variance": 1.0,
        "hyperparameters": Hyperparameters(100, 1.23, [0.5, 2.0], 1.5, 0.01, 0.2, -10.0),
        "methods": [make_method("pog"), *others],
        "steps": Steps(*draws),
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
    lines = table.text(record).splitlines()
    assert max(map(len, lines)) <= 100
    start = next(i for i, line in enumerate(lines) if line.startswith("method"))
    head = "method test SMSE MSLL NLPD in 95% band order samples µs/sample memory"
    assert " ".join(lines[start].split()) == head
    block = lines[start : start + 5]
    assert len(set(map(len, block))) == 1
    row = "POG 0.1000 -0.5000 0.4200 95.1% 50 400 12 3.0 MiB"
    assert " ".join(block[2].split()) == row


def test_what_was_run_stands_above():
    settings = replace(SETTINGS, view="newest", budget=None, max_size=70, max_removals=1)
    text = " ".join(table.text(make_record(settings=settings, inputs=1)).split())
    assert "arm, seed 0: 400 samples streamed, 30 test samples, 1 input." in text
    assert "POG: view newest, no budget, max-removals 1, max-size 70." in text
    assert "from the 100 samples before those (1.2 s): noise variance 0.01," in text
    assert "signal variance 1.5, length-scales 0.5 to 2." in text


def test_one_lengthscale_is_no_range():
    record = make_record()
    one = replace(record.hyperparameters, lengthscales=[0.25])
    assert "length-scales 0.25." in table.text(replace(record, hyperparameters=one))


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
    assert table.memory(nbytes) == expect


# ---- the reading


def test_a_clear_gain_is_called_one():
    record = make_record(make_method("random", 0.2, (0.1, 0.02)))
    assert reading(record) == [
        "With 50 points POG is more accurate than a random subset, with a squared error 50% lower "
        "(5.0 standard errors)."
    ]


def test_a_loss_is_called_one():
    record = make_record(make_method("random", 0.08, (-0.02, 0.01)))
    assert reading(record) == [
        "With 50 points a random subset is more accurate than POG, with a squared error 20% lower "
        "(2.0 standard errors). Choosing the points did not pay here."
    ]


@pytest.mark.parametrize(
    ("smse", "difference", "better"), [(0.11, 0.01, "POG"), (0.09, -0.01, "a random subset")]
)
def test_an_unclear_difference_is_not_called_clear(smse, difference, better):
    (sentence,) = reading(make_record(make_method("random", smse, (difference, 0.0051))))
    assert f"{better} is not clearly more accurate than" in sentence
    assert "did not pay" not in sentence


def test_no_difference_is_none():
    (sentence,) = reading(make_record(make_method("random")))
    assert sentence == "With 50 points POG is exactly as accurate as a random subset."


def test_the_dense_gp_is_weighed_by_points_and_time():
    dense = make_method("dense", 0.0004, (-0.0996, 0.01), size=STREAMED, microseconds=31.0)
    (sentence,) = reading(make_record(dense))
    assert sentence == (
        "The dense GP keeps 8.0 times as many points and takes 2.5 times as long per sample: it is "
        "more accurate than POG, with a squared error over 99% lower (10.0 standard errors)."
    )


# ---- the figure


def size_of(path):
    with Image.open(path) as image:
        assert image.format == "PNG"
        return image.size


def variants():
    plain = make_record(make_method("random", 0.2), make_method("dense", 0.05, size=STREAMED))
    steps = plain.steps
    still = replace(steps, change=[0.0] * STREAMED, spent=[1e-17] * STREAMED)
    short = Steps(*([value] for value in (0.1, 0.2, 0.3, 0.0)))
    return {
        "plain": plain,
        "alone, without budget": make_record(settings=replace(SETTINGS, budget=None)),
        "tiny budget": replace(plain, settings=replace(SETTINGS, budget=1e-5)),
        "nothing changes": replace(plain, steps=still),
        "one sample": replace(plain, steps=short),
    }


@pytest.mark.parametrize("name", variants())
def test_every_record_can_be_drawn(name, tmp_path):
    figures.draw(variants()[name], tmp_path / "run.png")
    assert size_of(tmp_path / "run.png") == (1152, 1152)


def test_the_format_follows_the_name(tmp_path):
    figures.draw(make_record(), tmp_path / "run.svg")
    assert "<svg" in (tmp_path / "run.svg").read_text()


def test_drawing_leaves_matplotlib_as_it_was(tmp_path):
    import matplotlib

    before = dict(matplotlib.rcParams)
    figures.draw(make_record(), tmp_path / "run.png")
    assert dict(matplotlib.rcParams) == before


def test_every_method_has_a_colour_of_its_own():
    colours = [look.colour for look in style.METHODS.values()]
    assert len(set(colours)) == len(colours)
