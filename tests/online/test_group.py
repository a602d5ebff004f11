"""Groups: against the dense process, transferred to other kernels and units, and started anew."""

import numpy as np
import pytest

from pogp.online.group import FORGETTING, OUTLIER_BOUND, Group
from pogp.online.group_start import GroupStart
from pogp.online.pending import CATCH_UP, PendingTuning
from pogp.online.retuning import Candidate, Search, SearchResult
from pogp.online.samples import Samples, SampleStore
from pogp.online.scales import Scales
from pogp.online.tuning import NOISY, Hyperparameters, Prior
from pogp.slices import finished

from ..conftest import assert_same_state, dense_solution

BELIEFS = 2


def predicted(group, x, extra=None):
    means, variances = np.empty((2, group.n_members, group.residual.shape[1]))
    group.step.predict(group.scales.input(x), extra, 1.0, means, variances)
    return means, variances


def samples(n=60, outputs=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    Y = np.column_stack([np.sin(2 * X[:, 0]) + k * X[:, 1] for k in range(outputs)])
    Y = Y + 0.1 * rng.normal(size=Y.shape)
    return Samples(X, Y, np.arange(n), np.zeros(n, dtype=bool), 0 * Y, np.ones(n), 0 * Y)


def found(parameters=None, family="Matern32"):
    prior = Prior(family, np.arange(2))
    return Hyperparameters(
        prior, prior.mean if parameters is None else parameters, 0.0, np.empty(0)
    )


def learned(of, scales=None, max_size=200, hyperparameters=None):
    outputs = of.Y.shape[1]
    group = Group(hyperparameters or found(), scales or Scales.of(of.X, of.Y), outputs, max_size)
    finished(group.learn(of))
    return group


@pytest.mark.parametrize("own", [0.0, 2.0])
def test_without_forgetting_and_cap_it_equals_the_dense_process(own, backend, monkeypatch):
    """With a constant noise factor; samples may have extra variance."""
    monkeypatch.setattr("pogp.online.group.CONDITION", _all_points())
    of = samples(25)
    group = Group(found(), Scales.of(of.X, of.Y), 1, 200)
    extra = own * np.linspace(0.0, 1.0, len(of.X))
    for i in range(len(of.X)):
        group.noise_factor[:] = 1.0
        predicted(group, of.X[i], extra[i] * group.scales.unit**2)
        group.step.learn(of.Y[i], i, 0.0)
    group.noise_factor[:] = 1.0
    assert group.size == 25
    queries = np.random.default_rng(1).uniform(-3, 3, (9, 2))
    U, targets = group.scales.inputs(of.X), group.scales.targets(of.Y)[:, 0]
    kernel = group.hyperparameters.kernel
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
def test_many_rows_are_predicted_as_one_by_one(backend, outputs):
    group = learned(samples(outputs=outputs), max_size=20)
    queries = np.random.default_rng(1).uniform(-3, 3, (9, 2))
    means, variances, shares = group.predict(queries)
    assert means.shape == (2 * BELIEFS, 9, outputs)
    assert ((shares >= 0) & (shares <= 1)).all()
    for i, x in enumerate(queries):
        mean, variance = predicted(group, x)
        np.testing.assert_allclose(means[:, i], mean, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(variances[:, i], variance, rtol=1e-8)


def test_the_influence_of_an_outlier_is_bounded():
    after = []
    for wild in (1e3, 1e6):
        group = learned(samples(), max_size=30)
        queries = samples(9, seed=3).X
        before = group.predict(queries)[0]
        predicted(group, np.zeros(2))
        group.step.learn(np.array([wild]), 60, OUTLIER_BOUND)
        after.append(group.predict(queries)[0][:BELIEFS])
    assert np.abs(after[1] - before[:BELIEFS]).max() < 2.0
    assert np.abs(after[1] - after[0]).max() < 0.5


# ---- transfer


def transferred(old, scales=None, hyperparameters=None):
    group = Group(
        hyperparameters or old.hyperparameters,
        scales or old.scales,
        old.residual.shape[1],
        old.max_size,
    )
    finished(group.transfer(old, finished(old.information(group.scales))))
    return group


@pytest.mark.parametrize("outputs", [1, 2])
def test_transfer_to_the_same_kernel_and_units_changes_nothing(backend, outputs):
    old = learned(samples(outputs=outputs), max_size=20)
    old.noise_factor[:] = 1.0
    new = transferred(old)
    queries = np.random.default_rng(1).uniform(-2, 2, (9, 2))
    for one, other in zip(new.predict(queries), old.predict(queries), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("forgets", [False, True])
def test_a_group_with_the_same_kernel_and_scales_takes_the_beliefs_as_they_are(backend, forgets):
    of = samples(120, outputs=2)
    old = learned(of.select(np.arange(80)), max_size=20)
    old.scores[-1, 1] = 10.0 if forgets else -10.0
    new = Group(old.hyperparameters, old.scales, 2, 20, (1.0, 0.99), marginalise=True)
    assert old.has(new.hyperparameters, Scales.of(of.X[:80], of.Y[:80]))
    assert not old.has(new.hyperparameters, Scales.of(of.X, of.Y))
    assert not old.has(found(family="RBF"), old.scales)
    finished(new.transfer(old, None))
    rows = [1, 1, 3, 3] if forgets else [0, 1, 2, 3]
    for one, other in zip(new.predict(of.X), old.predict(of.X), strict=True):
        np.testing.assert_allclose(one, other[rows], rtol=1e-9, atol=1e-12)
    assert new.core.lead == int(forgets)
    S, Q = new.core.covariance_of(new.core.lead), new.core.inverse
    np.testing.assert_allclose(new.core.spread, np.diagonal(Q @ S @ Q), rtol=1e-6)
    np.testing.assert_allclose(new.core.weights, Q @ new.core.values[new.core.lead], atol=1e-8)
    finished(new.learn(of.select(np.arange(80, 120))))
    assert np.isfinite(new.predict(of.X)[0]).all()
    S, Q = new.core.covariance_of(new.core.lead), new.core.inverse
    np.testing.assert_allclose(new.core.spread, np.diagonal(Q @ S @ Q), rtol=1e-6)


@pytest.mark.parametrize("factor", [0.1, 7.0])
def test_transfer_to_other_units_of_the_targets(factor):
    """Predictions are in the user's units, whatever the units of the model."""
    old = learned(samples(), max_size=20)
    scales = old.scales
    moved = Scales(
        scales.centre,
        scales.deviation,
        scales.target_centre + 0.5,
        scales.target_deviation * factor,
    )
    parameters = old.hyperparameters.parameters.copy()
    parameters[2:] -= 2 * np.log(factor)  # variances in units of the new deviation
    new = transferred(old, moved, found(parameters))
    queries = np.random.default_rng(1).uniform(-2, 2, (9, 2))
    means, variances, _ = new.predict(queries)
    expected = old.predict(queries)
    plain = slice(0, BELIEFS)
    spread = np.sqrt(expected[1][plain])
    assert (np.abs(means[plain] - expected[0][plain]) < 0.25 * spread + 0.05).all()
    np.testing.assert_allclose(variances[plain], expected[1][plain], rtol=0.25)


def test_transfer_to_another_kernel_is_as_good_as_learning():
    of = samples(300)
    parameters = found().parameters
    parameters[:2] -= 1.0
    rougher = found(parameters, "RBF")
    new = transferred(learned(of, max_size=60), hyperparameters=rougher)
    queries = np.random.default_rng(1).uniform(-1.8, 1.8, (200, 2))

    def error(group):
        return np.sqrt(
            np.mean((group.predict(queries)[0][0, :, 0] - np.sin(2 * queries[:, 0])) ** 2)
        )

    assert error(new) < 1.5 * error(learned(of, max_size=60, hyperparameters=rougher)) + 0.02


def test_a_stopped_target_does_not_change_the_noise():
    of, stopped = samples(200), samples(200)
    stopped.X[:], stopped.Y[:] = 0.0, 0.05
    group, other = (learned(of, max_size=15) for _ in range(2))
    before = group.noise_factor.copy()
    finished(group.learn(stopped))
    assert (group.noise_factor > 0.4 * before).all()  # before it counts as stopped
    finished(other.learn(stopped, np.zeros(200, dtype=bool)))
    assert (other.noise_factor < 0.2 * before).all()
    # the function is learned
    np.testing.assert_allclose(group.predict(stopped.X[:1])[0][0], 0.05, atol=0.02)


# ---- state


def test_a_copy_continues_as_the_original(backend):
    of = samples(80, outputs=2)
    group = learned(of.select(np.arange(40)), max_size=15)
    twin = group.copy()
    for each in (group, twin):
        finished(each.learn(of.select(np.arange(40, 80))))
    assert_same_state(twin.state(), group.state())


def test_states_of_another_shape_are_refused():
    state = learned(samples(), max_size=15).state()
    state["factor"] = np.ones(7)
    with pytest.raises(ValueError, match="factor must have shape"):
        Group.restored(state, 1, 15)


# ---- a tuning in progress


def search(rows, began):
    candidate = Candidate("Matern32", FORGETTING[0], False)
    return PendingTuning(
        Search(began, began, rows.all(), candidate, True, None, seed=0, robust=True)
    )


def group_start(of, result, rows, position):
    zero = np.zeros((3, 1))
    arguments = (of.candidate, result, None, zero, 20)
    return PendingTuning(GroupStart(position, of.began, of.age, rows.all(), 0, *arguments))


def filled(of, count):
    rows = SampleStore(2, 1, 0)
    for x, y in zip(of.X[:count], of.Y[:count], strict=True):
        rows.add(x, y, False, None)
    return rows


def stepped(work, rows, of, start, stop=None):
    """Step until `stop`, or until a group is ready; return it, the position, and the work."""
    for i in range(start, len(of.X)):
        rows.add(of.X[i], of.Y[i], False, None)
        result = work.advance(rows, i + 1)
        if isinstance(result, SearchResult):
            work = group_start(work.plan, result, rows, i + 1)
        elif result is not None:
            return result, i + 1, work
        if i + 1 == stop:
            return None, i + 1, work
    raise AssertionError("never ready")


def outcome(began, of, stop=None):
    """Return the result, the position, the work, and the rows."""
    rows = filled(of, began)
    return *stepped(search(rows, began), rows, of, began, stop), rows


def test_a_new_group_catches_up_with_the_stream():
    of = samples(400)
    result, position, work, _ = outcome(200, of)
    born = work.plan.began
    assert position >= born + CATCH_UP
    expected = Group(result.group.hyperparameters, result.scales, 1, 20)
    finished(expected.learn(work.plan.samples))
    for i in range(born, position):
        finished(expected.learn(of.select(np.arange(i, i + 1))))
    ours, theirs = result.group.state(), expected.state()
    for name in ("core_inputs", "core_values", "factor", "residual"):
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-9, err_msg=name)


def test_a_pending_tuning_uses_the_columns_that_varied_when_it_began():
    of = samples(400)
    of.X[:40, 1] = 7.0
    _, _, work, _ = outcome(40, of, 41)
    assert work.uses(np.array([0]))
    assert not work.uses(np.array([1]))
    _, _, work, _ = outcome(40, of)
    assert isinstance(work.plan, GroupStart)
    assert not work.uses(np.array([0, 1]))
    assert outcome(50, of, 51)[2].uses(np.array([0, 1]))


def test_a_belief_is_not_transferred_if_the_group_does_not_use_a_column():
    of, blind = samples(300), samples(300)
    blind.X[:, 1] = 7.0
    scales = Scales.of(of.X, of.Y)
    result, zero = SearchResult(scales, found(), np.empty(0, dtype=np.int64)), np.zeros((3, 1))
    candidate = Candidate("Matern32", FORGETTING[0], False)
    flags = []
    for known in (of, blind):
        columns = Scales.of(known.X, known.Y).varying
        prior = Prior("Matern32", columns)
        old = learned(known, hyperparameters=Hyperparameters(prior, prior.mean, 0.0, np.empty(0)))
        plan = GroupStart(300, 300, 3000, of, 0, candidate, result, old, zero, 20)
        flags.append(finished(plan.run()).group.transferred)
    assert flags == [True, False]


def test_linear_models_catch_up_without_outliers():
    of = samples(400)
    expected, position, work, _ = outcome(200, of)
    wild = position - 2
    assert work.plan.began <= wild
    of.Y[wild] += 1e4
    rows = filled(of, 200)
    rows.add = lambda x, y, outlier, gaps: SampleStore.add(rows, x, y, bool(y > 1e3), gaps)
    result, _, _ = stepped(search(rows, 200), rows, of, 200)
    for one, other in zip(result.linear, expected.linear, strict=True):
        np.testing.assert_allclose(one.w, other.w, atol=0.1)


def test_a_group_learns_the_samples_since_a_change_and_linear_models_all():
    of = samples(300)
    scales = Scales.of(of.X, of.Y)
    result, zero = SearchResult(scales, found(), np.empty(0, dtype=np.int64)), np.zeros((3, 1))
    candidate = Candidate("Matern32", FORGETTING[0], False)
    ends = [
        finished(GroupStart(300, 300, 50, of, since, candidate, result, None, zero, 300).run())
        for since in (0, 250)
    ]
    assert ends[1].group.core.arrivals.min() >= 250 > ends[0].group.core.arrivals.min()
    for one, other in zip(*(end.linear for end in ends), strict=True):
        np.testing.assert_array_equal(one.w, other.w)


def test_a_replay_gives_the_same_group():
    """During the search, at its end, and while the group catches up."""
    of = samples(400)
    expected, position, _, _ = outcome(40, of)
    kinds = set()
    for stop in range(41, position):
        _, _, work, rows = outcome(40, of, stop)
        plan, state = work.plan, work.plan.state()
        kinds.add(type(plan))
        again = (
            GroupStart.restored(state, 20) if "found" in state else Search.restored(state, 0, True)
        )
        twin = PendingTuning(again)
        twin.replay(rows, stop)
        result, end, _ = stepped(twin, rows, of, stop)
        assert end == position
        assert_same_state(result.group.state(), expected.group.state())
        for one, other in zip(result.linear, expected.linear, strict=True):
            np.testing.assert_array_equal(one.w, other.w)
    assert kinds == {GroupStart, Search}


def test_a_group_with_rounding_errors_is_removed(monkeypatch):
    of = samples(400)
    monkeypatch.setenv("POGP_BACKEND", "reference")
    monkeypatch.setattr("pogp.online.steps.GroupStep.learn", _raise)
    result, _, _, _ = outcome(40, of)
    assert result.group is None


def _raise(*_):
    raise FloatingPointError("not finite")


def test_a_constant_target_gives_no_group():
    of = samples(200)
    of.Y[:] = 3.0
    result, _, _, _ = outcome(40, of)
    assert result.group is None
    assert not result.scales.usable


def test_a_search_considers_all_points_unless_there_is_much_noise():
    group = learned(samples(), max_size=15)
    group.noise = 0.9 * NOISY
    assert group.needed_points == group.size
    group.noise = 1.1 * NOISY
    assert group.needed_points == group.size // 3


def test_a_compact_copy_gives_the_same_groups_and_takes_less_memory(backend):
    of = samples(80)
    group = learned(of)
    group.reserve()
    compact, whole = group.copy(compact=True), group.copy()
    U = np.random.default_rng(1).normal(size=(5, 2))
    for mine, theirs in zip(compact.predict(U), whole.predict(U), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    new = []
    for old in (compact, whole):
        new.append(Group(old.hyperparameters, old.scales, 1, 200))
        finished(new[-1].transfer(old, None))
        finished(new[-1].learn(samples(40, seed=1)))
    assert_same_state(*(each.state() for each in new))
    assert compact.nbytes < whole.nbytes or backend == "reference"
