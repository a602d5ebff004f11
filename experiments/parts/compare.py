"""Tables 2 and 3, Figures 3 to 5: every method on the paper's data sets, at the paper's sizes."""

from typing import Any

from experiments.methods import METHODS
from experiments.parts.tune import hyperparameters
from experiments.passage import follow
from experiments.published import SETS
from experiments.records import Records
from experiments.streams import stream
from experiments.tasks import Scale, Task

ROWS = (
    "dense",
    "spgp",
    "vfe",
    "pog-published",
    "pog-written",
    "pog-everywhere",
    "sogp",
    "streaming-vfe",
    "random",
    "window",
    "absorbing",
    "absorbing-calibrated",
    "absorbing-rehearsed",
    "absorbing-eighth",
)
EIGHTH = 8
_SLOW = {
    "spgp": 40.0,
    "vfe": 40.0,
    "dense": 15.0,
    "absorbing-rehearsed": 15.0,
    "streaming-vfe": 8.0,
}
"""Seconds that a run with some 400 points takes where it is not about 3."""


def tasks(scale: Scale) -> list[Task]:
    """Return what to run."""
    return [
        Task("compare", name, row, seed, _options(name, row, scale), _weight(name, row, scale))
        for name in SETS
        for row in ROWS
        for seed in range(scale.repeats)
    ]


def run(task: Task, records: Records) -> dict[str, Any]:
    """Take one method through one stream."""
    given = hyperparameters(task, records)
    method = METHODS[task.case]
    samples = stream(task.topic, task.seed, task.options["samples"])
    model = method.make(given, task.options, task.seed)
    return follow(model, given, samples, method, part=task.options["samples"] is not None)


def _options(name: str, row: str, scale: Scale) -> dict[str, Any]:
    setting = SETS[name]
    size = setting.size // scale.shrink // (EIGHTH if row == "absorbing-eighth" else 1)
    return {"samples": scale.samples, "size": size, "budget": setting.budget}


def _weight(name: str, row: str, scale: Scale) -> float:
    if name == "boston" or scale.samples is not None:
        return 0.5
    return _SLOW.get(row, 3.0)
