"""Smola & Bartlett, Keerthi & Chu and Seeger against their objectives, solved from scratch."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import pogp
from pogp.files import container
from pogp.kernels import RBF, Matern12, Matern32, Stationary
from pogp.models.baselines.greedy_rules import (
    AllCoefficients,
    InformationGain,
    OneCoefficient,
    select,
)
from pogp.posteriors.inducing import NUGGET
from pogp.posteriors.projected import Projection

from ...conftest import rbf, repeated, smooth_1d, smooth_2d, smooth_5d
from ...pairwise import pairwise

KINDS = {"SmolaBartlett": pogp.SmolaBartlett, "KeerthiChu": pogp.KeerthiChu, "Seeger": pogp.Seeger}
RULES = {
    "SmolaBartlett": lambda count=None: AllCoefficients(count),
    "KeerthiChu": lambda count=10_000: OneCoefficient(count, 59),
    "Seeger": lambda count=None: InformationGain(count),
}
ARD, VARIANCE = (0.3, 0.5), 1.3
KERNEL, NOISE, MEAN = RBF(ARD, VARIANCE), 0.05, 0.4
X, Y = smooth_2d(60, seed=3)
QUERIES = np.random.default_rng(5).uniform(-1.2, 1.2, (40, 2))


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def make(kind, kernel=KERNEL, noise=NOISE, size=9, **options):
    return KINDS[kind](kernel, noise, size, **{"mean": MEAN, **options})


# ---- the formulas of the papers, by brute force and with a nugget on κ(Z, Z)


def grams(kernel, X, Z):
    """Return κ(Z, Z) + νI and κ(X, Z)."""
    nugget = NUGGET * np.mean([kernel(x[None], x[None]).item() for x in X])
    return kernel(Z, Z) + nugget * np.eye(len(Z)), kernel(X, Z)


def objective(gram, cross, noise, y, alpha):
    """−yᵀK_nM α + ½ αᵀ(σ²K_MM + K_Mn K_nM)α."""
    return -y @ cross @ alpha + 0.5 * alpha @ (noise * gram + cross.T @ cross) @ alpha


def optimum(gram, cross, noise, y):
    """Return the coefficients of the lowest objective, by least squares on [K_nM; σLᵀ]."""
    stacked = np.vstack([cross, np.sqrt(noise) * np.linalg.cholesky(gram).T])
    return np.linalg.lstsq(stacked, np.append(y, np.zeros(len(gram))), rcond=0)[0]


def lowest(kernel, noise, X, y, chosen):
    if len(chosen) == 0:
        return 0.0
    gram, cross = grams(kernel, X, X[chosen])
    return objective(gram, cross, noise, y, optimum(gram, cross, noise, y))


def smola_bartlett(kernel, noise, X, y, chosen, j):
    with_j = lowest(kernel, noise, X, y, [*chosen, j])
    return lowest(kernel, noise, X, y, chosen) - with_j


def keerthi_chu(kernel, noise, X, y, chosen, j):
    alpha = np.zeros(len(chosen) + 1)
    if len(chosen):
        alpha[:-1] = optimum(*grams(kernel, X, X[chosen]), noise, y)
    gram, cross = grams(kernel, X, X[[*chosen, j]])

    def moved(step):
        return objective(gram, cross, noise, y, np.append(alpha[:-1], step))

    return moved(0.0) - minimize_scalar(moved, tol=1e-10).fun


def seeger(kernel, noise, X, y, chosen, j):
    """Return the divergence between two Gaussians of dimension M + 1, written out."""
    gram, _ = grams(kernel, X, X[[*chosen, j]])
    m = len(chosen)
    projections = np.zeros((m + 1, len(X)))  # E[f(X) | u], from u without j
    if m:
        projections[:m] = np.linalg.solve(gram[:m, :m], kernel(X[chosen], X))

    def posterior(projections):
        covariance = np.linalg.inv(np.linalg.inv(gram) + projections @ projections.T / noise)
        return covariance @ projections @ y / noise, covariance

    before = posterior(projections)
    projections[:, j] = np.eye(m + 1)[m]  # y_j observes u_j itself
    after = posterior(projections)
    shift, ratio = after[0] - before[0], np.linalg.solve(before[1], after[1])
    mahalanobis = shift @ np.linalg.solve(before[1], shift)
    return 0.5 * (np.trace(ratio) - m - 1 - np.linalg.slogdet(ratio)[1] + mahalanobis)


SCORES = {"SmolaBartlett": smola_bartlett, "KeerthiChu": keerthi_chu, "Seeger": seeger}


def written_out(kernel, noise, X, y, Z, A):
    """Return the mean and the covariance of f at A: DTC, as Quiñonero-Candela & Rasmussen give."""
    gram, cross = grams(kernel, X, Z)
    queried = kernel(A, Z)
    inner = np.linalg.inv(cross.T @ cross / noise + gram)
    mean = queried @ inner @ cross.T @ y / noise
    covariance = kernel(A, A) - queried @ (np.linalg.inv(gram) - inner) @ queried.T
    return mean, covariance


@pairwise(kind=list(KINDS), noise=[0.05, 1e-4, 10.0], data=[smooth_1d, smooth_2d, smooth_5d])
def test_every_score_of_every_step_is_the_brute_force_one(kind, data, noise):
    inputs, y = data(24, seed=1)
    scales = {1: 0.4, 2: ARD, 5: 1.5}[inputs.shape[1]]
    projection = Projection(RBF(scales, VARIANCE), noise, inputs, y, 6)
    rule, kernel = RULES[kind](), rbf(scales, VARIANCE)
    for _ in range(6):
        candidates, chosen = projection.independent(), list(projection.chosen)
        assert set(candidates).isdisjoint(chosen)
        scores = rule.scores(projection, candidates)
        expected = [SCORES[kind](kernel, noise, inputs, y, chosen, j) for j in candidates]
        tolerance = 1e-8 * (1.0 + abs(lowest(kernel, noise, inputs, y, chosen)))
        np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=tolerance)
        projection.include(int(candidates[np.argmax(scores)]))


def test_the_information_gain_is_the_published_formula():
    projection = Projection(KERNEL, NOISE, X, Y, 15)
    select(InformationGain(None), projection, 15, 0)
    candidates = projection.independent()
    l2 = projection.slack[candidates] + projection.nugget
    misfit, leverage = projection.misfit[candidates], projection.leverage[candidates]
    xi = 1 / (NOISE / l2 + 1 - leverage)
    kappa = xi * (1 + 2 * NOISE / l2)
    bracket = np.log(xi) + xi * (1 - kappa) * misfit**2 / NOISE - kappa + 2
    published = -0.5 * np.log(NOISE / l2) - 0.5 * bracket
    scores = InformationGain(None).scores(projection, candidates)
    np.testing.assert_allclose(scores, published, atol=1e-12)


def test_with_all_candidates_the_best_by_brute_force_is_taken(kind):
    chosen = []
    rest = list(range(len(X)))
    for size in range(1, 5):
        scores = [SCORES[kind](rbf(ARD, VARIANCE), NOISE, X, Y - MEAN, chosen, j) for j in rest]
        chosen.append(rest.pop(int(np.argmax(scores))))
        model = make(kind, size=size, candidates=len(X)).fit(X, Y)
        np.testing.assert_array_equal(model.indices, np.sort(chosen))


@pytest.mark.parametrize("noise", [NOISE, 1e-8])
def test_progress_receives_the_lowest_objective(kind, noise):
    told = []
    make(kind, noise=noise, size=25).fit(X, Y, progress=lambda *call: told.append(call))
    assert [number for number, _ in told] == list(range(1, 26))
    values = [value for _, value in told]
    assert values == sorted(values, reverse=True)
    last = make(kind, noise=noise, size=25).fit(X, Y).indices
    expected = lowest(rbf(ARD, VARIANCE), noise, X, Y - MEAN, last)
    assert values[-1] == pytest.approx(expected, rel=1e-9)


def test_the_projection_minimises_its_divergence(kind):
    projection = Projection(KERNEL, NOISE, X, Y, 20)
    select(RULES[kind](), projection, 20, 0)
    kernel = rbf(ARD, VARIANCE)
    mean, covariance = written_out(kernel, NOISE, X, Y, X[projection.chosen], X)
    gram, cross = grams(kernel, X, X[projection.chosen])
    explained = cross @ np.linalg.solve(gram, cross.T)
    hat = np.linalg.solve(explained + NOISE * np.eye(60), explained)
    np.testing.assert_allclose(projection.misfit, Y - mean, atol=1e-9)
    np.testing.assert_allclose(projection.slack, VARIANCE - np.diag(explained), atol=1e-9)
    np.testing.assert_allclose(projection.leverage, np.diag(hat), atol=1e-9)
    np.testing.assert_allclose(
        projection.slack + NOISE * projection.leverage, np.diag(covariance), atol=1e-9
    )


# ---- candidates


class Recorded(OneCoefficient):
    """Takes note of every step's candidates and of how they scored."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.steps = []

    def scores(self, projection, candidates):
        scores = super().scores(projection, candidates)
        self.steps.append((candidates, scores))
        return scores


