"""Kernels in the compiled core: their programs, and models that learn with them."""

import numpy as np
import pytest
from pogp.kernels.compiled import Program, shallow

import pogp
from pogp.kernels import RBF, Kernel, Linear, prior_variance

from ..kernels.test_stationary import KERNELS
from ..pairwise import pairwise

COMPILED = [kernel for kernel in KERNELS if kernel.program() is not None]
WORDS = ("Rational", "Periodic", "Linear", "Constant", "columns")
VARIED = [kernel for kernel in COMPILED if any(word in repr(kernel) for word in WORDS)]


@pytest.fixture
def two():
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, 3)), rng.normal(size=(30, 3))


@pytest.mark.parametrize("kernel", COMPILED, ids=repr)
def test_programs_give_what_the_kernels_give(kernel, two):
    X, Z = two
    program = Program(kernel.program(), 3)
    found = program.cross(np.ascontiguousarray(Z.T), len(Z), X)
    np.testing.assert_allclose(found, kernel(X, Z), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(program.priors(X), prior_variance(kernel, X), rtol=1e-13)
    assert program.varies == (kernel.kappa0 is None)
    if kernel.kappa0 is not None:
        assert kernel.kappa0 == pytest.approx(program.kappa0, rel=1e-15)
        np.testing.assert_allclose(kernel.diag(X), kernel.kappa0, rtol=1e-15)


def test_programs_are_as_shallow_as_can_be():
    def bushy(levels: int) -> Kernel:
        return Linear() if levels == 0 else bushy(levels - 1) * bushy(levels - 1)

    deep = Linear()
    for scale in range(1, 200):
        deep = RBF(float(scale)) + deep
    assert shallow(deep.program())[1] == 2
    assert shallow(bushy(5).program())[1] == 6
    X = np.random.default_rng(0).normal(size=(5, 2))
    found = Program(deep.program(), 2).cross(np.ascontiguousarray(X.T), 5, X)
    np.testing.assert_allclose(found, deep(X), rtol=1e-13)


@pairwise(noise=[0.05, 1e-6], view=["newest", "everywhere"], kernel=list(VARIED))
def test_both_backends_learn_the_same(kernel, view, noise, monkeypatch, tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + np.sqrt(noise) * rng.normal(size=120)
    found = {}
    for backend in ("compiled", "reference"):
        monkeypatch.setenv("POGP_BACKEND", backend)
        model = pogp.POG(kernel, noise, 1e-3, view=view, max_size=25)
        trace = model.learn(X[:100], y[:100])
        model.save(tmp_path / "model.pogp")
        again = pogp.load(tmp_path / "model.pogp")
        for each in (model, again):
            each.learn(X[100:], y[100:])
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert again.kernel == kernel
        found[backend] = (model.indices, trace.size, model.predict(X), model.covariance(X[:4]))
    ours, theirs = found["compiled"], found["reference"]
    np.testing.assert_array_equal(ours[0], theirs[0])
    np.testing.assert_array_equal(ours[1], theirs[1])
    scale = 1e-5 if noise < 0.01 else 1e-8
    np.testing.assert_allclose(ours[2], theirs[2], rtol=scale, atol=scale)
    np.testing.assert_allclose(ours[3], theirs[3], rtol=scale, atol=scale)


@pytest.mark.parametrize("backend", ["compiled", "reference"])
def test_values_beyond_all_bounds_are_refused_before_anything_changes(backend, monkeypatch):
    monkeypatch.setenv("POGP_BACKEND", backend)
    model = pogp.POG(Linear() * Linear(), 0.1)
    model.learn([[1.0]], [1.0])
    with pytest.raises(ValueError, match="finite values below 1e"):
        model.learn([[2.0], [1e60]], [1.0, 1.0])
    with pytest.raises(ValueError, match="finite values below 1e"):
        model.predict([[1e60]])
    assert model.seen == 1
