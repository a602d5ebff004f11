"""`pogp.dask`: the sums of plain Python, bit for bit, on workers that may die."""

import os
from pathlib import Path

import dask
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
import pytest

import pogp.dask
from pogp import sums
from pogp.sums.columns import Columns, Job, added, finished, planned
from pogp.sums.drawing import Drawn

from .conftest import smooth_2d

OPTIONS = {"max_size": 30, "kernel": "RBF", "scale": True, "seed": 3}
X, Y = smooth_2d(2000)
FRAME = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": Y})
PARTS = np.array_split(np.arange(2000), 5)


def frame(changed=None):
    """The table in five partitions, one of them empty."""
    table = FRAME.copy() if changed is None else changed
    pieces = [table.iloc[rows] for rows in PARTS]
    return dd.from_map(lambda i: pieces[i] if i < 5 else pieces[0][:0], range(6), meta=table[:0])


def plain(column=lambda piece, name: piece[name].to_numpy()):
    """The same by plain Python."""
    work = Job(Columns(("a", "b"), ("y",)), 500, seed=3)
    pieces = [FRAME.iloc[rows] for rows in PARTS] + [FRAME[:0]]
    drawn = [work.draw([piece], column, number) for number, piece in enumerate(pieces)]
    plan, held_out = planned(added(drawn, Drawn), 300, **OPTIONS)
    parts = [plan.sums([(X[rows], Y[rows])]) for rows in PARTS]
    total = sums.total([*parts, plan.sums([])])
    return finished(plan, total.to_bytes(), held_out)


@pytest.fixture(scope="module")
def expected():
    return plain()


def learned(ddf, **options):
    return pogp.dask.learn(ddf, "y", sample=300, calibration=200, **OPTIONS, **options)


def test_a_dataframe_gives_the_model_of_plain_python(expected):
    model = learned(frame())
    assert model.to_bytes() == expected.to_bytes()
    assert model.seen == 2000
    mean, variance = model.predict(X[:20])
    found = pogp.dask.predict(model, frame(), inputs=["a", "b"]).head(20)
    np.testing.assert_array_equal(found["mean"], mean)
    np.testing.assert_array_equal(found["deviation"], np.sqrt(variance))
    assert list(found) == ["a", "b", "y", "mean", "deviation"]


def die_once(piece, flag):
    """Kill the process that comes here first."""
    try:
        Path(flag).touch(exist_ok=False)
    except FileExistsError:
        return piece
    os._exit(1)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forking where there are threads
def test_a_worker_that_dies_changes_nothing(expected, tmp_path):
    """Workers are forked: to import the libraries again would take most of the time."""
    flag = str(tmp_path / "died")
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    forked = dask.config.set({"distributed.worker.multiprocessing-method": "fork"})
    with forked, distributed.LocalCluster(**options) as cluster, distributed.Client(cluster):
        doomed = frame().map_partitions(die_once, flag, meta=FRAME[:0])
        assert learned(doomed).to_bytes() == expected.to_bytes()
    assert os.path.exists(flag)


def test_bad_rows_are_named_or_skipped():
    table = FRAME.copy()
    table.loc[450, "y"] = np.nan
    with pytest.raises(ValueError, match=r"partition 1: y must be finite .* got nan in row 50"):
        learned(frame(table))
    assert learned(frame(table), skip=True).seen == 1999
    table["y"] = table["y"].where(np.arange(2000) >= 400)  # a partition with no target
    assert learned(frame(table), skip=True).seen == 1599


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inputs": ["a", "c"]}, "no column 'c'; there are a, b, y"),
        ({"inputs": ["a", "y"]}, "different columns"),
        ({"weight": "w"}, "no column 'w'"),
        ({"sample": 1}, "sample must be"),
    ],
)
def test_wrong_columns_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        pogp.dask.learn(frame(), "y", **change)


def test_text_is_refused():
    with pytest.raises(ValueError, match=r"partition \d: column 'b' must hold numbers"):
        learned(frame(FRAME.assign(b="word")))


def test_wrong_columns_are_not_predicted_from(expected):
    with pytest.raises(ValueError, match="the model has 2 inputs, got 3: a, b, y"):
        pogp.dask.predict(expected, frame())
    with pytest.raises(ValueError, match="no column 'c'"):
        pogp.dask.predict(expected, frame(), inputs=["a", "c"])


def test_columns_of_noise_and_weights_and_several_targets_are_read():
    table = FRAME.assign(z=-2 * Y, v=0.01, w=2.0)
    options = {"noise": "v", "weight": "w", "inputs": ["a", "b"], "sample": 300, "seed": 3}
    model = pogp.dask.learn(frame(table), ["y", "z"], max_size=30, kernel="RBF", **options)
    found = pogp.dask.predict(model, frame(table), inputs=["a", "b"]).head(50)
    np.testing.assert_allclose(found["mean_1"], -2 * found["mean_0"], rtol=1e-6)
    np.testing.assert_allclose(found["deviation_1"], 2 * found["deviation_0"], rtol=1e-6)
