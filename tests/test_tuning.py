"""Tuning against scikit-learn's likelihood, its optimum, and finite differences."""

import itertools
import warnings
from math import log

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sklearn_kernels
from threadpoolctl import threadpool_limits

from pogp import DenseGP
from pogp.kernels import (
    RBF,
    Constant,
    FunctionKernel,
    Kernel,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    RationalQuadratic,
    prior_variance,
)
from pogp.tuning import Tuned, _Objective, log_marginal_likelihood, tune

from .pairwise import pairwise


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Matrices this small gain nothing from BLAS threads, and lose much on a busy machine."""
    with threadpool_limits(1):
        yield


def draw(n, p, noise=0.2, seed=0):
    """Standardised data from a smooth function of which the last input says little."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = np.sin(2.0 * X[:, 0]) + X[:, p // 2] ** 2 + 0.1 * X[:, -1] + noise * rng.normal(size=n)
    return (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()


def scikit_learn(X, y, restarts=2):
    """The likelihood that scikit-learn's own search arrives at."""
    p = X.shape[1]
    constant, white = sklearn_kernels.ConstantKernel(), sklearn_kernels.WhiteKernel()
    kernel = constant * sklearn_kernels.RBF(np.ones(p)) + white
    model = GaussianProcessRegressor(
        kernel, alpha=0.0, n_restarts_optimizer=restarts, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of parameters close to their bounds
        return model.fit(X, y).log_marginal_likelihood_value_


class Capped(Kernel):
    """exp(−½r²) + height, and `nonsense` where the height is above 1."""

    parameter_names = ("height",)

    def __init__(self, height, nonsense):
        self.height, self.nonsense = height, nonsense

    def __call__(self, A, B=None):
        K = RBF()(A, B)
        return K + self.height if self.height <= 1.0 else np.full_like(K, self.nonsense)

    @property
    def theta(self):
        return np.log([self.height])

    def with_theta(self, theta):
        return Capped(float(np.exp(theta[0])), self.nonsense)

    def gradients(self, A):
        return np.full((1, len(A), len(A)), self.height)


@pytest.mark.parametrize(
    "kernel", [RBF([0.5, 1.0, 2.0], 1.5), Matern12() + RBF(2.0), Matern32() * Matern52(2.0)]
)
def test_likelihood_is_the_density_of_a_normal(kernel):
    X, y = draw(30, 3)
    expected = multivariate_normal(np.full(30, 0.4), kernel(X) + 0.3 * np.eye(30)).logpdf(y)
    ours = log_marginal_likelihood(kernel, 0.3, X, y, mean=0.4)
    assert ours == pytest.approx(expected, rel=1e-12)


def test_likelihood_agrees_with_scikit_learn():
    X, y = draw(50, 3)
    scales = [0.5, 1.0, 2.0]
    oracle = GaussianProcessRegressor(sklearn_kernels.RBF(scales), alpha=0.1, optimizer=None)
    expected = oracle.fit(X, y).log_marginal_likelihood()
    assert log_marginal_likelihood(RBF(scales), 0.1, X, y) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "kernel",
    [
        RBF([0.5, 1.0, 2.0], 1.5),
        Matern12(0.7),
        Matern32() + RBF([1.0, 2.0, 3.0]),
        Matern52() * RBF(),
        RationalQuadratic([0.5, 1.0, 2.0], 1.5, 0.8),
        Periodic([3.0, 4.0, 5.0], 0.9) + Constant(0.5),
        Linear([0.5, 1.0, 2.0]) * RBF([1.0, 2.0], columns=[2, 0]),
    ],
    ids=repr,
)
@pytest.mark.parametrize(
    # many samples are computed in strips of rows
    ("n", "log_noise"),
    [(25, log(0.1)), (25, log(1e-9)), (230, log(0.1)), (230, log(1e-4))],
)
def test_gradient_agrees_with_finite_differences(kernel, log_noise, n):
    X, y = draw(n, 3)
    objective = _Objective(kernel, X, y[:, None], offset=0.0)
    parameters = np.append(kernel.theta, log_noise)
    value, gradient = objective(parameters)
    step = 5e-4  # of fourth order: a step this long, since the likelihood has rounding errors
    for k, move in enumerate(step * np.eye(parameters.size)):
        far, near = (
            objective(parameters + c * move)[0] - objective(parameters - c * move)[0]
            for c in (2, 1)
        )
        slope = (8 * near - far) / (12 * step)
        assert gradient[k] == pytest.approx(slope, rel=1e-4, abs=1e-8 * abs(value))


@pytest.mark.parametrize(
    ("n", "p", "noise", "seed"),
    [(20, 1, 0.2, 0), (60, 2, 0.05, 1), (100, 3, 1.0, 2), (120, 5, 0.3, 3), (80, 2, 0.0, 4)],
)
def test_as_good_as_scikit_learn(n, p, noise, seed):
    X, y = draw(n, p, noise, seed)
    tuned = tune(X, y)
    assert tuned.log_likelihood >= scikit_learn(X, y) - 1e-3
    assert tuned.kernel.dimension == p


def test_as_good_as_scikit_learn_where_the_parameters_run_to_their_bounds():
    X, _ = draw(60, 3)
    y = X @ [1.0, -2.0, 0.0]
    assert tune(X, y).log_likelihood >= scikit_learn(X, y) - 1e-3


def test_parameters_of_a_known_process_are_found():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 10.0, size=(200, 1))
    truth, noise = RBF([0.8], 2.0), 0.04
    y = np.linalg.cholesky(truth(X) + noise * np.eye(200)) @ rng.normal(size=200)
    tuned = tune(X, y)
    assert tuned.log_likelihood >= log_marginal_likelihood(truth, noise, X, y)
    assert tuned.noise == pytest.approx(noise, rel=0.3)
    assert tuned.kernel.lengthscale[0] == pytest.approx(0.8, rel=0.2)


