"""KRLS with the ALD test, the KRLS tracker, and McIntire's rule, against beliefs written out."""

import numpy as np
import pytest

import pogp

from ...conftest import BACKENDS, assert_same_state, rbf, repeated, smooth_1d, smooth_2d
from ...oracle.beliefs import Belief
from ...pairwise import pairwise

NOISE, MEAN = 0.05, 0.3
STREAMS = {
    "1d": (smooth_1d(70), 0.5),
    "2d": (smooth_2d(70, seed=1), 0.6),
    "repeated": (repeated(60, seed=2), 0.4),
}


@pytest.fixture(params=STREAMS)
def stream(request):
    return stream_of(request.param)


def stream_of(name):
    (X, y), lengthscale = STREAMS[name]
    return X, y + MEAN, pogp.RBF(lengthscale, 1.3), rbf(lengthscale, 1.3)


def assert_alike(model, oracle, X, y, **bounds):
    """The same points after every sample, the same predictions before and after it."""
    oracle.learn(X, y, **bounds)
    for i, (x, target) in enumerate(zip(X, y, strict=True)):
        trace = model.learn(x, target)
        assert model.indices.tolist() == oracle.kept[i]
        mean, variance, _, gone = oracle.steps[i]
        assert trace.removed[0] == gone
        assert trace.mean[0] == pytest.approx(mean[0], abs=1e-8)
        assert trace.variance[0] == pytest.approx(variance, abs=1e-8)
    queries = X + 0.05
    means, variances = oracle.predict(queries)
    ours = model.predict(queries)
    np.testing.assert_allclose(ours[0], means[:, 0], atol=1e-8)
    np.testing.assert_allclose(ours[1], variances, atol=1e-8)


# ---- the ALD test


@pytest.mark.parametrize("tolerance", [0.3, 1e-2, 1e-4])
def test_a_nearly_dependent_sample_is_learned_as_a_function_of_the_points(
    backend, stream, tolerance
):
    X, y, kernel, written = stream
    model = pogp.KRLSALD(kernel, NOISE, tolerance, mean=MEAN)
    oracle = Belief(written, NOISE, MEAN, tolerance=tolerance, score="keep")
    assert_alike(model, oracle, X, y)
    assert model.size < len(X)


def test_no_point_is_removed_and_a_region_needs_a_bounded_number(backend):
    X, y = smooth_1d(600)
    model = pogp.KRLSALD(pogp.RBF(0.5), NOISE, 1e-2)
    sizes = model.learn(X, y).size
    assert (np.diff(sizes) >= 0).all()
    assert sizes[-1] < 25
    assert sizes[-1] == sizes[200]


# ---- the tracker


@pytest.mark.parametrize("forgetting", [1.0, 0.97, 0.4])
def test_the_tracker_is_a_belief_that_forgets_and_removes_points(backend, stream, forgetting):
    X, y, kernel, written = stream
    model = pogp.KRLST(kernel, NOISE, 9, forgetting=forgetting, mean=MEAN)
    oracle = Belief(
        written,
        NOISE,
        MEAN,
        tolerance=1e-6,
        project=False,
        reduce=True,
        score="error",
        forgetting=forgetting,
    )
    assert_alike(model, oracle, X, y, max_size=9)
    assert model.size == 9


def test_forgetting_does_not_depend_on_the_batches():
    X, y = smooth_2d(300)
    models = [pogp.KRLST(pogp.RBF(0.6), NOISE, 12, forgetting=0.99) for _ in range(3)]
    models[0].learn(X, y)
    for x, target in zip(X, y, strict=True):
        models[1].learn(x, target)
    for rows in np.split(np.arange(300), [7, 8, 100, 271]):
        models[2].learn(X[rows], y[rows])
    assert_same_state(models[0], models[1])
    assert_same_state(models[0], models[2])


def test_old_samples_are_forgotten_towards_the_prior():
    model = pogp.KRLST(pogp.RBF(0.5), NOISE, 30, forgetting=0.9)
    model.learn(np.zeros((20, 1)), np.full(20, 2.0))
    model.learn(np.full((150, 1), 9.0), np.zeros(150))
    mean, variance = model.predict([0.0], latent=True)
    assert mean == pytest.approx(0.0, abs=2e-3)
    assert variance == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("value", [0.0, -0.5, 1.1, np.nan, "much"])
