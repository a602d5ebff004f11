"""POG against the brute force, sample by sample: who is retained, and what the trace says."""

from dataclasses import dataclass

import numpy as np
import pytest

import pogp

from ..conftest import BACKENDS, matern52, rbf, repeated, smooth_1d, smooth_2d, smooth_5d
from .brute_force import BruteForce

ARD = (1.5, 0.8)


def shrinking(t):
    return 0.05 / (1 + t) ** 0.3


def bursts(t):
    """Nothing for seven samples, then enough for several points at once."""
    return 0.4 if t % 8 == 7 else 0.0


@dataclass(frozen=True)
class Case:
    """A stream, a kernel (the package's, and the same written out) and a way to compress."""

    stream: tuple
    kernel: pogp.Kernel
    function: object
    noise: float
    budget: object
    view: str = "newest"
    max_size: int | None = None
    max_removals: int | None = None
    mean: float = 0.0

    def model(self):
        return pogp.POG(
            self.kernel,
            self.noise,
            self.budget,
            view=self.view,
            max_size=self.max_size,
            max_removals=self.max_removals,
            mean=self.mean,
        )

    def allowed(self):
        """The budget as a plain function of t, or None."""
        match self.budget:
            case pogp.Constant(eps) | float(eps):
                return lambda t: eps
            case pogp.Decay(initial, power):
                return lambda t: initial / (t + 1) ** power
            case budget:
                return budget


LINE = (smooth_1d, 80, 1), pogp.RBF(2.0, 1.5), rbf(2.0, 1.5)
PLANE = (smooth_2d, 80, 2), pogp.Matern52(ARD, 0.7), matern52(ARD, 0.7)
PLACES = (repeated, 80, 4), pogp.RBF(1.5), rbf(1.5)
FIVE = (
    (smooth_5d, 80, 3),
    pogp.RBF(4.0) + pogp.Matern52(6.0, 0.5),
    lambda A, B: rbf(4.0)(A, B) + matern52(6.0, 0.5)(A, B),
)

CASES = {
    "line": Case(*LINE, noise=0.1, budget=0.001),
    "line, one at a time, mean": Case(*LINE, noise=0.1, budget=0.02, max_removals=1, mean=0.7),
    "line, decay, cap": Case(*LINE, noise=0.1, budget=pogp.Decay(0.1, 1.2), max_size=12),
    "line, cap only": Case(*LINE, noise=0.1, budget=None, max_size=9, mean=-2.0),
    "line, everywhere": Case(*LINE, noise=0.1, budget=0.16, view="everywhere"),
    "line, everywhere, cap": Case(*LINE, 0.1, None, "everywhere", max_size=8),
    "plane": Case(*PLANE, noise=0.05, budget=0.0005, mean=0.4),
    "plane, callable, one": Case(*PLANE, noise=0.05, budget=shrinking, max_removals=1),
    "plane, none under the budget": Case(*PLANE, 0.05, 0.5, max_size=20, max_removals=0),
    "plane, everywhere, callable": Case(*PLANE, 0.05, shrinking, "everywhere", max_size=20),
    "plane, everywhere, cap": Case(*PLANE, 0.05, pogp.Constant(0.2), "everywhere", max_size=20),
    "plane, everywhere, one": Case(*PLANE, 0.05, 0.2, "everywhere", max_removals=1, mean=0.4),
    "plane, everywhere, bursts": Case(*PLANE, 0.05, bursts, "everywhere"),
    "places": Case(*PLACES, noise=0.1, budget=0.003, max_removals=2),
    "places, everywhere": Case(*PLACES, 0.1, 0.2, "everywhere", mean=1.0),
    "five": Case(*FIVE, noise=0.1, budget=0.0004),
    "five, cap": Case(*FIVE, noise=0.1, budget=0.00005, max_size=30),
    "five, everywhere, mean": Case(*FIVE, 0.1, 0.25, "everywhere", mean=0.5),
}
SEVERAL_AT_ONCE = ("line", "plane", "five", "line, everywhere", "plane, everywhere, bursts")


def stream(name):
    make, n, seed = CASES[name].stream
    return make(n, seed)


