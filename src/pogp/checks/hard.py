"""Numerically hard data: predictions stay finite, and variances positive."""

import numpy as np

from pogp.arrays import Array
from pogp.checks._kit import Make, check, require_sound, stream, train


@check()
def one_sample_is_enough(make: Make) -> None:
    """Check predictions of a model that has learned one sample."""
    X, y = stream(make())
    _require_sound_after(make, X[:1], y[:1])


@check()
def repeated_inputs_do_no_harm(make: Make) -> None:
    """Check twelve inputs in turn, and one input only: κ(X, X) is singular."""
    X, y = stream(make())
    _require_sound_after(make, np.resize(X[:12], X.shape), y)
    _require_sound_after(make, np.resize(X[:1], X.shape), y)


@check()
def inputs_in_a_row_do_no_harm(make: Make) -> None:
    """Check sorted inputs that are so close that each is nearly the one before."""
    X, y = stream(make())
    _require_sound_after(make, np.sort(X, axis=0) * 1e-3, y)


@check()
def constant_targets_do_no_harm(make: Make) -> None:
    """Check targets that are all zero, and all one."""
    X, y = stream(make())
    _require_sound_after(make, X, np.zeros_like(y))
    _require_sound_after(make, X, np.ones_like(y))


@check()
def large_and_small_targets_do_no_harm(make: Make) -> None:
    """Check targets a million times larger, and smaller, than the kernel expects."""
    X, y = stream(make())
    _require_sound_after(make, X, 1e6 * y)
    _require_sound_after(make, X, 1e-6 * y)


@check()
def an_outlier_does_no_harm(make: Make) -> None:
    """Check one extreme target, and one input far away."""
    X, y = stream(make())
    y[50] = 1e8
    X[60] = 1e6
    _require_sound_after(make, X, y)


def _require_sound_after(make: Make, X: Array, y: Array) -> None:
    model = make()
    train(model, X, y)
    require_sound(model, f"after X from {X[0]} and y from {y[0]:g}")
