"""What a report is about: a stream as its journal has it, the model that learned it, and names."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from pogp.arrays import Array
from pogp.models.base import Model
from pogp.report.facts import Facts
from pogp.report.journal import Journal


@dataclass(frozen=True)
class Subject:
    """`names` has one for each input, `targets` one for each output."""

    journal: Journal
    model: Model
    facts: Facts
    names: list[str]
    targets: list[str]
    command: tuple[str, ...] = ("pogp", "learn", "SOURCE")
    """That learned the stream, for advice to begin with."""

    @classmethod
    def of(
        cls,
        journal: Journal,
        model: Model,
        names: Sequence[str] | None,
        target: str | Sequence[str],
        command: Sequence[str] | None = None,
    ) -> Self:
        """Bring them together, with names for what has none."""
        dimension, outputs = journal.dimension, journal.outputs
        inputs = [f"x{d}" for d in range(dimension)] if names is None else list(map(str, names))
        if dimension and len(inputs) != dimension:
            raise ValueError(f"names must be {dimension}, one for each input, got {inputs}")
        targets = _several(target, outputs) if isinstance(target, str) else list(map(str, target))
        if outputs and len(targets) != outputs:
            raise ValueError(f"target must be {outputs} names, one for each output, got {targets}")
        facts = Facts.of(model, dimension, outputs)
        return cls(journal, model, facts, inputs, targets, tuple(command or cls.command))

    @cached_property
    def relevance(self) -> Array:
        """The spread of each input in its length-scales; of all alike where there are none.

        An input that never varied has none.
        """
        inputs, scales = self.journal.samples.inputs, self.facts.lengthscales
        if len(inputs) == 0:
            return np.zeros(inputs.shape[1])
        most = np.std(np.clip(inputs, *np.quantile(inputs, (0.01, 0.99), axis=0)), axis=0)
        spread = np.where(most > 0, most, np.std(inputs, axis=0))  # it may vary in rare samples
        spread = np.where(np.ptp(inputs, axis=0) > 0, spread, 0.0)
        return np.asarray(np.sign(spread) if scales is None else spread / scales)

    @property
    def order(self) -> list[int]:
        """The inputs that varied, the most relevant first."""
        order = np.argsort(-self.relevance, kind="stable")
        return [int(d) for d in order if self.relevance[d] > 0]


def _several(target: str, outputs: int) -> list[str]:
    return [target] if outputs < 2 else [f"{target} {k}" for k in range(outputs)]
