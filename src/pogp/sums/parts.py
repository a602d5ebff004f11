"""Sums over a part of a table, for fixed points, and their total."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from pogp.arrays import Array
from pogp.errors import FormatError
from pogp.files import container

SCHEMA = 1
ARRAYS = ("gram", "vector", "squares", "slack", "weight")


class Addable(Protocol):
    """Objects that can be added."""

    def __add__(self, other: Self, /) -> Self:
        """Return the sum."""


T = TypeVar("T", bound=Addable)


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over rows, for the points of one plan; `a + b` are those of both parts together.

    With LLᵀ = κ(Z, Z) and f = L⁻¹κ(Z, x), each row has the weight ω = weight · σ²/noise, which is
    one unless the row has its own weight or noise variance, or is an outlier (`Plan.sample`).
    """

    plan: str
    """The fingerprint of the plan."""
    gram: Array
    """Σω ffᵀ, the upper triangle row by row, (M(M + 1)/2,)."""
    vector: Array
    """Σω f(y − mean), (M, k)."""
    squares: Array
    """Σω (y − mean)², (k,)."""
    slack: Array
    """Σω (κ(x, x) − fᵀf): what the points leave open, ()."""
    weight: Array
    """Σω, ()."""
    count: int
    """The number of rows."""
    skipped: int = 0
    """The number of rows that were left out because a value was missing or not finite."""

    def __repr__(self) -> str:
        return f"<Sums: {self.count:,} rows, {self.skipped:,} skipped, of plan {self.plan}>"

    def __add__(self, other: Sums) -> Sums:
        if not isinstance(other, Sums):
            return NotImplemented
        if other.plan != self.plan:
            raise ValueError(
                f"sums of two plans cannot be added: {self.plan[:12]}… and {other.plan[:12]}…"
            )
        names = (*ARRAYS, "count", "skipped")
        both: dict[str, Any] = {name: getattr(self, name) + getattr(other, name) for name in names}
        both |= {name: np.asarray(both[name]) for name in ("slack", "weight")}
        return replace(self, **both)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(getattr(self, name).nbytes for name in ARRAYS)

    def to_bytes(self) -> bytes:
        """Return the sums as bytes; equal sums give equal bytes."""
        header: dict[str, container.JSON] = {
            "schema": SCHEMA,
            "kind": "sums",
            "plan": self.plan,
            "count": self.count,
            "skipped": self.skipped,
        }
        arrays = {name: getattr(self, name) for name in ARRAYS}
        return b"".join(container.encode(header, arrays))

    @classmethod
    def from_bytes(cls, data: bytes) -> Sums:
        """Return the sums that `to_bytes` wrote; FormatError if the bytes are damaged."""
        header, arrays = decoded(data, "sums", SCHEMA)
        try:
            gram, vector, squares, slack, weight = (arrays[name] for name in ARRAYS)
            counts = _counted(header["count"]), _counted(header["skipped"])
            size, outputs = vector.shape
            shapes = [(size * (size + 1) // 2,), (size, outputs), (outputs,), (), ()]
        except (KeyError, ValueError, TypeError) as error:
            raise FormatError(f"the bytes are not sums: {error!r}") from error
        for name, shape in zip(ARRAYS, shapes, strict=True):
            if arrays[name].shape != shape or not np.isfinite(arrays[name]).all():
                raise FormatError(f"the bytes are not sums: {name} is not finite and of {shape}")
        return cls(str(header["plan"]), gram, vector, squares, slack, weight, *counts)


def total(parts: Iterable[Sums] | Mapping[int, Sums]) -> Sums:
    """Return the sums of all parts, added in a fixed tree by the number of the part.

    Floating-point addition depends on its order. Here neighbours are added, then neighbouring
    pairs, and so on, so that the same parts always give the same bits. Parts that were already
    added in aligned groups of 2, 4, 8, … give those bits too. `parts` is in order, or maps
    numbers to parts.
    """
    if isinstance(parts, Mapping):
        parts = [parts[number] for number in sorted(parts)]
    return in_tree(list(parts))


def in_tree(parts: list[T]) -> T:
    """Return the sum of some things, neighbours first."""
    if not parts:
        raise ValueError("there is nothing to add: parts is empty")
    while len(parts) > 1:
        paired = [a + b for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = paired + parts[2 * len(paired) :]
    return parts[0]


def decoded(data: bytes, kind: str, schema: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the header and the arrays of bytes of one kind, or raise FormatError."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise ValueError(f"data must be bytes, as to_bytes() returns, got {data!r:.100}")
    header, arrays = container.decode(bytes(data))
    if header.get("kind") != kind:
        raise FormatError(f"the bytes hold {header.get('kind', 'something else')!r}, not a {kind}")
    if header.get("schema") != schema:
        raise FormatError(
            f"the {kind} is of schema {header.get('schema')!r}; this pogp reads {schema}"
        )
    return header, arrays


def _counted(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{value!r} is not a count")
    return value