def test_as_many_candidates_are_drawn_as_were_asked_for(kind, monkeypatch):
    counts = []
    rule = type(RULES[kind]())
    scores = rule.scores

    def counted(self, projection, candidates):
        assert len(set(candidates)) == len(candidates)
        counts.append(len(candidates))
        return scores(self, projection, candidates)

    monkeypatch.setattr(rule, "scores", counted)
    options = {"cache": 0} if kind == "KeerthiChu" else {}
    make(kind, candidates=7, **options).fit(X, Y)
    assert counts == [7] * 9
    counts.clear()
    make(kind, candidates=50, size=20, **options).fit(X, Y)
    assert counts == [min(50, 60 - chosen) for chosen in range(20)]


def test_seeger_takes_all_candidates():
    plain, all_of_them = (make("Seeger", candidates=c, seed=c or 3).fit(X, Y) for c in (None, 60))
    np.testing.assert_array_equal(plain.indices, all_of_them.indices)


def test_the_best_rejected_candidates_are_candidates_again():
    rule, projection = Recorded(7, 5), Projection(KERNEL, NOISE, X, Y, 12)
    select(rule, projection, 12, 0)
    assert [len(candidates) for candidates, _ in rule.steps] == [7] + [12] * 11
    for (candidates, scores), (later, _) in itertools.pairwise(rule.steps):
        ranked = candidates[np.argsort(-scores)]
        assert ranked[0] in projection.chosen
        assert set(ranked[1:6]) <= set(later)
        assert set(ranked[6:]).isdisjoint(set(later[:5]))


