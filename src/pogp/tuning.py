"""Hyperparameters that maximise the marginal likelihood or, with a prior, the posterior density.

The search is over the logarithms of the kernel's parameters and of the noise variance, with
gradients, from several starts. Starts and bounds are computed from the data, so that units do not
matter. Equations are those of Rasmussen & Williams, *Gaussian Processes for Machine Learning*
(2006).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from logging import getLogger
from math import exp, inf, isfinite, log, pi

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import ArrayLike
from scipy.linalg.blas import dsyr
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from pogp import validation
from pogp.arrays import Array, Indices, diagonal_of
from pogp.blas import one_thread
from pogp.kernels import RBF, Elementary, Kernel, as_kernel, evaluate
from pogp.priors import Prior
from pogp.search import Found, Progress, minimise

LOG = getLogger(__name__)

_FLOOR = 1e-10
"""The noise stays above this share of κ(x, x), where float64 can still factor the covariance."""
_REACH = log(1e5)
"""How far a logarithm may go from the scale of the data."""
_SCATTER, _CANDIDATES = log(100.0), 10
"""How far from the scale of the data a random start may lie, and of how many it is the best."""
_NEAR = log(3.0)
"""How far from the scale of the data the best parameters are left when the search resumes there."""
_SCREENED = 200
"""On how many samples, at most, random starts are compared and parameters are scanned."""
_TOLERANCE = 1e-5
"""The search ends where two steps together gain less than this, in nats. On five data sets at most
some ten times as much was left to the optimum it was heading for, where parameters are worth
telling apart at about one nat. Other optima nearby can be a few hundredths of a nat better."""
_RAISES = 10
"""How often the noise is raised tenfold, at most, to factor what the search could factor."""
_TYPICAL_NOISE, _LEAST_NOISE = 0.1, 1e-8
"""Shares of the variance of y: where the noise starts, and where it ends."""


class _Stopped(Exception):  # noqa: N818
    """The caller has stopped the search."""


@dataclass(frozen=True)
class Tuned:
    """The result of `tune`.

    Attributes
    ----------
    kernel : Kernel
        The best kernel found.
    noise : float
        The best noise variance found.
    log_likelihood : float
        log p(y | X) at these hyperparameters.
    evaluations : int
        The number of evaluations of the likelihood, over all starts.
    converged : bool
        Whether the best search stopped by its tolerance.
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
    """Return log p(y | X).

    Parameters
    ----------
    kernel : Kernel or callable
        The covariance function.
    noise : float
        The noise variance.
    X : array-like of shape (n, p)
        Inputs.
    y : array-like of shape (n,) or (n, k)
        Targets.
    mean : float or array-like of shape (k,), default 0
        Constant prior mean.

    Examples
    --------
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
    prior: bool = False,
    max_evaluations: int = 2000,
    progress: Progress | None = None,
) -> Tuned:
    """Find the kernel and the noise variance with the highest marginal likelihood.

    The time grows with n³: less than a second for three hundred samples, which are enough for most
    streams, and about ten seconds for a thousand (`benchmarks/tuning.py`).

    Parameters
    ----------
    X : array-like of shape (n, p)
        Inputs.
    y : array-like of shape (n,) or (n, k)
        Targets. Several outputs share the kernel and the noise.
    kernel : type, Kernel or callable, default RBF
        A class of kernels, which gets one length-scale for each input and starts at the scale of
        the data; or a kernel, whose parameters are the first start.
    restarts : int, default 3
        Further starts, at and around the scale of the data. A start ends early if it only finds a
        known optimum.
    seed : int, default 0
        Seed of the random starts.
    noise : float, optional
        Noise variance of the first start.
    mean : float or array-like of shape (k,), default 0
        Constant prior mean.
    prior : bool, default False
        Multiply the likelihood by a weak prior (mathematics.md §8): length-scales of one kernel are
        expected to be alike, in units of the scale of their inputs, and neither the kernel's
        variance nor the noise is expected to be tiny. Recommended for few samples with many inputs,
        and for the beginning of an ordered stream, where the likelihood alone takes for irrelevant
        what has not varied yet.
    max_evaluations : int, default 2000
        The most evaluations of the likelihood, without the scan of periods on a few samples. The
        best result so far is returned.
    progress : callable, optional
        Called after each evaluation with the number of evaluations and the best log-likelihood so
        far. Raising StopIteration ends the search. The logger "pogp.tuning" reports each start.

    Examples
    --------
    >>> X = np.linspace(0.0, 6.0, 30)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=30)
    >>> tuned = tune(X, y)
    >>> tuned.kernel.lengthscale.round(1), round(tuned.noise, 3)
    (array([1.5]), 0.005)
    """
    inputs, residual = _centred(X, y, mean)
    restarts = validation.count("restarts", restarts, 0)
    allowed = validation.count("max_evaluations", max_evaluations, 1)
    rng = np.random.default_rng(seed)

    power = float(np.mean(residual**2)) or 1.0
    spread = (float(np.var(residual)) if np.ptp(residual) > 0 else 0.0) or power
    template = _template(kernel, inputs, power)
    typical = np.append(template.typical_theta(inputs, power), log(_TYPICAL_NOISE * spread))
    lower, upper = typical - _REACH, typical + _REACH
    lower[-1] = log(_LEAST_NOISE * spread)
    first_noise = typical[-1] if noise is None else log(validation.positive("noise", noise))

    scans = template.scans(inputs)
    if scans:
        typical = _scanned(template, inputs, residual, typical, scans, rng)
    offset = residual.size * log(power) / 2
    weak = Prior.of(template, inputs, power, spread) if prior else None
    objective = _Objective(template, inputs, residual, offset, weak, progress)
    starts = _starts(objective, np.append(template.theta, first_noise), typical, list(scans), rng)
    with one_thread:  # a few hundred rows: threads would wait for each other
        best = _best_of(objective, islice(starts, restarts + 1), lower, upper, allowed)
    if not isfinite(best.value):
        raise ValueError(f"the covariance of y was never positive definite, got {template!r}")
    found = template.with_theta(best.point[:-1])
    found_noise, likelihood = _factorable(found, exp(best.point[-1]), inputs, residual)
    return Tuned(
        kernel=found,
        noise=found_noise,
        log_likelihood=likelihood,
        evaluations=objective.evaluations,
        converged=best.converged,
    )


def _best_of(
    objective: _Objective, starts: Iterator[Array], lower: Array, upper: Array, allowed: int
) -> Found:
    """Return the best of the searches from these starts, within as many evaluations."""
    try:
        best = minimise(objective, next(starts), lower, upper, _TOLERANCE, allowed)
        objective.report("first start")
        while objective.evaluations + _CANDIDATES < allowed:  # the next start may take so many
            start = next(starts, None)
            if start is None:
                break
            left = allowed - objective.evaluations
            found = minimise(objective, start, lower, upper, _TOLERANCE, left, known=best.value)
            best = min(best, found, key=lambda one: one.value)
            objective.report("further start")
    except _Stopped:
        return Found(objective.best, objective.least, converged=False)
    return best


@dataclass
class _Objective:
    """−log p(y | X) − log p(parameters) and its gradient, by (theta, log(noise − floor)).

    The floor is a share of κ(x, x) and so moves with theta: every noise above it is in reach,
    and none below. `offset` takes the units of y out of the value, since the search stops at a
    change that is small beside it.
    """

    kernel: Kernel
    inputs: Array
    residual: Array
    offset: float
    prior: Prior | None = None
    progress: Progress | None = None
    evaluations: int = 0
    worst: float = -np.inf
    least: float = np.inf
    likelihood: float = -np.inf
    """log p(y | X) at the best parameters so far."""
    best: Array = field(init=False)
    _memory: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        n = len(self.inputs)
        # Fresh pages at every evaluation would take as long as the factorisation. So this matrix
        # is kept, and glibc keeps the others: it returns no block to the system that is smaller
        # than one that was freed before.
        np.empty((4, n, n))
        self._memory = np.empty((n, n))
        self.best = np.append(self.kernel.theta, 0.0)

    def __call__(self, parameters: Array) -> tuple[float, Array]:
        self.evaluations += 1
        excess = exp(parameters[-1])
        K, pullback = self.kernel.with_theta(parameters[:-1]).value_and_pullback(self.inputs)
        try:
            covariance = _add_noise(K, excess + _floor(K), self._memory)
            value, factor, alpha = _log_density(covariance, self.residual)
        except LinAlgError:
            # Worse than all before, yet near enough for the line search to interpolate.
            return 2.0 * abs(self.worst) + 1.0, np.zeros_like(parameters)
        weights = _sensitivity(factor, alpha)
        in_noise = np.trace(weights)
        diagonal_of(weights)[:] += _FLOOR * in_noise / len(weights)
        gradient = np.append(pullback(weights), in_noise * excess)
        likelihood = value
        if self.prior is not None:
            density, slope = self.prior(parameters)
            value, gradient = value + density, gradient + slope
        value = -value - self.offset
        self.worst = max(self.worst, value)
        if value < self.least:
            self.least, self.best, self.likelihood = value, parameters.copy(), likelihood
        if self.progress is not None:
            try:
                self.progress(self.evaluations, self.likelihood)
            except StopIteration:
                raise _Stopped from None
        return value, -gradient

    def report(self, what: str) -> None:
        """Log the progress of the search."""
        LOG.info(
            "%s: log-likelihood %.6g after %d evaluations", what, self.likelihood, self.evaluations
        )

    def value(self, parameters: Array, rows: Indices) -> float:
        """Return −log p of some of the samples, infinite where there is none."""
        self.evaluations += 1
        return _improbability(self.kernel, parameters, self.inputs[rows], self.residual[rows])


def _improbability(kernel: Kernel, parameters: Array, X: Array, residual: Array) -> float:
    """Return −log p(y | X), infinite where there is none."""
    K = kernel.with_theta(parameters[:-1])(X)
    try:
        return -_log_density(_add_noise(K, exp(parameters[-1]) + _floor(K)), residual)[0]
    except LinAlgError:
        return inf


def _scanned(
    kernel: Kernel,
    X: Array,
    residual: Array,
    typical: Array,
    scans: dict[int, Array],
    rng: np.random.Generator,
) -> Array:
    """Return the start with the most likely value of each parameter that has to be scanned."""
    some = rng.permutation(len(X))[:_SCREENED]
    X, residual = X[some], residual[some]
    best = typical.copy()
    for place, values in scans.items():
        candidates = np.tile(best, (len(values), 1))
        candidates[:, place] = values
        best = min(candidates, key=lambda one: _improbability(kernel, one, X, residual))
    return best


def _starts(
    objective: _Objective,
    first: Array,
    typical: Array,
    scanned: list[int],
    rng: np.random.Generator,
) -> Iterator[Array]:
    """Yield the first start, the scale of the data, the best point moved closer to it, and others.

    The others are random starts around it, without end; half of their candidates keep what was
    found by scanning.
    """
    yield first
    if not np.allclose(first, typical):
        yield typical
    # A length-scale that was once sent far off has no slope to come back by.
    yield np.clip(objective.best, typical - _NEAR, typical + _NEAR)
    rows = rng.permutation(len(objective.inputs))[:_SCREENED]
    while True:
        candidates = typical + rng.uniform(-_SCATTER, _SCATTER, (_CANDIDATES, typical.size))
        candidates[::2, scanned] = typical[scanned]
        yield min(candidates, key=lambda candidate: objective.value(candidate, rows))


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

    The covariance is overwritten. Each column of the residual (n, k) is one output.
    """
    # The transpose of a symmetric matrix is itself, and in LAPACK's order: nothing is copied.
    factor, info = dpotrf(covariance.T, lower=1, overwrite_a=1)
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

    The whole inverse is not needed for that: one half of it, doubled off the diagonal, will do.
    The factor is overwritten.
    """
    # R&W eq. 5.9; on the other side of the diagonal stay the zeros of dpotrf
    half, _ = dpotri(factor, lower=1, overwrite_c=1)
    half *= -alpha.shape[1]
    for column in alpha.T:
        half = dsyr(1.0, column, a=half, lower=1, overwrite_a=1)
    diagonal_of(half)[:] *= 0.5
    weights: Array = half.T  # in the order of NumPy
    return weights


def _factorable(kernel: Kernel, excess: float, X: Array, residual: Array) -> tuple[float, float]:
    """Return the noise variance and log p there.

    It is that of the search, unless rounding has put an end to its positive covariance.
    """
    K = evaluate(kernel, X, X)
    noise = excess + _floor(K)
    for _ in range(_RAISES):
        try:
            return noise, _log_density(_add_noise(K, noise), residual)[0]
        except LinAlgError:
            noise *= 10.0
    raise ValueError(f"the covariance of y must be positive definite, got {kernel!r}")


def _floor(K: Array) -> float:
    return _FLOOR * float(np.mean(np.diag(K)))


def _add_noise(K: Array, noise: float, out: Array | None = None) -> Array:
    total: Array = np.empty(K.shape) if out is None else out
    np.copyto(total, K)
    diagonal_of(total)[:] += noise
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
