"""The retained-data posterior in NumPy: the specification of the compiled twin.

The state is the exact GP on the retained pairs (Z, y), with A = K + σ²I:

    P = A⁻¹ (`precision`),   α = P(y − mean) (`weights`),   K = κ(Z, Z) (`gram`).

P and α are kept current by rank-one updates, which round. K is never updated, so P can be
corrected against it. One slot after another is corrected: P is projected on the symmetric matrices
X with XA_j = e_j, in the norm in which appending and removing add no error (mathematics.md §6).

Where the noise is small beside the kernel's variance, κ₀ − kᵀPk cancels, and an error made there
would be multiplied by 1/σ² at each step. There w = Pk is refined by its residual k − Aw until that
is rounding, and the quadratic form kᵀw + wᵀ(residual) is right to second order.
"""

from typing import Any

import numpy as np

from pogp.arrays import Array
from pogp.kernels import Kernel, evaluate, prior_variance
from pogp.posteriors.slots import bordered, check_shapes, symmetric, without

CAREFUL_RATIO = 1e-3
"""Below this ratio of noise to κ₀ every product with P is refined by its residual."""
MAX_REFINEMENTS = 4
"""The largest number of refinements of a product."""
MEND_INTERVAL = 16
"""One slot is mended once in so many samples; where products are refined, after each sample."""
POLISH_INTERVAL = 64
"""α is polished by its residual once in so many samples."""
EPS = float(np.finfo(np.float64).eps)
BY_SLOT = ("inputs", "targets", "arrivals", "weights")


