"""Sentences about the results of a journal and a model."""

import re

import numpy as np

from pogp.budgets import Budget
from pogp.report.axes import number
from pogp.report.journal import Journal
from pogp.report.segments import Segments
from pogp.report.summary import Summary

WIDTH = 94
"""Columns of text on a terminal."""
FULL = 0.98
"""A model order above this share of its cap is at its cap."""
GROWTH = 1.05
"""A model order this many times that of half time is called growing."""


def headline(summary: Summary) -> str:
    """Return the sentences that `pogp learn` ends with: samples, points and scores."""
    journal, model = summary.journal, summary.model
    kept = f"{counted(model.size, 'point')} ({human_bytes(model.nbytes)})"
    if journal.seen == 0:
        return f"Nothing new to learn. Keeps {kept}."
    samples = counted(journal.seen, "more sample" if journal.after else "sample")
    sources = inputs(len(set(summary.columns)), journal.dimension)
    learned = f"Learned {samples} of {listed(summary.targets)} from {sources}."
    if summary.settings.warming_up:
        return (
            f"{learned} Still collecting samples for tuning; until then it predicts the "
            "mean and the variance of those so far."
        )
    learned += f" Keeps {kept}."
    if journal.outputs == 1 and journal.seen > 1 and not journal.variance.any():
        return f"{learned} {summary.targets[0]} is always {number(float(journal.centre[0]), 6)}."
    recent, ordinary = journal.recent(), journal.recent_ordinary()
    if recent.predicted[0] < 2:  # one sample says nothing about a band
        return learned
    return (
        f"{learned} Of the last {predicted(recent)}, each predicted before it was learned, "
        f"{percent(recent.coverage(0.95)[0])} fell within their 95 % band; their mean "
        f"squared error is {_error(ordinary)}{' of the variance' * recent.relative}"
        f"{_of_surprises(journal)}."
    )


def _of_surprises(journal: Journal) -> str:
    """Return how many surprises are left out, and the error of one target in its own units."""
    outliers = int(journal.ordinary().left_out.sum())
    if not outliers:
        return ""
    count = journal.recent_outliers()
    among = f", {count:,} of them among these samples" if 0 < count < outliers else ""
    of_stream = " of the stream" if count < outliers else ""
    left_out = f" ({counted(outliers, 'surprise')}{of_stream} left out{among})"
    if not count or journal.outputs > 1:
        return left_out
    root, with_them = (
        number(part.rmse[0, 0]) for part in (journal.recent_ordinary(), journal.recent())
    )
    theirs, them = ("surprise", "it") if count == 1 else (f"{count:,} surprises", "them")
    return (
        f"{left_out}. The root mean squared error of these {predicted(journal.recent())} is {root} "
        f"without their {theirs} and {with_them} with {them}"
    )


def of_error(segments: Segments, recent: Segments) -> str:
    """Describe the error over time."""
    unit = "of the variance of the targets" if segments.relative else "in squared units"
    outliers = int(segments.left_out.sum())
    without = f" Errors and log losses are without {counted(outliers, 'surprise')}."
    ending = without if outliers else ""
    if segments.samples < 2 * recent.samples:
        return f"The mean squared error was {_error(recent)} {unit}.{ending}"
    first = segments.first(recent.samples)
    return (
        f"The mean squared error went from {_error(first)} {unit} over the first "
        f"{counted(first.samples, 'sample')} to {_error(recent)} over the last "
        f"{predicted(recent)}.{ending}"
    )


def of_calibration(recent: Segments) -> str:
    """Describe how many targets are in the bands."""
    half, most = (percent(recent.coverage(level)[0]) for level in (0.5, 0.95))
    return f"Of the last {predicted(recent)}, {half} lie in the 50 % band, {most} in the 95 % band."


def of_cost(journal: Journal, cap: int | None = None, budget: Budget | None = None) -> str:
    """Describe the growth of the model, the cost of compression and the time per sample."""
    segments, recent = journal.segments(), journal.recent()
    allowed = None if budget is None else budget(journal.after + journal.seen)
    cost = _compression(segments, recent, allowed)
    pace = f"A sample took {number(1e6 * recent.mean('seconds')[0])} µs to learn lately."
    return f"{_growth(journal, cap)} {cost} {pace}"


