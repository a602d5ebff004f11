"""Comparisons of the latest samples with those on which the scales were found."""

from __future__ import annotations

import numpy as np

from pogp.arrays import Array, Indices
from pogp.online.samples import Samples, SampleStore
from pogp.online.scales import Scales

WIDER, AWAY = 3.0, 5.0
"""Targets have changed if they vary this many times as widely as known, or if half of them are this
many deviations away."""


def started_moving(X: Array, Y: Array) -> bool:
    """Whether half of the values of a target that was constant differ, and an input varies."""
    moved = np.mean(np.abs(Y - np.median(Y, axis=0)) > 0, axis=0) >= 0.5
    return bool(moved.any()) and Scales.of(X, Y).usable


def unchanged(samples: SampleStore, count: int, scales: Scales) -> bool:
    """Whether a quick test of the latest samples, without outliers, excludes any change.

    This is nearly always the case: no target is so far away that the deviation could have grown by
    the factor `WIDER`, and no input is outside its range for half of the samples.
    """
    known = (scales.centre, scales.reach, scales.target_centre, WIDER * scales.target_deviation)
    return samples.within_reach(count, *known)


def targets_changed(Y: Array, scales: Scales) -> bool:
    """Whether an output varies far more widely than known, or half of it is far away."""
    known = scales.target_deviation
    away = np.mean(np.abs(Y - scales.target_centre) > AWAY * scales.unit, axis=0) >= 0.5
    wide = Y.std(axis=0) > WIDER * known
    if wide.any():  # but not because of a few targets
        typical = 1.48 * np.median(np.abs(Y - np.median(Y, axis=0)), axis=0)
        wide &= typical > WIDER * known
    return bool((wide | (away & (known > 0))).any())


def inputs_outside(X: Array, scales: Scales) -> Indices:
    """Return the columns of which at least half of the values are outside the known range."""
    outside = np.abs(X - scales.centre) > scales.reach
    return np.flatnonzero(2 * outside.sum(axis=0) >= len(X))


def targets_new(before: Samples, latest: Samples) -> bool:
    """Whether the latest targets have changed beside all those before.

    The scales in force may be of a short part of a path, to which the targets have come back.
    """
    return len(before.X) == 0 or targets_changed(latest.Y, Scales.of(before.X, before.Y))


def inputs_new(before: Samples, latest: Samples) -> bool:
    """Whether all latest values of an input are outside the range of those before.

    The input may then explain what looks like a change of the function, as that of a new product.
    """
    if not len(before.X) or not len(latest.X):
        return False
    below = latest.X.max(axis=0) < before.X.min(axis=0)
    above = latest.X.min(axis=0) > before.X.max(axis=0)
    return bool((below | above).any())
