"""The band of a stream at rest."""

import numpy as np
import pytest

import pogp
from pogp.online.band_at_rest import STORED, BandParameters, StoredErrors, fit_parameters


def samples(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.standard_t(4, n)


def share_inside(found, error, variance, extra):
    total = found.calibrated(variance) + extra * np.exp(2 * found.extra_shift)
    return np.mean(np.abs(error) < 1.96 * np.sqrt(total), axis=0)


def test_factors_are_found_for_each_output_and_each_part_of_the_variance():
    rng = np.random.default_rng(1)
    n = 20000
    variance, extra = np.exp(rng.normal(size=(2, n, 2)))
    extra[rng.random(n) < 0.5] = 0.0
    true = variance * np.array([4.0, 0.25]) + extra * 9.0
    error = np.sqrt(true) * rng.normal(size=(n, 2))
    parameters = fit_parameters(error, variance, extra)
    np.testing.assert_allclose(parameters.shift, 0.5 * np.log([4.0, 0.25]), atol=0.06)
    np.testing.assert_allclose(parameters.tilt, 0.0, atol=0.06)
    np.testing.assert_allclose(parameters.extra_shift, 0.5 * np.log(9.0), atol=0.08)
    complete = extra[:, 0] == 0
    for rows in (complete, ~complete):
        held = share_inside(parameters, error[rows], variance[rows], extra[rows])
        np.testing.assert_allclose(held, 0.95, atol=0.01)


def test_small_and_large_variances_have_factors_of_their_own():
    rng = np.random.default_rng(2)
    variance = np.exp(rng.normal(size=(20000, 1)))
    error = variance**0.25 * rng.normal(size=variance.shape)
    parameters = fit_parameters(error, variance, np.zeros_like(variance))
    for rows in (variance < 0.5, variance > 2.0):
        held = share_inside(parameters, error[rows], variance[rows], 0.0)
        np.testing.assert_allclose(held, 0.95, atol=0.02)


@pytest.mark.parametrize("shift", [-0.5, 0.5])
@pytest.mark.parametrize("tilt", [-1.0, -0.05, 0.0, 0.03, 1.0])
def test_variances_beyond_those_of_the_stream_are_not_reduced(shift, tilt):
    along = BandParameters(*(np.array([each]) for each in (shift, tilt, 0.0, 1.0, 0.2)))
    rest = along.at_rest()
    variance = np.exp(np.linspace(-3, 8, 500))[:, None]
    calibrated = rest.calibrated(variance)
    steps = np.diff(calibrated[:, 0])
    assert steps.min() > -1e-12
    beyond = variance[:-1, 0] > np.exp(1.0 + 3 * 0.2)
    assert (steps[beyond] > (1 - 1e-9) * np.diff(variance[:, 0])[beyond]).all()
    usual = np.abs(np.log(variance) - 1.0) < 3 * 0.2
    if tilt >= -0.1:  # half of the spread
        np.testing.assert_allclose(calibrated[usual], along.calibrated(variance)[usual])
    step = 1e-6 * variance
    slope = (rest.calibrated(variance + step) - rest.calibrated(variance - step)) / (2 * step)
    same, exact = rest.calibrated_slope(variance)
    np.testing.assert_array_equal(same, calibrated)
    np.testing.assert_allclose(exact, slope, rtol=1e-6, atol=1e-8)


def test_the_band_outside_the_inputs_of_a_stream_is_not_narrower_than_inside():
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 1, (1500, 2))
    X[:, 0] = 0.45 + 0.55 * np.abs((0.05 * np.cumsum(rng.normal(size=1500))) % 2 - 1)
    f = np.exp(2 * X[:, 0]) + np.sin(4 * X[:, 1])
    one = pogp.OnlineGP(max_size=60)
    one.learn(X, f + 0.1 * f.std() * rng.normal(size=1500))
    one._stream.ensemble.band.averages[1] = -0.2  # as chance has it, where variances hardly differ
    asked = np.column_stack([np.repeat([0.7, 0.4, 0.3, 0.2], 50), np.tile(np.arange(50) / 50, 4)])
    lower, upper = one.interval(asked, anywhere=True)
    widths = np.median((upper - lower).reshape(4, 50), axis=1)
    assert np.diff(widths)[0] > -1e-9
    assert (np.diff(widths)[1:] > 0.1).all()


