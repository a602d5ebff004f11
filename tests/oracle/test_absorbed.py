"""The absorbed posterior against the Gaussians it claims to be, written out in full."""

import numpy as np
import pytest

import pogp
from pogp._core import absorbed_core
from pogp._core.absorber_reference import Absorber, Rule, removal_cost
from pogp.compression import Plan

KERNEL, NOISE, MEAN = pogp.RBF(lengthscale=0.8), 0.05, np.array([0.3])


SLACKS = (0.0, 0.02, 0.1, np.inf)  # from conditioning to marginalising


def learned(points=8, absorbed=6, seed=0, noise=NOISE):
    """A posterior that has points, and samples that left none."""
    rng = np.random.default_rng(seed)
    core = Absorber(KERNEL, noise, MEAN, 2)
    for arrival in range(points + absorbed):
        at, y = core.glance(rng.uniform(-2, 2, 2), noise), rng.normal(size=1)
        if arrival < points:
            core.append(at, y, arrival)
        else:
            core.absorb(at, y, SLACKS[arrival % 4])
    return core


def belief(core):
    """m and S of u, from what the data said and the prior."""
    L = np.linalg.inv(core.gram) + core.information
    S = np.linalg.inv(L)
    return S @ core.evidence[:, 0], S


def without(core, j, slack):
    """m and S of the other points after removing j, by definition.

    The data are pseudo-observations of all u; u_j is what the others say, and an error.
    """
    m, S = belief(core)
    rest = np.arange(core.size) != j
    if slack == np.inf:
        return m[rest], S[np.ix_(rest, rest)]
    K = core.gram
    T = np.eye(core.size)[:, rest]
    T[j] = np.linalg.solve(K[np.ix_(rest, rest)], K[rest, j])  # E[u | the others] = Tu
    noise = np.linalg.inv(core.information)
    values = noise @ core.evidence[:, 0]
    noise[j, j] += min(slack, K[j, j] - K[rest, j] @ T[j])
    S = np.linalg.inv(np.linalg.inv(K[np.ix_(rest, rest)]) + T.T @ np.linalg.solve(noise, T))
    return S @ (T.T @ np.linalg.solve(noise, values)), S


def joint_hellinger_cost(m1, S1, m2, S2):
    middle = (S1 + S2) / 2
    (_, one), (_, two), (_, both) = (np.linalg.slogdet(S) for S in (S1, S2, middle))
    delta = m1 - m2
    return both / 2 - (one + two) / 4 + delta @ np.linalg.solve(middle, delta) / 8


@pytest.mark.parametrize("slack", SLACKS)
@pytest.mark.parametrize("j", [0, 3, 7])
@pytest.mark.parametrize("noise", [NOISE, 1e-4])  # the second is taken care of
def test_a_removal_leaves_the_belief_it_should(j, slack, noise):
    core = learned(noise=noise)
    m, S = without(core, j, slack)
    order = [i for i in range(core.size) if i != j]
    core.project(j, slack)
    # the last slot moved into slot j
    place = order[:-1][:j] + order[-1:] + order[:-1][j:] if j < core.size else order
    place = [order.index(i) for i in place]
    after_m, after_S = belief(core)
    np.testing.assert_allclose(after_m, m[place], atol=1e-9)
    np.testing.assert_allclose(after_S, S[np.ix_(place, place)], atol=1e-9)


@pytest.mark.parametrize("slack", SLACKS)
@pytest.mark.parametrize("noise", [NOISE, 1e-4])
def test_the_cost_of_a_removal_is_the_distance_of_the_whole_process(slack, noise):
    core = learned(noise=noise)
    m, S = belief(core)
    spread = np.diagonal(core.inverse) - np.diagonal(core.precision)
    costs = removal_cost(
        slack,
        np.diagonal(core.inverse),
        spread,
        np.diagonal(core.information),
        core.weights[:, 0] ** 2,
    )
    for j in range(core.size):
        rest = np.arange(core.size) != j
        m_rest, S_rest = without(core, j, slack)
        K = core.gram
        onto = np.linalg.solve(K[np.ix_(rest, rest)], K[rest, j])
        # the process afterwards, at all points: u_j follows from the others by the prior
        T = np.eye(core.size)[:, rest]
        T[j] = onto
        after_S = T @ S_rest @ T.T
        after_S[j, j] += K[j, j] - K[rest, j] @ onto
        expected = joint_hellinger_cost(m, S, T @ m_rest, after_S)
        assert costs[j] == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("noise", [NOISE, 1e-4])
def test_what_predictions_need_follows_from_what_the_data_said(noise):
    core = learned(noise=noise)
    for j, slack in ((2, 0.0), (5, 0.1), (1, np.inf)):
        core.project(j, slack)
    expected = {name: getattr(core, name).copy() for name in ("inverse", "precision", "weights")}
    core.rebuild()
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(core, name), value, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("noise", [0.1, 0.01])
def test_with_room_for_all_it_is_the_dense_gp(backend, noise):
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, (120, 2))
    y = np.sin(X.sum(axis=1)) + 0.1 * rng.normal(size=120)
    dense = pogp.DenseGP(KERNEL, noise, mean=0.3)
    sparse = pogp.SOGP(KERNEL, noise, 120, tolerance=0.0, mean=0.3)
    expected, trace = dense.learn(X, y), sparse.learn(X, y)
    assert sparse.size == 120
    np.testing.assert_allclose(trace.records, expected.records, atol=1e-7)
    for ours, theirs in zip(sparse.predict(X), dense.predict(X), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-8)
    np.testing.assert_allclose(sparse.covariance(X[:9]), dense.covariance(X[:9]), atol=1e-8)


@pytest.mark.parametrize("rule", ["csato", "error", "hellinger"])
@pytest.mark.parametrize("slack", [0.0, 0.3, np.inf])
@pytest.mark.parametrize("noise", [NOISE, 1e-4])
def test_both_implementations_keep_the_same_points(monkeypatch, rule, slack, noise):
    rng = np.random.default_rng(2)
    X = np.round(rng.uniform(-2, 2, (400, 2)), 1)  # inputs repeat
    y = np.sin(X.sum(axis=1)) + 0.1 * rng.normal(size=400)
    results = []
    for name in ("compiled", "reference"):
        monkeypatch.setenv("POGP_BACKEND", name)
        core = absorbed_core(KERNEL, noise, MEAN, 2)
        plan = Plan(np.full(400, 0.02), 25, 3)
        one = np.ones(400)
        rules = Rule(rule, slack, 1e-6)
        records = core.learn(rules, X, y[:, None], noise * one, one, 0, plan)
        results.append((core, records))
    (one, first), (other, second) = results
    np.testing.assert_array_equal(one.arrivals, other.arrivals)
    np.testing.assert_allclose(first, second, atol=1e-5)
    size = np.abs(one.precision).max()
    np.testing.assert_allclose(one.precision, other.precision, rtol=1e-6, atol=1e-6 * size)
    scale = np.abs(one.information).max()
    np.testing.assert_allclose(one.information, other.information, rtol=1e-5, atol=1e-6 * scale)
