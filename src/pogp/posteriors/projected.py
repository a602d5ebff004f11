"""The projected posterior while its inducing inputs are chosen, one training input after another.

With m of the n training inputs chosen, κ(Z, Z) + νI = LLᵀ and V = L⁻¹κ(Z, X), the posterior mean is
Vᵀβ where β minimises |y − Vᵀβ|² + σ²|β|²: least squares on the rows [V, σI]. Those rows are kept
orthonormal as U, so that one more input costs O(nm) and nothing is ever subtracted from a factor:
see mathematics.md §7. Predictions are left to `posteriors.inducing`, whose nugget this shares.
"""

import numpy as np

from pogp.arrays import Array, Indices
from pogp.kernels import Kernel, evaluate, prior_variance
from pogp.posteriors.inducing import NUGGET

DEPENDENT = 10.0
"""An input that has no more than this many nuggets of slack follows from the chosen ones.

One that is chosen has less than one left; one that is a combination w of them has ν|w|².
"""


class Projection:
    """What the chosen inputs explain of the samples X (n, p) and residual = y − mean (n,).

    `chosen` holds at most `size` positions in X, in the order of their choice; `misfit` is
    y − mean − Vᵀβ, `leverage` the diagonal of Vᵀ(VVᵀ + σ²I)⁻¹V, and `objective` is
    ½(|misfit|² + σ²|β|² − |y − mean|²).
    """

    def __init__(self, kernel: Kernel, noise: float, X: Array, residual: Array, size: int) -> None:
        n, most = len(X), min(size, len(X))
        self.kernel = kernel
        self.noise = noise
        self.inputs = X
        self.residual = residual
        self.chosen: list[int] = []
        self.objective = 0.0
        self.prior = prior_variance(kernel, X)
        self.nugget = NUGGET * float(np.mean(self.prior))
        self.leverage = np.zeros(n)
        self._explained = np.zeros(n)
        self._V = np.empty((most, n))
        self._U = np.zeros((most, n + most))
        self._remainder = np.concatenate([residual, np.zeros(most)])  # of [y, 0], beyond U

    @property
    def size(self) -> int:
        """The number of chosen inputs."""
        return len(self.chosen)

    @property
    def misfit(self) -> Array:
        """What the posterior mean leaves of y − mean at each sample."""
        return self._remainder[: len(self.inputs)]

    @property
    def slack(self) -> Array:
        """The prior variance at each sample that u = f(Z) does not explain."""
        return self.prior - self._explained

    def independent(self) -> Indices:
        """Return the samples that could be chosen: the chosen ones do not determine f there."""
        return np.flatnonzero(self.slack > DEPENDENT * self.nugget)

    def columns(self, candidates: Indices) -> Array:
        """Return κ(x_j, X) for each candidate j, as rows."""
        return evaluate(self.kernel, self.inputs[candidates], self.inputs)

    def directions(self, candidates: Indices) -> Array:
        """Return the row that each candidate would add to V."""
        V = self._V[: self.size]
        rows = self.columns(candidates) - V[:, candidates].T @ V
        pivots = self.slack[candidates] + self.nugget
        return np.asarray(rows / np.sqrt(pivots)[:, None])

    def gains(self, rows: Array) -> Array:
        """Return the decrease of the objective for each row, if it alone was added to V."""
        inside = rows @ self._U[: self.size, : len(self.inputs)].T
        beyond = _squares(rows) - _squares(inside) + self.noise
        # |[row, σ]|² beyond U, which is never below σ² but for rounding.
        scale = np.sqrt(np.maximum(beyond, self.noise))
        return np.asarray(0.5 * (rows @ self.misfit / scale) ** 2)

    def include(self, j: int) -> None:
        """Choose sample j."""
        m, n = self.size, len(self.inputs)
        row = self.directions(np.array([j]))[0]
        unit = np.zeros_like(self._remainder)
        unit[:n], unit[n + m] = row, np.sqrt(self.noise)
        basis = self._U[:m]
        for _ in range(2):  # twice is enough: Gram-Schmidt is then as good as Householder
            unit -= (basis @ unit) @ basis
        unit /= np.linalg.norm(unit)
        along = unit @ self._remainder
        self._remainder -= along * unit
        self._V[m], self._U[m] = row, unit
        self._explained += row**2
        self.leverage += unit[:n] ** 2
        self.objective -= 0.5 * float(along) ** 2
        self.chosen.append(j)


def _squares(rows: Array) -> Array:
    """Return |row|² for each row."""
    squares: Array = np.einsum("ij,ij->i", rows, rows)
    return squares
