"""One model's way through a stream, scored on the test set as the paper does it.

"After every training sample evaluate on the whole test set; report the mean of the last 100 steps":
the last steps are all looked at, those before at about sixty places. Times are of the processor,
which other work on the machine does not lengthen.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any, cast

import numpy as np
from scipy.linalg import cholesky, solve_triangular

import pogp
from experiments.methods import Method
from experiments.streams import Hyperparameters, Stream
from pogp.arrays import Array
from pogp.models.base import Model, OnlineModel
from pogp.models.baselines.pseudo_inputs import PseudoInputModel
from pogp.report.record import Scores

LAST = 100
"""Steps at the end over which scores are averaged."""
PLACES = 60
"""Places before them where a curve is evaluated."""
SCORES = ("smse", "msll", "nlpd", "coverage")


def online(model: OnlineModel, stream: Stream, method: Method) -> dict[str, Any]:
    """Stream the samples through a model, step by step or more where nothing is looked at."""
    curve = _Curve()
    seconds, timed = 0.0, [0.0, 0]
    for stop in places(len(stream.y), method.batch):
        rows = slice(model.seen, stop)
        started = time.process_time()
        trace = model.learn(stream.x[rows], stream.y[rows])
        took = time.process_time() - started
        seconds += took
        if stop - rows.start > 1:  # single calls would time Python, not the method
            timed = [timed[0] + took, timed[1] + stop - rows.start]
        seen = cast(pogp.AbsorbingPOG, model).rehearsed() if method.rehearsed else model
        mean, variance = seen.predict(stream.x_test)
        scores = Scores.of(stream.y_test, mean, variance, stream.train_variance)
        curve.add(stop, model.size, scores, float(np.mean(trace.change)))
    return curve.result() | {"seconds": seconds, "microseconds": 1e6 * timed[0] / timed[1]}


def offline(model: PseudoInputModel, stream: Stream) -> dict[str, Any]:
    """Fit a model to all samples at once and score it."""
    started = time.process_time()
    model.fit(stream.x, stream.y)
    seconds = time.process_time() - started
    mean, variance = model.predict(stream.x_test)
    scores = Scores.of(stream.y_test, mean, variance, stream.train_variance)
    return {"size": model.size, "test": asdict(scores), "seconds": seconds}


def dense(model: OnlineModel, given: Hyperparameters, stream: Stream) -> dict[str, Any]:
    """Stream the samples through the dense GP; its scores at all places come from one factor.

    The leading block of a Cholesky factor is the factor of the first samples, so that the means
    and variances after each sample are running sums.
    """
    started = time.process_time()
    trace = model.learn(stream.x, stream.y)
    seconds = time.process_time() - started
    curve, before = _Curve(), 0
    running = running_predictions(given, stream)
    for stop in places(len(stream.y), 1):
        mean, variance = (moments[stop] for moments in running)
        scores = Scores.of(stream.y_test, mean, variance, stream.train_variance)
        curve.add(stop, stop, scores, float(np.mean(trace.change[before:stop])))
        before = stop
    microseconds = 1e6 * seconds / len(stream.y)
    return curve.result() | {"seconds": seconds, "microseconds": microseconds}


def running_predictions(given: Hyperparameters, stream: Stream) -> tuple[Array, Array]:
    """Return the dense GP's means and variances on the test set after 0, 1, 2, … samples."""
    kernel, noise = given.kernel, given.noise
    gram = kernel(stream.x) + noise * np.eye(len(stream.y))
    factor = cholesky(gram, lower=True, overwrite_a=True, check_finite=False)
    right = np.column_stack([stream.y - given.mean, kernel(stream.x, stream.x_test)])
    solved = solve_triangular(factor, right, lower=True, overwrite_b=True, check_finite=False)
    residuals, weights = solved[:, :1], solved[:, 1:]
    none = np.zeros((1, len(stream.y_test)))
    means = given.mean + np.cumsum(np.vstack([none, weights * residuals]), axis=0)
    prior = np.diag(kernel(stream.x_test)) + noise
    variances = prior - np.cumsum(np.vstack([none, weights**2]), axis=0)
    return means, variances


def places(count: int, batch: int) -> list[int]:
    """Return where to look: at about sixty places, closer together at first, then at every step.

    >>> places(1000, 1)[:5], places(1000, 1)[-3:], places(1000, 100)[-2:]
    ([1, 2, 3, 4, 7], [998, 999, 1000], [900, 1000])
    """
    before = max(count - LAST, 0)
    thinned = {-(-before * k**2 // PLACES**2) for k in range(1, PLACES + 1)}
    every = {*thinned, *range(before + 1, count + 1)} - {0}
    return sorted({min(-(-place // batch) * batch, count) for place in every})


class _Curve:
    """What was seen at the places, and the means over the last steps."""

    def __init__(self) -> None:
        self._rows: list[dict[str, float]] = []

    def add(self, seen: int, size: int, scores: Scores, change: float) -> None:
        """Note how the model stood; `change` is the mean since the place before."""
        self._rows.append({"seen": seen, "size": size, "change": change, **asdict(scores)})

    def result(self) -> dict[str, Any]:
        """Return the means of the last steps, and the curve with those steps thinned to two."""
        count = self._rows[-1]["seen"]
        last = [row for row in self._rows if row["seen"] > count - LAST]
        halves = [row for row in last if row["seen"] <= count - LAST // 2], last[-LAST // 2 :]
        curve = self._rows[: -len(last)] + [_end(half) for half in halves if half]
        return {
            "size": float(np.mean([row["size"] for row in last])),
            "test": {name: float(np.mean([row[name] for row in last])) for name in SCORES},
            "curve": {
                name: [row[name] for row in curve]
                for name in ("seen", "size", "change", "smse", "nlpd")
            },
        }


def _end(rows: list[dict[str, float]]) -> dict[str, float]:
    """Return the last of the rows, with the mean of their changes."""
    return rows[-1] | {"change": float(np.mean([row["change"] for row in rows]))}


def follow(model: Model, given: Hyperparameters, stream: Stream, method: Method) -> dict[str, Any]:
    """Take any of the models through the stream in its own way."""
    if isinstance(model, PseudoInputModel):
        return offline(model, stream)
    if not isinstance(model, OnlineModel):
        raise TypeError(f"expected a model that learns or fits, got {model!r}")
    if type(model).__name__ == "DenseGP":
        return dense(model, given, stream)
    return online(model, stream, method)
