"""What every source of rows can do, and what the user may say about its layout."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from pogp.cli.tables.batch import Batch, Position


@dataclass(frozen=True)
class Layout:
    """How a text is read: what lies between two cells, and whether the first row is names."""

    delimiter: str | None = None  # None: to be found out
    header: bool = True


class Table(ABC):
    """Named columns, and rows to be read once, in order, beginning anywhere."""

    name: str
    """What messages call it."""
    names: list[str]
    """Of all columns."""
    unit: str
    """What `Position.line` counts."""
    size: int | None
    """Of the whole, as `Batch.through` counts; None if nobody knows: it has not all come yet."""
    header: bool
    """Whether the first row of a text was taken for names."""
    delimiter: str
    """What lies between the cells of `Batch.texts`."""
    start: Position
    """Of the first row."""

    @abstractmethod
    def batches(
        self, columns: Sequence[int], start: Position, keep: Sequence[int] = ()
    ) -> Iterator[Batch]:
        """Read some columns as numbers, in this order, and `keep` some as text; once."""

    def share(self, position: Position, through: int = 0) -> float | None:
        """Return how much of the table is before a position, if anybody knows.

        `through` is how much of it had been read by then.
        """
        return None if self.size is None else min(position.offset / max(self.size, 1), 1.0)

    @abstractmethod
    def identity(self, end: Position) -> dict[str, Any]:
        """Return by what the table can be known again, once read as far as `end`."""

    @abstractmethod
    def require(self, identity: dict[str, Any], start: Position) -> None:
        """Raise ValueError if this is not the table of that identity, or ends before `start`."""

    @abstractmethod
    def heading(self, keep: Sequence[int]) -> bytes:
        """Return the names of columns as they would stand before `Batch.texts`."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
