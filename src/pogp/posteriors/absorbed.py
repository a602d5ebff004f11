"""A belief about the function at the retained points, over either core (`_core`)."""

from math import floor, log
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from pogp._core import absorbed_core
from pogp._core.absorbed_reference import Absorbed
from pogp._core.absorber_reference import Rule
from pogp.arrays import Array
from pogp.compression import Plan
from pogp.kernels import Kernel, evaluate

BLOCK = 64
"""Samples learned at once by the compiled loop; between blocks Python may be interrupted."""
CHECK_INTERVAL, CAREFUL_INTERVAL = 128, 16
"""The drift is measured once in so many samples; the second where there is very little noise."""
DRIFT_TOLERANCE = 1e-8
"""Drift above this (or ten times what a fresh solve leaves) is mended."""
LEAST_KEPT, LONGEST_WAIT = 0.9, 512
"""Forgetting comes in steps of at most a tenth, at least once in so many samples."""


class AbsorbedPosterior:
    """Points that can be let go without what they taught (mathematics.md §4)."""

    def __init__(
        self, kernel: Kernel, noise: float, mean: Array, dimension: int, forgetting: float = 1.0
    ) -> None:
        self.kernel = kernel
        self.noise = noise
        self.mean = mean
        self.dimension = dimension
        self.forgetting = forgetting
        self.core = absorbed_core(kernel, noise, mean, dimension)
        self._compiled = hasattr(self.core, "reserve")
        self.rebuilds = 0
        self._tolerance = DRIFT_TOLERANCE
        self._unforgotten = 0  # samples since the belief last moved towards the prior

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
        """Return the means (n, k) and the latent variance (n,) at the rows of X."""
        return self.core.predict(X)

    def covariance(self, X: Array) -> Array:
        """Return the latent covariance between the rows of X."""
        cross = evaluate(self.kernel, X, self.core.inputs)
        return np.asarray(self.kernel(X) - cross @ self.core.precision @ cross.T)

    def learn(
        self,
        rule: Rule,
        X: Array,
        Y: Array,
        noises: Array,
        relevance: Array,
        first: int,
        plan: Plan,
    ) -> Array:
        """Learn a batch whole or not at all; return its records (see `trace`).

        Blocks end at multiples of their length in the stream, wherever the batch begins, so that
        the drift is measured at the same samples however they come.
        """
        if self._compiled and len(Y) == 1:  # nothing in it can fail, and a snapshot costs O(M²)
            return self._learn_block(rule, X, Y, noises, relevance, first, plan)
        before = self.memory()
        records = [np.empty((0, 2 * Y.shape[1] + 5))]
        try:
            start = 0
            while start < len(Y):
                block = min(BLOCK, self._interval)
                room = min(block - (first + start) % block, self._wait - self._unforgotten)
                rows = slice(start, min(len(Y), start + room))
                samples = (X[rows], Y[rows], noises[rows], relevance[rows])
                records.append(self._learn_block(rule, *samples, first + start, plan.part(rows)))
                start = rows.stop
        except BaseException:
            self.remember(before)
            raise
        return np.concatenate(records)

    def _learn_block(
        self,
        rule: Rule,
        X: Array,
        Y: Array,
        noises: Array,
        relevance: Array,
        first: int,
        plan: Plan,
    ) -> Array:
        records = self.core.learn(rule, X, Y, noises, relevance, first, plan)
        if self.forgetting < 1.0:
            self._forget(len(Y))
        if (first + len(Y)) % self._interval == 0:
            self._mend(first + len(Y))
        return records

    @property
    def _interval(self) -> int:
        return CAREFUL_INTERVAL if self.core.careful else CHECK_INTERVAL

    @property
    def _wait(self) -> int:
        """How many samples are learned between two steps of forgetting: a matter of O(M³)."""
        if self.forgetting == 1.0:
            return LONGEST_WAIT
        return min(max(floor(log(LEAST_KEPT) / log(self.forgetting)), 1), LONGEST_WAIT)

    def _forget(self, samples: int) -> None:
        """Count samples; when it is time, move the belief towards the prior (mathematics.md §5)."""
        self._unforgotten += samples
        if self._unforgotten >= self._wait:
            fresh = self._reference()
            fresh.forget(self.forgetting**self._unforgotten)
            self.core.restore(fresh.state())
            self._unforgotten = 0

    def _mend(self, turn: int) -> None:
        """Polish α; solve afresh from Z, Λ and η if Q or C has drifted (mathematics.md §6)."""
        signs = np.random.default_rng(turn).choice(np.array([-1.0, 1.0]), self.size)
        if not self.core.drift(signs) <= self._tolerance:
            fresh = self._reference()
            fresh.rebuild()
            self.core.restore(fresh.state())
            self._tolerance = max(DRIFT_TOLERANCE, 10 * self.core.drift(signs))
            self.rebuilds += 1
        self.core.polish()

    def _reference(self) -> Absorbed:
        """Return the state in a form that the rarer operations work on."""
        fresh = Absorbed(self.kernel, self.noise, self.mean, self.dimension)
        fresh.restore(self.core.state())
        return fresh

    def merge(self, other: "AbsorbedPosterior", offset: int) -> None:
        """Take over what another posterior learned (mathematics.md §5).

        The points of the other arrived `offset` samples later than it says.
        """
        fresh = self._reference()
        held = {row.tobytes() for row in fresh.inputs}
        fresh.join(other._reference(), offset)
        fresh.rebuild()
        for j in range(fresh.size - 1, self.size - 1, -1):  # an input held by both is one point
            if fresh.inputs[j].tobytes() in held:
                fresh.condition(j)
        self.core.restore(fresh.state())

    def prune(self, rule: Rule, limit: float, max_size: int) -> float:
        """Let go of points within the limit and to the cap; return what that cost."""
        spent = self.core.prune(rule, limit, max_size)
        self.core.polish()
        return spent

    def under(self, kernel: Kernel, noise: float) -> "AbsorbedPosterior":
        """Return what was learned under another prior: Λ and η, in units of the other noise."""
        moved = AbsorbedPosterior(kernel, noise, self.mean, self.dimension, self.forgetting)
        fresh = self._reference()
        fresh.change_prior(kernel, noise)
        moved.remember({**self.memory(), **fresh.state()})
        return moved

    def memory(self) -> dict[str, Any]:
        """Return everything that was learned, as arrays and numbers."""
        return {
            **self.core.state(),
            "rebuilds": self.rebuilds,
            "tolerance": self._tolerance,
            "unforgotten": self._unforgotten,
        }

    def remember(self, memory: dict[str, Any]) -> None:
        """Take over what `memory` returned."""
        self.core.restore(memory)
        self.rebuilds = int(memory["rebuilds"])
        self._tolerance = float(memory["tolerance"])
        self._unforgotten = int(memory["unforgotten"])
