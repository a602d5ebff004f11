"""Batches as they were read, cut anew where the number of samples learned says so."""

from collections.abc import Iterable, Iterator

from pogp.cli.tables.batch import Batch

MOST = 8
"""Rows of a chunk at most, in steps: few rows may be usable, and memory is bounded."""


def chunks(batches: Iterable[Batch], step: int, seen: int, eager: bool) -> Iterator[Batch]:
    """Cut batches where the number of usable rows, `seen` before included, is a multiple of `step`.

    Where a run begins, and in what pieces rows were read, then makes no difference. An `eager` one
    does not wait for a chunk to be full. Empty batches pass, for whoever waits.
    """
    pending = None
    for batch in batches:
        if len(batch):
            pending = batch if pending is None else Batch.joined([pending, batch])
        elif pending is None or not eager:
            yield batch
        while pending is not None:
            room = step - seen % step
            rows = pending.reach(room) if pending.count >= room else len(pending) + (not eager)
            rows = min(rows, MOST * step)
            if rows > len(pending):
                break
            chunk, rest = pending.split(rows)
            seen += chunk.count
            pending = rest if len(rest) else None
            yield chunk
    if pending is not None:
        yield pending
