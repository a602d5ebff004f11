"""What a model predicts: its prior before it has learned, and valid distributions always."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from pogp.checks._kit import (
    ROUNDING,
    SAMPLES,
    Make,
    check,
    queries,
    require,
    require_close,
    require_equal,
    require_same_state,
    require_sound,
    retains_samples,
    stream,
    trained,
)


@check()
def an_empty_model_holds_nothing(make: Make) -> None:
    """Check that size and seen are 0, and that arrays are empty but have their axes."""
    model = make()
    require_equal("size", model.size, 0)
    require_equal("seen", model.seen, 0)
    require_equal("the axes of the dictionary", np.ndim(model.dictionary), 2)
    require_equal("the points of the dictionary", len(model.dictionary), 0)
    require_equal("the shape of indices", np.shape(model.indices), (0,))
    if retains_samples(model):
        require_equal("the shape of targets", np.shape(model.targets), (0,))


@check()
def an_empty_model_predicts_the_prior(make: Make) -> None:
    """Check the mean and the covariance, with the noise and without."""
    model = make()
    X = queries(model)
    K, noise = model.kernel(X), model.noise
    mean, variance = model.predict(X)
    require_close("mean", mean, np.full(len(X), getattr(model, "mean", 0.0)))
    require_close("variance", variance, np.diagonal(K) + noise)
    require_close("latent variance", model.predict(X, latent=True)[1], np.diagonal(K))
    require_close("covariance", model.covariance(X), K + noise * np.eye(len(X)))
    require_close("latent covariance", model.covariance(X, latent=True), K)
    require_equal("the shape of three draws", model.sample(X, 3, seed=0).shape, (3, len(X)))


@check()
def predictions_are_finite_and_variances_positive(make: Make) -> None:
    """Check also that latent variances are at most those of y, from the first sample on."""
    for count in (0, 1, 2, SAMPLES):
        require_sound(trained(make, count) if count else make(), f"after {count} samples")


@check()
def one_query_gets_two_numbers_and_many_get_arrays(make: Make) -> None:
    """Check also that a query alone is answered as among others, and no queries."""
    model = trained(make)
    X = queries(model)
    together = np.array(model.predict(X))
    require_equal("the shape of mean and variance", together.shape, (2, len(X)))
    require_close("answers one by one", [model.predict(x) for x in X], together.T)
    nowhere = X[:0]
    require_equal("the shape of no answers", np.shape(model.predict(nowhere)), (2, 0))
    require_equal("the shape of no covariance", model.covariance(nowhere).shape, (0, 0))


@check()
def the_covariance_is_one_and_has_the_variances_on_its_diagonal(make: Make) -> None:
    """Check symmetry and eigenvalues to rounding, with the noise and without."""
    model = trained(make)
    X = queries(model)
    for latent in (False, True):
        kind = "latent covariance" if latent else "covariance"
        C, variance = model.covariance(X, latent), model.predict(X, latent)[1]
        require_equal(f"the shape of the {kind}", C.shape, (len(X), len(X)))
        require_close(f"{kind}, its diagonal", np.diagonal(C), variance)
        require_close(f"{kind}, its transpose", C.T, C)
        values = np.linalg.eigvalsh(C)
        least = -ROUNDING * values[-1]
        require(values[0] >= least, f"{kind}, eigenvalues of at least {least:g}", values[0])


@check()
def draws_depend_on_the_seed_alone(make: Make) -> None:
    """Check that the same seed gives the same draws, and another seed gives others."""
    model = trained(make)
    X = queries(model)
    draws = model.sample(X, 4, seed=1)
    require_equal("the shape of four draws", draws.shape, (4, len(X)))
    require_equal("draws of the same seed", model.sample(X, 4, seed=1), draws)
    require_equal("draws of a generator", model.sample(X, 4, seed=np.random.default_rng(1)), draws)
    require((model.sample(X, 4, seed=2) != draws).all(), "other draws of another seed", draws)


@check()
def draws_are_distributed_as_predicted(make: Make) -> None:
    """Check means within six standard errors, and covariances within a tenth."""
    model, n = trained(make), 4000
    X = queries(model)[-3:]
    draws = model.sample(X, n, seed=3)
    mean, C = model.predict(X)[0], model.covariance(X)
    scale = np.sqrt(np.diagonal(C))
    away = (draws.mean(axis=0) - mean) / scale * np.sqrt(n)
    require((np.abs(away) < 6).all(), "means of draws within 6 standard errors", away)
    away = (np.cov(draws.T) - C) / np.outer(scale, scale)
    require((np.abs(away) < 0.1).all(), "a covariance of draws within 0.1", away)


@check()
def predicting_changes_nothing(make: Make) -> None:
    """Check the state and the next prediction."""
    model = trained(make)
    X = queries(model)
    before, answer = model.state(), model.predict(X)
    model.predict(X, latent=True)
    model.covariance(X)
    model.sample(X, 2, seed=0)
    require_same_state("after predictions", model, before)
    require_equal("the same prediction again", model.predict(X), answer)


@check()
def many_threads_predict_what_one_does(make: Make) -> None:
    """Check predictions of several threads while no thread learns."""
    model = trained(make)
    parts = np.split(stream(model)[0], 16)
    expected = [model.predict(part) for part in parts]
    with ThreadPoolExecutor(4) as pool:
        require_equal("predictions", list(pool.map(model.predict, parts)), expected)
