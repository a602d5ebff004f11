"""Elementary kernels against formulas of their own, all but those of `test_stationary`."""

import json

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as sklearn_kernels

import pogp
from pogp import budgets
from pogp.kernels import (
    RBF,
    Constant,
    Linear,
    Matern12,
    Matern52,
    Periodic,
    RationalQuadratic,
    as_kernel,
    kernel_from_spec,
)
from pogp.kernels.elementary import BUILTIN

from .test_stationary import ARD, KERNELS, RADIAL, central_differences

COMPILED = [kernel for kernel in KERNELS if kernel.program() is not None]
SMOOTH = [kernel for kernel in COMPILED if "Matern12" not in repr(kernel)]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def two(rng):
    return rng.normal(size=(40, 3)), rng.normal(size=(30, 3))


# ---- values


@pytest.mark.parametrize("alpha", [0.3, 1.0, 7.0])
def test_rational_quadratic_agrees_with_scikit_learn(alpha, two):
    oracle = sklearn_kernels.RationalQuadratic(length_scale=0.7, alpha=alpha)
    ours = RationalQuadratic(0.7, 1.9, alpha)
    np.testing.assert_allclose(ours(*two), 1.9 * oracle(*two), rtol=1e-12)


def test_rational_quadratic_is_a_mixture_of_squared_exponentials():
    """Over 1/ℓ² with a gamma distribution of shape α and mean 1/ℓ² (R&W eq. 4.20)."""
    precisions = np.random.default_rng(0).gamma(1.5, 1 / 1.5, size=400_000)
    found = np.exp(-0.5 * precisions * 1.3**2).mean()
    assert RationalQuadratic(alpha=1.5)([[0.0]], [[1.3]]).item() == pytest.approx(found, rel=5e-3)
    near = RationalQuadratic(ARD, alpha=1e9)(np.eye(3))
    np.testing.assert_allclose(near, RBF(ARD)(np.eye(3)), rtol=1e-8)


def test_periodic_agrees_with_scikit_learn_in_one_dimension(two):
    A, B = (each[:, :1] for each in two)
    oracle = sklearn_kernels.ExpSineSquared(length_scale=0.7, periodicity=1.3)
    np.testing.assert_allclose(Periodic(1.3, 0.7, 1.9)(A, B), 1.9 * oracle(A, B), rtol=1e-12)


def test_periodic_is_a_product_over_the_inputs(two):
    periods, scales = (0.9, 1.4, 2.2), ARD
    found = Periodic(periods, scales, 1.9)(*two)
    each = [
        Periodic(period, scale)(*(x[:, [d]] for x in two))
        for d, (period, scale) in enumerate(zip(periods, scales, strict=True))
    ]
    np.testing.assert_allclose(found, 1.9 * np.prod(each, axis=0), rtol=1e-13)


def test_periodic_comes_back_exactly(rng):
    A = rng.integers(-(2**20), 2**20, size=(20, 2)) / 2.0**10
    kernel = Periodic((0.5, 2.0), 0.3)
    np.testing.assert_array_equal(kernel(A, A + np.array([1e6, -4e6])), kernel(A, A))
    assert kernel([[0.0, 0.0]], [[1e99, 1e99]]) == 1.0


