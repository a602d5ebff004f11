"""The compiled steps equal their NumPy twins."""

from types import SimpleNamespace

import numpy as np
import pytest

from pogp.online import steps
from pogp.online.prediction import GapEffect
from pogp.online.simple_predictors import PRIOR_VARIANCE, LinearModel
from pogp.online.states import restore, state_of
from pogp.online.stream import Stream
from pogp.trace import blank

from ..conftest import assert_same_state

compiled = pytest.importorskip("pogp.online.compiled_steps")


ARRAYS = ("lag_product", "lag_square", "residual", "last_z", "corrected_factor")


class Core:
    """Predicts given numbers, and returns what it would learn."""

    lead = 0

    def __init__(self, mean, latent):
        self.mean, self.latent = mean, latent

    def predict_input(self, scaled):
        return self.mean.copy(), self.latent

    def learn_target(self, criterion, target, noises, noise, position, max_size):
        return np.array([*target, *noises, noise, position, max_size])


def group(mean, latent, noise, centre, unit):
    """A group without residuals."""
    zeros, ones = np.zeros_like(mean), np.ones_like(mean)
    arrays = dict(zip(ARRAYS, (zeros, zeros.copy(), zeros.copy(), zeros.copy(), ones), strict=True))
    settings = {"criterion": None, "max_size": 9, "noise": noise, "least_factor": 0.01}
    scales = SimpleNamespace(target_centre=centre, unit=unit)
    factor = np.ones(len(mean))
    core = Core(mean, latent)
    return SimpleNamespace(core=core, scales=scales, noise_factor=factor, **arrays, **settings)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("beliefs", "outputs"), [(3, 1), (3, 2), (1, 4)])
@pytest.mark.parametrize("weight", [0.7, 2.0])
@pytest.mark.parametrize("bound", [0.0, 3.5])
@pytest.mark.parametrize("stopped", [False, True])
def test_compiled_steps_of_groups_equal_their_twins(seed, beliefs, outputs, weight, bound, stopped):
    found = []
    for module in (compiled, steps):
        rng = np.random.default_rng(seed)
        mean, latent = 3 * rng.standard_t(3, (beliefs, outputs)), rng.exponential(size=beliefs)
        one = group(mean, latent, 0.3, rng.normal(size=outputs), rng.exponential(size=outputs))
        for name in ARRAYS:
            getattr(one, name)[...] = 3 * np.abs(rng.standard_t(3, mean.shape))
        one.noise_factor[...] = rng.exponential(size=beliefs)
        means, variances = np.empty((2, 2 * beliefs, outputs))
        step, y = module.GroupStep(one), 3 * rng.standard_t(3, outputs)
        step.predict(np.zeros(2), rng.exponential(size=outputs), weight, means, variances)
        learned = [step.surprise(y), *step.learn(y, 7, bound, stopped)]
        arrays = [getattr(one, name).ravel() for name in (*ARRAYS, "noise_factor")]
        found.append(np.concatenate([means.ravel(), variances.ravel(), learned, *arrays]))
    np.testing.assert_allclose(*found, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("module", [compiled, steps])
def test_extra_variance_is_not_taken_for_noise(module):
    """A sample of variance 1 and squared error 4; its extra variance is 0, then 0.9."""
    grown = []
    for extra in (0.0, 0.9):
        one = group(np.zeros((1, 1)), np.array([0.9 - extra]), 0.1, np.zeros(1), np.ones(1))
        step = module.GroupStep(one)
        step.predict(np.zeros(1), np.array([extra]), 1.0, *np.empty((2, 2, 1)))
        step.learn(np.array([2.0]), 0, 0.0)
        grown.append(float(np.log(one.noise_factor[0])))
    assert grown[0] > 0
    assert grown[1] == pytest.approx(0.1 * grown[0])


@pytest.mark.parametrize("module", [compiled, steps])
def test_extra_variance_does_not_change_the_factor_of_corrected_members(module):
    """The same error of three deviations, without and with extra variance that explains it."""
    changed = []
    for extra in (0.0, 99.0):
        one = group(np.zeros((1, 1)), np.array([0.5]), 0.5, np.zeros(1), np.ones(1))
        step = module.GroupStep(one)
        step.predict(np.zeros(1), np.array([extra]), 1.0, *np.empty((2, 2, 1)))
        step.learn(np.array([3.0]), 0, 0.0)
        changed.append(abs(float(np.log(one.corrected_factor[0, 0]))))
    assert changed[1] < 0.01 * changed[0]


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
@pytest.mark.parametrize("value", [-9.0, 40.0])
def test_compiled_steps_equal_their_twins(outputs, weight, gaps, bound, seen, value, monkeypatch):
    """With groups, and before there are scales."""
    state, found = state_of(stream(outputs, seen)), []
    assert ("scales.centre" in state) == (seen == 60)
    x, y = np.array([0.3, value]), np.linspace(0.5, 1.0, outputs)
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
        assert step.far == (seen == 60)
        step.learn(y, bound, weight, step.far)
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
