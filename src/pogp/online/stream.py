"""The decisions of `OnlineGP` along one stream: when to tune, what to try, and what has changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from logging import getLogger
from typing import Any

import numpy as np

from pogp.arrays import Array, Indices
from pogp.online import changes
from pogp.online.band_at_rest import calibrate_at_rest
from pogp.online.ensemble import Ensemble
from pogp.online.extrapolation import Line, Rows
from pogp.online.group import FIRST_CANDIDATE, Candidate, Group
from pogp.online.group_start import GroupStart, NewGroup
from pogp.online.past_model import PastModel, past_model
from pogp.online.pending import PendingTuning
from pogp.online.prediction import Prediction, predict_around
from pogp.online.previous_leader import PreviousLeader
from pogp.online.relation import CORRELATION, RELATION_CHANGED, RelationWatch, Verdict
from pogp.online.retuning import CHALLENGE_FROM, LEAST_SAMPLES, Search, SearchResult, challenger
from pogp.online.samples import LATEST, Samples, SampleStore
from pogp.online.scales import Scales
from pogp.online.stuck import STUCK, is_stuck
from pogp.trace import SIZE, TUNING

LOG = getLogger(__name__)
SCHEDULE = (6, 15, 40, 100, 250, 500)
"""Numbers of samples after which the hyperparameters are tuned; later whenever it has doubled."""
MAX_INTERVAL = 32_000
"""The most samples from one tuning to the next."""
WINDOW = 30
"""The latest samples are compared with the scales every so many samples."""
MAX_HISTORY = 200
"""The history has at most so many decisions."""


class Stream:
    """Learns sample by sample, with bounded memory and bounded work per sample.

    Attributes
    ----------
    ensemble
        The members that predict and learn.
    samples
        Raw samples for tuning.
    pending
        The tuning in progress, if any.
    starts
        For each family of kernels, the hyperparameters at which the next search starts.
    previous
        The group that led before the last change.
    relation
        The tests whether the relation of the targets to the inputs has changed.
    origin, changed
        The position of the last change, and whether tuning uses only the samples since then.
    next_tuning
        The number of samples after `origin` at which the schedule tunes next.
    extra_tuning
        The position of a tuning outside the schedule, or -1.
    challenger_age
        The age of the stream for the challenger that follows the tuning in progress, or -1.
    quiet_until, quiet_period
        No change is detected before this position. The period after a change doubles each time.
    history
        Decisions: position, what, and why.
    """

    def __init__(
        self, dimension: int, outputs: int, max_size: int, robust: bool, seed: int
    ) -> None:
        self.max_size, self.robust, self.seed = max_size, robust, seed
        self.ensemble = Ensemble(dimension, outputs, robust)
        self.samples = SampleStore(dimension, outputs, seed)
        self.previous, self.relation = PreviousLeader(outputs), RelationWatch()
        self.pending: PendingTuning | None = None
        self.starts: dict[str, Array] = {}
        self.origin = 0
        self.changed = False
        self.next_tuning = SCHEDULE[0]
        self.extra_tuning = -1
        self.n_tunings = 0
        self.challenger_age = -1
        self.quiet_until, self.quiet_period = 60, 100
        self.history: list[list[Any]] = []
        self._line: tuple[tuple[int, Rows, bool], Line | None] | None = None

    @property
    def seen(self) -> int:
        """The number of samples learned."""
        return self.samples.seen

    @property
    def leading(self) -> Group | None:
        """The group with the best score."""
        return self.ensemble.leading

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        stored = [self.previous.group, self.relation.group]
        previous = sum(group.nbytes for group in stored if group is not None)
        pending = 0 if self.pending is None else self.pending.nbytes
        return self.samples.nbytes + self.ensemble.nbytes + previous + pending

    @property
    def resting(self) -> bool:
        """Whether the rows to predict do not follow the last sample."""
        return self.ensemble.resting

    @resting.setter
    def resting(self, resting: bool) -> None:
        self.ensemble.band.resting, self.ensemble.band.at_rest = resting, None
        self.__dict__.pop("past_model", None)

    @cached_property
    def past_model(self) -> PastModel | None:
        """The model of the past of a stream at rest, made when it is first needed."""
        return past_model(self) if self.resting else None

    @contextmanager
    def anywhere(self) -> Iterator[None]:
        """Predict rows that do not follow the last sample, by the mixture alone."""
        if self.resting:
            yield
            return
        self.resting, self.__dict__["past_model"] = True, None
        try:
            yield
        finally:
            self.resting = False

    def predict(self, X: Array, around: Sequence[Array | None] = ()) -> Prediction:
        """Return predictions at raw inputs. A row may be at any of its points in `around`."""
        if around:
            return predict_around(self.predict, X, around, self.ensemble.band)
        found = self.ensemble.predict(X)
        if self.past_model is not None:
            found = self.past_model.predict(X, found)
        line = self.line(X)
        return found if line is None else line.extend(X, found)

    def line(self, X: Array) -> Line | None:
        """Return the line for rows outside the range of the inputs, or None if none is needed.

        If the last sample was outside, the members already follow the targets there.
        """
        leading, rows = self.leading, Rows.ANYWHERE if self.resting else Rows.NEXT
        if self.past_model is not None:
            rows = Rows.AT_REST
        if leading is None or not (rows is Rows.AT_REST or leading.scales.are_far(X).any()):
            return None
        if rows is Rows.NEXT and leading.scales.are_far(self.samples.last_input):
            return None
        state = (self.seen, rows, self.robust)
        if self._line is None or self._line[0] != state:
            line = Line.of(self.ensemble, leading.scales, self.samples.all(), self.robust, rows)
            self._line = (state, line)
        return self._line[1]

    # ---- learning ------------------------------------------------------------------------------

    def learn(self, x: Array, y: Array, points: Array | None, weight: float, record: Array) -> None:
        """Learn one sample, which may be at any of the points, if any; fill its record of zeros."""
        self.resting = False
        ensemble, surprises = self.ensemble, self.ensemble.surprises
        gaps, stopped = ensemble.gap_effect(x, points), self.samples.is_stopped(y)
        outlier = ensemble.score(x, y, gaps, weight, stopped, record)
        if outlier and ensemble.explains(x, self.samples.last_input):
            outlier = False
        leading, at_inputs = ensemble.leading, y if gaps is None else y - gaps.shift
        before, stuck = None, False
        if self.robust:
            stuck = is_stuck(x, y, at_inputs, leading, ensemble, self.samples)
        if stuck:
            if not ensemble.stuck:
                self.note(STUCK, "they repeat, and the inputs say that they should not")
            outlier = True
            ensemble.ignore_stuck(y)
        else:
            if leading is not None and weight == 1.0 and not stopped:
                ensemble.store_errors(y, leading, gaps)
            mixed = record[: ensemble.outputs]
            returned = surprises.last and self.previous.explains(x, at_inputs, mixed)
            before = self.previous.copy_before_change(leading, surprises.rate, returned)
            if before is not None:
                self.previous.score(x, at_inputs, mixed, ensemble)
            learned = (y, at_inputs, outlier, weight, stopped)
            for error in ensemble.learn(*learned, leading, record):
                self.note("group removed", error)
        ensemble.stuck = stuck
        self.samples.add(x, y, outlier, gaps, 0.0 if stuck else weight)
        taken = record[2 * ensemble.outputs :]
        if self.pending is not None:
            taken[TUNING] = 1.0
        groups = ensemble.groups
        if before is not None:
            self._exchange(before)
        if stuck:  # which says nothing about groups
            self._advance_tuning()
        else:
            if self.previous.function_changed(y, record, self.seen, surprises.last):
                new = changes.inputs_new(*self.samples.split(WINDOW, self.robust))
                self._restart("function changed", "most samples are still far off", new)
            self._decide()
        if ensemble.groups is not groups:
            leading = ensemble.leading
        taken[SIZE] = 0 if leading is None else leading.size

    def settle(self) -> None:
        """Finish the tuning in progress; the stream is then at rest."""
        self.resting = True
        while self._tuning:
            self._advance_tuning()
        self.calibrate_at_rest()

    def calibrate_at_rest(self) -> None:
        """Calibrate the band of a stream at rest."""
        kept = self.samples_since_change()
        calibrate_at_rest(self.ensemble, kept.select(self.samples.in_reservoir(kept)))

    def samples_since_change(self) -> Samples:
        """Return the kept samples since the relation changed, without outliers if robust."""
        samples = self.samples.all().for_tuning(self.robust)
        return samples.select(samples.positions >= self.relation.since)

    def prune_to_cap(self) -> None:
        """Remove points above a cap that was lowered."""
        for group in [*self.ensemble.groups, self.previous.group, self.relation.group]:
            if group is not None:
                group.prune_to_cap()

    def note(self, what: str, why: str) -> None:
        """Add a decision to the history and the log."""
        LOG.info("sample %d: %s (%s)", self.seen, what, why)
        self.history = [*self.history, [self.seen, what, why]][-MAX_HISTORY:]

    # ---- deciding ------------------------------------------------------------------------------

    def _decide(self) -> None:
        """Do what is due after a sample."""
        seen, ensemble = self.seen, self.ensemble
        self._advance_tuning()
        if seen % WINDOW == 0:
            self._detect_changes()
        if seen == ensemble.race_end:
            self._end_race(keep=1)
        elif seen < ensemble.race_end:
            ensemble.remove_losers()
        age = seen - self.origin
        if seen >= self.relation.next_test and not self._tuning:
            self._test_relation()
        idle = (
            not self._tuning
            and seen >= ensemble.race_end
            and self.relation.allows_tuning(seen, self.leading)
        )
        if idle and (age >= self.next_tuning or 0 <= self.extra_tuning <= seen):
            while age >= self.next_tuning:
                due = self.next_tuning
                later = [n for n in SCHEDULE if n > due]
                self.next_tuning = later[0] if later else due + min(due, MAX_INTERVAL)
            self.extra_tuning = -1
            self._retune(age)

    def _test_relation(self) -> None:
        """Start a test whether the relation of the targets to the inputs has changed."""
        if self.leading is not None:
            samples = self.samples_since_change()
            test = self.relation.test(self.seen, samples, self.leading, self.seed)
            self.pending = None if test is None else PendingTuning(test)

    def _end_test(self, verdict: Verdict) -> None:
        """If the relation has changed, start a group with what was learned before."""
        self.pending = None
        if self.leading is None:
            return
        before = self.relation.end_test(verdict, self.seen, self.leading)
        if before is not None:
            age, result = self.seen - self.origin, _found(before)
            self._start_group(before.candidate, result, age, self.seen, before)
            self.extra_tuning = self.seen
            self.note(RELATION_CHANGED, f"by {verdict.gain:.0f} nats since {verdict.position}")

    def _retune(self, age: int) -> None:
        """Start tuning the leading group; from enough samples on a challenger follows."""
        if len(self.ensemble.groups) > 2:
            self._end_race(keep=2)
        samples = self._tuning_samples(age)
        if len(samples.X) < LEAST_SAMPLES:
            return
        self.n_tunings += 1
        if self.ensemble.scales is None:
            self._start_linear(samples)
        leading = self.leading
        candidate = FIRST_CANDIDATE if leading is None else leading.candidate
        self._start_search(candidate, age, samples, leads=True)
        self.challenger_age = age if len(samples.X) >= CHALLENGE_FROM else -1

    def _start_linear(self, samples: Samples) -> None:
        """Let the linear models begin at once; the first group takes some samples more."""
        scales = Scales.of(samples.X, samples.Y)
        if scales.usable:
            self.ensemble.scales = scales
            self.ensemble.predictors.begin_linear(scales, samples)
            self.ensemble.bind()

    def _challenge(self, age: int) -> None:
        """Start a challenger. One of the same family has the leading group's hyperparameters."""
        leading = self.leading
        best = FIRST_CANDIDATE if leading is None else leading.candidate
        candidate = challenger(best, self.n_tunings)
        if leading is not None and leading.family == candidate.family:
            self._start_group(candidate, _found(leading), age, self.seen)
        else:
            self._start_search(candidate, age, self._tuning_samples(age), leads=False)

    def _start_search(self, candidate: Candidate, age: int, samples: Samples, leads: bool) -> None:
        """Start a search for the hyperparameters of a candidate."""
        search = Search(
            began=self.seen,
            age=age,
            samples=samples,
            candidate=candidate,
            leads=leads,
            start=self.starts.get(candidate.family),
            seed=self.seed,
            robust=self.robust,
            known=self.ensemble.scales,
            points=0 if self.leading is None else self.leading.size,
            needed_points=0 if self.leading is None else self.leading.needed_points,
        )
        self.pending = PendingTuning(search)

    def _start_group(
        self,
        candidate: Candidate,
        result: SearchResult,
        age: int,
        tuned_at: int,
        before: Group | None = None,
    ) -> None:
        """Start a group with the hyperparameters of a search, or with a group `before` a change."""
        leading = before or (self.leading and self.leading.copy(compact=True))
        start = GroupStart(
            began=self.seen,
            tuned_at=tuned_at,
            age=age,
            samples=self.samples.all().for_tuning(self.robust),
            since=self._tuned_since(age) if before is None else self.relation.since,
            candidate=candidate,
            search_result=result,
            leading=leading,
            score=self.ensemble.best_scores(),
            max_size=self.max_size,
            remembered=1.0 if before is None else CORRELATION**2,
        )
        self.pending = PendingTuning(start)

    def _tuning_samples(self, age: int) -> Samples:
        """Return the samples for tuning, without outliers and those before a change."""
        samples = self.samples.all()
        return samples.select(samples.positions >= self._tuned_since(age)).for_tuning(self.robust)

    def _tuned_since(self, age: int) -> int:
        """Return the position of the first sample for tuning: that of the last change, or 0."""
        recent = self.changed and age < 4 * LATEST and self.seen - self.origin >= LEAST_SAMPLES
        return max(self.origin if recent else 0, self.relation.since)

    @property
    def _tuning(self) -> bool:
        """Whether a tuning is in progress, or a challenger is next."""
        return self.pending is not None or self.challenger_age >= 0

    def _advance_tuning(self) -> None:
        """Advance the tuning in progress: a search, then the start of a group, then a race.

        The challenger begins with a later sample than the race, because both copy the leading
        group.
        """
        pending, age = self.pending, self.challenger_age
        if pending is None:
            self.challenger_age = -1
            if age >= 0:
                self._challenge(age)
            return
        try:
            result = pending.advance(self.samples, self.seen)
        except BaseException:  # the stream continues without it
            self._cancel_pending()
            raise
        if isinstance(result, SearchResult) and isinstance(pending.plan, Search):
            self._end_search(pending.plan, result)
        elif isinstance(result, NewGroup):
            self.pending = None
            self._add_group(result)
        elif isinstance(result, Verdict):
            self._end_test(result)

    def _end_search(self, search: Search, result: SearchResult) -> None:
        """Start a group with the result of a search, unless the leading group is as good."""
        if result.hyperparameters is not None:
            self.starts[search.candidate.family] = result.hyperparameters.parameters
            if search.confirms_leader(result.hyperparameters):
                result.hyperparameters = None
        self._start_group(search.candidate, result, search.age, search.began)

    def _cancel_pending(self) -> None:
        """Cancel the tuning in progress and the challenger after it."""
        self.pending, self.challenger_age = None, -1

    def _add_group(self, new: NewGroup) -> None:
        """Add a new group to the ensemble, with its scales and linear models."""
        ensemble, group = self.ensemble, new.group
        if not new.scales.usable:
            ensemble.scales = None
        elif new.linear:
            ensemble.use_linear(new.linear, new.scales)
        if group is None:
            ensemble.bind()
            return
        group.occasion_scores[...] = ensemble.expected_occasion_scores
        ensemble.start_race(group, self.seen - self.origin)
        self.note(new.what, f"{group.name}, {group.size} points")

    def _end_race(self, keep: int) -> None:
        """End the race with the best groups, and note the result."""
        ranked = self.ensemble.end_race(keep)
        if len(ranked) > keep:
            best, second = ranked[0], ranked[1]
            margin = best.race_score - second.race_score
            ahead = f"ahead by {margin:.1f} nats of" if margin > 0 else "smaller and as good as"
            self.note(f"{best.name} won the race", f"{ahead} {second.name}")

    # ---- changes of the stream -----------------------------------------------------------------

    def _exchange(self, before: Group) -> None:
        """Store the leading group from before a change; the one stored earlier joins a race."""
        previous = self.previous.exchange(before)
        if previous is not None:
            previous.occasion_scores[...] = self.ensemble.expected_occasion_scores
            self.ensemble.join_race(previous, self.seen - self.origin)
            self.note("samples far off", f"{previous.name} joins the race")

    def _detect_changes(self) -> None:
        """Compare the latest samples with those on which the scales were found."""
        scales = self.ensemble.scales
        if self.seen < self.quiet_until:
            return
        if scales is not None and changes.unchanged(self.samples, WINDOW, scales):
            return
        latest = self.samples.latest(self.seen - WINDOW)
        if scales is None:  # inputs or targets were constant so far
            if self.pending is None and changes.started_moving(latest.X, latest.Y):
                self._restart("targets moved", "they were constant before")
                self.quiet_period *= 2
            return
        latest = latest.select(~latest.outliers)
        if len(latest.X) < WINDOW // 2:
            return
        outside = changes.inputs_outside(latest.X, scales)
        targets_new = changes.targets_changed(latest.Y, scales)
        if targets_new and changes.targets_new(*self.samples.split(WINDOW, self.robust)):
            self._restart("targets changed", "the latest ones are outside the known range")
            self.quiet_period *= 2
        elif len(outside):
            self._extend_inputs(outside, outside[scales.deviation[outside] == 0])

    def _extend_inputs(self, outside: Indices, new: Indices) -> None:
        """Tune once more for columns outside their range; `new` ones were constant before."""
        if len(new) and self.pending is not None:
            if self.pending.uses(new):
                return
            self._cancel_pending()
        self.quiet_until, self.quiet_period = self.seen + self.quiet_period, 2 * self.quiet_period
        self.changed, self.extra_tuning = False, self.seen + 60
        if len(new):  # no group uses them yet, so tuning should not wait
            self.ensemble.cut_race()
            self.relation.group = None
        columns = ", ".join(map(str, outside))
        self.note("inputs changed", f"columns {columns} outside the known range")

    def _restart(self, what: str, why: str, new_inputs: bool = False) -> None:
        """Start the tuning schedule again, with the latest samples only unless inputs are new."""
        self.quiet_until, self.changed = self.seen + self.quiet_period, not new_inputs
        self.origin, self.next_tuning, self.starts = self.seen - 20, SCHEDULE[0], {}
        self.ensemble.predictors.trust = 0.0  # in linear models of before
        self._cancel_pending()
        self.ensemble.cut_race()
        self.relation.group = None
        self.note(what, why)


def _found(group: Group) -> SearchResult:
    """Return the hyperparameters of a group as the result of a search."""
    return SearchResult(group.scales, group.hyperparameters, np.empty(0, dtype=np.int64))
