"""`OnlineGP`: nothing to tune, on streams of every kind."""

import os
import pickle
import signal
import threading
import time
from itertools import cycle, pairwise

import numpy as np
import pytest

import pogp
from pogp import blas
from pogp.models.selftuning.factory import made
from pogp.online import stream as streams
from pogp.online.simple_predictors import NAMES

from ..conftest import assert_same_state, smooth_2d

SIZE = 30


def model(**options):
    return pogp.OnlineGP(**{"max_size": SIZE, **options})


def taught(X, y, **options):
    one = model(**options)
    return one, one.learn(X, y)


def sine(n, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 1))
    return X, np.sin(2 * X[:, 0]) + noise * rng.normal(size=n)


def rms(values):
    return float(np.sqrt(np.mean(np.square(values))))


# ---- the same stream is the same model


N = 620


@pytest.fixture(scope="module")
def stream():
    X, y = smooth_2d(N, seed=1)
    X, y = X * [1.0, 50.0] + [0.0, 1000.0], 100 + 20 * y
    y[[77, 301]] += 400.0
    return X, y


@pytest.fixture(scope="module")
def whole(stream):
    return taught(*stream)


@pytest.fixture(scope="module")
def busy(whole):
    """After how many samples a retuning is under way."""
    tuning = whole[1].tuning
    return np.flatnonzero(tuning[:-1] & tuning[1:]) + 1


@pytest.mark.parametrize("cuts", [range(1, N), (1, 1, 7, 46, 130, 301, 555)], ids=["one", "parts"])
def test_learning_in_pieces_gives_the_same_model(stream, whole, cuts):
    X, y = stream
    expected, trace = whole
    one, records = model(), []
    for rows in np.split(np.arange(N), list(cuts)):
        records.append(one.learn(X[rows], y[rows]).records)
    np.testing.assert_array_equal(np.vstack(records), trace.records)
    assert_same_state(one, expected)


def through_a_file(one, path):
    one.save(path / "m.pogp")
    return pogp.load(path / "m.pogp")


RESUMED = [
    lambda one, path: one.copy(),
    lambda one, path: pickle.loads(pickle.dumps(one)),
    through_a_file,
    lambda one, path: pogp.from_bytes(one.to_bytes()),
]


def test_a_resumed_model_is_the_same(stream, whole, busy, tmp_path):
    """Again and again, by each way in turn, in the middle of retunings and between them."""
    X, y = stream
    expected, _ = whole
    one, under_way, ways = model(), [], cycle(RESUMED)
    amid = busy[np.linspace(0, len(busy) - 1, 12).astype(int)]
    cuts = sorted({0, 1, 2, *amid.tolist(), N})
    for start, stop in pairwise(cuts):
        one.learn(X[start:stop], y[start:stop])
        under_way.append(one._stream.pending is not None)
        one = next(ways)(one, tmp_path)
    assert all(any(under_way[way :: len(RESUMED)]) for way in range(len(RESUMED)))
    assert not all(under_way)
    assert_same_state(one, expected)
    np.testing.assert_array_equal(one.predict(X[:50]), expected.predict(X[:50]))
    assert one.history == expected.history


def test_both_cores_agree(stream, whole, monkeypatch):
    X, y = stream
    monkeypatch.setenv("POGP_BACKEND", "reference")
    trace = model().learn(X[:40], y[:40])
    np.testing.assert_allclose(trace.mean, whole[1].mean[:40], rtol=1e-4)


def test_predictions_equal_those_of_the_trace(stream, whole):
    X, y = stream
    one, predicted = model(), []
    for x, target in zip(X, y, strict=True):
        predicted.append(one.predict(x))
        one.learn(x, target)
    means, variances = np.array(predicted).T
    np.testing.assert_allclose(means, whole[1].mean, rtol=1e-9)
    np.testing.assert_allclose(variances, whole[1].variance, rtol=1e-7)