@pytest.mark.parametrize(
    ("truth", "start"),
    [
        (RationalQuadratic([0.8], 2.0, 0.7), RationalQuadratic),
        (Periodic([1.7], [0.9], 2.0), Periodic),
        (Periodic(0.6) + Linear(), Periodic() + Linear()),
        (Linear([2.0, 0.3, 1.0]), Linear),
        (Linear(2.0) + Constant(3.0), Linear() + Constant()),
        (
            RBF([0.8], columns=[1]) + Linear([2.0], columns=[0]),
            RBF(columns=[1]) + Linear(columns=[0]),
        ),
    ],
    ids=repr,
)
def test_as_likely_as_the_truth(truth, start):
    rng = np.random.default_rng(0)
    X = rng.uniform(-5.0, 5.0, size=(100, truth.dimension or truth.least_dimension))
    y = np.linalg.cholesky(truth(X) + 0.04 * np.eye(100)) @ rng.normal(size=100)
    tuned = tune(X, y, kernel=start)
    assert tuned.log_likelihood >= log_marginal_likelihood(truth, 0.04, X, y) - 1e-3
    assert tuned.noise == pytest.approx(0.04, rel=0.4)


def test_reported_values_are_consistent():
    X, y = draw(40, 2)
    tuned = tune(X, y + 3.0, mean=3.0)
    expected = log_marginal_likelihood(tuned.kernel, tuned.noise, X, y + 3.0, mean=3.0)
    assert tuned.log_likelihood == expected
    assert tuned.converged
    assert tuned.evaluations > 10
    assert tuned.log_likelihood == pytest.approx(tune(X, y).log_likelihood, abs=1e-6)


def test_the_seed_decides_everything():
    X, y = draw(40, 3, noise=0.5)
    assert tune(X, y, seed=3) == tune(X, y, seed=3)
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    tune(X, y)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


@pytest.mark.parametrize(("x_unit", "y_unit"), [(1e-6, 1e9), (1e6, 1e-9), (1.0, 1e9), (1e6, 1.0)])
def test_units_do_not_matter(x_unit, y_unit):
    X, y = draw(30, 2)
    plain, moved = tune(X, y), tune(x_unit * X, y_unit * y)
    assert moved.log_likelihood + 30 * log(y_unit) == pytest.approx(plain.log_likelihood, abs=1e-6)
    assert moved.noise / y_unit**2 == pytest.approx(plain.noise, rel=1e-3)
    np.testing.assert_allclose(
        moved.kernel.lengthscale / x_unit, plain.kernel.lengthscale, rtol=1e-3
    )


@pytest.mark.parametrize("kernel", [RBF(), Matern32([1.0, 1.0]) + RBF(), RBF() * Matern12()])
def test_a_kernel_given_in_far_off_units_is_still_tuned(kernel):
    X, y = draw(30, 2)
    plain, moved = tune(X, y, kernel), tune(1e6 * X, 1e-9 * y, kernel)
    assert moved.log_likelihood + 30 * log(1e-9) > plain.log_likelihood - 1.0


@pytest.mark.parametrize(
    "kernel",
    [RBF(0.3), RBF([0.3, 3.0]), RBF() + Matern12(3.0), Matern52() * RBF([1.0, 2.0])],
    ids=repr,
)
def test_a_kernel_keeps_its_form_and_gets_no_worse(kernel):
    X, y = draw(40, 2)
    before = kernel.theta.copy()
    tuned = tune(X, y, kernel, restarts=0, noise=0.5)
    assert type(tuned.kernel) is type(kernel)
    assert tuned.kernel.parameter_names == kernel.parameter_names
    assert tuned.log_likelihood > log_marginal_likelihood(kernel, 0.5, X, y)
    np.testing.assert_array_equal(kernel.theta, before)


