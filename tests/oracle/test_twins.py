"""The compiled core and the reference retain the same samples, step by step, on real streams."""

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import pogp

TUNING, CHECKPOINT = 150, 100


def bursts(t):
    return 0.9 if t % 20 == 19 else 0.05


RULES = {
    "as written": {"budget": 1e-5},
    "as published": {"budget": 1e-5, "max_removals": 1},
    "everywhere": {"budget": 1e-5, "view": "everywhere", "max_size": 100},
    "everywhere, several": {"budget": bursts, "view": "everywhere"},
}


@cache
def stream(name):
    """Return X and y (published data standardised by the first samples), kernel and noise."""
    if name == "arm":
        data = pogp.datasets.arm(400)
        return data.x_train, data.y_train, pogp.RBF(1.8, 1.4), 0.02
    data = pogp.datasets.load(name)
    X, y = data.x_train[: TUNING + 400], data.y_train[: TUNING + 400]
    X = (X - X[:TUNING].mean(axis=0)) / X[:TUNING].std(axis=0)
    y = (y - y[:TUNING].mean()) / y[:TUNING].std()
    tuned = pogp.tune(X[:TUNING], y[:TUNING], restarts=0)
    return X[TUNING:], y[TUNING:], tuned.kernel, tuned.noise


def require(name):
    """Skip a published data set that is not at hand: tests download nothing."""
    folder = os.environ.get("POGP_DATA")
    if folder is None:
        pytest.skip(f"POGP_DATA is not set, where {name}.npz would be")
    if not (Path(folder) / f"{name}.npz").is_file():
        pytest.skip(f"POGP_DATA has no {name}.npz")


def learned(backend, monkeypatch, name, rule):
    """Return the trace, and who is retained at every checkpoint."""
    monkeypatch.setenv("POGP_BACKEND", backend)
    X, y, kernel, noise = stream(name)
    model = pogp.POG(kernel, noise, **RULES[rule])
    records, retained = [], []
    for start in range(0, len(y), CHECKPOINT):
        rows = slice(start, start + CHECKPOINT)
        records.append(model.learn(X[rows], y[rows]).records)
        retained.append(model.indices.tolist())
    return pogp.Trace(np.concatenate(records)), retained


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        *(("arm", rule) for rule in RULES),
        ("kin40", "as published"),
        ("kin40", "everywhere, several"),
        ("abalone", "as written"),
        ("abalone", "everywhere"),
    ],
)
def test_both_retain_the_same_samples(monkeypatch, name, rule):
    if name != "arm":
        require(name)
    one, compiled = learned("compiled", monkeypatch, name, rule)
    two, reference = learned("reference", monkeypatch, name, rule)
    assert one.size.tolist() == two.size.tolist()
    assert one.removed.tolist() == two.removed.tolist()
    assert compiled == reference
    assert one.removed.sum() > 80
    assert one.size.max() > 20
    assert one.removed.max() > 1 or rule in ("as published", "everywhere")
    for field in ("mean", "variance", "spent", "novelty", "change"):
        np.testing.assert_allclose(
            getattr(one, field), getattr(two, field), rtol=1e-6, atol=1e-9, err_msg=field
        )
