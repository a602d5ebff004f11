"""Queries in blocks, so that the memory of a prediction does not grow with their number."""

from collections.abc import Callable

import numpy as np

from pogp.arrays import Array

BYTES = 2 << 20
"""The size of one matrix of a block; a prediction holds a handful of such matrices at once."""


def in_blocks(
    predict: Callable[[Array], tuple[Array, Array]], X: Array, width: int
) -> tuple[Array, Array]:
    """Return what `predict` returns for X, where a row of X needs rows of `width` numbers."""
    rows = max(BYTES // (8 * max(width, X.shape[1])), 1)
    if len(X) <= rows:
        return predict(X)
    parts = [predict(X[start : start + rows]) for start in range(0, len(X), rows)]
    means, variances = zip(*parts, strict=True)
    return np.concatenate(means), np.concatenate(variances)
