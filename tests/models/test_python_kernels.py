"""Kernels written in Python: the same models, and failures that change nothing."""

import numpy as np
import pytest

import pogp
from pogp.compression import Plan

from ..conftest import assert_same_state, rbf, smooth_2d
from .test_protocol import KERNEL, KINDS, MEAN, NOISE, QUERIES, X, Y, maker, users_kernel


@pytest.fixture(params=KINDS)
def make(request, backend):
    """Make a model of each kind, on each core."""
    return maker(request.param)


class Trap:
    """The RBF as a plain function, until it has been called so many times."""

    def __init__(self, deed):
        self.deed, self.calls_left = deed, np.inf

    def __call__(self, A, B):
        self.calls_left -= 1
        return self.deed(A, B) if self.calls_left < 0 else rbf((0.7, 0.9), 1.3)(A, B)


def interrupt(A, B):
    raise KeyboardInterrupt


DEEDS = {
    "interrupt": (interrupt, KeyboardInterrupt, None),
    "NaN": (lambda A, B: np.full((len(A), len(B)), np.nan), ValueError, "nan"),
    "infinity": (lambda A, B: np.full((len(A), len(B)), np.inf), ValueError, "inf"),
    "shape": (lambda A, B: np.ones((len(A), len(B), 3)), ValueError, r"3\)"),
    "size": (lambda A, B: np.ones((len(A) + 7, len(B))), ValueError, "shape"),
    "text": (lambda A, B: "a kernel", ValueError, "a kernel"),
    "None": (lambda A, B: None, ValueError, r"of shape \(\)"),
    "its own": (lambda A, B: [][0], IndexError, None),
}


def test_an_interrupt_in_the_kernel_changes_nothing(make):
    assert_failure_changes_nothing(make, "interrupt")


@pytest.mark.parametrize("deed", DEEDS)
def test_a_kernel_that_fails_changes_nothing(deed):
    assert_failure_changes_nothing(maker("newest"), deed)


def assert_failure_changes_nothing(make, deed):
    function, error, message = DEEDS[deed]
    kernel = Trap(function)
    model, untouched = make(kernel=kernel), make(kernel=Trap(function))
    for one in (model, untouched):
        one.learn(X[:40], Y[:40])
    before = model.state()
    kernel.calls_left = 0 if isinstance(model, pogp.DenseGP) else 60
    with pytest.raises(error, match=message):
        model.learn(X[40:], Y[40:])
    kernel.calls_left = np.inf
    assert_same_state(model, before)
    assert_same_state(model, untouched)
    traces = [one.learn(X[40:100], Y[40:100]) for one in (model, untouched)]
    np.testing.assert_array_equal(traces[0].records, traces[1].records)


class BadDiagonal(pogp.Kernel):
    """The RBF, until its diagonal is something else."""

    answer = None

    def __call__(self, A, B=None):
        return users_kernel(A, A if B is None else B)

    def diag(self, A):
        return np.full(len(A), 1.3) if self.answer is None else self.answer(A)


@pytest.mark.parametrize(
    "answer",
    [lambda A: np.full(len(A), np.nan), lambda A: np.ones(len(A) + 1), lambda A: None],
    ids=["NaN", "shape", "None"],
)
@pytest.mark.parametrize("kind", ["newest", "everywhere"])
def test_a_bad_diagonal_of_a_kernel_is_refused(backend, kind, answer):
    kernel = BadDiagonal()
    model = maker(kind)(kernel=kernel)
    model.learn(X[:40], Y[:40])
    before = model.state()
    kernel.answer = answer
    with pytest.raises(ValueError, match=r"diag|shape|finite"):
        model.predict(QUERIES)
    with pytest.raises(ValueError, match=r"diag|shape|finite"):
        model.learn(X[40:], Y[40:])
    assert_same_state(model, before)


def test_an_interrupt_in_a_later_block_of_the_dense_model_changes_nothing(backend):
    kernel = Trap(interrupt)
    model = pogp.DenseGP(kernel, NOISE)
    long_X, long_y = smooth_2d(900)
    model.learn(long_X[:100], long_y[:100])
    before = model.state()
    kernel.calls_left = 5  # two calls a block, three blocks
    with pytest.raises(KeyboardInterrupt):
        model.learn(long_X[100:], long_y[100:])
    assert_same_state(model, before)


def test_an_interrupt_between_blocks_of_the_compiled_loop_changes_nothing(monkeypatch):
    monkeypatch.setenv("POGP_BACKEND", "compiled")
    model = pogp.POG(KERNEL, NOISE, 1e-3)
    model.learn(X[:100], Y[:100])
    before, blocks, original = model.state(), [], Plan.part

    def interrupted(plan, rows):
        blocks.append(rows)
        if len(blocks) == 3:
            raise KeyboardInterrupt
        return original(plan, rows)

    monkeypatch.setattr(Plan, "part", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.learn(X[100:], Y[100:])
    assert len(blocks) == 3
    assert_same_state(model, before)


class Imitation(pogp.Kernel):
    def __call__(self, A, B=None):
        return users_kernel(A, A if B is None else B)


def test_a_kernel_in_python_gives_the_same_as_the_builtin_one(make):
    own, function, builtin = make(kernel=Imitation()), make(kernel=users_kernel), make()
    np.testing.assert_array_equal(
        own.copy().learn(X[:50], Y[:50]).records, function.learn(X[:50], Y[:50]).records
    )
    traces = [model.learn(X[:120], Y[:120]) for model in (own, builtin)]
    np.testing.assert_allclose(traces[0].records, traces[1].records, rtol=1e-7, atol=1e-9)
    assert own.indices.tolist() == builtin.indices.tolist()
    np.testing.assert_allclose(own.predict(QUERIES), builtin.predict(QUERIES), atol=1e-9)
    np.testing.assert_allclose(
        own.covariance(QUERIES[:9]), builtin.covariance(QUERIES[:9]), atol=1e-9
    )


def test_a_kernel_that_is_not_constant_on_its_diagonal(make):
    """κ(x, x) is not one number for a linear kernel."""

    def linear(A, B):
        return 1.0 + A @ B.T

    model = make(kernel=linear)
    model.learn(X[:80], Y[:80])
    Z = model.dictionary
    gram = np.linalg.inv(linear(Z, Z) + NOISE * np.eye(len(Z)))
    cross = linear(QUERIES, Z)
    mean = MEAN + cross @ gram @ (model.targets - MEAN)
    variance = 1 + (QUERIES**2).sum(axis=1) - np.einsum("ij,jk,ik->i", cross, gram, cross)
    np.testing.assert_allclose(model.predict(QUERIES)[0], mean, atol=1e-9)
    np.testing.assert_allclose(model.predict(QUERIES, latent=True)[1], variance, atol=1e-9)
