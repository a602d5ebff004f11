"""Raw samples kept to tune by: a uniform draw of the past, and the latest ones."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pogp.arrays import Array, Indices
from pogp.reservoir import Reservoir

Mask: TypeAlias = NDArray[np.bool_]

PAST, LATEST = 1000, 1000
"""How many of each."""


class Samples(NamedTuple):
    """Samples in the order of the stream."""

    X: Array
    Y: Array
    positions: Indices
    odd: Mask
    """Whether a sample was taken for an outlier."""

    def where(self, chosen: Mask | Indices) -> Samples:
        """Return some of them."""
        return Samples(self.X[chosen], self.Y[chosen], self.positions[chosen], self.odd[chosen])


class Rows:
    """A reservoir and a ring of samples, each with a mark for outliers beside its targets."""

    def __init__(self, dimension: int, outputs: int, seed: int) -> None:
        self.past = Reservoir(PAST, dimension, outputs + 1, seed)
        self.seen = 0
        self._X = np.zeros((LATEST, dimension))
        self._Y = np.zeros((LATEST, outputs + 1))

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.past.nbytes + self._X.nbytes + self._Y.nbytes

    def add(self, x: Array, y: Array, odd: bool) -> None:
        """Take in one sample."""
        marked = np.append(y, float(odd))
        self.past.add(x[None], marked[None])
        self._X[self.seen % LATEST], self._Y[self.seen % LATEST] = x, marked
        self.seen += 1

    def latest(self, since: int) -> Samples:
        """Return the latest samples from a position on, as far as they are kept."""
        positions = np.arange(max(since, self.seen - LATEST, 0), self.seen)
        places = positions % LATEST
        return Samples(
            self._X[places], self._Y[places, :-1], positions, self._Y[places, -1].astype(bool)
        )

    def all(self) -> Samples:
        """Return all that is kept, each sample once."""
        recent = self.latest(0)
        first = recent.positions[0] if len(recent.positions) else 0
        older = np.flatnonzero(self.past.positions < first)
        older = older[np.argsort(self.past.positions[older])]
        marked = self.past.targets[older]
        return Samples(
            np.vstack([self.past.inputs[older], recent.X]),
            np.vstack([marked[:, :-1], recent.Y]),
            np.append(self.past.positions[older], recent.positions),
            np.append(marked[:, -1].astype(bool), recent.odd),
        )

    def state(self) -> dict[str, Any]:
        """Return the state, as arrays and numbers."""
        recent = self.latest(0)
        marked = np.column_stack([recent.Y, recent.odd])
        return {**self.past.state(), "latest_inputs": recent.X, "latest_targets": marked}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what `state` returned."""
        self.past.restore(state)
        self.seen = self.past.seen
        X, Y = state["latest_inputs"], state["latest_targets"]
        count = min(self.seen, LATEST)
        if X.shape != (count, self._X.shape[1]) or Y.shape != (count, self._Y.shape[1]):
            raise ValueError(f"latest samples of shapes {X.shape} and {Y.shape}")
        places = np.arange(self.seen - count, self.seen) % LATEST
        self._X[places], self._Y[places] = X, Y
