"""A criterion of the user's own, through the whole protocol."""

import pickle

import numpy as np
import pytest

import pogp
from pogp.criteria import Criterion

X = np.random.default_rng(0).uniform(-3, 3, (300, 1))
Y = np.sin(X[:, 0])


class SmallestWeight(Criterion):
    def costs(self, step):
        return np.abs(step.weights)


class Youngest(Criterion):
    def costs(self, step):
        return -step.core.arrivals.astype(float)


def model(criterion, **options):
    return pogp.POG(pogp.RBF(), 0.01, options.pop("budget", None), view=criterion, **options)


def test_a_criterion_decides_which_point_is_removed(backend):
    one = model(Youngest(), max_size=7)
    one.learn(X, Y)
    assert one.indices.tolist() == [0, 1, 2, 3, 4, 5, 6]


def test_the_budget_is_in_its_unit(backend):
    one = model(SmallestWeight(), budget=0.5)
    trace = one.learn(X, Y)
    assert one.size < 300
    assert trace.spent.max() <= 0.5
    assert np.abs(one._posterior.core.weights).min() > 0.5


def test_the_posterior_is_exact_on_what_it_keeps(backend):
    one = model(SmallestWeight(), max_size=15)
    one.learn(X, Y)
    dense = pogp.DenseGP(pogp.RBF(), 0.01)
    dense.learn(one.dictionary, one.targets)
    np.testing.assert_allclose(one.predict(X), dense.predict(X), atol=1e-8)


def test_copies_and_files(tmp_path):
    one = model(SmallestWeight(), max_size=15)
    one.learn(X[:200], Y[:200])
    path = tmp_path / "model.pogp"
    with pytest.raises(ValueError, match=r"SmallestWeight.*without_code"):
        one.save(path)
    one.save(path, without_code=True)
    with pytest.raises(ValueError, match="view="):
        pogp.load(path)
    others = [one.copy(), pickle.loads(pickle.dumps(one)), pogp.load(path, view=SmallestWeight())]
    expected = one.learn(X[200:], Y[200:]).records
    for other in others:
        np.testing.assert_array_equal(other.learn(X[200:], Y[200:]).records, expected)
