"""SPGP and VFE against the dense normal distributions they stand for, and against GPy."""

import warnings

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import pogp
from pogp.files import container
from pogp.kernels import RBF, FunctionKernel, Kernel, Matern12, Matern32, Matern52, Stationary
from pogp.models.baselines.pseudo_search import Placement, _Objective
from pogp.posteriors.inducing import (
    FITC,
    NUGGET,
    Variational,
    evidence,
    evidence_and_gradient,
)
from pogp.tuning import log_marginal_likelihood

from ...conftest import rbf, repeated, smooth_1d, smooth_2d, smooth_5d
from ...pairwise import pairwise

KINDS = {"SPGP": pogp.SPGP, "VFE": pogp.VFE}
APPROXIMATIONS = {"SPGP": FITC(), "VFE": Variational()}
ARD = (0.7, 1.3)
KERNELS = [
    *(kind(ARD, 1.7) for kind in (RBF, Matern12, Matern32)),
    Matern52(0.8, 1.7),
    RBF(ARD) + Matern32(0.5, 2.0),
    Matern12(ARD, 0.3) * Matern52(2.0) + RBF(ARD, 0.5) * Matern32(),
]
KERNEL, NOISE, MEAN = RBF(ARD, 1.3), 0.05, 0.4
X, Y = smooth_2d(60, seed=3)
QUERIES = np.random.default_rng(5).uniform(-1.2, 1.2, (40, 2))
SPARSE = np.random.default_rng(6).uniform(-1, 1, (9, 2))


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def make(kind, kernel=KERNEL, noise=NOISE, size=9, **options):
    return KINDS[kind](kernel, noise, size, **{"mean": MEAN, **options})


def central_differences(function, at, step=1e-5):
    moves = step * np.eye(at.size).reshape(at.size, *at.shape)
    slopes = [(function(at + move) - function(at - move)) / (2 * step) for move in moves]
    return np.reshape(slopes, at.shape)


# ---- the distributions, written out


def nystrom(kernel, Z, A, B):
    gram = kernel(Z)
    gram += NUGGET * np.mean(np.diag(gram)) * np.eye(len(Z))
    return kernel(A, Z) @ np.linalg.solve(gram, kernel(Z, B))


def written_out(kind, kernel, noise, Z, A):
    """Return the covariance of y at A, and what is taken off the log density."""
    explained = nystrom(kernel, Z, A, A)
    slack = kernel.diag(A) - np.diag(explained)
    if kind == "SPGP":
        return explained + np.diag(slack + noise), 0.0
    return explained + noise * np.eye(len(A)), slack.sum() / (2 * noise)


# ---- the derivatives of kernels between two sets of points


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_points_that_coincide_do_not_pull_on_each_other(kernel, rng):
    A = 100.0 + rng.normal(size=(6, 2))
    weights = rng.normal(size=(6, 6)) + 1e12 * np.eye(6)
    in_theta, in_A = kernel.cross_pullback(A, A.copy())[1](weights)
    off = weights * (1 - np.eye(6))
    expected_theta, expected_A = kernel.cross_pullback(A, A.copy())[1](off)
    np.testing.assert_allclose(in_A, expected_A, rtol=1e-10, atol=1e-10)
    scales = ["lengthscale" in name for name in kernel.parameter_names]
    np.testing.assert_allclose(in_theta[scales], expected_theta[scales], rtol=1e-9, atol=1e-9)


# ---- the objective


@pairwise(kind=list(KINDS), kernel=list(KERNELS), noise=[NOISE, 1e-4, 10.0])
def test_the_objective_is_the_density_it_claims_to_be(kind, kernel, noise):
    covariance, penalty = written_out(kind, kernel, noise, SPARSE, X)
    expected = multivariate_normal(np.zeros(len(X)), covariance).logpdf(Y) - penalty
    found = evidence(APPROXIMATIONS[kind], kernel, noise, SPARSE, X, Y)
    assert found.value == pytest.approx(expected, rel=1e-8)


