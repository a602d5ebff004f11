"""Algebra of dense matrices in slices (`pogp.slices`): some columns after the others.

Matrices are in LAPACK's order, by columns. Of symmetric ones the lower triangle counts.
"""

from collections.abc import Iterator

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf

from pogp.arrays import Array
from pogp.slices import PRODUCTS_PER_TICK, Work

STRIP = 32
"""Columns in a slice: enough for BLAS, and few beside the points of a model."""


def strips(count: int) -> Iterator[slice]:
    """Yield the slices' columns."""
    return (slice(start, min(start + STRIP, count)) for start in range(0, count, STRIP))


def factor(matrix: Array) -> Work[Array]:
    """Return L with LLᵀ = A; the lower triangle of A is read and used up."""
    L = by_columns(matrix)
    count = len(L)
    for own in strips(count):
        start, stop = own.start, own.stop
        yield STRIP * (2 * count + (count - start) * stop // PRODUCTS_PER_TICK)
        if start:
            L[start:, own] -= L[start:, :start] @ L[own, :start].T
        corner, failed = dpotrf(L[own, own], lower=1, clean=1)
        if failed:
            raise np.linalg.LinAlgError("not positive definite")
        L[own, own], L[:start, own] = corner, 0.0
        if stop < count:
            L[stop:, own] = dtrsm(1.0, corner, L[stop:, own], side=1, lower=1, trans_a=1)
    return L


def solved(L: Array, matrix: Array, transposed: bool = False) -> Work[Array]:
    """Return L⁻¹A or L⁻ᵀA; A, which is by columns, is used up."""
    trans = int(transposed)
    for own in strips(matrix.shape[1]):
        yield STRIP * len(L) * (1 + len(L) // PRODUCTS_PER_TICK)
        matrix[:, own] = dtrsm(1.0, L, matrix[:, own], lower=1, trans_a=trans, overwrite_b=1)
    return matrix


def inverse_root(L: Array) -> Work[Array]:
    """Return L⁻¹."""
    count = len(L)
    out = np.zeros((count, count), order="F")
    for own in strips(count):
        start, below = own.start, count - own.start
        yield STRIP * below * (2 + below // PRODUCTS_PER_TICK)
        out[own, own] = np.eye(own.stop - start)
        out[start:, own] = dtrsm(1.0, L[start:, start:], out[start:, own], lower=1)
    return out


def inverse(L: Array) -> Work[Array]:
    """Return (LLᵀ)⁻¹, both triangles."""
    count = len(L)
    out = np.empty((count, count), order="F")
    for own in strips(count):
        start, below = own.start, count - own.start
        yield STRIP * below * (3 + 2 * below // PRODUCTS_PER_TICK)
        rest = np.asfortranarray(L[start:, start:])
        half = dtrsm(1.0, rest, np.eye(below, own.stop - start, order="F"), lower=1, overwrite_b=1)
        out[start:, own] = dtrsm(1.0, rest, half, lower=1, trans_a=1, overwrite_b=1)
        out[own, start:] = out[start:, own].T
    return out


def congruent(matrix: Array, L: Array) -> Work[Array]:
    """Return LᵀAL, both triangles, of a symmetric matrix that has both."""
    count = len(L)
    out = np.empty((count, count), order="F")
    for own in strips(count):
        start, below = own.start, count - own.start
        yield STRIP * below * (6 + 2 * below // PRODUCTS_PER_TICK)
        half = matrix[start:, start:] @ L[start:, own]
        out[start:, own] = L[start:, start:].T @ half
        out[own, start:] = out[start:, own].T
    return out


def squared(matrix: Array) -> Work[Array]:
    """Return the lower triangle of AᵀA."""
    rows, count = matrix.shape
    out = np.zeros((count, count), order="F")
    for own in strips(count):
        below = count - own.start
        yield STRIP * (2 * count + rows * below // PRODUCTS_PER_TICK)
        out[own.start :, own] = matrix[:, own.start :].T @ matrix[:, own]
    return out


def product(A: Array, B: Array) -> Work[Array]:
    """Return AB."""
    out = np.empty((len(A), B.shape[1]), order="F")
    for own in strips(B.shape[1]):
        yield STRIP * (2 * len(A) + A.size // PRODUCTS_PER_TICK)
        out[:, own] = A @ B[:, own]
    return out


def by_columns(matrix: Array) -> Array:
    """Return a symmetric matrix as LAPACK has it, without copying it if that can be."""
    return matrix if matrix.flags.f_contiguous else matrix.T
