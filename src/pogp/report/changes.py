"""Changes along a stream, by the errors of a model: when they rose, and what else changed."""

import math
from dataclasses import dataclass

import numpy as np

from pogp.arrays import Array, Indices
from pogp.report import prose
from pogp.report.journal import OUTLIER
from pogp.report.summary import Summary
from pogp.report.surprises import AbruptChange

RISEN = 3.8
"""Standard errors of the sum of ranks beyond which errors have risen, at the best of all places."""
JUMP = 3.0
"""A change of level is a jump of so many deviations of the errors on either side of it."""
LEAST, ALIKE = 20, 0.35
"""The fewest samples on either side of a change; errors of neighbours with less correlation are
noise."""
STEADY = 0.8
"""A rank correlation of errors and time above which they rise, or fall, steadily."""
MANY = 0.2
"""An input with a larger share of missing values may have failed."""


def present_errors(summary: Summary) -> tuple[Indices, Array]:
    """Return positions (n,) and errors (n, k) of kept samples by the present model, in order."""
    samples = summary.journal.samples
    order = np.argsort(samples.positions)
    means = np.reshape(summary.model.predict(samples.inputs[order])[0], samples.targets.shape)
    return summary.journal.after + samples.positions[order], samples.targets[order] - means


@dataclass(frozen=True)
class LevelChange:
    """A jump of the errors of a target between two kept samples, counted from 1."""

    target: str
    jump: float
    before: int
    since: int

    def includes(self, change: AbruptChange, margin: int) -> bool:
        """Return whether surprises are those of the jump."""
        return self.before - margin < change.last and change.first <= self.since + margin


def level_change(summary: Summary) -> LevelChange | None:
    """Return a jump of the target that the inputs do not explain, if there is one.

    The errors that the present model has for samples of the whole stream jump from one level to
    another, and vary little on either side of the jump.
    """
    positions, errors = present_errors(summary)
    for target, each in zip(summary.targets, errors.T, strict=True):
        splits = [split for sign in (1, -1) if (split := change_point(sign * each)) is not None]
        for split in splits:
            before, after = each[:split], each[split:]
            jump = float(np.median(after) - np.median(before))
            around = max(robust_deviation(before), robust_deviation(after))
            if abs(jump) >= JUMP * around and is_abrupt(each, split, jump):
                return LevelChange(target, jump, *(positions[split - 1 : split + 1] + 1).tolist())
    return None


def level_drift(summary: Summary) -> tuple[str, float] | None:
    """Return a target that drifted slowly, and how far, if one did.

    The errors that the present model has for samples of the whole stream rise or fall steadily: by
    more than they vary, from the first fifth of the samples to the last.
    """
    positions, errors = present_errors(summary)
    if len(positions) < 5 * LEAST:
        return None
    fifth = len(positions) // 5
    for target, each in zip(summary.targets, errors.T, strict=True):
        ranks = np.argsort(np.argsort(each))
        trend = np.polynomial.Polynomial.fit(positions, each, 1)
        drift = float(np.median(each[-fifth:]) - np.median(each[:fifth]))
        steady = abs(np.corrcoef(np.arange(len(ranks)), ranks)[0, 1]) > STEADY
        if steady and abs(drift) > JUMP * robust_deviation(each - trend(positions)):
            return target, drift
    return None


def robust_deviation(values: Array) -> float:
    """Return the standard deviation of values but for outliers, by their quartiles."""
    return float(np.subtract(*np.quantile(values, (0.75, 0.25))) / 1.35)


def is_abrupt(errors: Array, split: int, jump: float) -> bool:
    """Return whether the errors next to a change are already at the levels farther away."""
    width = max(min(split, len(errors) - split) // 3, 3)
    near = float(
        np.median(errors[split : split + width]) - np.median(errors[split - width : split])
    )
    return abs(near - jump) < abs(jump) / 3


def failed_inputs(summary: Summary, since: int, width: int) -> str:
    """Return a clause on the inputs that failed at a sample, or up to `width` samples later.

    Many of their values are missing since then, or they do not vary any more, which would happen
    by chance once in a thousand times. It is empty if there is none.
    """
    journal, origins = summary.journal, np.array(summary.columns)
    before, now = journal.missing_shares(since + width)
    positions, X = journal.after + journal.samples.positions, journal.samples.inputs
    old, new = X[positions < since], X[positions >= since + width]
    missing, still = [], []
    for name in dict.fromkeys(summary.columns):
        own = np.flatnonzero(origins == name)
        share, values = float(now[own[0]]), new[:, own]
        if share > MANY and before[own[0]] < share / 2:
            missing.append(f"{name} has been missing in {100 * share:.0f} % of the rows")
        elif len(values) >= LEAST // 2 and (values == values[0]).all():
            alike = float((old[:, own] == values[0]).all(axis=1).mean())
            still += [f"{name} has been constant"] if alike ** len(values) < 1e-3 else []
    return prose.listed([*missing, *still]) if missing or still else ""


def has_new_inputs(summary: Summary, since: int) -> bool:
    """Return whether half of the samples since then have an input far outside its earlier range.

    A machine that starts to move is no new relation. Clocks, which only rise, do not count.
    """
    samples = summary.journal.samples
    order = np.argsort(samples.positions)
    X, old = samples.inputs[order], summary.journal.after + samples.positions[order] < since
    if old.all() or not old.any():
        return False
    X = X[:, (np.diff(X, axis=0) < 0).any(axis=0)]
    low, high = X[old].min(axis=0), X[old].max(axis=0)
    outside = (X[~old] < 2 * low - high) | (X[~old] > 2 * high - low)
    return bool(outside.any(axis=1).mean() >= 0.5)


def is_noise(summary: Summary, since: int, most: float) -> bool:
    """Return whether an error that rose is noise: the relation of before holds, and no other.

    The present model predicts the samples of before with an error of at most this share of the
    variance, and the errors since then have nothing in common with those of their neighbours, in
    inputs or in time.
    """
    positions, errors = present_errors(summary)
    variance, old = summary.journal.ordinary().variance, positions < since
    if old.sum() < LEAST or (~old).sum() < LEAST:
        return False
    varied = variance > 0
    shares = errors[:, varied] ** 2 / variance[varied]
    squares = np.minimum(shares, OUTLIER**2 * np.median(shares, axis=0))  # a few outliers aside
    if float(squares[old].mean()) > most:
        return False
    samples = summary.journal.samples
    X = samples.inputs[np.argsort(samples.positions)][~old]
    spread = X.std(axis=0)
    U = X[:, spread > 0] / spread[spread > 0]
    squared = ((U[:, None] - U) ** 2).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    ranks = np.argsort(np.argsort(errors[~old], axis=0), axis=0) - (len(U) - 1) / 2
    most_alike = ALIKE * np.sum(ranks**2, axis=0)
    near, before = ranks[np.argmin(squared, axis=1)], np.roll(ranks, 1, axis=0)
    return all((np.sum(ranks * other, axis=0) < most_alike).all() for other in (near, before))


def change_point(errors: Array) -> int | None:
    """Return where errors rise most clearly; None if nowhere.

    The errors before and after are compared by their ranks (Mann and Whitney), to which a few
    outliers do not matter, with at least three on either side.
    """
    count, best, found = len(errors), RISEN, None
    ranks = np.argsort(np.argsort(errors)) + 1
    for split in range(3, count - 2):
        right = count - split
        expected, variance = right * (count + 1) / 2, split * right * (count + 1) / 12
        score = float((ranks[split:].sum() - expected) / math.sqrt(variance))
        if score > best:
            best, found = score, split
    return found