def _growth(journal: Journal, cap: int | None) -> str:
    segments, recent = journal.segments(), journal.recent()
    sizes = segments.mean("size")
    before, now = float(sizes[(len(sizes) - 1) // 2]), float(recent.mean("size")[0])
    if before == 0:
        return "The model has just begun."
    if cap is not None and now >= FULL * cap:
        reached = places(journal, max(int(full_since(segments, cap)), journal.after + 1))
        return f"The model order is at its cap of {cap:,}, since about {reached}."
    if now > GROWTH * before:
        return f"The model order is still growing: {number(now / before)} times that of half time."
    least, most = float(sizes[len(sizes) // 2 :].min()), float(sizes[len(sizes) // 2 :].max())
    if most > GROWTH * least:
        return (
            f"The model order was between {least:,.0f} and {most:,.0f} in the second half of the "
            f"stream, and {now:,.0f} on average over the last tenth."
        )
    return "The model order has settled below its cap." if cap else "The model order has settled."


def full_since(segments: Segments, cap: int) -> float:
    """Return the sample since when the model has been at its cap."""
    sizes = segments.mean("size")
    below = np.flatnonzero(sizes < FULL * cap)  # the last time: a model may shrink in between
    return float(segments.ends[min(below[-1] + 1, len(sizes) - 1) if len(below) else 0])


def _compression(segments: Segments, recent: Segments, allowed: float | None) -> str:
    removed, spent = int(segments.total("removed")), segments.total("spent")
    if removed == 0:
        return "No point was removed."
    text = (
        f"{counted(removed, 'point')} were removed; the Hellinger distances that this cost add up "
        f"to {number(spent)}, {number(spent / segments.samples)} per sample."
    )
    late = float(recent.mean("spent")[0])
    if allowed and late > allowed:
        text += f" The cap made each step cost {number(late / allowed, 2)} times the budget lately."
    return text


def of_slices(drawn: int, summary: Summary) -> str:
    """Explain the slices, and say how many inputs are not shown."""
    rest = len(summary.variables) - drawn
    more = f" {counted(rest, 'input')} less relevant than these had no room." if rest else ""
    categories = any(each.codes for each in summary.all_variables)
    fixed = "medians, categories at the most frequent one" if categories else "medians"
    return (
        f"One input varies, the others stay at their {fixed}. The most relevant input, by its "
        f"spread in length-scales, comes first.{more}"
    )


def of_points(summary: Summary) -> str:
    """Describe the number of points and their positions in the stream."""
    indices, seen = summary.model.indices, summary.model.seen
    late = int((indices >= seen / 2).sum())
    return (
        f"{counted(len(indices), 'point')} of {counted(seen, 'sample')}, "
        f"{late:,} of them from the second half of the stream."
    )


def of_decisions(heaviest: str, weight: float, decisions: int) -> str:
    """Describe the member with the most weight and the number of decisions."""
    return (
        f"The member with the most weight in the next prediction is {heaviest}, with "
        f"{percent(weight)}. {counted(decisions, 'decision')} so far."
    )


def decision(why: str, names: list[str]) -> str:
    """Return why something was decided, with the names of inputs for their numbers.

    >>> decision("columns 0, 2 outside the known range", ["a", "b", "c"])
    'a and c outside the known range'
    """
    found = re.match(r"columns (\d+(?:, \d+)*) ", why)
    if found is None:
        return why
    inputs = dict.fromkeys(names[int(number)] for number in found.group(1).split(", "))
    return f"{listed(list(inputs))} {why[found.end() :]}"


def listed(names: list[str], most: int = 4) -> str:
    """Return names as in a sentence, or the first of very many.

    >>> listed(["a"]), listed(["a", "b", "c"]), listed([*"abcdefg"])
    ('a', 'a, b and c', 'a, b, c and 4 more')
    """
    if len(names) > most:
        names = [*names[: most - 1], f"{len(names) - most + 1} more"]
    *most_of_them, last = names
    return f"{', '.join(most_of_them)} and {last}" if most_of_them else last


def places(journal: Journal, *samples: int) -> str:
    """Return samples as rows of the table if these are known.

    >>> places(Journal(), 1207), places(Journal(), 3, 5)
    ('sample 1,207', 'samples 3 and 5')
    """
    rows = [row for sample in samples if (row := journal.row(sample)) is not None]
    unit, numbers = ("row", rows) if len(rows) == len(samples) else ("sample", list(samples))
    return f"{unit}{'s' * (len(numbers) > 1)} {listed([f'{each:,}' for each in numbers])}"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun.

    >>> counted(1, "sample"), counted(12000, "sample")
    ('1 sample', '12,000 samples')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def inputs(columns: int, count: int) -> str:
    """Return the number of inputs, and of the columns that they come from if it differs.

    >>> inputs(2, 2), inputs(5, 14)
    ('2 inputs', '5 columns (14 inputs)')
    """
    found = counted(count, "input")
    return found if columns == count else f"{counted(columns, 'column')} ({found})"


def percent(share: float) -> str:
    """Return a share in per cent.

    >>> percent(0.9414), percent(1.0)
    ('94.1 %', '100.0 %')
    """
    return f"{100 * share:.1f} %"


def human_bytes(nbytes: int) -> str:
    """Return bytes in human units.

    >>> human_bytes(512), human_bytes(2048), human_bytes(17_000_000)
    ('512 B', '2.0 KiB', '16.2 MiB')
    """
    if nbytes < 1024:
        return f"{nbytes} B"
    value, units = nbytes / 1024, ["KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value, units = value / 1024, units[1:]
    return f"{value:.1f} {units[0]}"


def predicted(segment: Segments) -> str:
    """Return the number of samples that were predicted."""
    return counted(int(segment.predicted[0]), "sample")


def _error(segments: Segments, at: int = 0) -> str:
    value = float(segments.error[at])
    return f"{number(100 * value)} %" if segments.relative else number(value)
