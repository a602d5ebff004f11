"""Slots of both posteriors: choose the cheapest one, check and unpack saved states.

If two removals are equally cheap, the oldest point is removed. Costs that are mathematically equal,
such as those of a repeated input, differ by rounding, and not in the same way in both
implementations. The tolerances below are well above rounding and too small to matter.
"""

from math import sqrt
from typing import Any

import numpy as np

from pogp.arrays import Array, Indices

TIE = 1e-7
"""Costs this close, relatively, are equal."""
TIE_DISTANCE = 1e-11
"""Costs are squares of distances, whose rounding does not shrink with them: distances that differ
by no more than this are equal."""
MAX_DEFERRED = 32
"""The largest number of updates that a compiled symmetric matrix defers (`symmetric.pyx`)."""
DEFERRED_ROOM = 64
"""The same while a block of samples is learned, and for P of the retained posterior."""
BLOCK = 32
"""The number of samples in a block."""
BLOCKS_FROM = 160
"""The number of points from which on the absorbed posterior learns in blocks."""
IN_PLACE_SAMPLES = 64
"""The number of samples that the absorbed posterior learns while predictions and Ctrl-C wait."""
SAFE_MAGNITUDE = 1e50
"""Targets and prior variances up to this, and noises from its inverse on, cannot overflow."""


def tie_width(lowest: float) -> float:
    """Return by how much a cost may exceed the lowest one and still count as equal."""
    return TIE * abs(lowest) + TIE_DISTANCE * (2 * sqrt(max(lowest, 0.0)) + TIE_DISTANCE)


def cheapest(costs: Array, arrivals: Indices) -> int:
    """Return the slot that costs least; among equally cheap ones, the oldest."""
    lowest = np.fmin.reduce(costs, initial=np.inf)  # NaN is no cost
    tied = np.flatnonzero(costs <= lowest + tie_width(lowest))
    return int(tied[np.argmin(arrivals[tied])]) if len(tied) else int(np.argmin(arrivals))


def without(j: int, size: int) -> Indices:
    """Return the slots that are left without slot j; the last one takes its place."""
    order = np.arange(size - 1)
    order[j:][:1] = size - 1
    return order


def with_slot(array: Array, *axes: int) -> Array:
    """Return the array with one more slot along these axes, which holds zeros."""
    wider = np.zeros([count + (axis in axes) for axis, count in enumerate(array.shape)])
    wider[tuple(map(slice, array.shape))] = array
    return wider


def bordered(matrix: Array, edge: Array, corner: float) -> Array:
    """Return the symmetric matrix with one more slot."""
    wider = with_slot(matrix, 0, 1)
    wider[-1, :-1] = wider[:-1, -1] = edge
    wider[-1, -1] = corner
    return wider


def slot_of(arrival: int, arrivals: Indices) -> int:
    """Return the slot of the sample that arrived at this position of the stream."""
    slots = np.flatnonzero(arrivals == arrival)
    if len(slots) == 0:
        raise ValueError(f"sample {arrival!r} is not retained; see .indices for those that are")
    return int(slots[0])


def not_finite(arrival: int, y: float) -> str:
    """Return what is wrong with a sample that cannot be learned."""
    return (
        f"sample {arrival} of the stream, with y = {y:g}, would leave numbers in the model that "
        "are not finite; nothing of this call was learned"
    )


def check_shapes(state: dict[str, Any], shapes: dict[str, tuple[int, ...]]) -> dict[str, Any]:
    """Return the state if its arrays are of these shapes: arrivals int64, all others float64."""
    for name, shape in shapes.items():
        expected = np.int64 if name == "arrivals" else np.float64
        if state[name].shape != shape or state[name].dtype != expected:
            raise ValueError(
                f"{name} must be {expected.__name__} of shape {shape}, "
                f"got {state[name].dtype} of shape {state[name].shape}"
            )
    return state


def packed(matrix: Array) -> Array:
    """Return the upper triangle of a matrix, row by row."""
    return np.concatenate([row[i:] for i, row in enumerate(matrix)] or [np.empty(0)])


def symmetric(packed: Array, size: int) -> Array:
    """Return the symmetric matrix whose upper triangle is given, row by row."""
    full = np.zeros((size, size))
    full[np.triu_indices(size)] = packed
    return full + np.triu(full, 1).T