def test_more_starts_get_no_worse():
    X, y = draw(40, 3, noise=1.0)
    found = [tune(X, y, restarts=restarts).log_likelihood for restarts in (0, 1, 4)]
    assert found == sorted(found)


def test_without_parameters_only_the_noise_is_tuned():
    X, y = draw(40, 2)

    def kernel(A, B):
        return RBF(0.7)(A, B)

    tuned = tune(X, y, kernel)
    assert tuned.kernel == FunctionKernel(kernel)
    around = tuned.noise * np.array([0.98, 1.02])
    assert tuned.log_likelihood > max(log_marginal_likelihood(kernel, s, X, y) for s in around)


DEGENERATE = {
    "one sample": ([[1.0, 2.0]], [3.0]),
    "one sample at the mean": ([[1.0, 2.0]], [0.0]),
    "two samples": ([[1.0, 2.0], [2.0, 1.0]], [3.0, 1.0]),
    "one input twice": ([[1.0, 2.0], [1.0, 2.0]], [3.0, 1.0]),
    "constant y": (draw(20, 2)[0], np.full(20, 0.1)),
    "zero y": (draw(20, 2)[0], np.zeros(20)),
    "constant column": (np.column_stack([draw(20, 1)[0], np.full(20, 0.1)]), draw(20, 1)[1]),
    "constant X": (np.full((20, 2), 0.3), draw(20, 1)[1]),
    "many copies": (np.repeat(draw(4, 2)[0], 10, axis=0), draw(40, 1)[1]),
    "no noise at all": (draw(40, 2)[0], draw(40, 2)[0] @ [1.0, 2.0]),
    "far from the mean": (draw(20, 2)[0], 1000.0 + 0.01 * draw(20, 2)[1]),
}


@pytest.mark.parametrize("kernel", [RBF, Matern12, RBF() + Matern32(), lambda A, B: A @ B.T])
@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_data(case, kernel):
    X, y = DEGENERATE[case]
    tuned = tune(X, y, kernel)
    assert np.isfinite(tuned.log_likelihood)
    assert tuned.noise > 0
    # The covariance can be factored by others, too.
    K = tuned.kernel(X) + tuned.noise * np.eye(len(X))
    assert np.all(np.isfinite(np.linalg.cholesky(K)))


def spoilt(n, p, seed=0):
    """Columns of all scales, one of them constant, some rows twice."""
    X, y = draw(n, p, seed=seed)
    X = X * 10.0 ** np.linspace(-9, 9, p)
    X[:, 1] = 1e9
    X[-1], y[-1] = X[0], y[0]
    return X, y


@pairwise(
    kernel=[RBF, Matern32, Matern52() * RBF(), RBF(1e-9) + RBF(1e9)],
    n=[2, 3, 5, 40],
    target=["any", "constant", "huge", "tiny"],
)
def test_hyperparameters_stay_sensible(kernel, n, target):
    X, y = spoilt(n, 3)
    y = {"any": y, "constant": np.full(n, 7.0), "huge": 1e40 * y, "tiny": 1e-40 * y}[target]
    tuned = tune(X, y, kernel)
    parameters = np.exp(tuned.kernel.theta)
    assert np.all(np.isfinite(parameters) & (parameters > 0))
    assert np.isfinite(tuned.log_likelihood)
    power = np.mean(y**2)
    assert 0 < tuned.noise <= 1e6 * power
    assert prior_variance(tuned.kernel, X).max() <= 1e11 * power
    model = DenseGP(tuned.kernel, tuned.noise)
    model.learn(X, y)
    means, variances = model.predict(X)
    assert np.all(np.isfinite(means) & (variances > 0))


def test_columns_far_below_one_are_told_apart_from_constant_ones():
    X, y = draw(40, 2)
    found = tune(1e-90 * X, y)
    assert found.log_likelihood == pytest.approx(tune(X, y).log_likelihood, abs=1e-5)


@pytest.mark.parametrize("allowed", [1, 2, 15, 60])
def test_the_number_of_evaluations_is_bounded(allowed):
    X, y = draw(40, 3)
    calls = 0

    class Counted(RBF):
        def value_and_pullback(self, A):
            nonlocal calls
            calls += 1
            return super().value_and_pullback(A)

    start = Counted([1.0, 1.0, 1.0])
    tuned = tune(X, y, start, restarts=5, noise=0.1, max_evaluations=allowed)
    assert calls <= tuned.evaluations <= allowed
    before = log_marginal_likelihood(start, 0.1, X, y)
    assert tuned.log_likelihood >= before - 1e-6
    if allowed < 15:
        assert not tuned.converged


