"""Whether the relation has changed: against brute force, and on paths with and without a change."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import pogp
from pogp.kernels import evaluate
from pogp.online.group import Group
from pogp.online.relation import (
    CORRELATION,
    FIRST,
    LONGEST_WAIT,
    MISFIT,
    N_POSITIONS,
    NOISE_FACTORS,
    PERIOD,
    RelationTest,
    RelationWatch,
    Verdict,
)
from pogp.online.retuning import in_units
from pogp.online.samples import LATEST, Samples
from pogp.online.scales import Scales
from pogp.online.tuning import Hyperparameters, Prior
from pogp.slices import finished

from ..conftest import assert_same_state


def joint(count, change, seed=0):
    """Angle, speed and acceleration of one joint, and its torque; the payload grows by 40 %."""
    rng = np.random.default_rng(seed)
    rates, phases = rng.uniform(0.3, 2.5, (4, 1)), rng.uniform(0, 2 * np.pi, (4, 1))
    angle = rates * np.arange(count) / 100 + phases
    X = 0.5 * np.column_stack(
        [
            np.sin(angle).sum(0),
            (rates * np.cos(angle)).sum(0),
            -(rates**2 * np.sin(angle)).sum(0),
        ]
    )
    load = np.where(np.arange(count) < change, 1.0, 1.4)
    torque = (1 + 0.3 * load) * X[:, 2] + 4 * load * np.cos(X[:, 0]) + 0.6 * X[:, 1]
    return X, torque + np.tanh(5 * X[:, 1]) + 0.05 * rng.normal(size=count)


def drawn(change=700, since=600, began=900, outputs=1, extra=0.0, seed=0):
    """Return a test of samples of which those after `change` have another function."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (began, 2))
    steep = np.where(np.arange(began) < change, 1.0, 1.3)
    Y = np.column_stack([steep * (np.sin(2 * X[:, 0]) + k * X[:, 1]) for k in range(outputs)])
    Y = Y + 0.05 * rng.normal(size=Y.shape)
    weights = rng.uniform(0.5, 1.0, began)
    of = Samples(X, Y, np.arange(began), np.zeros(began, bool), extra + 0 * Y, weights, 0 * Y)
    prior = Prior("Matern32", np.arange(2))
    found = Hyperparameters(prior, prior.mean, 0.0, np.empty(0, bool))
    group = Group(found, Scales.of(X, Y), outputs, 50)
    test = RelationTest.drawn(began, of, since, group, seed=0)
    assert test is not None
    return test, group


@pytest.mark.parametrize(("outputs", "extra"), [(1, 0.0), (2, 0.001)])
def test_the_evidence_is_that_of_two_correlated_functions(outputs, extra):
    test, group = drawn(outputs=outputs, extra=extra)
    of, scales = test.samples, group.scales
    U, T = scales.inputs(of.X), scales.targets(of.Y)
    K = evaluate(group.hyperparameters.kernel, U, U)
    own = (of.extra / scales.unit**2).mean(axis=1)

    def evidence(covariance):
        return max(
            sum(
                multivariate_normal.logpdf(
                    y, cov=covariance + np.diag(factor * group.noise / of.weights + own)
                )
                for y in T.T
            )
            for factor in NOISE_FACTORS
        )

    positions, gains = np.linspace(600, 900, N_POSITIONS, endpoint=False).astype(int), {}
    for position in positions.tolist():
        apart = (of.positions[:, None] < position) != (of.positions < position)
        gains[position] = evidence(np.where(apart, CORRELATION * K, K)) - evidence(K)
    settings = (group.hyperparameters.kernel, group.noise, positions)
    verdict = finished(test._compared(in_units(of, scales), *settings))
    assert verdict.position == max(gains, key=gains.__getitem__)
    assert verdict.gain == pytest.approx(max(gains.values()), rel=1e-9)


def test_more_samples_decide_what_a_few_do_not(monkeypatch):
    test, _ = drawn(change=900, since=1000, began=1400)
    verdicts = [Verdict(5.0, 1100), Verdict(9.0, 1200), Verdict(99.0, 1200)]
    asked = []

    def compared(self, samples, kernel, noise, positions):
        asked.append((len(samples.X), len(positions)))
        return verdicts[len(asked) - 1]
        yield

    monkeypatch.setattr(RelationTest, "_compared", compared)
    assert finished(test.run()).changed
    assert asked == [(120, N_POSITIONS), (240, N_POSITIONS), (480, 1)]
    verdicts[1], asked = Verdict(-1.0, 1200), asked.clear() or asked
    assert finished(test.run()).same
    assert len(asked) == 2


@pytest.mark.parametrize("seed", range(3))
def test_a_change_is_found_near_its_position(seed):
    verdict = finished(drawn(change=700, seed=seed)[0].run())
    assert verdict.changed
    assert 600 <= verdict.position <= 750


@pytest.mark.parametrize("seed", range(3))
def test_one_relation_explains_samples_without_a_change(seed):
    verdict = finished(drawn(change=900, seed=seed)[0].run())
    assert verdict.same
    assert not verdict.changed


def test_a_test_needs_samples_of_both_sides():
    test, group = drawn()
    for since in (10, 890):
        assert RelationTest.drawn(900, test.samples, since, group, 0) is None


def test_a_test_that_is_restored_has_the_same_result():
    test, _ = drawn()
    twin = RelationTest.restored(test.state())
    assert finished(twin.run()) == finished(test.run())
    assert twin.nbytes == test.nbytes
    assert twin.quota == test.quota
    for wrong in ([], [0, 240], [120, 10_000]):
        with pytest.raises(ValueError, match="cannot end at"):
            RelationTest.restored({**test.state(), "ends": np.array(wrong)})


