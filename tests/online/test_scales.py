"""The units of a stream: constants, tiny, huge and far values."""

import numpy as np
import pytest

from pogp.online.scales import FAR, Scales

from ..conftest import assert_same_state


def samples(unit=1.0, offset=0.0, n=200):
    rng = np.random.default_rng(0)
    return offset + unit * rng.normal(size=(n, 3)), offset + unit * rng.normal(size=(n, 2))


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("offset", [0.0, 5.0])
def test_units_do_not_matter(unit, offset):
    scales = Scales.of(*samples(unit, offset * unit))
    plain = Scales.of(*samples(1.0, offset))
    X, Y = samples()
    np.testing.assert_allclose(scales.inputs(unit * X), plain.inputs(X), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(scales.targets(unit * Y), plain.targets(Y), rtol=1e-6, atol=1e-9)


def test_constant_columns_are_left_out():
    X, Y = samples()
    X[:, 1], Y[:, 0] = 7.3, -0.1
    scales = Scales.of(X, Y)
    assert scales.varying.tolist() == [0, 2]
    assert scales.usable
    assert (scales.inputs(X)[:, 1] == 0).all()
    assert (scales.inputs(X + 5)[:, 1] == 0).all()
    assert scales.unit[0] == 1.0
    np.testing.assert_allclose(scales.targets(Y)[:, 0], 0.0, atol=1e-12)
    np.testing.assert_allclose(scales.user_inputs(scales.inputs(X))[:, 1], 7.3)


def test_rounding_errors_are_not_variation():
    X, Y = samples()
    X[:, 0] = 1e6 + 1e-9 * X[:, 0]
    scales = Scales.of(X, Y)
    assert scales.varying.tolist() == [1, 2]
    X[:, 0] = 1e6 + 1e-8 * np.random.default_rng(1).normal(size=len(X))  # in steps of a hundredth
    assert Scales.of(X, Y).varying.tolist() == [0, 1, 2]


def test_constant_inputs_or_targets_are_not_usable():
    X, Y = samples()
    assert not Scales.of(X, np.ones_like(Y)).usable
    assert not Scales.of(np.ones_like(X), Y).usable


def test_far_inputs_keep_their_order_and_are_invertible():
    scales = Scales.of(*samples())
    far = np.concatenate([-np.logspace(8, -2, 60), [0.0], np.logspace(-2, 8, 60)])
    X = scales.centre + far[:, None] * scales.deviation
    inside = scales.inputs(X)
    assert (np.diff(inside, axis=0) > 0).all()
    near = np.abs(far) < FAR
    np.testing.assert_allclose(inside[near], np.repeat(far[near, None], 3, 1), atol=1e-9)
    assert np.abs(inside).max() < FAR + np.log1p(1e8) + 1e-9
    np.testing.assert_allclose(scales.user_inputs(inside), X, rtol=1e-9, atol=1e-9)


def test_the_compression_is_smooth_at_its_edge():
    scales = Scales(np.zeros(1), np.ones(1), np.zeros(1), np.ones(1))
    step = 1e-6
    around = scales.inputs(np.array([[FAR - step], [FAR], [FAR + step]]))[:, 0]
    np.testing.assert_allclose(np.diff(around), step, rtol=1e-3)


def test_one_row_is_scaled_as_among_many():
    scales = Scales.of(*samples())
    X = 3 * samples()[0]
    np.testing.assert_array_equal([scales.inputs(x) for x in X], scales.inputs(X))


def test_a_restored_state_is_the_same():
    scales = Scales.of(*samples(3.0, 2.0))
    assert_same_state(Scales.restored(scales.state()).state(), scales.state())


def test_scales_are_equal_by_their_numbers():
    rng = np.random.default_rng(0)
    scales = Scales.of(rng.normal(size=(50, 2)), rng.normal(size=(50, 1)))
    assert scales.equals(Scales.restored(scales.state()))
    assert not scales.equals(Scales.of(rng.normal(size=(50, 2)), rng.normal(size=(50, 1))))


def test_inputs_that_are_constant_now_have_their_known_scales():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(50, 3)), rng.normal(size=(50, 1))
    known = Scales.of(X, Y)
    later = X + 5.0
    later[:, 1] = 7.0
    found = Scales.of(later, Y).completed(known)
    assert found.deviation[1] == known.deviation[1]
    assert found.centre[1] == known.centre[1]
    np.testing.assert_array_equal(found.centre[[0, 2]], Scales.of(later, Y).centre[[0, 2]])
    assert Scales.of(X, Y).completed(None).equals(known)