def test_linear_agrees_with_scikit_learn_and_with_the_feature_space(two):
    A, B = two
    dot = sklearn_kernels.DotProduct(sigma_0=1.5)
    np.testing.assert_allclose((Linear() + Constant(2.25))(A, B), dot(A, B), rtol=1e-12)
    np.testing.assert_allclose(Linear(ARD)(A, B), (A * ARD) @ B.T, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(Linear(ARD).diag(A), (A**2) @ ARD, rtol=1e-12)
    assert Linear().kappa0 is None


def test_constant(two):
    oracle = sklearn_kernels.ConstantKernel(1.9)
    np.testing.assert_array_equal(Constant(1.9)(*two), oracle(*two))
    np.testing.assert_array_equal((Constant(1.9) * RBF())(*two), 1.9 * RBF()(*two))


@pytest.mark.parametrize("name", BUILTIN)
def test_defaults_are_ones(name):
    kernel = BUILTIN[name]()
    assert kernel.theta.tolist() == [0.0] * len(kernel._fields)
    for field in kernel._fields:
        assert getattr(kernel, field) == 1.0
    assert kernel.columns is None
    assert kernel.least_dimension == 1


def test_parameter_names_have_the_numbers_of_the_inputs():
    kernel = Periodic((1.0, 2.0), 0.5, columns=[3, 1])
    assert kernel.parameter_names == ("period[3]", "period[1]", "lengthscale", "variance")
    assert RationalQuadratic().parameter_names == ("lengthscale", "variance", "alpha")
    assert Linear([1, 2]).parameter_names == ("variance[0]", "variance[1]")


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda v: RationalQuadratic(alpha=v), "alpha"),
        (lambda v: Periodic(period=v), "period"),
        (lambda v: Periodic(lengthscale=v), "lengthscale"),
        (lambda v: Periodic(variance=v), "variance"),
        (lambda v: Linear(variance=v), "variance"),
        (lambda v: Constant(variance=v), "variance"),
    ],
)
def test_bad_parameters(make, name):
    for value in (0.0, -1.0, np.nan, np.inf, "2", None, [[1.0]], []):
        with pytest.raises(ValueError, match=rf"{name} must be .*, got "):
            make(value)


def test_parameters_that_disagree_on_the_inputs():
    with pytest.raises(
        ValueError, match=r"agree on the number of inputs, got {'period': 2, 'lengt"
    ):
        Periodic((1.0, 2.0), ARD)


# ---- columns


@pytest.mark.parametrize("name", BUILTIN)
def test_columns_are_the_kernel_of_those_inputs(name, two):
    kind = BUILTIN[name]
    columns = [2, 0]
    restricted = kind(columns=columns)
    assert restricted != kind()
    assert restricted == kind(columns=np.array(columns)) != kind(columns=[0, 2])
    inputs = [each[:, columns] for each in two]
    np.testing.assert_array_equal(restricted(*two), kind()(*inputs))
    np.testing.assert_array_equal(restricted.diag(two[0]), kind().diag(inputs[0]))
    assert restricted.dimension is None
    assert restricted.least_dimension == 3
    spec = json.loads(json.dumps(restricted.to_spec()))
    assert spec["columns"] == columns
    assert kernel_from_spec(spec) == restricted
    assert restricted.with_theta(restricted.theta) == restricted
    with pytest.raises(ValueError, match=r"at least 3 columns, for the columns \[2, 0\] .*got 2"):
        restricted(np.zeros((4, 2)))
    with pytest.raises(ValueError, match="at least 3 columns"):
        restricted.diag(np.zeros((4, 2)))
    with pytest.raises(ValueError, match="3 columns, got 4"):
        restricted(np.zeros((4, 3)), np.zeros((4, 4)))


def test_columns_have_a_length_scale_each_or_one():
    assert RBF([1.0, 2.0], columns=[4, 0]).dimension is None
    for wrong in ([1.0], ARD):
        with pytest.raises(ValueError, match=r"each of the columns \[4, 0\], got {'lengthscale'"):
            RBF(wrong, columns=[4, 0])


@pytest.mark.parametrize(
    "columns", [[], [-1], [0, 0], [1.0], [True], ["0"], "01", 0, [None], [[0]], [np.array([1])]]
)
def test_bad_columns(columns):
    with pytest.raises(ValueError, match="columns must be distinct whole numbers ≥ 0, got "):
        RBF(columns=columns)
    with pytest.raises(ValueError, match="columns must be distinct whole numbers ≥ 0, got "):
        pogp.Constant(1.0, columns=columns)


def test_joined_kernels_need_as_many_inputs_as_either():
    joined = RBF(columns=[1]) * Matern12() + Linear(columns=[0, 4])
    assert joined.dimension is None
    assert joined.least_dimension == 5
    assert (RBF(ARD) + RBF(columns=[2])).dimension == 3
    with pytest.raises(ValueError, match=r"got 3 in RBF.* and at least 4 in RBF.*columns=\[3\]"):
        RBF(ARD) + RBF(columns=[3])


