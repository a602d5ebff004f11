"""Streams at rest: rows of the past and future rows."""

import numpy as np
import pytest

import pogp
from pogp.online import past_model
from pogp.online import stream as streams
from pogp.online.group import Group
from pogp.sklearn import POGRegressor

from ..conftest import assert_same_state

N = 900


def wandering(n=N, seed=0):
    """A stream whose input moves on and whose function changes with it; every tenth row held."""
    rng = np.random.default_rng(seed)
    place = np.linspace(0.0, 90.0, n)
    X = np.column_stack([place, np.cos(3 * place)]) + 0.01 * rng.normal(size=(n, 2))
    y = np.sin(place) * (1 + place / 10) + X[:, 1] + 0.05 * rng.normal(size=n)
    held = np.arange(n) % 10 == 4
    return X, y, held


def shuffled(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    return X, np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=n)


def model(**options):
    return pogp.OnlineGP(**{"max_size": 40, **options})


@pytest.fixture(scope="module")
def settled():
    X, y, held = wandering()
    one = model()
    one.learn(X[~held][:700], y[~held][:700])
    one.settle()
    return one


def error(one, X, y):
    mean, variance = one.predict(X)
    return np.mean((mean - y) ** 2), np.mean(np.abs(mean - y) < 1.96 * np.sqrt(variance))


def test_rows_of_the_past_are_predicted_by_the_past_model(settled):
    X, y, held = wandering()
    past = held & (X[:, 0] < X[~held][699, 0])
    mixture = settled._stream.ensemble.predict(X[past])
    found, inside = error(settled, X[past], y[past])
    assert found < 0.2 * np.mean((mixture.mean[:, 0] - y[past]) ** 2)
    assert found < 0.05
    assert inside > 0.9


def test_future_rows_are_predicted_by_the_mixture(settled):
    X, _, held = wandering()
    ahead = X[~held][720:]
    mixture = settled._stream.ensemble.predict(ahead)
    mean, variance = settled.predict(ahead)
    deviation = np.sqrt(mixture.variance[:, 0])
    assert (np.abs(mean - mixture.mean[:, 0]) < 0.2 * deviation).all()
    assert (variance > 0.5 * deviation**2).all()


def test_predictions_of_a_table_without_order_hardly_change():
    X, y = shuffled()
    one = model().fit(X[:700], y[:700])
    mixture = one._stream.ensemble.predict(X[700:])
    mean, variance = one.predict(X[700:])
    noise = np.sqrt(mixture.variance[:, 0])
    assert (np.abs(mean - mixture.mean[:, 0]) < 0.5 * noise).all()
    np.testing.assert_allclose(variance, mixture.variance[:, 0], rtol=0.5)
    assert error(one, X[700:], y[700:])[0] < 1.02 * np.mean((mixture.mean[:, 0] - y[700:]) ** 2)


def test_the_regressor_predicts_all_of_an_ordered_table():
    X, y, held = wandering()
    regressor = POGRegressor(max_size=60).fit(X[~held], y[~held])
    assert regressor.score(X[held], y[held]) > 0.98


def test_predictions_at_rest_do_not_change_the_stream():
    X, y = shuffled(300)
    asked, silent = model(), model()
    for one in (asked, silent):
        one.learn(X[:200], y[:200])
        one.settle()
    before = asked.to_bytes()
    asked.predict(X[:5])
    assert asked._stream.past_model is not None
    assert asked.to_bytes() == before
    traces = [one.learn(X[200:], y[200:]).records for one in (asked, silent)]
    np.testing.assert_array_equal(*traces)
    assert_same_state(asked, silent)
    assert asked._stream.past_model is None
    np.testing.assert_array_equal(asked.predict(X[:5]), silent.predict(X[:5]))


def test_a_loaded_model_makes_the_same_past_model_when_it_first_predicts(settled, monkeypatch):
    X, _, _ = wandering()
    asked = []
    monkeypatch.setattr(streams, "past_model", lambda stream: asked.append(stream))
    pogp.from_bytes(settled.to_bytes())
    assert asked == []
    monkeypatch.undo()
    loaded = pogp.from_bytes(settled.to_bytes())
    np.testing.assert_array_equal(loaded.predict(X[::7]), settled.predict(X[::7]))
    assert_same_state(loaded, settled)
    twin = settled.copy()
    np.testing.assert_array_equal(twin.gradient(X[::70]), settled.gradient(X[::70]))


