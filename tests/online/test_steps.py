"""The compiled steps equal their NumPy twins."""

import numpy as np
import pytest

from pogp.online.prediction import GapEffect
from pogp.online.simple_predictors import PRIOR_VARIANCE, LinearModel
from pogp.online.states import restore, state_of
from pogp.online.stream import Stream
from pogp.trace import blank

from ..conftest import assert_same_state

pytest.importorskip("pogp.online.compiled_steps")


def stream(outputs, n=60):
    rng = np.random.default_rng(outputs)
    X = rng.uniform(-2, 2, (n, 2))
    Y = np.sin(X @ rng.normal(size=(2, outputs))) + 0.1 * rng.normal(size=(n, outputs))
    made = Stream(2, outputs, 15, True, 0)
    for x, y, record in zip(X, Y, blank(n, outputs), strict=True):
        made.learn(x, y, None, 1.0, record)
    return made


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("weight", [1.0, 0.4])
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("bound", [0.0, 3.5])
@pytest.mark.parametrize("seen", [60, 4])
def test_compiled_steps_equal_their_twins(outputs, weight, gaps, bound, seen, monkeypatch):
    """With groups, and before there are scales."""
    state, found = state_of(stream(outputs, seen)), []
    assert ("scales.centre" in state) == (seen == 60)
    x, y = np.array([0.3, -9.0]), np.linspace(0.5, 1.0, outputs)
    gap = GapEffect(np.full(outputs, 0.1), np.full(outputs, 0.2)) if gaps else None
    for backend in ("compiled", "reference"):
        monkeypatch.setenv("POGP_BACKEND", backend)
        twin, record = Stream(2, outputs, 15, True, 0), blank(1, outputs)[0]
        restore(twin, state)
        ensemble = twin.ensemble
        step = ensemble._step
        assert type(step).__module__.endswith("compiled_steps") == (backend == "compiled")
        step.predict(x, None if gap is None else gap.variance, weight, 0.01 if weight < 1 else 0.0)
        error = step.score(y, ensemble.scores, gap, record)
        step.learn(y, bound, weight)
        for group in ensemble.groups:
            surprise = group.step.surprise(y)
            found.append(np.append(group.step.learn(y, 60, bound), [surprise, group.race_score]))
        found += [record, error, ensemble.means, ensemble.variances]
        found += [ensemble.gains, ensemble.scores, ensemble.predictors.state()]
        found += [ensemble.band.state(), ensemble.mixture.state()]
        names = ("noise_factor", "corrected_factor")
        found += [{name: getattr(group, name) for name in names} for group in ensemble.groups]
    half = len(found) // 2
    for one, other in zip(found[:half], found[half:], strict=True):
        if isinstance(one, dict):
            assert one.keys() == other.keys()
            one, other = list(one.values()), list(other.values())
            for mine, theirs in zip(one, other, strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-9)
        else:
            np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9)


def test_a_linear_model_is_reset_in_place():
    """Steps are bound to its arrays."""
    model = LinearModel(2, 1)
    P, w = model.P, model.w
    P[...] = -1.0
    model.learn(np.ones(2), np.ones(1))
    assert model.P is P
    assert model.w is w
    np.testing.assert_array_equal(P, PRIOR_VARIANCE * np.eye(2))
    assert not w.any()


def test_a_copy_of_a_group_is_independent():
    group = stream(1).ensemble.groups[0]
    twin, before = group.copy(), group.state()
    x, y = np.array([0.3, 0.4]), np.array([2.0])
    means, variances = np.empty((2, twin.n_members, 1))
    twin.step.predict(twin.scales.input(x), None, 1.0, means, variances)
    twin.step.learn(y, 60, 0.0)
    assert_same_state(group.state(), before)
    assert (twin.noise_factor != group.noise_factor).any()
