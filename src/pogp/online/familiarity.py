"""Whether a row is one of the past, by how near it lies to samples of the stream.

Where inputs move along a stream, a row of its past lies among its neighbours in time, and a row to
come lies farther from all that was seen. How much farther is found from the samples that are kept,
as if the stream had come to rest half way: those before, each left out in turn, are of the past,
and those after it were yet to come. A logistic regression on the logarithm of the distance to the
nearest sample tells the two apart as well as that distance can. Where rows have no order it cannot,
and the chance is one half everywhere.
"""

from __future__ import annotations

import numpy as np

from pogp.arrays import Array, Indices

LEAST = 1e-12
"""The least squared distance, in length-scales: rows that are the same lie so far apart."""
STEPS, LONGEST, ENOUGH = 30, 5.0, 1e-9
"""Newton's method: steps, how long one may be, and when it ends."""


class Familiarity:
    """The chance that a row is of the past, where it could as well be one to come."""

    def __init__(self, inputs: Array) -> None:
        """Take inputs (n, p) in the order of the stream, in units of length-scales."""
        self._inputs = inputs
        half = len(inputs) // 2
        before, after = inputs[:half], inputs[half:]
        known = _distances(before, before, _nearest(before, before, alone=True))
        ahead = _distances(after, before, _nearest(after, before))
        farther = np.concatenate([known, ahead]) - known.mean()
        self._unit = max(float(farther.std()), LEAST)
        past = np.where(np.arange(len(inputs)) < half, 1.0, 0.0)
        self._line = logistic(np.column_stack([np.ones(len(inputs)), farther / self._unit]), past)
        if self._line[1] > 0.0:  # rows to come were no farther, by chance even nearer
            self._line[:] = 0.0
        # the more samples there are, the nearer is the nearest of them
        self._usual = _distances(inputs, inputs, _nearest(inputs, inputs, alone=True)).mean()

    def chances(self, U: Array) -> Array:
        """Return the chance of each row of inputs in these units, (n,)."""
        return self._chances(_distances(U, self._inputs, _nearest(U, self._inputs)))

    def slopes(self, U: Array) -> Array:
        """Return the derivatives of the chances by the inputs, (n, p)."""
        nearest = _nearest(U, self._inputs)
        apart = U - self._inputs[nearest]
        chances = self._chances(_distances(U, self._inputs, nearest))
        rate = self._line[1] / self._unit * chances * (1.0 - chances)
        return np.asarray(rate[:, None] * apart / (LEAST + np.sum(apart**2, axis=1))[:, None])

    def _chances(self, distances: Array) -> Array:
        farther = (distances - self._usual) / self._unit
        return sigmoid(self._line[0] + self._line[1] * farther)


def logistic(features: Array, labels: Array) -> Array:
    """Return the coefficients of a logistic regression, whose prior is a unit normal."""
    line = np.zeros(features.shape[1])
    for _ in range(STEPS):
        chances = sigmoid(features @ line)
        uphill = features.T @ (labels - chances) - line
        curved = features.T @ (features * (chances * (1.0 - chances))[:, None])
        step = np.linalg.solve(curved + np.eye(len(line)), uphill)
        line += np.clip(step, -LONGEST, LONGEST)
        if np.abs(step).max() < ENOUGH:
            break
    return line


def sigmoid(values: Array) -> Array:
    """Return 1/(1 + exp(−v))."""
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * values))


def _nearest(A: Array, B: Array, alone: bool = False) -> Indices:
    """Return the row of B that is nearest to each of A; if these are the same, not itself."""
    squares = np.sum(B**2, axis=1) - 2.0 * (A @ B.T)
    if alone:
        np.fill_diagonal(squares, np.inf)
    return np.asarray(np.argmin(squares, axis=1))


def _distances(A: Array, B: Array, nearest: Indices) -> Array:
    """Return the logarithm of the distance of each row of A to one of B."""
    return np.asarray(0.5 * np.log(LEAST + np.sum((A - B[nearest]) ** 2, axis=1)))
