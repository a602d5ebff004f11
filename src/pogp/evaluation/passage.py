"""A model taken through a stream and evaluated on the test set on the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from pogp.arrays import Array
from pogp.evaluation.scores import Scores
from pogp.evaluation.streams import Hyperparameters, Stream
from pogp.models.base import Model
from pogp.trace import Trace, concatenate

COLUMNS = 1000
"""Test samples predicted together for the dense GP, to bound the memory."""


@dataclass(frozen=True)
class Stage:
    """The model after `seen` samples, with what happened since the stage before."""

    seen: int
    size: int
    trace: Trace  # of the samples since the stage before
    seconds: float  # processor time of learning them
    mean: Array  # predicted means of the test set
    scores: Scores  # on the test set


def follow(
    model: Model,
    stream: Stream,
    stops: Sequence[int],
    *,
    given: Hyperparameters | None = None,
    evaluated: Callable[[Model], Model] = lambda model: model,
    chunk: int | None = None,
    progress: Callable[[Model, Trace, slice], None] = lambda model, trace, rows: None,
) -> Iterator[Stage]:
    """Stream samples through a model and yield a stage at each stop.

    Parameters
    ----------
    model : Model
        An empty model.
    stream : Stream
        The samples.
    stops : sequence of int
        Numbers of samples after which the model is evaluated, in increasing order.
    given : Hyperparameters, optional
        With them, the model is taken to be the exact GP with these hyperparameters, and the
        predictions at all stops come from a single Cholesky factor.
    evaluated : callable, optional
        Returns the model that predicts, from the model that learns.
    chunk : int, optional
        The most samples per call of `learn`.
    progress : callable, optional
        Called after each call of `learn` with the model, the trace and the rows learned.
    """
    exact = None if given is None else dense_predictions(given, stream, stops)
    for number, stop in enumerate(stops):
        traces, seconds = [], 0.0
        while model.seen < stop:
            rows = slice(model.seen, min(model.seen + (chunk or stop), stop))
            started = time.process_time()
            traces.append(model.learn(stream.x[rows], stream.y[rows]))
            seconds += time.process_time() - started
            progress(model, traces[-1], rows)
        if exact is None:
            mean, variance = evaluated(model).predict(stream.x_test)
        else:
            mean, variance = exact[0][number], exact[1][number]
        scores = Scores.of(stream.y_test, mean, variance, stream.train_variance)
        yield Stage(stop, model.size, concatenate(traces), seconds, mean, scores)


def dense_predictions(
    given: Hyperparameters, stream: Stream, stops: Sequence[int]
) -> tuple[Array, Array]:
    """Return the means and variances (len(stops), n_test) of the exact GP at each stop.

    The leading block of a Cholesky factor is the factor of the first samples. Means and variances
    after each sample are therefore running sums over the rows of one triangular solve.
    """
    last = stops[-1]
    gram = given.kernel(stream.x[:last]) + given.noise * np.eye(last)
    factor = cholesky(gram, lower=True, overwrite_a=True, check_finite=False)
    residuals = solve_triangular(factor, stream.y[:last] - given.mean, lower=True)
    starts = [0, *stops[:-1]]
    means, variances = [], []
    for start in range(0, len(stream.y_test), COLUMNS):
        x_test = stream.x_test[start : start + COLUMNS]
        cross = given.kernel(stream.x[:last], x_test)
        weights = solve_triangular(factor, cross, lower=True, overwrite_b=True, check_finite=False)
        explained = np.cumsum(np.add.reduceat(weights * residuals[:, None], starts), axis=0)
        reduction = np.cumsum(np.add.reduceat(weights**2, starts), axis=0)
        means.append(given.mean + explained)
        variances.append(given.kernel.diag(x_test) + given.noise - reduction)
    return np.concatenate(means, axis=1), np.concatenate(variances, axis=1)


def thinned(count: int, wanted: int) -> list[int]:
    """Return about `wanted` stops up to `count`, closer together where errors fall fastest.

    >>> thinned(100, 5)
    [4, 16, 36, 64, 100]
    """
    return sorted({-(-count * k**2 // wanted**2) for k in range(1, wanted + 1)})
