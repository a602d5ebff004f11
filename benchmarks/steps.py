"""One learning step: naive, reference, compiled, and what its products and updates alone take."""

import os

import numpy as np
from scipy.linalg import blas, cho_factor, cho_solve

import pogp
from benchmarks.workloads import KERNEL, NOISE, full_model, microseconds, stream
from pogp.arrays import Array
from pogp.backends import VARIABLE
from pogp.models import Model

BATCH = 64


def naive(size: int, candidates: int = 3) -> float:
    """Time a fresh Cholesky factorisation for each candidate, as the paper's code does it.

    A few candidates are timed and multiplied by their number, size + 1.
    """
    data = stream(size + 1)

    def without(j: int) -> float:
        keep = np.arange(size + 1) != j
        Z, y, x = data.X[keep], data.y[keep], data.X[-1:]
        factor = cho_factor(KERNEL(Z) + NOISE * np.eye(size), lower=True)
        k = KERNEL(Z, x)[:, 0]
        mean = float(k @ cho_solve(factor, y))
        variance = float(KERNEL.diag(x)[0] - k @ cho_solve(factor, k) + NOISE)
        return float(pogp.hellinger(0.0, 1.0, mean, variance))

    indices = iter(range(candidates))
    return float(np.median(microseconds(lambda: without(next(indices)), candidates)) * (size + 1))


def reference(size: int, samples: int = 12) -> float:
    """Time the NumPy implementation on one batch."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = "reference"
    try:
        model = full_model(size).copy() if size <= 100 else _reference_from_compiled(size)
    finally:
        _restore(before)
    data = stream(samples)
    return float(microseconds(lambda: model.learn(data.X, data.y), 3).min() / samples)


def batches(model: Model, samples: int = 4096) -> Array:
    """Time learning in batches: microseconds per sample of each batch."""
    data = stream(samples)
    starts = iter(range(0, samples, BATCH))

    def batch() -> None:
        rows = slice(start := next(starts), start + BATCH)
        model.learn(data.X[rows], data.y[rows])

    return microseconds(batch, samples // BATCH) / BATCH


def single(model: Model, samples: int = 4096) -> Array:
    """Time the same, called with one sample at a time: microseconds of each call."""
    data = stream(samples)
    pairs = iter([(x, float(y)) for x, y in zip(data.X, data.y, strict=True)])
    return microseconds(lambda: model.learn(*next(pairs)), samples)


def predict(size: int, calls: int = 2000) -> Array:
    """Time a prediction at one point: microseconds of each call."""
    model = full_model(size)
    points = iter(stream(calls).X)
    return microseconds(lambda: model.predict(next(points)), calls)


def floor(size: int, repeats: int = 2000) -> Array:
    """Time what one-at-a-time learning cannot do without: one dsymv and one dsyr2 of that size."""
    rng = np.random.default_rng(0)
    matrix = np.asfortranarray(rng.standard_normal((size, size)))
    x, z, out = rng.standard_normal(size), rng.standard_normal(size), np.zeros(size)

    def pair() -> None:
        blas.dsymv(1.0, matrix, x, y=out, overwrite_y=1, lower=1)
        blas.dsyr2(1e-12, x, z, a=matrix, overwrite_a=1, lower=1)

    return microseconds(pair, repeats)


def updates(size: int, repeats: int = 2000) -> Array:
    """Time what SOGP takes when an append and a removal are done one by one.

    Two products, dsymv with Q and with C. As rank-one updates, dsyr: two of Q, by e and by Q_j, and
    three of C, by g, by B_j and by Q_j (mathematics.md §4).
    """
    rng = np.random.default_rng(0)
    Q, C = (np.asfortranarray(rng.standard_normal((size, size))) for _ in range(2))
    x, z, out = rng.standard_normal(size), rng.standard_normal(size), np.zeros(size)

    def step() -> None:
        for matrix, count in ((Q, 2), (C, 3)):
            blas.dsymv(1.0, matrix, x, y=out, overwrite_y=1, lower=1)
            for _ in range(count):
                blas.dsyr(1e-12, z, a=matrix, overwrite_a=1, lower=1)

    return microseconds(step, repeats)


def _reference_from_compiled(size: int) -> pogp.POG:
    """Fill the dictionary with the compiled loop, which is faster, and hand it over."""
    os.environ.pop(VARIABLE)
    filled = full_model(size)
    os.environ[VARIABLE] = "reference"
    return filled.copy()


def _restore(value: str | None) -> None:
    if value is None:
        os.environ.pop(VARIABLE, None)
    else:
        os.environ[VARIABLE] = value
