"""The evidence −log p(y) of samples and its gradient, in slices: dense, or by FITC.

The dense evidence is for few samples. For FITC (Snelson & Ghahramani 2006), m of the n samples are
inducing inputs Z. With κ(Z, Z) = LLᵀ and V = L⁻¹κ(Z, X), the covariance of y is VᵀV + Λ with the
diagonal Λ = σ² + diag(κ(X, X) − VᵀV). Like the model that it is for, this objective has more
samples than points. Of the objectives that were compared it gave the best models.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dtrtrs

from pogp.arrays import Array
from pogp.kernels import Kernel
from pogp.slices import PRODUCTS_PER_TICK, Work

CHUNK, AREA = 32, 4800
"""Rows, and numbers of a matrix, of one slice: about a tenth of a millisecond of work."""
NUGGET = 1e-5
"""Noise on the inducing values, as a share of the mean of κ(z, z)."""


class Evidence(NamedTuple):
    """The value −log p(y), its gradient, and the leave-one-out residuals."""

    value: float
    gradient: Array
    residuals: Array
    """(n, k), in units of their deviations."""


def reading(count: int, inputs: int) -> int:
    """Return the ticks to evaluate so many numbers of a kernel or of its derivatives."""
    return count * (12 + inputs) // 4


def strips(count: int) -> Iterator[tuple[int, int]]:
    """Yield the columns of a triangular matrix in slices of about equal area.

    The functions here compute all slices at once, but count ticks as `compiled_evidence.pyx` does.
    """
    start = 0
    while start < count:
        stop = min(start + max(16, AREA // (count - start)), count)
        yield start, stop
        start = stop


def factor_ticks(count: int, start: int, stop: int) -> int:
    """Return the ticks to factorise some columns of a matrix after the preceding ones."""
    wide = (stop - start) * (count - (start + stop) // 2)
    return wide * (start + stop) // (2 * PRODUCTS_PER_TICK)


def inverse_ticks(count: int, start: int, stop: int) -> int:
    """Return the ticks to compute some columns of the inverse from the factor."""
    return (stop - start) * (count - start) ** 2 // PRODUCTS_PER_TICK


def solve_ticks(count: int, columns: int) -> int:
    """Return the ticks to multiply columns by the inverse of a triangular matrix."""
    return columns * count**2 // (2 * PRODUCTS_PER_TICK)


def dense(
    kernel: Kernel, noise: float, X: Array, Y: Array, weights: Array, extra: Array
) -> Work[Evidence | None]:
    """Return the evidence of the dense process; for the arguments see `evidence`."""
    (n, k), p = Y.shape, X.shape[1]
    own = noise / weights
    for start, stop in strips(n):
        wide = (stop - start) * (n - (start + stop) // 2)
        yield reading(wide, p) + factor_ticks(n, start, stop)
    C, pullback = kernel.value_and_pullback(X)
    C[np.diag_indices(n)] += own + extra
    L, failed = dpotrf(C, lower=1, clean=1)
    if failed:
        return None
    for start, stop in strips(n):
        yield reading((stop - start) * (n - start), p) + inverse_ticks(n, start, stop)
    inverse = dpotri(L, lower=1)[0]
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    a = inverse @ Y
    value = 0.5 * n * k * np.log(2 * np.pi) + k * float(np.log(np.diagonal(L)).sum())
    value += 0.5 * float(np.vdot(Y, a))
    in_gram = 0.5 * (k * inverse - a @ a.T)  # the derivative of −log p in C
    gradient = np.append(pullback(in_gram), float(np.diagonal(in_gram) @ own))
    if not np.isfinite(value) or not np.isfinite(gradient).all():
        return None
    return Evidence(value, gradient, a / np.sqrt(np.diagonal(inverse))[:, None])


def evidence(
    kernel: Kernel,
    noise: float,
    inducing: Array,
    X: Array,
    Y: Array,
    weights: Array | None = None,
    extra: Array | float = 0.0,
) -> Work[Evidence | None]:
    """Return the FITC evidence and its gradient in (theta, log noise), or None if that fails.

    The k outputs of Y (n, k) share kernel and noise. The noise of a sample is σ² over its weight
    plus its `extra` variance, (n,).
    """
    (m, p), (n, k) = inducing.shape, Y.shape
    yield reading(m**2, p)
    yield from (factor_ticks(m, *columns) for columns in strips(m))
    gram, gram_pullback = kernel.value_and_pullback(inducing)
    gram[np.diag_indices(m)] += NUGGET * float(np.mean(np.diagonal(gram)))
    L, failed = dpotrf(gram, lower=1, clean=1)
    if failed:
        return None
    chunks = [slice(start, min(start + CHUNK, n)) for start in range(0, n, CHUNK)]
    A, b = np.eye(m), np.zeros((m, k))
    diagonal, extra = kernel.diag(X), np.broadcast_to(extra, n)
    own = noise / (np.ones(n) if weights is None else weights)
    kept = []
    for rows in chunks:  # Vᵀ, Λ and A = I + VΛ⁻¹Vᵀ
        yield (rows.stop - rows.start) * (reading(m, p) + m**2 // PRODUCTS_PER_TICK)
        cross, pullback = kernel.cross_pullback(X[rows], inducing)
        Vt = _solved(L, cross)
        slack = np.maximum(diagonal[rows] - np.einsum("ij,ij->i", Vt, Vt), 0.0)
        noises = slack + own[rows] + extra[rows]
        whitened = Vt / np.sqrt(noises)[:, None]
        A += whitened.T @ whitened
        b += Vt.T @ (Y[rows] / noises[:, None])
        kept.append((Vt, noises, pullback))
    yield from (factor_ticks(m, *columns) for columns in strips(m))
    LA, failed = dpotrf(A, lower=1, clean=1)
    if failed:
        return None
    yield from (inverse_ticks(m, *columns) for columns in strips(m))
    yield 2 * m**2
    inverse = dpotri(LA, lower=1)[0]
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    a = inverse @ b
    value = k * float(np.log(np.diagonal(LA)).sum()) + 0.5 * n * k * np.log(2 * np.pi)
    # derivatives of −log p in κ(Z, Z), whitened, and in Λ
    T = -0.5 * (k * (np.eye(m) - inverse) - a @ a.T)
    in_noises, in_theta = np.empty(n), np.zeros(len(kernel.theta))
    residuals = np.empty((n, k))
    for rows, (Vt, noises, pullback) in zip(chunks, kept, strict=True):
        yield (rows.stop - rows.start) * (reading(m, p) // 2 + 3 * m**2 // (2 * PRODUCTS_PER_TICK))
        AV = Vt @ inverse
        h = np.einsum("ij,ij->i", Vt, AV)
        misfit = Y[rows] - Vt @ a
        scaled = misfit / noises[:, None]
        value += 0.5 * k * float(np.log(noises).sum()) + 0.5 * float(np.vdot(scaled, Y[rows]))
        squares = np.sum(misfit**2, axis=1)
        slope = 0.5 * k / noises - 0.5 * (k * h + squares) / noises**2  # in Λ
        in_noises[rows] = slope
        residuals[rows] = misfit / np.sqrt(np.maximum(noises - h, 1e-12 * noises))[:, None]
        sloped = Vt * slope[:, None]
        T += Vt.T @ sloped
        AV *= (k / noises)[:, None]
        AV -= scaled @ a.T
        AV -= 2.0 * sloped
        in_theta += pullback(_solved(L, AV, transposed=True))[0]
    yield m**2
    for _ in range(2):
        yield from (solve_ticks(m, min(start + CHUNK, m) - start) for start in range(0, m, CHUNK))
    in_gram = _solved(L, _solved(L, T, transposed=True).T, transposed=True)
    yield reading(m**2, p)
    in_gram[np.diag_indices(m)] += NUGGET / m * np.trace(in_gram)
    in_theta += gram_pullback(in_gram) + kernel.diag_pullback(X, in_noises)
    gradient = np.append(in_theta, noise * np.sum(in_noises * (own / noise)))
    if not np.isfinite(value) or not np.isfinite(gradient).all():
        return None
    return Evidence(value, gradient, residuals)


def _solved(L: Array, rows: Array, transposed: bool = False) -> Array:
    """Return L⁻¹, or L⁻ᵀ, times each row. LAPACK's order of storage avoids copies."""
    return np.asarray(dtrtrs(L, rows.T, lower=1, trans=int(transposed))[0].T)
