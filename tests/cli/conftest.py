"""A table, the model of it, and a way to call `pogp learn`, for the tests of the commands."""

import numpy as np
import pytest

import pogp
from pogp import cli
from pogp.cli import learn
from pogp.cli.notes import Notes

from ..conftest import smooth_2d

ROWS = 1600
SMALL = {"warmup": 40, "max_size": 25}
OPTIONS = ["--method", "absorbing", "--warmup", "40", "--max-size", "25"]


@pytest.fixture(scope="module")
def data():
    X, y = smooth_2d(ROWS, seed=3)
    return X * [1.0, 1000.0] + [0.0, 5000.0], 20 + 3 * y  # wild units


@pytest.fixture(scope="module")
def expected(data):
    """The model of the whole table, learned in one go."""
    model = pogp.SelfTuning("absorbing", scale=True, **SMALL)
    model.learn(*data)
    return model


def text_of(X, y, names=("a", "b", "y")):
    """Return CSV of samples; numbers read back as they are."""
    rows = np.column_stack([X, y]).tolist()
    return ",".join(names) + "\n" + "".join(",".join(map(repr, row)) + "\n" for row in rows)


@pytest.fixture
def table(tmp_path, data):
    path = tmp_path / "table.csv"
    path.write_text(text_of(*data))
    return path


@pytest.fixture
def run(tmp_path, capsys):
    """Call `pogp learn` on a file, with the small model, and return code, output and errors."""

    def run(source, *options, model=OPTIONS):
        save = [] if "--save" in options else ["--save", str(tmp_path / "m.pogp")]
        code = cli.main(["learn", str(source), *save, *model, *map(str, options)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def learn_in_steps(model, X, y):
    """Learn as the command does: to the next multiple of its step."""
    while len(y):
        room = learn.STEP - model.seen % learn.STEP
        model.learn(X[:room], y[:room])
        X, y = X[room:], y[room:]


def saved(path):
    return pogp.load(path), Notes.read(path)
