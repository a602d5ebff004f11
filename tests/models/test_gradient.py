"""Derivatives of every model's predictions, against finite differences."""

import numpy as np
import pytest

import pogp
from pogp.models.selftuning.registry import METHODS

BESIDE = np.array([0.3, 0.003])
KERNEL = pogp.Matern52((0.9, 1.4)) * pogp.RBF() + pogp.Linear((0.5, 0.2)) + pogp.Constant(0.3)


def data(outputs=None):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, size=(150, 2)) * [10.0, 0.1] + [100.0, 0.0]
    U = (X - [100.0, 0.0]) / [10.0, 0.1]
    y = 50 + 7 * (np.sin(2.0 * U[:, 0]) + U[:, 1]) + 0.5 * rng.normal(size=150)
    return X, y if outputs is None else np.column_stack([y, 3.0 - 2.0 * y**2])


def differences(model, X):
    """∂ mean and ∂ latent variance by each input, (2, n, p) or (2, n, p, k)."""
    slopes = []
    for move in np.diag([1e-3, 1e-5]):
        ahead, behind = (np.array(model.predict(X + m, latent=True)) for m in (move, -move))
        slopes.append((ahead - behind) / (2 * move.max()))
    return np.stack(slopes, axis=2)


def require_slopes(model, X):
    found = np.array(model.gradient(X))
    expected = differences(model, X)
    assert found.shape == expected.shape
    axes = tuple(range(1, found.ndim))[:1]
    scale = np.abs(expected).max(axis=axes, keepdims=True)
    np.testing.assert_allclose(found / scale, expected / scale, rtol=1e-4, atol=2e-5)
    np.testing.assert_allclose(np.array(model.gradient(X[0])), found[:, 0], rtol=1e-7)


@pytest.mark.parametrize("method", [m for m in METHODS if m != "online"])
def test_every_method_on_scaled_data(method):
    options = {"max_size": 20} if method in ("random", "window", "sogp", "krls-t") else {}
    options |= {"threshold": 1e-3} if method == "mcintire" else {}
    sized = ("spgp", "vfe", "smola-bartlett", "keerthi-chu", "seeger", "streaming-vfe")
    options |= {"size": 10} if method in sized else {}
    model = pogp.SelfTuning(method, kernel=KERNEL, noise=0.05, scale=True, warmup=60, **options)
    X, y = data()
    model.fit(X, y)
    require_slopes(model, X[:12] + BESIDE)


def test_calibrated_and_with_several_outputs():
    X, Y = data(outputs=2)
    model = pogp.SelfTuning(kernel=KERNEL, noise=0.05, scale=True, warmup=60, calibrate=True)
    model.learn(X, Y)
    require_slopes(model, X[:12] + BESIDE)


@pytest.mark.parametrize("outputs", [None, 2])
@pytest.mark.parametrize("count", [0, 1, 20, 150])
def test_the_mixture_of_an_online_model(count, outputs):
    X, y = data(outputs)
    model = pogp.OnlineGP(max_size=30)
    model.learn(X[:count], y[:count])
    far = X[:12] + BESIDE
    far[-1] += [300.0, 2.0]  # beyond what the scales know
    if count > 1:
        require_slopes(model, far)
    else:
        assert not np.any(model.gradient(far))


def test_a_large_last_residual_is_clipped():
    X, y = data()
    model = pogp.OnlineGP(max_size=30, robust=False)
    model.learn(X, y + np.cumsum(0.3 * np.random.default_rng(1).normal(size=len(y))))
    group = model._stream.leading
    group.residual[:] = 50.0  # more than three deviations
    group.lag_product[:] = 0.6 * (group.lag_square + 1)
    group.scores[...] = 0.0
    require_slopes(model, X[:12] + BESIDE)


@pytest.mark.parametrize("make", [pogp.DenseGP, pogp.AbsorbingPOG, lambda *a: pogp.VFE(*a, 3)])
def test_the_prior_has_gradients(make):
    X = np.array([[0.3, -1.0], [2.0, 0.5]])
    mean, variance = make(KERNEL, 0.1).gradient(X)
    np.testing.assert_array_equal(mean, np.zeros((2, 2)))
    np.testing.assert_allclose(variance, 2 * X * [0.5, 0.2], rtol=1e-12)


def test_kernels_without_derivatives_are_named():
    model = pogp.DenseGP(lambda A, B: A @ B.T + 1.0, 0.1)
    model.learn([[1.0, 2.0]], [1.0])
    with pytest.raises(ValueError, match="gradient needs the derivatives of the kernel: FunctionK"):
        model.gradient([1.0, 2.0])


@pytest.mark.parametrize("make", [pogp.DenseGP, pogp.AbsorbingPOG])
def test_bands_have_the_width_of_their_level(make):
    X, y = data()
    model = make(pogp.RBF((10.0, 0.1), 50.0), 0.3, mean=50.0)
    model.learn(X, y)
    mean, variance = model.predict(X)
    lower, upper = model.interval(X, 0.9)
    np.testing.assert_allclose(upper - mean, 1.6448536269514722 * np.sqrt(variance))
    np.testing.assert_allclose(mean - lower, upper - mean)
    assert model.interval(X[0])[0] < lower[0]
    for level in (0.0, 1.0, np.nan, "wide"):
        with pytest.raises(ValueError, match="level must be"):
            model.interval(X, level)


def test_no_rows_have_no_gradient():
    X = np.random.default_rng(0).uniform(-3, 3, (60, 2))
    for model in (pogp.OnlineGP(), pogp.AbsorbingPOG(pogp.RBF(), 0.01), pogp.POG(pogp.RBF(), 0.01)):
        model.learn(X, np.sin(X[:, 0]))
        mean, variance = model.gradient(np.empty((0, 2)))
        assert mean.shape == variance.shape == (0, 2)
