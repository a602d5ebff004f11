"""The absorbed posterior in NumPy: a removed point leaves, what it taught stays (mathematics.md §4).

The belief q(u) = N(m, S) is about u = f(Z) plus a tiny independent nugget ν, with f elsewhere by
the prior given u. By slot:

    K = κ(Z, Z) + νI (`gram`) and Q = K⁻¹ (`inverse`): the prior;
    Λ = S⁻¹ − Q (`information`) and η = S⁻¹m (`evidence`): what the data said;
    C = Q − QSQ = (K + Λ⁻¹)⁻¹ (`precision`) and α = Qm (`weights`): what predictions need.

The nugget is part of the noise: a point is observed with σ² − ν. With nothing removed,
Λ = I/(σ² − ν) and C is the P of the retained posterior.

Λ and η are the truth. Removal by conditioning maps them by the regression of the removed value on
the others, Λ ← TᵀΛT and η ← Tᵀη, which subtracts nothing; so they stay exact through any number of
removals, and Q, C and α can be solved for afresh from Z, Λ and η at any time (mathematics.md §6).
"""

from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from pogp.arrays import Array
from pogp.kernels import Kernel, evaluate

NUGGET = 1e-6
"""ν as a fraction of the prior variance, but never more than half of the noise."""


class Absorbed:
    """Q, Λ, η, C and α of the retained points; knows how to learn and to let go, not why."""

    def __init__(self, kernel: Kernel, noise: float, mean: float, dimension: int) -> None:
        self.kernel = kernel
        self.noise = noise
        self.mean = mean
        self.dimension = dimension
        self.nugget = 0.0  # known from the first point on
        self.inputs = np.empty((0, dimension))
        self.arrivals = np.empty(0, dtype=np.int64)
        self.gram = np.empty((0, 0))
        self.inverse = np.empty((0, 0))
        self.information = np.empty((0, 0))
        self.precision = np.empty((0, 0))
        self.evidence = np.empty(0)
        self.weights = np.empty(0)

    @property
    def size(self) -> int:
        """The model order M."""
        return len(self.arrivals)

    def append(self, x: Array, y: float, arrival: int, noise: float | None = None) -> None:
        """Observe y at x as a new point, in the last slot (mathematics.md §4)."""
        k, kappa0 = self._column(x)
        if self.size == 0:
            self.nugget = min(NUGGET * kappa0, self.noise / 2)
        observed = (self.noise if noise is None else noise) - self.nugget
        w, c = self.inverse @ k, self.precision @ k
        gamma = max(kappa0 - k @ w, 0.0) + self.nugget
        s = max(kappa0 - k @ c, 0.0) + observed + self.nugget
        residual = y - self.mean - k @ self.weights
        e, g = np.append(-w, 1.0), np.append(-c, 1.0)
        self.inverse = _bordered(self.inverse) + np.outer(e, e) / gamma
        self.precision = _bordered(self.precision) + np.outer(g, g) / s
        self.weights = np.append(self.weights, 0.0) + g * (residual / s)
        self.information = _bordered(self.information)
        self.information[-1, -1] = 1 / observed
        self.evidence = np.append(self.evidence, (y - self.mean) / observed)
        self.gram = _bordered(self.gram)
        self.gram[-1, :-1] = self.gram[:-1, -1] = k
        self.gram[-1, -1] = kappa0 + self.nugget
        self.inputs = np.vstack([self.inputs, x])
        self.arrivals = np.append(self.arrivals, arrival)

    def absorb(self, x: Array, y: float) -> None:
        """Observe y at x without a new point: as if it was appended and at once marginalised."""
        k, kappa0 = self._column(x)
        w, c = self.inverse @ k, self.precision @ k
        gamma = max(kappa0 - k @ w, 0.0) + self.nugget
        s = max(kappa0 - k @ c, 0.0) + self.noise
        self._observe(w, w - c, s, gamma + self.noise - self.nugget, y - self.mean, k)

    def _observe(self, w: Array, b: Array, s: float, spread: float, y: float, k: Array) -> None:
        """Add the observation y = wᵀu + N(0, spread), whose predictive variance is s; b = Bk."""
        self.weights, residual = self.weights, y - k @ self.weights
        self.weights = self.weights + b * (residual / s)
        self.precision = self.precision + np.outer(b, b) / s
        self.information = self.information + np.outer(w, w) / spread
        self.evidence = self.evidence + w * (y / spread)

    def condition(self, j: int) -> None:
        """Let slot j go by conditioning, which minimises KL(q′‖q)."""
        q, c, lam = self.inverse[:, j], self.precision[:, j], self.information[:, j]
        b = q - c
        onto = -q / q[j]  # the regression of u_j on the others
        self.weights = self.weights - b * (self.weights[j] / b[j])
        self.precision = self.precision - np.outer(q, q) / q[j] + np.outer(b, b) / b[j]
        self.information = (
            self.information
            + np.outer(onto, lam)
            + np.outer(lam, onto)
            + lam[j] * np.outer(onto, onto)
        )
        self.evidence = self.evidence + onto * self.evidence[j]
        self._drop(j)

    def marginalise(self, j: int) -> None:
        """Let slot j go by marginalising, which minimises KL(q‖q′)."""
        q, c = self.inverse[:, j], self.precision[:, j]
        b = q - c
        ell = q + self.information[:, j]
        t = q / q[j]
        # B −= tBᵀ + Btᵀ − B_jj ttᵀ and Q −= qtᵀ, so C = Q − B changes by their difference
        self.precision = (
            self.precision
            - np.outer(q, t)
            + np.outer(t, b)
            + np.outer(b, t)
            - b[j] * np.outer(t, t)
        )
        self.weights = self.weights - t * self.weights[j]
        self.information = self.information - np.outer(ell, ell) / ell[j] + np.outer(q, t)
        self.evidence = self.evidence - ell * (self.evidence[j] / ell[j])
        self._drop(j)

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Return the mean and the latent variance at each row of X."""
        cross = evaluate(self.kernel, X, self.inputs)
        explained = np.sum((cross @ self.precision) * cross, axis=1)
        variance = np.maximum(self.kernel.diag(X) - explained, 0.0)
        return self.mean + cross @ self.weights, variance

    def rebuild(self) -> None:
        """Solve afresh for Q, C and α from Z, Λ and η."""
        size = self.size
        self.inverse = cho_solve(cho_factor(self.gram), np.eye(size))
        values, vectors = np.linalg.eigh(self.information)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        factor = cho_factor(np.eye(size) + root.T @ self.gram @ root)
        self.precision = root @ cho_solve(factor, root.T)
        # α = (I + ΛK)⁻¹η = η − CKη
        self.weights = self.evidence - self.precision @ (self.gram @ self.evidence)

    def state(self) -> dict[str, Any]:
        """Return everything, as arrays and numbers."""
        names = ("inputs", "arrivals", "gram", "inverse", "information", "precision")
        arrays = {name: getattr(self, name) for name in (*names, "evidence", "weights")}
        return {**arrays, "nugget": self.nugget}

    def _column(self, x: Array) -> tuple[Array, float]:
        k = evaluate(self.kernel, self.inputs, x[None, :])[:, 0]
        return k, float(self.kernel.diag(x[None, :])[0])

    def _drop(self, j: int) -> None:
        """Take slot j out of Q, and out of everything; the last slot takes its place."""
        q = self.inverse[:, j]
        self.inverse = self.inverse - np.outer(q, q) / q[j]
        order = np.arange(self.size - 1)
        if j < self.size - 1:
            order[j] = self.size - 1
        for name in ("gram", "inverse", "information", "precision"):
            setattr(self, name, getattr(self, name)[np.ix_(order, order)])
        for name in ("inputs", "arrivals", "evidence", "weights"):
            setattr(self, name, getattr(self, name)[order])


def _bordered(matrix: Array) -> Array:
    return np.pad(matrix, (0, 1))
