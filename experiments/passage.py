"""One model's way through a stream, scored on the test set as in the paper.

"After every training sample evaluate on the whole test set; report the mean of the last 100 steps":
the model is evaluated after each of the last steps and at about sixty places before them. Times are
processor times, which other work on the machine does not lengthen.
"""

import time
from dataclasses import asdict
from typing import Any, cast

import numpy as np

import pogp
from experiments.methods import Method
from experiments.streams import Hyperparameters, Stream
from pogp.evaluation.passage import dense_predictions, thinned
from pogp.evaluation.passage import follow as stages
from pogp.evaluation.scores import Scores
from pogp.models.base import Model
from pogp.models.baselines.pseudo_inputs import PseudoInputModel

LAST = 100
"""Steps at the end over which scores are averaged."""
PLACES = 60
"""Places before them where a curve is evaluated."""
ITERATIONS = 150
"""Of the search of a model that is fitted to all samples at once, at most."""
FEWER = 5
"""What these three are divided by where only a part of the samples is learned."""
SCORES = ("smse", "msll", "nlpd", "coverage")


def follow(
    model: Model, given: Hyperparameters, stream: Stream, method: Method, part: bool = False
) -> dict[str, Any]:
    """Take any of the models through the stream, or a part of it, in its own way."""
    fewer = FEWER if part else 1
    if isinstance(model, PseudoInputModel):
        return offline(model, stream, fewer)
    if not model.online:
        raise TypeError(f"expected a model that learns or fits, got {model!r}")
    if isinstance(model, pogp.DenseGP):
        return dense(model, given, stream, fewer)
    return online(model, stream, method, fewer)


def online(model: Model, stream: Stream, method: Method, fewer: int = 1) -> dict[str, Any]:
    """Stream the samples through a model and score it at the places."""
    curve = _Curve(LAST // fewer)
    seconds, timed, samples = 0.0, 0.0, 0
    evaluated = _rehearsed if method.rehearsed else lambda model: model
    stops = places(len(stream.y), method.batch, fewer)
    for stage in stages(model, stream, stops, evaluated=evaluated):
        seconds += stage.seconds
        if len(stage.trace) > 1:  # single calls would time Python, not the method
            timed, samples = timed + stage.seconds, samples + len(stage.trace)
        curve.add(stage.seen, stage.size, stage.scores, float(np.mean(stage.trace.change)))
    return curve.result() | {"seconds": seconds, "microseconds": 1e6 * timed / samples}


def _rehearsed(model: Model) -> Model:
    return cast(pogp.AbsorbingPOG, model).rehearsed()


def offline(model: PseudoInputModel, stream: Stream, fewer: int = 1) -> dict[str, Any]:
    """Fit a model to all samples at once and score it."""
    started = time.process_time()
    model.fit(stream.x, stream.y, max_iterations=ITERATIONS // fewer)
    seconds = time.process_time() - started
    mean, variance = model.predict(stream.x_test)
    scores = Scores.of(stream.y_test, mean, variance, stream.train_variance)
    return {"size": model.size, "test": asdict(scores), "seconds": seconds}


def dense(model: Model, given: Hyperparameters, stream: Stream, fewer: int = 1) -> dict[str, Any]:
    """Stream the samples through the dense GP, whose scores all come from one factor."""
    started = time.process_time()
    trace = model.learn(stream.x, stream.y)
    seconds = time.process_time() - started
    curve, before = _Curve(LAST // fewer), 0
    stops = places(len(stream.y), 1, fewer)
    for stop, mean, variance in zip(stops, *dense_predictions(given, stream, stops), strict=True):
        scores = Scores.of(stream.y_test, mean, variance, stream.train_variance)
        curve.add(stop, stop, scores, float(np.mean(trace.change[before:stop])))
        before = stop
    microseconds = 1e6 * seconds / len(stream.y)
    return curve.result() | {"seconds": seconds, "microseconds": microseconds}


def places(count: int, batch: int, fewer: int = 1) -> list[int]:
    """Return where to look: at about sixty places, closer together at first, then at every step.

    >>> places(1000, 1)[:5], places(1000, 1)[-3:], places(1000, 100)[-2:]
    ([1, 3, 4, 7, 9], [998, 999, 1000], [900, 1000])
    """
    before = max(count - LAST // fewer, 0)
    every = {*thinned(before, PLACES // fewer), *range(before + 1, count + 1)} - {0}
    return sorted({min(-(-place // batch) * batch, count) for place in every})


class _Curve:
    """What was seen at the places, and the means over the last steps."""

    def __init__(self, last: int) -> None:
        self._last = last
        self._rows: list[dict[str, float]] = []

    def add(self, seen: int, size: int, scores: Scores, change: float) -> None:
        """Note how the model stood; `change` is the mean since the place before."""
        self._rows.append({"seen": seen, "size": size, "change": change, **asdict(scores)})

    def result(self) -> dict[str, Any]:
        """Return the means of the last steps, and the curve with those steps thinned to two."""
        count, half = self._rows[-1]["seen"], self._last // 2
        last = [row for row in self._rows if row["seen"] > count - self._last]
        halves = [row for row in last if row["seen"] <= count - half], last[-half:]
        curve = self._rows[: -len(last)] + [_end(rows) for rows in halves if rows]
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
