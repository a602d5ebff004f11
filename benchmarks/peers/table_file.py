"""A user's own table as a stream."""

from pathlib import Path

import numpy as np

from benchmarks.workloads import Stream
from pogp.cli.tables import Layout, open_table
from pogp.cli.tables.table import find, inputs

LEAST = 60
"""Rows below which a third of them says nothing."""


def read_table(path: str, target: str, samples: int) -> Stream:
    """Read a CSV or Parquet file: one column is the target, all others are inputs.

    Rows that cannot be used are left out.
    """
    with open_table(path, Layout()) as table:
        (at,) = find(table.names, [target], table.name)
        others = find(table.names, inputs(table.names, target, None, []), table.name)
        values = [np.empty((0, len(others) + 1))]
        for batch in table.batches([*others, at], table.start):
            values.append(batch.values[batch.usable])
            if sum(map(len, values)) >= samples:
                break
    rows = np.concatenate(values)[:samples]
    if len(rows) < LEAST:
        raise ValueError(
            f"{Path(path).name} must have {LEAST} usable rows or more, got {len(rows)}"
        )
    return Stream(rows[:, :-1], rows[:, -1])
