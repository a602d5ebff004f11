"""The absorbed posterior against the Gaussians it claims to be, written out in full."""

from itertools import product

import numpy as np
import pytest

import pogp
from pogp.compression import Plan
from pogp.criteria import KeepAll, LeastDivergence, LeastError, WholePosterior, removal_cost
from pogp.posteriors.absorbed import absorbed_core
from pogp.posteriors.absorbed.loop import AbsorbedLoop

from ..conftest import BACKENDS, rbf
from ..pairwise import pairwise
from .beliefs import Belief
from .brute_force import hellinger_1d

KERNEL, NOISE, MEAN = pogp.RBF(lengthscale=0.8), 0.05, np.array([0.3])
VARYING = pogp.Linear(0.7) + pogp.RBF(0.8)
KERNELS = pytest.mark.parametrize("kernel", [KERNEL, VARYING], ids=["rbf", "varying"])
PROJECTIONS = pytest.mark.parametrize("marginalise", [False, True])
NOISES = pytest.mark.parametrize("noise", [NOISE, 1e-4, 1e-7])


def learned(points=8, absorbed=6, seed=0, noise=NOISE, kernel=KERNEL, forgetting=(1.0,)):
    """A posterior that has points, and samples that left none."""
    rng = np.random.default_rng(seed)
    core = AbsorbedLoop(kernel, noise, MEAN, 2, forgetting)
    for arrival in range(points + absorbed):
        at, y = core.at_input(rng.uniform(-2, 2, 2)), rng.normal(size=1)
        noises = np.full(len(forgetting), noise)
        if arrival < points:
            core.append(at, y, noises, arrival)
        else:
            core.absorb(at, y, noises, bool(arrival % 2))
        core.forget()
    return core


def without(core, j, marginalise):
    """m and S of the other points after removing j, by definition.

    The data are pseudo-observations of all u; u_j is what the others say.
    """
    m, S = core.values[0, :, 0], core.covariance[0]
    rest = np.arange(core.size) != j
    if marginalise:
        return m[rest], S[np.ix_(rest, rest)]
    K = core.gram
    T = np.eye(core.size)[:, rest]
    T[j] = np.linalg.solve(K[np.ix_(rest, rest)], K[rest, j])  # E[u | the others] = Tu
    total = np.linalg.inv(S)
    said = T.T @ (total - np.linalg.inv(K)) @ T
    after = np.linalg.inv(np.linalg.inv(K[np.ix_(rest, rest)]) + said)
    return after @ (T.T @ total @ m), after


def joint_hellinger_cost(m1, S1, m2, S2):
    middle = (S1 + S2) / 2
    (_, one), (_, two), (_, both) = (np.linalg.slogdet(S) for S in (S1, S2, middle))
    delta = m1 - m2
    return both / 2 - (one + two) / 4 + delta @ np.linalg.solve(middle, delta) / 8


def assert_kept(core):
    """Everything that is kept follows from K and the beliefs."""
    Q = np.linalg.inv(core.gram)
    np.testing.assert_allclose(core.inverse, Q, rtol=1e-7, atol=1e-9 * np.abs(Q).max())
    alpha, S = Q @ core.values[core.lead], core.covariance[core.lead]
    np.testing.assert_allclose(core.weights, alpha, rtol=1e-7, atol=1e-7 * np.abs(alpha).max())
    np.testing.assert_allclose(core.spread, np.diagonal(Q @ S @ Q), rtol=1e-6)
    for S in core.covariance:
        assert (np.linalg.eigvalsh(core.gram - S) > -1e-12).all()
    if core.has_information:
        said = np.linalg.inv(core.covariance[0]) - Q
        size = np.abs(said).max()
        np.testing.assert_allclose(core.information, said, rtol=1e-6, atol=1e-7 * size)


@PROJECTIONS
@KERNELS
@pytest.mark.parametrize("j", [0, 3, 7])
@NOISES
def test_a_removal_leaves_the_belief_it_should(j, marginalise, noise, kernel):
    core = learned(noise=noise, kernel=kernel)
    m, S = without(core, j, marginalise)
    kept = [i for i in range(8) if i != j]
    core.remove(j, marginalise)
    place = [kept.index(i) for i in core.arrivals]  # the last slot moved into slot j
    np.testing.assert_allclose(core.values[0, :, 0], m[place], rtol=1e-7, atol=1e-7)
    S = S[np.ix_(place, place)]
    np.testing.assert_allclose(core.covariance[0], S, rtol=1e-6, atol=1e-6 * np.abs(S).max())
    assert_kept(core)


