"""A uniform sample of a table in many parts, by random keys: the rows with the smallest keys."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pogp.arrays import Array
from pogp.errors import FormatError
from pogp.files import container
from pogp.sums.parts import decoded
from pogp.sums.rows import Checker, blocks

SCHEMA = 1
ARRAYS = ("keys", "inputs", "targets")
KEYS = 1
"""What follows seed and part in the seed of the keys: zeros there would change nothing."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """The rows of some parts that have the smallest keys, at most `size`; `a + b` is of both.

    The key of a row depends on the seed, the number of its part and its position there, so that a
    part that is drawn from again gives the same rows.
    """

    size: int
    keys: Array
    """In order, (n,)."""
    inputs: Array
    targets: Array
    """(n, k)."""
    flat: bool

    def __add__(self, other: Drawn) -> Drawn:
        if not isinstance(other, Drawn):
            return NotImplemented
        if not len(self.keys):
            return other
        if not len(other.keys):
            return self
        if (self.inputs.shape[1], self.targets.shape[1], self.flat) != (
            other.inputs.shape[1],
            other.targets.shape[1],
            other.flat,
        ):
            raise ValueError(
                f"parts differ: {self.inputs.shape[1]} and {other.inputs.shape[1]} inputs, "
                f"{self.targets.shape[1]} and {other.targets.shape[1]} outputs"
            )
        keys = np.append(self.keys, other.keys)
        inputs, targets = (
            np.vstack([getattr(self, name), getattr(other, name)]) for name in ARRAYS[1:]
        )
        return _smallest(self.size, keys, inputs, targets, self.flat)

    def divided(self, first: int) -> tuple[tuple[Array, Array], tuple[Array, Array] | None]:
        """Return the first rows, (X, y), and the others, None if there are no others.

        If there are fewer than twice as many rows as wanted, the first two thirds are taken.
        """
        count = len(self.keys)
        if count < 2:
            raise ValueError(f"the table must have at least 2 usable rows, got {count}")
        cut = min(first, max(2 * count // 3, 2))
        y = self.targets[:, 0] if self.flat else self.targets
        rest = (self.inputs[cut:], y[cut:]) if count > cut else None
        return (self.inputs[:cut], y[:cut]), rest

    def to_bytes(self) -> bytes:
        """Return the rows as bytes."""
        header: dict[str, container.JSON] = {
            "schema": SCHEMA,
            "kind": "sample",
            "size": self.size,
            "flat": self.flat,
        }
        return b"".join(container.encode(header, {name: getattr(self, name) for name in ARRAYS}))

    @classmethod
    def from_bytes(cls, data: bytes) -> Drawn:
        """Return the rows that `to_bytes` wrote; FormatError if the bytes are damaged."""
        header, arrays = decoded(data, "sample", SCHEMA)
        try:
            keys, inputs, targets = (arrays[name] for name in ARRAYS)
            if not len(keys) == len(inputs) == len(targets) or inputs.ndim != 2 != targets.ndim:
                raise ValueError(f"shapes {keys.shape}, {inputs.shape} and {targets.shape}")
            return cls(int(header["size"]), keys, inputs, targets, bool(header["flat"]))
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(f"the bytes are not a sample: {error}") from error


def draw(
    batches: Iterable[Any],
    size: int,
    *,
    dimension: int,
    target: tuple[int, ...] = (),
    seed: int = 0,
    part: int = 0,
    skip: bool = False,
    where: str = "",
) -> Drawn:
    """Return a uniform sample of the rows of one part, without replacement, in one pass.

    `batches`, `skip` and `where` are as in `Plan.sums`; `target` is the shape of one target.
    """
    checker = Checker(dimension, target, 1.0, skip, where)
    # other numbers than those of default_rng(seed), by which a table may have been made
    rng = np.random.default_rng([seed, part, KEYS])
    outputs = target[0] if target else 1
    nothing = np.empty((0, dimension)), np.empty((0, outputs))
    drawn = Drawn(size, np.empty(0), *nothing, target == ())
    for rows in blocks(batches, checker):
        keys = rng.random(len(rows))
        if len(drawn.keys) == size:  # nothing beyond the largest key held can enter
            near = keys < drawn.keys[-1]
            drawn += _smallest(size, keys[near], rows.X[near], rows.Y[near], target == ())
        else:
            drawn += _smallest(size, keys, rows.X, rows.Y, target == ())
    return drawn


def _smallest(size: int, keys: Array, inputs: Array, targets: Array, flat: bool) -> Drawn:
    order = np.argsort(keys, kind="stable")[:size]
    return Drawn(size, keys[order], inputs[order], targets[order], flat)
