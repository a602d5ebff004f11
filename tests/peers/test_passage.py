"""What is measured on the way through a stream, and what counts as a failure."""

from collections.abc import Sequence

import numpy as np
import pytest

from benchmarks.peers import simulated
from benchmarks.peers.adapters import Prediction, Setting
from benchmarks.peers.adapters.simple import LastValue, RunningMean
from benchmarks.peers.passage import PeerFailedError, follow, run, scores, times, usefulness
from benchmarks.peers.processes import execute
from benchmarks.workloads import Stream
from experiments.tasks import Task
from pogp.arrays import Array


class Scripted:
    """Predicts what it was told to."""

    def __init__(self, *predictions: Prediction) -> None:
        self._predictions = iter(predictions)
        self.learned: list[float] = []

    def rows(self, X: Array, y: Array) -> Sequence[Array]:
        return list(X)

    def predict(self, row: Array) -> Prediction:
        return next(self._predictions)

    def learn(self, row: Array, y: float) -> None:
        self.learned.append(y)

    def to_bytes(self) -> bytes:
        return b""


def short(*targets: float) -> Stream:
    return Stream(np.zeros((len(targets), 1)), np.array(targets))


def test_each_sample_is_predicted_before_it_is_learned() -> None:
    stream = short(1.0, 2.0, 4.0)
    means, variances, seconds = follow(LastValue(Setting(1, 1)), stream, 10.0)
    assert means.tolist() == [0.0, 1.0, 2.0]
    assert (variances > 0).all()
    assert (seconds >= 0).all()


@pytest.mark.parametrize(
    ("prediction", "reason"),
    [
        ((float("nan"), None), "predicted nan at sample 1"),
        ((0.0, 0.0), "variance 0.0 at sample 1"),
        ((0.0, float("inf")), "variance inf"),
    ],
)
def test_predictions_that_are_not_numbers_are_failures(prediction: Prediction, reason: str) -> None:
    with pytest.raises(PeerFailedError, match=reason):
        follow(Scripted((0.0, 1.0), prediction), short(1.0, 2.0), 10.0)


def test_who_is_too_slow_is_stopped() -> None:
    peer = Scripted((0.0, 1.0), (0.0, 1.0))
    with pytest.raises(PeerFailedError, match="did not end within 0 s of processor time: 1 of 2"):
        follow(peer, short(1.0, 2.0), 0.0)


def test_a_point_has_no_band_and_its_absolute_error_for_crps() -> None:
    y, mean = np.arange(9.0), np.arange(9.0) + 1.0
    found = scores(y, mean, np.full(9, np.nan))
    spread = y[3:].std()
    assert found["smse"] == pytest.approx(1 / spread**2)
    assert found["crps"] == pytest.approx(1 / spread)
    assert found["nlpd"] is None
    assert found["inside"] is None
    sure = scores(y, mean, np.full(9, 4.0))
    assert sure["inside"] == 1.0
    standard = (1 / 4 + np.log(2 * np.pi * 4.0)) / 2 - np.log(spread)
    assert sure["nlpd"] == pytest.approx(standard)


def test_times_are_microseconds() -> None:
    found = times(np.array([1e-6, 1e-6, 1e-6, 5e-6]))
    assert found["median_us"] == pytest.approx(1.0)
    assert found["mean_us"] == pytest.approx(2.0)
    assert found["max_us"] == pytest.approx(5.0)


def test_usefulness_begins_where_the_error_is_half_of_the_running_means() -> None:
    y = np.tile([0.0, 2.0], 100)
    mean = np.where(np.arange(200) < 70, 1.0, y)  # perfect from sample 70 on
    found = usefulness(Stream(np.zeros((200, 1)), y), mean, np.full(200, 0.01), ready=1.0)
    # Half of a window's errors is gone once half of its samples are predicted perfectly.
    assert abs(found["useful_samples"] - 45) <= 2
    assert found["useful_seconds"] == pytest.approx(1 + 0.01 * found["useful_samples"])
    never = usefulness(Stream(np.zeros((200, 1)), y), np.ones(200), np.full(200, 0.01), 1.0)
    assert never["useful_samples"] is None


def test_an_error_of_a_peer_is_recorded_as_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(adapter: RunningMean, row: Array, y: float) -> None:
        raise ArithmeticError("out of numbers")

    monkeypatch.setattr(RunningMean, "learn", breaks)
    result = run(Task("peers", "arm", "mean", 0, {"samples": 60}))
    assert result["failure"] == "ArithmeticError: out of numbers"
    assert result["samples"] == 60


def test_a_run_has_a_process_of_its_own_and_is_recorded_with_all_measures(tmp_path) -> None:
    result, seconds = execute(Task("peers", "arm", "last", 0, {"samples": 60}), tmp_path)
    assert result["samples"] == 60
    assert result["smse"] > 0
    assert result["peak_megabytes"] > 10
    assert result["saved_bytes"] > 10
    assert {"p999_us", "median_us", "useful_samples", "inside", "crps"} <= result.keys()
    assert seconds > 0


def test_a_process_that_dies_is_a_failure(tmp_path) -> None:
    result, _ = execute(Task("peers", "no such stream", "last", 0, {"samples": 60}), tmp_path)
    assert result["failure"].startswith("the process ended with exit code 1")


@pytest.mark.parametrize(
    "make", [simulated.arm, simulated.drifting_sensor, simulated.seasonal_demand]
)
def test_simulated_streams_are_reproducible_and_change(make) -> None:
    one, again = make(600, seed=1), make(600, seed=1)
    assert np.array_equal(one.X, again.X)
    assert np.array_equal(one.y, again.y)
    assert np.isfinite(one.X).all()
    assert one.X.shape[0] == len(one.y) == 600
    assert not np.array_equal(one.y, make(600, seed=2).y)
    mean = RunningMean(Setting(1, 1))
    for y in one.y.tolist():
        mean.learn(one.X[0], y)
    assert mean.mean == pytest.approx(one.y.mean())
    assert mean.variance == pytest.approx(one.y.var())


def test_the_arm_is_still_at_first() -> None:
    stream = simulated.arm(600)
    assert np.abs(stream.X[:90, :2]).max() < 0.05 < np.abs(stream.X[200:, :2]).max()