@PROJECTIONS
@KERNELS
@NOISES
def test_the_cost_of_a_removal_is_the_distance_of_the_whole_process(marginalise, noise, kernel):
    core = learned(noise=noise, kernel=kernel)
    m, S = core.values[0, :, 0], core.covariance[0]
    diagonals = (np.diagonal(core.inverse), core.spread, np.diagonal(core.information))
    costs = removal_cost(marginalise, *diagonals, core.weights[:, 0] ** 2, 1)
    for j in range(core.size):
        rest = np.arange(core.size) != j
        m_rest, S_rest = without(core, j, marginalise)
        K = core.gram
        # the process afterwards, at all points: u_j follows from the others by the prior
        T = np.eye(core.size)[:, rest]
        T[j] = np.linalg.solve(K[np.ix_(rest, rest)], K[rest, j])
        after_S = T @ S_rest @ T.T
        after_S[j, j] += K[j, j] - K[rest, j] @ T[j]
        expected = joint_hellinger_cost(m, S, T @ m_rest, after_S)
        assert costs[j] == pytest.approx(expected, rel=1e-6)


@KERNELS
def test_a_belief_that_forgets_prices_what_a_point_adds(kernel):
    core = learned(kernel=kernel, forgetting=(0.9,))
    costs = WholePosterior().costs(core)
    m, S, K = core.values[0, :, 0], core.covariance[0], core.gram
    for j in range(core.size):
        rest = np.arange(core.size) != j
        row = np.eye(core.size)[j]
        row[rest] = -np.linalg.solve(K[np.ix_(rest, rest)], K[rest, j])
        expected = hellinger_1d(row @ m, row @ S @ row, 0.0, row @ K @ row)
        assert np.sqrt(-np.expm1(-costs[j])) == pytest.approx(expected, rel=1e-8)


@KERNELS
@PROJECTIONS
@pytest.mark.parametrize("noise", [NOISE, 1e-4])
@pytest.mark.parametrize("forgetting", [(1.0,), (0.95,), (1.0, 0.97, 0.8)])
def test_all_that_is_kept_follows_from_the_beliefs(forgetting, noise, kernel, marginalise):
    core = learned(noise=noise, kernel=kernel, forgetting=forgetting)
    assert_kept(core)
    for j in (2, 5, 1):
        core.remove(j, marginalise)
        core.forget()
    assert_kept(core)


def test_several_beliefs_are_what_each_would_be_alone():
    """The points are shared; what is learned at them is not."""
    together = learned(forgetting=(0.97, 1.0, 0.8))
    for i, forgetting in enumerate(together.forgetting):
        alone = learned(forgetting=(forgetting,))
        for core in (alone, together):
            core.remove(2, False) if core.size == 8 else None
        for name in ("covariance", "values"):
            ours, theirs = getattr(together, name)[i], getattr(alone, name)[0]
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-13)
        together.set_lead(i)
        for name in ("weights", "spread"):
            ours, theirs = getattr(together, name), getattr(alone, name)
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("noise", [0.1, 0.01])
def test_with_room_for_all_it_is_the_dense_gp(backend, noise):
    rng = np.random.default_rng(1)
    X = rng.uniform(-4, 4, (120, 2))
    y = np.sin(X.sum(axis=1)) + 0.1 * rng.normal(size=120)
    dense = pogp.DenseGP(KERNEL, noise, mean=0.3)
    sparse = pogp.SOGP(KERNEL, noise, 120, tolerance=0.0, mean=0.3)
    expected, trace = dense.learn(X, y), sparse.learn(X, y)
    assert sparse.size == 120
    np.testing.assert_allclose(trace.records, expected.records, atol=1e-7)
    for ours, theirs in zip(sparse.predict(X), dense.predict(X), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-8)
    np.testing.assert_allclose(sparse.covariance(X[:9]), dense.covariance(X[:9]), atol=1e-8)


