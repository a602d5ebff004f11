"""Parquet, by pyarrow, which is needed for nothing else."""

import hashlib
import importlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pogp.arrays import LARGEST, Array
from pogp.cli.tables.batch import Batch, Position, Refusal, usable
from pogp.cli.tables.cells import complaint, joined
from pogp.cli.tables.columns import NotNumbersError
from pogp.cli.tables.table import Table

SIGNATURE = b"PAR1"
ROWS = 4096
"""Rows read at once."""
FOOTER = 1 << 16
"""Bytes at the end, where the contents are described, by which a file is known again."""


class Parquet(Table):
    """The rows of a file, group by group; a line is a row here, counted from 1."""

    unit = "row"
    header = True
    delimiter = ","
    start = Position(0, 1)

    def __init__(self, path: str) -> None:
        self.name = path
        self._pyarrow = _required("pyarrow")
        # Without the buffer, which would hold all columns of a group at once.
        parquet = _required("pyarrow.parquet")
        self._file = parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
        self._schema = self._file.schema_arrow
        self.names = list(self._schema.names)
        self.size = int(self._file.metadata.num_rows)

    def heading(self, keep: Sequence[int]) -> bytes:
        """Return the names of columns as they would stand before `Batch.texts`."""
        return joined([self.names[column] for column in keep], self.delimiter).encode()

    def identity(self, end: Position) -> dict[str, Any]:
        """Return by what the table can be known again."""
        with open(self.name, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(size - FOOTER, 0))
            return {"bytes": size, "sha256": hashlib.sha256(file.read()).hexdigest()}

    def require(self, identity: dict[str, Any], start: Position) -> None:
        """Raise ValueError if this is not the table of that identity."""
        if self.identity(start) != identity:
            raise ValueError(f"{self.name} is not the file that was learned before, or has changed")

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    # ---- rows --------------------------------------------------------------------------------

    def batches(
        self, columns: Sequence[int], start: Position, keep: Sequence[int] = ()
    ) -> Iterator[Batch]:
        """Read some columns as numbers, in this order, and `keep` some as text."""
        self._require_numbers(columns)
        wanted = [self.names[column] for column in dict.fromkeys([*columns, *keep])]
        row = 0
        for group in range(self._file.metadata.num_row_groups):
            rows = int(self._file.metadata.row_group(group).num_rows)
            if row + rows > start.offset:
                skip = max(start.offset - row, 0)
                yield from self._group(group, row, skip, wanted, columns, keep)
            row += rows

    def _group(
        self,
        group: int,
        row: int,
        skip: int,
        wanted: list[str],
        columns: Sequence[int],
        keep: Sequence[int],
    ) -> Iterator[Batch]:
        """Read one group, whose first row is number `row` from 0, and `skip` some of the first."""
        parts = self._file.iter_batches(ROWS, row_groups=[group], columns=wanted, use_threads=False)
        for part in parts:
            left_out = min(skip, part.num_rows)
            skip -= left_out
            if part.num_rows > left_out:
                yield self._batch(part.slice(left_out), row + left_out, columns, keep)
            row += part.num_rows

    def _batch(self, part: Any, row: int, columns: Sequence[int], keep: Sequence[int]) -> Batch:
        numbers = [self._numbers(part.column(self.names[column])) for column in columns]
        values = np.column_stack(numbers)
        lines = row + 1 + np.arange(len(values))
        good = usable(values)
        names = [self.names[column] for column in columns]
        return Batch(
            values=values,
            usable=good,
            lines=lines,
            ends=np.column_stack([lines, lines + 1]),
            refusals=[
                Refusal(int(lines[i]), *complaint(_faults(names, values[i])))
                for i in np.flatnonzero(~good)
            ],
            texts=self._texts(part, keep) if keep else [],
            through=int(lines[-1]),
        )

    def _numbers(self, column: Any) -> Array:
        return np.asarray(
            column.cast(self._pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False),
            np.float64,
        )

    def _texts(self, part: Any, keep: Sequence[int]) -> list[bytes]:
        cells = [part.column(self.names[column]).to_pylist() for column in keep]
        return [
            joined(["" if cell is None else str(cell) for cell in row], self.delimiter).encode()
            for row in zip(*cells, strict=True)
        ]

    def _require_numbers(self, columns: Sequence[int]) -> None:
        types = self._pyarrow.types
        tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
        others = {
            self.names[column]: str(self._schema.field(column).type)
            for column in columns
            if not any(test(self._schema.field(column).type) for test in tests)
        }
        if others:
            raise NotNumbersError(self.name, list(others), ", ".join(others.values()))


def _faults(names: Sequence[str], row: Array) -> dict[str, str]:
    """Return the columns that have no number that a model takes, and what they have."""
    return {
        name: "" if np.isnan(value) else repr(float(value))
        for name, value in zip(names, row, strict=True)
        if not abs(value) < LARGEST
    }


def _required(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError("Parquet needs pyarrow: pip install 'pogp[parquet]'") from error
