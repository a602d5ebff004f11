"""Rows that cannot be used: listed, counted, or the end of it all."""

from collections.abc import Sequence

from pogp.cli.progress import Console
from pogp.cli.tables import Batch, Refusal, Table
from pogp.cli.tables.table import NotNumbersError

LISTED = 10
"""Rows that are told of one by one; the others are counted."""
HOPELESS = 100
"""So many rows without a single one that can be used are no accident."""


class BadRowError(ValueError):
    """A row that cannot be used, where each has to be."""


class Tally:
    """What became of the rows of a table that cannot be used, and whether that matters."""

    def __init__(
        self, table: Table, console: Console, fatal: bool, instead: str, used: int = 0
    ) -> None:
        self._table = table
        self._console = console
        self.fatal = fatal
        self._instead = instead  # what is done about such a row
        self._first: Refusal | None = None
        self._always = set(table.names)  # columns at fault in each of the rows so far
        self._untold: list[str] = []  # until a row can be used: if none can, one message will do
        self.refused = 0
        self.remarked = 0
        self.used = used

    def sound(self, batch: Batch) -> Batch:
        """Return the rows to go on with: where a refusal is fatal, those before it."""
        return batch.before_refusal() if self.fatal else batch

    def take(self, batch: Batch) -> None:
        """Tell of the refusals in a batch; BadRowError at the first if that is fatal."""
        for refusal in batch.refusals:
            if self.fatal:
                raise BadRowError(self._place(refusal))
            if self.refused < LISTED:
                self._untold.append(f"{self._place(refusal)}; {self._instead}")
            elif self.refused == LISTED:
                self._untold.append("more such rows are counted, not listed")
            self.refused += 1
            self._first = self._first or refusal
            self._always &= set(refusal.columns)
        self.used += batch.count
        while self.used and self._untold:
            self._console.note(f"pogp: {self._untold.pop(0)}")

    def remark(self, odd: Sequence[Refusal]) -> None:
        """Tell of cells that were ignored in rows that were used."""
        for refusal in odd:
            if self.remarked < LISTED:
                self._console.note(f"pogp: {self._place(refusal)}; taken as missing")
            elif self.remarked == LISTED:
                self._console.note("pogp: more such cells are not listed")
            self.remarked += 1

    def _place(self, refusal: Refusal) -> str:
        return f"{self._table.name}, {self._table.unit} {refusal.line}: {refusal.reason}"

    def require_use(self, at_the_end: bool = False) -> None:
        """Raise ValueError if no row can be used, which may show early."""
        if self.used or (self.refused < HOPELESS and not at_the_end):
            return
        if self._first is None:
            raise ValueError(f"there are no rows in {self._table.name}")
        if self._always:
            columns = [name for name in self._table.names if name in self._always]
            place = f"{self._table.unit} {self._first.line}: {self._first.reason}"
            raise NotNumbersError(self._table.name, columns, place)
        raise ValueError(f"no row can be used; {self._place(self._first)}")
