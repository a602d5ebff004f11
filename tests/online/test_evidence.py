"""The evidence: against the dense density, finite differences and samples left out."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import pogp
from pogp.backends import BUILT
from pogp.online.evidence import CHUNK, NUGGET, dense, evidence
from pogp.online.tuning import FAMILIES, Prior
from pogp.slices import finished


def explained(*arguments):
    """The evidence, in one go."""
    return finished(evidence(*arguments))


def problem(n=40, outputs=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Y = np.column_stack([np.sin(X[:, 0] + k) + 0.2 * rng.normal(size=n) for k in range(outputs)])
    return X, Y


def fitc(kernel, noise, Z, X):
    """The covariance of y, written out."""
    gram = kernel(Z)
    gram = gram + NUGGET * np.mean(np.diagonal(gram)) * np.eye(len(Z))
    cross = kernel(Z, X)
    low = cross.T @ np.linalg.solve(gram, cross)
    return low + np.diag(np.diagonal(kernel(X)) - np.diagonal(low) + noise)


KERNELS = [
    pogp.RBF((0.8, 1.2, 2.0), 1.3),
    Prior("Matern32", np.arange(3)).kernel(Prior("Matern32", np.arange(3)).mean),
    Prior("Matern12", np.array([0, 2])).kernel(Prior("Matern12", np.array([0, 2])).mean),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=["RBF", "Matern32", "columns"])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("inducing", [40, 12])
def test_the_value_is_the_log_density(kernel, outputs, inducing):
    X, Y = problem(outputs=outputs)
    found = explained(kernel, 0.05, X[:inducing], X, Y)
    normal = multivariate_normal(np.zeros(len(X)), fitc(kernel, 0.05, X[:inducing], X))
    assert found.value == pytest.approx(-np.sum(normal.logpdf(Y.T)), rel=1e-8)


def test_samples_may_have_a_weight_and_a_variance_of_their_own():
    X, Y = problem()
    extra, weights = np.linspace(0.0, 0.5, len(X)), np.linspace(0.5, 3.0, len(X))
    found = explained(KERNELS[0], 0.05, X[:12], X, Y, weights, extra)
    own = 0.05 / weights - 0.05 + extra
    covariance = fitc(KERNELS[0], 0.05, X[:12], X) + np.diag(own)
    normal = multivariate_normal(np.zeros(len(X)), covariance)
    assert found.value == pytest.approx(-np.sum(normal.logpdf(Y.T)), rel=1e-8)


def test_with_all_samples_inducing_it_is_that_of_the_dense_process():
    X, Y = problem()
    kernel = pogp.RBF(1.0, 1.5)
    found = explained(kernel, 0.1, X, X, Y)
    normal = multivariate_normal(np.zeros(len(X)), kernel(X) + 0.1 * np.eye(len(X)))
    assert found.value == pytest.approx(-normal.logpdf(Y[:, 0]), abs=0.05)


@pytest.mark.parametrize("kernel", KERNELS, ids=["RBF", "Matern32", "columns"])
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("n", [40, 300])  # one chunk, and three
def test_the_gradient_is_that_of_finite_differences(kernel, outputs, n):
    X, Y = problem(n, outputs)
    Z = X[:15]

    def value(step):
        theta = np.append(kernel.theta, np.log(0.05)) + step
        return explained(kernel.with_theta(theta[:-1]), np.exp(theta[-1]), Z, X, Y).value

    found = explained(kernel, 0.05, Z, X, Y)
    steps = 1e-5 * np.eye(len(found.gradient))
    expected = [(value(step) - value(-step)) / 2e-5 for step in steps]
    np.testing.assert_allclose(found.gradient, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("outputs", [1, 2])
def test_residuals_are_those_of_samples_left_out(outputs):
    X, Y = problem(30, outputs)
    kernel = KERNELS[0]
    covariance = fitc(kernel, 0.05, X[:10], X)
    found = explained(kernel, 0.05, X[:10], X, Y).residuals
    for i in range(len(X)):
        others = np.delete(np.arange(len(X)), i)
        weights = np.linalg.solve(covariance[np.ix_(others, others)], covariance[others, i])
        variance = covariance[i, i] - weights @ covariance[others, i]
        expected = (Y[i] - weights @ Y[others]) / np.sqrt(variance)
        np.testing.assert_allclose(found[i], expected, rtol=1e-6)


def both(n, outputs):
    """Samples with weights and variances of their own, and the noise of each."""
    (X, Y), rng = problem(n, outputs), np.random.default_rng(1)
    weights, extra = rng.uniform(0.5, 2.0, n), rng.uniform(0.0, 0.1, n)
    return X, Y, weights, extra, 0.05 / weights + extra


@pytest.mark.parametrize("kernel", KERNELS, ids=["RBF", "Matern32", "columns"])
@pytest.mark.parametrize("outputs", [1, 2])
def test_the_dense_evidence_is_the_log_density(kernel, outputs):
    X, Y, weights, extra, own = both(40, outputs)
    found = finished(dense(kernel, 0.05, X, Y, weights, extra))
    covariance = kernel(X) + np.diag(own)
    normal = multivariate_normal(np.zeros(len(X)), covariance)
    assert found.value == pytest.approx(-np.sum(normal.logpdf(Y.T)), rel=1e-8)
    for i in range(len(X)):
        others = np.delete(np.arange(len(X)), i)
        by = np.linalg.solve(covariance[np.ix_(others, others)], covariance[others, i])
        deviation = np.sqrt(covariance[i, i] - by @ covariance[others, i])
        expected = (Y[i] - by @ Y[others]) / deviation
        np.testing.assert_allclose(found.residuals[i], expected, rtol=1e-6)

    def value(step):
        theta = np.append(kernel.theta, np.log(0.05)) + step
        moved = kernel.with_theta(theta[:-1])
        return finished(dense(moved, np.exp(theta[-1]), X, Y, weights, extra)).value

    steps = 1e-5 * np.eye(len(found.gradient))
    expected = [(value(step) - value(-step)) / 2e-5 for step in steps]
    np.testing.assert_allclose(found.gradient, expected, rtol=1e-4, atol=1e-4)


def test_what_cannot_be_computed_is_none():
    X, Y = problem()
    Y[3] = np.nan
    assert explained(pogp.RBF(), 0.1, X[:5], X, Y) is None
    assert finished(dense(pogp.RBF(), 0.1, X, Y, np.ones(len(X)), np.zeros(len(X)))) is None


def test_the_work_comes_in_ticks():
    work = evidence(KERNELS[0], 0.1, problem()[0][:5], *problem(600))
    assert len(list(work)) > 2 * 600 / CHUNK


@pytest.mark.skipif(not BUILT, reason="the core was not built")
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("n", "m", "k"), [(7, 7, 3), (300, 20, 1), (140, 140, 2)])
def test_the_compiled_evidence_is_the_same(family, n, m, k):
    from pogp.online.compiled_evidence import CompiledEvidence

    (X, Y), rng = problem(n, k), np.random.default_rng(1)
    X[n // 2] = X[0]  # a distance of zero
    weights, extra = rng.uniform(0.5, 2.0, n), rng.uniform(0.0, 0.1, n)
    prior = Prior(family, np.arange(3))
    compiled = CompiledEvidence(family, X[:m], X, Y, weights, extra)
    for _ in range(3):  # its memory is used again
        parameters = prior.mean + rng.normal(size=len(prior.mean))
        kernel, noise = prior.kernel(parameters), float(np.exp(parameters[-1]))
        expected = explained(kernel, noise, X[:m], X, Y, weights, extra)
        found = finished(compiled(parameters))
        assert found.value == pytest.approx(expected.value, rel=1e-10)
        scale = np.abs(expected.gradient).max()
        np.testing.assert_allclose(found.gradient, expected.gradient, atol=1e-10 * scale)
        np.testing.assert_allclose(found.residuals, expected.residuals, rtol=1e-6, atol=1e-9)
    ticks = list(evidence(kernel, noise, X[:m], X, Y, weights, extra))
    assert list(compiled(parameters)) == ticks  # so both end at the same sample of a stream
    assert len(ticks) > 2 * n / CHUNK
    Y[0] = np.nan
    assert finished(CompiledEvidence(family, X[:m], X, Y, weights, extra)(parameters)) is None


@pytest.mark.skipif(not BUILT, reason="the core was not built")
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("n", "k"), [(7, 3), (130, 1), (300, 2)])  # one strip, two, and more
def test_the_compiled_dense_evidence_is_the_same(family, n, k):
    from pogp.online.compiled_evidence import CompiledDense

    X, Y, weights, extra, _ = both(n, k)
    X[n // 2] = X[0]  # a distance of zero
    X[n // 3] += 1e4  # and one at which nothing is left
    prior, rng = Prior(family, np.arange(3)), np.random.default_rng(2)
    compiled = CompiledDense(family, X, Y, weights, extra)
    for _ in range(3):  # its memory is used again
        parameters = prior.mean + 0.5 * rng.normal(size=len(prior.mean))
        parameters[-3] = -20.0  # or the linear part of the far one is all that counts
        kernel, noise = prior.kernel(parameters), float(np.exp(parameters[-1]))
        expected = finished(dense(kernel, noise, X, Y, weights, extra))
        found = finished(compiled(parameters))
        assert found.value == pytest.approx(expected.value, rel=1e-10)
        scale = np.abs(expected.gradient).max()
        np.testing.assert_allclose(found.gradient, expected.gradient, atol=1e-8 * scale)
        np.testing.assert_allclose(found.residuals, expected.residuals, rtol=1e-6, atol=1e-9)
    ticks = list(dense(kernel, noise, X, Y, weights, extra))
    assert list(compiled(parameters)) == ticks
    Y[0] = np.nan
    assert finished(CompiledDense(family, X, Y, weights, extra)(parameters)) is None
