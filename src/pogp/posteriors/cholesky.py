"""The exact GP on all samples by a Cholesky factor that grows by bordering.

With K + σ²I = LLᵀ and z = L⁻¹(y − mean), a block of new samples adds rows to L and entries to z,
and the predictions made before each of them are already there: the mean is y_t − L_tt·z_t and the
variance of y is L_tt². Bordering is backward stable, so no correction is needed.
"""

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from pogp.arrays import Array
from pogp.compression import Plan
from pogp.distances import movement
from pogp.interrupts import Lock, Uninterrupted
from pogp.kernels import Kernel, evaluate, prior_variance
from pogp.posteriors.gradients import latent_gradients
from pogp.posteriors.linalg import solve_lower
from pogp.posteriors.slots import check_shapes, slot_of
from pogp.trace import CHANGE, NOVELTY, SIZE, Trace, blank

BLOCK = 256
"""Number of rows added at once."""
VECTORS = ("inputs", "targets", "arrivals", "z")


class CholeskyPosterior:
    """All samples, and L and z of the exact posterior given them."""

    def __init__(self, kernel: Kernel, noise: float, mean: float, dimension: int) -> None:
        self.kernel = kernel
        self.noise = noise
        self.mean = mean
        self.dimension = dimension
        self.size = 0
        self._allocate(16)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        arrays = (self._inputs, self._targets, self._arrivals, self._columns, self._z)
        return sum(array.nbytes for array in arrays)

    def in_order(self, name: str) -> NDArray[Any]:
        """Return `inputs`, `targets` or `arrivals`, which are always in order of arrival."""
        return cast(NDArray[Any], getattr(self, f"_{name}")[: self.size].copy())

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Return the mean and the latent variance at each row of X."""
        mean, variance = np.empty(len(X)), np.empty(len(X))
        for start in range(0, len(X), BLOCK):
            rows = slice(start, start + BLOCK)
            solved = self._solved(X[rows])
            mean[rows] = self.mean + solved @ self._z[: self.size]
            explained = np.einsum("ij,ij->i", solved, solved)
            variance[rows] = np.maximum(prior_variance(self.kernel, X[rows]) - explained, 0.0)
        return mean, variance

    def covariance(self, X: Array) -> Array:
        """Return the latent covariance between the rows of X."""
        solved = self._solved(X)
        return np.asarray(self.kernel(X) - solved @ solved.T)

    def gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the derivatives of mean and latent variance with respect to X."""
        upper = self._columns[: self.size, : self.size]  # Lᵀ
        rows = np.vstack([self._z[: self.size], self._solved(X)])
        rows = solve_triangular(upper, rows.T).T if self.size else rows
        return latent_gradients(self.kernel, X, self._inputs[: self.size], rows[0], rows[1:])

    def learn(
        self, X: Array, y: Array, first: int, plan: Plan, signals: Uninterrupted, lock: Lock
    ) -> Array:
        """Add samples, all or none, whatever the plan; return their records (see `trace`).

        Ctrl-C takes effect between blocks. Other threads may predict at any time, because
        existing rows are not changed.
        """
        with lock:
            self._reserve(self.size + len(y))
        before = self.size
        trace = Trace(blank(len(y)))
        mean, variance = trace.mean, trace.variance
        try:
            for start in range(0, len(y), BLOCK):
                rows = slice(start, start + BLOCK)
                mean[rows], variance[rows] = self._border(X[rows], y[rows], first + start, lock)
                if signals.wanted and len(y) > 1:
                    raise KeyboardInterrupt
        except BaseException:
            with lock:
                self.size = before  # what was written beyond it is never read
            raise
        trace.rest[:, SIZE] = np.arange(before + 1, before + len(y) + 1)
        novelty, change = movement(self.noise, mean, variance, y)
        trace.rest[:, NOVELTY], trace.rest[:, CHANGE] = novelty, change
        return trace.records

    def remove(self, arrival: int) -> None:
        """Remove one sample; the rows of L below it are factored again."""
        j, n = slot_of(arrival, self._arrivals[: self.size]), self.size
        below = self._columns[j, j + 1 : n]
        trailing = self._columns[j + 1 : n, j + 1 : n]  # Lᵀ of the rows below, in its upper part
        trailing = np.triu(trailing)
        factor = np.linalg.cholesky(trailing.T @ trailing + np.outer(below, below))
        self._columns[:j, j : n - 1] = self._columns[:j, j + 1 : n].copy()
        self._columns[j : n - 1, j : n - 1] = factor.T
        for array in (self._inputs, self._targets, self._arrivals):
            array[j : n - 1] = array[j + 1 : n].copy()
        self.size = n - 1
        rest = self._targets[j : n - 1] - self.mean - self._columns[:j, j : n - 1].T @ self._z[:j]
        self._z[j : n - 1] = solve_triangular(factor, rest, lower=True)

    def state(self) -> dict[str, Any]:
        """Return everything that was learned, as arrays."""
        return {
            **{name: self.in_order(name) for name in VECTORS},
            "factor": self._columns[: self.size, : self.size][np.triu_indices(self.size)],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what `state` returned."""
        n = len(state["targets"])
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(VECTORS, (n,))
        factor = {"factor": (n * (n + 1) // 2,), "inputs": (n, self.dimension)}
        check_shapes(state, {**shapes, **factor})
        self.size = len(state["targets"])
        self._allocate(max(self.size, 16))
        for name in VECTORS:
            getattr(self, f"_{name}")[: self.size] = state[name]
        self._columns[np.triu_indices(self.size)] = state["factor"]

    def _solved(self, X: Array) -> Array:
        """Return L⁻¹κ(Z, x) for each row x of X, as rows."""
        cross = evaluate(self.kernel, X, self._inputs[: self.size])
        return solve_lower(self._columns, self.size, cross) if self.size else cross

    def _border(self, X: Array, y: Array, first: int, lock: Lock) -> tuple[Array, Array]:
        """Add one block of rows to L and of entries to z."""
        n, end = self.size, self.size + len(y)
        solved = self._solved(X)
        corner = _cholesky(evaluate(self.kernel, X, X) - solved @ solved.T, self.noise)
        innovations = y - self.mean - solved @ self._z[:n]
        self._columns[:n, n:end] = solved.T
        self._columns[n:end, n:end] = corner.T
        self._z[n:end] = solve_triangular(corner, innovations, lower=True)
        self._inputs[n:end], self._targets[n:end] = X, y
        self._arrivals[n:end] = np.arange(first, first + len(y))
        with lock:
            self.size = end
        deviations = np.diagonal(corner)
        return y - deviations * self._z[n:end], deviations**2

    def _reserve(self, points: int) -> None:
        """Make room by doubling, so that growth copies each entry O(1) times in all."""
        n, capacity = self.size, len(self._targets)
        if points <= capacity:
            return
        vectors, columns = {name: self.in_order(name) for name in VECTORS}, self._columns
        self._allocate(max(points, 2 * capacity))
        for name in VECTORS:
            getattr(self, f"_{name}")[:n] = vectors[name]
        self._columns[:n, :n] = columns[:n, :n]

    def _allocate(self, capacity: int) -> None:
        self._columns = np.zeros((capacity, capacity))  # row j is column j of L; first, it may fail
        self._inputs = np.empty((capacity, self.dimension))
        self._targets = np.empty(capacity)
        self._arrivals = np.empty(capacity, dtype=np.int64)
        self._z = np.empty(capacity)


def _cholesky(latent: Array, noise: float) -> Array:
    """Return the lower factor of latent + noise·I; rounding never takes a pivot below the noise."""
    try:
        return np.asarray(np.linalg.cholesky(latent + noise * np.eye(len(latent))), np.float64)
    except np.linalg.LinAlgError:
        pass
    factor = np.zeros_like(latent)
    for i in range(len(latent)):
        row = solve_triangular(factor[:i, :i], latent[i, :i], lower=True) if i else factor[i, :0]
        factor[i, :i] = row
        factor[i, i] = np.sqrt(max(latent[i, i] - row @ row, 0.0) + noise)
    return factor
