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
    weights: Array
    """One over a sample's noise variance, in units of the others'."""

    def where(self, chosen: Mask | Indices) -> Samples:
        """Return some of them."""
        X, Y, positions, odd, weights = self
        return Samples(X[chosen], Y[chosen], positions[chosen], odd[chosen], weights[chosen])


MARKS = 2
"""Columns beside the targets: whether a sample is an outlier, and its weight."""


class Rows:
    """A reservoir and a ring of samples, with their marks beside the targets."""

    def __init__(self, dimension: int, outputs: int, seed: int) -> None:
        self.past = Reservoir(PAST, dimension, outputs + MARKS, seed)
        self.seen = 0
        self._X = np.zeros((LATEST, dimension))
        self._Y = np.zeros((LATEST, outputs + MARKS))

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.past.nbytes + self._X.nbytes + self._Y.nbytes

    def add(self, x: Array, y: Array, odd: bool, weight: float = 1.0) -> None:
        """Take in one sample."""
        marked = np.append(y, (float(odd), weight))
        self.past.add(x[None], marked[None])
        self._X[self.seen % LATEST], self._Y[self.seen % LATEST] = x, marked
        self.seen += 1

    def latest(self, since: int) -> Samples:
        """Return the latest samples from a position on, as far as they are kept."""
        positions = np.arange(max(since, self.seen - LATEST, 0), self.seen)
        places = positions % LATEST
        return _samples(self._X[places], self._Y[places], positions)

    def all(self) -> Samples:
        """Return all that is kept, each sample once."""
        recent = self.latest(0)
        first = recent.positions[0] if len(recent.positions) else 0
        older = np.flatnonzero(self.past.positions < first)
        older = older[np.argsort(self.past.positions[older])]
        held = self.past
        past = _samples(held.inputs[older], held.targets[older], held.positions[older])
        return Samples(
            np.vstack([past.X, recent.X]),
            np.vstack([past.Y, recent.Y]),
            np.append(past.positions, recent.positions),
            np.append(past.odd, recent.odd),
            np.append(past.weights, recent.weights),
        )

    def state(self) -> dict[str, Any]:
        """Return the state, as arrays and numbers."""
        recent = self.latest(0)
        marked, past = np.column_stack([recent.Y, recent.odd, recent.weights]), self.past.state()
        held = past["reservoir_targets"]
        if (marked[:, -1] == 1).all() and (held[:, -1] == 1).all():
            # as in files from before there were weights
            marked, past["reservoir_targets"] = marked[:, :-1].copy(), held[:, :-1].copy()
        return {**past, "latest_inputs": recent.X, "latest_targets": marked}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what `state` returned."""
        columns = self._Y.shape[1]
        held = _weighed(state["reservoir_targets"], columns)
        self.past.restore({**state, "reservoir_targets": held})
        self.seen = self.past.seen
        X, Y = state["latest_inputs"], _weighed(state["latest_targets"], columns)
        count = min(self.seen, LATEST)
        if X.shape != (count, self._X.shape[1]) or Y.shape != (count, self._Y.shape[1]):
            raise ValueError(f"latest samples of shapes {X.shape} and {Y.shape}")
        places = np.arange(self.seen - count, self.seen) % LATEST
        self._X[places], self._Y[places] = X, Y


def _samples(X: Array, marked: Array, positions: Indices) -> Samples:
    odd, weights = marked[:, -MARKS].astype(bool), marked[:, 1 - MARKS]
    return Samples(X, marked[:, :-MARKS], positions, odd, weights)


def _weighed(marked: Array, columns: int) -> Array:
    """Return targets with their marks; in files from before there were weights all are one."""
    if marked.ndim == 2 and marked.shape[1] == columns - 1:
        return np.column_stack([marked, np.ones(len(marked))])
    return marked
