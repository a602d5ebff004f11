"""Verdicts on changes that a model has adapted to, and where they were."""

import json
import re

import numpy as np
import pytest

import pogp
from pogp.report import prose
from pogp.report.journal import Journal
from pogp.report.summary import Summary
from pogp.report.surprises import abrupt_changes
from pogp.report.verdicts import verdicts


def smooth(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 2))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1], 0.1 * rng.normal(size=n)


def summary_of(X, y, rows=None, model=None):
    model, journal = model or pogp.OnlineGP(max_size=40), Journal()
    for start in range(0, len(y), 250):
        part = slice(start, start + 250)
        numbers = None if rows is None else rows[part]
        journal.add(X[part], y[part], model.learn(X[part], y[part]), 0.01, rows=numbers)
    return Summary.of(journal, model, None, "y")


def told(X, y, rows=None, model=None):
    found = verdicts(summary_of(X, y, rows, model))
    return {verdict.name: verdict.sentence for verdict in found}


def test_a_relation_that_changed_and_was_learned_again():
    X, mean, noise = smooth()
    y = np.where(np.arange(1500) < 800, mean, np.cos(X[:, 0]) - 0.5 * X[:, 1]) + noise
    found = told(X, y)
    assert found["changed"].startswith(
        "The relation between inputs and target changed around sample 801. The model has"
    )
    assert not {"outlying", "drifted", "drifting"} & set(found)


def test_a_level_that_changes_and_returns_is_no_outlier():
    X, mean, noise = smooth()
    y = mean + noise
    y[800:1000] += 2.0
    found = told(X, y)
    assert "around samples 801 and 1,001: a new level" in found["changed"]
    assert "outlying" not in found


