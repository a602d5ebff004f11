"""A bounded, unbiased sample of a stream: every sample is in it with the same probability."""

from typing import Any

import numpy as np

from pogp.arrays import Array, Indices

BLOCK = 512
"""Random numbers are drawn for so many positions of the stream at once."""


class Reservoir:
    """Reservoir sampling (Vitter 1985, algorithm R) of inputs and targets.

    The draw for a sample depends on the seed and on its position in the stream alone, so that a
    batch, a copy and a reloaded model draw alike without any state of a generator.
    """

    def __init__(self, capacity: int, dimension: int, outputs: int, seed: int) -> None:
        self.seed = seed
        self.seen = 0
        self._prepare(capacity, dimension, outputs)

    def _prepare(self, capacity: int, dimension: int, outputs: int) -> None:
        self.capacity = capacity
        self._inputs = np.zeros((capacity, dimension))
        self._targets = np.zeros((capacity, outputs))
        self._positions = np.zeros(capacity, dtype=np.int64)
        self._block = -1
        self._places: dict[int, int] = {}

    def __len__(self) -> int:
        return min(self.seen, self.capacity)

    @property
    def inputs(self) -> Array:
        """The inputs of the drawn samples, (n, p)."""
        return self._inputs[: len(self)]

    @property
    def targets(self) -> Array:
        """Their targets, (n, k)."""
        return self._targets[: len(self)]

    @property
    def positions(self) -> Indices:
        """Their positions in the stream."""
        return self._positions[: len(self)]

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        held = (self._inputs, self._targets, self._positions)
        return sum(part.nbytes for part in held) + 8 * BLOCK  # what a block draws

    def add(self, X: Array, Y: Array) -> None:
        """Add samples, in order."""
        start, stop = self.seen, self.seen + len(Y)
        for block in range(start // BLOCK, -(-stop // BLOCK)):
            for position, place in self._places_in(block).items():
                if start <= position < stop:
                    self._put(place, X[position - start], Y[position - start], position)
        self.seen = stop

    def add_one(self, X: Array, Y: Array, row: int) -> None:
        """Add one row of the samples."""
        seen = self.seen
        places = self._places if seen // BLOCK == self._block else self._places_in(seen // BLOCK)
        if (place := places.get(seen)) is not None:
            self._put(place, X[row], Y[row], seen)
        self.seen = seen + 1

    def _put(self, place: int | slice, x: Array, y: Array, position: int | Indices) -> None:
        self._inputs[place], self._targets[place] = x, y
        self._positions[place] = position

    def _places_in(self, block: int) -> dict[int, int]:
        """Return which positions of a block are drawn, and their slots."""
        if block != self._block:
            # other numbers than those of default_rng(seed), by which a stream may have been made
            seeds = np.random.SeedSequence(self.seed, spawn_key=(1,))
            generator = np.random.Generator(np.random.PCG64(seeds).advance(block * BLOCK))
            positions = np.arange(block * BLOCK, (block + 1) * BLOCK)
            drawn = (generator.random(BLOCK) * (positions + 1)).astype(np.int64)
            places = np.where(positions < self.capacity, positions, drawn)
            taken = places < self.capacity
            pairs = zip(positions[taken].tolist(), places[taken].tolist(), strict=True)
            self._block, self._places = block, dict(pairs)
        return self._places

    def join(self, other: "Reservoir") -> None:
        """Become a sample of both streams, the other one after this one.

        Its capacity is then the lesser of both: more cannot be drawn without bias.
        """
        total = self.seen + other.seen
        rng = np.random.default_rng([self.seed, self.seen, other.seen])
        capacity = min(self.capacity, other.capacity)
        size = min(capacity, total)
        mine = _drawn(rng, self.seen, other.seen, size)
        ours = rng.permutation(len(self))[:mine]
        theirs = rng.permutation(len(other))[: size - mine]
        inputs = np.vstack([self.inputs[ours], other.inputs[theirs]])
        targets = np.vstack([self.targets[ours], other.targets[theirs]])
        positions = np.append(self.positions[ours], other.positions[theirs] + self.seen)
        if capacity < self.capacity:
            self._prepare(capacity, inputs.shape[1], targets.shape[1])
        self._put(slice(size), inputs, targets, positions)
        self.seen = total

    def state(self) -> dict[str, Any]:
        """Return the state, as arrays and numbers."""
        return {
            "reservoir_inputs": self.inputs.copy(),
            "reservoir_targets": self.targets.copy(),
            "reservoir_positions": self.positions.copy(),
            "reservoir_seen": self.seen,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned, with its capacity if that is less."""
        self.seen = int(state["reservoir_seen"])
        parts = [state[f"reservoir_{name}"] for name in ("inputs", "targets", "positions")]
        if (held := parts[-1].size) < len(self):
            self._prepare(held, self._inputs.shape[1], self._targets.shape[1])
        shapes = [self.inputs.shape, self.targets.shape, self.positions.shape]
        if [part.shape for part in parts] != shapes:
            raise ValueError(f"reservoir of shapes {[part.shape for part in parts]}, not {shapes}")
        self._put(slice(len(self)), *parts)


def _drawn(rng: np.random.Generator, ours: int, theirs: int, draws: int) -> int:
    """Return a hypergeometric draw; that of NumPy is limited to 10⁹."""
    mine = 0
    for taken, chance in enumerate(rng.random(draws)):
        mine += chance * (ours + theirs - taken) < ours - mine
    return mine
