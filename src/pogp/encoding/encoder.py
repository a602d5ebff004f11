"""From rows of raw cells to inputs of a model: columns, and an imputer for missing values."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pogp.arrays import LARGEST, Array
from pogp.encoding.columns import (
    CONVERT,
    KINDS,
    CategoryColumn,
    Cells,
    Column,
    NumberColumn,
    TimeColumn,
    TooManyCategoriesError,
    column_for,
    require_times,
)
from pogp.encoding.imputer import Filled, Imputer


class Encoder:
    """Named columns of numbers, times and categories as inputs (n, d) of a model.

    The number of inputs never changes. A text in a column of numbers is a missing value, of which a
    warning tells. `encode` is what a prediction needs and changes nothing;
    `learn` also takes in new categories, the first time, and the statistics of the imputer.

    >>> from pogp.encoding import Encoder
    >>> encoder = Encoder.of(["load", "room"], [[1.0, 2.0], ["a", "b"]])
    >>> encoder.kinds
    ['number', 'category']
    >>> filled = encoder.learn([[1.0, 2.0, None], ["a", "b", "b"]])
    >>> filled[2].missing.tolist(), bool(1.0 < filled[2].row[0] < 2.5)
    ([0], True)
    """

    def __init__(
        self,
        names: Sequence[Hashable],
        columns: Sequence[Column],
        imputer: Imputer | None = None,
    ) -> None:
        self.names = list(names)
        self.columns = list(columns)
        self.imputer = imputer or Imputer(sum(column.width for column in columns))

    @classmethod
    def of(
        cls,
        names: Sequence[Hashable],
        cells: Sequence[Cells],
        times: Iterable[Hashable] = (),
        numbers_in_text: bool = False,
    ) -> Self:
        """Return an encoder for columns of cells; `times` has the names of columns of times."""
        chosen = set(times)
        columns: list[Column] = []
        for name, some in zip(names, cells, strict=True):
            with _Named(name):
                if name in chosen:
                    require_times(some)
                    columns.append(TimeColumn())
                else:
                    columns.append(column_for(some, numbers_in_text))
        return cls(names, columns)

    @classmethod
    def numbers(cls, names: Sequence[Hashable]) -> Self:
        """Return the encoder of columns of numbers."""
        return cls(names, [NumberColumn() for _ in names])

    @property
    def dimension(self) -> int:
        """The number of inputs."""
        return self.imputer.dimension

    @property
    def kinds(self) -> list[str]:
        """The kind of each column."""
        return [column.kind for column in self.columns]

    @property
    def labels(self) -> list[str]:
        """The names of the inputs."""
        pairs = zip(self.columns, self.names, strict=True)
        return [label for column, name in pairs for label in column.labels(str(name))]

    @property
    def origins(self) -> list[str]:
        """The name of the column that each input comes from."""
        pairs = zip(self.columns, self.names, strict=True)
        return [str(name) for column, name in pairs for _ in range(column.width)]

    @property
    def empty(self) -> list[str]:
        """The names of the columns without any value so far."""
        known = dict(zip(self.origins, self.imputer.known.tolist(), strict=True))
        return [name for name, has_values in known.items() if not has_values]

    def encode(self, cells: Sequence[Cells]) -> Array:
        """Return the inputs (n, d) of cells given by columns, NaN where one is missing."""
        return self._encoded(self.columns, cells)

    def _encoded(self, columns: Sequence[Column], cells: Sequence[Cells]) -> Array:
        if len(cells) != len(columns):
            raise ValueError(f"there must be {len(columns)} columns, got {len(cells)}")
        plain = _plain_row(cells)
        if plain is not None and all(column.kind == "number" for column in columns):
            return plain
        parts = []
        for name, column, some in zip(self.names, columns, cells, strict=True):
            with _Named(name):
                parts.append(column.encode(some))
            if isinstance(column, NumberColumn):
                _warn_of_texts(name, column, some)
        return np.column_stack(parts)

    def decide(self, cells: Sequence[Cells]) -> None:
        """Determine the kind of undecided columns by their first values."""
        self.columns = self._admit(cells, decided=False)

    def prime(self, cells: Sequence[Cells]) -> None:
        """Take first values from the rows that will be learned next: no column begins without."""
        self.columns, rows = self._admitted(cells)
        self.imputer.prime(rows)

    def _admitted(self, cells: Sequence[Cells]) -> tuple[list[Column], Array]:
        """Return the columns after learning cells, and the inputs."""
        columns = self._admit(cells)
        return columns, self._encoded(columns, cells)

    def _admit(self, cells: Sequence[Cells], decided: bool = True) -> list[Column]:
        """Return the columns after learning cells; those `decided` may stay as they are."""
        columns: list[Column] = []
        for name, column, some in zip(self.names, self.columns, cells, strict=True):
            with _Named(name):
                learns = decided or column.kind == "undecided"
                columns.append(column.admit(some) if learns else column)
            if columns[-1] is not column:
                _warn_of_numbers(name, column, columns[-1])
        return columns

    def fill(self, cells: Sequence[Cells], resting: bool = False) -> list[Filled]:
        """Return rows to predict, imputed by earlier rows and by their own values.

        If the stream is `resting`, they do not follow the row learned last.
        """
        return [self.imputer.fill(row, resting) for row in self.encode(cells)]

    def learn(self, cells: Sequence[Cells]) -> list[Filled]:
        """Return rows, each imputed by the rows before it, and learn them."""
        self.columns, rows = self._admitted(cells)
        filled = []
        for row in rows:
            filled.append(self.imputer.fill(row))
            self.imputer.learn(filled[-1])
        return filled

    def learn_row(self, cells: Sequence[Cells], filled: Filled) -> Filled:
        """Learn one row, filled before; return it, filled anew if it has a new category."""
        columns = self._admit(cells)
        if columns != self.columns:
            return self.learn(cells)[0]
        self.imputer.learn(filled)
        return filled

    def copy(self) -> Self:
        """Return an independent copy."""
        return type(self)(self.names, self.columns, self.imputer.copy())

    def state(self) -> dict[str, Any]:
        """Return the state, as JSON can hold it."""
        columns = [{"kind": column.kind, **column.state()} for column in self.columns]
        return {"names": self.names, "columns": columns, "imputer": self.imputer.state()}

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Self:
        """Return the encoder that `state` described."""
        columns = []
        for described in state["columns"]:
            options = {name: value for name, value in described.items() if name != "kind"}
            columns.append(KINDS[described["kind"]](**options))
        encoder = cls(state["names"], columns, Imputer.restored(state["imputer"]))
        for column in columns:
            if column.width not in (1, getattr(column, "full", 1)):
                raise ValueError(f"a column of {column.kind} cannot have {column.width} inputs")
        if encoder.dimension != sum(column.width for column in columns):
            raise ValueError(f"an encoder of {encoder.dimension} inputs has other columns")
        return encoder


def inputs_of(filled: Sequence[Filled], dimension: int) -> Array:
    """Return rows without gaps as one array (n, d)."""
    return np.array([each.row for each in filled]).reshape(len(filled), dimension)


def gaps_of(filled: Sequence[Filled]) -> NDArray[np.bool_]:
    """Return which rows had a missing value, in columns that have had one."""
    return np.array([each.gap for each in filled], dtype=bool)


def missing_of(filled: Sequence[Filled], dimension: int) -> NDArray[np.bool_]:
    """Return which values were missing (n, d) in the rows with a gap."""
    missing = np.zeros((len(filled), dimension), dtype=bool)
    for i, each in enumerate(filled):
        if each.gap:
            missing[i, each.missing] = True
    return missing


def _plain_row(cells: Sequence[Cells]) -> Array | None:
    """Return one row (1, p) of plain numbers, the common case of a stream; otherwise None."""
    numbers = [some[0] for some in cells if len(some) == 1 and type(some[0]) is float]
    if len(numbers) < len(cells):
        return None
    row = np.array([numbers])
    return row if (np.abs(row) < LARGEST).all() else None


def _warn_of_texts(name: Hashable, column: NumberColumn, cells: Cells) -> None:
    for i in column.strangers(cells)[:1]:
        text = f"column {name!r}: {cells[i]!r} among its numbers counts as a missing value"
        warnings.warn(text, stacklevel=2)


def _warn_of_numbers(name: Hashable, before: Column, after: Column) -> None:
    """Warn once of texts of numbers that are taken for categories."""
    was, text = (
        each.suspect() if isinstance(each, CategoryColumn) else "" for each in (before, after)
    )
    if text and not was:
        warnings.warn(
            f"column {name!r}: texts of numbers, such as {text!r}, are learned as categories; if "
            f"they are quantities, {CONVERT}",
            stacklevel=2,
        )


def warn_of_strangers(encoder: Encoder, cells: Sequence[Cells]) -> None:
    """Warn of categories that were never learned, and count as missing values, in each column."""
    for name, column, some in zip(encoder.names, encoder.columns, cells, strict=True):
        places = column.strangers(some) if isinstance(column, CategoryColumn) else []
        if places:
            rows = f"{len(places)} row{'' if len(places) == 1 else 's'}"
            warnings.warn(
                f"column {name!r}: {rows} with categories that were never learned, such as "
                f"{some[places[0]]!r}, count as missing values",
                stacklevel=4,
            )


class _Named:
    """Puts the name of a column before the message of an error."""

    def __init__(self, name: Hashable) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: object) -> None:
        if kind is not None and issubclass(kind, ValueError | TypeError):
            found = kind(f"column {self._name!r}: {error}")
            if isinstance(found, TooManyCategoriesError):
                found.column, found.texts = self._name, getattr(error, "texts", ())
            raise found from None


def columns_of(rows: Sequence[Sequence[object]], count: int) -> list[list[object]]:
    """Return rows of cells as columns."""
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[]] * count
