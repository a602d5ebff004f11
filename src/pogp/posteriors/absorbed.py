"""A belief about the function at the retained points, over either core (`_core`)."""

from math import floor, log
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from pogp import validation
from pogp._core import absorbed_core
from pogp._core.absorbed_reference import MAX_REFINEMENTS, Absorbed
from pogp._core.absorber_reference import Rule
from pogp.arrays import Array
from pogp.compression import Plan
from pogp.kernels import Kernel, evaluate

if TYPE_CHECKING:
    from pogp._core import AbsorbedCore

BLOCK = 64
"""Samples learned at once by the compiled loop; between blocks Python may be interrupted."""
CHECK_INTERVAL, CAREFUL_INTERVAL = 128, 16
"""The drift is measured once in so many samples; the second where there is very little noise."""
DRIFT_TOLERANCE = 1e-8
"""Drift above this (or ten times what a fresh solve leaves) is mended."""
LEAST_NOISE = 2e-9
"""Samples count as no less noisy than this share of the prior variance."""
TEMPER_SAMPLES, TEMPER_STEP = 64, 0.1
"""What the points leave open is averaged over at least so many samples, and the noise on top is
changed when it is off by this share of the whole."""
LEAST_KEPT, LONGEST_WAIT = 0.9, 512
"""Forgetting comes in steps of at most a tenth, at least once in so many samples."""


