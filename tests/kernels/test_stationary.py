"""Kernels against scikit-learn, their derivatives against finite differences."""

import copy
import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process import kernels as sklearn_kernels

from pogp.backends import BUILT
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
    Product,
    RationalQuadratic,
    Stationary,
    Sum,
    as_kernel,
    kernel_from_spec,
)
from pogp.kernels.elementary import BUILTIN

RADIAL = [RBF, Matern12, Matern32, Matern52]
ARD = (0.7, 1.3, 2.1)
KERNELS = [
    *(kernel(lengthscale=scale, variance=1.7) for kernel in RADIAL for scale in (0.8, ARD)),
    RBF(ARD) + Matern32(0.5, 2.0),
    Matern12(ARD, 0.3) * Matern52(ARD, 2.0),
    (RBF(0.9) + Matern12(ARD)) * (Matern52(2.0) * RBF(ARD, 0.5) + Matern32()),
    RationalQuadratic(0.8, 1.7, 0.6),
    RationalQuadratic(ARD, 1.7, 2.5),
    Periodic(2.3, 0.7, 1.7),
    Periodic(ARD, 0.7, 1.7),
    Periodic(1.9, ARD) * RBF(3.0),
    Linear(1.7),
    Linear(ARD),
    Constant(1.7) + Linear(ARD) * RationalQuadratic(),
    RBF((0.7, 2.1), 1.7, columns=[2, 0]),
    RationalQuadratic(0.9, columns=(1,)) * Periodic(1.3, (0.9, 0.8), columns=[0, 2]),
    Linear((0.9, 0.8), columns=[1, 0]) + Constant(0.4, columns=[0]) + Matern12(ARD),
    RBF() + FunctionKernel(lambda A, B: A @ B.T),
]


def linear(A, B):
    return A @ B.T


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def central_differences(function, theta, step=1e-5):
    moves = step * np.eye(theta.size)
    slopes = [(function(theta + move) - function(theta - move)) / (2 * step) for move in moves]
    return np.array(slopes).reshape(theta.size, *np.shape(function(theta)))