def test_fit_equals_learning_in_parts_and_settling():
    X, y, _ = wandering(200)
    fitted, parts = model(), model()
    fitted.fit(X, y)
    for rows in np.split(np.arange(200), (3, 50, 51)):
        parts.learn(X[rows], y[rows])
    parts.settle()
    np.testing.assert_array_equal(parts.interval(X), fitted.interval(X))


@pytest.mark.parametrize("outputs", [None, 2])
@pytest.mark.parametrize("count", [20, 150])
def test_gradients_at_rest_are_finite_differences(count, outputs):
    X, y, _ = wandering(count)
    one = model(max_size=30).fit(X, y if outputs is None else np.column_stack([y, y**2]))
    one._stream.past_model.better[:] = 0.7  # both cases count
    at = X[:12] + 0.013
    found = np.array(one.gradient(at))
    for i, move in enumerate(1e-6 * np.eye(2)):
        ahead, behind = (np.array(one.predict(at + m, latent=True)) for m in (move, -move))
        expected = (ahead - behind) / 2e-6
        scale = np.abs(expected).max(axis=1, keepdims=True)
        np.testing.assert_allclose(found[:, :, i] / scale, expected / scale, atol=1e-3)


def test_several_outputs():
    X, y, held = wandering()
    Y = np.column_stack([y, 1000 - 50 * X[:, 1]])
    one = model().fit(X[~held], Y[~held])
    assert one._stream.past_model.better.shape == (2,)
    mixture, (mean, variance) = one._stream.ensemble.predict(X[held]), one.predict(X[held])
    errors, before = (np.mean((each - Y[held]) ** 2, axis=0) for each in (mean, mixture.mean))
    assert errors[0] < 0.5 * before[0]
    assert errors[1] < 1.01 * before[1]  # each output has its own weight
    assert variance.shape == Y[held].shape


def test_missing_values_add_variance(settled):
    X, y, held = wandering()
    row = X[held][10]
    points = row + np.random.default_rng(0).normal(size=(20, 2)) * [0.5, 0.0]
    mean, variance = settled.predict(row[None], around=[points])
    plain = settled.predict(row[None])
    assert variance[0] > plain[1][0]
    assert abs(mean[0] - y[held][10]) < 3 * np.sqrt(variance[0])


def test_samples_of_low_weight_are_scored_with_their_own_noise():
    X, y = shuffled(400)
    rng = np.random.default_rng(1)
    poor = rng.random(400) < 0.3
    y = y + np.where(poor, 3.0, 0.0) * rng.normal(size=400)
    one = model()
    one.learn(X, y, np.where(poor, 1e-3, 1.0))
    one.settle()
    samples = one._stream.samples.all()
    gains = past_model._log_densities(samples, one._stream.ensemble.predict(samples.X))
    assert gains[poor].mean() > gains[~poor].mean() - 5.0
    assert (one._stream.past_model.group.noise_factor < 10.0).all()


@pytest.mark.parametrize("kind", ["few", "constant target", "constant input"])
def test_there_is_no_past_model_for_few_or_constant_samples(kind):
    count = 8 if kind == "few" else 60
    X, y = shuffled(count)
    X = np.ones_like(X) if kind == "constant input" else X
    y = np.full(count, 20.0) if kind == "constant target" else y
    one = model().fit(X, y)
    assert one._stream.past_model is None
    assert np.isfinite(one.predict(X)).all()


def test_after_rounding_errors_the_mixture_predicts(monkeypatch):
    X, y = shuffled(100)
    one = model().fit(X, y)

    def learn(self, samples, scored=False):
        raise FloatingPointError("rounding")
        yield

    monkeypatch.setattr(Group, "learn", learn)
    np.testing.assert_array_equal(one.predict(X)[0], one._stream.ensemble.predict(X).mean[:, 0])


def test_both_cores_agree(monkeypatch):
    X, y, _ = wandering(80)
    found = []
    for backend in ("compiled", "reference"):
        monkeypatch.setenv("POGP_BACKEND", backend)
        found.append(np.array(model(max_size=15).fit(X, y).predict(X)))
    np.testing.assert_allclose(found[0], found[1], rtol=0.05, atol=0.01)
