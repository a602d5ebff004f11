"""Data that strains the arithmetic: predictions stay finite, and variances positive."""

import numpy as np

from pogp.arrays import Array
from pogp.checks._kit import Make, check, require_sound, stream, teach


@check()
def one_sample_is_enough(make: Make) -> None:
    """To predict from."""
    X, y = stream(make())
    _require_sound_after(make, X[:1], y[:1])


@check()
def repeated_inputs_do_no_harm(make: Make) -> None:
    """Although κ(X, X) is singular: a dozen places in turn, and one place only."""
    X, y = stream(make())
    _require_sound_after(make, np.resize(X[:12], X.shape), y)
    _require_sound_after(make, np.resize(X[:1], X.shape), y)


@check()
def inputs_in_a_row_do_no_harm(make: Make) -> None:
    """Sorted, and so close that each says what the one before did."""
    X, y = stream(make())
    _require_sound_after(make, np.sort(X, axis=0) * 1e-3, y)


@check()
def constant_targets_do_no_harm(make: Make) -> None:
    """Neither zeros nor ones."""
    X, y = stream(make())
    _require_sound_after(make, X, np.zeros_like(y))
    _require_sound_after(make, X, np.ones_like(y))


@check()
def large_and_small_targets_do_no_harm(make: Make) -> None:
    """Whether a million times as large as the kernel expects, or as small."""
    X, y = stream(make())
    _require_sound_after(make, X, 1e6 * y)
    _require_sound_after(make, X, 1e-6 * y)


@check()
def an_outlier_does_no_harm(make: Make) -> None:
    """Neither one wild target nor one far input."""
    X, y = stream(make())
    y[50] = 1e8
    X[60] = 1e6
    _require_sound_after(make, X, y)


def _require_sound_after(make: Make, X: Array, y: Array) -> None:
    model = make()
    teach(model, X, y)
    require_sound(model, f"after X from {X[0]} and y from {y[0]:g}")
