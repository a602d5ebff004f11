"""Problems of a model or its stream, in one sentence each, and what to try.

A verdict is a function from a summary (the journal of a stream and the model that learned it) to a
`Verdict`, or None where there is nothing to say. `verdicts` collects those of `ALL`.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pogp.arrays import Array
from pogp.encoding.columns import looks_like_time
from pogp.models.base import Model
from pogp.models.online import OnlineGP
from pogp.online.scales import LEAST_TARGET, ROUNDING
from pogp.report import prose
from pogp.report.advice import (
    Verdict,
    advised,
    follow_changes,
    other_method,
    times_of,
    with_columns,
)
from pogp.report.axes import number
from pogp.report.journal import Journal
from pogp.report.segments import CLEAR, POOR
from pogp.report.summary import Summary
from pogp.report.verdicts_on_changes import (
    changed,
    drifted,
    drifting,
    outlying,
    shifted,
    stuck,
)

ENOUGH = 50
"""Samples below which there is no verdict."""
BETTER = 0.95
"""If its error is below this share of ours, another prediction is better."""
REDUCIBLE = 0.75
"""Where noise explains more than this share of the error, more points would bring little."""
SETTLED = 500
"""Samples at the cap before a gain from more points is estimated."""
LEANING = 0.08
"""A share of targets above their predictions that is off ½ by no more is not called a bias, nor a
mean error of fewer deviations."""
LOOSE = 0.02
"""A coverage of the 95 % band that is off by no more is called right."""
NOTHING = 1e-8
"""A mean squared error of at most this share of the variance counts as zero."""
LOCAL = 0.25
"""A correlation of misfit and feature above which a band is called too narrow there."""
UNUSED = 1e-3
"""The share of the targets' variance by which predictions move with an input that is used."""
PREDICTIONS = 20_000
"""Predictions made, at most, to find the inputs that are ignored."""


def verdicts(summary: Summary) -> list[Verdict]:
    """Return all verdicts, the most important first."""
    if summary.settings.warming_up or summary.journal.seen < ENOUGH:
        return []
    if summary.journal.recent().predicted[0] < min(ENOUGH, summary.journal.seen - 1):
        return []
    if (rounding := unresolved(summary)) is not None:  # all else follows from it
        return [rounding]
    found = [verdict for judge in ALL if (verdict := judge(summary)) is not None]
    found.sort(key=lambda verdict: verdict.name != "failed")  # which may explain the others
    useless = any(verdict.name == "useless" for verdict in found)
    return [*found, *of_columns(summary, useless)]


def unresolved(summary: Summary) -> Verdict | None:
    """Find targets that vary by little more than their rounding, or by next to nothing."""
    journal = summary.journal
    if not isinstance(summary.model, OnlineGP):
        return None
    largest = np.abs(journal.samples.targets).max(axis=0)
    for name, size, variance, most in zip(
        summary.targets, np.abs(journal.centre), journal.variance, largest, strict=True
    ):
        deviation = math.sqrt(variance)
        if 0 < most < LEAST_TARGET:
            return Verdict(
                "unresolved",
                f"{name} is not above {number(float(most))} in size: what varies by less than "
                f"{number(LEAST_TARGET)} is taken to be constant. Multiply it by a constant.",
                "",
            )
        if 0 < deviation <= ROUNDING * size:
            return Verdict(
                "unresolved",
                f"{name} varies by {number(deviation)} around {size:.3g}, where floating-point "
                f"numbers are {number(float(np.spacing(size)))} apart: it is taken to be constant. "
                f"Subtract a constant near {size:.3g} from it before it is rounded.",
                "",
            )
    return None


