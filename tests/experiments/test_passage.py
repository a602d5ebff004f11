import numpy as np
import pytest

import pogp
from experiments import passage
from experiments.methods import METHODS
from experiments.streams import Hyperparameters, Stream
from pogp.evaluation import passage as shared
from pogp.evaluation.scores import Scores


@pytest.fixture(scope="module")
def stream() -> Stream:
    data = pogp.datasets.arm(300, seed=1)
    x, y = data.x_train, data.y_train
    return Stream(
        x[:50], y[:50], x[50:], y[50:], data.x_test[:40], data.y_test[:40], float(y.var())
    )


GIVEN = Hyperparameters(pogp.RBF(2.0, 1.0), 0.05, 0.1)


def test_the_dense_gp_at_all_stops_comes_from_one_factor(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "COLUMNS", 17)
    stops = [1, 77, 250]
    means, variances = shared.dense_predictions(GIVEN, stream, stops)
    for count, found, spread in zip(stops, means, variances, strict=True):
        model = pogp.DenseGP(GIVEN.kernel, GIVEN.noise, mean=GIVEN.mean)
        model.learn(stream.x[:count], stream.y[:count])
        mean, variance = model.predict(stream.x_test)
        np.testing.assert_allclose(found, mean, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(spread, variance, rtol=1e-9)


def test_scores_are_the_mean_of_the_last_hundred_steps(stream: Stream) -> None:
    model = pogp.RandomSubset(GIVEN.kernel, GIVEN.noise, 30, mean=GIVEN.mean)
    twin = model.copy()
    result = passage.online(model, stream, METHODS["random"])
    scores = []
    for i, (x, y) in enumerate(zip(stream.x, stream.y, strict=True)):
        twin.learn(x, y)
        if i >= len(stream.y) - 100:
            mean, variance = twin.predict(stream.x_test)
            scores.append(Scores.of(stream.y_test, mean, variance, stream.train_variance))
    for name in passage.SCORES:
        expected = np.mean([getattr(score, name) for score in scores])
        assert result["test"][name] == pytest.approx(expected, rel=1e-12)
    assert result["size"] == 30
    assert result["curve"]["seen"][-2:] == [200, 250]


def test_a_step_of_many_samples_is_looked_at_when_it_is_whole(stream: Stream) -> None:
    model = METHODS["streaming-vfe"].make(GIVEN, {"size": 20}, 0)
    assert passage.follow(model, GIVEN, stream, METHODS["streaming-vfe"])["curve"]["seen"] == [
        100,
        200,
        250,
    ]


def test_an_offline_model_is_fitted_once(stream: Stream) -> None:
    model = METHODS["spgp"].make(GIVEN, {"size": 10}, 0)
    result = passage.follow(model, GIVEN, stream, METHODS["spgp"])
    mean, _ = model.predict(stream.x_test)
    smse = pogp.metrics.smse(stream.y_test, mean, stream.train_variance)
    assert (result["size"], result["test"]["smse"]) == (10, smse)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_can_be_made(name: str) -> None:
    options = {"size": 12, "budget": 1e-3, "threshold": 0.1, "tolerance": 0.1}
    model = METHODS[name].make(GIVEN, options, 3)
    assert (model.kernel, model.noise) == (GIVEN.kernel, GIVEN.noise)
    assert model.predict([[0.0] * 8])[0] == pytest.approx(GIVEN.mean)


def test_a_rehearsed_model_is_what_is_looked_at(stream: Stream) -> None:
    method = METHODS["absorbing-rehearsed"]
    model = pogp.AbsorbingPOG(GIVEN.kernel, GIVEN.noise, None, max_size=30, mean=GIVEN.mean)
    twin = model.copy()
    result = passage.follow(model, GIVEN, stream, method)
    smse = []
    for i, (x, y) in enumerate(zip(stream.x, stream.y, strict=True)):
        twin.learn(x, y)
        if i >= len(stream.y) - 100:
            mean, _ = twin.rehearsed().predict(stream.x_test)
            smse.append(pogp.metrics.smse(stream.y_test, mean, stream.train_variance))
    assert result["test"]["smse"] == pytest.approx(np.mean(smse), rel=1e-9)
