"""Theorem 1: how far successive marginals are apart, under constant and under decaying budgets.

All budgets are ε_t = initial·(t + 1)^−power; a power of 0 is the constant budget of part (ii).
"""

from itertools import pairwise
from typing import Any

import numpy as np

import pogp
from experiments.parts import theory
from experiments.records import Records
from experiments.tasks import Scale, Task
from pogp.arrays import Array

TOPIC = "theorem-1"
BUDGETS = {
    "dense": ((0.0, 0.0),),
    "pog-published": ((1e-2, 0.0), (1e-3, 0.0), (1e-4, 0.0), (0.1, 0.5), (0.1, 1.0)),
    "pog-written": ((1e-3, 0.0), (0.1, 1.0)),
    "absorbing": ((0.1, 0.0),),
}
"""Of each model, the initial budgets and the powers of their decay."""
INPUTS = 2
COUNT, DENSE_COUNT = 20_000, 4_000
REPEATS = 3
GAMMAS = (0.001, 0.01, 0.1)
BINS, FIRST = 12, 10
"""The bins of t are alike in its logarithm, from the eleventh sample on."""


def tasks(scale: Scale) -> list[Task]:
    """Return what to run."""
    return [
        Task("stationarity", TOPIC, case, seed, _options(case, initial, power, scale), power * 5)
        for case, budgets in BUDGETS.items()
        for initial, power in budgets
        for seed in range(min(REPEATS, scale.repeats))
    ]


def run(task: Task, records: Records) -> dict[str, Any]:
    """Stream the samples through one model and look at its distances, bin by bin."""
    options = task.options
    count = options["count"]
    budget = pogp.Decay(options["initial"], options["power"])
    x, y = theory.stream(INPUTS, count, task.seed)
    trace = theory.model(task.case, theory.prior(INPUTS), budget).learn(x, y)
    allowed = np.array([budget(t) for t in range(count)])
    inputs = between_inputs(trace.mean, trace.variance)
    edges = np.unique(np.geomspace(FIRST, count, BINS + 1).round().astype(int))
    bins = [slice(first, last) for first, last in pairwise(edges.tolist())]
    return {
        "until": edges[1:],
        "order": [trace.size[bin_.stop - 1] for bin_ in bins],
        "budget": [allowed[bin_.stop - 1] for bin_ in bins],
        "change": {
            name: [np.quantile(trace.change[bin_], share) for bin_ in bins]
            for name, share in (("median", 0.5), ("ninth_decile", 0.9), ("percentile_99", 0.99))
        },
        "within": {
            str(gamma): [np.mean((trace.change < gamma + allowed)[bin_]) for bin_ in bins]
            for gamma in GAMMAS
        },
        "between_inputs": [np.median(inputs[bin_]) for bin_ in bins],
    }


def between_inputs(mean: Array, variance: Array) -> Array:
    """Return how far each prediction is from the one before, at another input: 0 for the first.

    The authors' code plots this distance, of marginals "evaluated at sequential inputs". It goes to
    zero only if the function is the same everywhere.
    """
    distances = pogp.hellinger(mean[1:], variance[1:], mean[:-1], variance[:-1])
    return np.concatenate([[0.0], distances])


def _options(case: str, initial: float, power: float, scale: Scale) -> dict[str, Any]:
    count = (DENSE_COUNT if case == "dense" else COUNT) // scale.shorten
    return {"initial": initial, "power": power, "count": count}
