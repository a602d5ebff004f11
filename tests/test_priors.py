"""The weak prior on hyperparameters: its gradient, its units, and what it is for."""

import numpy as np
import pytest

import pogp
from pogp.priors import Prior
from pogp.tuning import tune

RNG = np.random.default_rng(5)


@pytest.mark.parametrize(
    "kernel",
    [
        pogp.RBF([1.0, 2.0, 0.5]),
        pogp.Matern32([1.0, 2.0, 0.5]) + pogp.RBF([0.3, 4.0], columns=[0, 2]),
        pogp.RBF(1.0) * pogp.Periodic(),
    ],
)
def test_the_gradient_is_that_of_the_density(kernel):
    prior = Prior.of(kernel, RNG.normal(size=(40, 3)), 2.0, 1.5)
    at = np.append(kernel.theta, np.log(0.2))
    value, gradient = prior(at)
    step = 1e-6
    for i in range(len(at)):
        there = at + step * (np.arange(len(at)) == i)
        assert (prior(there)[0] - value) / step == pytest.approx(gradient[i], abs=1e-5)


def test_it_is_a_cauchy_density_of_logarithms_and_an_exponential_one_of_the_noise():
    X = RNG.normal(size=(500, 2))
    prior = Prior.of(pogp.RBF([1.0, 1.0]), X, 1.0, 2.0)
    away = np.array([1.0, -1.0, 0.0])
    equal, apart = (prior(np.append(prior.typical + d * away, np.log(2.0)))[0] for d in (0.0, 1.5))
    # the difference of the logarithms is t with one degree of freedom, in units of √2
    assert equal - apart == pytest.approx(np.log1p((3 / np.sqrt(2)) ** 2))
    assert equal == pytest.approx(
        -1.0
    )  # log(2) − 1 of an exponential density with mean 2, in log σ²


def test_units_do_not_matter():
    X = RNG.normal(size=(40, 3))
    y = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * RNG.normal(size=40)
    units = np.array([1e3, 1e-4, 7.0])
    plain, moved = (tune(a * X, b * y, prior=True, restarts=0) for a, b in ((1, 1), (units, 50)))
    np.testing.assert_allclose(
        moved.kernel.lengthscale / units, plain.kernel.lengthscale, rtol=1e-2
    )
    assert moved.noise / 2500 == pytest.approx(plain.noise, rel=1e-2)


def test_few_samples_of_many_inputs_give_a_better_model():
    errors = np.zeros((2, 2))
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(340, 8))
        y = np.sin(X.sum(axis=1) / 2) + 0.1 * rng.normal(size=340)
        for prior in (False, True):
            tuned = tune(X[:40], y[:40], prior=prior, restarts=1)
            model = pogp.DenseGP(tuned.kernel, tuned.noise)
            model.learn(X[:40], y[:40])
            mean, _ = model.predict(X[40:])
            errors[seed, int(prior)] = pogp.metrics.smse(y[40:], mean, y.var())
    assert (errors[:, 1] < errors[:, 0]).all()


def test_an_input_that_does_not_matter_is_found_to_be_so():
    X = RNG.normal(size=(150, 4))
    y = np.sin(2 * X[:, 0]) + np.cos(X[:, 1]) + 0.05 * RNG.normal(size=150)
    lengthscale = tune(X, y, prior=True).kernel.lengthscale
    assert lengthscale[2:].min() > 5 * lengthscale[:2].max()


def test_a_single_sample_and_a_constant_target_have_finite_answers():
    for X, y in (([[0.0, 1.0]], [2.0]), (RNG.normal(size=(20, 2)), np.full(20, 3.0))):
        tuned = tune(X, y, prior=True)
        assert np.isfinite([tuned.noise, *tuned.kernel.lengthscale, tuned.log_likelihood]).all()
