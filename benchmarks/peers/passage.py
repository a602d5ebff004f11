"""One peer's way through one stream, each sample predicted before it is learned, and measured.

Times are of the processor, of all threads of the process, so that other work on the machine counts
for little. Scores begin after the first samples (`tasks.scored_from`).
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.adapters import Adapter, Setting
from benchmarks.peers.adapters.simple import RunningMean
from benchmarks.peers.registry import PEERS
from benchmarks.peers.tasks import LIMIT, first_slice, scored_from, stream_of
from benchmarks.workloads import Stream
from experiments.tasks import Task
from pogp import metrics
from pogp.arrays import Array

WINDOW = 50
"""Samples over which a prediction is judged useful: at most half the running mean's error."""


class PeerFailedError(Exception):
    """A peer could not be taken to the end of the stream."""


def run(task: Task) -> dict[str, Any]:
    """Take one peer through one stream; a failure is a result as well."""
    peer = PEERS[task.case]
    stream = stream_of(task)
    setting = Setting(stream.X.shape[1], first_slice(len(stream.y)), task.seed)
    about = {"versions": peer.versions, "samples": len(stream.y), "inputs": setting.inputs}
    started = time.process_time()
    try:
        adapter = peer.adapter(setting)
        ready = time.process_time() - started
        predicted = follow(adapter, stream, LIMIT * len(stream.y))
    except PeerFailedError as error:
        return about | {"failure": str(error)}
    except Exception as error:  # whatever a peer raises is its failure, and is reported
        return about | {"failure": f"{type(error).__name__}: {error}"[:300]}
    memory = peak_megabytes()
    return {
        **about,
        **scores(stream.y, *predicted[:2]),
        **times(predicted[2]),
        **usefulness(stream, predicted[0], predicted[2], ready),
        "peak_megabytes": memory,
        "saved_bytes": saved(adapter),
    }


def follow(adapter: Adapter, stream: Stream, limit: float) -> tuple[Array, Array, Array]:
    """Return means, variances (NaN where there are none) and seconds, sample by sample."""
    count, spent = len(stream.y), 0.0
    means, variances, seconds = np.empty(count), np.full(count, np.nan), np.empty(count)
    rows, targets = adapter.rows(stream.X, stream.y), stream.y.tolist()
    for i, (row, y) in enumerate(zip(rows, targets, strict=True)):
        started = time.process_time()
        mean, variance = adapter.predict(row)
        adapter.learn(row, y)
        seconds[i] = time.process_time() - started
        spent += seconds[i]
        if not math.isfinite(mean):
            raise PeerFailedError(f"predicted {mean} at sample {i}")
        if variance is not None and not (math.isfinite(variance) and variance > 0):
            raise PeerFailedError(f"predicted the variance {variance} at sample {i}")
        if spent > limit:
            raise PeerFailedError(
                f"did not end within {limit:.0f} s of processor time: "
                f"{i + 1:,} of {count:,} samples were done"
            )
        means[i], variances[i] = mean, np.nan if variance is None else variance
    return means, variances, seconds


def scores(y: Array, mean: Array, variance: Array) -> dict[str, float | None]:
    """Return the scores, of targets in units of their standard deviation.

    A prediction without a variance is a point: its CRPS is its absolute error, and it has neither
    a log loss nor a band.
    """
    rows = slice(scored_from(len(y)), None)
    spread = float(y[rows].std()) or 1.0
    y, mean, variance = y[rows] / spread, mean[rows] / spread, variance[rows] / spread**2
    error = metrics.smse(y, mean, 1.0)
    if np.isnan(variance).any():
        return {"smse": error, "nlpd": None, "crps": float(np.abs(y - mean).mean()), "inside": None}
    return {
        "smse": error,
        "nlpd": metrics.nlpd(y, mean, variance),
        "crps": metrics.crps(y, mean, variance),
        "inside": metrics.coverage(y, mean, variance),
    }


def times(seconds: Array) -> dict[str, float]:
    """Return microseconds per sample: mean, median, 99.9th percentile and maximum."""
    each = 1e6 * seconds
    return {
        "mean_us": float(each.mean()),
        "median_us": float(np.median(each)),
        "p999_us": float(np.percentile(each, 99.9)),
        "max_us": float(each.max()),
    }


def usefulness(stream: Stream, mean: Array, seconds: Array, ready: float) -> dict[str, Any]:
    """Return when predictions began to be useful: after how many samples and seconds.

    That is the first sample from which the error over 50 samples is at most half of the running
    mean's. Seconds include importing and making the peer.
    """
    simple = RunningMean(Setting(0, 0))
    errors = np.empty(len(stream.y))
    for i, y in enumerate(stream.y.tolist()):
        errors[i] = (y - simple.mean) ** 2
        simple.learn(stream.X[i], y)
    ours, theirs = (
        np.convolve(each, np.ones(WINDOW), "valid") for each in ((stream.y - mean) ** 2, errors)
    )
    useful = ours <= theirs / 2
    if not useful.any():
        return {"useful_samples": None, "useful_seconds": None, "ready_seconds": ready}
    at = int(np.argmax(useful))
    spent = ready + float(seconds[:at].sum())
    return {"useful_samples": at, "useful_seconds": spent, "ready_seconds": ready}


def saved(adapter: Adapter) -> int | None:
    """Return the bytes of the saved model, None if the peer cannot save it."""
    try:
        return len(adapter.to_bytes())
    except Exception:  # not every peer can be saved; the table says so
        return None


def peak_megabytes() -> float | None:
    """Return the most memory the process held; None where the system does not tell.

    (`resource.getrusage` would count what the parent held before this process was its own.)
    """
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM"))
    return int(peak) / 1024
