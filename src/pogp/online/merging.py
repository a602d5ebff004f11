"""Merging streams, as if they had followed one another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pogp.online.group import Group
from pogp.online.previous_leader import PreviousLeader
from pogp.online.relation import RelationWatch
from pogp.online.scales import Scales
from pogp.online.stream import Stream
from pogp.posteriors.absorbed.information import Information
from pogp.slices import finished


def merge(stream: Stream, others: list[Stream]) -> None:
    """Add what other streams have learned, as if their samples came after those of this one.

    The leading groups are joined under the kernel and in the units of the longest stream. The
    result is tuned again with the next samples.
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
    ensemble, source, best = stream.ensemble, longest.ensemble, longest.leading
    score, occasion_scores = source.best_scores(), source.expected_occasion_scores
    stream.starts = longest.starts
    for name in ("scales", "mixture", "band"):
        setattr(ensemble, name, getattr(source, name))
    for name in ("linear", "trust", "judged", "scores", "occasion_scores"):
        setattr(ensemble.predictors, name, getattr(source.predictors, name))
    for other in others:
        stream.samples.join(other.samples)
        ensemble.predictors.join(other.ensemble.predictors)
        ensemble.jumps.join(other.ensemble.jumps)
    ensemble.set_groups([])
    stream.previous, stream.relation = PreviousLeader(ensemble.outputs), RelationWatch()
    if best is not None:
        groups, positions = zip(*learned, strict=True)
        shape = (ensemble.outputs, stream.max_size, (1.0, best.forgetting[-1]))
        joined = Group(best.hyperparameters, best.scales, *shape, best.criterion.marginalise)
        finished(joined.transfer(best, _joined(groups, positions, best.scales)))
        joined.scores[...] = score[:, None]
        joined.occasion_scores[...] = occasion_scores
        joined.tuned_at = best.tuned_at
        ensemble.set_groups([joined])
    ensemble.race_end, stream.extra_tuning = -1, stream.seen
    stream.note("merged", f"with {len(others)} other models, {stream.seen} samples in all")


def _joined(groups: Sequence[Group], starts: Sequence[int], scales: Scales) -> Information:
    """Return the information of the data of all groups, whose streams begin at `starts`."""
    information, *others = (finished(group.information(scales)) for group in groups)
    information = replace(information, arrivals=information.arrivals + starts[0])
    for other, start in zip(others, starts[1:], strict=True):
        information = information.joined(other, start)
    return information
