"""The paper's setting on its own data: what was published, and Algorithm 2 as it is written."""

import numpy as np
import pytest

import pogp

TUNING = 300


def load(name):
    try:
        return pogp.datasets.load(name)
    except pogp.datasets.DataUnavailable:
        pytest.skip(f"{name} is not at hand; see POGP_DATA")


@pytest.fixture(scope="module")
def kin40():
    return load("kin40")


@pytest.fixture(scope="module")
def tuned(kin40):
    return pogp.tune(
        kin40.x_train[:TUNING], kin40.y_train[:TUNING], mean=kin40.y_train[:TUNING].mean()
    )


def run(data, tuned, order, **options):
    """Return the model order and the test SMSE at the end of the stream."""
    mean = data.y_train[:TUNING].mean()
    model = pogp.POG(tuned.kernel, tuned.noise, 1e-5, mean=mean, **options)
    model.learn(data.x_train[order], data.y_train[order])
    predicted, _ = model.predict(data.x_test)
    return model.size, pogp.metrics.smse(data.y_test, predicted, data.y_train.var())


def orders(data, count):
    rest = np.arange(TUNING, len(data.y_train))
    return [rest, *(np.random.default_rng(seed).permutation(rest) for seed in range(count - 1))]


def test_one_removal_per_sample_gives_the_published_figures(kin40, tuned):
    sizes, errors = zip(
        *(run(kin40, tuned, order, max_removals=1) for order in orders(kin40, 2)), strict=True
    )
    assert 380 <= np.mean(sizes) <= 415  # published: 392
    assert 0.15 <= np.mean(errors) <= 0.20  # published: .1943


def test_as_written_the_algorithm_forgets_more(kin40, tuned):
    sizes, errors = zip(*(run(kin40, tuned, order) for order in orders(kin40, 4)), strict=True)
    assert 105 <= np.mean(sizes) <= 135
    assert 0.30 <= np.mean(errors) <= 0.42


# ---- beyond the paper: figures that AbsorbingPOG must reach


def absorb(data, first, size, order=None, samples=None, seed=0, **options):
    """Tune on the first samples, learn the rest; return the model and what it says of the test."""
    X, y = data.x_train, data.y_train
    if order is not None:
        shuffled = np.random.default_rng(order).permutation(len(y))
        X, y = X[shuffled], y[shuffled]
    mean = y[:first].mean()
    tuned = pogp.tune(X[:first], y[:first], mean=mean, seed=seed)
    model = pogp.AbsorbingPOG(tuned.kernel, tuned.noise, None, max_size=size, mean=mean, **options)
    rest = slice(first, None if samples is None else first + samples)
    model.learn(X[rest], y[rest])
    return model, model.predict(data.x_test)


def smse(data, prediction):
    return pogp.metrics.smse(data.y_test, prediction[0], data.y_train.var())


def test_on_kin40_absorbing_is_well_below_what_was_published(kin40):
    """And rehearsed models are better still."""
    models = [absorb(kin40, 300, 392, order)[0] for order in range(2)]
    errors = [smse(kin40, model.predict(kin40.x_test)) for model in models]
    assert np.mean(errors) <= 0.12  # measured .109 ± .003 in seven orders; POG .194, SPGP .139
    errors = [smse(kin40, model.rehearsed().predict(kin40.x_test)) for model in models]
    assert np.mean(errors) <= 0.102


def test_on_abalone_fifty_points_are_as_good_as_all():
    data = load("abalone")
    model, prediction = absorb(data, 150, 50)
    dense = pogp.DenseGP(model.kernel, model.noise, mean=model.mean)
    dense.learn(data.x_train[150:], data.y_train[150:])
    assert smse(data, prediction) <= 1.01 * smse(data, dense.predict(data.x_test))


def test_on_boston_seven_orders_are_better_than_what_was_published():
    data = load("boston")
    errors = [smse(data, absorb(data, 50, 83, order, seed=order)[1]) for order in range(7)]
    assert np.mean(errors) <= 0.20  # published: .259


def test_on_kin40k_it_is_accurate_and_calibrated():
    data = load("kin40k")
    _, (mean, variance) = absorb(data, 300, 300, samples=15_000, calibrate=True)
    assert smse(data, (mean,)) <= 0.092
    assert pogp.metrics.nlpd(data.y_test, mean, variance) <= 0.28
    assert 0.93 <= pogp.metrics.coverage(data.y_test, mean, variance) <= 0.97


@pytest.mark.parametrize(
    ("name", "first", "size", "calibrate"),
    [("boston", 50, 83, False), ("abalone", 150, 50, True), ("kin40", 300, 200, True)],
)
def test_retuning_does_no_harm(name, first, size, calibrate):
    data = load(name)
    model, before = absorb(data, first, size, calibrate=calibrate)
    model.retune()
    after = model.predict(data.x_test)
    scores = [pogp.metrics.nlpd(data.y_test, *prediction) for prediction in (before, after)]
    assert scores[1] <= scores[0] + 0.02


def test_sogp_reaches_what_it_should(kin40):
    tuned = pogp.tune(kin40.x_train[:TUNING], kin40.y_train[:TUNING])
    model = pogp.SOGP(tuned.kernel, tuned.noise, 392)
    model.learn(kin40.x_train[TUNING:], kin40.y_train[TUNING:])
    assert smse(kin40, model.predict(kin40.x_test)) <= 0.105
