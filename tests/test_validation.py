"""What users pass in: one sample in every form, and what is not a number."""

import numpy as np
import pytest

import pogp

ONLINE = {
    "pog": lambda: pogp.POG(pogp.RBF(), 0.1),
    "absorbing": lambda: pogp.AbsorbingPOG(pogp.RBF(), 0.1),
    "self-tuning": lambda: pogp.SelfTuning(warmup=5),
    "online": pogp.OnlineGP,
}
SEVERAL = [name for name in ONLINE if name != "pog"]


@pytest.mark.parametrize("name", ONLINE)
def test_one_input_may_be_a_number(name):
    numbers, arrays = ONLINE[name](), ONLINE[name]()
    for x in (1.0, 2, np.float64(3.0)):
        trace = numbers.learn(x, np.sin(x))
        np.testing.assert_array_equal(trace.records, arrays.learn([[x]], [np.sin(x)]).records)
    np.testing.assert_array_equal(numbers.predict(1.5), arrays.predict([1.5]))
    two = ONLINE[name]()
    two.learn([1.0, 2.0], 1.0)
    with pytest.raises(ValueError, match=r"X must have shape \(n, p\) with p = 2, or \(p,\)"):
        two.learn(1.0, 1.0)


@pytest.mark.parametrize("name", SEVERAL)
def test_several_outputs_may_begin_with_one_sample(name):
    one, batch = ONLINE[name](), ONLINE[name]()
    for x, y in (([1.0, 2.0], [1.0, 2.0, 3.0]), ([1.5, 2.0], [1.0, 2.5, 3.0])):
        trace = one.learn(x, y)
        np.testing.assert_array_equal(trace.records, batch.learn([x], [y]).records)
    assert one.predict([1.0, 2.0])[0].shape == (3,)
    with pytest.raises(ValueError, match=r"so y must be of shape \(3,\), got shape \(2,\)"):
        one.learn([1.0, 2.0], [1.0, 2.0])


@pytest.mark.parametrize("name", SEVERAL)
def test_a_batch_of_one_input_without_its_axis_is_not_taken_for_one_sample(name):
    model = ONLINE[name]()
    for X in (np.arange(9.0), np.arange(9.0)[None]):
        with pytest.raises(ValueError, match=r"give X and y of shape \(1, 9\) .* \(9, 1\)"):
            model.learn(X, np.arange(9.0))
    assert model.seen == 0


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[1.0, 2.0]], [1.0, 2.0, 3.0]),
        ([1.0, 2.0], [[1.0, 2.0, 3.0]]),
        ([[1.0, 2.0]], [[1.0, 2.0, 3.0]]),
        ([[1.0, 2.0]], [[1.0, 2.0]]),
        ([1.0, 2.0], [[1.0, 2.0]]),
    ],
)
def test_several_outputs_may_begin_with_one_row(name, X, y):
    model = ONLINE[name]()
    model.learn(X, y)
    model.learn([1.0, 2.0], np.ravel(y))
    assert (model.seen, model.predict([[1.0, 2.0]])[0].shape) == (2, (1, np.size(y)))


@pytest.mark.parametrize("value", ["1", b"1", None])
def test_objects_that_are_no_numbers_are_refused(value):
    objects = np.array([[1.0], [value]], dtype=object)
    for make in ONLINE.values():
        model = make()
        for X, y in ((objects, [1.0, 2.0]), ([[1.0], [2.0]], objects[:, 0])):
            with pytest.raises(ValueError, match=r"[Xy] must be"):
                model.learn(X, y)
        assert model.seen == 0


def test_objects_that_are_numbers_are_taken():
    X = np.array([[1], [2.5], [np.float32(3)]], dtype=object)
    assert pogp.POG(pogp.RBF(), 0.1).learn(X, [1.0, 2.0, 3.0]).size[-1] == 3


@pytest.mark.parametrize("name", ONLINE)
def test_transposed_inputs_are_named(name):
    X = np.zeros((20, 3))
    with pytest.raises(ValueError, match=r"X of shape \(3, 20\), got \(20,\); .* as X.T would"):
        ONLINE[name]().learn(X.T, X[:, 0])


def test_targets_that_are_too_small_are_reported():
    X = np.linspace(0.0, 1.0, 30)[:, None]
    with pytest.warns(UserWarning, match="no target is above 1e-200 in size"):
        pogp.OnlineGP().learn(X, 1e-200 * X[:, 0])


@pytest.mark.filterwarnings("ignore:no target is above")
@pytest.mark.parametrize(("inputs", "targets"), [(1e-200, 1.0), (1e-310, 1.0), (1.0, 1e-200)])
def test_streams_of_tiny_numbers_stay_finite(inputs, targets):
    X = np.random.default_rng(0).uniform(-1, 1, (80, 1))
    y = np.sin(3 * X[:, 0])
    model = pogp.OnlineGP(max_size=20)
    trace = model.learn(inputs * X, targets * y)
    assert np.isfinite(trace.records).all()
    assert np.isfinite(model.predict(inputs * X)).all()
    if inputs == 1e-200:  # which a float64 can still scale
        np.testing.assert_allclose(trace.mean[-20:], y[-20:], atol=0.05)


@pytest.mark.parametrize("kernel", [pogp.RBF, pogp.Matern12, pogp.Periodic])
def test_length_scales_that_cannot_be_squared_are_refused(kernel):
    with pytest.raises(ValueError, match="must be at least 1e-205, got 1e-310"):
        kernel(1e-310)
