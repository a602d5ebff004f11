"""Whether the relation of the targets to the inputs has changed, by the evidence of kept samples.

A member that adds its last residual predicts well along a path whatever the relation is, so that
nothing along the path shows that what was learned elsewhere has become wrong. Every `PERIOD`
samples, some that arrived since the last test are therefore compared with some of before it. Either
one function explains all of them, or it changed at one of some positions: its values before and
after have the correlation `CORRELATION`. The hyperparameters are those of the group that led at the
last test. If the change has the larger evidence, that group forgets once, so that its belief has
this correlation to the new function (mathematics.md §5), and learns the samples since the change.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtrs

from pogp.arrays import Array, Indices
from pogp.kernels import Kernel
from pogp.online.group import Group, with_prefix
from pogp.online.retuning import in_units, restored_samples, samples_state
from pogp.online.samples import LATEST, Samples
from pogp.online.scales import Scales
from pogp.online.tuning import LEAST_NOISE, MOST_NOISE, Prior
from pogp.posteriors.absorbed.information import gram_of
from pogp.posteriors.linalg.sliced import factor
from pogp.slices import ALLOCATION_TICKS, CALL_TICKS, PRODUCTS_PER_TICK, Work, quota

RELATION_CHANGED = "relation changed"
"""The decision in the history that a test has found a change."""
FIRST, PERIOD = 900, 500
"""The position of the first test, and the samples from one to the next. Scheduled tunings come a
hundred samples after a test."""
LONGEST_WAIT = 4 * LATEST
"""The most samples from a change to the next tuning."""
CORRELATION = 0.9
"""That of the function's values before and after a change. Evidence and errors hardly differ from
.8 to .97."""
MISFIT = 4.0
"""A group does not fit if its residuals are more than twice as large as its hyperparameters say."""
EVIDENCE = 30.0
"""The gain in nats by which a change is more than chance."""
COUNTS = (60, 120, 240)
"""The samples of each side that are compared, at first and as long as a change explains them
better, but not by so much."""
LARGE = 2 * COUNTS[1]
"""Larger matrices are factorised in slices."""
FEWEST_AFTER = 10
"""The least of them after a change."""
N_POSITIONS = 4
"""Changes are considered at so many positions since the last test, at equal distances."""
NOISE_FACTORS = (1.0, 10.0, 100.0)
"""Each explanation has the best of these factors of the noise, which may have grown."""


class Verdict(NamedTuple):
    """The result of a test."""

    gain: float
    """The evidence of the best change over that of none, in nats."""
    position: int
    """Where that change is."""

    @property
    def changed(self) -> bool:
        """Whether the relation has changed."""
        return self.gain > EVIDENCE

    @property
    def same(self) -> bool:
        """Whether one relation explains all samples as well."""
        return self.gain <= 0.0


@dataclass
class RelationTest:
    """All that a test needs, copied when it begins."""

    began: int
    samples: Samples
    """The samples to compare, in random order: of each side a few, then some more, and so on."""
    ends: Indices
    """Where the samples of each count end."""
    since: int
    """The position of the last test."""
    family: str
    parameters: Array
    scales: Scales

    @classmethod
    def drawn(
        cls, began: int, samples: Samples, since: int, group: Group, seed: int
    ) -> RelationTest | None:
        """Return a test of samples, or None if they are too few on one side."""
        rng = np.random.default_rng([seed, began])
        late = samples.positions >= since
        sides = [rng.permutation(np.flatnonzero(side)) for side in (~late, late)]
        if min(len(side) for side in sides) < COUNTS[0]:
            return None
        limits = pairwise((0, *COUNTS))
        parts = [side[start:end] for start, end in limits for side in sides]
        ends = np.cumsum([len(part) for part in parts])[1::2]
        found, chosen = group.hyperparameters, samples.select(np.concatenate(parts))
        return cls(began, chosen, ends, since, found.prior.family, found.parameters, group.scales)

    @property
    def quota(self) -> int:
        """Ticks per sample of the stream."""
        return quota(self.samples.X.shape[1], COUNTS[0])

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(column.nbytes for column in self.samples)

    def run(self) -> Work[Verdict]:
        """Compare the explanations, in slices."""
        yield CALL_TICKS + 20 * self.samples.X.size
        samples = in_units(self.samples, self.scales)
        kernel = Prior(self.family, self.scales.varying).kernel(self.parameters)
        noise = float(np.exp(self.parameters[-1]))
        positions = np.linspace(self.since, self.began, N_POSITIONS, endpoint=False).astype(int)
        verdict = Verdict(0.0, -1)
        for end in self.ends.tolist():
            large = end > LARGE  # the position is known by then
            places = np.array([verdict.position]) if large else positions
            chosen = samples.select(np.arange(end))
            verdict = yield from self._compared(chosen, kernel, noise, places)
            if verdict.same or verdict.changed:
                break
        return verdict

    def _compared(
        self, samples: Samples, kernel: Kernel, noise: float, positions: Indices
    ) -> Work[Verdict]:
        """Return the best change at some positions for samples in units of the scales."""
        K = yield from gram_of(kernel, samples.X)
        own = noise / samples.weights, samples.extra.mean(axis=1)
        unchanged = yield from _evidence(K, samples.Y, *own)
        best = Verdict(-np.inf, -1)
        for position in positions.tolist():
            after = samples.positions >= position
            if np.count_nonzero(after) < FEWEST_AFTER:
                continue
            yield 2 * ALLOCATION_TICKS * K.size
            changed = np.where(after[:, None] == after, K, CORRELATION * K)
            gain = (yield from _evidence(changed, samples.Y, *own)) - unchanged
            best = max(best, Verdict(gain, position))
        return best

    def state(self) -> dict[str, Any]:
        """Return the state, as arrays and numbers."""
        return {
            **samples_state(self.samples),
            "began": self.began,
            "tested": self.since,
            "ends": self.ends.copy(),
            "family": self.family,
            "parameters": self.parameters.copy(),
            **{f"scales_{name}": value for name, value in self.scales.state().items()},
        }

    @classmethod
    def restored(cls, state: dict[str, Any]) -> RelationTest:
        """Return the test that `state` described."""
        samples, ends = restored_samples(state), np.array(state["ends"], dtype=np.int64)
        if not len(ends) or not (ends > 0).all() or ends.max() > len(samples.X):
            raise ValueError(f"{len(samples.X)} samples of a test cannot end at {ends}")
        return cls(
            began=int(state["began"]),
            samples=samples,
            ends=ends,
            since=int(state["tested"]),
            family=state["family"],
            parameters=np.array(state["parameters"], dtype=np.float64),
            scales=Scales.restored(with_prefix(state, "scales_")),
        )


def _evidence(K: Array, Y: Array, noise: Array, extra: Array) -> Work[float]:
    """Return the largest log p(Y) over the factors of the noise, without its constant."""
    best, count = -np.inf, len(K)
    for scale in NOISE_FACTORS:
        large = count > LARGE
        yield 4 * K.size + (0 if large else count**3 // (3 * PRODUCTS_PER_TICK))
        covariance = K.copy(order="F")
        variances = np.clip(scale * noise, LEAST_NOISE, MOST_NOISE) + extra
        np.fill_diagonal(covariance, np.diagonal(K) + variances)
        if large:
            try:
                L = yield from factor(covariance)
            except np.linalg.LinAlgError:
                continue
        else:
            L, failed = dpotrf(covariance, lower=1, overwrite_a=1)
            if failed:
                continue
        z, _ = dtrtrs(L, Y, lower=1)
        determinant = Y.shape[1] * float(np.log(np.diagonal(L)).sum())
        best = max(best, -0.5 * float(np.sum(z**2)) - determinant)
    return best


class RelationWatch:
    """When the relation is tested, the group that led at the last test, and the last change.

    Attributes
    ----------
    group
        A copy of the group that led when one relation last explained all samples, or None.
    tested_at
        The position of that test.
    next_test
        The position of the next test.
    since
        The position of the last change, or 0. Samples before it are not used for tuning.
    """

    def __init__(self) -> None:
        self.group: Group | None = None
        self.tested_at = self.since = 0
        self.next_test = FIRST

    def _schedule(self, seen: int) -> None:
        """Set the next test after so many samples."""
        periods = max(seen - self.next_test, -1) // PERIOD + 1
        self.next_test += periods * PERIOD

    def allows_tuning(self, seen: int, leading: Group | None) -> bool:
        """Whether there are as many samples since the last change as before it.

        On a path, fewer would come from few places. The hyperparameters from before the change are
        better than those of such samples, unless the leading group does not fit them.
        """
        fits = leading is None or float(leading.noise_factor.min()) < MISFIT
        least = min(self.since, LONGEST_WAIT) if fits else PERIOD
        return seen - self.since >= min(self.since, least)

    def test(self, seen: int, samples: Samples, leading: Group, seed: int) -> RelationTest | None:
        """Return the test that is due, if there are enough samples."""
        self._schedule(seen)
        group = leading if self.group is None else self.group
        since = seen - PERIOD if self.group is None else self.tested_at
        return RelationTest.drawn(seen, samples, since, group, seed)

    def end_test(self, verdict: Verdict, seen: int, leading: Group) -> Group | None:
        """Return the group from before a change that was found, and otherwise store the leader.

        The leading group is stored if its relation explains all samples, or if the test remained
        undecided until the samples since the last one left the memory.
        """
        group, old = self.group, seen - self.tested_at >= LATEST
        if verdict.changed and group is not None:
            self.group, self.since = None, verdict.position
            return group
        if verdict.same or (group is not None and old):
            self.group, self.tested_at = leading.copy(compact=True), seen
        return None

    def state(self) -> dict[str, Any]:
        """Return the state, as arrays and numbers."""
        numbers = {"tested_at": self.tested_at, "since": self.since, "next": self.next_test}
        return {**numbers, **({} if self.group is None else self.group.state())}

    def restore(self, state: dict[str, Any], outputs: int, max_size: int, seen: int) -> None:
        """Restore what `state` returned; older files have none of it."""
        if not state:
            self._schedule(seen)
            return
        self.tested_at, self.since = int(state["tested_at"]), int(state["since"])
        self.next_test = int(state["next"])
        positions = (self.tested_at, self.since, self.next_test)
        if min(positions) < 0 or max(positions[:2]) > seen:
            raise ValueError(
                f"tests at {self.tested_at} and {self.next_test} and a change at {self.since} "
                f"do not agree with {seen} samples"
            )
        if "family" in state:
            self.group = Group.restored(state, outputs, max_size).copy(compact=True)