@pytest.mark.parametrize("backend", ["compiled", "reference"])
@pytest.mark.parametrize("kind", [pogp.POG, pogp.DenseGP])
def test_too_few_inputs_change_nothing(backend, kind, monkeypatch):
    monkeypatch.setenv("POGP_BACKEND", backend)
    model = kind(RBF() + RBF(columns=[2]), 0.1)
    for act in (lambda: model.learn(np.zeros((3, 2)), np.zeros(3)), lambda: model.predict([[0.0]])):
        with pytest.raises(ValueError, match="at least 3 columns"):
            act()
    assert model.seen == 0
    model.learn(np.eye(3), np.zeros(3))
    assert model.seen == 3


# ---- one name for two things


def test_constant_is_a_budget_and_a_kernel():
    constant = pogp.Constant(2.0)
    assert constant is not Constant
    assert (constant.eps, constant(7), repr(constant)) == (2.0, 2.0, "Constant(eps=2.0)")
    assert constant == pogp.Constant(2.0) != pogp.Constant(3.0)
    assert hash(constant) == hash(pogp.Constant(variance=2.0))
    assert as_kernel(constant) == Constant(2.0)
    assert budgets.budget_from_spec(budgets.budget_spec(constant)) == constant
    for combined in (RBF() + constant, RBF() + Constant(2.0)):
        assert combined == RBF() + Constant(2.0)
    assert constant * RBF() == Constant(2.0) * RBF()
    assert RBF() * constant == RBF() * Constant(2.0)
    assert constant + RBF() == Constant(2.0) + RBF()
    assert constant + pogp.Constant(3.0) == Constant(2.0) + Constant(3.0)
    assert as_kernel(pogp.Constant(2.0, columns=[1])) == Constant(2.0, columns=[1])
    assert eval(repr(RBF() + constant), vars(pogp)) == RBF() + constant
    with pytest.raises(AttributeError):
        constant.eps = 3.0
    for wrong in (2.0, "x", len):
        with pytest.raises(TypeError, match="unsupported operand"):
            constant + wrong
    with pytest.raises(ValueError, match="budget must be a finite number ≥ 0, got None"):
        pogp.Constant()
    with pytest.raises(ValueError, match="expected one number"):
        pogp.Constant(1.0, variance=1.0)


def test_a_budget_of_zero_is_no_kernel():
    assert pogp.Constant(0)(3) == 0.0
    with pytest.raises(ValueError, match="variance must be positive"):
        as_kernel(pogp.Constant(0))


def test_models_take_a_constant_as_kernel_and_as_budget(two):
    model = pogp.POG(RBF() + pogp.Constant(1.0), 0.1, pogp.Constant(1e-3))
    model.learn(two[0], two[0][:, 0])
    assert model.kernel == RBF() + Constant(1.0)
    assert model.budget == pogp.Constant(1e-3)
    assert pogp.POG(pogp.Constant(1.0), 0.1).kernel == Constant(1.0)
    assert pogp.tune(*two[:1], two[0][:, 0], kernel=pogp.Constant(1.0)).kernel.kappa0 > 0


# ---- derivatives by the inputs


def by_inputs(function, X, step=1e-6):
    """∂ function(X)_i / ∂ X_id by central differences, where row i depends on row i alone."""
    slopes = []
    for d in range(X.shape[1]):
        move = step * np.eye(X.shape[1])[d]
        slopes.append((function(X + move) - function(X - move)) / (2 * step))
    return np.array(slopes).T


