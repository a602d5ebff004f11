"""The exact GP on the retained samples, over either core (`_core`)."""

from collections.abc import Callable
from threading import RLock
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from pogp import compression
from pogp._core import retained_core
from pogp.arrays import Array
from pogp.compression import Plan
from pogp.criteria import Criterion
from pogp.interrupts import Uninterrupted
from pogp.kernels import Kernel, prior_variance
from pogp.posteriors.gradients import latent_gradients
from pogp.trace import FIELDS

BLOCK = 64
"""Samples learned at once by the compiled loop; between blocks Python may be interrupted."""


class RetainedPosterior:
    """Samples that can be added and removed, and the exact posterior given them."""

    def __init__(self, kernel: Kernel, noise: float, mean: float, dimension: int) -> None:
        self.kernel = kernel
        self.noise = noise
        self.mean = mean
        self.dimension = dimension
        self.lock = RLock()  # held while a block is learned and while something is predicted
        self.core = retained_core(kernel, noise, mean, dimension)
        # The reference checks what a kernel returns; values beyond all bounds are all that a
        # compiled kernel can do wrong, and |κ(a, b)|² ≤ κ(a, a) κ(b, b).
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
        """Return the derivatives of mean and latent variance by each row of X."""
        solved = self.core.project(X)[1]
        return latent_gradients(self.kernel, X, self.core.inputs, self.core.weights, solved)

    def learn(
        self,
        criterion: Criterion,
        X: Array,
        y: Array,
        first: int,
        plan: Plan,
        signals: Uninterrupted,
    ) -> Array:
        """Learn a batch whole or not at all; return its records (see `trace.FIELDS`).

        Between blocks others may predict, and Ctrl-C is obeyed.
        """
        self._require_bounded(X)
        compiled = getattr(self.core, "learn", None) if criterion.native else None
        if compiled is not None and len(y) <= 1:  # which is never half done
            with self.lock:
                return _learn_block(compiled, criterion, X, y, first, plan)
        before = self.core.state()
        records = np.empty((len(y), len(FIELDS)))
        step = 1 if compiled is None else BLOCK
        try:
            for start in range(0, len(y), step):
                rows = slice(start, start + step)
                block = (criterion, X[rows], y[rows], first + start, plan.part(rows))
                with self.lock:
                    if compiled is None:
                        records[rows] = compression.learn(self.core, *block)
                    else:
                        records[rows] = _learn_block(compiled, *block)
                if signals.wanted and len(y) > 1:
                    raise KeyboardInterrupt
        except BaseException:
            with self.lock:
                self.core.restore(before)
            raise
        return records

    def prune(self, criterion: Criterion, max_size: int) -> None:
        """Let go of the cheapest points above a cap, as after the newest retained sample."""
        if self.size > max_size:
            step = compression.Step(self.core, newest=int(np.argmax(self.core.arrivals)))
            compression.compress(step, criterion, -np.inf, Plan(np.empty(0), max_size))

    def remove(self, arrival: int) -> None:
        """Forget the sample that arrived at this position of the stream."""
        slots = np.flatnonzero(self.core.arrivals == arrival)
        if len(slots) == 0:
            raise ValueError(f"sample {arrival!r} is not retained; see .indices for those that are")
        self.core.remove(int(slots[0]))

    def _require_bounded(self, X: Array) -> None:
        if self._unbounded:
            prior_variance(self.kernel, X)

    def memory(self) -> dict[str, Any]:
        """Return everything that was learned, as arrays and numbers."""
        return dict(self.core.state())

    def remember(self, memory: dict[str, Any]) -> None:
        """Take over what `memory` returned; ValueError if its parts contradict each other."""
        self.core.restore(memory)
        self._require_consistent()

    def _require_consistent(self) -> None:
        core = self.core
        if core.size == 0:
            return
        if len(np.unique(core.arrivals)) < core.size or core.arrivals.min() < 0:
            raise ValueError("arrivals must be the positions of different samples")
        gram = core.gram
        if self.kernel.program() is not None:  # a kernel of the user's own may be another by now
            exact = self.kernel(core.inputs)
            if not np.allclose(gram, exact, rtol=1e-6, atol=1e-6 * float(exact.max())):
                raise ValueError(f"gram is that of another kernel than {self.kernel!r}")
        precision, signs = core.precision, np.where(core.arrivals % 2, 1.0, -1.0)
        for s in (signs, precision @ signs):  # which speak of large and of small eigenvalues
            b = gram @ s + core.noise * s
            if not abs(b @ precision @ b - b @ s) < 0.5 * (b @ s):
                raise ValueError("precision must be the inverse of gram and the noise")


def _learn_block(
    learn: Callable[..., Array], criterion: Criterion, X: Array, y: Array, first: int, plan: Plan
) -> Array:
    """Hand a block to the compiled loop (`Learner.learn`)."""
    bounds = (plan.limits, plan.max_size, plan.max_removals)
    return learn(criterion.native, X, y, first, *bounds, plan.slots)