class AbsorbedPosterior:
    """Points that can be let go without what they taught (mathematics.md §4)."""

    def __init__(
        self,
        kernel: Kernel,
        noise: float,
        mean: Array,
        dimension: int,
        forgetting: float = 1.0,
        temper: float = 0.0,
    ) -> None:
        self.kernel = kernel
        self.noise = noise
        self.mean = mean
        self.dimension = dimension
        self.forgetting = forgetting
        self.temper = temper
        self.extra = self._least_extra()  # noise on top of the samples' own
        self.core = self._new_core(self.extra)
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
        C = self.core.precision
        c = cross @ C
        explained = c @ cross.T
        if self.core.careful:  # as of one point, see `Absorbed._solve`
            total = self.core.gram + self.core.dispersion
            for _ in range(MAX_REFINEMENTS):
                c = c + (cross - c @ total) @ C
            explained = c @ cross.T + (cross - c @ total) @ c.T
        return np.asarray(self.kernel(X) - (explained + explained.T) / 2)

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
        the drift is measured at the same samples however they come. After the last one `maintain`
        is left to the caller, who may have something to put in order first.
        """
        if self._compiled and len(Y) <= self._room(first):
            # one call of the compiled loop, in which nothing can fail; a snapshot costs O(M²)
            return self._learn_block(rule, X, Y, noises, relevance, first, plan)
        before = self.memory()
        records = [np.empty((0, 2 * Y.shape[1] + 5))]
        try:
            start = 0
            while start < len(Y):
                rows = slice(start, min(len(Y), start + self._room(first + start)))
                samples = (X[rows], Y[rows], noises[rows], relevance[rows])
                records.append(self._learn_block(rule, *samples, first + start, plan.part(rows)))
                start = rows.stop
                if start < len(Y):
                    self.maintain(first + start)
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
        records = self.core.learn(rule, X, Y, noises + self.extra, relevance, first, plan)
        records[:, Y.shape[1] : 2 * Y.shape[1]] -= self.extra
        self._unforgotten += len(Y)
        return records

    def maintain(self, position: int) -> None:
        """Do what is due once so many samples were learned: mend, and forget."""
        if position % self._interval == 0:
            self._mend(position)
        if self.forgetting < 1.0 and self._unforgotten >= self._wait:
            self._forget()

    @property
    def _interval(self) -> int:
        return CAREFUL_INTERVAL if self.core.careful else CHECK_INTERVAL

    def _room(self, position: int) -> int:
        """Return how many samples can be learned before anything else is due."""
        # whether an empty core is careful is not known before its first sample
        block = min(BLOCK, self._interval if self.size else CAREFUL_INTERVAL)
        room = block - position % block
        return room if self.forgetting == 1.0 else min(room, self._wait - self._unforgotten)

    @property
    def _wait(self) -> int:
        """How many samples are learned between two steps of forgetting: a matter of O(M³)."""
        return min(max(floor(log(LEAST_KEPT) / log(self.forgetting)), 1), LONGEST_WAIT)

    def _forget(self) -> None:
        """Move the belief towards the prior (mathematics.md §5)."""
        fresh = self._reference()
        fresh.forget(self.forgetting**self._unforgotten)
        self.core.restore(fresh.state())
        self._unforgotten = 0

    def _mend(self, position: int) -> None:
        """Polish α; solve afresh from Z, Λ and η if Q or C has drifted (mathematics.md §6)."""
        if self.size == 0:
            return
        if position > self.size and self.core.glances >= TEMPER_SAMPLES:
            wanted = max(self.temper * self.core.take_open(), self._least_extra())
            if abs(wanted - self.extra) > TEMPER_STEP * (self.noise + self.extra):
                self._observe_with(wanted)
        signs = np.random.default_rng(position).choice(np.array([-1.0, 1.0]), self.size)
        if not self.core.drift(signs) <= self._tolerance:
            fresh = self._reference()
            fresh.rebuild()
            self.core.restore(fresh.state())
            self._tolerance = max(DRIFT_TOLERANCE, 10 * self.core.drift(signs))
            self.rebuilds += 1
        self.core.polish()

    def _observe_with(self, extra: float) -> None:
        """Take all samples, also those learned, to have so much noise on top of their own."""
        fresh = self._reference()
        fresh.change_prior(self.kernel, self.noise + extra)
        core = self._new_core(extra)
        core.restore(fresh.state())
        self.core, self.extra = core, extra

    def _new_core(self, extra: float) -> "AbsorbedCore":
        shape = (self.mean, self.dimension)
        least = self.noise + self._least_extra()
        return absorbed_core(self.kernel, self.noise + extra, *shape, least=least)

    def _least_extra(self) -> float:
        """Return what is missing of the least noise that Q and C can be kept with."""
        if self.kernel.program() is None:
            return 0.0
        kappa0 = float(self.kernel.diag(np.zeros((1, self.dimension)))[0])
        return max(LEAST_NOISE * kappa0 - self.noise, 0.0)

    def _reference(self) -> Absorbed:
        """Return the state in a form that the rarer operations work on."""
        fresh = Absorbed(self.kernel, self.noise + self.extra, self.mean, self.dimension)
        fresh.restore(self.core.state())
        return fresh

    def merge(self, other: "AbsorbedPosterior", offset: int) -> None:
        """Take over what another posterior learned (mathematics.md §5).

        The points of the other arrived `offset` samples later than it says.
        """
        fresh = self._reference()
        held = {row.tobytes() for row in fresh.inputs}
        joining = other._reference()
        joining.change_prior(self.kernel, self.noise + self.extra)
        fresh.join(joining, offset)
        fresh.rebuild()
        for j in range(fresh.size - 1, self.size - 1, -1):  # an input held by both is one point
            if fresh.inputs[j].tobytes() in held:
                fresh.project(j, 0.0)
        self.core.restore(fresh.state())

    def rehearse(self, rule: Rule, X: Array, Y: Array, share: float) -> None:
        """Keep a share of what was learned, and observe samples as the points are now."""
        fresh = self._reference()
        fresh.observe_again(X, Y, rule.slack, share)
        self.core.restore(fresh.state())

    def prune(self, rule: Rule, limit: float, max_size: int) -> float:
        """Let go of points within the limit and to the cap; return what that cost."""
        spent = self.core.prune(rule, limit, max_size)
        self.core.polish()
        return spent

    def under(self, kernel: Kernel, noise: float) -> "AbsorbedPosterior":
        """Return what was learned under another prior: Λ and η, in units of the other noise."""
        options = (self.forgetting, self.temper)
        moved = AbsorbedPosterior(kernel, noise, self.mean, self.dimension, *options)
        fresh = self._reference()
        fresh.change_prior(kernel, noise + self.extra)
        moved.remember({**self.memory(), **fresh.state()})
        return moved

    def memory(self) -> dict[str, Any]:
        """Return everything that was learned, as arrays and numbers."""
        return {
            **self.core.state(),
            "rebuilds": self.rebuilds,
            "tolerance": self._tolerance,
            "unforgotten": self._unforgotten,
            "extra": self.extra,
        }

    def remember(self, memory: dict[str, Any]) -> None:
        """Take over what `memory` returned."""
        extra = validation.non_negative("extra", memory["extra"])
        if extra != self.extra:
            self.extra = extra
            self.core = self._new_core(extra)
        if self.core.careful and len(memory["dispersion"]) != len(memory["gram"]):
            raise ValueError(f"with the noise {self.noise + extra:g} there must be a dispersion")
        self.core.restore(memory)
        self.rebuilds = int(memory["rebuilds"])
        self._tolerance = float(memory["tolerance"])
        self._unforgotten = int(memory["unforgotten"])
