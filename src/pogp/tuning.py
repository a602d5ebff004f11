"""Hyperparameters by the marginal likelihood of a sample of data.

The search is over the logarithms of the kernel's parameters and of the noise variance, with
gradients, from several starts. Starts and bounds are read off the data, so that its units do not
matter. Equations are those of Rasmussen & Williams, *Gaussian Processes for Machine Learning*
(2006).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from math import exp, isfinite, log, pi

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.optimize import Bounds, minimize

from pogp import validation
from pogp.arrays import Array
from pogp.kernels import RBF, Elementary, Kernel, as_kernel, evaluate

_FLOOR = 1e-10
"""The noise stays above this share of κ(x, x), where float64 can still factor the covariance."""
_REACH = log(1e5)
"""How far a logarithm may go from the scale of the data."""
_SCATTER, _CANDIDATES = log(100.0), 10
"""How far from the scale of the data a random start may lie, and of how many it is the best."""
_SCANNED = 200
"""Samples by which parameters are scanned, at most."""
_TYPICAL_NOISE, _LEAST_NOISE = 0.1, 1e-8
"""Shares of the variance of y: where the noise starts, and where it ends."""


@dataclass(frozen=True)
class Tuned:
    """What `tune` found.

    - `kernel`, `noise`: the kernel and the noise variance of the highest likelihood found;
    - `log_likelihood`: log p(y | X) there, of y as it was given;
    - `evaluations`: how often the likelihood was computed, over all starts;
    - `converged`: whether the search that led there stopped by its own tolerance.
    """

    kernel: Kernel
    noise: float
    log_likelihood: float
    evaluations: int
    converged: bool


def log_marginal_likelihood(
    kernel: Kernel | Callable[[Array, Array], ArrayLike],
    noise: float,
    X: ArrayLike,
    y: ArrayLike,
    mean: ArrayLike = 0.0,
) -> float:
    """Return log p(y | X) for this kernel, noise variance and constant prior mean.

    >>> round(log_marginal_likelihood(RBF(), 0.1, [[0.0], [1.0]], [0.5, -0.5]), 6)
    -2.258578
    """
    inputs, residual = _centred(X, y, mean)
    K = evaluate(as_kernel(kernel), inputs, inputs)
    try:
        return _log_density(_add_noise(K, validation.positive("noise", noise)), residual)[0]
    except LinAlgError:
        raise ValueError(
            f"the covariance of y must be positive definite, got {kernel!r} with noise {noise!r}"
        ) from None


def tune(
    X: ArrayLike,
    y: ArrayLike,
    kernel: Kernel | type[Elementary] | Callable[[Array, Array], ArrayLike] = RBF,
    restarts: int = 3,
    seed: int = 0,
    *,
    noise: float | None = None,
    mean: ArrayLike = 0.0,
) -> Tuned:
    """Return the kernel and the noise variance with the highest marginal likelihood found.

    `kernel` is a class of kernels such as `RBF`, which gets one length-scale for each of the p
    inputs and starts at the scale of the data, or a kernel, whose parameters are the first start.
    `noise` is the noise variance of that start. `restarts` further starts follow, at and around
    the scale of the data. `mean` is the constant prior mean. X is (n, p), y is (n,), or (n, k) for
    outputs that share the kernel and the noise.

    The time grows with n³: seconds for a few hundred samples, which are enough for most streams,
    minutes for two thousand.

    >>> X = np.linspace(0.0, 6.0, 30)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=30)
    >>> tuned = tune(X, y)
    >>> tuned.kernel.lengthscale.round(1), round(tuned.noise, 3)
    (array([1.5]), 0.005)
    """
    inputs, residual = _centred(X, y, mean)
    restarts = validation.count("restarts", restarts, 0)
    rng = np.random.default_rng(seed)

    power = float(np.mean(residual**2)) or 1.0
    spread = float(np.var(residual)) if np.ptp(residual) > 0 else power
    template = _template(kernel, inputs, power)
    typical = np.append(template.typical_theta(inputs, power), log(_TYPICAL_NOISE * spread))
    lower, upper = typical - _REACH, typical + _REACH
    lower[-1] = log(_LEAST_NOISE * spread)
    first_noise = typical[-1] if noise is None else log(validation.positive("noise", noise))

    scans = template.scans(inputs)
    if scans:
        typical = _scanned(template, inputs, residual, typical, scans, rng)
    objective = _Objective(template, inputs, residual, offset=residual.size * log(power) / 2)
    first = np.append(template.theta, first_noise)
    starts = _starts(objective, first, typical, list(scans), rng)
    bounds = Bounds(lower, upper)
    searches = (
        minimize(
            objective, np.clip(start, lower, upper), jac=True, bounds=bounds, method="L-BFGS-B"
        )
        for start in islice(starts, restarts + 1)
    )
    best = min(searches, key=lambda search: float(search.fun))
    if not isfinite(best.fun):
        raise ValueError(f"the covariance of y was never positive definite, got {template!r}")
    found = template.with_theta(best.x[:-1])
    found_noise = exp(best.x[-1]) + _floor(evaluate(found, inputs, inputs))
    return Tuned(
        kernel=found,
        noise=found_noise,
        log_likelihood=log_marginal_likelihood(found, found_noise, X, y, mean),
        evaluations=objective.evaluations,
        converged=bool(best.success),
    )


@dataclass
class _Objective:
    """−log p(y | X) and its gradient, as a function of (theta, log(noise − floor)).

    The floor is a share of κ(x, x) and so moves with theta: every noise above it is in reach,
    and none below. `offset` takes the units of y out of the value, since the search stops at a
    change that is small beside it.
    """

    kernel: Kernel
    inputs: Array
    residual: Array
    offset: float
    evaluations: int = 0
    worst: float = -np.inf

    def __call__(self, parameters: Array) -> tuple[float, Array]:
        self.evaluations += 1
        excess = exp(parameters[-1])
        K, pullback = self.kernel.with_theta(parameters[:-1]).value_and_pullback(self.inputs)
        try:
            value, factor, alpha = _log_density(_add_noise(K, excess + _floor(K)), self.residual)
        except LinAlgError:
            # Worse than all before, yet near enough for the line search to interpolate.
            return 2.0 * abs(self.worst) + 1.0, np.zeros_like(parameters)
        weights = _sensitivity(factor, alpha)
        in_noise = np.trace(weights)
        weights[np.diag_indices_from(weights)] += _FLOOR * in_noise / len(weights)
        gradient = np.append(pullback(weights), in_noise * excess)
        self.worst = max(self.worst, -value - self.offset)
        return -value - self.offset, -gradient


def _scanned(
    kernel: Kernel,
    X: Array,
    residual: Array,
    typical: Array,
    scans: dict[int, Array],
    rng: np.random.Generator,
) -> Array:
    """Return the start with the most likely value of each parameter that has to be scanned."""
    some = rng.permutation(len(X))[:_SCANNED]
    objective = _Objective(kernel, X[some], residual[some], offset=0.0)
    best = typical.copy()
    for place, values in scans.items():
        candidates = np.tile(best, (len(values), 1))
        candidates[:, place] = values
        best = min(candidates, key=lambda candidate: objective(candidate)[0])
    return best


def _starts(
    objective: _Objective,
    first: Array,
    typical: Array,
    scanned: list[int],
    rng: np.random.Generator,
) -> Iterator[Array]:
    """Yield the first start, the scale of the data, then without end random starts around it.

    Half of those random ones keep what was found by scanning.
    """
    yield first
    if not np.allclose(first, typical):
        yield typical
    while True:
        candidates = typical + rng.uniform(-_SCATTER, _SCATTER, (_CANDIDATES, typical.size))
        candidates[::2, scanned] = typical[scanned]
        yield min(candidates, key=lambda candidate: objective(candidate)[0])


def _template(
    kernel: Kernel | type[Elementary] | Callable[[Array, Array], ArrayLike], X: Array, power: float
) -> Kernel:
    """Return the kernel to start from: a class at the scale of the data, a kernel as it is."""
    if isinstance(kernel, type) and issubclass(kernel, Elementary):
        unit = kernel.with_inputs(X.shape[1])
        return unit.with_theta(unit.typical_theta(X, power))
    template = as_kernel(kernel)
    evaluate(template, X, X)  # a function of the user's may return anything
    return template


def _log_density(covariance: Array, residual: Array) -> tuple[float, Array, Array]:
    """Return log N(residual; 0, covariance), the Cholesky factor and α = covariance⁻¹ residual.

    Each column of the residual (n, k) is an output of its own.
    """
    factor, info = dpotrf(covariance, lower=1)
    if info != 0:
        raise LinAlgError("the covariance is not positive definite")
    alpha, _ = dpotrs(factor, residual, lower=1)
    log_determinant = 2.0 * np.sum(np.log(np.diag(factor)))
    # R&W eq. 5.8
    fit = np.sum(residual * alpha)
    count, outputs = residual.shape
    value = -0.5 * (fit + outputs * (log_determinant + count * log(2.0 * pi)))
    if not isfinite(value):
        raise LinAlgError("the covariance is not finite")
    return float(value), factor, alpha


def _sensitivity(factor: Array, alpha: Array) -> Array:
    """Return weights whose product with any symmetric dC sums to the change of the log density.

    The whole inverse is not needed for that: its lower half, doubled off the diagonal, will do.
    """
    half, _ = dpotri(factor, lower=1)  # above the diagonal stay the zeros of dpotrf
    half[np.diag_indices_from(half)] *= 0.5
    weights: Array = 0.5 * alpha @ alpha.T - alpha.shape[1] * half  # R&W eq. 5.9
    return weights


def _floor(K: Array) -> float:
    return _FLOOR * float(np.mean(np.diag(K)))


def _add_noise(K: Array, noise: float) -> Array:
    total = np.array(K, dtype=np.float64)
    total[np.diag_indices_from(total)] += noise
    return total


def _centred(X: ArrayLike, y: ArrayLike, mean: ArrayLike) -> tuple[Array, Array]:
    """Return X (n, p) and y − mean (n, k), checked."""
    inputs, targets, target = validation.vector_samples(X, y, None, None)
    if len(targets) == 0:
        raise ValueError(f"X must have at least one sample, got shape {inputs.shape}")
    prior = validation.finite_vector("mean", mean)
    if prior.ndim and prior.shape != target:
        raise ValueError(f"mean must be a number or have shape {target}, got {prior.shape}")
    return inputs, targets - prior
