"""A belief about the function at the retained points, over either core (`_core`)."""

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from pogp._core import absorbed_core, absorbed_reference
from pogp.arrays import Array
from pogp.compression import Plan
from pogp.kernels import Kernel, evaluate
from pogp.trace import FIELDS

BLOCK = 64
"""Samples learned at once by the compiled loop; between blocks Python may be interrupted."""
CHECK_INTERVAL = 512
"""The drift is measured once in so many samples: a whole number of blocks."""
DRIFT_TOLERANCE = 1e-7
"""Drift above this is mended."""


class AbsorbedPosterior:
    """Points that can be let go without what they taught (mathematics.md §4)."""

    def __init__(self, kernel: Kernel, noise: float, mean: float, dimension: int) -> None:
        self.kernel = kernel
        self.noise = noise
        self.mean = mean
        self.dimension = dimension
        self.core = absorbed_core(kernel, noise, mean, dimension)
        self._compiled = hasattr(self.core, "reserve")
        self.rebuilds = 0

    @property
    def size(self) -> int:
        """The model order M."""
        return self.core.size

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.core.nbytes

    def in_order(self, name: str) -> NDArray[Any]:
        """Return `inputs` or `arrivals` in order of arrival."""
        return cast(NDArray[Any], getattr(self.core, name)[np.argsort(self.core.arrivals)])

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Return the mean and the latent variance at each row of X."""
        return self.core.predict(X)

    def covariance(self, X: Array) -> Array:
        """Return the latent covariance between the rows of X."""
        cross = evaluate(self.kernel, X, self.core.inputs)
        return np.asarray(self.kernel(X) - cross @ self.core.precision @ cross.T)

    def learn(
        self,
        rule: str,
        X: Array,
        y: Array,
        first: int,
        plan: Plan,
        tolerance: float,
        project: bool = True,
    ) -> Array:
        """Learn a batch whole or not at all; return its records (see `trace.FIELDS`).

        Blocks end at multiples of their length in the stream, wherever the batch begins, so that
        the drift is measured at the same samples however they come.
        """
        if self._compiled and len(y) == 1:  # nothing in it can fail, and a snapshot costs O(M²)
            return self._learn_block(rule, X, y, first, plan, tolerance, project)
        before = self.memory()
        records = [np.empty((0, len(FIELDS)))]
        try:
            start = 0
            while start < len(y):
                rows = slice(start, min(len(y), start + BLOCK - (first + start) % BLOCK))
                block = (rule, X[rows], y[rows], first + start, plan.part(rows), tolerance, project)
                records.append(self._learn_block(*block))
                start = rows.stop
        except BaseException:
            self.remember(before)
            raise
        return np.concatenate(records)

    def _learn_block(
        self,
        rule: str,
        X: Array,
        y: Array,
        first: int,
        plan: Plan,
        tolerance: float,
        project: bool,
    ) -> Array:
        bounds = (plan.limits, plan.max_size, plan.max_removals, tolerance)
        records = self.core.learn(rule, X, y, first, *bounds, project)
        if (first + len(y)) % CHECK_INTERVAL == 0:
            self._mend((first + len(y)) // CHECK_INTERVAL)
        return records

    def drift(self, j: int) -> float:
        """Return how far column j of Q and of C are from what they should be."""
        gram, known, c = self.core.gram, self.core.information, self.core.precision[:, j]
        unit = np.zeros(self.size)
        unit[j] = 1.0
        inverse = np.abs(gram @ self.core.inverse[:, j] - unit).max()
        # (I + ΛK)C = Λ
        precision = np.abs(c + known @ (gram @ c) - known[:, j]).max() / np.abs(known).max()
        return float(max(inverse, precision))

    def _mend(self, turn: int) -> None:
        """Polish α; solve afresh from Z, Λ and η if the slot whose turn it is has drifted."""
        if self.size == 0:
            return
        fresh = absorbed_reference.Absorbed(self.kernel, self.noise, self.mean, self.dimension)
        fresh.restore(self.core.state())
        if self.drift(turn % self.size) > DRIFT_TOLERANCE:
            fresh.rebuild()
            self.rebuilds += 1
        fresh.polish()
        self.core.restore(fresh.state())

    def memory(self) -> dict[str, Any]:
        """Return everything that was learned, as arrays and numbers."""
        return {**self.core.state(), "rebuilds": self.rebuilds}

    def remember(self, memory: dict[str, Any]) -> None:
        """Take over what `memory` returned."""
        self.core.restore(memory)
        self.rebuilds = int(memory["rebuilds"])
