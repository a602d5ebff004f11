"""Rows outside the range of the inputs: lines go on, and bands say what is not known."""

import numpy as np
import pytest

import pogp

N = 400


def learned(function, low=-1.7, high=1.7, noise=0.05, inputs=1, **options):
    """Return a model that has learned a function of its first input, and the kept inputs."""
    rng = np.random.default_rng(0)
    X = rng.uniform(low, high, (N, inputs))
    y = function(X[:, 0])
    y = y + noise * np.std(y, axis=0) * rng.normal(size=y.shape)
    model = pogp.OnlineGP(max_size=40, **options)
    model.learn(X, y)
    return model, X


def rest(model):
    twin = model.copy()
    twin.settle()
    return twin


def held(model, X, y, **options):
    """Return the share of targets in the 95 % band."""
    lower, upper = model.interval(X, **options)
    return np.mean((lower < y) & (y < upper))


@pytest.mark.parametrize("far", [8.0, 10.0, 30.0, 1e3, 1e6])
def test_a_straight_line_goes_on(far):
    model, _ = learned(lambda x: 3 + 2 * x)
    for one, options in ((model, {}), (model, {"anywhere": True}), (rest(model), {})):
        for x in (far, -far):
            mean, variance = one.predict([x], **options)
            assert abs(mean - (3 + 2 * x)) < 0.08 * far
            assert abs(mean - (3 + 2 * x)) < 1.96 * np.sqrt(variance)
            assert np.sqrt(variance) < 0.25 * far


def test_the_next_row_is_predicted_as_in_the_trace_while_an_input_leaves_its_range():
    """A line on top of members that use the last target would count the rise twice."""
    rng = np.random.default_rng(4)
    x = np.concatenate([rng.uniform(-1, 1, 300), np.linspace(1, 12, 60)])[:, None]
    y = 3 * x[:, 0] + 0.1 * rng.normal(size=360)
    model, far = pogp.OnlineGP(max_size=30), 0
    model.learn(x[:340], y[:340])
    for i in range(340, 360):
        mean, variance = model.predict(x[i])
        far += bool(model._stream.leading.scales.are_far(x[i]))
        trace = model.learn(x[i], y[i])
        np.testing.assert_allclose([mean, variance], [trace.mean[0], trace.variance[0]])
    assert far > 10


def test_a_line_goes_on_although_a_belief_is_ahead_by_chance():
    """With this seed the group is 1.9 nats ahead in 983 samples."""
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 1, (1000, 1))
    model = pogp.OnlineGP()
    model.learn(X, 3 * X[:, 0] + 0.1 * rng.normal(size=len(X)))
    for anywhere in (False, True):
        mean, variance = model.predict([10.0], anywhere=anywhere)
        assert abs(mean - 30) < 1
        assert (variance > 100) == anywhere  # the doubt remains, but not for the next sample


def test_the_deviation_of_a_line_grows_with_the_distance():
    model, _ = learned(lambda x: 2 * x)
    deviation = np.sqrt(model.predict(np.array([[0.0], [1e2], [1e4], [1e6]]))[1])
    assert (np.diff(deviation) > 0).all()
    assert deviation[3] > 50 * deviation[2]


def test_inputs_beyond_all_numbers_give_finite_predictions():
    model, _ = learned(lambda x: 2 * x)
    for one in (model, rest(model)):
        found = np.array([one.predict([x]) for x in (1e12, -1e99)])
        assert np.isfinite(found).all()
        assert np.isfinite(np.array(one.gradient([1e99]))).all()


@pytest.mark.parametrize("curve", [np.square, lambda x: np.exp(2 * x)])
def test_a_curve_that_becomes_steeper_stays_in_the_band_at_rest(curve):
    model, _ = learned(curve, 0.45, 1.0)
    X = np.array([[0.25], [0.35], [1.05], [1.1], [1.2], [1.3]])
    one = rest(model)
    assert held(one, X, curve(X[:, 0])) == 1.0
    deviation = np.sqrt(one.predict(X)[1])
    assert (np.diff(deviation[2:]) > 0).all()


