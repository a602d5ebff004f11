"""The streams, as data, and what is run on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pogp
from benchmarks.peers import simulated
from benchmarks.peers.registry import PEERS
from benchmarks.peers.table_file import read_table
from benchmarks.streams import FROM, recorded, recordings
from benchmarks.workloads import Stream
from experiments.tasks import Task
from pogp.cli.console import Console

PART = "peers"
SLICE = 300
"""Samples of the first slice, or a third of a short stream: `SelfTuning`'s own default."""
LIMIT = 0.03
"""Seconds of a processor that a sample may take on average; a peer that takes longer has failed."""


@dataclass(frozen=True)
class Scale:
    """How much to run."""

    samples: int
    seeds: int
    simulated_only: bool = False


FULL = Scale(samples=3_000, seeds=5)
QUICK = Scale(samples=600, seeds=1, simulated_only=True)


@dataclass(frozen=True)
class Topic:
    """A stream: its title, what it is, and how it is had."""

    title: str
    about: str
    load: Callable[[int], Stream]
    """From the most samples to return."""


def _published(name: str, samples: int) -> Stream:
    data = pogp.datasets.load(name)
    return Stream(data.x_train[:samples], data.y_train[:samples])


SIMULATED = {
    "arm": Topic(
        "Simulated arm",
        "the torque of one joint of a two-link arm that is still, then moves, then takes up a "
        "payload; 6 inputs",
        simulated.arm,
    ),
    "sensor": Topic(
        "Drifting sensor",
        "a simulated gas sensor that loses gain while its zero wanders; 3 inputs",
        simulated.drifting_sensor,
    ),
    "demand": Topic(
        "Seasonal demand",
        "simulated hourly demand for electricity, with days, weeks, weather and growth; 4 inputs",
        simulated.seasonal_demand,
    ),
}
PUBLISHED = {
    "boston": Topic(
        "Boston", "housing values, 13 inputs, in the authors' order", partial(_published, "boston")
    ),
    "abalone": Topic(
        "Abalone",
        "rings of shells, 8 inputs, in the authors' order",
        partial(_published, "abalone"),
    ),
    "kin40": Topic(
        "kin40",
        "an 8-link arm's reach, 8 inputs, in the authors' order",
        partial(_published, "kin40"),
    ),
}
RECORDED_ABOUT = {
    "kuka_kr300": "the torque of one joint of an industrial arm; 18 inputs, recorded in order",
    "co2": "monthly CO₂ at Mauna Loa, from the date alone; recorded in order",
    "turbine_nox": "hourly NOx of a gas turbine; 9 inputs, recorded in order",
    "magnetometer": "the magnetic field along a walk, from the position; recorded in order",
    "pol": "telecommunications; 26 inputs, shuffled",
    "protein": "protein structure; 9 inputs, shuffled",
}
"""What is in the recordings we know; others are run as well."""


def topics(simulated_only: bool = False) -> dict[str, Topic]:
    """Return the streams that there can be; recordings only where they are at hand."""
    if simulated_only:
        return dict(SIMULATED)
    there = {
        name: Topic(name, RECORDED_ABOUT.get(name, "recorded"), partial(recorded, path))
        for name, path in recordings().items()
    }
    return {**SIMULATED, **PUBLISHED, **there}


def available(scale: Scale, console: Console) -> list[str]:
    """Return the names of the streams that are here, and say which are not."""
    there = topics(scale.simulated_only)
    for name in PUBLISHED.keys() & there.keys():
        try:
            pogp.datasets.load(name)
        except (pogp.datasets.DataUnavailable, pogp.datasets.DigestError, OSError) as error:
            console.note(f"Left out: {name} is not here. {error}")
            del there[name]
    return list(there)


def plan(scale: Scale, names: list[str]) -> list[Task]:
    """Return the runs of the topics with these names: one order, seeds where there is chance.

    The small form leaves other settings of ours out.
    All streams come once before any of them comes again, so that an unfinished run is of use.
    """
    return [
        Task(PART, topic, case, seed, {"samples": scale.samples})
        for seed in range(scale.seeds)
        for topic in names
        for case, peer in PEERS.items()
        if (peer.chance or seed == 0) and not (peer.variant and scale.simulated_only)
    ]


def stream_of(task: Task) -> Stream:
    """Return the samples of a task."""
    options: dict[str, Any] = task.options
    if "table" in options:
        return read_table(options["table"], options["target"], options["samples"])
    return topics()[task.topic].load(options["samples"])


def first_slice(samples: int) -> int:
    """Return the length of the first slice."""
    return min(SLICE, samples // 3)


def scored_from(samples: int) -> int:
    """Return where scores begin."""
    return min(FROM, samples // 3)
