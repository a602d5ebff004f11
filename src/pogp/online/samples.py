"""Raw samples kept for tuning: a uniform draw from the whole stream, and the latest ones."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pogp.arrays import Array, Indices
from pogp.online import arithmetic_core
from pogp.online.prediction import GapEffect
from pogp.reservoir import Reservoir

Mask: TypeAlias = NDArray[np.bool_]

PAST, LATEST = 1000, 1000
"""The number of samples of each kind."""
STOPPED_AFTER = 30
"""A target is stopped if it equals each of so many targets before it."""


class Samples(NamedTuple):
    """Samples in stream order."""

    X: Array
    Y: Array
    positions: Indices
    outliers: Mask
    """Which samples were treated as outliers."""
    extra: Array
    """(n, k), the variance of each sample in addition to the noise."""
    weights: Array
    """The noise variance of the stream over that of the sample; 0 for targets that were stuck."""
    shift: Array
    """(n, k), the change of the expected target due to missing inputs."""

    def select(self, chosen: Mask | Indices) -> Samples:
        """Return the chosen samples."""
        return self._replace(**{name: each[chosen] for name, each in self._asdict().items()})

    @property
    def targets_at_inputs(self) -> Array:
        """The targets that are expected where the inputs are exactly the imputed ones."""
        return self.Y - self.shift

    @property
    def stopped(self) -> Mask:
        """Which samples have a stopped target, as far as the samples before them are here."""
        indices = np.arange(len(self.Y))
        moved = np.append(True, (self.Y[1:] != self.Y[:-1]).any(axis=1))[: len(indices)]
        return np.asarray(
            indices - np.maximum.accumulate(np.where(moved, indices, 0)) >= STOPPED_AFTER
        )

    def for_tuning(self, robust: bool) -> Samples:
        """Return the samples whose targets were not stuck; if `robust`, without outliers."""
        learned = self if (self.weights > 0).all() else self.select(self.weights > 0)
        return learned.ordinary() if robust else learned

    def ordinary(self) -> Samples:
        """Return the samples that are not outliers; all samples if fewer than 80 % would remain."""
        found = np.count_nonzero(self.outliers)
        few = found > 0 and len(self.X) - found >= 0.8 * len(self.X)
        return self.select(~self.outliers) if few else self


class SampleStore:
    """A reservoir of the past and a ring buffer of the latest samples.

    A row of `_Y` has the targets, a flag for outliers, the weight, and the extra variances and
    shifts due to missing inputs.
    """

    def __init__(self, dimension: int, outputs: int, seed: int) -> None:
        self.outputs = outputs
        self.past = Reservoir(PAST, dimension, 3 * outputs + 2, seed)
        self.seen = 0
        self._X = np.zeros((LATEST, dimension))
        self._Y = np.zeros((LATEST, 3 * outputs + 2))
        self._arithmetic = arithmetic_core()

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.past.nbytes + self._X.nbytes + self._Y.nbytes

    def add(
        self, x: Array, y: Array, outlier: bool, gaps: GapEffect | None, weight: float = 1.0
    ) -> None:
        """Add one sample."""
        index = self.seen % LATEST
        effect = (None, None) if gaps is None else (gaps.variance, gaps.shift)
        self._arithmetic.write_sample(x, y, outlier, weight, *effect, index, self._X, self._Y)
        self.past.add_one(self._X, self._Y, index)
        self.seen += 1

    def repetitions(self, y: Array, most: int) -> int:
        """Return how many samples before the next one, with targets y, have the same targets.

        Only the latest samples, at most `most`, are compared.
        """
        targets, k, count = y.tolist(), self.outputs, 0
        while count < min(most, self.seen):
            if self._Y[(self.seen - 1 - count) % LATEST, :k].tolist() != targets:
                break
            count += 1
        return count

    @property
    def last_input(self) -> Array:
        """The raw inputs of the last sample, (p,)."""
        last: Array = self._X[(self.seen - 1) % LATEST]
        return last

    def is_stopped(self, y: Array) -> bool:
        """Return whether the next sample, with targets y, is stopped."""
        return self.repetitions(y, STOPPED_AFTER) == STOPPED_AFTER

    def repetition_rate(self, y: Array, position: int) -> float:
        """Return how often a target y was followed by itself, lately but before a position.

        Rounded targets repeat by chance. If y is rare, its rate is that of all targets. Those that
        were stuck do not count.
        """
        rows = self._Y[np.arange(max(self.seen - LATEST, 0), position) % LATEST]
        Y, moving = rows[:, : self.outputs], rows[1:, self.outputs + 1] > 0.0
        repeats = (Y[1:] == Y[:-1]).all(axis=1)[moving]
        of_y = repeats[(Y[:-1] == y).all(axis=1)[moving]]
        rate = (repeats.sum() + 1.0) / (len(repeats) + 2.0)
        return float((of_y.sum() + 2.0 * rate) / (len(of_y) + 2.0))

    def latest(self, since: int, until: int | None = None) -> Samples:
        """Return the samples from position `since` to `until` that are in the ring buffer."""
        end = self.seen if until is None else min(until, self.seen)
        positions = np.arange(max(since, self.seen - LATEST, 0), end)
        indices = positions % LATEST
        return self._samples(self._X[indices], self._Y[indices], positions)

    def within_reach(self, count: int, *known: Array) -> bool:
        """Whether the latest samples are near known centres; see `arithmetic.within_reach`."""
        return bool(self._arithmetic.within_reach(self._X, self._Y, self.seen, count, *known))

    def _samples(self, X: Array, rows: Array, positions: Indices) -> Samples:
        k = self.outputs
        outliers, extra, shift = rows[:, k].astype(bool), rows[:, k + 2 :][:, :k], rows[:, -k:]
        return Samples(X, rows[:, :k], positions, outliers, extra, rows[:, k + 1], shift)

    def all(self) -> Samples:
        """Return all kept samples, each once."""
        first = max(self.seen - LATEST, 0)
        past, latest = self.past.positions, np.arange(first, self.seen)
        older, recent = np.flatnonzero(past < first), latest % LATEST
        older = older[np.argsort(past[older])]
        X = np.concatenate([self.past.inputs[older], self._X[recent]])
        rows = np.concatenate([self.past.targets[older], self._Y[recent]])
        return self._samples(X, rows, np.concatenate([past[older], latest]))

    def split(self, count: int, robust: bool) -> tuple[Samples, Samples]:
        """Return the kept samples for tuning from before a change, and so many latest ones.

        The change was found by the latest ones, and began with the first of them or earlier: as
        many in between are left out.
        """
        samples = self.all().for_tuning(robust)
        before = samples.positions < self.seen - 2 * count
        return samples.select(before), samples.select(samples.positions >= self.seen - count)

    def in_reservoir(self, samples: Samples) -> Mask:
        """Return which of the kept samples are in the uniform draw."""
        return np.isin(samples.positions, self.past.positions)

    def join(self, other: SampleStore) -> None:
        """Add the samples of another stream, as if it came after this one."""
        latest = other.latest(0)
        indices = (self.seen + latest.positions) % LATEST
        self._X[indices], self._Y[indices] = latest.X, _rows(latest)
        self.past.join(other.past)
        self.seen = self.past.seen

    def state(self) -> dict[str, Any]:
        """Return the state, as arrays and numbers."""
        latest, past = self.latest(0), self.past.state()
        rows, drawn = _rows(latest), past["reservoir_targets"]
        for width in self._earlier_widths:
            usual = self._usual[width:]
            if (rows[:, width:] == usual).all() and (drawn[:, width:] == usual).all():
                rows, past["reservoir_targets"] = rows[:, :width].copy(), drawn[:, :width].copy()
                break
        return {**past, "latest_inputs": latest.X, "latest_targets": rows}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
        past = {**state, "reservoir_targets": self._widened(state["reservoir_targets"])}
        self.past.restore(past)
        self.seen = self.past.seen
        X, Y = state["latest_inputs"], self._widened(state["latest_targets"])
        count = min(self.seen, LATEST)
        if X.shape != (count, self._X.shape[1]) or Y.shape != (count, self._Y.shape[1]):
            raise ValueError(f"latest samples of shapes {X.shape} and {Y.shape}")
        indices = np.arange(self.seen - count, self.seen) % LATEST
        self._X[indices], self._Y[indices] = X, Y

    @property
    def _earlier_widths(self) -> tuple[int, int]:
        """The columns of files without weights and extra variances, and of those without shifts."""
        return self.outputs + 1, 2 * self.outputs + 2

    @property
    def _usual(self) -> Array:
        """A row without anything unusual; its first columns, the targets, are zero."""
        row = np.zeros(self._Y.shape[1])
        row[self.outputs + 1] = 1.0
        return row

    def _widened(self, rows: Array) -> Array:
        """Return rows with all columns; those that a file does not have are as usual."""
        if rows.ndim != 2 or rows.shape[1] not in self._earlier_widths:
            return rows
        missing = self._usual[rows.shape[1] :]
        return np.column_stack([rows, np.tile(missing, (len(rows), 1))])


def _rows(samples: Samples) -> Array:
    """Return samples in the columns of `_Y`."""
    marks = (samples.outliers, samples.weights, samples.extra, samples.shift)
    return np.column_stack([samples.Y, *marks])
