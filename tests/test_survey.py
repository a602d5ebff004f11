"""What a budget buys, before it is chosen."""

import numpy as np
import pytest

import pogp

X = np.random.default_rng(0).uniform(-3, 3, (800, 1))
Y = np.sin(2 * X[:, 0]) + 0.1 * np.random.default_rng(1).normal(size=800)


def test_a_larger_budget_keeps_fewer_points():
    found = pogp.survey(X, Y, pogp.RBF(0.7), 0.01, (0.01, 0.1, 0.5))
    sizes = [row.size for row in found.rows]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1]
    assert all(0 < row.smse < 1 and row.microseconds > 0 for row in found.rows)


def test_the_figures_are_those_of_the_model_itself():
    (row,) = pogp.survey(X, Y, pogp.RBF(0.7), 0.01, [None], max_size=15, mean=0.2).rows
    model = pogp.AbsorbingPOG(pogp.RBF(0.7), 0.01, None, max_size=15, mean=0.2)
    trace = model.learn(X, Y)
    assert (row.size, row.growth) == (model.size, model.size / trace.size[399])
    assert row.size <= 15
    assert row.nlpd == pogp.metrics.nlpd(Y[400:], trace.mean[400:], trace.variance[400:])
    assert row.smse == pogp.metrics.smse(Y[400:], trace.mean[400:], Y[400:].var())


def test_it_prints_a_table():
    text = str(pogp.survey(X[:100], Y[:100], pogp.RBF(0.7), 0.01, (0.1, None)))
    assert "second half of 100 samples" in text
    assert [line.split()[0] for line in text.splitlines()[2:]] == ["0.1", "none"]


def test_too_few_samples_are_refused():
    with pytest.raises(ValueError, match="at least 4 samples, got 3"):
        pogp.survey(X[:3], Y[:3], pogp.RBF(), 0.01)
