"""The parts of a Spark dataframe: Arrow batches into numbers, and bytes added in a fixed tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, functions
from pyspark.sql.types import NumericType

from pogp.sums.columns import FAN, Reader, added, require_columns
from pogp.sums.drawing import Drawn
from pogp.sums.parts import Sums

SCHEMA = "part int, data binary"
DIRECT = 64
"""Parts that go to the driver at once; more are added on the executors first."""


def total(
    df: DataFrame,
    of_part: Callable[[Iterable[Any], Reader, int], bytes],
    kind: type[Sums] | type[Drawn],
) -> bytes:
    """Return the total of what `of_part` returns for each partition.

    It depends on the partitions alone, not on where or in which order they are computed.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        number = TaskContext.get().partitionId()  # type: ignore[union-attr]
        yield _rows([number], [of_part(batches, column, number)])

    def add(key: tuple[Any, ...], table: pa.Table) -> pa.Table:
        return pa.Table.from_batches([_rows([key[0].as_py()], [_added(table, kind)])])

    count = df.rdd.getNumPartitions()
    rows = df.mapInArrow(run, SCHEMA)  # type: ignore[arg-type]
    while count > DIRECT:
        group = functions.floor(functions.col("part") / FAN).cast("int")
        rows = rows.groupBy(group).applyInArrow(add, SCHEMA)  # type: ignore[arg-type]
        count = -(-count // FAN)
    return _added(rows.toArrow(), kind)


def require_numeric(df: DataFrame, name: str) -> None:
    """Raise ValueError unless there is a column of this name that holds numbers."""
    require_columns([name], df.columns)
    if not isinstance(df.schema[name].dataType, NumericType):
        raise ValueError(f"column {name!r} must hold numbers, got {df.schema[name].dataType}")


def _rows(parts: list[int], data: list[bytes]) -> pa.RecordBatch:
    arrays = [pa.array(parts, pa.int32()), pa.array(data, pa.binary())]
    return pa.RecordBatch.from_arrays(arrays, ["part", "data"])


def _added(table: pa.Table, kind: type[Sums] | type[Drawn]) -> bytes:
    if len(table) == 0:
        raise ValueError("the dataframe has no partitions")
    return added(table.sort_by("part")["data"].to_pylist(), kind)


def column(batch: pa.RecordBatch | pa.Table, name: str) -> Any:
    """Return a column as an array, NaN where nothing is; a list in each row gives a matrix."""
    values = batch[name]
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
        return _matrix(values, name)
    if pa.types.is_null(values.type):
        return np.full(len(values), np.nan)
    return values.to_numpy(zero_copy_only=False)


def _matrix(lists: Any, name: str) -> Any:
    """Return lists of one length as a matrix; a row without a list is not a number."""
    there = np.asarray(lists.is_valid())
    lengths = np.unique(np.diff(np.asarray(lists.offsets))[there])
    if len(lengths) > 1:
        raise ValueError(
            f"column {name!r} must have as many numbers in every row, "
            f"got {lengths[0]} and {lengths[-1]}"
        )
    width = int(lengths[0]) if len(lengths) else 0
    matrix = np.full((len(lists), width), np.nan)
    matrix[there] = lists.flatten().to_numpy(zero_copy_only=False).reshape(-1, width)
    return matrix
