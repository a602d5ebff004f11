"""Whether the latest samples are unlike those that the scales were found on."""

from __future__ import annotations

import numpy as np

from pogp.arrays import Array, Indices
from pogp.online.rows import Rows
from pogp.online.scales import Scales

GROWN, GONE = 3.0, 5.0
"""The targets changed if they spread this many times as wide as known, or moved so many deviations
away."""


def awake(X: Array, Y: Array) -> bool:
    """Whether a target that was at rest moves at half of the samples, and an input too."""
    moved = np.mean(np.abs(Y - np.median(Y, axis=0)) > 0, axis=0) >= 0.5
    return bool(moved.any()) and Scales.of(X, Y).alive


def unchanged(rows: Rows, count: int, scales: Scales) -> bool:
    """Whether so many latest samples, without outliers, are as known at first glance.

    That is nearly always so: no target is as far away as one that spreads would be on average, and
    no input outside at half of them.
    """
    known = (scales.centre, scales.reach, scales.target_centre, GROWN * scales.target_deviation)
    return rows.near(count, *known)


def targets_changed(Y: Array, scales: Scales) -> bool:
    """Whether an output spreads far wider than known, or half of it has gone elsewhere."""
    known = scales.target_deviation
    away = np.mean(np.abs(Y - scales.target_centre) > GONE * scales.unit, axis=0) >= 0.5
    wide = Y.std(axis=0) > GROWN * known
    if wide.any():  # and not for a few targets only
        typical = 1.48 * np.median(np.abs(Y - np.median(Y, axis=0)), axis=0)
        wide &= typical > GROWN * known
    return bool((wide | (away & (known > 0))).any())


def inputs_outside(X: Array, scales: Scales) -> Indices:
    """Return the columns of which half of the values are outside what is known."""
    outside = np.abs(X - scales.centre) > scales.reach
    return np.flatnonzero(2 * outside.sum(axis=0) >= len(X))
