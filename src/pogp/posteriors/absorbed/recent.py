"""The latest samples, from which new points learn (mathematics.md §4, new points)."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from pogp.arrays import Array, Indices
from pogp.posteriors.slots import check_shapes

PER_POINT = 2
"""Samples kept for each point. More would lower the error and cost more."""
MOST = 1000
"""The largest number of samples kept."""
NAMES = ("inputs", "targets", "noises", "arrivals")


@dataclass(frozen=True)
class Recent:
    """The latest samples that were novel when they arrived, the oldest first."""

    inputs: Array
    targets: Array
    """Without the prior mean, (n, k)."""
    noises: Array
    arrivals: Indices

    @classmethod
    def empty(cls, dimension: int, outputs: int) -> Self:
        """Return no samples."""
        arrivals = np.empty(0, dtype=np.int64)
        return cls(np.empty((0, dimension)), np.empty((0, outputs)), np.empty(0), arrivals)

    def __len__(self) -> int:
        return len(self.arrivals)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(int(getattr(self, name).nbytes) for name in NAMES)

    def appended(self, x: Array, y: Array, noise: float, arrival: int) -> "Recent":
        """Return these samples and one more."""
        return Recent(
            np.vstack([self.inputs, x]),
            np.vstack([self.targets, y]),
            np.append(self.noises, noise),
            np.append(self.arrivals, arrival),
        )

    def truncated(self, points: int) -> "Recent":
        """Return the latest of these, as many as are kept for so many points."""
        return Recent(*(getattr(self, name)[-most_for(points) :] for name in NAMES))

    def without(self, arrivals: Indices) -> "Recent":
        """Return the samples that are not points themselves."""
        rest = ~np.isin(self.arrivals, arrivals)
        return Recent(*(getattr(self, name)[rest] for name in NAMES))

    def state(self) -> dict[str, Any]:
        """Return the samples by name."""
        return {f"recent_{name}": getattr(self, name).copy() for name in NAMES}


def most_for(points: int) -> int:
    """Return how many samples are kept for so many points."""
    return max(min(PER_POINT * points, MOST), 1)


def recent_of(state: dict[str, Any], dimension: int, outputs: int) -> Recent:
    """Return the samples of a state, possibly from a file; files of earlier versions have none."""
    if "recent_arrivals" not in state:
        return Recent.empty(dimension, outputs)
    count, most = len(state["recent_arrivals"]), most_for(len(state["arrivals"]))
    if count > most:
        raise ValueError(f"there must be no more than {most} recent samples, got {count}")
    shapes = ((count, dimension), (count, outputs), (count,), (count,))
    found = {name: state[f"recent_{name}"] for name in NAMES}
    check_shapes(found, dict(zip(NAMES, shapes, strict=True)))
    finite = all(np.isfinite(found[name]).all() for name in NAMES)
    if not finite or not (found["noises"] > 0).all():
        raise ValueError("recent samples must be finite, and their noises positive")
    return Recent(*(np.array(found[name], order="C") for name in NAMES))
