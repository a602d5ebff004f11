"""Raw samples kept to tune by: a uniform draw of the past, and the latest ones."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pogp.arrays import Array, Indices
from pogp.online import mixing_core
from pogp.reservoir import Reservoir

Mask: TypeAlias = NDArray[np.bool_]

PAST, LATEST = 1000, 1000
"""How many of each."""
REST = 30
"""A target that is exactly what each of so many before it were is at rest."""


class Samples(NamedTuple):
    """Samples in the order of the stream."""

    X: Array
    Y: Array
    positions: Indices
    odd: Mask
    """Whether a sample was taken for an outlier."""
    extra: Array
    """(n, k), the variance of its own that a sample has beside the noise."""
    weights: Array
    """One over a sample's noise variance, in units of the others'."""

    def where(self, chosen: Mask | Indices) -> Samples:
        """Return some of them."""
        X, Y, positions, odd, extra, weights = self
        return Samples(
            X[chosen], Y[chosen], positions[chosen], odd[chosen], extra[chosen], weights[chosen]
        )

    @property
    def still(self) -> Mask:
        """Which of them are at rest, by those that are here."""
        places = np.arange(len(self.Y))
        moved = np.append(True, (self.Y[1:] != self.Y[:-1]).any(axis=1))[: len(places)]
        return np.asarray(places - np.maximum.accumulate(np.where(moved, places, 0)) >= REST)

    def ordinary(self) -> Samples:
        """Return those that are no outliers, or all where that would leave too few."""
        return self.where(~self.odd) if len(self.X) and np.mean(~self.odd) >= 0.8 else self


class Rows:
    """A reservoir and a ring of samples.

    Beside its targets each has a mark for outliers, its weight and its extra variances.
    """

    def __init__(self, dimension: int, outputs: int, seed: int) -> None:
        self.outputs = outputs
        self.past = Reservoir(PAST, dimension, 2 * outputs + 2, seed)
        self.seen = 0
        self._X = np.zeros((LATEST, dimension))
        self._Y = np.zeros((LATEST, 2 * outputs + 2))
        self._mixing = mixing_core()

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.past.nbytes + self._X.nbytes + self._Y.nbytes

    def add(self, x: Array, y: Array, odd: bool, extra: Array | None, weight: float = 1.0) -> None:
        """Take in one sample."""
        place = self.seen % LATEST
        self._mixing.keep(x, y, odd, weight, extra, place, self._X, self._Y)
        self.past.add_one(self._X, self._Y, place)
        self.seen += 1

    def still(self, y: Array) -> bool:
        """Return whether the next sample is at rest, if its targets are y."""
        if self.seen < REST or self._Y[(self.seen - 1) % LATEST, 0] != y[0]:
            return False
        return bool((y == self.latest(self.seen - REST).Y).all())

    def latest(self, since: int, until: int | None = None) -> Samples:
        """Return the latest samples from a position on, as far as they are kept.

        Those before `until`, if that is given.
        """
        end = self.seen if until is None else min(until, self.seen)
        positions = np.arange(max(since, self.seen - LATEST, 0), end)
        places = positions % LATEST
        return self._samples(self._X[places], self._Y[places], positions)

    def near(self, count: int, *around: Array) -> bool:
        """Whether so many latest samples are near centres; see `mixing.near`."""
        return bool(self._mixing.near(self._X, self._Y, self.seen, count, *around))

    def _samples(self, X: Array, marked: Array, positions: Indices) -> Samples:
        k = self.outputs
        odd = marked[:, k].astype(bool)
        return Samples(X, marked[:, :k], positions, odd, marked[:, k + 2 :], marked[:, k + 1])

    def all(self) -> Samples:
        """Return all that is kept, each sample once."""
        recent = self.latest(0)
        first = recent.positions[0] if len(recent.positions) else 0
        older = np.flatnonzero(self.past.positions < first)
        older = older[np.argsort(self.past.positions[older])]
        past = self._samples(
            self.past.inputs[older], self.past.targets[older], self.past.positions[older]
        )
        return Samples(*(np.concatenate(both) for both in zip(past, recent, strict=True)))

    def drawn(self, samples: Samples) -> Mask:
        """Return which of the samples that are kept are in the uniform draw of the past."""
        return np.isin(samples.positions, self.past.positions)

    def join(self, other: Rows) -> None:
        """Become what is kept of both streams, the other after this one."""
        latest = other.latest(0)
        marked = np.column_stack([latest.Y, latest.odd, latest.weights, latest.extra])
        places = (self.seen + latest.positions) % LATEST
        self._X[places], self._Y[places] = latest.X, marked
        self.past.join(other.past)
        self.seen = self.past.seen

    def state(self) -> dict[str, Any]:
        """Return the state, as arrays and numbers."""
        recent, past, plain = self.latest(0), self.past.state(), self.outputs + 1
        marked = np.column_stack([recent.Y, recent.odd, recent.weights, recent.extra])
        held, usual = past["reservoir_targets"], np.append(1.0, np.zeros(self.outputs))
        if (marked[:, plain:] == usual).all() and (held[:, plain:] == usual).all():
            # as in files from before there were weights and extra variances
            marked, past["reservoir_targets"] = marked[:, :plain].copy(), held[:, :plain].copy()
        return {**past, "latest_inputs": recent.X, "latest_targets": marked}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what `state` returned."""
        past = {**state, "reservoir_targets": self._widened(state["reservoir_targets"])}
        self.past.restore(past)
        self.seen = self.past.seen
        X, Y = state["latest_inputs"], self._widened(state["latest_targets"])
        count = min(self.seen, LATEST)
        if X.shape != (count, self._X.shape[1]) or Y.shape != (count, self._Y.shape[1]):
            raise ValueError(f"latest samples of shapes {X.shape} and {Y.shape}")
        places = np.arange(self.seen - count, self.seen) % LATEST
        self._X[places], self._Y[places] = X, Y

    def _widened(self, marked: Array) -> Array:
        """Return targets with weights and extra variances, which older files do not have."""
        if marked.ndim != 2 or marked.shape[1] != self.outputs + 1:
            return marked
        count = len(marked)
        return np.column_stack([marked, np.ones(count), np.zeros((count, self.outputs))])