def test_a_constant_column_does_not_matter():
    X, y = draw(40, 2)
    more = np.column_stack([X, np.full(40, 0.1)])
    assert tune(more, y).log_likelihood == pytest.approx(tune(X, y).log_likelihood, abs=1e-5)


@pytest.mark.parametrize("nonsense", [-1.0, np.nan, np.inf])
@pytest.mark.parametrize("restarts", [0, 3])
def test_the_search_backs_off_where_the_covariance_cannot_be_factored(nonsense, restarts):
    X, y = draw(30, 1)
    y += 3.0  # the likelihood rises with the height, right up to where it ceases to exist
    tuned = tune(X, y, Capped(0.1, nonsense), restarts)
    assert tuned.kernel.height == pytest.approx(1.0, rel=0.05)
    at_the_edge = tune(X, y, lambda A, B: RBF()(A, B) + 1.0)
    assert tuned.log_likelihood >= at_the_edge.log_likelihood - 0.5


def test_a_kernel_that_is_nowhere_positive_definite():
    X, y = draw(10, 1)
    with pytest.raises(ValueError, match="never positive definite, got FunctionKernel"):
        tune(X, y, lambda A, B: -1e9 * RBF()(A, B))
    with pytest.raises(ValueError, match=r"positive definite, got .* with noise 0\.1"):
        log_marginal_likelihood(lambda A, B: -RBF()(A, B), 0.1, X, y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.zeros(4)}, r"X of shape \(4,\) .*, X of shape \(4, 1\) for the second"),
        ({"X": np.zeros((0, 2)), "y": []}, r"at least one sample, got shape \(0, 2\)"),
        ({"X": np.zeros((4, 0))}, r"X must have shape \(n, p\).*got \(4, 0\)"),
        ({"y": np.zeros((3, 1))}, r"y must have shape \(4, 1\).*got \(3, 1\)"),
        ({"mean": [1.0, 2.0]}, r"mean must be a number or have shape \(\), got \(2,\)"),
        ({"y": np.zeros(3)}, r"y must have shape \(4,\).*got \(3,\)"),
        ({"X": np.full((4, 2), np.nan)}, "X must be finite.*got nan"),
        ({"y": [0.0, 1.0, -np.inf, 2.0]}, "y must be finite.*got -inf"),
        ({"mean": np.nan}, "mean must be a finite number, or one .*got nan"),
        ({"noise": 0.0}, r"noise must be positive, got 0\.0"),
        ({"noise": np.inf}, "noise must be a finite number, got inf"),
        ({"restarts": -1}, "restarts must be a whole number ≥ 0, got -1"),
        ({"restarts": 1.5}, r"restarts must be a whole number ≥ 0, got 1\.5"),
        ({"max_evaluations": 0}, "max_evaluations must be a whole number ≥ 1, got 0"),
        ({"kernel": 3}, "expected a kernel .*got 3"),
        ({"kernel": FunctionKernel}, "expected a kernel .*got <class"),
        ({"kernel": RBF([1.0, 2.0, 3.0])}, "must have 3 columns, got 2"),
        ({"kernel": lambda A, B: np.ones(len(A))}, r"of shape \(4, 4\), got .*shape \(4,\)"),
        ({"kernel": lambda A, B: np.nan * A @ B.T}, "must return finite values.*got nan"),
    ],
)
def test_bad_arguments(change, message):
    good = {"X": np.arange(8.0).reshape(4, 2), "y": np.arange(4.0)}
    with pytest.raises(ValueError, match=message):
        tune(**(good | change))


def test_the_result_reads_well():
    tuned = Tuned(RBF(), 0.1, -3.5, 20, True)
    assert repr(tuned) == (
        "Tuned(kernel=RBF(lengthscale=1.0, variance=1.0), noise=0.1, log_likelihood=-3.5, "
        "evaluations=20, converged=True)"
    )


def test_progress_is_called_and_may_stop_the_search(caplog):
    X = np.linspace(0.0, 6.0, 40)[:, None]
    y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=40)
    told = []
    with caplog.at_level("INFO", logger="pogp.tuning"):
        whole = tune(X, y, progress=lambda *step: told.append(step))
    assert told[-1][1] == pytest.approx(whole.log_likelihood, abs=1e-6)
    assert all(a[1] <= b[1] for a, b in itertools.pairwise(told))
    assert "first start: log-likelihood" in caplog.text

    def enough(step, _):
        if step == 5:
            raise StopIteration

    stopped = tune(X, y, progress=enough)
    assert stopped.evaluations == 5
    assert not stopped.converged
    assert stopped.log_likelihood == pytest.approx(told[4][1], abs=1e-6)