def test_few_samples_change_little():
    error = np.array([[5.0], [0.1]])
    assert abs(fit_parameters(error, np.ones((2, 1))).shift[0]) < 0.2
    many = fit_parameters(np.tile(error, (500, 1)), np.ones((1000, 1)))
    assert many.shift[0] > 0.5


def test_errors_are_those_of_the_latest_samples():
    errors = StoredErrors(2)
    for i in range(STORED + 7):
        errors.next_row()[...] = i
    np.testing.assert_array_equal(errors.all()[:, 0, 0], np.arange(7, STORED + 7))
    again = StoredErrors(2)
    again.restore(errors.state())
    np.testing.assert_array_equal(again.all(), errors.all())
    again.next_row()[...] = -1.0
    assert again.all()[-1, 0, 0] == -1.0


def test_errors_of_the_wrong_shape_are_refused():
    with pytest.raises(ValueError, match="errors must have shape"):
        StoredErrors(1).restore({"errors": np.zeros((3, 7, 2)), "error_count": 3})


def test_noted_errors_are_those_of_predictions_without_the_last_residual():
    X, y = samples(700)
    one = pogp.OnlineGP(max_size=30)
    one.learn(X[:600], y[:600])
    stream = one._stream.ensemble
    start = stream.parts[1 + stream.groups.index(stream.leading)].start
    means, variances, shares = stream.predict_members(X[600:601])
    one.learn(X[600:601], y[600:601])
    row = stream.band.errors.all()[-1, :, 0]
    np.testing.assert_allclose(row[:4], y[600] - means[[0, 2, start, start + 1], 0, 0])
    latent = (shares * variances[:, :, 0])[[start, start + 1], 0]
    np.testing.assert_allclose(row[4:6], latent, rtol=1e-6)
    assert row[6] == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_bands_at_rest_hold_on_a_table_without_order(seed):
    X, y = samples(4000, seed)
    one = pogp.OnlineGP(max_size=30, seed=seed).fit(X[:1500], y[:1500])
    lower, upper = one.interval(X[1500:])
    assert 0.925 < np.mean((lower < y[1500:]) & (y[1500:] < upper)) < 0.975


def test_a_loaded_stream_at_rest_has_the_same_band(tmp_path):
    X, y = samples(400)
    one = pogp.OnlineGP(max_size=30).fit(X, y)
    one.save(tmp_path / "model.npz")
    for found, same in zip(
        one.predict(X), pogp.load(tmp_path / "model.npz").predict(X), strict=True
    ):
        np.testing.assert_array_equal(found, same)
    one.learn(X[:1], y[:1])
    assert one._stream.ensemble.band.at_rest is None


def test_the_band_at_rest_is_as_wide_as_a_drift_has_shown():
    rng = np.random.default_rng(3)
    n = 2000
    X = rng.uniform(-2, 2, (n, 1))
    slope = 3.0 * np.sin(np.arange(n) / 150.0)
    y = slope * X[:, 0] + 0.1 * rng.normal(size=n)
    one = pogp.OnlineGP(max_size=30).fit(X, y)
    found = one._stream.ensemble.predict(X)
    inside = np.abs(y - found.mean[:, 0]) < 1.96 * np.sqrt(found.variance[:, 0])
    assert inside.mean() > 0.9
    still = pogp.OnlineGP(max_size=30).fit(X, 3.0 * X[:, 0] + 0.1 * rng.normal(size=n))
    assert still._stream.ensemble.predict(X).variance.max() < 0.02
