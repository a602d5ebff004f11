"""The members of the mixture of `OnlineGP`: they predict, are scored, learn, and race."""

from __future__ import annotations

from itertools import accumulate, chain, pairwise, product
from math import isfinite
from typing import NamedTuple

import numpy as np

from pogp.arrays import Array
from pogp.online import arithmetic_core, ensemble_step
from pogp.online.arithmetic import LEAST_VARIANCE, least_variance, log_densities, log_sum_exp
from pogp.online.band import Band
from pogp.online.group import OUTLIER_BOUND, Group
from pogp.online.jumps import InputJumps
from pogp.online.mixture import AFTER_SURPRISE, AT_JUMP, DISCOUNTS, OCCASIONS, Mixture
from pogp.online.prediction import GapEffect, Prediction, gap_effect
from pogp.online.samples import Mask
from pogp.online.scales import VERY_FAR, Scales
from pogp.online.simple_predictors import (
    LAST,
    LINEAR,
    NAMES,
    WITH_LAST,
    LinearModel,
    SimplePredictors,
)
from pogp.online.surprises import Surprises

MAX_RACE = 200
"""The most samples of a race, in which new groups are compared with the old ones."""
REMOVAL_MARGIN, SURPRISE_MARGIN = 5.0, 20.0
"""A group this many nats behind the best one is removed before the end of a race. A surprise costs
about twenty nats, so that a group may win by the one that it expects."""
NATS_PER_POINT = 0.01
"""The nats that a point must gain in a race: of equally good groups the smallest wins."""


class Situation(NamedTuple):
    """What the weights of the members at an input depend on, besides their scores."""

    far: bool
    """Whether the input is so far away that not all members predict."""
    jumped: bool
    """Whether it belongs to a jump of an input."""