# ---- predictions


@pytest.mark.parametrize("kernel", [KERNEL, RBF() + Matern12(ARD, 0.3)], ids=repr)
def test_predictions_are_those_of_dtc_and_of_vfe_at_the_same_inputs(kind, kernel):
    model = make(kind, kernel).fit(X, Y)
    Z = model.dictionary
    np.testing.assert_array_equal(Z, X[model.indices])
    assert (np.diff(model.indices) > 0).all()
    mean, latent = written_out(kernel, NOISE, X, Y - MEAN, Z, QUERIES)
    vfe = pogp.VFE(kernel, NOISE, 9, mean=MEAN).fit(X, Y, inputs=Z, optimise=False)
    for noise, options in ((0.0, {"latent": True}), (NOISE, {})):
        ours = model.predict(QUERIES, **options)
        np.testing.assert_allclose(ours[0], MEAN + mean, atol=1e-9)
        np.testing.assert_allclose(ours[1], np.diag(latent) + noise, atol=1e-9)
        joint = model.covariance(QUERIES, **options)
        np.testing.assert_allclose(joint, latent + noise * np.eye(40), atol=1e-9)
        np.testing.assert_array_equal(ours, vfe.predict(QUERIES, **options))
        np.testing.assert_array_equal(joint, vfe.covariance(QUERIES, **options))


@pairwise(
    kind=list(KINDS),
    kernel=[RBF(0.1, VARIANCE), Matern12(ARD), Matern32(0.3)],
    size=[60, 61, 1000],
)
def test_with_every_sample_it_is_the_dense_gp(kind, kernel, size):
    model = make(kind, kernel, size=size).fit(X, Y)
    assert model.size == 60
    np.testing.assert_array_equal(model.indices, np.arange(60))
    dense = pogp.DenseGP(kernel, NOISE, mean=MEAN)
    dense.learn(X, Y)
    np.testing.assert_allclose(model.predict(QUERIES), dense.predict(QUERIES), atol=1e-8)
    np.testing.assert_allclose(model.covariance(QUERIES), dense.covariance(QUERIES), atol=1e-8)


