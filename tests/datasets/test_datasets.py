"""The simulated streams against what they claim to be; loading against a web of the test's own."""

import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from pogp import datasets, metrics

ARRAYS = ("x_train", "y_train", "x_test", "y_test")
SIMULATED = [datasets.arm, datasets.gaussian, datasets.chi_square]
PUBLISHED = {  # training samples, test samples, inputs
    "boston": (455, 51, 13),
    "abalone": (3133, 1044, 8),
    "kin40": (4000, 200, 8),
    "kin40k": (36000, 4000, 8),
}


# ---- Dataset


def make(**changes):
    """Return a small data set, with some of its fields changed."""
    fields = {
        "name": "small",
        "x_train": np.arange(12.0).reshape(4, 3),
        "y_train": np.arange(4.0),
        "x_test": np.arange(6.0).reshape(2, 3),
        "y_test": np.arange(2.0),
        "source": "made up",
    }
    return datasets.Dataset(**(fields | changes))


def test_repr_is_short():
    assert repr(make()) == "Dataset(small: 4 training and 2 test samples, 3 inputs)"


def test_a_dataset_is_frozen_and_pickles():
    dataset = make()
    with pytest.raises(FrozenInstanceError):
        dataset.name = "other"
    assert_same_arrays(pickle.loads(pickle.dumps(dataset)), dataset)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x_train": np.ones(4)}, r"x_train must have shape \(n, p\).*got \(4,\)"),
        ({"x_test": np.ones((0, 3)), "y_test": np.ones(0)}, r"x_test must .*got \(0, 3\)"),
        ({"y_train": np.ones(3)}, r"y_train must have shape \(4,\) like x_train, got \(3,\)"),
        ({"y_test": np.ones((2, 1))}, r"y_test must have shape \(2,\).*got \(2, 1\)"),
        ({"x_test": np.ones((2, 5))}, "x_test must have 3 inputs like x_train, got 5"),
        ({"y_test": np.array([1.0, np.nan])}, "y_test must be finite"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        make(**changes)


# ---- simulated streams


def assert_same_arrays(one, other):
    for key in ARRAYS:
        np.testing.assert_array_equal(getattr(one, key), getattr(other, key), err_msg=key)


@pytest.mark.parametrize("simulate", SIMULATED)
def test_a_longer_stream_begins_with_the_shorter(simulate):
    for short, long in ((1, 7), (100, 201)):
        begun, continued = simulate(short, seed=3), simulate(long, seed=3)
        head = replace(
            continued, x_train=continued.x_train[:short], y_train=continued.y_train[:short]
        )
        assert_same_arrays(head, begun)


@pytest.mark.parametrize("simulate", SIMULATED)
def test_the_seed_decides_and_the_test_set_is_apart(simulate):
    dataset = simulate(50, seed=1)
    assert_same_arrays(simulate(50, seed=1), dataset)
    assert not np.isin(simulate(50, seed=2).x_train, dataset.x_train).any()
    assert not np.isin(dataset.x_test, dataset.x_train).any()


@pytest.mark.parametrize("simulate", SIMULATED)
def test_sizes_and_types(simulate):
    dataset = simulate(20, n_test=30)
    assert dataset.x_train.shape[0] == 20
    assert dataset.x_test.shape[0] == 30
    assert simulate(20).x_test.shape[0] == 1000
    for key in ARRAYS:
        array = getattr(dataset, key)
        assert array.dtype == np.float64
        assert array.flags.c_contiguous


@pytest.mark.parametrize("simulate", SIMULATED)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "n must be an integer ≥ 1, got 0"),
        ({"n": 2.5}, r"n must be an integer ≥ 1, got 2\.5"),
        ({"n": 5, "seed": -1}, "seed must be an integer ≥ 0, got -1"),
        ({"n": 5, "n_test": 0}, "n_test must be an integer ≥ 1, got 0"),
    ],
)
def test_bad_sizes_and_seeds_are_refused(simulate, arguments, message):
    with pytest.raises(ValueError, match=message):
        simulate(**arguments)


def slow_distance(angles):
    """Distance of the hand of one arm from the target, by the product of eight 4×4 matrices."""
    pose = np.eye(4)
    for joint, theta in enumerate(angles):
        alpha = np.pi / 2 if joint % 2 == 0 else -np.pi / 2
        ct, st, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
        pose = pose @ np.array(
            [
                [ct, -st * ca, st * sa, ct / 8],
                [st, ct * ca, -ct * sa, st / 8],
                [0, sa, ca, 0],
                [0, 0, 0, 1],
            ]
        )
    return np.linalg.norm(pose[:3, 3] - np.array([0.1, 0.1, 0.1]))


