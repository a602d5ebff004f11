"""Where predictions miss by more, or by less, than they claim: correlations with the inputs."""

import numpy as np

from pogp.arrays import LARGEST, Array
from pogp.trace import Trace

POWER = 9
"""Sample t of T weighs (t/T)⁹: the last tenth of the stream has two thirds of the weight."""
MOST = 5.0
"""Errors of more deviations count as so many."""


class Misfit:
    """The correlation of |y − mean|/deviation with the inputs, the mean and the deviation.

    A model that is calibrated everywhere has none. Sums are weighted towards the latest samples, in
    a state that does not grow: m_t = m_{t−1} + 10/(t + 9)·(v_t − m_{t−1}) is the mean of v with
    weights (t/T)⁹, up to O(1/t).
    """

    def __init__(self, features: int) -> None:
        self.origin = np.zeros(features)
        self.moments = np.zeros((3, features))  # of the feature, its square, its product with size
        self.sizes = np.zeros(2)  # of the size of the error, and its square

    def add(self, X: Array, Y: Array, trace: Trace, seen: int) -> None:
        """Take note of samples, `seen` of which came before."""
        outputs = trace.outputs
        means, variances = trace.records[:, :outputs], trace.records[:, outputs : 2 * outputs]
        deviations = np.sqrt(variances)
        size = np.minimum(np.abs(Y - means) / deviations, MOST).mean(axis=1)
        features = np.column_stack([X, means.mean(axis=1), deviations.mean(axis=1)])
        if seen == 0:
            self.origin = features[0].copy()
        away = np.clip(features - self.origin, -LARGEST, LARGEST)
        rates = np.minimum((POWER + 1) / (seen + np.arange(1, len(Y) + 1) + POWER), 1.0)
        left = np.append(np.cumprod((1 - rates)[::-1])[::-1], 1.0)
        weights = rates * left[1:]
        self.moments = left[0] * self.moments + np.stack(
            [weights @ away, weights @ away**2, (weights * size) @ away]
        )
        self.sizes = left[0] * self.sizes + np.array([weights @ size, weights @ size**2])

    def correlations(self) -> Array:
        """Return the correlation with each input, with the mean and with the deviation."""
        mean, square, product = self.moments
        variance = np.maximum(square - mean**2, 0.0)
        spread = max(self.sizes[1] - self.sizes[0] ** 2, 0.0)
        scale = np.sqrt(variance * spread)
        known = variance > 1e-12 * square  # less is rounding
        return np.where(known, (product - mean * self.sizes[0]) / np.where(known, scale, 1.0), 0.0)

    def memory(self) -> dict[str, list[float]]:
        """Return the state, as JSON can hold it."""
        return {name: getattr(self, name).tolist() for name in ("origin", "moments", "sizes")}
