"""The small streams that the pictures learn from."""

import numpy as np

from pogp.arrays import Array


def truth(x: Array) -> Array:
    """Return the function that the small pictures learn."""
    return np.sin(2 * x) + 0.3 * x


def samples(n: int, noise: float, seed: int, low: float = -3, high: float = 3) -> tuple[Array, ...]:
    """Return n inputs (n, 1) and noisy targets."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(low, high, n)
    return x[:, None], truth(x) + np.sqrt(noise) * rng.normal(size=n)


def truth_shifted(x: Array, shift: Array | float) -> Array:
    """Return the function that moves to the left."""
    return np.sin(2 * x + shift)
