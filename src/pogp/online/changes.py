"""Whether the latest samples are unlike those that the scales were found on."""

from __future__ import annotations

import numpy as np

from pogp.arrays import Array, Indices
from pogp.online.scales import Scales

GROWN, GONE = 3.0, 5.0
"""The targets changed if they spread this many times as wide as known, or moved so many deviations
away."""
OUTSIDE = 4.0
"""An input is outside what is known beyond so many deviations."""


def awake(X: Array, Y: Array) -> bool:
    """Whether a target that was at rest moves at half of the samples, and an input too."""
    moved = np.mean(np.abs(Y - np.median(Y, axis=0)) > 0, axis=0) >= 0.5
    return bool(moved.any()) and Scales.of(X, Y).alive


def targets_changed(Y: Array, scales: Scales) -> bool:
    """Whether an output spreads far wider than known, or half of it has gone elsewhere."""
    known, distance = scales.target_deviation, np.abs(Y - scales.target_centre)
    if (distance <= GROWN * known).all():  # as nearly always: then neither can be
        return False
    away = np.mean(distance > GONE * scales.unit, axis=0) >= 0.5
    wide = Y.std(axis=0) > GROWN * known
    if wide.any():  # and not for a few targets only
        typical = 1.48 * np.median(np.abs(Y - np.median(Y, axis=0)), axis=0)
        wide &= typical > GROWN * known
    return bool((wide | (away & (known > 0))).any())


def inputs_outside(X: Array, scales: Scales) -> Indices:
    """Return the columns of which half of the values are outside what is known."""
    still = 1e-9 * np.maximum(np.abs(scales.centre), 1e-300)
    known = np.where(scales.deviation > 0, OUTSIDE * scales.deviation, still)
    outside = np.abs(X - scales.centre) > known
    return np.flatnonzero(2 * outside.sum(axis=0) >= len(X))