def test_forgetting_must_be_between_0_and_1(value):
    with pytest.raises(ValueError, match="forgetting"):
        pogp.KRLST(pogp.RBF(), NOISE, 10, forgetting=value)


# ---- McIntire's rule


def right(X):
    """The right half matters, the left a little."""
    return np.where(X[:, 0] > 0, 1.0, 0.02)


@pairwise(
    backend=BACKENDS,
    name=list(STREAMS),
    weight=[None, right],
    bounds=[(1e-12, 9), (0.05, None), (0.5, None), (0.05, 6)],
)
def test_points_are_removed_while_their_weight_is_within_the_threshold(
    backend, name, weight, bounds
):
    (threshold, cap), stream = bounds, stream_of(name)
    X, y, kernel, written = stream
    model = pogp.McIntire(kernel, NOISE, threshold, weight=weight, max_size=cap, mean=MEAN)
    oracle = Belief(written, NOISE, MEAN, tolerance=1e-6, reduce=True, score="csato")
    weights = np.ones(len(X)) if weight is None else weight(X)
    bounds = {"limit": 2 * threshold, "max_size": cap or np.inf, "weights": weights}
    assert_alike(model, oracle, X, y, **bounds)
    assert 1 < model.size < len(X)


def test_without_weights_and_with_a_tiny_threshold_it_is_sogp(backend, stream):
    X, y, kernel, _ = stream
    ours = pogp.McIntire(kernel, NOISE, 1e-14, max_size=8)
    sogp = pogp.SOGP(kernel, NOISE, 8)
    np.testing.assert_allclose(ours.learn(X, y).records, sogp.learn(X, y).records, atol=1e-10)
    np.testing.assert_array_equal(ours.indices, sogp.indices)


def test_points_stay_where_they_matter(backend):
    X, y = smooth_1d(400)
    even, weighted = (pogp.McIntire(pogp.RBF(0.5), NOISE, 0.1, weight=w) for w in (None, right))
    even.learn(X, y)
    weighted.learn(X, y)
    assert abs(np.sum(even.dictionary > 0) - np.sum(even.dictionary < 0)) <= 4
    assert np.sum(weighted.dictionary > 0) >= 2 * np.sum(weighted.dictionary < 0)


def test_a_weight_function_is_left_out_of_the_file_and_supplied_again(tmp_path):
    X, y = smooth_1d(200)
    model, path = pogp.McIntire(pogp.RBF(0.5), NOISE, 0.1, weight=right), tmp_path / "model.pogp"
    model.learn(X[:100], y[:100])
    with pytest.raises(ValueError, match=r"weight.*without_code"):
        model.save(path)
    assert not path.exists()
    model.save(path, without_code=True)
    with pytest.raises(ValueError, match="weight"):
        pogp.load(path)
    again = pogp.load(path, weight=right)
    expected = model.learn(X[100:], y[100:]).records
    np.testing.assert_array_equal(again.learn(X[100:], y[100:]).records, expected)
    assert_same_state(model, again)


@pytest.mark.parametrize(
    "bad",
    [
        lambda X: np.ones((len(X), 1)),
        lambda X: np.ones(len(X) + 1),
        lambda X: 1.0,
        lambda X: np.where(np.arange(len(X)) == len(X) - 1, -1e-9, 1.0),
        lambda X: np.where(np.arange(len(X)) == 3, np.nan, 1.0),
        lambda X: np.full(len(X), np.inf),
    ],
)
def test_weight_none_changes_nothing(backend, bad):
    X, y = smooth_1d(60)
    broken = []
    model = pogp.McIntire(
        pogp.RBF(0.5), NOISE, 0.1, weight=lambda X: bad(X) if broken else np.ones(len(X))
    )
    model.learn(X[:30], y[:30])
    before = model.state()
    broken.append(True)
    with pytest.raises(ValueError, match="weight must return 30 finite numbers"):
        model.learn(X[30:], y[30:])
    assert_same_state(model, before)


@pytest.mark.parametrize("options", [{"threshold": -1.0}, {"tolerance": -1.0}, {"weight": 3.0}])
def test_invalid_arguments_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        pogp.McIntire(pogp.RBF(), NOISE, **{"threshold": 0.1, **options})
