"""The probability that a row to predict is of the past, from its distance to the kept samples.

Where inputs move along a stream, a row of the past lies among its neighbours in time, and a future
row lies farther from all samples. The typical distances are estimated from the kept samples: the
second half is treated as the future of the first half, and the samples of the first half, each left
out in turn, as the past. A logistic regression on the logarithm of the distance to the nearest
sample separates the two. If the rows have no order, the probability is one half everywhere.
"""

from __future__ import annotations

import numpy as np

from pogp.arrays import Array, Indices

LEAST = 1e-12
"""Added to squared distances, in squared length-scales, so that identical rows have a logarithm."""
STEPS, LONGEST, ENOUGH = 30, 5.0, 1e-9
"""Newton's method: the most steps, the longest step, and the step at which it has converged."""


class PastProbability:
    """A classifier of rows: past (1) or future (0), with equal prior probabilities."""

    def __init__(self, inputs: Array) -> None:
        """Fit the classifier to inputs (n, p) in stream order, in units of length-scales."""
        self._inputs = inputs
        half = len(inputs) // 2
        first, second = inputs[:half], inputs[half:]
        of_past = _log_distances(first, first, _nearest(first, first, leave_out=True))
        of_future = _log_distances(second, first, _nearest(second, first))
        feature = np.concatenate([of_past, of_future]) - of_past.mean()
        self._unit = max(float(feature.std()), LEAST)
        labels = np.where(np.arange(len(inputs)) < half, 1.0, 0.0)
        features = np.column_stack([np.ones(len(inputs)), feature / self._unit])
        self._coefficients = logistic(features, labels)
        if self._coefficients[1] > 0.0:  # future rows were no farther away
            self._coefficients[:] = 0.0
        # distances shrink as samples are added, so they are centred again for all samples
        nearest = _nearest(inputs, inputs, leave_out=True)
        self._centre = _log_distances(inputs, inputs, nearest).mean()

    def predict(self, U: Array) -> Array:
        """Return the probability of each row of U, which is in the same units, (n,)."""
        return self._predict(_log_distances(U, self._inputs, _nearest(U, self._inputs)))

    def gradient(self, U: Array) -> Array:
        """Return the derivatives of the probabilities by the inputs, (n, p)."""
        nearest = _nearest(U, self._inputs)
        apart = U - self._inputs[nearest]
        probability = self._predict(_log_distances(U, self._inputs, nearest))
        rate = self._coefficients[1] / self._unit * probability * (1.0 - probability)
        return np.asarray(rate[:, None] * apart / (LEAST + np.sum(apart**2, axis=1))[:, None])

    def _predict(self, log_distances: Array) -> Array:
        feature = (log_distances - self._centre) / self._unit
        return sigmoid(self._coefficients[0] + self._coefficients[1] * feature)


def logistic(features: Array, labels: Array) -> Array:
    """Return the coefficients of a logistic regression with a standard normal prior."""
    coefficients = np.zeros(features.shape[1])
    for _ in range(STEPS):
        probability = sigmoid(features @ coefficients)
        gradient = features.T @ (labels - probability) - coefficients
        curvature = features.T @ (features * (probability * (1.0 - probability))[:, None])
        step = np.linalg.solve(curvature + np.eye(len(coefficients)), gradient)
        coefficients += np.clip(step, -LONGEST, LONGEST)
        if np.abs(step).max() < ENOUGH:
            break
    return coefficients


def sigmoid(values: Array) -> Array:
    """Return 1/(1 + exp(−v))."""
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * values))


def _nearest(A: Array, B: Array, leave_out: bool = False) -> Indices:
    """Return the index of the row of B nearest to each row of A.

    With `leave_out`, A and B are the same, and a row is not its own neighbour.
    """
    squares = np.sum(B**2, axis=1) - 2.0 * (A @ B.T)
    if leave_out:
        np.fill_diagonal(squares, np.inf)
    return np.asarray(np.argmin(squares, axis=1))


def _log_distances(A: Array, B: Array, nearest: Indices) -> Array:
    """Return the logarithm of the distance from each row of A to its nearest row of B."""
    return np.asarray(0.5 * np.log(LEAST + np.sum((A - B[nearest]) ** 2, axis=1)))
