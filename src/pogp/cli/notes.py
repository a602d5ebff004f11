"""What `pogp learn` saves with a model: its table, its columns and its position."""

from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, Self

import pogp
from pogp.alarms import Alarm
from pogp.cli.score import Score
from pogp.cli.tables import Layout, Position, Table
from pogp.encoding import Encoder
from pogp.errors import FormatError
from pogp.files import persistence
from pogp.report.journal import Journal

MADE_BY = "pogp learn"


@dataclass(frozen=True)
class Notes:
    """The notes of a checkpoint."""

    version: str
    target: str
    columns: list[str]
    source: str
    delimiter: str
    header: bool
    unit: str  # in which the table counts its rows
    identity: dict[str, Any]  # by which it is known again
    position: Position  # in the table, of what comes next
    used: int  # rows of the table that were learned
    skipped: int
    journal: dict[str, Any]
    filled: int = 0  # rows that had missing values
    encoder: dict[str, Any] | None = None  # None in older files: all columns are numbers
    command: tuple[str, ...] = ()  # that began to learn the table
    alarm: dict[str, Any] | None = None
    score: Score | None = None  # of two passes, whose journal is empty
    out: str | None = None  # the file of --out, with its folders
    out_format: str | None = None
    out_size: int | None = None  # bytes of it that belong to the rows learned
    alarms: tuple[int, int] | None = None  # how many, and the rows before they were counted

    @classmethod
    def of(cls, table: Table, position: Position, **learned: Any) -> Self:
        """Return the notes of a model that comes next to this position of a table."""
        return cls(
            version=pogp.__version__,
            source=table.name,
            delimiter=table.delimiter,
            header=table.header,
            unit=table.unit,
            identity=table.identity(position),
            position=position,
            **learned,
        )

    @property
    def layout(self) -> Layout:
        """How the table was read."""
        return Layout(self.delimiter, self.header)

    @property
    def rows(self) -> int:
        """The rows of the table before the position."""
        return self.used + self.skipped

    def encoding(self) -> Encoder:
        """Return how the columns become inputs of the model."""
        if self.encoder is None:
            return Encoder.numbers(self.columns)
        return Encoder.restored(self.encoder)

    def as_json(self) -> dict[str, Any]:
        """Return them as a file can hold them."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"made_by": MADE_BY, **named}

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Return the notes in a file, None for a model that something else has saved."""
        found = persistence.notes(path)
        if found.get("made_by") != MADE_BY:
            return None
        try:
            names = [
                each.name for each in fields(cls) if each.default is MISSING or each.name in found
            ]
            known = {name: found[name] for name in names}
            known["position"] = Position(*map(int, known["position"]))
            Journal.of(known["journal"])
            if known.get("score") is not None:
                rows, error, *surprises = known["score"]
                known["score"] = Score(int(rows), float(error), *map(int, surprises))
            if known.get("alarm") is not None:
                Alarm.of(known["alarm"])
            if known.get("alarms") is not None:
                alarms, before = map(int, known["alarms"])
                known["alarms"] = alarms, before
            notes = cls(**known)
            notes.encoding()
            return notes
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(f"{path}: its notes are not those of {MADE_BY}: {error!r}") from error
