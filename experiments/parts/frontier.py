"""The accuracy–memory frontier: every online method at a range of model orders."""

from typing import Any

import numpy as np

from experiments.methods import METHODS
from experiments.parts.tune import hyperparameters
from experiments.published import SETS
from experiments.records import Records
from experiments.streams import stream
from experiments.tasks import Scale, Task
from pogp.evaluation.scores import Scores

SIZES = (12, 25, 50, 100, 200, 400, 800)
GRID: dict[str, tuple[str, tuple[float, ...]]] = {
    # A cap is a size; the others have a size that follows from a number of their own.
    "pog-published": ("budget", (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)),
    "pog-written": ("budget", (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)),
    "pog-everywhere": ("size", SIZES),
    "sogp": ("size", SIZES),
    "mcintire": ("threshold", (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)),
    "krls-ald": ("tolerance", (0.6, 0.3, 0.1, 0.03, 0.01, 0.003)),
    "krls-t": ("size", SIZES),
    "streaming-vfe": ("size", SIZES),
    "random": ("size", SIZES),
    "window": ("size", SIZES),
    "absorbing": ("size", SIZES),
}
LARGEST = {"boston": 200, "abalone": 800, "kin40": 800}
"""No more points than half of a stream has samples."""
REPEATS = 3


def tasks(scale: Scale) -> list[Task]:
    """Return what to run."""
    return [
        Task("frontier", name, case, seed, {"samples": scale.samples, grade: value}, weight)
        for name in SETS
        for case, (grade, values) in GRID.items()
        for value in values[:: scale.every]
        if value <= LARGEST[name]
        for weight in [_weight(name, case, value, scale)]
        for seed in range(min(REPEATS, scale.repeats))
    ]


def run(task: Task, records: Records) -> dict[str, Any]:
    """Take one method through one stream and score it at the end."""
    given = hyperparameters(task, records)
    method = METHODS[task.case]
    samples = stream(task.topic, task.seed, task.options["samples"])
    model = method.make(given, task.options, task.seed)
    if not model.online:
        raise TypeError(f"{task.case} does not learn online")
    model.learn(samples.x, samples.y)
    mean, variance = model.predict(samples.x_test)
    scores = Scores.of(samples.y_test, mean, variance, samples.train_variance)
    return {"size": model.size, "smse": scores.smse, "nlpd": scores.nlpd}


def _weight(name: str, case: str, value: float, scale: Scale) -> float:
    slow = case in ("krls-ald", "mcintire", "streaming-vfe", "pog-published")
    large = slow or value >= 200
    return float(
        np.where(name == "boston" or scale.samples is not None, 0.2, 2.0 if large else 0.5)
    )