def test_a_curve_that_is_no_line_does_not_go_on_as_one():
    model, _ = learned(lambda x: np.sin(3 * x))
    found = model._stream.ensemble.predict(np.array([[30.0]]))
    mean, variance = model.predict([30.0])
    assert abs(mean - found.mean[0, 0]) < 1e-9
    assert variance == pytest.approx(found.variance[0, 0])
    with model._stream.anywhere():
        found = model._stream.ensemble.predict(np.array([[30.0]]))
    assert model.predict([30.0], anywhere=True)[1] > found.variance[0, 0]


def test_a_rise_that_may_be_chance_moves_nothing():
    rng = np.random.default_rng(1)
    X, y = rng.uniform(-1, 1, (60, 5)), rng.normal(size=60)
    model = pogp.OnlineGP(max_size=20)
    model.learn(X, y)
    far = np.full((1, 5), 1e4)
    mean, variance = model.predict(far)
    assert np.abs(mean[0]) < 5
    assert variance[0] > 100  # nothing is known there


def test_rows_in_the_range_are_predicted_as_before():
    model, X = learned(np.square, inputs=2)
    one = rest(model)
    stream = one._stream
    expected = stream.past_model.predict(X, stream.ensemble.predict(X))
    np.testing.assert_array_equal(one.predict(X)[0], expected.mean[:, 0])
    np.testing.assert_array_equal(one.predict(X)[1], expected.variance[:, 0])
    near = 2.0 + 0 * X[:3]  # outside the range, and not compressed
    expected = model._stream.ensemble.predict(near)
    np.testing.assert_array_equal(model.predict(near)[1], expected.variance[:, 0])


@pytest.mark.parametrize("at_rest", [False, True])
@pytest.mark.parametrize("linear", [0.0, 0.6, 1.0])
def test_gradients_outside_are_finite_differences(at_rest, linear):
    model, _ = learned(lambda x: np.column_stack([2 * x, x**2]), inputs=2)
    model = rest(model) if at_rest else model
    far = np.array([[9.0, 0.3], [-12.0, 8.0], [0.2, -20.0]])
    model._stream.line(far)._linear = np.full(2, linear)
    assert model._stream.line(far)._linear[0] == linear
    found = np.array(model.gradient(far))
    for i, move in enumerate(1e-5 * np.eye(2)):
        ahead, behind = (np.array(model.predict(far + m, latent=True)) for m in (move, -move))
        expected = (ahead - behind) / 2e-5
        scale = np.abs(found).max(axis=(1, 2), keepdims=True)[:, :, 0]
        np.testing.assert_allclose(found[:, :, i] / scale, expected / scale, atol=1e-4)


def test_predicting_far_away_changes_nothing():
    model, X = learned(lambda x: 2 * x)
    asked, before = model.copy(), model.to_bytes()
    asked.predict([50.0])
    assert asked.to_bytes() == before
    loaded = pogp.from_bytes(before)
    np.testing.assert_array_equal(loaded.predict([50.0]), asked.predict([50.0]))
    y = 2 * X[:50, 0]
    traces = [one.learn(X[:50], y).records for one in (asked, model)]
    np.testing.assert_array_equal(*traces)
    np.testing.assert_array_equal(asked.predict([50.0]), model.predict([50.0]))


def test_a_line_that_is_not_believed_does_not_widen_the_band():
    """In ten weeks the place in the year is nearly a function of the elapsed time."""
    rng, hours = np.random.default_rng(0), np.arange(24 * 98)
    year, day = 2 * np.pi * hours / (24 * 365), 2 * np.pi * hours / 24
    X = np.column_stack([hours, np.sin(year), np.cos(year), np.sin(day), np.cos(day)])
    y = 10 * np.cos(3 * day) + rng.normal(size=len(hours))
    model = pogp.OnlineGP(max_size=40)
    model.learn(X[: 24 * 70], y[: 24 * 70])
    model.settle()
    mean, variance = model.predict(X[24 * 70 :])
    deviation, error = np.sqrt(variance), y[24 * 70 :] - mean
    assert np.mean(np.abs(error) < 1.96 * deviation) > 0.92
    assert np.median(deviation) < 1.3
