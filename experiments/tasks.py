"""What to run, as data: a task is one line of the plan and becomes one line of the records."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Task:
    """One run: which part of the reproduction, on which topic, what exactly, and from which seed.

    `weight` is a guess of its seconds, for the order of the runs and the time left; it says nothing
    about the result.
    """

    part: str
    topic: str
    case: str
    seed: int
    options: dict[str, Any] = field(default_factory=dict)
    weight: float = 1.0

    @property
    def key(self) -> str:
        """What makes two tasks the same run."""
        return json.dumps(
            [self.part, self.topic, self.case, self.seed, self.options], sort_keys=True
        )

    def __str__(self) -> str:
        return f"{self.topic}, {self.case}, repeat {self.seed}"


@dataclass(frozen=True)
class Scale:
    """How much to run: the whole reproduction, or a small form of all of it."""

    name: str
    repeats: int
    samples: int | None
    """Training samples of a data set, those for tuning included; None for all."""
    shrink: int
    """What model orders, and the lengths of the paper's simulated streams, are divided by."""
    shorten: int
    """What the lengths of the streams for the theory are divided by."""
    every: int
    """Of budgets and sizes in a row, which are run: each, or each so many."""


FULL = Scale("full", repeats=7, samples=None, shrink=1, shorten=1, every=1)
QUICK = Scale("quick", repeats=2, samples=500, shrink=4, shorten=16, every=3)