def useless(summary: Summary) -> Verdict | None:
    """Find predictions no better than the mean of the targets, or worse than the last one.

    A few outliers are left out, because they cannot be predicted.
    """
    recent, outliers = summary.journal.recent_ordinary(), summary.journal.recent_outliers()
    by_mean, by_last = (float(recent.ratio(part)[0]) for part in (recent.by_mean, recent.by_last))
    names = ("the mean of the targets so far", "the mean"), ("the last target", "the last target")
    share, (simple, short) = max((by_mean, names[0]), (by_last, names[1]))
    if not recent.relative or share < POOR:
        return None
    if share * BETTER > 1:
        text = f"The predictions are worse than {simple} would be"
    elif share == by_mean:
        text = f"The predictions are not clearly better than {simple} would be"
    else:
        return None
    return advised(
        summary,
        "useless",
        f"{text}. Over the last {prose.predicted(recent)}{_without(outliers) or ','} the mean "
        f"squared error of the model is {_times(share)} that of {short}.",
        *other_method(summary, "--report", "report.html"),
    )


def capped(summary: Summary) -> Verdict | None:
    """Find a cap that is reached while the error is well above the noise, but not the mean's."""
    cap, recent, model = summary.settings.cap, summary.journal.recent_ordinary(), summary.model
    if cap is None or 4 * cap > model.seen or not recent.relative:  # twice the points of few rows
        return None
    if min(float(recent.mean("size")[0]), model.size) < prose.FULL * cap:
        return None
    varied = recent.variance > 0
    noise = float((summary.settings.noise[varied] / recent.variance[varied]).mean())
    error = float(recent.error[0])
    if noise > REDUCIBLE * error or float(recent.ratio(recent.by_mean)[0]) > POOR:
        return None
    return advised(
        summary,
        "capped",
        f"All {cap} points are in use, and the error{_without(summary.journal.recent_outliers())} "
        f"is {number(100 * error)} % of the variance where the noise is estimated at "
        f"{number(100 * noise)} %. "
        f"{_with_twice_the_points(summary, cap, error, noise)}",
        "--max-size",
        str(2 * cap),
    )