class Ensemble:
    """Simple predictors and groups, their weights in the mixture, and the calibration of bands.

    The scores, means and variances of all members are in common arrays, first those of the simple
    predictors. The scores of each holder of members are views of a part of them.
    """

    def __init__(self, dimension: int, outputs: int, robust: bool) -> None:
        self.outputs, self.robust = outputs, robust
        self.predictors = SimplePredictors(dimension, outputs)
        self.mixture = Mixture(outputs)
        self.band = Band(outputs)
        self.surprises = Surprises()
        self.jumps = InputJumps(dimension)
        self.scales: Scales | None = None
        self.race_end = -1
        self.stuck = False
        """Whether the last targets were stuck: they repeated, and the groups contradicted them."""
        self.repeated = False
        """Whether the targets of the sample that was scored are exactly the last ones."""
        self.jumped = False
        """Whether the sample that was scored belongs to a jump of an input."""
        self._groups_asleep = False  # at the sample that was scored
        self._arithmetic = arithmetic_core()
        self._zeros = np.zeros(outputs)
        self.set_groups([])

    def set_groups(self, groups: list[Group]) -> None:
        """Replace the groups, and arrange the common arrays."""
        self.groups = groups
        counts = [len(NAMES), *(group.n_members for group in groups)]
        self.ends = tuple(accumulate(counts))
        self.parts = [slice(start, end) for start, end in pairwise((0, *self.ends))]
        shape = (self.ends[-1], self.outputs)
        self.means, self.variances, self.gains = np.empty((3, *shape))
        self.scores = np.empty((len(DISCOUNTS), *shape))
        self.occasion_scores = np.empty((len(OCCASIONS), len(DISCOUNTS), *shape))
        holders: list[SimplePredictors | Group] = [self.predictors, *groups]
        for holder, rows in zip(holders, self.parts, strict=True):
            self.scores[:, rows] = holder.scores
            self.occasion_scores[:, :, rows] = holder.occasion_scores
            holder.scores = self.scores[:, rows]
            holder.occasion_scores = self.occasion_scores[:, :, rows]
        self.bind()

    def bind(self) -> None:
        """Bind the step to the present arrays."""
        self._step = ensemble_step(self)

    def use_linear(self, models: list[LinearModel], scales: Scales) -> None:
        """Use new linear models and the scales of their inputs.

        If the last input that was very far is not in these scales, linear models that were worse
        there had learned too little.
        """
        predictors = self.predictors
        if predictors.trust < 0.0 and not scales.are_far(predictors.judged, VERY_FAR):
            predictors.trust = 0.0
        self.scales, predictors.linear = scales, models

    @property
    def seen(self) -> int:
        """The number of samples learned."""
        return self.predictors.count

    @property
    def resting(self) -> bool:
        """Whether the rows to predict do not follow the last sample."""
        return self.band.resting

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
            return float(np.mean(np.maximum(self.predictors.errors[0], 1e-300)))
        noise = group.noise * group.noise_factor[group.core.lead]
        return float(np.mean(noise * group.scales.unit**2))

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.predictors.nbytes + sum(group.nbytes for group in self.groups)

    # ---- predicting ----------------------------------------------------------------------------

    def best_scores(self, before: bool = False) -> Array:
        """Return the best scores, (discounts, k); `before` the sample that was scored."""
        return np.asarray((self.scores - self.gains if before else self.scores).max(axis=1))

    @property
    def expected_occasion_scores(self) -> Array:
        """The scores on each occasion of a group that joins, (occasions, discounts, 1, k).

        It is expected to do as the leading group; the last target, say, may do better.
        """
        best = self.predictors if self.leading is None else self.leading
        return np.asarray(best.occasion_scores.max(axis=2, keepdims=True))

    @property
    def current_scores(self) -> Array:
        """The scores that weight the next prediction, (discounts, members, k).

        After a surprise, the scores on samples that followed earlier surprises are added: if these
        were outliers, the next sample is not affected, if they were jumps, it is. At rest,
        members that use the last target or the last residual have no weight, nor have groups that
        are not proven. A belief is then weighted by its predictions without the residual.
        """
        if self.stuck and not self.resting:
            scores = np.full_like(self.scores, -np.inf)
            scores[:, LAST] = 0.0
            return scores
        if not self.resting:
            after_surprise = self.occasion_scores[AFTER_SURPRISE]
            return self.scores + after_surprise if self.surprises.last else self.scores
        scores = self.scores.copy()
        scores[:, WITH_LAST] = -np.inf
        for group, rows in zip(self.groups, self.parts[1:], strict=True):
            plain = 0 if self._unproven(group) else group.n_members // 2
            scores[:, rows.start + plain : rows.stop] = -np.inf
        return scores

    def _unproven(self, group: Group) -> bool:
        """Whether a transferred group in a race has not yet predicted better than older groups."""
        others = [other.race_score for other in self.groups if other.tuned_at < group.tuned_at]
        racing = self.seen < self.race_end and group.transferred and bool(others)
        return racing and group.race_score <= max(others)

    def scores_at(self, situation: Situation) -> Array:
        """Return the current scores in a situation.

        At a jump of an input, those at earlier jumps are added. At far inputs the linear models
        alone predict if they did better at such inputs before, and otherwise all other members.
        """
        scores = self.current_scores
        if self.stuck and not self.resting:
            return scores
        if situation.jumped:
            scores = scores + self.occasion_scores[AT_JUMP]
        return _of_some(scores, linear=self.predictors.trusted) if situation.far else scores

    def predict_members(self, X: Array) -> tuple[Array, Array, Array]:
        """Return means and variances, (members, n, k), and latent shares, (members, n)."""
        scaled = X if self.scales is None else self.scales.straight(X)
        parts = [(*self.predictors.predict(scaled, self.scales), np.zeros((len(NAMES), len(X))))]
        parts += [group.predict(X, self.resting) for group in self.groups]
        means, variances, shares = (np.concatenate(part) for part in zip(*parts, strict=True))
        return means, variances, shares

    def situations(self, X: Array) -> list[tuple[Situation, Mask]]:
        """Return the situations of raw inputs, and which rows (n, p) are in each of them."""
        nowhere, far = np.zeros(len(X), dtype=bool), self._very_far(X)
        jumped = nowhere if self.resting else self.jumps.includes(X)
        if not far.any() and not jumped.any():
            return [(Situation(False, False), ~nowhere)]
        pairs = [
            (Situation(a, b), (far == a) & (jumped == b))
            for a, b in product((False, True), repeat=2)
        ]
        return [(situation, rows) for situation, rows in pairs if rows.any()]

    def combine(
        self, means: Array, variances: Array, situation: Situation
    ) -> tuple[Array, Array, Array]:
        """Return mean and variance (n, k) of the mixture, and the weights (members, k)."""
        return self.mixture.combine_many(self.scores_at(situation), means, variances)

    def predict(self, X: Array) -> Prediction:
        """Return the predictions of the mixture at raw inputs."""
        if self.seen < 2:
            return self._first_prediction(len(X))
        found = Prediction(*np.empty((3, len(X), self.outputs)))
        for situation, rows in self.situations(X):
            if rows.all():
                return self._predict(X, situation)
            for whole, part in zip(found, self._predict(X[rows], situation), strict=True):
                whole[rows] = part
        return found

    def _predict(self, X: Array, situation: Situation) -> Prediction:
        means, variances, shares = self.predict_members(X)
        mean, variance, weights = self.combine(means, variances, situation)
        noise = np.einsum("mk,mn,mnk->nk", weights, 1.0 - shares, variances)
        variance = np.maximum(variance, LEAST_VARIANCE)
        return Prediction(mean, *self.band.calibrated_pair(variance, noise))

    def _first_prediction(self, count: int) -> Prediction:
        """Return predictions before two samples: the first target, with its size as deviation."""
        mean = np.repeat(self.predictors.mean[None], count, axis=0)
        square = np.where(mean != 0.0, mean**2, 1.0)
        return Prediction(mean, square, 0.0 * square)

    def gap_effect(self, x: Array, points: Array | None) -> GapEffect | None:
        """Return the effect of the missing values of a row that may be at any of the points."""
        if points is None or self.seen < 2:
            return None
        return gap_effect(self.predict(np.vstack([x, points])), 0, slice(1, None))

    def correlation(self, X: Array) -> Array:
        """Return the correlation of f between rows, by the leading belief."""
        return np.eye(len(X)) if self.leading is None else self.leading.correlation(X)

    def weights(self) -> dict[str, float]:
        """Return the weight of each member, averaged over the outputs."""
        if self.seen < 2:
            return {"mean": 1.0}
        weights = self.mixture.weights(self.current_scores).mean(axis=1)
        names = chain(NAMES, *(group.member_names for group in self.groups))
        return dict(zip(names, weights.tolist(), strict=True))

    # ---- learning ------------------------------------------------------------------------------

    def score(
        self,
        x: Array,
        y: Array,
        gaps: GapEffect | None,
        weight: float,
        stopped: bool,
        record: Array,
    ) -> bool:
        """Predict and record a sample, and score the members; return whether it is an outlier."""
        extra, step = None if gaps is None else gaps.variance, self._step
        self.jumped = self.jumps.learn(x)
        self.repeated = self.repeats(y)
        step.predict(x, extra, weight, (1.0 / weight - 1.0) * self.noise if weight < 1.0 else 0.0)
        if self.seen < 2:
            first = self._first_prediction(1)
            record[: 2 * self.outputs] = np.concatenate([first.mean[0], first.variance[0]])
            return False
        self._unscored = self._all_scores() if self.repeated else None
        away = self.scales if step.far else None
        far = away is not None and bool(self._very_far(x))
        trusted = far and self.predictors.trusted
        before = self.scores.copy() if far else None
        races = [group.race_score for group in self.groups]
        compared = away is not None and bool(away.are_far(x, VERY_FAR))
        compared = compared and gaps is None and not self.repeated  # the sensor may be stuck
        rivals = self._linear_and_others() if compared else None
        scores = self.scores_at(Situation(far, self.jumped))
        error = step.score(y, scores, gaps, record, stopped)
        self._groups_asleep = trusted
        if before is not None:
            self._excuse(y, before, linear=not trusted)
        if trusted:
            self._set_races(races)
        if rivals is not None:
            self.predictors.judge_far(x, y, *rivals)
        if away is not None:
            self.predictors.remember_far(x, away)
        if self.surprises.last:
            surprised = self.occasion_scores[AFTER_SURPRISE]
            self._arithmetic.add_discounted(surprised, DISCOUNTS, self.gains)
        if self.jumped:
            share, discounts = self.jumps.evidence
            scores = self.occasion_scores[AT_JUMP]
            self._arithmetic.add_discounted(scores, discounts, share * self.gains)
        return self.surprises.is_outlier(error) and self.robust

    def gains_beside(self, y: Array, means: Array, variances: Array) -> Array:
        """Return the gains (members, k) of others, with these predictions of the scored sample.

        They are as if the others had been scored together with the members.
        """
        least = least_variance(y, np.concatenate([self.means, means]))
        others = log_densities(y, means, np.maximum(variances, least))
        ours = log_densities(y, self.means, np.maximum(self.variances, least))
        return np.asarray(others + self.gains.max(axis=0) - ours.max(axis=0))

    def explains(self, x: Array, last: Array) -> bool:
        """Return whether an input has jumped, or left its known range since the last sample.

        Then it can explain a surprise, which is no outlier.
        """
        if self.jumped:
            return True
        if self.scales is None:
            return False
        away, step, reach = np.abs(x - self.scales.centre), np.abs(x - last), self.scales.reach
        return bool(((away > reach) & (step > reach)).any())

    def _very_far(self, X: Array) -> Mask:
        """Return which rows are so far away that not all members predict."""
        if self.scales is None:
            return np.zeros(X.shape[:-1], dtype=bool)
        return self.scales.are_far(X, self.predictors.very_far(self.scales))

    def _linear_and_others(self) -> tuple[Array, Array]:
        """Return the predictions of the linear models, and of all other members."""
        members = (self.means, self.variances)
        each = (_of_some(self.current_scores, linear) for linear in (True, False))
        ours, others = (self.mixture.combine(scores, *members)[0].copy() for scores in each)
        return ours, others

    def _excuse(self, y: Array, before: Array, linear: bool) -> None:
        """Let the linear models, or all others, keep their weights: they did not predict.

        They are sleeping experts (Freund, Schapire, Singer & Warmuth 1997): their scores, which
        were those of `before`, stay where they were beside those of the members that predicted.
        """
        asleep = np.full(len(self.gains), not linear)
        asleep[LINEAR] = linear
        change = log_sum_exp(self.scores[:, ~asleep]) - log_sum_exp(before[:, ~asleep])
        self.scores[:, asleep] = before[:, asleep] + change
        self.gains[asleep] = log_densities(y, *self.mixture.combined)

    def _set_races(self, scores: list[float]) -> None:
        for group, score in zip(self.groups, scores, strict=True):
            group.race_score = score

    def repeats(self, y: Array) -> bool:
        """Return whether the targets are exactly the last ones."""
        return bool(y.tolist() == self.predictors.last.tolist())

    def _all_scores(self) -> tuple[Array, Array, list[float]]:
        """Return copies of all scores but those of occasions."""
        races = [group.race_score for group in self.groups]
        return self.scores.copy(), self.mixture.scores.copy(), races

    def ignore_stuck(self, y: Array) -> None:
        """Count the sample that was scored, with stuck targets, and learn nothing from it.

        All members stay as they are for when the targets move again, and a race lasts longer. Until
        then the last target predicts them.
        """
        self.race_end += self.race_end > self.seen
        self._step.learn(y, OUTLIER_BOUND, 0.0)
        if self._unscored is not None:
            self.scores[...], self.mixture.scores[...], races = self._unscored
            self._set_races(races)

    def store_errors(self, y: Array, leading: Group, gaps: GapEffect | None) -> None:
        """Store the errors of the sample that was scored, for the band at rest."""
        start = self.parts[1 + self.groups.index(leading)].start
        shift, extra = (self._zeros, self._zeros) if gaps is None else gaps
        noise, row = leading.noise_factor * leading.noise, self.band.errors.next_row()
        members, unit = (self.means, self.variances, start), leading.scales.unit
        self._arithmetic.write_errors(y, *members, noise, unit, shift, extra, row)

    def learn(
        self,
        y: Array,
        at_inputs: Array,
        outlier: bool,
        weight: float,
        stopped: bool,
        leading: Group | None,
        record: Array,
    ) -> list[str]:
        """Let all members learn the target of the sample that was scored.

        Groups learn the target that is expected at the imputed inputs, `at_inputs`. The changes of
        the leading group are written to the record. Groups with rounding errors are removed; the
        messages of these errors are returned.
        """
        position, bound = self.seen, OUTLIER_BOUND if outlier else 0.0
        self._step.learn(y, bound, weight, self.robust and self._step.far)
        if self.robust and self._groups_asleep:
            bound = OUTLIER_BOUND
        valid, errors = [], []
        for group in self.groups:
            try:
                steps = group.step.learn(at_inputs, position, bound, stopped)
            except FloatingPointError as error:
                errors.append(str(error))
                continue
            if group is leading:
                record[2 * self.outputs :] = steps[2 * self.outputs - len(record) :]
            if isfinite(group.race_score):
                valid.append(group)
        if len(valid) < len(self.groups):
            self.set_groups(valid)
        return errors

    # ---- races ---------------------------------------------------------------------------------

    def start_race(self, group: Group, age: int) -> None:
        """Add a group, and compare all groups from now on; `age` is that of the stream."""
        self.set_groups([*self.groups, group])
        for each in self.groups:
            each.race_score = 0.0
        self.race_end = self.seen + min(MAX_RACE, max(age // 2, 3))

    def join_race(self, group: Group, age: int) -> None:
        """Add a group that led before a change.

        A race in progress continues. The group gets the score of the leading one, which includes
        the change, so that a group that predicted the change remains ahead of both.
        """
        leading = self.leading
        if leading is None or self.seen >= self.race_end:
            self.start_race(group, age)
            return
        group.race_score = leading.race_score
        self.set_groups([*self.groups, group])

    def remove_losers(self) -> None:
        """Remove the groups that are too far behind to win the race.

        The margin is larger where another surprise is to be expected during the race.
        """
        surprises = self.surprises.expected(self.race_end - self.seen, self.seen)
        margin = REMOVAL_MARGIN + SURPRISE_MARGIN * min(surprises, 1.0)
        best = max((group.race_score for group in self.groups), default=0.0)
        kept = [group for group in self.groups if group.race_score > best - margin]
        if len(kept) < len(self.groups):
            self.set_groups(kept)

    def end_race(self, keep: int) -> list[Group]:
        """Keep the best groups of the race; return all of them, the best first."""
        ranked = sorted(self.groups, key=lambda each: NATS_PER_POINT * each.size - each.race_score)
        self.set_groups(ranked[:keep])
        return ranked

    def cut_race(self) -> None:
        """End the race with the next sample, if there is one."""
        self.race_end = min(self.race_end, self.seen)


def _of_some(scores: Array, linear: bool) -> Array:
    """Return scores (discounts, members, k) by which the linear models or all others predict."""
    chosen = np.full_like(scores, -np.inf) if linear else scores.copy()
    chosen[:, LINEAR] = scores[:, LINEAR] if linear else -np.inf
    return chosen
