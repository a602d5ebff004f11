"""The table in a Parquet file, read by pyarrow."""

import hashlib
import importlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pogp.arrays import LARGEST, Array
from pogp.cli.tables.records import faults
from pogp.cli.tables.table import (
    Batch,
    Cell,
    Choice,
    NotNumbersError,
    Position,
    Refusal,
    Table,
    joined,
)

ROWS = 4096
"""Rows read at once."""
FOOTER = 1 << 16
"""Bytes at the end, which describe the content and identify the file."""


class Parquet(Table):
    """The rows of a file, read group by group."""

    unit = "row"
    header = True
    delimiter = ","
    start = Position(0, 1)

    def __init__(self, path: str) -> None:
        self.name = path
        self._pyarrow = _required("pyarrow")
        # The buffer would hold all columns of a group at once.
        parquet = _required("pyarrow.parquet")
        self._file = parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
        self._schema = self._file.schema_arrow
        self.names = list(self._schema.names)
        self.size = int(self._file.metadata.num_rows)

    def identity(self, end: Position) -> dict[str, Any]:
        """Return a digest of the end of the file."""
        with open(self.name, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(size - FOOTER, 0))
            return {"bytes": size, "sha256": hashlib.sha256(file.read()).hexdigest()}

    def require(self, identity: dict[str, Any], start: Position, growing: bool = False) -> None:
        """Raise ValueError if the file has another identity."""
        if self.identity(start) != identity:
            raise ValueError(f"{self.name} is not the file that was learned before, or has changed")

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    # ---- rows --------------------------------------------------------------------------------

    def batches(self, choice: Choice, start: Position) -> Iterator[Batch]:
        """Read the columns chosen, from a position on."""
        self._require_numbers(choice.required)
        row = 0
        for group in range(self._file.metadata.num_row_groups):
            rows = int(self._file.metadata.row_group(group).num_rows)
            skip = max(start.offset - row, 0)
            if skip < rows:
                for part in self._parts(group, skip, [*choice.columns, *choice.keep]):
                    yield self._batch(part, row + skip, choice)
                    skip += part.num_rows
            row += rows

    def peek(self, columns: Sequence[int]) -> list[Sequence[Cell]]:
        """Return some columns of the first rows."""
        for batch in self.batches(Choice(columns), self.start):
            return batch.cells
        return []

    def _parts(self, group: int, skip: int, columns: Sequence[int]) -> Iterator[Any]:
        """Read some columns of one group, without its first `skip` rows."""
        names = [self.names[column] for column in dict.fromkeys(columns)]
        parts = self._file.iter_batches(ROWS, row_groups=[group], columns=names, use_threads=False)
        for part in parts:
            left_out = min(skip, part.num_rows)
            skip -= left_out
            if part.num_rows > left_out:
                yield part.slice(left_out)

    def _batch(self, part: Any, row: int, choice: Choice) -> Batch:
        read = [part.column(self.names[column]) for column in choice.columns]
        values = np.column_stack([self._numbers(column) for column in read])
        places = [list(choice.columns).index(column) for column in choice.required]
        lines = row + 1 + np.arange(len(values))
        good = np.asarray(np.isfinite(values[:, places]).all(axis=1))
        return Batch(
            cells=list(zip(*(column.to_pylist() for column in read), strict=True)),
            values=values,
            usable=good,
            lines=lines,
            ends=np.column_stack([lines, lines + 1]),
            refusals=[
                Refusal(int(lines[i]), *faults(self.names, self._row(part, i), choice.required))
                for i in np.flatnonzero(~good).tolist()
            ],
            texts=self._texts(part, choice.keep) if choice.keep else [],
            through=int(lines[-1]),
        )

    def _row(self, part: Any, i: int) -> list[Cell]:
        """Return one row, with None in the columns that were not read."""
        return [
            part.column(name)[i].as_py() if name in part.schema.names else None
            for name in self.names
        ]

    def _is_number(self, kind: Any) -> bool:
        types = self._pyarrow.types
        tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
        return any(test(kind) for test in tests)

    def _numbers(self, column: Any) -> Array:
        if not self._is_number(column.type):
            return np.full(len(column), np.nan)
        numbers = column.cast(self._pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)
        return np.where(np.abs(numbers) < LARGEST, numbers, np.nan)

    def _texts(self, part: Any, keep: Sequence[int]) -> list[bytes]:
        cells = [part.column(self.names[column]).to_pylist() for column in keep]
        return [
            joined(["" if cell is None else str(cell) for cell in row], self.delimiter).encode()
            for row in zip(*cells, strict=True)
        ]

    def _require_numbers(self, columns: Sequence[int]) -> None:
        others = {
            self.names[column]: str(self._schema.field(column).type)
            for column in columns
            if not self._is_number(self._schema.field(column).type)
        }
        if others:
            raise NotNumbersError(self.name, list(others), ", ".join(others.values()))


def _required(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError("Parquet needs pyarrow: pip install 'pogp[parquet]'") from error
