"""Hyperparameters: marginal likelihood on the first slice of each stream, once for all methods."""

from typing import Any

import numpy as np

import pogp
from experiments.published import SETS
from experiments.records import Records
from experiments.streams import Hyperparameters, found_in, stream
from experiments.tasks import Scale, Task


def tasks(scale: Scale) -> list[Task]:
    """Return what to run."""
    return [
        Task(
            "tune", name, "first slice", seed, {"samples": scale.samples}, weight=setting.tune / 50
        )
        for name, setting in SETS.items()
        for seed in range(scale.repeats)
    ]


def run(task: Task, records: Records) -> dict[str, Any]:
    """Tune on the first slice, whose mean is the prior mean."""
    slice_ = stream(task.topic, task.seed, task.options["samples"])
    mean = float(np.mean(slice_.y_tune))
    tuned = pogp.tune(slice_.x_tune, slice_.y_tune, mean=mean, seed=task.seed)
    return {
        "kernel": tuned.kernel.to_spec(),
        "noise": tuned.noise,
        "mean": mean,
        "log_likelihood": tuned.log_likelihood,
        "converged": tuned.converged,
    }


def hyperparameters(task: Task, records: Records) -> Hyperparameters:
    """Return what was found for the stream of another task."""
    (record,) = (
        record for record in records.of("tune", task.topic) if record.task.seed == task.seed
    )
    return found_in(record.result)
