"""The units of a model: those of the data, or those of a first slice of the stream."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from pogp.arrays import Array, spread
from pogp.trace import Trace


@dataclass(frozen=True)
class Units:
    """Inputs and outputs minus a centre, divided by a spread.

    By default these are 0 and 1: the model sees the data as the user does. Targets are (n,), or
    (n, k) for several outputs, everywhere.
    """

    input_centre: Array | float = 0.0
    input_spread: Array | float = 1.0
    target_centre: Array | float = 0.0
    target_spread: Array | float = 1.0

    @classmethod
    def of(cls, X: Array, y: Array) -> Self:
        """Return the means and standard deviations of samples as units."""
        return cls(np.asarray(X.mean(axis=0)), spread(X), np.asarray(y.mean(axis=0)), spread(y))

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Self:
        """Return the units that `state` described."""
        return cls(*(np.array(state[field.name]) for field in fields(cls)))

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(array.nbytes for array in self.state().values())

    def inputs(self, X: Array) -> Array:
        """Return raw inputs (n, p) in these units."""
        return (X - self.input_centre) / self.input_spread

    def targets(self, y: Array) -> Array:
        """Return raw targets in these units."""
        return (y - self.target_centre) / self.target_spread

    def user_inputs(self, X: Array) -> Array:
        """Return inputs in these units as raw inputs, up to rounding."""
        return self.input_centre + self.input_spread * X

    def user_targets(self, y: Array) -> Array:
        """Return targets in these units, or draws of them, as raw targets."""
        return self.target_centre + self.target_spread * y

    def user_variances(self, variances: Array) -> Array:
        """Return variances or covariances in the units of raw targets."""
        return self.target_spread**2 * variances

    def user_gradients(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Return derivatives by raw inputs, (n, p) or (n, p, k), of raw targets."""
        by = self.input_spread if mean.ndim == 2 else np.expand_dims(self.input_spread, -1)
        return self.target_spread * mean / by, self.target_spread**2 * variance / by

    def user_trace(self, trace: Trace) -> Trace:
        """Return a trace in the units of raw targets; distances have no unit."""
        seen = Trace(trace.records.copy(), trace.flat)
        seen.mean[...] = self.user_targets(trace.mean)
        seen.variance[...] = self.user_variances(trace.variance)
        return seen

    def state(self) -> dict[str, Any]:
        """Return the state, as arrays; nothing for the units of the user."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: np.array(v) for name, v in values.items() if isinstance(v, np.ndarray)}
