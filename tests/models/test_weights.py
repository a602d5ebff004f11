"""Samples of different precision: a weight says how much noise a sample has."""

import numpy as np
import pytest

import pogp
from pogp.checks._kit import require_same
from pogp.online.evidence import evidence
from pogp.slices import finished


def uneven(n=500, seed=0):
    """A stream of which 30 % have twenty times the deviation, and its weights."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    bad = rng.random(n) < 0.3
    y = 5 + np.sin(2 * X[:, 0]) * X[:, 1] + np.where(bad, 2.0, 0.1) * rng.normal(size=n)
    return X, y, np.where(bad, 1 / 400, 1.0)


def error(model):
    X = np.random.default_rng(9).uniform(-2, 2, (300, 2))
    mean, variance = model.predict(X, latent=True)
    truth = 5 + np.sin(2 * X[:, 0]) * X[:, 1]
    return np.sqrt(np.mean((mean - truth) ** 2)), np.mean(np.abs(mean - truth) < 2 * variance**0.5)


MODELS = {
    "online": lambda: pogp.OnlineGP(max_size=40, robust=False),
    "absorbing": lambda: pogp.SelfTuning(kernel=pogp.RBF(), noise=0.01, mean=5.0, scale=False),
    "tuned": lambda: pogp.SelfTuning(warmup=100, scale=True),
}


@pytest.mark.parametrize("name", MODELS)
def test_samples_with_a_small_weight_count_less(name):
    X, y, weight = uneven()
    weighed, alike = MODELS[name](), MODELS[name]()
    weighed.learn(X, y, weight)
    alike.learn(X, y)
    assert error(weighed)[0] < 0.6 * error(alike)[0]


def test_the_estimated_noise_is_that_of_weight_one():
    X, y, weight = uneven(800)
    model = pogp.OnlineGP(max_size=60)
    trace = model.learn(X, y, weight)
    assert 0.005 < model.noise < 0.03  # it is 0.01
    for part in (weight == 1, weight < 1):
        late = part & (np.arange(len(y)) >= 300)
        inside = pogp.metrics.coverage(y[late], trace.mean[late], trace.variance[late])
        assert 0.88 < inside <= 1.0


def test_weights_of_one_change_nothing():
    X, y, _ = uneven(130)
    plain, weighed = (pogp.OnlineGP(max_size=20) for _ in range(2))
    plain.learn(X, y)
    weighed.learn(X[:60], y[:60], 1.0)
    weighed.learn(X[60:], y[60:], np.ones(70))
    require_same("weighed", weighed, plain)


@pytest.mark.parametrize("count", [70, 103])
def test_weights_are_in_files(count):
    X, y, weight = uneven(180)
    models = [pogp.OnlineGP(max_size=20), pogp.SelfTuning(warmup=90)]
    for model in models:
        model.learn(X[:count], y[:count], weight[:count])
        loaded = pogp.from_bytes(model.to_bytes())
        for each in (model, loaded):
            each.learn(X[count:], y[count:], weight[count:])
        require_same("loaded", loaded, model)


def test_the_evidence_of_weighed_samples_has_its_gradient():
    rng = np.random.default_rng(0)
    X, Y, weights = rng.normal(size=(60, 2)), rng.normal(size=(60, 2)), rng.uniform(0.1, 5, 60)
    kernel = pogp.RBF((1.0, 2.0), 1.5)

    def at(theta):
        noise = float(np.exp(theta[-1]))
        moved = kernel.with_theta(theta[:-1])
        return finished(evidence(moved, noise, X[:20], X, Y, weights))

    theta = np.append(kernel.theta, np.log(0.1))
    slopes = [(at(theta + step).value - at(theta - step).value) / 2e-6 for step in 1e-6 * np.eye(4)]
    np.testing.assert_allclose(at(theta).gradient, slopes, rtol=1e-5, atol=1e-5)
    dense = finished(evidence(kernel, 0.1, X, X, Y, weights)).value
    K = kernel(X) + np.diag(0.1 / weights)
    exact = np.linalg.slogdet(2 * np.pi * K)[1] + 0.5 * np.sum(Y * np.linalg.solve(K, Y))
    np.testing.assert_allclose(dense, exact, rtol=1e-3)  # but for the nugget


@pytest.mark.parametrize(
    ("make", "weight", "message"),
    [
        (pogp.OnlineGP, 0.0, "weight must be between 1e-06 and 1e\\+06, got 0.0"),
        (pogp.OnlineGP, [1.0, np.nan], "weight must be between"),
        (pogp.OnlineGP, [1.0, 1.0, 1.0], r"weight must be a number or have shape \(2,\), got \(3,"),
        (lambda: pogp.SelfTuning("pog"), 1.0, "method 'pog' does not use weights"),
    ],
)
def test_wrong_weights_are_refused(make, weight, message):
    model = make()
    with pytest.raises(ValueError, match=message):
        model.learn([[1.0], [2.0]], [1.0, 2.0], weight)
    assert model.seen == 0