def test_samples_that_follow_from_the_chosen_ones_are_not_needed(kind):
    inputs, y = smooth_1d(60)
    model = make(kind, RBF(1.5), size=60).fit(inputs, y)
    assert model.size < 30
    dense = pogp.DenseGP(RBF(1.5), NOISE, mean=MEAN)
    dense.learn(inputs, y)
    queries = np.linspace(-3, 3, 50)[:, None]
    np.testing.assert_allclose(model.predict(queries), dense.predict(queries), atol=1e-7)


# ---- what the selection is worth


@pytest.mark.parametrize("data", [smooth_1d, smooth_2d, smooth_5d])
def test_the_objective_is_below_that_of_random_subsets(data):
    inputs, y = data(200)

    def reached(chosen):
        return lowest(rbf(0.5), NOISE, inputs, y, chosen)

    smola, keerthi = (
        reached(make(kind, RBF(0.5), NOISE, 12, mean=0.0).fit(inputs, y).indices)
        for kind in ("SmolaBartlett", "KeerthiChu")
    )
    draws = [np.random.default_rng(seed).choice(200, 12, replace=False) for seed in range(10)]
    drawn = [reached(subset) for subset in draws]
    assert smola < min(drawn)
    assert keerthi < np.mean(drawn)


def test_a_larger_selection_contains_a_smaller_one(kind):
    chosen = [set(make(kind, size=size).fit(X, Y).indices) for size in range(1, 20)]
    assert all(fewer < more for fewer, more in itertools.pairwise(chosen))
    values = [lowest(rbf(ARD, VARIANCE), NOISE, X, Y - MEAN, sorted(some)) for some in chosen]
    assert values == sorted(values, reverse=True)


# ---- fitting


@pytest.mark.parametrize("scale", [1e-30, 1e6])
def test_units_do_not_matter(kind, scale):
    plain = make(kind, mean=0.0, size=20).fit(X, Y)
    kernel = RBF(np.multiply(ARD, scale), VARIANCE / scale**2)
    moved = make(kind, kernel, NOISE / scale**2, mean=0.0, size=20).fit(scale * X, Y / scale)
    np.testing.assert_array_equal(moved.indices, plain.indices)
    ours, theirs = moved.predict(scale * QUERIES)[0] * scale, plain.predict(QUERIES)[0]
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("level", [1e-90, 1e90])
def test_targets_far_from_the_scale_of_the_kernel(kind, level):
    for kernel, noise in ((KERNEL, NOISE), (RBF(ARD, 1e90), 1e88)):
        mean, variance = make(kind, kernel, noise, mean=0.0).fit(X, level * Y).predict(QUERIES)
        assert np.isfinite(mean).all()
        assert (variance >= noise).all()


@pairwise(kind=list(KINDS), share=[1e-4, 1e-8, 1e-11], data=[smooth_1d, smooth_2d])
def test_very_small_noise(kind, data, share):
    """At the chosen inputs what is told and what is predicted agree with a stable solve."""
    inputs, y = data(300, noise=0.0)
    kernel = RBF(0.7, VARIANCE)
    told = []
    model = make(kind, kernel, share * VARIANCE, 60, mean=0.0)
    model.fit(inputs, y, progress=lambda _, value: told.append(value))
    gram, cross = grams(rbf(0.7, VARIANCE), inputs, model.dictionary)
    factor = np.linalg.cholesky(gram)
    rows = np.vstack(
        [np.linalg.solve(factor, cross.T).T, np.sqrt(share * VARIANCE) * np.eye(model.size)]
    )
    target = np.append(y, np.zeros(model.size))
    beta = np.linalg.lstsq(rows, target, rcond=0)[0]
    lowest = 0.5 * (np.sum((target - rows @ beta) ** 2) - y @ y)
    assert told[-1] == pytest.approx(lowest, rel=1e-9)
    mean, variance = model.predict(inputs)
    np.testing.assert_allclose(mean, rows[:300] @ beta, atol=1e-4)
    assert (variance >= share * VARIANCE).all()
    assert np.sqrt(np.mean((mean - y) ** 2)) < 0.01