@pytest.mark.parametrize("lengthscale", [0.6, ARD])
@pytest.mark.parametrize(
    ("kernel", "oracle"),
    [
        (RBF, sklearn_kernels.RBF),
        (Matern12, lambda scale: sklearn_kernels.Matern(scale, nu=0.5)),
        (Matern32, lambda scale: sklearn_kernels.Matern(scale, nu=1.5)),
        (Matern52, lambda scale: sklearn_kernels.Matern(scale, nu=2.5)),
    ],
)
def test_radial_kernels_agree_with_scikit_learn(kernel, oracle, lengthscale, rng):
    A, B = rng.normal(size=(40, 3)), rng.normal(size=(30, 3))
    ours, theirs = kernel(lengthscale, 1.9), oracle(lengthscale)
    np.testing.assert_allclose(ours(A, B), 1.9 * theirs(A, B), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(ours(A), 1.9 * theirs(A), rtol=1e-12, atol=1e-14)


def test_sum_and_product_are_entry_by_entry(rng):
    A, B = rng.normal(size=(6, 3)), rng.normal(size=(5, 3))
    left, right = RBF(ARD, 2.0), Matern12(0.5)
    np.testing.assert_array_equal((left + right)(A, B), left(A, B) + right(A, B))
    np.testing.assert_array_equal((left * right)(A, B), left(A, B) * right(A, B))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_one_argument_means_the_same_inputs_twice(kernel, rng):
    A = rng.normal(size=(20, 3))
    K = kernel(A)
    np.testing.assert_array_equal(K, kernel(A, A))
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_allclose(kernel.diag(A), np.diag(K), rtol=1e-13)
    none = np.empty((0, 3))
    assert kernel(none).shape == (0, 0)
    assert kernel(A, none).shape == (20, 0)
    assert kernel.diag(none).shape == (0,)


@pytest.mark.parametrize("kernel", RADIAL)
def test_the_variance_stands_exactly_where_inputs_are_the_same(kernel, rng):
    A = 1e6 + rng.normal(size=(20, 3))
    twice = np.concatenate([A, A])
    assert np.all(np.diag(kernel(ARD, 1.7)(twice)[:20, 20:]) == 1.7)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_gradients_agree_with_finite_differences(kernel, rng):
    A = rng.normal(size=(8, 3))
    A[3] = A[5]
    expected = central_differences(lambda theta: kernel.with_theta(theta)(A), kernel.theta)
    assert expected.shape == (len(kernel.parameter_names), 8, 8)
    np.testing.assert_allclose(kernel.gradients(A), expected, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_pullback_is_the_weighted_sum_of_gradients(kernel, rng):
    n = 230  # some are computed in strips of rows
    A, weights = 100.0 + rng.normal(size=(n, 3)), rng.normal(size=(n, n))
    A[3] = A[n - 5]
    expected = np.einsum("kij,ij->k", kernel.gradients(A), weights)
    np.testing.assert_allclose(kernel.pullback(A, weights), expected, rtol=1e-11, atol=1e-11)
    value, pullback = kernel.value_and_pullback(A)
    np.testing.assert_array_equal(value, kernel(A))
    np.testing.assert_array_equal(pullback(weights), kernel.pullback(A, weights))


@given(
    kernel=st.sampled_from(KERNELS),
    points=st.lists(st.tuples(*[st.floats(-1e3, 1e3)] * 3), min_size=1, max_size=12),
)
def test_matrices_are_positive_semi_definite(kernel, points):
    eigenvalues = np.linalg.eigvalsh(kernel(np.array(points)))
    assert eigenvalues[0] >= -1e-12 * max(eigenvalues[-1], 1.0)


@pytest.mark.parametrize("kernel", RADIAL)
def test_points_too_far_apart_to_square_are_uncorrelated(kernel):
    assert kernel()([[-1e200]], [[1e200]]) == 0.0


def test_theta_is_the_logarithm_of_the_named_parameters():
    kernel = RBF(ARD, 0.5) + Matern12(2.0) * Matern32()
    assert kernel.parameter_names == (
        "left.lengthscale[0]",
        "left.lengthscale[1]",
        "left.lengthscale[2]",
        "left.variance",
        "right.left.lengthscale",
        "right.left.variance",
        "right.right.lengthscale",
        "right.right.variance",
    )
    np.testing.assert_allclose(np.exp(kernel.theta), [*ARD, 0.5, 2.0, 1.0, 1.0, 1.0], rtol=1e-15)
    moved = kernel.with_theta(kernel.theta + 0.1)
    assert type(moved) is Sum
    assert type(moved.right) is Product
    np.testing.assert_allclose(moved.theta, kernel.theta + 0.1, rtol=1e-14)
    with pytest.raises(ValueError, match=r"shape \(8,\), got \(7,\)"):
        kernel.with_theta(kernel.theta[:-1])


def test_dimension():
    assert RBF(2.0).dimension is None
    assert RBF([2.0]).dimension == 1
    assert (RBF() * Matern12(ARD)).dimension == 3
    assert (RBF(ARD) + Matern12()).dimension == 3
    with pytest.raises(ValueError, match=r"got 3 in RBF\(.*\) and 2 in Matern12\("):
        RBF(ARD) + Matern12([1.0, 2.0])


def test_program_is_postfix():
    program = (RBF([1.0, 2.0], 1.5) + Matern32(0.5) * Matern12()).program()
    names = [step if isinstance(step, str) else step[0] for step in program]
    assert names == ["RBF", "Matern32", "Matern12", "*", "+"]
    np.testing.assert_array_equal(program[0].parameters["lengthscale"], [1.0, 2.0])
    assert program[1].parameters["lengthscale"] == 0.5
    assert program[0].parameters["variance"] == 1.5
    assert program[0].columns is None


class Wavy(Stationary):
    """A kernel that only its own code knows."""

    @staticmethod
    def _profile(r2):
        return np.cos(np.sqrt(r2))

    @staticmethod
    def _profile_and_slope(r2):
        return np.cos(np.sqrt(r2)), np.sinc(np.sqrt(r2) / np.pi)


class Bent(RBF):
    def __call__(self, A, B=None):
        return 2.0 * super().__call__(A, B)


@pytest.mark.parametrize("kernel", [Wavy(), Bent(), FunctionKernel(linear)])
@pytest.mark.parametrize("combine", [lambda k: k, lambda k: RBF() + k, lambda k: k * RBF()])
def test_kernels_of_other_packages_have_no_program_and_no_spec(kernel, combine):
    assert combine(kernel).program() is None
    with pytest.raises(ValueError, match=r"(Wavy|Bent|linear).*load\(path, kernel=\.\.\.\)"):
        combine(kernel).to_spec()


@pytest.mark.parametrize("kind", [RBF, Matern12, Matern32, Matern52])
def test_the_compiled_pullback_equals_the_reference(kind, rng, monkeypatch):
    A, B = rng.normal(size=(6, 3)), rng.normal(size=(4, 3))
    B[0], weights = A[0], rng.normal(size=(6, 4))
    kernel, found = kind((0.5, 1.0, 2.0), 1.3), []
    for name in ("compiled", "reference") if BUILT else ("reference",) * 2:
        monkeypatch.setenv("POGP_BACKEND", name)
        value, pullback = kernel.cross_pullback(A, B)
        found.append((value, *pullback(weights)))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-14)


def test_a_radial_kernel_of_the_users_needs_a_profile_and_its_slope(rng):
    A, kernel = rng.normal(size=(6, 2)), Wavy([1.0, 2.0])
    expected = central_differences(lambda theta: kernel.with_theta(theta)(A), kernel.theta)
    np.testing.assert_allclose(kernel.gradients(A), expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS[:-1], ids=repr)
def test_round_trips_are_exact(kernel):
    kernel = kernel.with_theta(kernel.theta / 3.0)
    spec = json.loads(json.dumps(kernel.to_spec()))
    namespace = dict(BUILTIN)
    for again in (
        kernel_from_spec(spec),
        eval(repr(kernel), namespace),
        pickle.loads(pickle.dumps(kernel)),
        copy.deepcopy(kernel),
    ):
        assert again == kernel
        assert hash(again) == hash(kernel)
        np.testing.assert_array_equal(again.theta, kernel.theta)


def test_spec_keeps_a_shared_length_scale_a_number():
    assert RBF(0.1, 3).to_spec() == {"kind": "RBF", "lengthscale": 0.1, "variance": 3.0}
    assert kernel_from_spec(RBF([0.1]).to_spec()).dimension == 1


@pytest.mark.parametrize(
    "spec",
    [
        None,
        [],
        "RBF",
        {},
        {"kind": "RBF"},
        {"kind": "Kernel", "lengthscale": 1.0, "variance": 1.0},
        {"kind": ["RBF"], "lengthscale": 1.0, "variance": 1.0},
        {"kind": "RBF", "lengthscale": 1.0, "variance": 1.0, "more": 0},
        {"kind": "RBF", "lengthscale": 1.0, "variance": 1.0, "alpha": 1.0},
        {"kind": "RBF", "lengthscale": 1.0, "variance": 1.0, "columns": [0.0]},
        {"kind": "RBF", "lengthscale": 1.0, "variance": 1.0, "columns": [True]},
        {"kind": "RBF", "lengthscale": 1.0, "variance": 1.0, "columns": "01"},
        {"kind": "RBF", "lengthscale": [1.0, 2.0], "variance": 1.0, "columns": [0]},
        {"kind": "Linear"},
        {"kind": "Constant", "eps": 1.0},
        {"kind": "Constant", "variance": [1.0]},
        {"kind": "RationalQuadratic", "lengthscale": 1.0, "variance": 1.0},
        {"kind": "Periodic", "period": [1, 2], "lengthscale": [1, 2, 3], "variance": 1.0},
        {"kind": "RBF", "lengthscale": "1.0", "variance": 1.0},
        {"kind": "RBF", "lengthscale": None, "variance": 1.0},
        {"kind": "RBF", "lengthscale": {}, "variance": 1.0},
        {"kind": "RBF", "lengthscale": True, "variance": 1.0},
        {"kind": "RBF", "lengthscale": [[1.0], [1.0, 2.0]], "variance": 1.0},
        {"kind": "RBF", "lengthscale": [], "variance": 1.0},
        {"kind": "RBF", "lengthscale": 1.0, "variance": [1.0]},
        {"kind": "RBF", "lengthscale": 1.0, "variance": -1.0},
        {"kind": "Sum", "left": RBF().to_spec()},
        {"kind": "Sum", "left": RBF().to_spec(), "right": 1},
        {"kind": "RBF", "left": RBF().to_spec(), "right": RBF().to_spec()},
        {"kind": "Sum", "left": RBF([1, 2]).to_spec(), "right": RBF([1, 2, 3]).to_spec()},
    ],
)
def test_malformed_specs(spec):
    with pytest.raises(ValueError, match=r"\S"):
        kernel_from_spec(spec)


def test_a_spec_nested_without_end():
    spec = RBF().to_spec()
    for _ in range(5000):
        spec = {"kind": "Sum", "left": spec, "right": RBF().to_spec()}
    with pytest.raises(ValueError, match="nested too deeply"):
        kernel_from_spec(spec)


def test_equality_is_by_value():
    assert RBF([1, 2]) == RBF(np.array([1.0, 2.0])) != RBF([1, 3])
    assert RBF(1.0) != RBF([1.0])
    assert RBF() != Matern12()
    assert RBF() + Matern12() == RBF() + Matern12() != RBF() * Matern12()
    assert len({RBF(), RBF(), RBF(2.0), RBF() + RBF(), RBF() + RBF()}) == 3
    assert as_kernel(linear) == as_kernel(linear)
    assert RBF() != "RBF"


@pytest.mark.parametrize("remake", [lambda k: k, lambda k: pickle.loads(pickle.dumps(k))])
def test_kernels_do_not_change(remake):
    scales = np.array([1.0, 2.0])
    kernel = remake(RBF(scales))
    scales[0] = 5.0
    np.testing.assert_array_equal(kernel.lengthscale, [1.0, 2.0])
    with pytest.raises(ValueError, match="read-only"):
        kernel.lengthscale[0] = 5.0
    with pytest.raises(ValueError, match="read-only"):
        kernel.program()[0].parameters["lengthscale"][0] = 5.0
    for name in ("lengthscale", "variance", "theta"):
        with pytest.raises(AttributeError):
            setattr(kernel, name, 1.0)
    with pytest.raises(AttributeError):
        (kernel + kernel).left = RBF()


@pytest.mark.parametrize(
    "value", [0.0, -1.0, np.nan, np.inf, [1.0, 0.0], "2", None, 1j, [[1.0]], []]
)
def test_bad_lengthscale(value):
    with pytest.raises(ValueError, match=r"lengthscale must be .*, got "):
        RBF(lengthscale=value)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, [1.0], "2", None])