@pairwise(kind=list(KINDS), kernel=list(KERNELS), places=["free", "on the data"])
def test_the_gradient_agrees_with_finite_differences(kind, kernel, places):
    Z, log_noise = SPARSE if places == "free" else X[:9], np.log([NOISE])
    how = APPROXIMATIONS[kind]
    found, gradient = evidence_and_gradient(how, kernel, NOISE, Z, X, Y)
    assert found.value == evidence(how, kernel, NOISE, Z, X, Y).value

    def value(theta=kernel.theta, log_noise=log_noise, Z=Z):
        noise = float(np.exp(log_noise[0]))
        return evidence(how, kernel.with_theta(theta), noise, Z, X, Y).value

    tolerance = {"rtol": 1e-6, "atol": 1e-8 * abs(found.value)}
    by_theta = central_differences(lambda theta: value(theta=theta), kernel.theta)
    by_noise = central_differences(lambda moved: value(log_noise=moved), log_noise)
    np.testing.assert_allclose(gradient.theta, by_theta, **tolerance)
    np.testing.assert_allclose([NOISE * gradient.noise], by_noise, **tolerance)
    if places == "free" or "Matern12" not in repr(kernel):  # which has a kink where they meet
        by_inputs = central_differences(lambda moved: value(Z=moved), Z)
        np.testing.assert_allclose(gradient.inputs, by_inputs, **tolerance)


@pytest.mark.parametrize("noise", [0.3, 1e-6, 1e-9])
def test_the_search_has_the_gradient_of_its_own_parameters(kind, noise):
    kernel = RBF(ARD, 1.3)
    start = Placement(SPARSE, kernel, noise, np.empty(0))
    objective = _Objective(APPROXIMATIONS[kind], start, 5.0 * X, Y)
    at = objective.start + 0.1
    value, gradient = objective(at)
    expected = central_differences(lambda moved: objective(moved)[0], at)
    np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-6 * abs(value))
    again = objective.placement(objective.start)
    np.testing.assert_allclose(again.inputs, SPARSE, rtol=1e-14)
    np.testing.assert_allclose(again.kernel.theta, kernel.theta, rtol=1e-14)
    assert again.noise == pytest.approx(max(noise, 1.3e-6), rel=1e-4)


def test_vfe_is_a_bound_that_more_pseudo_inputs_tighten():
    kernel = RBF(ARD, 1.3)
    exact = log_marginal_likelihood(kernel, NOISE, X, Y)
    values = [
        evidence(Variational(), kernel, NOISE, X[:m], X, Y).value for m in (1, 5, 10, 20, 40, 60)
    ]
    assert values == sorted(values)
    assert values[-2] < exact
    assert values[-1] == pytest.approx(exact, abs=1e-4)


# ---- the same from an independent hand


@pytest.fixture(scope="module")
def gpy():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own imports
        return pytest.importorskip("GPy", reason="GPy is the oracle; pip install 'pogp[oracle]'")


GPY_KERNELS = {
    RBF: lambda kern: kern.RBF,
    Matern32: lambda kern: kern.Matern32,
    Matern52: lambda kern: kern.Matern52,
}


@pytest.mark.parametrize("radial", GPY_KERNELS)
@pytest.mark.filterwarnings("ignore")
def test_objective_gradients_and_predictions_agree_with_gpy(kind, radial, gpy):
    scales, variance = np.array(ARD), 1.3
    inference = gpy.inference.latent_function_inference
    method = inference.FITC() if kind == "SPGP" else inference.VarDTC()
    method.const_jitter = NUGGET * variance
    kern = GPY_KERNELS[radial](gpy.kern)(2, variance=variance, lengthscale=scales, ARD=True)
    oracle = gpy.core.SparseGP(
        X,
        Y[:, None],
        SPARSE,
        kern,
        gpy.likelihoods.Gaussian(variance=NOISE),
        inference_method=method,
    )
    kernel = radial(scales, variance)
    found, gradient = evidence_and_gradient(APPROXIMATIONS[kind], kernel, NOISE, SPARSE, X, Y)
    assert found.value == pytest.approx(float(np.squeeze(oracle.log_likelihood())), rel=1e-7)
    in_theta = np.append(
        scales * oracle.kern.lengthscale.gradient, variance * oracle.kern.variance.gradient
    )
    np.testing.assert_allclose(gradient.theta, in_theta, rtol=1e-6, atol=1e-6)
    assert gradient.noise == pytest.approx(oracle.likelihood.variance.gradient.item(), rel=1e-6)
    np.testing.assert_allclose(gradient.inputs, oracle.Z.gradient, rtol=1e-6, atol=1e-6)

    model = make(kind, kernel, mean=0.0).fit(X, Y, inputs=SPARSE, optimise=False)
    for ours, theirs in zip(model.predict(QUERIES), oracle.predict(QUERIES), strict=True):
        np.testing.assert_allclose(ours, theirs[:, 0], rtol=1e-6, atol=1e-6)


