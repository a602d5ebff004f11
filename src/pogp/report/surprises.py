"""Abrupt changes of a stream: targets far from their predictions that are not single outliers."""

from typing import NamedTuple

import numpy as np

from pogp.models.base import Model
from pogp.online.relation import RELATION_CHANGED
from pogp.report.journal import AFTER, Journal

RUN, CHANCE = 3, 0.01
"""The fewest outliers of a change, and the probability of such a run by chance that is too low."""
RETURNED, FUNCTION_CHANGED = "samples far off", "function changed"
"""In the history of `OnlineGP`: an earlier model fits again, and there is a new function."""
NOTICED, TESTED = 64, 1000
"""Samples within which `OnlineGP` notices that the function has changed: at once, and by a test."""


class AbruptChange(NamedTuple):
    """A change of the stream, from its first surprise to its last, by samples counted from 1."""

    first: int
    last: int
    size: int
    """The number of surprises."""
    of_relation: bool
    """Whether the model found that the function had changed."""


def abrupt_changes(journal: Journal, model: Model) -> list[AbruptChange]:
    """Return the changes among the latest surprises.

    Several surprises follow each other more closely than outliers would by chance, or two before
    `OnlineGP` found a change, or it found that an earlier model explains the one.
    """
    found, count = journal.outliers, float(journal.segments().outliers.sum())
    events = [each for each in getattr(model, "history", []) if each.position > journal.after]
    returned = {each.position for each in events if each.what == RETURNED}
    delays = {FUNCTION_CHANGED: NOTICED, RELATION_CHANGED: TESTED}
    changed = [(each.position, delays[each.what]) for each in events if each.what in delays]
    close, changes = AFTER * count / max(journal.seen, 1), []
    for run in np.split(found, np.flatnonzero(np.diff(found) > AFTER) + 1) if len(found) else ():
        first, last = int(run[0]), int(run[-1])
        of_relation = any(first <= position <= last + delay for position, delay in changed)
        by_chance = len(run) < RUN or count * close ** (len(run) - 1) > CHANCE
        by_chance = by_chance and not (of_relation and len(run) > 1)
        if not by_chance or returned & set(run.tolist()):
            changes.append(AbruptChange(first, last, len(run), of_relation))
    return changes