def _with_twice_the_points(summary: Summary, cap: int, error: float, noise: float) -> str:
    """Estimate the gain from a larger cap by the effect of a smaller one.

    The error above the noise is taken to fall by the same factor each time the points double.
    """
    bound = "More points can remove at most the difference."
    journal = summary.journal
    if journal.after + journal.seen - prose.full_since(journal.segments(), cap) < SETTLED:
        return bound  # it has not yet seen what it can do with its points
    samples, variance = journal.samples, journal.ordinary().variance
    try:
        half = summary.model.copy().change(max_size=max(cap // 2, 1))
    except ValueError:  # a model whose cap cannot be changed
        return bound
    latest = samples.positions >= np.median(samples.positions)  # the past may be another relation
    X, shape = samples.inputs[latest], samples.targets[latest].shape
    moved = np.subtract(*(each.predict(X)[0] for each in (half, summary.model)))
    shares = np.reshape(moved, shape)[:, variance > 0] ** 2 / variance[variance > 0]
    excess, lost = error - noise, float(shares.mean())
    expected = noise + excess**2 / (excess + lost)
    # Neither has enough points to say; or points that were removed afterwards cost far more than
    # points that were never there.
    if expected > BETTER * error or lost > 10 * excess:
        return bound
    return (
        f"With half as many points it would be about {number(100 * (error + lost))} %; at that "
        f"rate twice as many would lower it to about {number(100 * expected)} %."
    )


def biased(summary: Summary) -> Verdict | None:
    """Find targets that fall on one side of their predictions.

    If noise is skewed, most do, but the mean of the errors is zero.
    """
    recent = summary.journal.recent()
    if _at_rest(summary.journal):
        return None
    cells, half = recent.cells[0], recent.cells.shape[1] // 2
    above, count = float(cells[half:].sum() / cells.sum()), float(recent.predicted[0])
    if abs(above - 0.5) < max(LEANING, CLEAR * 0.5 / math.sqrt(count)):
        return None
    lean = float(recent.lean[0]) * math.copysign(1.0, above - 0.5)
    if lean < max(LEANING, 2.0 / math.sqrt(count)):
        return None
    share, side = (above, "above") if above > 0.5 else (1 - above, "below")
    return advised(
        summary,
        "biased",
        f"The predictions are biased: {prose.percent(share)} of the last "
        f"{prose.predicted(recent)} lie {side} them, where half should.",
        *follow_changes(summary),
    )


def _at_rest(journal: Journal) -> bool:
    """Return whether the latest errors are zero up to rounding, as for a constant target."""
    recent, rounding = journal.recent_ordinary(), (ROUNDING * journal.centre) ** 2
    least = np.maximum(NOTHING * recent.variance, rounding)
    return bool((recent.squares <= least * recent.scored[:, None]).all())


def misjudged(summary: Summary) -> Verdict | None:
    """Find a 95 % band with too few or too many targets, overall or in some region."""
    recent, journal = summary.journal.recent(), summary.journal
    if _at_rest(summary.journal):
        return None
    share, count = float(recent.coverage(0.95)[0]), float(recent.predicted[0])
    margin = max(LOOSE, 3 * math.sqrt(0.95 * 0.05 / count))
    half = float(recent.coverage(0.5)[0]) - 0.5
    where = _place(summary, journal.misfit.correlations())
    held = f"it holds {prose.percent(share)} of the last {prose.predicted(recent)}"
    if share < 0.95 - margin:
        text = f"The 95 % band is too narrow{where and f', most of all {where}'}: {held}."
    elif share > 0.95 + LOOSE and half > CLEAR * 0.5 / math.sqrt(count):
        text = f"The 95 % band is too wide{where and f', least of all {where}'}: {held}."
    elif where and count >= 4 * ENOUGH:
        text = f"The 95 % band is too narrow {where}, and too wide elsewhere; in all {held}."
    else:
        return None
    return advised(summary, "misjudged", text, *other_method(summary, "--report", "report.html"))


def _place(summary: Summary, correlations: Array) -> str:
    """Return the region where errors are larger than predicted, if there is one."""
    strongest = int(np.argmax(np.abs(correlations)))
    strength = float(correlations[strongest])
    samples = 0.19 * summary.journal.seen  # as many as weights (t/T)⁹ are worth
    if abs(strength) < max(LOCAL, (CLEAR + 1) / math.sqrt(max(samples, 1.0))):
        return ""
    dimension = len(summary.names)
    if strongest == dimension + 1:
        return f"where the model claims to be {'sure' if strength < 0 else 'unsure'}"
    name = summary.names[strongest] if strongest < dimension else "the prediction"
    value = "high" if strength > 0 else "low"
    for each in summary.all_variables:
        if each.codes and strongest in each.inputs:
            codes = {text: code[strongest - each.inputs[0]] for text, code in each.codes.items()}
            name, value = each.name, max(codes, key=lambda text: strength * codes[text])
    return f"where {name} is {value}"


def of_columns(summary: Summary, useless: bool = False) -> list[Verdict]:
    """Find columns that are ignored or that only ever went up, with one command for both.

    What a `useless` model ignores says nothing.
    """
    columns = list(dict.fromkeys(summary.columns))
    risen = rising(summary)
    clocks = [name for name in risen if _is_clock(summary, name)]
    risen = [name for name in risen if name not in clocks]
    unused = [] if useless else [name for name in ignored(summary) if name not in clocks]
    inputs = "the input" if len(unused) == 1 else "the inputs"
    sentences = {
        "ignored": (unused, f"The predictions ignore {inputs} {{}}."),
        "rising": (
            risen,
            "{} only ever increased, as counters and clocks do: what was learned from past values "
            "may not hold for future ones.",
        ),
    }
    found = []
    if clocks:
        look, times = ("looks", "a time") if len(clocks) == 1 else ("look", "times")
        asked = ",".join([*times_of(summary), *clocks])
        text = f"{prose.listed(clocks)} only ever increased, and {look} like {times}."
        found.append(advised(summary, "clock", text, "--time", asked, without=("--from",)))
    for name, (dropped, sentence) in sentences.items():
        if 0 < len(dropped) < len(columns):
            kept = [each for each in columns if each not in dropped]
            without = [each for each in kept if each not in (*unused, *risen)]
            options = with_columns(summary, without or kept)
            replaced = ("--columns", "--exclude", "--time")
            text = sentence.format(prose.listed(dropped))
            advice = advised(summary, name, text, *options, without=replaced)
            only_ignored = name == "rising" and not without
            found.append(replace(advice, command="") if only_ignored else advice)
    if len(found) > 1 and found[-2].command == found[-1].command:
        found[-2] = replace(found[-2], command="")  # it follows the other sentence
    return found


def ignored(summary: Summary) -> list[str]:
    """Return the columns whose values, if shuffled, leave the predictions as they are.

    A column is not ignored if shuffling it moves the predictions by more than their uncertainty.
    """
    columns, X = list(dict.fromkeys(summary.columns)), summary.journal.samples.inputs
    moved = movement(summary.model, X, summary.columns)
    latent = summary.model.predict(X, latent=True)[1].mean(axis=0)
    moved = np.where(moved < latent, moved, np.inf)
    variance = _ordinary_variance(summary.journal)
    if not (variance > 0).any():
        return []
    shares = (moved / np.where(variance > 0, variance, np.inf)).max(axis=1)
    return [name for name, share in zip(columns, shares, strict=True) if share < UNUSED]


def _is_clock(summary: Summary, name: str) -> bool:
    return looks_like_time(summary.journal.samples.inputs[:, summary.columns.index(name)])


def _ordinary_variance(journal: Journal) -> Array:
    """Return the variance of each output, but for the few targets that are far from the others."""
    targets = journal.samples.targets
    inner = np.var(np.clip(targets, *np.quantile(targets, (0.02, 0.98), axis=0)), axis=0)
    return np.where(inner > 0, np.minimum(inner, journal.variance), journal.variance)


def movement(model: Model, X: Array, columns: list[str]) -> Array:
    """Return how far the mean moves, squared, if each column is shuffled, all its inputs alike.

    `columns` has the column of each input; the result has a row for each column, (c, k).
    """
    dimension = max(X.shape[1], 1)
    X = X[: max(PREDICTIONS // dimension, 16)]
    rng = np.random.default_rng(0)
    before = np.reshape(model.predict(X)[0], (len(X), -1))
    moved = []
    for column in dict.fromkeys(columns):
        inputs = [place for place, origin in enumerate(columns) if origin == column]
        shuffled = X.copy()
        shuffled[:, inputs] = rng.permutation(X[:, inputs])
        after = np.reshape(model.predict(shuffled)[0], before.shape)
        moved.append(((after - before) ** 2).mean(axis=0) / 2)  # each varies with the other
    return np.array(moved)


def rising(summary: Summary) -> list[str]:
    """Return the columns that only ever went up, as clocks and counters do.

    A column of times is known to be a clock, and its calendar repeats.
    """
    samples = summary.journal.samples
    steps = np.diff(samples.inputs[np.argsort(samples.positions)], axis=0)
    return [
        name
        for name, column in zip(summary.columns, steps.T, strict=True)
        if (column > 0).all() and summary.columns.count(name) == 1
    ]


ALL: tuple[Callable[[Summary], Verdict | None], ...] = (
    useless,
    capped,
    biased,
    misjudged,
    shifted,
    drifted,
    drifting,
    changed,
    outlying,
    stuck,
)


def _without(surprises: int) -> str:
    return f", {prose.counted(surprises, 'surprise')} left out," if surprises else ""


def _times(ratio: float) -> str:
    return f"{ratio:.2f} times" if ratio < 2 else f"{number(ratio, 2)} times"