def run(criterion, kernel, noise, forgetting, outputs=1, n=45):
    rng = np.random.default_rng(2)
    X = np.round(rng.uniform(-2, 2, (n, 2)), 1)  # inputs repeat
    y = np.sin(X.sum(axis=1)) + 0.1 * rng.normal(size=n)
    Y = np.ascontiguousarray(np.column_stack([y, np.cos(2 * y)])[:, :outputs])
    informed = criterion.whole
    core = absorbed_core(kernel, noise, np.full(outputs, 0.3), 2, forgetting, informed)
    plan, one = Plan(np.full(n, 0.02), 15, 3), np.ones(n)
    return core, core.learn(criterion, X, Y, noise * one, one, 0, plan)


@pairwise(
    rule=list(product((LeastDivergence, LeastError, WholePosterior, KeepAll), (False, True))),
    redundant=[(0.0, 1e-3), (0.1, 0.0), (2.0, 0.0)],
    kernel=[KERNEL, VARYING],
    setting=[
        (NOISE, (1.0,), 1),
        (1e-4, (1.0,), 2),
        (NOISE, (0.98,), 2),
        (1e-3, (1.0, 0.99, 0.9), 1),
    ],
)
def test_both_implementations_keep_the_same_points(monkeypatch, rule, redundant, kernel, setting):
    noise, forgetting, outputs = setting
    kind, marginalise = rule
    criterion = kind(marginalise, *redundant, reduce=marginalise)
    results = []
    for name in ("compiled", "reference"):
        monkeypatch.setenv("POGP_BACKEND", name)
        results.append(run(criterion, kernel, noise, forgetting, outputs))
    (one, first), (other, second) = results
    assert one.compiled
    assert not other.compiled
    np.testing.assert_array_equal(one.arrivals, other.arrivals)
    ours, theirs = (pogp.Trace(records, flat=False) for records in (first, second))
    np.testing.assert_array_equal(ours.size, theirs.size)
    np.testing.assert_array_equal(ours.removed, theirs.removed)
    np.testing.assert_allclose(first, second, rtol=1e-6, atol=1e-6)
    for name in ("gram", "inverse", "covariance", "information", "values", "weights", "spread"):
        ours, theirs = getattr(one, name), getattr(other, name)
        size = np.abs(ours).max(initial=1e-300)
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-7 * size, err_msg=name)


@pairwise(
    backend=BACKENDS,
    share=[0.1, 1.0, 5.0],
    marginalise=[False, True],
    forgetting=[1.0, 0.97],
    name=["rbf", "varying"],
    outputs=[1, 2],
)
def test_redundant_points_go_as_the_oracle_says(
    backend, share, marginalise, forgetting, name, outputs
):
    """A random walk that comes back: what was novel once follows from later points."""
    rng = np.random.default_rng(4)
    X = np.cumsum(rng.normal(scale=0.35, size=(60, 1)), axis=0) % 4
    y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=60)
    Y = np.column_stack([y, y**2 - 1])[:, :outputs]
    kernel, written = KERNEL, rbf(0.8)
    if name == "varying":
        kernel, written = VARYING, lambda A, B: 0.7 * A @ B.T + rbf(0.8)(A, B)
    noise = 0.02
    options = {"project": not marginalise, "reduce": marginalise, "forgetting": forgetting}
    oracle = Belief(written, noise, 0.3, share=share, **options)
    oracle.learn(X, Y, limit=0.01, max_size=12)
    model = pogp.AbsorbingPOG(
        kernel,
        noise,
        0.01,
        max_size=12,
        mean=np.full(outputs, 0.3),
        share=share,
        forgetting=forgetting,
        projection="marginalise" if marginalise else "condition",
    )
    kept, records = [], []
    for x, target in zip(X, Y, strict=True):
        records.append(model.learn(x[None], target[None]))
        kept.append(model.indices.tolist())
    assert kept == oracle.kept
    assert [trace.removed[0] for trace in records] == [step[3] for step in oracle.steps]
    spent = [trace.spent[0] for trace in records]
    np.testing.assert_allclose(spent, [step[2] for step in oracle.steps], rtol=1e-5, atol=1e-6)
    queries = np.linspace(-1, 5, 50)[:, None]
    means, variances = oracle.predict(queries)
    mean, variance = model.predict(queries)
    np.testing.assert_allclose(mean, means, atol=1e-7)
    np.testing.assert_allclose(variance[:, 0], variances, atol=1e-8)