class RetainedState:
    """P, α and K of the retained points; the loop decides what is appended and removed."""

    compiled = False

    def __init__(self, kernel: Kernel, noise: float, mean: float, dimension: int) -> None:
        self.kernel = kernel
        self.noise = noise
        self.mean = mean
        self.dimension = dimension
        self.inputs = np.empty((0, dimension))
        self.targets = np.empty(0)
        self.arrivals = np.empty(0, dtype=np.int64)
        self.gram = np.empty((0, 0))
        self.precision = np.empty((0, 0))
        self.weights = np.empty(0)

    @property
    def size(self) -> int:
        """The model order M."""
        return len(self.targets)

    @property
    def nbytes(self) -> int:
        """Bytes held by the state."""
        return sum(int(getattr(self, name).nbytes) for name in (*BY_SLOT, "gram", "precision"))

    @property
    def diagonal(self) -> Array:
        """The diagonal of P, by slot."""
        return np.diagonal(self.precision)

    def column(self, j: int) -> Array:
        """Column j of P."""
        return self.precision[:, j]

    def append(self, x: Array, y: float, arrival: int) -> tuple[float, float]:
        """Add (x, y) in the last slot; return the mean and variance of y predicted before that."""
        k, kappa0 = self._column(x)
        w, residual = self._solve(k, kappa0)
        explained = float(k @ w + w @ residual)
        mean = self.mean + float(k @ self.weights)
        s = max(kappa0 - explained, 0.0) + self.noise
        r, scaled = (y - mean) / s, w / np.sqrt(s)
        # mathematics.md §1, append
        self.precision = bordered(self.precision + np.outer(scaled, scaled), -w / s, 1 / s)
        self.weights = np.append(self.weights - w * r, r)
        self.gram = bordered(self.gram, k, kappa0)
        self.inputs = np.vstack([self.inputs, x])
        self.targets = np.append(self.targets, y)
        self.arrivals = np.append(self.arrivals, arrival)
        return mean, s

    def remove(self, j: int) -> None:
        """Remove slot j; the last slot takes its place."""
        column, pivot = self.precision[:, j], self.precision[j, j]
        # mathematics.md §1, remove
        self.weights = self.weights - column * (self.weights[j] / pivot)
        scaled = column / np.sqrt(pivot)
        self.precision = self.precision - np.outer(scaled, scaled)
        order = without(j, self.size)
        square = (order[:, None], order)
        self.precision, self.gram = self.precision[square], self.gram[square]
        for name in BY_SLOT:
            setattr(self, name, getattr(self, name)[order])

    def mend(self, arrival: int) -> None:
        """Correct rounding errors after the sample at this position (mathematics.md §6)."""
        if self.size == 0:
            return
        interval = 1 if self._careful(float(np.diagonal(self.gram).max())) else MEND_INTERVAL
        if arrival % interval == 0:
            self._mend_slot(arrival // interval % self.size)
        if arrival % POLISH_INTERVAL == 0:  # α += P(y − mean − Aα)
            residual = self._residual(self.targets - self.mean, self.weights)
            self.weights = self.weights + self.precision @ residual

    def _mend_slot(self, j: int) -> None:
        column = self.gram[:, j].copy()
        column[j] += self.noise
        excess = self.precision @ column
        excess[j] -= 1.0
        excess /= column[j]
        corner = self.precision[j, j] - 2.0 * excess[j] + float(column @ excess) / column[j]
        self.precision[:, j] -= excess
        self.precision[j] = self.precision[:, j]
        self.precision[j, j] = corner

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Return the mean and the latent variance at each row of X."""
        cross, solved, residual = self.project(X)
        # mathematics.md §1; with a residual, right to second order in the error of w
        explained = np.sum(cross * solved, axis=1)
        if residual is not None:
            explained += np.sum(residual * solved, axis=1)
        variance = np.maximum(prior_variance(self.kernel, X) - explained, 0.0)
        return self.mean + cross @ self.weights, variance

    def project(self, X: Array) -> tuple[Array, Array, Array | None]:
        """Return κ(X, Z), its product with P, and what that product leaves of κ(X, Z): each (n, M).

        The last one is None where the noise is so large that no residual is needed.
        """
        cross = self._evaluate(X, self.inputs)
        kappa0 = float(prior_variance(self.kernel, X).max(initial=0.0))
        if not self._careful(kappa0):
            return cross, cross @ self.precision, None
        pairs = [self._solve(k, kappa0) for k in cross]
        return cross, np.array([w for w, _ in pairs]), np.array([r for _, r in pairs])

    def state(self) -> dict[str, Any]:
        """Return everything, as arrays and numbers; of symmetric matrices the packed triangle."""
        upper = np.triu_indices(self.size)
        return {
            **{name: getattr(self, name).copy() for name in BY_SLOT},
            "precision": self.precision[upper],
            "gram": self.gram[upper],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
        state = check_state(state, self.dimension)
        for name in BY_SLOT:
            setattr(self, name, np.array(state[name]))
        self.precision = symmetric(state["precision"], self.size)
        self.gram = symmetric(state["gram"], self.size)

    def _column(self, x: Array) -> tuple[Array, float]:
        """Return k = κ(Z, x) and κ₀ = κ(x, x)."""
        k = self._evaluate(self.inputs, x[None, :])[:, 0]
        return k, float(prior_variance(self.kernel, x[None, :])[0])

    def _evaluate(self, A: Array, B: Array) -> Array:
        return evaluate(self.kernel, A, B)

    def _careful(self, kappa0: float) -> bool:
        return self.noise < CAREFUL_RATIO * kappa0

    def _solve(self, k: Array, kappa0: float) -> tuple[Array, Array]:
        """Return w = (K + σ²I)⁻¹k and its residual, zero where it is not needed."""
        w = self.precision @ k
        if not self._careful(kappa0):
            return w, np.zeros_like(w)
        residual = self._residual(k, w)
        for _ in range(MAX_REFINEMENTS):
            rounding = 4 * EPS * kappa0 * (1 + np.abs(w).sum())
            if np.abs(residual).max(initial=0.0) <= rounding:
                break
            w = w + self.precision @ residual
            residual = self._residual(k, w)
        return w, residual

    def _residual(self, b: Array, solution: Array) -> Array:
        return b - self.gram @ solution - self.noise * solution


def check_state(state: dict[str, Any], dimension: int) -> dict[str, Any]:
    """Return the state if its parts fit together; it may come from a file."""
    size = len(state["targets"])
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("targets", "arrivals", "weights"), (size,))
    packed = dict.fromkeys(("precision", "gram"), (size * (size + 1) // 2,))
    return check_shapes(state, {**shapes, **packed, "inputs": (size, dimension)})
