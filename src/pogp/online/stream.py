"""What `OnlineGP` knows of one stream: members, their weights, raw samples, and work under way."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate, chain, pairwise
from logging import getLogger
from math import isfinite
from typing import Any

import numpy as np

from pogp.arrays import Array
from pogp.online import mixing_core, stream_step
from pogp.online.band import Band
from pogp.online.birth import Birth, Result
from pogp.online.changes import awake, inputs_outside, targets_changed, unchanged
from pogp.online.experts import FOLLOWERS, NAMES, Experts
from pogp.online.former import Former
from pogp.online.group import FIRST, GUARD, Candidate, Group
from pogp.online.mixing import LEAST_VARIANCE
from pogp.online.mixture import DISCOUNTS, Mixture
from pogp.online.pending import Pending
from pogp.online.resting import Rest, rested
from pogp.online.retuning import CHALLENGED, LEAST, Findings, Search, challenger
from pogp.online.rows import LATEST, Rows, Samples
from pogp.online.scales import Scales
from pogp.online.spreading import Prediction, Spread, gathered, spread
from pogp.trace import SIZE, TUNING

LOG = getLogger(__name__)
SCHEDULE = (6, 15, 40, 100, 250, 500)
"""Samples after which hyperparameters are found anew; then whenever their number has doubled."""
RACE = 200
"""New groups are compared with the old ones for at most so many samples."""
LOST = 5.0
"""A group this many nats behind the best of a race leaves it before its end."""
LIGHT = 0.01
"""Nats that a point must be worth to a group in a race: of equal ones the smaller wins."""
WINDOW = 30
"""Every so many samples these are compared with the scales."""
NEARLY, FAR = 4.0, 8.0
"""An outlier is more than the second many deviations off, where fewer samples lie between the two:
tails that are merely heavy have no gap."""
EVENTS = 200
"""The latest so many decisions are remembered."""


class Stream:
    """Learns sample by sample; bounded in state and in work per sample."""

    def __init__(
        self, dimension: int, outputs: int, max_size: int, robust: bool, seed: int
    ) -> None:
        self.outputs = outputs
        self.max_size, self.robust, self.seed = max_size, robust, seed
        self.rows = Rows(dimension, outputs, seed)
        self.experts = Experts(dimension, outputs)
        self.mixture = Mixture(outputs)
        self.band = Band(outputs)
        self._mixing = mixing_core()
        self.groups: list[Group] = []
        self.scales: Scales | None = None
        self.scores = np.zeros((len(DISCOUNTS), len(NAMES), outputs))
        self.after = np.zeros_like(self.scores)
        self.history: list[list[Any]] = []
        self.pending: Pending | None = None
        self.starts: dict[str, Array] = {}
        self.origin = 0  # where the stream was last found changed
        self.changed = False
        self.due = SCHEDULE[0]  # samples after the origin at which to tune next
        self.tunings = 0
        self.challenged = -1  # the age at which the best group was tuned, if a challenger is next
        self.race_end = -1
        self.surprised = False  # whether the last sample was far off
        self.strange = 0.0  # how often samples were far off lately
        self.far = self.nearly = 0.0  # how many were, and were nearly
        self.former = Former(outputs)
        self.quiet_until = 60  # no change is looked for before
        self.gap = 100
        self.extra = -1  # a tuning beside the schedule
        self.arrange([])

    @property
    def seen(self) -> int:
        """Samples learned."""
        return self.rows.seen

    @property
    def resting(self) -> bool:
        """Whether what is predicted does not follow the last sample at once."""
        return self.band.resting

    @resting.setter
    def resting(self, resting: bool) -> None:
        self.band.resting = resting
        self.__dict__.pop("rest", None)

    @cached_property
    def rest(self) -> Rest | None:
        """What it knows of its past when it rests, found when it is first asked for."""
        return rested(self) if self.resting else None

    @property
    def _all_groups(self) -> list[Group]:
        return self.groups if self.former.group is None else [*self.groups, self.former.group]

    @property
    def leading(self) -> Group | None:
        """The group with the best score."""
        if len(self.groups) < 2:
            return self.groups[0] if self.groups else None
        return max(self.groups, key=lambda group: float(group.scores[-1].sum(axis=1).max()))

    @property
    def noise(self) -> float:
        """The variance of the noise, in the user's units."""
        group = self.leading
        if group is None:
            return float(np.mean(np.maximum(self.experts.errors[0], 1e-300)))
        own = group.noise * group.factor[group.core.lead]
        return float(np.mean(own * group.scales.unit**2))

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        groups = sum(group.nbytes for group in self._all_groups)
        pending = 0 if self.pending is None else self.pending.nbytes
        return self.rows.nbytes + self.experts.nbytes + groups + pending

    # ---- predicting ----------------------------------------------------------------------------

    def arrange(self, groups: list[Group]) -> None:
        """Let these be the groups; the scores of all members are then in one array."""
        parts = [len(NAMES), *(group.members for group in groups)]
        self.ends = tuple(accumulate(parts))
        self.parts = [slice(start, end) for start, end in pairwise((0, *self.ends))]
        shape = (self.ends[-1], self.outputs)
        self.means, self.variances, self.gains = np.empty((3, *shape))
        self.all_scores: Array = np.empty((len(DISCOUNTS), *shape))
        self._all_after: Array = np.empty((len(DISCOUNTS), *shape))
        self.groups = groups
        holders: list[Stream | Group] = [self, *groups]
        for holder, rows in zip(holders, self.parts, strict=True):
            self.all_scores[:, rows], self._all_after[:, rows] = holder.scores, holder.after
            holder.scores, holder.after = self.all_scores[:, rows], self._all_after[:, rows]
        self._step = stream_step(self)

    def best_scores(self) -> tuple[Array, Array]:
        """Return the best score for each discount and output, in general and after a surprise."""
        return self.all_scores.max(axis=1), self._all_after.max(axis=1)

    @property
    def scores_now(self) -> Array:
        """The scores by which the next prediction is weighed.

        After a sample that was far off, how members did at other such moments is added: an outlier
        says nothing of the next sample, a jump nearly everything. When the stream rests, the simple
        predictors that live by the last target have no weight, nor have groups that have yet to
        show what they are worth.
        """
        if not self.resting:
            return self.all_scores + self._all_after if self.surprised else self.all_scores
        scores = self.all_scores.copy()
        scores[:, FOLLOWERS] = -np.inf  # the simple predictors come first
        for group, rows in zip(self.groups, self.parts[1:], strict=True):
            if self._unproven(group):
                scores[:, rows] = -np.inf
        return scores

    def _unproven(self, group: Group) -> bool:
        """Whether a group began with what another knew, and has not predicted better than it."""
        others = [other.gained for other in self.groups if other.born < group.born]
        racing = self.seen < self.race_end and group.carried and bool(others)
        return racing and group.gained <= max(others)

    def members(self, X: Array) -> tuple[Array, Array, Array]:
        """Return the members' means and variances, (members, n, k), and latent shares."""
        scaled = X if self.scales is None else self.scales.inputs(X)
        experts = self.experts.predict_many(scaled, self.scales)
        parts = [(*experts, np.zeros((len(NAMES), len(X))))]
        parts += [group.predict(X, self.resting) for group in self.groups]
        means, variances, shares = (np.concatenate(part) for part in zip(*parts, strict=True))
        return means, variances, shares

    def predict(self, X: Array, around: Sequence[Array | None] = ()) -> Prediction:
        """Return predictions at raw inputs, each spread over some points if it has any."""
        if around:
            return gathered(self.predict, X, around, self.band)
        return self.told(X) if self.rest is None else self.rest.joined(X, self.told(X))

    def told(self, X: Array) -> Prediction:
        """Return the predictions of the mixture at raw inputs."""
        if self.seen < 2:
            return self._first(len(X))
        means, variances, shares = self.members(X)
        mean, variance, weights = self.mixture.combine_many(self.scores_now, means, variances)
        noise = np.einsum("mk,mn,mnk->nk", weights, 1.0 - shares, variances)
        variance = np.maximum(variance, LEAST_VARIANCE)
        reported, latent = self.band.corrected(variance), self.band.latent(variance, noise)
        return Prediction(mean, reported, latent)

    def spread(self, x: Array, points: Array) -> Spread | None:
        """Return how the predictions at points, taken together, differ from that at x."""
        if self.seen < 2:
            return None
        return spread(self.predict(np.vstack([x, points])), 0, slice(1, None))

    def _first(self, count: int) -> Prediction:
        """Before two samples: the target so far, give or take its size."""
        mean = np.repeat(self.experts.mean[None], count, axis=0)
        size = np.where(mean != 0.0, mean**2, 1.0)
        return Prediction(mean, size, 0.0 * size)

    def correlation(self, X: Array) -> Array:
        """Return the correlation of f between rows, by the leading belief."""
        return np.eye(len(X)) if self.leading is None else self.leading.correlation(X)

    def weights(self) -> dict[str, float]:
        """Return the weight of each member, averaged over the outputs."""
        if self.seen < 2:
            return {"mean": 1.0}
        weights = self.mixture.weights(self.scores_now).mean(axis=1)
        names = chain(NAMES, *(group.names for group in self.groups))
        return dict(zip(names, weights.tolist(), strict=True))

    # ---- learning ------------------------------------------------------------------------------

    def learn(self, x: Array, y: Array, points: Array | None, weight: float, record: Array) -> None:
        """Learn one sample, which may be at any of some points; fill its record, of zeros."""
        self.resting = False
        gaps = None if points is None else self.spread(x, points)
        extra, step = None if gaps is None else gaps.variance, self._step
        step.glance(x, extra, weight, (1.0 / weight - 1.0) * self.noise if weight < 1.0 else 0.0)
        odd, still = False, self.rows.still(y)
        if self.rows.seen < 2:
            first = self._first(1)
            record[: 2 * self.outputs] = np.concatenate([first.mean[0], first.variance[0]])
        else:
            odd = self._odd(step.judge(y, self.scores_now, gaps, record, still))
        step.learn(y, GUARD if odd else 0.0, weight)
        leading, rest = self.leading, record[2 * self.outputs :]
        back = self.surprised and self.former.explains(x, y)
        before = self.former.before(leading, self.strange, back)
        self._teach(y, odd, still, leading, rest)
        self.rows.add(x, y, odd, extra, weight)
        if self.pending is not None:
            rest[TUNING] = 1.0
        groups = self.groups
        if before is not None:
            woken = self.former.exchanged(before, *self.best_scores())
            if woken is not None:
                self._race([woken])
                self.note("samples far off", f"{woken.name}, which led before, races again")
        if self.former.moved(y, record, self.seen):
            self._begin_anew("the function changed", "most samples are still far off")
        self._decide()
        if self.groups is not groups:
            leading = self.leading
        rest[SIZE] = 0 if leading is None else leading.size

    def _odd(self, size: float) -> bool:
        """Take note of a sample that was `size` deviations off; return if it is an outlier."""
        if self.surprised:
            self._mixing.discount(self._all_after, DISCOUNTS, self.gains)
        self.surprised = far = size > FAR
        self.strange += 0.2 * (far - self.strange)
        self.far = 0.999 * self.far + far
        self.nearly = 0.999 * self.nearly + (NEARLY < size <= FAR)
        return far and self.strange < 0.5 and self.far >= self.nearly and self.robust

    def _teach(self, y: Array, odd: bool, still: bool, leading: Group | None, rest: Array) -> None:
        """Have all groups learn the sample; one that cannot is dropped."""
        sound = []
        for group in self.groups:
            try:
                steps = group.step.learn(y, self.rows.seen, GUARD if odd else 0.0, still)
            except FloatingPointError as error:
                self.note("group dropped", str(error))
                continue
            if group is leading:
                rest[:] = steps[-len(rest) :]
            if isfinite(group.gained):
                sound.append(group)
        if len(sound) < len(self.groups):
            self.arrange(sound)

    # ---- deciding ------------------------------------------------------------------------------

    def _decide(self) -> None:
        """Do what is due after a sample."""
        seen = self.seen
        self._go_on()
        if seen % WINDOW == 0:
            self._watch()
        if seen == self.race_end:
            self._end_race(keep=1)
        elif seen < self.race_end:
            self._drop_lost()
        age = seen - self.origin
        idle = self.pending is None and self.challenged < 0 and seen >= self.race_end
        if idle and (age >= self.due or 0 <= self.extra <= seen):
            while age >= self.due:
                later = [n for n in SCHEDULE if n > self.due]
                self.due = later[0] if later else 2 * self.due
            self.extra = -1
            self._retune(age)

    def settle(self) -> None:
        """Finish the retuning that is under way, if any, at once; the stream then rests."""
        self.resting = True
        while self.pending is not None or self.challenged >= 0:
            self._go_on()

    def _go_on(self) -> None:
        """Continue the retuning, if there is one: a search, then a new group and its race.

        The challenger follows in a step of its own, since both copy the best group.
        """
        pending, age = self.pending, self.challenged
        if pending is None:
            self.challenged = -1
            if age >= 0:
                self._challenge(age)
            return
        try:
            result = pending.step(self.rows, self.seen)
        except BaseException:  # it cannot go on: the stream does so without it
            self.pending, self.challenged = None, -1
            raise
        if isinstance(result, Findings) and isinstance(pending.plan, Search):
            self._end_search(pending.plan, result)
        elif isinstance(result, Result):
            self.pending = None
            self._adopt(result)

    def keep_to_cap(self) -> None:
        """Let go of points above a cap that was lowered."""
        for group in self._all_groups:
            group.keep_to_cap()

    def _retune(self, age: int) -> None:
        """Begin to find hyperparameters anew: of what leads, and then of a challenger."""
        if len(self.groups) > 2:
            self._end_race(keep=2)
        samples = self._samples(age)
        if len(samples.X) < LEAST:
            return
        self.tunings += 1
        best = self.leading
        self._search(FIRST if best is None else best.candidate, age, samples, leads=True)
        self.challenged = age if len(samples.X) >= CHALLENGED else -1

    def _challenge(self, age: int) -> None:
        """Begin with a challenger; one of the same family has the hyperparameters of the best."""
        best = self.leading
        candidate = challenger(FIRST if best is None else best.candidate, self.tunings)
        if best is not None and best.label == candidate.family:
            findings = Findings(best.scales, best.found, np.empty(0, dtype=np.int64))
            self._bear(candidate, findings, age, self.seen)
        else:
            self._search(candidate, age, self._samples(age), leads=False)

    def _search(self, candidate: Candidate, age: int, samples: Samples, leads: bool) -> None:
        """Begin to search for the hyperparameters of a candidate."""
        best = self.leading
        self.pending = Pending(
            Search(
                began=self.seen,
                age=age,
                samples=samples,
                candidate=candidate,
                leads=leads,
                start=self.starts.get(candidate.family),
                seed=self.seed,
                robust=self.robust,
                points=0 if best is None else best.size,
            )
        )

    def _end_search(self, search: Search, findings: Findings) -> None:
        """Begin to make a group of what was found, if it is worth one."""
        if findings.found is not None:
            self.starts[search.candidate.family] = findings.found.parameters
            if search.keeps(findings.found):
                findings.found = None
        self._bear(search.candidate, findings, search.age, search.began)

    def _bear(self, candidate: Candidate, findings: Findings, age: int, searched: int) -> None:
        """Begin to make a group with hyperparameters that were found."""
        best = self.leading
        score, after = self.best_scores()
        birth = Birth(
            began=self.seen,
            searched=searched,
            age=age,
            samples=self._samples(age),
            candidate=candidate,
            findings=findings,
            best=None if best is None else best.copy(),
            score=score,
            after=after,
            max_size=self.max_size,
        )
        self.pending = Pending(birth)

    def _samples(self, age: int) -> Samples:
        """Return the samples to tune by: those since a change, and no outliers, if enough."""
        samples = self.rows.all()
        if self.changed and age < 4 * LATEST:
            recent = samples.positions >= self.origin
            samples = samples.where(recent) if recent.sum() >= LEAST else samples
        return samples.ordinary() if self.robust else samples

    def _adopt(self, result: Result) -> None:
        """Take in a new group, which races with the old ones."""
        if not result.scales.alive:
            self.scales = None
        elif result.linear:  # which go with the scales
            self.scales, self.experts.linear = result.scales, result.linear
        group = result.group
        if group is None:
            self._step = stream_step(self)
            return
        self._race([group])
        made = f"{group.label} ({group.size} points), found at sample {group.born}"
        self.note("new hyperparameters", made)

    def _race(self, groups: list[Group]) -> None:
        """Let groups race with those that there are."""
        self.arrange([*self.groups, *groups])
        for group in self.groups:
            group.gained = 0.0
        age = self.seen - self.origin
        self.race_end = self.seen + min(RACE, max(age // 2, 3))

    def _drop_lost(self) -> None:
        """Let groups go that can hardly win the race under way."""
        best = max((group.gained for group in self.groups), default=0.0)
        ahead = [group for group in self.groups if group.gained > best - LOST]
        if len(ahead) < len(self.groups):
            self.arrange(ahead)

    def _end_race(self, keep: int) -> None:
        """Keep the groups that predicted best since the race began."""
        ranked = sorted(self.groups, key=lambda group: LIGHT * group.size - group.gained)
        self.arrange(ranked[:keep])
        if len(ranked) > keep:
            best, next_ = ranked[0], ranked[1]
            margin = best.gained - next_.gained
            ahead = f"ahead by {margin:.1f} nats of" if margin > 0 else "smaller and as good as"
            self.note(f"{best.name} goes on", f"{ahead} {next_.name}")

    def _watch(self) -> None:
        """Look whether the stream has left what the scales were found on."""
        scales = self.scales
        if self.seen < self.quiet_until:
            return
        if scales is not None and unchanged(self.rows, WINDOW, scales):
            return
        last = self.rows.latest(self.seen - WINDOW)
        if scales is None:  # nothing has moved so far
            if self.pending is None and awake(last.X, last.Y):
                self._begin_anew("the targets moved", "they were at rest before")
                self.gap *= 2
            return
        if last.odd.any():
            last = last.where(~last.odd)
        if len(last.X) < WINDOW // 2:
            return
        targets, outside = targets_changed(last.Y, scales), inputs_outside(last.X, scales)
        if targets:
            self._begin_anew("the targets changed", "the last ones are far from what was known")
            self.gap *= 2
        elif len(outside):
            new = outside[scales.deviation[outside] == 0]
            if len(new) and self.pending is not None:
                if self.pending.knows(new):
                    return  # and a group that does is on its way
                self.pending, self.challenged = None, -1
            self._be_quiet()
            self.changed, self.extra = False, self.seen + 60
            if len(new):  # the sooner they are known the better
                self.race_end = min(self.race_end, self.seen)
            self.note(
                "inputs changed", f"columns {', '.join(map(str, outside))} left what was known"
            )

    def _begin_anew(self, what: str, why: str) -> None:
        """Tune at once, by the latest samples; what is under way works from what is no more."""
        self.quiet_until, self.changed = self.seen + self.gap, True
        self.origin, self.due, self.starts = self.seen - 20, SCHEDULE[0], {}
        self.pending, self.challenged = None, -1
        self.race_end = min(self.race_end, self.seen)
        self.note(what, why)

    def _be_quiet(self) -> None:
        """Look for no other change for a while, which is longer each time."""
        self.quiet_until, self.gap = self.seen + self.gap, 2 * self.gap

    def note(self, what: str, why: str) -> None:
        """Add a decision to the history, and to the log."""
        LOG.info("sample %d: %s (%s)", self.seen, what, why)
        self.history = [*self.history, [self.seen, what, why]][-EVENTS:]