def test_a_group_that_forgets_once_is_correlated_with_the_new_function(backend):
    test, group = drawn()
    finished(group.learn(test.samples))
    new = Group(group.hyperparameters, group.scales, 1, 50)
    finished(new.transfer(group, None, CORRELATION**2))
    U = np.random.default_rng(1).normal(size=(20, 2))
    (mean, variance), (before, known) = new.core.predict(U), group.core.predict(U)
    prior = np.diagonal(evaluate(group.hyperparameters.kernel, U, U))
    source = group.source_beliefs[0]
    np.testing.assert_allclose(mean[0], CORRELATION * before[source], atol=1e-9)
    expected = CORRELATION**2 * known[source] + (1 - CORRELATION**2) * prior
    np.testing.assert_allclose(variance[0], expected, rtol=1e-8)
    finished(new.learn(test.samples))  # points have the right prices
    new.core.prune(new.criterion, -np.inf, 10)
    assert np.isfinite(new.core.predict(U)[0]).all()


def test_a_change_needs_a_group_from_before_it():
    watch, (_, group) = RelationWatch(), drawn()
    changed, unclear, same = Verdict(99.0, 1100), Verdict(9.0, 1100), Verdict(-9.0, 1100)
    for verdict in (changed, unclear):
        assert watch.end_test(verdict, 1400, group) is None
        assert watch.group is None
    assert watch.end_test(same, 1400, group) is None
    assert watch.tested_at == 1400
    stored = watch.group
    assert watch.end_test(unclear, 1900, group) is None
    assert watch.group is stored
    assert watch.end_test(unclear, 1400 + LATEST, group) is None
    assert watch.tested_at == 1400 + LATEST
    stored = watch.group
    assert watch.end_test(changed, 2900, group) is stored
    assert watch.since == 1100
    assert not watch.allows_tuning(2 * 1100 - 1, group)
    assert watch.allows_tuning(2 * 1100, group)
    group.noise_factor[:] = MISFIT
    assert not watch.allows_tuning(1100 + PERIOD - 1, group)
    assert watch.allows_tuning(1100 + PERIOD, group)
    watch.since = 2 * LONGEST_WAIT
    assert watch.allows_tuning(3 * LONGEST_WAIT, None)


def test_tests_follow_a_schedule():
    watch, (test, group) = RelationWatch(), drawn()
    for seen, following in ((FIRST, FIRST + PERIOD), (FIRST + 4 * PERIOD + 7, FIRST + 5 * PERIOD)):
        watch.test(seen, test.samples, group, 0)
        assert watch.next_test == following
    watch.restore({}, 1, 50, 10_000)  # an older file
    assert 10_000 < watch.next_test <= 10_000 + PERIOD


def test_damaged_states_are_refused():
    state = RelationWatch().state()
    for wrong in ({"since": 5}, {"tested_at": -1, "since": -1}, {"next": -1}):
        with pytest.raises(ValueError, match="do not agree with 4 samples"):
            RelationWatch().restore({**state, **wrong}, 1, 50, 4)


def test_a_payload_that_grows_is_learned_for_rows_elsewhere():
    """Along the path the last residual hides the change."""
    X, y = joint(8000, 3300)
    model = pogp.OnlineGP(max_size=150)
    model.learn(X[:5000], y[:5000])
    events = [event for event in model.history if event.what == "relation changed"]
    assert [3300 < event.position < 4500 for event in events] == [True]
    later, truth = X[6000:], y[6000:]
    model.settle()
    assert pogp.metrics.smse(truth, model.predict(later)[0], truth.var()) < 0.02


def test_without_a_change_no_tests_find_one():
    X, y = joint(4000, 9000, seed=1)
    model = pogp.OnlineGP(max_size=60)
    model.learn(X, y)
    assert "relation changed" not in {event.what for event in model.history}
    assert model._stream.relation.group is not None


def test_a_stream_without_a_group_has_no_test_and_can_be_loaded():
    X = np.random.default_rng(0).normal(size=(2 * LATEST + FIRST, 2))
    model = pogp.OnlineGP()
    model.learn(X, np.full(len(X), 3.0))
    assert_same_state(model, pogp.from_bytes(model.to_bytes()))


def test_a_stream_that_is_resumed_during_a_test_or_a_change_is_the_same():
    X, y = joint(4200, 3300)
    whole = pogp.OnlineGP(max_size=40)
    whole.learn(X[:3390], y[:3390])
    twin, seen = whole.copy(), set()
    for i in range(3390, 4000):
        for each in (whole, twin):
            each.learn(X[i], y[i])
        plan = twin._stream.pending and twin._stream.pending.plan
        kind = (type(plan).__name__, getattr(plan, "remembered", 1.0) < 1.0)
        if kind not in seen or i % 100 == 0:
            twin = pogp.from_bytes(twin.to_bytes())
        seen.add(kind)
    assert {("RelationTest", False), ("GroupStart", True)} <= seen
    assert twin._stream.relation.since > 0
    assert_same_state(whole, twin)


def test_a_change_in_a_part_of_the_space_is_learned():
    """The kernel before does not fit: the function was linear in the second input."""
    rng = np.random.default_rng(1)
    X, late = rng.uniform(-3, 3, (4000, 2)), np.arange(4000) >= 2500
    y = np.sin(2 * X[:, 0]) + 0.4 * X[:, 1] + np.cos(X[:, 0]) * np.maximum(0, X[:, 1]) * late
    y = y + 0.2 * rng.normal(size=4000)
    model = pogp.OnlineGP(max_size=150)
    error = y - model.learn(X, y).mean
    assert "relation changed" in {event.what for event in model.history}
    assert np.mean(error[3500:] ** 2) < 2.0 * 0.2**2
