"""The exact GP on the retained samples, by either implementation of its loop."""

from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from pogp.arrays import Array
from pogp.compression import Plan
from pogp.criteria import Criterion
from pogp.interrupts import Lock, Uninterrupted
from pogp.kernels import Kernel, prior_variance
from pogp.posteriors.gradients import latent_gradients
from pogp.posteriors.retained import loop, retained_core
from pogp.posteriors.slots import slot_of
from pogp.trace import blank

BLOCK = 64
"""Samples learned at once by the compiled loop; between blocks Python may be interrupted."""


class RetainedPosterior:
    """Samples that can be added and removed, and the exact posterior given them."""

    def __init__(
        self, kernel: Kernel, noise: float, mean: float, dimension: int, criterion: Criterion
    ) -> None:
        self.kernel = kernel
        self.noise = noise
        self.mean = mean
        self.dimension = dimension
        self.criterion = criterion
        self.core = retained_core(kernel, noise, mean, dimension)
        # The reference checks kernel values. A compiled kernel can only overflow, which κ(x, x)
        # shows: |κ(a, b)|² ≤ κ(a, a) κ(b, b).
        self._unbounded = kernel.program() is not None and kernel.kappa0 is None

    @property
    def size(self) -> int:
        """The model order M."""
        return self.core.size

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.core.nbytes

    def in_order(self, name: str) -> NDArray[Any]:
        """Return `inputs`, `targets` or `arrivals` in order of arrival."""
        return cast(NDArray[Any], getattr(self.core, name)[np.argsort(self.core.arrivals)])

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Return the mean and the latent variance at each row of X."""
        self._require_bounded(X)
        return self.core.predict(X)

    def covariance(self, X: Array) -> Array:
        """Return the latent covariance between the rows of X."""
        cross, solved, residual = self.core.project(X)
        explained = solved @ (cross if residual is None else cross + residual).T
        return np.asarray(self.kernel(X) - (explained + explained.T) / 2)

    def gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the derivatives of mean and latent variance with respect to X."""
        solved = self.core.project(X)[1]
        return latent_gradients(self.kernel, X, self.core.inputs, self.core.weights, solved)

    def learn(
        self, X: Array, y: Array, first: int, plan: Plan, signals: Uninterrupted, lock: Lock
    ) -> Array:
        """Learn a batch whole or not at all; return its records (see `trace`).

        The lock is held while the state changes. Between blocks other threads may predict, and
        Ctrl-C takes effect.
        """
        self._require_bounded(X)
        compiled = self.core.compiled and self.criterion.native is not None
        learn = self.core.learn if compiled else partial(loop.learn, self.core)
        if compiled and len(y) <= 1:  # a single sample is atomic
            with lock:
                return learn(self.criterion, X, y, first, plan)
        before = self.core.state()
        records = blank(len(y))
        step = BLOCK if compiled else 1
        try:
            for start in range(0, len(y), step):
                rows = slice(start, start + step)
                with lock:
                    block = (self.criterion, X[rows], y[rows], first + start, plan.part(rows))
                    records[rows] = learn(*block)
                if signals.wanted and len(y) > 1:
                    raise KeyboardInterrupt
        except BaseException:
            with lock:
                self.core.restore(before)
            raise
        return records

    def prune(self, max_size: int) -> None:
        """Remove the cheapest points above a cap, as after the newest retained sample."""
        if self.size > max_size:
            step = loop.Step(self.core, newest=int(np.argmax(self.core.arrivals)))
            loop.compress(step, self.criterion, -np.inf, Plan(np.empty(0), max_size))

    def remove(self, arrival: int) -> None:
        """Remove the sample that arrived at this position of the stream."""
        self.core.remove(slot_of(arrival, self.core.arrivals))

    def _require_bounded(self, X: Array) -> None:
        if self._unbounded:
            prior_variance(self.kernel, X)

    def state(self) -> dict[str, Any]:
        """Return everything that was learned, as arrays and numbers."""
        return dict(self.core.state())

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned; ValueError if its parts contradict each other."""
        self.core.restore(state)
        self._require_consistent()

    def _require_consistent(self) -> None:
        core = self.core
        if core.size == 0:
            return
        if len(np.unique(core.arrivals)) < core.size or core.arrivals.min() < 0:
            raise ValueError("arrivals must be the positions of different samples")
        gram = core.gram
        if self.kernel.program() is not None:  # a kernel of the user's own may have changed
            exact = self.kernel(core.inputs)
            if not np.allclose(gram, exact, rtol=1e-6, atol=1e-6 * float(exact.max())):
                raise ValueError(f"gram is that of another kernel than {self.kernel!r}")
        precision, signs = core.precision, np.where(core.arrivals % 2, 1.0, -1.0)
        for s in (signs, precision @ signs):  # one probes large eigenvalues, the other small ones
            b = gram @ s + core.noise * s
            if not abs(b @ precision @ b - b @ s) < 0.5 * (b @ s):
                raise ValueError("precision must be the inverse of gram and the noise")
