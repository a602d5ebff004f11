"""What a journal and a model say, in words. Every word is chosen by a number."""

import math

from pogp.report.axes import number
from pogp.report.stretches import Stretches
from pogp.report.subject import Subject
from pogp.report.table import memory

CLEAR = 2.0
"""Standard errors beyond which a share is not put down to chance."""
TOLERATED = 0.01
"""A coverage that is off by no more is called right however surely it is off."""
RISE, ENOUGH = 1.5, 50
"""An error so many times its least, over so many samples, is called risen."""
GROWTH = 1.05
"""A model order so many times that of half time is called growing."""


def headline(subject: Subject) -> str:
    """Say what was learned, what is kept, and how well it predicts by now."""
    journal, model = subject.journal, subject.model
    learned = (
        f"Learned {counted(journal.seen, 'sample')} of {listed(subject.targets)} from "
        f"{counted(journal.dimension, 'input')}."
    )
    if subject.facts.warming_up:
        return (
            f"{learned} Still collecting samples to tune itself by: until then it predicts the "
            "mean and the variance of those so far."
        )
    learned += f" Keeps {counted(model.size, 'point')} ({memory(model.nbytes)})."
    recent = journal.recent()
    if recent.predicted[0] == 0:
        return learned
    return (
        f"{learned} Of the last {_predicted(recent)}, each predicted before it was learned, "
        f"{percent(recent.coverage(0.95)[0])} fell within their 95 % band; their mean "
        f"squared error is {_error(recent)}{' of the variance' * recent.relative}."
    )


def of_error(stretches: Stretches, recent: Stretches) -> str:
    """Say how the error went, and whether it has risen since it was least."""
    unit = "of the variance of the targets" if stretches.relative else "in squared units"
    if stretches.samples < 2 * recent.samples:
        return f"The mean squared error was {_error(recent)} {unit}."
    first = stretches.first(recent.samples)
    text = (
        f"The mean squared error went from {_error(first)} {unit} over the first "
        f"{_predicted(first)} to {_error(recent)} over the last {_predicted(recent)}."
    )
    tenths = stretches.at_most(10)
    best = int(tenths.error.argmin())
    if recent.error[0] > RISE * tenths.error[best] and tenths.counts[best] >= ENOUGH:
        text += (
            f" Around sample {number(tenths.ends[best], 2)} it was down to {_error(tenths, best)}: "
            "the stream may have changed since."
        )
    return text


def of_calibration(recent: Stretches) -> str:
    """Say whether the 95 % band holds what it should."""
    share, targets = float(recent.coverage(0.95)[0]), int(recent.cells.sum())
    margin = max(CLEAR * math.sqrt(0.95 * 0.05 / targets), TOLERATED)
    if share < 0.95 - margin:
        verdict = "fewer than it should: the bands are too narrow"
    elif share > 0.95 + margin:
        verdict = "more than it should: the bands are wider than they need be"
    else:
        verdict = "as it should, as far as so many can tell"
    return f"Of the last {_predicted(recent)}, the 95 % band held {percent(share)}, {verdict}."


def of_cost(stretches: Stretches, recent: Stretches) -> str:
    """Say whether the model still grows, what compression cost, and how long a sample takes."""
    return f"{_growth(stretches, recent)} {_compression(stretches)} {_pace(recent)}"


def _growth(stretches: Stretches, recent: Stretches) -> str:
    sizes = stretches.mean("size")
    before, now = float(sizes[(len(sizes) - 1) // 2]), float(recent.mean("size")[0])
    if before == 0:
        return "The model has just begun."
    if now > GROWTH * before:
        return f"The model order is still growing: {number(now / before)} times that of half time."
    return "The model order has settled."


def _compression(stretches: Stretches) -> str:
    removed, spent = int(stretches.total("removed")), stretches.total("spent")
    if removed == 0:
        return "No point went."
    return (
        f"{counted(removed, 'point')} went; the Hellinger distances that this cost add up to "
        f"{number(spent)}, {number(spent / stretches.samples)} per sample."
    )


def _pace(recent: Stretches) -> str:
    return f"A sample took {number(1e6 * recent.mean('seconds')[0])} µs to learn of late."


def of_slices(drawn: int, varied: int) -> str:
    """Say what slices are, and how many inputs have none."""
    rest = varied - drawn
    more = f" {counted(rest, 'input')} less relevant than these had no room." if rest else ""
    return (
        "One input varies, the others stay at their medians. The most relevant input, by its "
        f"spread in length-scales, comes first.{more}"
    )


def of_points(subject: Subject) -> str:
    """Say how many points there are, and from which end of the stream."""
    indices, seen = subject.model.indices, subject.model.seen
    late = int((indices >= seen / 2).sum())
    return (
        f"{counted(len(indices), 'point')} of {counted(seen, 'sample')}, "
        f"{late:,} of them from the second half of the stream."
    )


def of_decisions(heaviest: str, weight: float, decisions: int) -> str:
    """Say what carries the next prediction, and how much was decided on the way."""
    return (
        f"Of all members, {heaviest} carries the most weight in the next prediction: "
        f"{percent(weight)}. {counted(decisions, 'decision')} so far."
    )


def listed(names: list[str], most: int = 4) -> str:
    """Return names as in a sentence, or the first of very many.

    >>> listed(["a"]), listed(["a", "b", "c"]), listed([*"abcdefg"])
    ('a', 'a, b and c', 'a, b, c and 4 more')
    """
    if len(names) > most:
        names = [*names[: most - 1], f"{len(names) - most + 1} more"]
    *most_of_them, last = names
    return f"{', '.join(most_of_them)} and {last}" if most_of_them else last


def counted(count: int, noun: str) -> str:
    """Return a count with its noun.

    >>> counted(1, "sample"), counted(12000, "sample")
    ('1 sample', '12,000 samples')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def percent(share: float) -> str:
    """Return a share in per cent.

    >>> percent(0.9414), percent(1.0)
    ('94.1 %', '100.0 %')
    """
    return f"{100 * share:.1f} %"


def _predicted(stretch: Stretches) -> str:
    return counted(int(stretch.predicted[0]), "sample")


def _error(stretches: Stretches, at: int = 0) -> str:
    value = float(stretches.error[at])
    return f"{number(100 * value)} %" if stretches.relative else number(value)