# ---- predictions


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_predictions_are_the_conditionals_written_out(kind, kernel):
    model = make(kind, kernel).fit(X, Y, inputs=SPARSE, optimise=False)
    covariance, _ = written_out(kind, kernel, NOISE, SPARSE, X)
    cross = nystrom(kernel, SPARSE, QUERIES, X)
    mean = MEAN + cross @ np.linalg.solve(covariance, Y - MEAN)
    latent = kernel(QUERIES) - cross @ np.linalg.solve(covariance, cross.T)
    for noise, options in ((0.0, {"latent": True}), (NOISE, {})):
        ours = model.predict(QUERIES, **options)
        np.testing.assert_allclose(ours[0], mean, atol=1e-9)
        np.testing.assert_allclose(ours[1], np.diag(latent) + noise, atol=1e-9)
        joint = model.covariance(QUERIES, **options)
        np.testing.assert_allclose(joint, latent + noise * np.eye(40), atol=1e-9)


@pairwise(
    kind=list(KINDS),
    kernel=[RBF(ARD, 1.3), Matern32(0.8), RBF() + Matern12()],
    size=[60, 61, 1000],
)
def test_with_a_pseudo_input_at_every_sample_it_is_the_dense_gp(kind, kernel, size):
    model = make(kind, kernel, size=size).fit(X, Y, optimise=False)
    np.testing.assert_array_equal(model.dictionary, X)
    dense = pogp.DenseGP(kernel, NOISE, mean=MEAN)
    dense.learn(X, Y)
    np.testing.assert_allclose(model.predict(QUERIES), dense.predict(QUERIES), atol=1e-6)
    np.testing.assert_allclose(model.covariance(QUERIES), dense.covariance(QUERIES), atol=1e-6)
    exact = log_marginal_likelihood(kernel, NOISE, X, Y, MEAN)
    assert model.tuned.log_likelihood == pytest.approx(exact, abs=1e-4)


# ---- fitting


def test_fit_finds_more_and_leaves_its_arguments_alone(kind):
    data = smooth_2d(300, seed=8)
    kernel = RBF((2.0, 2.0), 1.0)
    start = make(kind, kernel, noise=0.5, size=20).fit(*data, optimise=False)
    assert (start.tuned.kernel, start.tuned.noise) == (kernel, 0.5)
    assert (start.tuned.evaluations, start.tuned.converged) == (1, False)
    model = make(kind, kernel, noise=0.5, size=20)
    assert model.fit(*data) is model
    assert model.tuned.log_likelihood > start.tuned.log_likelihood + 100
    assert (model.kernel, model.noise) == (kernel, 0.5)
    assert (model.size, model.seen) == (20, 300)
    assert set(model.indices) == {-1}
    assert model.nbytes > 0
    queries, truth = smooth_2d(200, seed=9, noise=0.0)
    assert np.sqrt(np.mean((model.predict(queries)[0] - truth) ** 2)) < 0.06
    latent, noisy = (model.predict(queries, latent=latent)[1] for latent in (True, False))
    np.testing.assert_allclose(noisy - latent, model.tuned.noise, rtol=1e-9)


def test_reported_values_are_consistent(kind):
    model = make(kind).fit(X, Y, max_iterations=30)
    tuned = model.tuned
    Z = model.dictionary
    again = evidence(APPROXIMATIONS[kind], tuned.kernel, tuned.noise, Z, X, Y - MEAN)
    assert tuned.log_likelihood == again.value
    assert tuned.evaluations >= 30
    fixed = make(kind, tuned.kernel, tuned.noise).fit(X, Y, inputs=Z, optimise=False)
    np.testing.assert_array_equal(model.predict(QUERIES), fixed.predict(QUERIES))


def test_a_search_that_ends_by_itself_says_so(kind):
    X, y = smooth_1d(80)
    model = make(kind, RBF(), size=4).fit(X, y, max_iterations=2000)
    assert model.tuned.converged
    at = model.tuned
    how = APPROXIMATIONS[kind]
    _, gradient = evidence_and_gradient(how, at.kernel, at.noise, model.dictionary, X, y - MEAN)
    assert np.abs(gradient.theta).max() < 0.01
    assert np.abs(gradient.inputs).max() < 0.01