def test_the_arm_is_the_denavit_hartenberg_product():
    dataset = datasets.arm(50, n_test=1, noise=0.0)
    angles = dataset.x_train * np.radians(110) / np.sqrt(3)
    expected = [(slow_distance(row) - 0.5315) / 0.1727 for row in angles]
    np.testing.assert_allclose(dataset.y_train, expected, rtol=0, atol=1e-13)


def test_the_arm_is_standardised_by_constants():
    dataset = datasets.arm(200_000, noise=0.0)
    assert np.abs(dataset.x_train).max() <= np.sqrt(3)
    np.testing.assert_allclose(dataset.x_train.mean(axis=0), 0, atol=0.01)
    np.testing.assert_allclose(dataset.x_train.var(axis=0), 1, atol=0.01)
    assert dataset.y_train.mean() == pytest.approx(0, abs=0.01)
    assert dataset.y_train.var() == pytest.approx(1, abs=0.01)


def test_the_arms_noise_is_a_variance():
    clean, noisy = datasets.arm(20_000, noise=0.0), datasets.arm(20_000, noise=0.25)
    np.testing.assert_array_equal(clean.x_train, noisy.x_train)
    for part in ("y_train", "y_test"):
        error = getattr(noisy, part) - getattr(clean, part)
        tolerance = 4 * 0.25 * np.sqrt(2 / len(error))
        assert error.var() == pytest.approx(0.25, abs=tolerance), part


@pytest.mark.parametrize("noise", [-0.1, np.nan, np.inf])
def test_a_bad_noise_is_refused(noise):
    with pytest.raises(ValueError, match=f"noise must be a finite variance ≥ 0, got {noise}"):
        datasets.arm(5, noise=noise)


def test_a_gaussian_process_learns_the_arm_as_it_would_kin40k():
    dataset = datasets.arm(1000)

    def score(n):
        kernel = 1.3 * RBF([1.9, 2.0, 1.8, 1.7, 1.6, 1.8, 2.0, 2.5])
        model = GaussianProcessRegressor(kernel, alpha=0.015, optimizer=None)
        mean = model.fit(dataset.x_train[:n], dataset.y_train[:n]).predict(dataset.x_test)
        return metrics.smse(dataset.y_test, mean, dataset.y_train.var())

    few, some, many = score(250), score(500), score(1000)
    assert 0.5 > few > some > many
    assert 0.05 < many < 0.15


def test_the_arm_is_not_linear():
    dataset = datasets.arm(2000)
    design = np.column_stack((dataset.x_train, np.ones(2000)))
    weights = np.linalg.lstsq(design, dataset.y_train)[0]
    mean = np.column_stack((dataset.x_test, np.ones(1000))) @ weights
    assert metrics.smse(dataset.y_test, mean, dataset.y_train.var()) > 0.8


def test_the_gaussian_check_is_the_papers():
    dataset = datasets.gaussian(50_000)
    weights, intercept = np.full(10, 0.5), 2.0
    np.testing.assert_allclose(dataset.y_train, dataset.x_train @ weights + intercept, atol=1e-13)
    np.testing.assert_allclose(dataset.y_test, dataset.x_test @ weights + intercept, atol=1e-13)
    # y ~ N(2, 2.5), to within four standard errors.
    assert dataset.y_train.mean() == pytest.approx(2.0, abs=4 * np.sqrt(2.5 / 50_000))
    assert dataset.y_train.var() == pytest.approx(2.5, abs=4 * 2.5 * np.sqrt(2 / 50_000))
    np.testing.assert_allclose(np.cov(dataset.x_train.T), np.eye(10), atol=0.03)


@pytest.mark.parametrize("t", [1, 2, 50])
def test_the_chi_square_check_has_the_papers_moments(t):
    # One t over many seeds: the moments of y_t, to within four standard errors.
    seeds = 2000
    y = np.array([datasets.chi_square(t, seed=s, n_test=1).y_train[-1] for s in range(seeds)])
    shift = (t**-0.1) ** 2
    mean, variance = 1 + shift, 2 * (1 + 2 * shift)
    assert y.mean() == pytest.approx(mean, abs=4 * np.sqrt(variance / seeds))
    assert y.var() == pytest.approx(variance, abs=4 * np.var((y - mean) ** 2) ** 0.5 / seeds**0.5)


def test_the_chi_square_check_ends_at_its_limit():
    dataset = datasets.chi_square(10, n_test=100_000)
    np.testing.assert_array_equal(dataset.y_train, dataset.x_train[:, 0] ** 2)
    np.testing.assert_array_equal(dataset.y_test, dataset.x_test[:, 0] ** 2)
    # A central chi-square with one degree of freedom: mean 1, variance 2, fourth moment 60.
    assert dataset.y_test.mean() == pytest.approx(1, abs=4 * np.sqrt(2 / 100_000))
    assert dataset.y_test.var() == pytest.approx(2, abs=4 * np.sqrt((60 - 4) / 100_000))