def test_switches_are_no_outliers_and_outliers_are_counted_beside_them():
    X, mean, noise = smooth()
    y = mean + noise + 2.0 * (np.arange(1500) // 300 % 2)
    assert "outlying" not in told(X, y)
    y[[450, 750, 800, 1100, 1400]] += 9.0
    found = told(X, y)
    assert re.search(r"around samples 301, 601, 901 and 1,201:", found["changed"])
    assert found["outlying"].startswith("5 of 1,499 targets are outliers")


def test_single_outliers_and_heavy_tails_are_no_changes():
    X, mean, noise = smooth()
    y = mean + noise
    y[[300, 302, 700, 1100, 1400]] += 9.0  # two of them near each other by chance
    found = told(X, y)
    assert "changed" not in found
    assert found["outlying"].startswith("5 of 1,499 targets are outliers")
    for seed in range(3):
        heavy = 0.1 * np.random.default_rng(seed).standard_t(3, 1500)
        assert "changed" not in told(X, mean + heavy)


@pytest.mark.parametrize("drift", [3.0, -3.0])
def test_a_slow_drift_that_the_model_follows(drift):
    X, mean, noise = smooth()
    found = told(X, mean + noise + np.linspace(0, drift, 1500))
    side = "higher" if drift > 0 else "lower"
    size = re.fullmatch(
        rf"y drifted: at the end it is about ([\d.]+) {side} than the same inputs gave at the "
        r"beginning\.",
        found["drifting"],
    )
    assert 1.5 < float(size[1]) < 3.5
    assert "drifting" not in told(X, mean + noise)


def test_what_an_input_explains_is_no_drift():
    X, mean, noise = smooth()
    X = np.column_stack([X, np.linspace(0, 1, 1500)])
    assert "drifting" not in told(X, mean + noise + 3 * X[:, 2])


def test_places_are_rows_of_the_table_if_these_are_known():
    X, mean, noise = smooth()
    y = mean + noise
    y[800:] += 2.0
    rows = np.arange(1, 1501) + np.where(np.arange(1500) < 400, 0, 30)  # thirty were skipped
    assert "around row 831:" in told(X, y, rows)["shifted"]
    assert "around sample 801:" in told(X, y)["shifted"]


def test_rows_and_outliers_are_those_of_this_table_and_are_saved():
    X, mean, noise = smooth(900)
    y = mean + noise
    y[700:] += 3.0
    model = pogp.OnlineGP(max_size=40)
    model.learn(X[:400], y[:400])
    journal = Journal(after=400)
    trace = model.learn(X[400:], y[400:])
    journal.add(X[400:], y[400:], trace, 0.01, rows=np.arange(1, 501))
    again = Journal.of(json.loads(json.dumps(journal.state())))
    for each in (journal, again):
        assert each.row(701) == 301
        assert [each.row(sample) for sample in (0, 400, 901)] == [None] * 3
        assert abrupt_changes(each, model)[0].first == 701
        assert prose.places(each, 701) == "row 301"
        assert prose.places(each, 701, 3) == "samples 701 and 3"
    older = journal.state()
    del older["rows"], older["outliers"]
    restored = Journal.of(older)
    assert restored.row(701) is None
    assert abrupt_changes(restored, model) == []


def test_a_target_stuck_in_an_earlier_table_is_not_told_again():
    rng = np.random.default_rng(1)
    walk = np.cumsum(0.05 * rng.normal(size=(1500, 1)), axis=0)
    y = np.sin(walk[:, 0]) + 0.1 * rng.normal(size=1500)
    y[700:780] = y[699]
    model = pogp.OnlineGP(max_size=30)
    assert "stuck" in told(walk[:1000], y[:1000], model=model)
    journal = Journal(after=1000)
    journal.add(walk[1000:], y[1000:], model.learn(walk[1000:], y[1000:]), 0.01)
    assert "stuck" not in [each.name for each in verdicts(Summary.of(journal, model, None, "y"))]


def test_a_machine_that_starts_to_move_has_neither_more_noise_nor_a_new_relation():
    rng = np.random.default_rng(3)
    t = np.maximum(np.arange(1000) - 500, 0) / 100
    q = 0.6 * np.sin(0.8 * t) + 0.3 * np.sin(2.1 * t)
    speed = np.gradient(q, 0.01)
    y = 4 * np.cos(q) + 0.7 * np.tanh(speed / 0.02) + 3 * speed + 0.05 * rng.normal(size=1000)
    found = told(np.column_stack([q, speed]), y, model=pogp.OnlineGP(max_size=100))
    assert not {"noisier", "drifted"} & set(found)


def test_a_stuck_target_is_told():
    X, mean, noise = smooth()
    walk = np.cumsum(0.05 * np.random.default_rng(1).normal(size=(1500, 1)), axis=0)
    level = np.sin(walk[:, 0]) + 0.1 * np.random.default_rng(2).normal(size=1500)
    failed = level.copy()
    failed[1000:1080] = failed[999]
    assert "stuck" not in told(walk, level)
    assert "stuck" not in told(X, np.round(mean + noise, 1))
    found = told(walk, failed)["stuck"]
    assert re.search(r"around sample 1,00\d,", found)
    assert "sensor may have been stuck" in found
    assert "; --out marks them as alarms." in found


def test_a_payload_on_a_smooth_path_is_a_change_of_the_relation():
    """Two samples are surprises, then the last residual hides it; a test finds it."""
    rng, n = np.random.default_rng(0), 3600
    rates, phases = rng.uniform(0.3, 2.5, (4, 1)), rng.uniform(0, 2 * np.pi, (4, 1))
    angle = rates * np.arange(n) / 100 + phases
    q, v = 0.5 * np.sin(angle).sum(axis=0), 0.5 * (rates * np.cos(angle)).sum(axis=0)
    a = -0.5 * (rates**2 * np.sin(angle)).sum(axis=0)
    load = np.where(np.arange(n) < 3000, 1.0, 1.4)
    torque = (1 + 0.3 * load) * a + 4 * load * np.cos(q) + 0.6 * v + np.tanh(5 * v)
    found = told(np.column_stack([q, v, a]), torque + 0.05 * rng.normal(size=n))
    assert found["changed"].startswith(
        "The relation between inputs and target changed around sample 3,001."
    )