def test_vfe_finds_the_parameters_of_the_exact_gp():
    X, y = smooth_1d(200)
    exact = pogp.tune(X, y, RBF())
    found = pogp.VFE(RBF(), 0.1, 25).fit(X, y).tuned
    assert found.log_likelihood == pytest.approx(exact.log_likelihood, abs=0.1)
    assert found.noise == pytest.approx(exact.noise, rel=0.01)


def test_progress_is_called_at_every_iteration(kind):
    calls = []
    model = make(kind).fit(X, Y, max_iterations=7, progress=lambda *call: calls.append(call))
    assert [number for number, _ in calls] == list(range(1, 8))
    values = [value for _, value in calls]
    assert values == sorted(values)
    assert model.tuned.log_likelihood == pytest.approx(values[-1], rel=1e-12)

    def enough(number, value):
        if number == 3:
            raise StopIteration

    stopped = make(kind).fit(X, Y, progress=enough)
    assert stopped.tuned.log_likelihood == pytest.approx(values[2], rel=1e-12)


def test_given_inputs_start_the_search_or_are_final_without_one(kind):
    fixed = make(kind).fit(X, Y, inputs=SPARSE, optimise=False)
    np.testing.assert_array_equal(fixed.dictionary, SPARSE)
    moved = make(kind).fit(X, Y, inputs=SPARSE.tolist(), max_iterations=3)
    assert moved.tuned.log_likelihood > fixed.tuned.log_likelihood
    assert not np.array_equal(moved.dictionary, SPARSE)
    more = make(kind, size=80).fit(X, Y, inputs=np.tile(X, (2, 1))[:80], optimise=False)
    assert more.size == 80


def test_first_inputs_spread_over_the_data(kind):
    clusters = np.repeat([[0.0, 0.0], [10.0, 1e-3], [0.0, 2e-3]], 50, axis=0)
    inputs = clusters + np.random.default_rng(0).normal(size=(150, 2)) * [0.1, 1e-5]
    model = make(kind, size=12).fit(inputs, np.zeros(150), optimise=False)
    scaled = (model.dictionary[:, None] - clusters[::50]) / [0.3, 3e-5]
    assert (np.abs(scaled).max(axis=2) < 1).any(axis=0).all()


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_units_do_not_matter(kind, scale):
    plain = make(kind, mean=0.0).fit(X, Y, max_iterations=10)
    kernel = RBF(np.multiply(ARD, scale), 1.3 / scale**2)
    moved = make(kind, kernel, NOISE / scale**2, mean=0.0)
    moved.fit(scale * X, Y / scale, max_iterations=10)
    np.testing.assert_allclose(moved.dictionary / scale, plain.dictionary, rtol=1e-4, atol=1e-4)
    ours, theirs = moved.predict(scale * QUERIES)[0] * scale, plain.predict(QUERIES)[0]
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


DEGENERATE = {
    "one sample": (X[:1], Y[:1]),
    "two samples": (X[:2], Y[:2]),
    "few places": (np.tile(X[:4], (15, 1)), Y),
    "one place": (np.tile(X[:1], (60, 1)), Y),
    "constant column": (np.column_stack([X[:, 0], np.full(60, 0.1)]), Y),
    "constant y": (X, np.full(60, 3.0)),
    "y at the mean": (X, np.full(60, MEAN)),
    "no noise": (X, X @ [1.0, 2.0]),
    "far away": (1e6 + X, Y),
}


@pairwise(
    kind=list(KINDS),
    case=list(DEGENERATE),
    kernel=[RBF(ARD, 1.3), Matern12(), RBF() * Matern32()],
)
def test_degenerate_data(kind, case, kernel):
    model = make(kind, kernel).fit(*DEGENERATE[case], max_iterations=40)
    assert np.isfinite(model.tuned.log_likelihood)
    assert model.tuned.noise > 0
    mean, variance = model.predict(QUERIES)
    assert np.isfinite(mean).all()
    assert (variance >= model.tuned.noise).all()


