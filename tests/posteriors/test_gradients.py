"""Derivatives of posteriors by the inputs, against finite differences of their predictions."""

import numpy as np
import pytest

import pogp
from pogp.kernels import RBF, Constant, Linear, Matern52, Periodic

from ..conftest import BACKENDS
from ..pairwise import pairwise

KERNELS = [
    RBF((0.9, 1.4), 1.3),
    Matern52(1.1) * Periodic(2.5, columns=[1]) + Linear((0.5, 0.2)) + Constant(0.3),
]
MODELS = {
    "pog": lambda kernel, noise: pogp.POG(kernel, noise, 1e-3, max_size=20),
    "dense": lambda kernel, noise: pogp.DenseGP(kernel, noise, mean=0.4),
    "vfe": lambda kernel, noise: pogp.VFE(kernel, noise, 8),
    "spgp": lambda kernel, noise: pogp.SPGP(kernel, noise, 8),
    "seeger": lambda kernel, noise: pogp.Seeger(kernel, noise, 8),
}


def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, size=(60, 2))
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=60)


def differences(model, X, step=1e-5):
    """∂ mean and ∂ latent variance by each input, (2, n, p)."""
    slopes = []
    for move in step * np.eye(X.shape[1]):
        ahead, behind = (np.array(model.predict(X + m, latent=True)) for m in (move, -move))
        slopes.append((ahead - behind) / (2 * step))
    return np.moveaxis(slopes, 0, -1)


@pairwise(backend=BACKENDS, noise=[0.05, 1e-5], kernel=KERNELS, name=list(MODELS))
def test_gradients_agree_with_finite_differences(backend, noise, kernel, name):
    X, y = data()
    model = MODELS[name](kernel, noise)
    model.learn(X, y) if model.online else model.fit(X, y)
    queries = np.random.default_rng(1).uniform(-3.0, 3.0, size=(15, 2))
    found = model._posterior.gradient(queries)
    scale = np.abs(found).max()
    np.testing.assert_allclose(found, differences(model, queries), rtol=1e-4, atol=1e-5 * scale)


@pytest.mark.parametrize("make", [MODELS["pog"], MODELS["dense"]])
def test_gradients_of_the_prior(make):
    model = make(KERNELS[1], 0.1)
    model.learn([[1.0, 2.0]], [1.0])
    model.remove(0)
    X = np.array([[0.3, -1.0], [2.0, 0.5]])
    mean, variance = model._posterior.gradient(X)
    np.testing.assert_array_equal(mean, np.zeros((2, 2)))
    np.testing.assert_allclose(variance, 2 * X * [0.5, 0.2], rtol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS, indirect=True)
@pytest.mark.parametrize("count", [1, 4, 9])
def test_products_with_the_matrices_of_a_belief(backend, count):
    X, y = data()
    model = pogp.KRLST(KERNELS[0], 0.05, max_size=20, forgetting=0.98)
    model.learn(X, y)
    core = model._posterior.core
    rows = np.random.default_rng(2).normal(size=(count, core.size))
    scale = np.abs(core.inverse).max()
    found = core.times_inverse(rows)
    np.testing.assert_allclose(found @ core.gram, rows, atol=1e-9)
    np.testing.assert_allclose(found, rows @ core.inverse, atol=1e-9 * scale)
    expected = rows @ core.covariance_of(0)
    np.testing.assert_allclose(core.times_covariance(0, rows), expected, rtol=1e-10, atol=1e-12)
