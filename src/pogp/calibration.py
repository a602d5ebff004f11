"""Calibration of predictive variances by the residuals of predict-then-learn."""

from typing import Any

import numpy as np

from pogp.arrays import Array

WINDOW = 1000
"""The scale forgets residuals older than about so many samples."""
PRIOR = 20
"""The scale starts at one, with the weight of so many samples."""
OUTLIER = 25.0
"""A squared residual counts for at most so many times its expectation, against outliers."""
ROUNDS = 20
"""Iterations for the scale of many residuals at once."""


class Calibration:
    """A factor for the variance of each output: the running mean of (y − mean)²/variance.

    Bounded state, O(1) per sample. Residuals are measured against the variance before scaling.
    """

    def __init__(self, outputs: int) -> None:
        self.scale = np.ones(outputs)
        self.count = 0

    def follow(self, Y: Array, means: Array, variances: Array) -> Array:
        """Learn from predictions and targets, in order; return the scale before each."""
        ratios = (Y - means) ** 2 / variances
        scales = np.empty(ratios.shape)
        for output, column in enumerate(ratios.T.tolist()):  # numbers: arrays of one are slow
            scale = float(self.scale[output])
            for i, ratio in enumerate(column):
                scales[i, output] = scale
                share = 1 / min(PRIOR + self.count + i + 1, WINDOW)
                scale += share * (min(ratio, OUTLIER * scale) - scale)
            self.scale[output] = scale
        self.count += len(ratios)
        return scales

    def join(self, other: "Calibration") -> None:
        """Combine with another calibration: the mean of both, weighted by their samples."""
        mine, theirs = min(self.count, WINDOW), min(other.count, WINDOW)
        if mine + theirs:
            self.scale = (mine * self.scale + theirs * other.scale) / (mine + theirs)
        self.count += other.count

    def state(self) -> dict[str, Any]:
        """Return the state, as arrays and numbers."""
        return {"scale": self.scale.copy(), "residuals": self.count}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
        if np.shape(state["scale"]) != self.scale.shape or not (state["scale"] > 0).all():
            raise ValueError(f"scale must be {self.scale.size} positive numbers")
        self.scale = np.array(state["scale"], dtype=np.float64)
        self.count = int(state["residuals"])


def settled(ratios: Array) -> Array:
    """Return the scale of many residuals (n, k), in units of their expectation.

    Their mean, where one counts for at most `OUTLIER` times the scale: the fixed point is reached
    from above.
    """
    scale = np.asarray(np.maximum(ratios.mean(axis=0), np.finfo(float).tiny))
    for _ in range(ROUNDS):
        scale = np.asarray(np.minimum(ratios, OUTLIER * scale).mean(axis=0))
    return np.asarray(np.maximum(scale, np.finfo(float).tiny))
