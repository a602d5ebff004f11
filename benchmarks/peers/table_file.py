"""A user's own table as a stream of numbers, the same for all peers.

Numbers stay as they are, times become the elapsed days and the places in the day, the week and the
year, and texts become one input per category. A missing number is the mean of those before it, a
missing category is none of them.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.workloads import Stream
from pogp.arrays import LARGEST, Array
from pogp.cli.tables import Choice, Layout, open_table
from pogp.cli.tables.table import Cell, find, inputs
from pogp.encoding.columns import TooManyCategoriesError, column_for, is_missing, read_numbers
from pogp.report.prose import counted

LEAST = 60
"""Rows below which a third of them says nothing."""


def read_table(
    path: str, target: str, samples: int, note: Callable[[str], None] = lambda _: None
) -> Stream:
    """Read a CSV, JSON-lines or Parquet file: one column is the target, all others are inputs.

    `note` is called with what is left out: rows whose target is no number, columns of identifiers.
    """
    rows: list[Sequence[Cell]] = []
    targets: list[float] = []
    skipped = 0
    with open_table(path, Layout()) as table:
        (at,) = find(table.names, [target], table.name)
        names = inputs(table.names, target, None, [])
        columns = [*find(table.names, names, table.name), at]
        for batch in table.batches(Choice(columns, required=[at]), table.start):
            rows += [row for row, usable in zip(batch.cells, batch.usable, strict=True) if usable]
            targets += batch.values[batch.usable, -1].tolist()
            skipped += len(batch.refusals)
            if len(rows) >= samples:
                break
    if len(rows) < LEAST:
        raise ValueError(
            f"{Path(path).name} must have {LEAST} usable rows or more, got {len(rows)}"
        )
    if skipped:
        note(f"Left out: {counted(skipped, 'row')} without a number in {target!r}.")
    cells = zip(*rows[:samples], strict=True)
    parts = [_inputs(name, list(column), note) for name, column in zip(names, cells, strict=False)]
    if not sum(part.shape[1] for part in parts):
        raise ValueError(f"no column of {Path(path).name} is left to predict {target!r} from")
    return Stream(np.hstack(parts), np.array(targets[:samples]))


def _inputs(name: str, cells: list[Cell], note: Callable[[str], None]) -> Array:
    """Return the inputs (n, k) that a column becomes; k is 0 if it is left out."""
    column = column_for(cells, numbers_in_text=True)
    if column.kind in ("number", "undecided"):  # the latter has no value at all
        numbers = read_numbers(cells)
        return _filled(np.where(np.abs(numbers) < LARGEST, numbers, np.nan)[:, None])
    if column.kind == "time":
        return _filled(column.encode(cells))
    try:
        column.admit(cells)
    except TooManyCategoriesError as error:
        note(f"Left out: the column {name!r}; {error}.")
        return np.empty((len(cells), 0))
    texts = [None if is_missing(cell) else str(cell).strip() for cell in cells]
    kinds = dict.fromkeys(text for text in texts if text is not None)
    return np.array([[float(text == kind) for kind in kinds] for text in texts])


def _filled(inputs: Array) -> Array:
    """Return inputs whose gaps hold the mean of the values before them, 0 if there is none."""
    known = ~np.isnan(inputs)
    counts = np.cumsum(known, axis=0)
    means = np.cumsum(np.where(known, inputs, 0.0), axis=0) / np.maximum(counts, 1)
    return np.asarray(np.where(known, inputs, means))
