"""Assumption 1: the marginal at the newest input, before and after a sample, of POG and dense GP.

The assumption compares probabilities: the dense GP's step is below γ at least as often as POG's,
for every γ. So besides the two sequences, how often each is below γ is counted.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pogp
from experiments.parts import theory
from experiments.parts.stationarity import between_inputs
from experiments.parts.tune import hyperparameters
from experiments.published import SETS
from experiments.records import Records
from experiments.streams import Hyperparameters, stream
from experiments.tasks import Scale, Task
from pogp.arrays import Array
from pogp.trace import Trace

SIMULATED = "assumption-1"
"""The topic of the simulated streams; the paper's sets are topics of their own."""
CASES = ("pog-published", "pog-written")
INPUTS = (1, 2, 4)
BUDGET, COUNT = 1e-3, 2_000
REPEATS = 3
GAMMAS = np.geomspace(1e-5, 1.0, 26)
WINDOWS, THIRDS = 24, 3


@dataclass(frozen=True)
class _Stream:
    x: Array
    y: Array
    given: Hyperparameters


def tasks(scale: Scale) -> list[Task]:
    """Return what to run: a task has the dense GP and both forms of POG on one stream."""
    repeats = range(min(REPEATS, scale.repeats))
    simulated = [
        Task(
            "assumption",
            SIMULATED,
            f"{inputs} {'input' if inputs == 1 else 'inputs'}",
            seed,
            {"inputs": inputs, "count": COUNT // scale.shrink, "budget": BUDGET},
        )
        for inputs in INPUTS
        for seed in repeats
    ]
    published = [
        Task(
            "assumption",
            name,
            "data set",
            seed,
            {"samples": scale.samples, "budget": setting.budget},
            weight=0.5 if name == "boston" or scale.samples else 15.0,
        )
        for name, setting in SETS.items()
        for seed in repeats
    ]
    return simulated + published


def run(task: Task, records: Records) -> dict[str, Any]:
    """Stream the samples through all models and hold their distances against each other."""
    samples = _simulated(task) if task.topic == SIMULATED else _published(task, records)
    budget = pogp.Constant(task.options["budget"])
    traces = {
        case: theory.model(case, samples.given, budget).learn(samples.x, samples.y)
        for case in ("dense", *CASES)
    }
    dense = _distances(traces.pop("dense"))
    return {
        "steps": [len(third) for third in _thirds(dense["change"])],
        "dense": {kind: _described(distances) for kind, distances in dense.items()},
        **{case: _compared(dense, trace) for case, trace in traces.items()},
    }


def _simulated(task: Task) -> _Stream:
    inputs = task.options["inputs"]
    x, y = theory.stream(inputs, task.options["count"], task.seed)
    return _Stream(x, y, theory.prior(inputs))


def _published(task: Task, records: Records) -> _Stream:
    samples = stream(task.topic, task.seed, task.options["samples"])
    return _Stream(samples.x, samples.y, hyperparameters(task, records))


def _distances(trace: Trace) -> dict[str, Array]:
    """Return a model's distances: of the assumption, of Theorem 1, and of the authors' figures."""
    return {
        "novelty": trace.novelty,
        "change": trace.change,
        "between_inputs": between_inputs(trace.mean, trace.variance),
    }


def _compared(dense: dict[str, Array], trace: Trace) -> dict[str, Any]:
    """Describe POG's distances, and count where the dense GP's are not larger."""
    compared = {
        kind: _described(distances)
        | {"not_below_dense": [np.sum(third) for third in _thirds(dense[kind] <= distances)]}
        for kind, distances in _distances(trace).items()
    }
    return {"order": trace.size[-1], **compared}


def _described(distances: Array) -> dict[str, Any]:
    """Return medians over short windows, and how many in each third of the stream are below γ."""
    return {
        "medians": [np.median(window) for window in np.array_split(distances, WINDOWS)],
        "below": [np.searchsorted(np.sort(third), GAMMAS) for third in _thirds(distances)],
    }


def _thirds(values: NDArray[Any]) -> list[NDArray[Any]]:
    return np.array_split(values, THIRDS)