def test_settling_finishes_the_tuning_in_progress(stream, busy):
    X, y = (each[: busy[len(busy) // 4]] for each in stream)
    one, _ = taught(X, y)
    assert one._stream.pending is not None
    twin = one.copy()
    one.settle()
    assert one._stream.pending is None
    twin.settle()
    assert_same_state(one, twin)
    fitted = model().fit(X, y)
    assert_same_state(fitted, one)
    assert fitted.fit(X, y) is fitted
    assert_same_state(fitted, one)


class Stopped(BaseException):
    """As a handler of a signal may raise it, anywhere."""


def test_rows_from_anywhere_are_predicted_without_the_last_targets():
    rng = np.random.default_rng(0)
    X = np.cumsum(rng.normal(size=(400, 2)), axis=0) / 10
    y = np.sin(X[:, 0]) + X[:, 1] + 0.01 * rng.normal(size=400)
    one = model(max_size=40)
    one.learn(X, y)
    before, state = one.predict(X[:5]), one.to_bytes()
    mean, variance = one.predict(X[:5], anywhere=True)
    low, high = one.interval(X[:5], anywhere=True)
    np.testing.assert_allclose((low + high) / 2, mean)
    move = 1e-5 * np.eye(2)[0]
    ahead, behind = (one.predict(X[:5] + side * move, anywhere=True)[0] for side in (1, -1))
    slope = one.gradient(X[:5], anywhere=True)[0][:, 0]
    np.testing.assert_allclose(slope, (ahead - behind) / 2e-5, rtol=1e-4)
    assert one.to_bytes() == state
    assert not one.resting
    np.testing.assert_array_equal(one.predict(X[:5]), before)
    twin = one.copy()
    twin._stream.ensemble.band.resting = True  # the weights of a stream at rest
    np.testing.assert_array_equal(twin._stream.ensemble.predict(X[:5]).mean[:, 0], mean)
    assert not np.array_equal(before[0], mean)
    one.settle()
    np.testing.assert_array_equal(one.predict(X[:5], anywhere=True), one.predict(X[:5]))
    assert variance.shape == mean.shape == (5,)
    assert model().predict([0.0, 1.0], anywhere=True) == model().predict([0.0, 1.0])


@pytest.mark.parametrize("asked", ["settle", "learn"])
def test_the_stream_continues_without_a_tuning_that_was_interrupted(
    stream, busy, asked, monkeypatch
):
    X, y = stream
    cut = busy[len(busy) // 4]
    one, _ = taught(X[:cut], y[:cut])
    assert one._stream.pending is not None

    def stop(*arguments):
        raise Stopped

    with monkeypatch.context() as patched:
        patched.setattr(streams.PendingTuning, "advance", stop)
        with pytest.raises(Stopped):
            one.settle() if asked == "settle" else one.learn(X[cut], y[cut])
    start = one.seen
    assert start == cut + (asked == "learn")  # the sample itself was learned
    twin = pogp.from_bytes(one.to_bytes())
    for each in (one, twin):
        each.learn(X[start : start + 50], y[start : start + 50])
    assert_same_state(one, twin)


def test_a_tuning_in_progress_is_repeated_with_one_blas_thread(stream, busy, monkeypatch):
    one, _ = taught(*(each[: busy[len(busy) // 4]] for each in stream))
    inside, replay = [], streams.PendingTuning.replay

    def watched(self, *arguments):
        inside.append(blas.one_thread._inside)
        replay(self, *arguments)

    monkeypatch.setattr(streams.PendingTuning, "replay", watched)
    monkeypatch.setattr(blas, "libraries", lambda: (blas.Library(lambda: 1, lambda count: None),))
    one.copy()
    assert inside == [1]


def slow_errors(seed, n=1500):
    """A sine with errors that return: the next one is known to a third of its deviation."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 1))
    errors = np.zeros(n)
    for i in range(1, n):
        errors[i] = 0.95 * errors[i - 1] + np.sqrt(1 - 0.95**2) * 0.3 * rng.normal()
    return X, np.sin(X[:, 0]) + errors


def test_rows_that_do_not_follow_the_last_sample_have_more_variance():
    X, y = slow_errors(0)
    one = model(max_size=50)
    one.learn(X, y)
    rng = np.random.default_rng(1)
    later = rng.uniform(-3, 3, (2000, 1))
    targets = np.sin(later[:, 0]) + 0.3 * rng.normal(size=2000)
    held = []
    for settle in (False, True):
        if settle:
            one.settle()
        mean, variance = one.predict(later)
        held.append(np.mean(np.abs(targets - mean) < 1.96 * np.sqrt(variance)))
    assert held[0] < 0.65  # which is about right for the next row alone
    assert held[1] > 0.78
    np.testing.assert_array_equal(one.copy().predict(later), one.predict(later))


def test_the_last_target_has_no_weight_at_rest():
    rng = np.random.default_rng(0)
    one = model(max_size=20)
    one.learn(rng.normal(size=(300, 2)), np.cumsum(rng.normal(size=300)))
    assert one.weights["last"] + one.weights["linear with lags"] > 0.2
    one.settle()
    assert one.weights["last"] == one.weights["linear with lags"] == 0.0
    assert sum(one.weights.values()) == pytest.approx(1.0)


def test_a_stream_that_continues_after_a_rest_uses_the_last_target_again():
    X, y = slow_errors(0)
    rested, straight = model(max_size=50), model(max_size=50)
    for each in (rested, straight):
        each.learn(X[:900], y[:900])
        each._stream.settle()
        each.learn(X[900:1000], y[900:1000])
    straight.settle()
    rested.settle()
    for each in (rested, straight):
        each.learn(X[1000], y[1000])
    assert_same_state(rested, straight)
    assert rested.predict(X[1001]) != pytest.approx(_settled(rested).predict(X[1001]), rel=1e-3)


def _settled(one):
    twin = one.copy()
    twin.settle()
    return twin


# ---- what it says


def test_several_outputs():
    X, y = sine(300)
    Y = np.column_stack([y, 1e6 - 1e3 * y])
    one, trace = taught(X, Y)
    assert trace.mean.shape == (300, 2)
    assert rms((trace.mean - Y)[150:, 0]) < 0.2
    assert rms((trace.mean - Y)[150:, 1]) < 200
    mean, variance = one.predict(X[:5])
    assert mean.shape == variance.shape == (5, 2)
    assert one.predict(X[0])[0].shape == (2,)
    assert one.covariance(X[:5]).shape == (5, 5, 2)
    assert one.sample(X[:5], 3, seed=0).shape == (3, 5, 2)
    lower, upper = one.interval(X[:5])
    assert lower.shape == (5, 2)
    assert (lower < mean).all()
    assert (mean < upper).all()
    assert_same_state(pickle.loads(pickle.dumps(one)), one)
    column = model()
    column.learn(X, y[:, None])
    np.testing.assert_array_equal(column.predict(X[:5])[0][:, 0], taught(X, y)[0].predict(X[:5])[0])
    with pytest.raises(ValueError, match="y must"):
        one.learn(X, y)


def test_history_weights_and_relevance(whole):
    one, _ = whole
    positions = [event.position for event in one.history]
    assert positions == sorted(positions)
    assert all(event.what and event.why for event in one.history)
    assert any(event.what == "new hyperparameters" for event in one.history)
    weights = one.weights
    assert set(NAMES) <= set(weights)
    assert sum(weights.values()) == pytest.approx(1.0)
    assert min(weights.values()) >= 0
    assert one.relevance.shape == (2,)
    assert (one.relevance > 0).all()
    heavy = max(weights, key=weights.get)
    assert heavy in repr(one)
    assert repr(pogp.OnlineGP()).endswith("nothing learned yet>")
    assert f"seen {N}" in repr(one)
    assert one.size <= SIZE
    assert one.method == "online"
    assert not one.warming_up


def test_the_history_is_bounded(monkeypatch):
    monkeypatch.setattr(streams, "MAX_HISTORY", 3)
    X, y = sine(150)
    one, _ = taught(X, y)
    assert len(one.history) == 3


def test_intervals_are_nested_and_have_the_stated_coverage(stream):
    X, y = sine(900)
    one, _ = taught(X[:600], y[:600])
    inside = {0.5: [], 0.8: [], 0.95: []}
    for start in range(600, 900, 20):
        rows = slice(start, start + 20)
        bands = {level: one.interval(X[rows], level) for level in inside}
        assert (bands[0.5][0] > bands[0.8][0]).all()
        assert (bands[0.8][0] > bands[0.95][0]).all()
        assert (bands[0.5][1] < bands[0.95][1]).all()
        for level, (lower, upper) in bands.items():
            inside[level] += ((lower < y[rows]) & (y[rows] < upper)).tolist()
        one.learn(X[rows], y[rows])
    for level, found in inside.items():
        assert np.mean(found) == pytest.approx(level, abs=0.08)
    lower, upper = one.interval(X[0])
    assert lower < one.predict(X[0])[0] < upper
    for level in (0, 1, -1, np.nan, "wide"):
        with pytest.raises(ValueError, match="level must be"):
            one.interval(X, level)
    lower, upper = model().interval([[0.0]])
    assert lower == pytest.approx(-upper)


def test_memory_is_bounded(stream):
    X, y = stream
    one, sizes = model(), []
    for start in range(0, N, 10):
        one.learn(X[start : start + 10], y[start : start + 10])
        held = [value.nbytes for value in one.state().values() if isinstance(value, np.ndarray)]
        assert one.nbytes >= sum(held) - 4096
        sizes.append(one.nbytes)
    assert max(sizes) < 3_000_000


# ---- refusals


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_size": 0}, "max_size must be a whole number ≥ 1, got 0"),
        ({"max_size": None}, "max_size must be"),
        ({"robust": "yes"}, "robust must be True or False, got 'yes'"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_arguments_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        pogp.OnlineGP(**options)


def test_estimated_hyperparameters_are_not_arguments():
    with pytest.raises(ValueError, match="'online' finds its own kernel, got RBF"):
        made(kernel=pogp.RBF())
    with pytest.raises(ValueError, match=r"'online' finds its own noise, got 0\.1"):
        made(noise=0.1)
    with pytest.raises(ValueError, match="'online' has no option 'budget'"):
        made(budget=0.1)


@pytest.mark.parametrize("bad", ["nan", "shape", "outputs", "text"])
def test_bad_samples_change_nothing(stream, bad):
    X, y = (part[:50].copy() for part in stream)
    one, _ = taught(X, y)
    before = one.state()
    if bad == "nan":
        y[-1] = np.nan
    wrong = {"shape": (X[:, :1], y), "outputs": (X, np.column_stack([y, y])), "text": (X, "text")}
    with pytest.raises(ValueError, match=r"X must|y must|could not"):
        one.learn(*wrong.get(bad, (X, y)))
    assert_same_state(one, before)


def test_damaged_states_are_refused(stream):
    X, y = stream
    one, _ = taught(X[:60], y[:60])
    memory = one.state()
    for change in ({"seen": 59}, {"dimension": 0}, {"target": [0]}):
        with pytest.raises(ValueError, match="must be"):
            model().restore({**memory, **change})


# ---- interrupts, errors and threads


@pytest.mark.parametrize("at", [3, 47, 103])
def test_an_error_in_a_batch_leaves_the_model_unchanged(stream, monkeypatch, at):
    X, y = stream
    one, _ = taught(X[:101], y[:101])
    twin, learn = one.copy(), streams.Stream.learn

    def failing(self, x, target, extra, *weight):
        if self.seen == 101 + at:
            raise RuntimeError("in between")
        return learn(self, x, target, extra, *weight)

    with monkeypatch.context() as patch:
        patch.setattr(streams.Stream, "learn", failing)
        with pytest.raises(RuntimeError, match="in between"):
            one.learn(X[101:300], y[101:300])
        empty = model()
        with pytest.raises(RuntimeError, match="in between"):
            empty.learn(X[:300], y[:300])
    assert empty.seen == 0
    assert empty.state() == {"seen": 0}
    assert one.seen == 101
    assert_same_state(one, twin)
    one.learn(X[101:300], y[101:300])
    twin.learn(X[101:300], y[101:300])
    assert_same_state(one, twin)


def test_an_interrupt_leaves_the_model_unchanged(stream):
    X, y = stream
    one, _ = taught(X[:30], y[:30])
    before = one.state()
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        one.learn(np.tile(X, (20, 1)), np.tile(y, 20))  # a minute of work
    timer.join()
    assert_same_state(one, before)


def test_threads_predict_while_one_learns(stream):
    X, y = stream
    one, _ = taught(X[:40], y[:40])
    wrong, stop = [], threading.Event()

    def predict():
        while not stop.is_set():
            mean, variance = one.predict(X[:7])
            sound = np.isfinite(mean).all() and (variance > 0).all()
            if not sound or sum(one.weights.values()) < 0.999 or "OnlineGP" not in repr(one):
                wrong.append((mean, variance))

    threads = [threading.Thread(target=predict) for _ in range(3)]
    for thread in threads:
        thread.start()
    for start in range(40, 300, 20):
        one.learn(X[start : start + 20], y[start : start + 20])
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong
    assert_same_state(one, taught(X[:300], y[:300])[0])


def test_deleted_models_leave_no_threads(stream):
    X, y = stream
    before = threading.active_count()
    for _ in range(3):
        one, _ = taught(X[:100], y[:100])
        for x, target in zip(X[100:], y[100:], strict=True):
            one.learn(x, target)
            if one._stream.pending is not None:
                break
        assert one._stream.pending is not None
        del one
    deadline = time.monotonic() + 2
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before


# ---- long


def test_the_trace_marks_the_samples_with_tuning():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60, 1))
    model = pogp.OnlineGP()
    tuning = model.learn(X, np.sin(3 * X[:, 0])).tuning
    assert not tuning[:6].any()
    assert tuning[6]  # the first tuning begins after six samples
    assert tuning.sum() < 40
    once = pogp.SelfTuning("absorbing", warmup=20).learn(X, np.sin(3 * X[:, 0])).tuning
    assert np.flatnonzero(once).tolist() == [19]


def test_tuning_never_ends(monkeypatch):
    monkeypatch.setattr("pogp.online.stream.MAX_INTERVAL", 500)
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (2600, 1))
    tuning = pogp.OnlineGP(max_size=10).learn(X, np.sin(2 * X[:, 0])).tuning
    for position in (500, 1000, 1500, 2000, 2500):
        assert tuning[position : position + 100].any()


def test_progress_is_reported_and_an_error_in_it_leaves_the_model_unchanged(caplog):
    X, y = np.linspace(0, 9, 60)[:, None], np.sin(np.linspace(0, 9, 60))
    model, told = pogp.OnlineGP(max_size=10), []
    with caplog.at_level("INFO", logger="pogp.online.stream"):
        model.learn(X, y, progress=lambda *step: told.append(step))
    assert told == [(i, 60) for i in range(1, 61)]
    assert "new hyperparameters" in caplog.text
    assert model.copy().fit(X, y, progress=lambda *_: None).seen == 60

    def stop(learned, _):
        if learned == 30:
            raise RuntimeError("enough")

    before = model.to_bytes()
    with pytest.raises(RuntimeError, match="enough"):
        model.learn(X, y, progress=stop)
    assert model.to_bytes() == before