def test_bad_variance(value):
    with pytest.raises(ValueError, match=r"variance must be .*, got "):
        Matern32(variance=value)


@pytest.mark.parametrize("kernel", [RBF(), RBF() + Matern12(), as_kernel(linear)], ids=repr)
def test_bad_inputs(kernel):
    with pytest.raises(ValueError, match=r"\(n, p\), got \(3,\)"):
        kernel(np.zeros(3))
    with pytest.raises(ValueError, match=r"columns.* 2"):
        kernel(np.zeros((4, 3)), np.zeros((4, 2)))
    with pytest.raises(ValueError, match=r"\(n, p\), got \(3,\)"):
        kernel.diag(np.zeros(3))


def test_inputs_must_fit_the_length_scales():
    with pytest.raises(ValueError, match="3 columns, got 2"):
        RBF(ARD)(np.zeros((4, 3)), np.zeros((4, 2)))
    with pytest.raises(ValueError, match="3 columns, got 2"):
        RBF(ARD).diag(np.zeros((4, 2)))


def test_a_kernel_of_the_users_own(rng):
    class Linear(Kernel):
        def __call__(self, A, B=None):
            return A @ (A if B is None else B).T

    A = rng.normal(size=(4, 2))
    np.testing.assert_allclose(Linear().diag(A), np.sum(A**2, axis=1))
    assert Linear().theta.size == 0
    assert Linear().gradients(A).shape == (0, 4, 4)
    assert Linear().pullback(A, np.ones((4, 4))).shape == (0,)
    product = RBF() * Linear()
    expected = central_differences(lambda theta: product.with_theta(theta)(A), product.theta)
    np.testing.assert_allclose(product.gradients(A), expected, rtol=1e-7, atol=1e-9)


def test_parameters_without_gradients():
    class Half(Kernel):
        theta = np.zeros(1)

        def __call__(self, A, B=None):
            return np.ones((len(A), len(A)))

    with pytest.raises(NotImplementedError, match="Half has parameters but no gradients"):
        Half().pullback(np.zeros((2, 1)), np.ones((2, 2)))


def test_as_kernel():
    kernel = RBF()
    assert as_kernel(kernel) is kernel
    assert as_kernel(linear) == FunctionKernel(linear)
    assert repr(as_kernel(linear)) == "FunctionKernel(linear)"
    for wrong in (RBF, 3, None, "RBF"):
        with pytest.raises(ValueError, match="expected a kernel"):
            as_kernel(wrong)
    with pytest.raises(ValueError, match="expected a function"):
        FunctionKernel(3)


def test_only_kernels_add_and_multiply():
    for wrong in (2.0, linear):
        with pytest.raises(TypeError):
            RBF() + wrong
        with pytest.raises(TypeError):
            RBF() * wrong
    with pytest.raises(ValueError, match=r"must be kernels, got 2\.0"):
        Sum(RBF(), 2.0)
