"""The main job: one stream through POG and what it is compared with, measured on the way."""

import os
import platform
import time
from collections import deque
from dataclasses import dataclass

import numpy as np
import scipy

import pogp
from pogp.arrays import Array
from pogp.cli.progress import Console
from pogp.cli.streams import SOURCES, Stream
from pogp.models import OnlineModel
from pogp.report.record import (
    Checkpoint,
    Contrast,
    Hyperparameters,
    Method,
    Record,
    Scores,
    Settings,
    Steps,
)
from pogp.report.style import METHODS
from pogp.trace import Trace, concatenate

CHUNK = 256
"""Samples learned between two signs of life."""
CHECKPOINTS, DENSE_CHECKPOINTS = 100, 25
"""Evaluations on the test set; for the dense GP each takes O(t²) per test sample."""
RECENT = 500
"""Samples over which the progress display averages the error."""


@dataclass(frozen=True)
class Passage:
    """A model's way through the stream, and the means it predicts for the test set at the end."""

    model: OnlineModel
    trace: Trace
    seconds: float  # of learning alone
    checkpoints: list[Checkpoint]
    test_mean: Array


def execute(settings: Settings, console: Console) -> Record:
    """Tune, stream, compare."""
    stream = SOURCES[settings.data].cut(settings.samples, settings.tune, settings.seed)
    console.note(f"Tuning on the first {len(stream.y_tune)} samples of {settings.data} ...")
    started = time.perf_counter()
    tuned = pogp.tune(stream.x_tune, stream.y_tune, mean=stream.mean, seed=settings.seed)
    seconds = time.perf_counter() - started
    passages = _compare(settings, stream, tuned, console)
    pog = passages["pog"]
    return Record(
        settings=settings,
        environment=_environment(),
        source=stream.source,
        inputs=stream.x.shape[1],
        streamed=len(stream.y),
        test_samples=len(stream.y_test),
        train_variance=stream.train_variance,
        hyperparameters=_hyperparameters(tuned, stream, seconds),
        methods=[_method(name, passage, pog, stream) for name, passage in passages.items()],
        steps=_steps(pog.trace, stream),
    )


def _compare(
    settings: Settings, stream: Stream, tuned: pogp.Tuned, console: Console
) -> dict[str, Passage]:
    kernel, noise, mean = tuned.kernel, tuned.noise, stream.mean
    pog = pogp.POG(
        kernel,
        noise,
        settings.budget,
        view=settings.view,
        max_size=settings.max_size,
        max_removals=settings.max_removals,
        mean=mean,
    )
    passages = {"pog": follow("pog", pog, stream, len(stream.y), CHECKPOINTS, console)}
    subset = pogp.RandomSubset(kernel, noise, pog.size, seed=settings.seed, mean=mean)
    passages["random"] = follow("random", subset, stream, len(stream.y), CHECKPOINTS, console)
    if count := min(settings.dense_limit, len(stream.y)):
        dense = pogp.DenseGP(kernel, noise, mean=mean)
        passages["dense"] = follow("dense", dense, stream, count, DENSE_CHECKPOINTS, console)
    return passages


def follow(
    name: str, model: OnlineModel, stream: Stream, count: int, checkpoints: int, console: Console
) -> Passage:
    """Stream the first `count` samples through a model, evaluating it on the test set."""
    traces: list[Trace] = []
    points: list[Checkpoint] = []
    recent: deque[float] = deque(maxlen=RECENT)
    mean = np.empty(0)
    seconds = 0.0
    with console.progress(METHODS[name].label, count) as progress:
        for stop in marks(count, checkpoints):
            while model.seen < stop:
                rows = slice(model.seen, min(model.seen + CHUNK, stop))
                started = time.perf_counter()
                traces.append(model.learn(stream.x[rows], stream.y[rows]))
                seconds += time.perf_counter() - started
                recent.extend(_squared(traces[-1].mean, stream.y[rows], stream))
                state = f"M {model.size}, error {sum(recent) / len(recent):.3f}"
                progress.update(model.seen, state)
            mean, variance = model.predict(stream.x_test)
            scores = Scores.of(stream.y_test, mean, variance, stream.train_variance)
            points.append(Checkpoint(model.seen, model.size, scores))
    return Passage(model, concatenate(traces), seconds, points, mean)


def marks(count: int, wanted: int) -> list[int]:
    """Return about `wanted` places up to `count`, closer together where errors fall fastest.

    >>> marks(100, 5)
    [4, 16, 36, 64, 100]
    """
    return sorted({-(-count * k**2 // wanted**2) for k in range(1, wanted + 1)})


def _method(name: str, passage: Passage, pog: Passage, stream: Stream) -> Method:
    trace, seen = passage.trace, passage.model.seen
    return Method(
        name=name,
        microseconds=1e6 * passage.seconds / seen,
        nbytes=passage.model.nbytes,
        prequential=Scores.of(stream.y[:seen], trace.mean, trace.variance, stream.train_variance),
        contrast=_contrast(passage, pog, stream),
        checkpoints=passage.checkpoints,
    )


def _contrast(passage: Passage, pog: Passage, stream: Stream) -> Contrast:
    theirs, ours = (_squared(each.test_mean, stream.y_test, stream) for each in (passage, pog))
    differences = theirs - ours
    standard_error = np.std(differences) / np.sqrt(max(len(differences) - 1, 1))
    return Contrast(float(np.mean(differences)), float(standard_error))


def _squared(mean: Array, y: Array, stream: Stream) -> Array:
    """Return squared errors in units of the training variance."""
    return np.asarray((y - mean) ** 2 / stream.train_variance)


def _steps(trace: Trace, stream: Stream) -> Steps:
    error = _squared(trace.mean, stream.y, stream)
    return Steps(*map(_shortened, (error, trace.novelty, trace.change, trace.spent)))


def _shortened(values: Array) -> list[float]:
    """Return four significant digits of each, enough for a figure: the file stays small."""
    return [float(f"{value:.4g}") for value in values]


def _hyperparameters(tuned: pogp.Tuned, stream: Stream, seconds: float) -> Hyperparameters:
    *lengthscales, variance = np.exp(tuned.kernel.theta).tolist()
    return Hyperparameters(
        samples=len(stream.y_tune),
        seconds=seconds,
        lengthscales=lengthscales,
        variance=variance,
        noise=tuned.noise,
        mean=stream.mean,
        log_likelihood=tuned.log_likelihood,
    )


def _environment() -> dict[str, str]:
    return {
        "pogp": pogp.__version__,
        "backend": pogp.backend(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "OPENBLAS_NUM_THREADS": os.environ.get("OPENBLAS_NUM_THREADS", "unset"),
    }
