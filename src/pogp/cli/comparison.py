"""The job of `pogp run`: several methods on one stream, measured side by side."""

import os
import platform
import time
from collections import deque
from dataclasses import asdict, dataclass

import numpy as np
import scipy

import pogp
from pogp.arrays import Array
from pogp.cli.console import Console
from pogp.evaluation.methods import METHODS
from pogp.evaluation.passage import Stage, follow, thinned
from pogp.evaluation.scores import Scores
from pogp.evaluation.streams import SOURCES, Hyperparameters, Stream
from pogp.models import Model
from pogp.report import run_record
from pogp.report.run_record import Checkpoint, Contrast, Method, Record, Settings
from pogp.trace import Trace, concatenate

CHUNK = 256
"""Samples learned between two updates of the progress display."""
CHECKPOINTS = 30
"""Evaluations on the test set."""
RECENT = 500
"""Samples over which the progress display averages the error."""
BASELINE = "random"
"""The method that the others are compared with."""


@dataclass(frozen=True)
class Passage:
    """A model's way through the stream."""

    model: Model
    stages: list[Stage]


def execute(settings: Settings, console: Console) -> Record:
    """Tune, stream the samples through each method, and compare."""
    stream = SOURCES[settings.data].stream(settings.samples, settings.tune, settings.seed)
    console.note(f"Tuning on the first {len(stream.y_tune)} samples of {settings.data} ...")
    started = time.perf_counter()
    tuned = pogp.tune(stream.x_tune, stream.y_tune, mean=stream.mean, seed=settings.seed)
    seconds = time.perf_counter() - started
    passages = _passages(settings, stream, tuned, console)
    baseline = passages[BASELINE]
    return Record(
        settings=settings,
        environment=_environment(),
        inputs=stream.x.shape[1],
        streamed=len(stream.y),
        test_samples=len(stream.y_test),
        train_variance=stream.train_variance,
        hyperparameters=_hyperparameters(tuned, stream, seconds),
        methods=[
            _method(name, passages[name], baseline, stream) for name in METHODS if name in passages
        ],
    )


def _passages(
    settings: Settings, stream: Stream, tuned: pogp.Tuned, console: Console
) -> dict[str, Passage]:
    """Take each method through the stream. The others get the cap, or the size POG ended with."""
    given = Hyperparameters(tuned.kernel, tuned.noise, stream.mean)
    options = asdict(settings) | {"size": settings.max_size}

    def passage(name: str, samples: Stream) -> Passage:
        model = METHODS[name].make(given, options, settings.seed)
        if not model.online:
            raise TypeError(f"{name} does not learn online")
        exact = given if name == "dense" else None
        return run_through(name, model, samples, console, exact)

    passages = {"pog": passage("pog", stream)}
    options["size"] = settings.max_size or passages["pog"].model.size
    for name in (name for name in METHODS if name not in ("pog", "dense")):
        passages[name] = passage(name, stream)
    if count := min(settings.dense_limit, len(stream.y)):
        passages["dense"] = passage("dense", stream.first(count))
    return passages


def run_through(
    name: str,
    model: Model,
    stream: Stream,
    console: Console,
    exact: Hyperparameters | None = None,
) -> Passage:
    """Stream the samples through a model, with a progress display."""
    recent: deque[float] = deque(maxlen=RECENT)
    count = len(stream.y)
    with console.progress(METHODS[name].label, count) as display:

        def progress(model: Model, trace: Trace, rows: slice) -> None:
            recent.extend(_squared(trace.mean, stream.y[rows], stream))
            display.update(model.seen, f"M {model.size}, error {sum(recent) / len(recent):.3f}")

        stops = thinned(count, CHECKPOINTS)
        stages = follow(model, stream, stops, given=exact, chunk=CHUNK, progress=progress)
        return Passage(model, list(stages))


def _method(name: str, passage: Passage, baseline: Passage, stream: Stream) -> Method:
    stages, seen = passage.stages, passage.model.seen
    trace = concatenate([stage.trace for stage in stages])
    return Method(
        name=name,
        microseconds=1e6 * sum(stage.seconds for stage in stages) / seen,
        nbytes=passage.model.nbytes,
        prequential=Scores.of(stream.y[:seen], trace.mean, trace.variance, stream.train_variance),
        contrast=_contrast(passage, baseline, stream),
        checkpoints=[Checkpoint(stage.seen, stage.size, stage.scores) for stage in stages],
    )


def _contrast(passage: Passage, baseline: Passage, stream: Stream) -> Contrast:
    own, other = (
        _squared(each.stages[-1].mean, stream.y_test, stream) for each in (passage, baseline)
    )
    differences = own - other
    standard_error = np.std(differences) / np.sqrt(max(len(differences) - 1, 1))
    return Contrast(float(np.mean(differences)), float(standard_error))


def _squared(mean: Array, y: Array, stream: Stream) -> Array:
    """Return squared errors in units of the training variance."""
    return np.asarray((y - mean) ** 2 / stream.train_variance)


def _hyperparameters(
    tuned: pogp.Tuned, stream: Stream, seconds: float
) -> run_record.Hyperparameters:
    *lengthscales, variance = np.exp(tuned.kernel.theta).tolist()
    return run_record.Hyperparameters(
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
