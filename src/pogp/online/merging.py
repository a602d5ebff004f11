"""One stream from several, as if they had followed each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pogp.online.former import Former
from pogp.online.group import Group
from pogp.online.scales import Scales
from pogp.online.stream import Stream
from pogp.posteriors.absorbed.information import Information
from pogp.slices import finished


def merge(stream: Stream, others: list[Stream]) -> None:
    """Take over what others learned, as if their samples had come after these.

    The leading groups are joined, under the kernel and in the units of the longest stream, and
    tuned anew with the next samples.
    """
    streams = [stream, *others]
    for each in streams:
        each.settle()
    starts = np.cumsum([0, *(each.seen for each in streams)]).tolist()
    longest = max(streams, key=lambda each: each.seen)
    learned = [
        (each.leading, start)
        for each, start in zip(streams, starts[:-1], strict=True)
        if each.leading is not None
    ]
    best = longest.leading
    score, after = longest.best_scores()
    for name in ("scales", "mixture", "band", "scores", "after", "starts"):
        setattr(stream, name, getattr(longest, name))
    stream.experts.linear = longest.experts.linear
    for other in others:
        stream.rows.join(other.rows)
        stream.experts.join(other.experts)
    stream.arrange([])
    stream.former = Former(stream.outputs)  # which was of one of them
    if best is not None:
        groups, positions = zip(*learned, strict=True)
        shape = (stream.outputs, stream.max_size, (1.0, best.forgetting[-1]))
        joined = Group(best.found, best.scales, *shape, best.criterion.marginalise)
        finished(joined.carry(best, _joined(groups, positions, best.scales)))
        joined.scores[...], joined.after[...] = score[:, None], after[:, None]
        joined.born = best.born
        stream.arrange([joined])
    stream.race_end, stream.extra = -1, stream.seen
    stream.note("merged", f"with {len(others)} other models, {stream.seen} samples in all")


def _joined(groups: Sequence[Group], starts: Sequence[int], scales: Scales) -> Information:
    """Return what all groups were told, whose streams began at `starts`."""
    said, *more = (finished(group.told(scales)) for group in groups)
    said = replace(said, arrivals=said.arrivals + starts[0])
    for other, start in zip(more, starts[1:], strict=True):
        said = said.joined(other, start)
    return said