def expected(name):
    case = CASES[name]
    brute = BruteForce(*stream(name), case.function, case.noise, case.mean)
    return brute.run(case.allowed(), case.view, case.max_size, case.max_removals)


def assert_trace_equals(trace, record):
    assert len(trace) == 1
    found = [float(getattr(trace, name)[0]) for name in record]
    np.testing.assert_allclose(found, [*record.values()], 1e-7, 1e-9, err_msg=str([*record]))


@pytest.mark.parametrize("name", CASES)
def test_every_step_is_that_of_the_brute_force(monkeypatch, name):
    case, steps = CASES[name], expected(name)
    assert_asks_something(name, [step.record for step in steps])
    for backend in BACKENDS:
        monkeypatch.setenv("POGP_BACKEND", backend)
        model = case.model()
        for x, y, step in zip(*stream(name), steps, strict=True):
            assert not step.doubts, f"a bad stream, where rounding decides: {step.doubts}"
            trace = model.learn(x, y)
            assert model.indices.tolist() == step.indices
            assert_trace_equals(trace, step.record)


def assert_asks_something(name, records):
    """Dictionaries stay small, points come and go; in some cases several go at once."""
    sizes, removed = (np.array([record[key] for record in records]) for key in ("size", "removed"))
    assert len(records) == 80
    assert sizes.max() <= 40
    assert sizes[-1] >= 5
    assert (removed > 0).sum() >= 20 or name == "plane, everywhere, bursts"
    assert (removed > 1).sum() >= 3 or name not in SEVERAL_AT_ONCE


# ---- ties, and the ends of the range


@pytest.mark.parametrize("view", ["newest", "everywhere"])
def test_among_equally_cheap_points_the_oldest_goes(backend, view):
    model = pogp.POG(pogp.RBF(), 0.1, budget=1.0, view=view, max_removals=1)
    model.learn(np.zeros((5, 1)), np.ones(5))
    assert model.indices.tolist() == [4]
    model = pogp.POG(pogp.RBF(), 0.1, budget=None, view=view, max_size=3)
    model.learn(np.zeros((9, 2)), np.full(9, -2.0))
    assert model.indices.tolist() == [6, 7, 8]


@pytest.mark.parametrize("view", ["newest", "everywhere"])
@pytest.mark.parametrize("noise", [1e-6, 0.002, 1.0])
def test_rounding_does_not_decide_among_equals(backend, view, noise):
    """One other input among repetitions of the same sample: it goes first, then the oldest."""
    X = np.array([[0.0, 0.0], [1.0, 1.0], *[[0.0, 0.0]] * 7])
    model = pogp.POG(pogp.RBF(), noise, None, view=view, max_size=5)
    model.learn(X, np.zeros(9))
    apart = view == "everywhere"  # where nothing else says what is known there
    assert model.indices.tolist() == ([1, 5, 6, 7, 8] if apart else [4, 5, 6, 7, 8])


@pytest.mark.parametrize("view", ["newest", "everywhere"])
def test_of_two_equal_samples_the_older_is_removed(backend, view):
    X, y = (np.repeat(part, 2, axis=0) for part in smooth_1d(40, seed=5))
    steps = BruteForce(X, y, rbf(2.0), 0.1).run(None, view, max_size=9)
    model = pogp.POG(pogp.RBF(2.0), 0.1, None, view=view, max_size=9)
    for x, target, step in zip(X, y, steps, strict=True):
        model.learn(x, target)
        assert model.indices.tolist() == step.indices
    assert sum(len(step.doubts) for step in steps) >= 10


@pytest.mark.parametrize("view", ["newest", "everywhere"])
def test_a_budget_of_one_leaves_one_and_a_budget_of_zero_leaves_all(backend, view):
    X, y = smooth_2d(60)
    model = pogp.POG(pogp.RBF(0.7), 0.1, budget=1.0, view=view)
    assert set(model.learn(X, y).size) == {1}
    model = pogp.POG(pogp.RBF(0.7), 0.1, budget=0.0, view=view)
    assert model.learn(X, y).size.tolist() == list(range(1, 61))