def test_repeated_inputs_are_chosen_once(kind):
    inputs, y = repeated(300)
    model = make(kind, RBF(0.3), size=30).fit(inputs, y)
    assert (model.size, model.seen) == (12, 300)
    assert len(np.unique(model.dictionary)) == 12
    gathered = pogp.DenseGP(RBF(0.3), NOISE, mean=MEAN)
    gathered.learn(inputs, y)
    queries = np.linspace(-3, 3, 30)[:, None]
    np.testing.assert_allclose(model.predict(queries), gathered.predict(queries), atol=1e-7)


DEGENERATE = {
    "one sample": (X[:1], Y[:1], 1),
    "two samples": (X[:2], Y[:2], 2),
    "few places": (np.tile(X[:4], (15, 1)), Y, 4),
    "one place": (np.tile(X[:1], (60, 1)), Y, 1),
    "constant column": (np.column_stack([X[:, 0], np.full(60, 0.1)]), Y, 9),
    "constant y": (X, np.full(60, 3.0), 9),
    "y at the mean": (X, np.full(60, MEAN), 9),
    "far away": (1e6 + X, Y, 9),
}


@pairwise(kind=list(KINDS), case=list(DEGENERATE), noise=[NOISE, 1e-8])
def test_degenerate_data(kind, case, noise):
    inputs, y, size = DEGENERATE[case]
    model = make(kind, noise=noise).fit(inputs, y)
    assert model.size == size
    mean, variance = model.predict(QUERIES)
    assert np.isfinite(mean).all()
    assert (variance >= noise).all()
    if case == "y at the mean":
        np.testing.assert_array_equal(mean, MEAN)


# ---- kernels of the user's own


def users_kernel(A, B):
    return rbf(ARD, VARIANCE)(A, B)


def linear(A, B):
    return A @ B.T


class Wavy(Stationary):
    """A radial kernel of the user's that is not positive definite in two dimensions."""

    @staticmethod
    def _profile(r2):
        return np.cos(np.sqrt(r2))

    @staticmethod
    def _profile_and_slope(r2):
        return np.cos(np.sqrt(r2)), np.sinc(np.sqrt(r2) / np.pi)


def test_a_function_can_be_the_kernel(kind):
    model, same = (make(kind, kernel).fit(X, Y) for kernel in (users_kernel, KERNEL))
    np.testing.assert_array_equal(model.indices, same.indices)
    np.testing.assert_allclose(model.predict(QUERIES), same.predict(QUERIES), rtol=1e-6)


def test_a_kernel_of_low_rank_needs_few_inputs(kind):
    model = make(kind, linear, mean=0.0).fit(X, Y)
    assert 2 <= model.size <= 3  # 3 if the first two are nearly parallel
    dense = pogp.DenseGP(linear, NOISE)
    dense.learn(X, Y)
    np.testing.assert_allclose(model.predict(QUERIES), dense.predict(QUERIES), atol=1e-8)


@pytest.mark.parametrize(
    ("kernel", "inputs", "message"),
    [
        (Wavy(0.2), X, r"Wavy\(.* positive definite at the samples: a variance given .* is -"),
        (linear, 0 * X, r"linear.* positive definite at the samples: κ\(x, x\) is at most 0"),
        (lambda A, B: np.nan * A @ B.T, X, "must return finite values.*got nan"),
    ],
)
def test_an_invalid_kernel_is_refused(kind, kernel, inputs, message):
    model = make(kind, kernel, size=30)
    with pytest.raises(ValueError, match=message):
        model.fit(inputs, Y)
    assert (model.seen, model.size) == (0, 0)


# ---- copies, pickles and files


def test_a_file_with_inconsistent_parts_is_refused(kind, tmp_path):
    path = tmp_path / "model.pog"
    make(kind).fit(X, Y).save(path)
    header, arrays = container.read(path)
    nonsense = [(name, a) for name, array in arrays.items() for a in (array[:1], array[:-1])]
    indices = arrays["indices"]
    nonsense += [("indices", a) for a in (indices + 60, indices - 60, indices[::-1], indices * 1.0)]
    for name, array in nonsense:
        container.write(path, header, {**arrays, name: array})
        with pytest.raises(pogp.FormatError):
            pogp.load(path)
    for changed in ("text", None):
        container.write(path, header | {"state": {"seen": changed}}, arrays)
        with pytest.raises(pogp.FormatError):
            pogp.load(path)


# ---- what is wrong
