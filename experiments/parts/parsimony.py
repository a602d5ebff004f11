"""Theorem 2: the model order that a constant budget leads to, for several numbers of inputs."""

from typing import Any

import numpy as np

import pogp
from experiments.parts import theory
from experiments.records import Records
from experiments.tasks import Scale, Task

TOPIC = "theorem-2"
_NEWEST = [1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5]
BUDGETS = {
    # At the newest input most points hardly count; the distance of whole posteriors is far larger.
    "pog-published": _NEWEST,
    "pog-written": _NEWEST,
    "pog-everywhere": [0.6, 0.5, 0.4, 0.3, 0.2, 0.15],
    "absorbing": [0.4, 0.2, 0.1, 0.05, 0.025],
}
INPUTS = (1, 2, 3, 4)
COUNT = 10_000
REPEATS = 3
TENTHS = 10


def tasks(scale: Scale) -> list[Task]:
    """Return what to run: a task has one model, one number of inputs and all budgets."""
    return [
        Task(
            "parsimony",
            TOPIC,
            case,
            seed,
            {"inputs": inputs, "budgets": budgets[:: scale.every], "count": COUNT // scale.shorten},
            weight=(20.0 if case in ("pog-everywhere", "absorbing") else 3.0) * (inputs / 4) ** 3,
        )
        for case, budgets in BUDGETS.items()
        for inputs in INPUTS
        for seed in range(min(REPEATS, scale.repeats))
    ]


def run(task: Task, records: Records) -> dict[str, Any]:
    """Stream the samples at each budget; return the mean model order over each tenth of them."""
    inputs = task.options["inputs"]
    x, y = theory.stream(inputs, task.options["count"], task.seed)
    prior, orders = theory.prior(inputs), []
    for budget in task.options["budgets"]:
        trace = theory.model(task.case, prior, pogp.Constant(budget)).learn(x, y)
        orders.append([np.mean(tenth) for tenth in np.array_split(trace.size, TENTHS)])
    return {"orders": orders}
