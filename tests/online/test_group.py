"""Beliefs on one dictionary: against the dense process, and carried to other kernels and units."""

import numpy as np
import pytest

from pogp.online.birth import Birth
from pogp.online.group import FORGETTING, GUARD, Group
from pogp.online.pending import CATCH_UP, Pending
from pogp.online.retuning import Candidate, Findings, Search
from pogp.online.rows import Rows, Samples
from pogp.online.scales import Scales
from pogp.online.tuning import Found, Prior
from pogp.slices import finished

from ..conftest import assert_same_state, dense_solution

BELIEFS = 2


def glanced(group, x, extra=None):
    means, variances = np.empty((2, group.members, group.residual.shape[1]))
    group.step.glance(group.scales.input(x), extra, 1.0, means, variances)
    return means, variances


def samples(n=60, outputs=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    Y = np.column_stack([np.sin(2 * X[:, 0]) + k * X[:, 1] for k in range(outputs)])
    Y = Y + 0.1 * rng.normal(size=Y.shape)
    return Samples(X, Y, np.arange(n), np.zeros(n, dtype=bool), 0 * Y, np.ones(n))


def found(parameters=None, family="Matern32"):
    prior = Prior(family, np.arange(2))
    return Found(prior, prior.mean if parameters is None else parameters, 0.0, np.empty(0))


def taught(of, scales=None, max_size=200, hyperparameters=None):
    outputs = of.Y.shape[1]
    group = Group(hyperparameters or found(), scales or Scales.of(of.X, of.Y), outputs, max_size)
    finished(group.teach(of))
    return group


@pytest.mark.parametrize("own", [0.0, 2.0])
def test_without_forgetting_and_cap_it_is_the_dense_process(own, backend, monkeypatch):
    """As long as the noise stays what it was; samples may have a variance of their own."""
    monkeypatch.setattr("pogp.online.group.CONDITION", _all_points())
    of = samples(25)
    group = Group(found(), Scales.of(of.X, of.Y), 1, 200)
    extra = own * np.linspace(0.0, 1.0, len(of.X))
    for i in range(len(of.X)):
        group.factor[:] = 1.0
        glanced(group, of.X[i], extra[i] * group.scales.unit**2)
        group.step.learn(of.Y[i], i, 0.0)
    group.factor[:] = 1.0
    assert group.size == 25
    queries = np.random.default_rng(1).uniform(-3, 3, (9, 2))
    U, targets = group.scales.inputs(of.X), group.scales.targets(of.Y)[:, 0]
    kernel = group.found.kernel
    mean, covariance = dense_solution(
        kernel, group.noise + extra, 0.0, U, targets, group.scales.inputs(queries)
    )
    means, variances, shares = group.predict(queries)
    unit, centre = group.scales.unit[0], group.scales.target_centre[0]
    np.testing.assert_allclose(means[0, :, 0], centre + unit * mean, rtol=1e-5)
    latent = shares[0] * variances[0, :, 0]
    np.testing.assert_allclose(latent, np.diagonal(covariance) * unit**2, rtol=1e-4, atol=1e-6)


def _all_points():
    from pogp.criteria import WholePosterior

    return WholePosterior(share=0.0)


@pytest.mark.parametrize("outputs", [1, 2])
def test_many_are_one_by_one(backend, outputs):
    group = taught(samples(outputs=outputs), max_size=20)
    queries = np.random.default_rng(1).uniform(-3, 3, (9, 2))
    means, variances, shares = group.predict(queries)
    assert means.shape == (2 * BELIEFS, 9, outputs)
    assert ((shares >= 0) & (shares <= 1)).all()
    for i, x in enumerate(queries):
        mean, variance = glanced(group, x)
        np.testing.assert_allclose(means[:, i], mean, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(variances[:, i], variance, rtol=1e-8)


def test_an_outlier_moves_beliefs_by_a_bounded_amount():
    after = []
    for wild in (1e3, 1e6):
        group = taught(samples(), max_size=30)
        queries = samples(9, seed=3).X
        before = group.predict(queries)[0]
        glanced(group, np.zeros(2))
        group.step.learn(np.array([wild]), 60, GUARD)
        after.append(group.predict(queries)[0][:BELIEFS])
    assert np.abs(after[1] - before[:BELIEFS]).max() < 2.0
    assert np.abs(after[1] - after[0]).max() < 0.5


# ---- carried over


def carried(old, scales=None, hyperparameters=None):
    group = Group(
        hyperparameters or old.found,
        scales or old.scales,
        old.residual.shape[1],
        old.max_size,
    )
    finished(group.carry(old, finished(old.told(group.scales))))
    return group


@pytest.mark.parametrize("outputs", [1, 2])
def test_to_the_same_kernel_and_units_nothing_changes(backend, outputs):
    old = taught(samples(outputs=outputs), max_size=20)
    old.factor[:] = 1.0
    new = carried(old)
    queries = np.random.default_rng(1).uniform(-2, 2, (9, 2))
    for one, other in zip(new.predict(queries), old.predict(queries), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("factor", [0.1, 7.0])
def test_other_units_of_the_targets_scale_along(factor):
    """What is said of the function is in the user's units, whatever those of the model are."""
    old = taught(samples(), max_size=20)
    scales = old.scales
    moved = Scales(
        scales.centre,
        scales.deviation,
        scales.target_centre + 0.5,
        scales.target_deviation * factor,
    )
    parameters = old.found.parameters.copy()
    parameters[2:] -= 2 * np.log(factor)  # variances in units of the new deviation
    new = carried(old, moved, found(parameters))
    queries = np.random.default_rng(1).uniform(-2, 2, (9, 2))
    means, variances, _ = new.predict(queries)
    expected = old.predict(queries)
    plain = slice(0, BELIEFS)
    spread = np.sqrt(expected[1][plain])
    assert (np.abs(means[plain] - expected[0][plain]) < 0.25 * spread + 0.05).all()
    np.testing.assert_allclose(variances[plain], expected[1][plain], rtol=0.25)


def test_to_another_kernel_it_knows_what_it_would_have_learned():
    of = samples(300)
    parameters = found().parameters
    parameters[:2] -= 1.0
    rougher = found(parameters, "RBF")
    new = carried(taught(of, max_size=60), hyperparameters=rougher)
    queries = np.random.default_rng(1).uniform(-1.8, 1.8, (200, 2))

    def error(group):
        return np.sqrt(
            np.mean((group.predict(queries)[0][0, :, 0] - np.sin(2 * queries[:, 0])) ** 2)
        )

    assert error(new) < 1.5 * error(taught(of, max_size=60, hyperparameters=rougher)) + 0.02


def test_a_target_at_rest_says_nothing_of_the_noise():
    of, still = samples(200), samples(200)
    still.X[:], still.Y[:] = 0.0, 0.05
    group, other = (taught(of, max_size=15) for _ in range(2))
    before = group.factor.copy()
    finished(group.teach(still))
    assert (group.factor > 0.4 * before).all()  # but at first, when it might move
    finished(other.teach(still, np.zeros(200, dtype=bool)))
    assert (other.factor < 0.2 * before).all()
    # what the function is there is learned as ever
    np.testing.assert_allclose(group.predict(still.X[:1])[0][0], 0.05, atol=0.02)


# ---- state


def test_memory_comes_back_and_goes_on(backend):
    of = samples(80, outputs=2)
    group = taught(of.where(np.arange(40)), max_size=15)
    twin = group.copy()
    for each in (group, twin):
        finished(each.teach(of.where(np.arange(40, 80))))
    assert_same_state(twin.state(), group.state())


def test_states_of_another_shape_are_refused():
    memory = taught(samples(), max_size=15).state()
    memory["factor"] = np.ones(7)
    with pytest.raises(ValueError, match="factor must have shape"):
        Group.restored(memory, 1, 15)


# ---- a retuning under way


def search(rows, began):
    candidate = Candidate("Matern32", FORGETTING[0], False)
    return Pending(Search(began, began, rows.all(), candidate, True, None, seed=0, robust=True))


def birth(of, findings, rows, position):
    zero = np.zeros((3, 1))
    made = (of.candidate, findings, None, zero, zero, 20)
    return Pending(Birth(position, of.began, of.age, rows.all(), *made))


def filled(of, count):
    rows = Rows(2, 1, 0)
    for x, y in zip(of.X[:count], of.Y[:count], strict=True):
        rows.add(x, y, False, 0 * y)
    return rows


def stepped(work, rows, of, start, stop=None):
    """Step until `stop`, or until a group is ready; return it, the position, and the work."""
    for i in range(start, len(of.X)):
        rows.add(of.X[i], of.Y[i], False, 0 * of.Y[i])
        result = work.step(rows, i + 1)
        if isinstance(result, Findings):
            work = birth(work.plan, result, rows, i + 1)
        elif result is not None:
            return result, i + 1, work
        if i + 1 == stop:
            return None, i + 1, work
    raise AssertionError("never ready")


def outcome(began, of, stop=None):
    """Return the result, the position, the work, and the rows."""
    rows = filled(of, began)
    return *stepped(search(rows, began), rows, of, began, stop), rows


def test_a_group_catches_up_with_what_came_meanwhile():
    of = samples(400)
    result, position, work, _ = outcome(200, of)
    born = work.plan.began
    assert position >= born + CATCH_UP
    expected = Group(result.group.found, result.scales, 1, 20)
    finished(expected.teach(work.plan.samples))
    for i in range(born, position):
        finished(expected.teach(of.where(np.arange(i, i + 1))))
    ours, theirs = result.group.state(), expected.state()
    for name in ("core_inputs", "core_values", "factor", "residual"):
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-9, err_msg=name)


def test_what_is_under_way_knows_the_columns_that_moved_when_it_began():
    of = samples(400)
    of.X[:40, 1] = 7.0
    _, _, work, _ = outcome(40, of, 41)
    assert work.knows(np.array([0]))
    assert not work.knows(np.array([1]))
    _, _, work, _ = outcome(40, of)
    assert isinstance(work.plan, Birth)
    assert not work.knows(np.array([0, 1]))
    assert outcome(50, of, 51)[2].knows(np.array([0, 1]))


def test_what_a_group_knows_is_not_carried_where_it_does_not_know_a_column():
    of, blind = samples(300), samples(300)
    blind.X[:, 1] = 7.0
    scales = Scales.of(of.X, of.Y)
    findings, zero = Findings(scales, found(), np.empty(0, dtype=np.int64)), np.zeros((3, 1))
    candidate = Candidate("Matern32", FORGETTING[0], False)
    carried = []
    for known in (of, blind):
        columns = Scales.of(known.X, known.Y).live
        prior = Prior("Matern32", columns)
        old = taught(known, hyperparameters=Found(prior, prior.mean, 0.0, np.empty(0)))
        plan = Birth(300, 300, 3000, of, candidate, findings, old, zero, zero, 20)
        carried.append(finished(plan.run()).group.carried)
    assert carried == [True, False]


def test_linear_models_catch_up_without_outliers():
    of = samples(400)
    expected, position, work, _ = outcome(200, of)
    wild = position - 2
    assert work.plan.began <= wild
    of.Y[wild] += 1e4
    rows = filled(of, 200)
    rows.add = lambda x, y, odd, extra: Rows.add(rows, x, y, bool(y > 1e3), extra)
    result, _, _ = stepped(search(rows, 200), rows, of, 200)
    for one, other in zip(result.linear, expected.linear, strict=True):
        np.testing.assert_allclose(one.w, other.w, atol=0.1)


def test_a_replay_comes_to_the_same():
    """Amid the search, at its end, and among the samples that groups catch up with."""
    of = samples(400)
    expected, position, _, _ = outcome(40, of)
    kinds = set()
    for stop in range(41, position):
        _, _, work, rows = outcome(40, of, stop)
        plan, state = work.plan, work.plan.state()
        kinds.add(type(plan))
        again = Birth.restored(state, 20) if "found" in state else Search.restored(state, 0, True)
        twin = Pending(again)
        twin.replay(rows, stop)
        result, end, _ = stepped(twin, rows, of, stop)
        assert end == position
        assert_same_state(result.group.state(), expected.group.state())
        for one, other in zip(result.linear, expected.linear, strict=True):
            np.testing.assert_array_equal(one.w, other.w)
    assert kinds == {Birth, Search}


def test_a_group_that_cannot_learn_is_dropped(monkeypatch):
    of = samples(400)
    monkeypatch.setenv("POGP_BACKEND", "reference")
    monkeypatch.setattr("pogp.online.steps.GroupStep.learn", _raise)
    result, _, _, _ = outcome(40, of)
    assert result.group is None


def _raise(*_):
    raise FloatingPointError("not finite")


def test_a_target_that_stands_still_gives_no_group():
    of = samples(200)
    of.Y[:] = 3.0
    result, _, _, _ = outcome(40, of)
    assert result.group is None
    assert not result.scales.alive