def test_the_noise_has_a_floor(kind):
    inputs = np.linspace(-1, 1, 50)[:, None]
    tuned = make(kind, RBF(), 1e-9, size=20).fit(inputs, inputs[:, 0] ** 2).tuned
    assert tuned.noise > 1e-6 * tuned.kernel.variance
    kept = make(kind, RBF(), 1e-9, size=20).fit(inputs, inputs[:, 0] ** 2, optimise=False).tuned
    assert kept.noise == 1e-9


# ---- kernels of the user's own


def users_kernel(A, B):
    return rbf(ARD, 1.3)(A, B)


class Wavy(Stationary):
    """A radial kernel of the user's that is not positive definite in two dimensions."""

    @staticmethod
    def _profile(r2):
        return np.cos(np.sqrt(r2))

    @staticmethod
    def _profile_and_slope(r2):
        return np.cos(np.sqrt(r2)), np.sinc(np.sqrt(r2) / np.pi)


class Half(Kernel):
    """A kernel with a parameter, of whose derivatives only those between two sets are known."""

    theta = np.zeros(1)

    def __call__(self, A, B=None):
        return RBF()(A, B)

    def cross_pullback(self, A, B):
        return RBF().cross_pullback(A, B)


def test_a_function_can_be_fitted_without_a_search(kind):
    model = make(kind, users_kernel).fit(X, Y, optimise=False)
    same = make(kind).fit(X, Y, optimise=False)
    np.testing.assert_allclose(model.predict(QUERIES), same.predict(QUERIES), rtol=1e-6)
    assert model.tuned.kernel == FunctionKernel(users_kernel)


@pytest.mark.parametrize(
    ("kernel", "missing"),
    [
        (users_kernel, "FunctionKernel has no cross_pullback"),
        (RBF() + FunctionKernel(users_kernel), "FunctionKernel has no cross_pullback"),
        (Half(), "Half has no diag_pullback"),
    ],
)
def test_a_search_says_which_derivatives_are_missing(kind, kernel, missing):
    model = make(kind, kernel)
    with pytest.raises(ValueError, match=rf"{missing}.*optimise=False"):
        model.fit(X, Y)
    assert (model.seen, model.size) == (0, 0)


def test_a_kernel_that_is_not_positive_definite_is_named(kind):
    for optimise in (False, True):
        with pytest.raises(ValueError, match=r"Wavy\(.* positive definite"):
            make(kind, Wavy(0.2), size=30).fit(X, Y, optimise=optimise)


def test_the_search_backs_off_where_the_kernel_is_not_positive_definite(kind):
    class Edge(RBF):
        """Nonsense where the variance is above 2."""

        def cross_pullback(self, A, B):
            value, pullback = super().cross_pullback(A, B)
            return (value if self.variance <= 2.0 else np.full_like(value, np.nan)), pullback

    model = make(kind, Edge(ARD, 1.0)).fit(X, 10 * Y, max_iterations=30)
    assert 1.0 < model.tuned.kernel.variance <= 2.0


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lambda A, B: np.ones(len(A)), r"of shape \(9, 9\), got .*shape \(9,\)"),
        (lambda A, B: np.nan * A @ B.T, "must return finite values.*got nan"),
    ],
)
def test_a_kernel_function_with_invalid_results_is_refused(kind, kernel, message):
    with pytest.raises(ValueError, match=message):
        make(kind, kernel).fit(X, Y, optimise=False)


# ---- copies, pickles and files


def test_a_file_with_inconsistent_parts_is_refused(kind, tmp_path):
    path = tmp_path / "model.pog"
    make(kind).fit(X, Y, max_iterations=3).save(path)
    header, arrays = container.read(path)
    for name, array in arrays.items():
        for changed in (array[:1], array[:-1], np.concatenate([array, array])):
            container.write(path, header, {**arrays, name: changed})
            with pytest.raises(pogp.FormatError):
                pogp.load(path)
    for name in header["state"]:
        for nonsense in ("text", None):
            container.write(path, header | {"state": header["state"] | {name: nonsense}}, arrays)
            with pytest.raises(pogp.FormatError):
                pogp.load(path)


# ---- what is wrong


def test_many_repeated_inputs_and_several_dimensions(kind):
    for inputs, targets in (repeated(300), smooth_5d(300)):
        model = make(kind, RBF(), size=30, mean=0.0).fit(inputs, targets, max_iterations=30)
        assert np.mean((model.predict(inputs)[0] - targets) ** 2) < 0.02
