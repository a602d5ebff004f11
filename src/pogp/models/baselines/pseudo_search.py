"""Where pseudo-inputs start, and the search for where they belong.

L-BFGS goes up the evidence in the pseudo-inputs, the logarithms of the kernel's parameters and the
logarithm of the noise, all at once and with gradients.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, log
from typing import TYPE_CHECKING

import numpy as np
from numpy.linalg import LinAlgError

from pogp.arrays import Array
from pogp.kernels import Kernel, prior_variance
from pogp.posteriors.inducing import Approximation, evidence_and_gradient
from pogp.search import Progress

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

_REACH = log(1e5)
"""How far the logarithm of a parameter may go from where it starts."""
_FLOOR = 1e-6
"""The noise stays above this share of the mean of κ(x, x), and so above rounding in the slack."""
_STEPS = 20
"""How many past steps L-BFGS remembers."""
_ROUNDS, _CLUSTERED = 10, 10_000
"""Rounds of k-means, and on how many samples at most (or on as many as pseudo-inputs)."""


@dataclass(frozen=True)
class Placement:
    """Pseudo-inputs with a kernel and a noise variance, and how they were found.

    `theta` is what `with_theta` made the kernel of; it is empty for a kernel as it was given.
    """

    inputs: Array
    kernel: Kernel
    noise: float
    theta: Array
    evaluations: int = 1
    converged: bool = False


def first_inputs(X: Array, size: int, seed: int) -> Array:
    """Return the centres of k-means from a random start, or all of X if it has no more rows."""
    from scipy.cluster.vq import vq  # slow to import

    if size >= len(X):
        return X
    units = _units(X)
    rows = np.random.default_rng(seed).permutation(len(X))[: max(size, _CLUSTERED)]
    points = X[rows] / units
    centres = points[:size].copy()
    for _ in range(_ROUNDS):
        nearest, _ = vq(points, centres)
        counts, sums = np.bincount(nearest, minlength=size), np.zeros_like(centres)
        np.add.at(sums, nearest, points)
        used = counts > 0
        centres[used] = sums[used] / counts[used, None]
    return centres * units


def search(
    approximation: Approximation,
    start: Placement,
    X: Array,
    residual: Array,
    max_iterations: int,
    progress: Progress | None = None,
) -> Placement:
    """Return the placement of the highest evidence of residual = y − mean at X found from here."""
    from scipy.optimize import Bounds, minimize  # slow to import

    _require_derivatives(start.kernel, X)
    objective = _Objective(approximation, start, X, residual)
    iterations = 0

    def report(intermediate_result: OptimizeResult) -> None:
        nonlocal iterations
        iterations += 1
        if progress is not None:
            progress(iterations, -float(intermediate_result.fun))

    result = minimize(
        objective,
        objective.start,
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(objective.lower, objective.upper),
        callback=report,
        options={"maxiter": max_iterations, "maxcor": _STEPS},
    )
    return objective.placement(result.x, int(result.nfev), bool(result.success))


class _Objective:
    """−evidence and its gradient, as a function of (Z/units, theta, log(noise − floor)).

    The floor is a share of κ(x, x) and so moves with theta: every noise above it is in reach, and
    none below. The units make steps in the inputs comparable, among them and to those in theta.
    """

    def __init__(
        self, approximation: Approximation, start: Placement, X: Array, residual: Array
    ) -> None:
        self._approximation = approximation
        self._kernel = start.kernel
        self._X = X
        self._residual = residual
        self._shape = start.inputs.shape
        self._units = _units(X)
        self._worst = -inf

        least = log(start.noise) - _REACH
        excess = start.noise - self._floor(start.kernel)
        log_excess = max(log(excess), least) if excess > 0 else least
        coordinates = (start.inputs / self._units).ravel()
        self.start = np.concatenate([coordinates, start.kernel.theta, [log_excess]])
        centre = np.append(start.kernel.theta, log(start.noise))
        anywhere = np.full(coordinates.size, inf)
        self.lower = np.append(-anywhere, centre - _REACH)
        self.upper = np.append(anywhere, centre + _REACH)

    def __call__(self, parameters: Array) -> tuple[float, Array]:
        at, excess = self.placement(parameters), exp(parameters[-1])
        try:
            found, gradient = evidence_and_gradient(
                self._approximation, at.kernel, at.noise, at.inputs, self._X, self._residual
            )
        except LinAlgError:
            if self._worst == -inf:
                raise
            # Worse than all before, yet near enough for the line search to interpolate.
            return 2.0 * abs(self._worst) + 1.0, np.zeros_like(parameters)
        self._worst = max(self._worst, -found.value)
        mean_diagonal = at.kernel.diag_pullback(self._X, np.full(len(self._X), 1.0 / len(self._X)))
        in_theta = gradient.theta + _FLOOR * gradient.noise * mean_diagonal
        in_inputs = (gradient.inputs * self._units).ravel()
        return -found.value, -np.concatenate([in_inputs, in_theta, [gradient.noise * excess]])

    def placement(
        self, parameters: Array, evaluations: int = 1, converged: bool = False
    ) -> Placement:
        """Return what the parameters stand for."""
        count = self._shape[0] * self._shape[1]
        theta = parameters[count:-1].copy()
        kernel = self._kernel.with_theta(theta)
        return Placement(
            inputs=parameters[:count].reshape(self._shape) * self._units,
            kernel=kernel,
            noise=exp(parameters[-1]) + self._floor(kernel),
            theta=theta,
            evaluations=evaluations,
            converged=converged,
        )

    def _floor(self, kernel: Kernel) -> float:
        return _FLOOR * float(np.mean(prior_variance(kernel, self._X)))


def _require_derivatives(kernel: Kernel, X: Array) -> None:
    try:
        kernel.cross_pullback(X[:1], X[:1])
        kernel.diag_pullback(X[:1], np.ones(1))
    except NotImplementedError as missing:
        raise ValueError(
            f"to place pseudo-inputs takes the derivatives of the kernel, but {missing}; "
            f"fit(..., optimise=False) does without them; got {kernel!r}"
        ) from None


def _units(X: Array) -> Array:
    """Return a length for every input at which r² between the rows of X is of order one."""
    spread = np.where(np.ptp(X, axis=0) > 0, np.std(X, axis=0), 1.0)
    units: Array = spread * np.sqrt(spread.size)
    return units