@pytest.mark.parametrize("kernel", COMPILED, ids=repr)
def test_input_gradients_agree_with_finite_differences(kernel, two, rng):
    X, Z = two[0], two[1]
    weights = rng.normal(size=(len(X), len(Z)))
    expected = by_inputs(lambda moved: np.sum(kernel(moved, Z) * weights, axis=1), X)
    found = kernel.input_gradient(X, Z, weights)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)
    several = kernel.input_gradient(X, Z, np.array([[weights, 2 * weights]]))
    np.testing.assert_allclose(several, [[found, 2 * found]], rtol=1e-12, atol=1e-12)
    shared = kernel.input_gradient(X, Z, weights[0])
    expected = kernel.input_gradient(X, Z, np.tile(weights[0], (len(X), 1)))
    np.testing.assert_allclose(shared, expected, rtol=1e-12, atol=1e-13)
    single = [kernel.input_gradient(X[[i]], Z, weights[[i]])[0] for i in range(len(X))]
    np.testing.assert_allclose(single, found, rtol=1e-12, atol=1e-12)
    expected = by_inputs(kernel.diag, X)
    np.testing.assert_allclose(kernel.diag_gradient(X), expected, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("kernel", SMOOTH, ids=repr)
def test_the_two_gradients_agree_where_the_points_are_the_same(kernel, two):
    """d κ(x, x) = 2 ∂₁κ(x, x), for a kernel without a cusp."""
    X = two[0]
    one = kernel.input_gradient(X, X, np.eye(len(X)))
    np.testing.assert_allclose(2 * one, kernel.diag_gradient(X), rtol=1e-12, atol=1e-12)


def test_a_kernel_of_the_users_own_says_that_it_has_no_input_gradients():
    kernel = RBF() * as_kernel(lambda A, B: A @ B.T)
    with pytest.raises(NotImplementedError, match="FunctionKernel has no cross_pullback"):
        kernel.input_gradient(np.zeros((2, 1)), np.zeros((3, 1)), np.zeros(3))
    with pytest.raises(NotImplementedError, match="FunctionKernel has no diag_gradient"):
        kernel.diag_gradient(np.zeros((2, 1)))


@pytest.mark.parametrize("kernel", COMPILED, ids=repr)
def test_cross_and_diagonal_pullbacks_agree_with_finite_differences(kernel, two, rng):
    A, B = two
    weights, each = rng.normal(size=(len(A), len(B))), rng.normal(size=len(A))
    value, pullback = kernel.cross_pullback(A, B)
    np.testing.assert_allclose(value, kernel(A, B), rtol=1e-13, atol=1e-13)
    expected = central_differences(
        lambda theta: np.sum(kernel.with_theta(theta)(A, B) * weights), kernel.theta
    )
    np.testing.assert_allclose(pullback(weights)[0], expected, rtol=1e-6, atol=1e-6)
    expected = central_differences(lambda t: kernel.with_theta(t).diag(A) @ each, kernel.theta)
    np.testing.assert_allclose(kernel.diag_pullback(A, each), expected, rtol=1e-6, atol=1e-6)


# ---- defects that were found


def test_many_kernels_are_joined_in_no_time():
    kernel = RBF(ARD)
    for _ in range(200):
        kernel = kernel + Matern52(ARD)
    assert kernel.dimension == 3
    assert kernel_from_spec(kernel.to_spec()) == kernel
    kernel = RBF(ARD)
    for _ in range(200):
        kernel = Matern52(ARD) * kernel
    assert kernel.dimension == 3
    assert kernel.kappa0 == 1.0


@pytest.mark.parametrize("kind", [*RADIAL, RationalQuadratic])
def test_length_scales_too_small_to_divide_by(kind):
    with pytest.raises(ValueError, match="lengthscale must be at least 1e-205, got 1e-310"):
        kind(1e-310)
    smallest = kind(1e-205)
    found = smallest([[1e99], [-1e99]], [[1e99]])
    np.testing.assert_allclose(found, [[1.0], [0.0]], rtol=0.0, atol=1e-299)
    model = pogp.POG(smallest, 0.1)
    model.learn([[1e99], [-1e99], [0.0]], [1.0, 2.0, 3.0])
    assert np.isfinite(model.predict([[1e99], [5.0]])).all()


@pytest.mark.parametrize("unit", [1e-200, 1e90])
@pytest.mark.parametrize("kind", [RBF, RationalQuadratic, Periodic(4.0, 1.5)])
def test_units_do_not_matter(kind, unit):
    """The likelihood has many maxima in the period, of which a search finds the nearest."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=40)
    theirs, start = pogp.tune(X, y, kernel=kind, restarts=0), kind
    if isinstance(kind, Periodic):
        start = Periodic(4.0 * unit, 1.5)
    ours = pogp.tune(unit * X, y, kernel=start, restarts=0)
    assert ours.log_likelihood == pytest.approx(theirs.log_likelihood, abs=1e-3)


@pytest.mark.parametrize("scale", [True, False])
def test_self_tuning_in_tiny_units(scale):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)
    model = pogp.SelfTuning(scale=scale, warmup=40)
    model.learn(1e-200 * X, y)
    assert np.abs(model.predict(1e-200 * X)[0] - y).mean() < 0.2
