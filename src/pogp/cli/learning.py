"""A model on its way through a table, and the checkpoints along the way."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np

import pogp
from pogp import encoding
from pogp.alarms import Alarm
from pogp.arrays import LARGEST, Array, Indices
from pogp.cli.notes import Notes
from pogp.cli.output import Output
from pogp.cli.tables import Batch, Position, Refusal, Table, records
from pogp.encoding import Encoder
from pogp.encoding.columns import Cells
from pogp.encoding.model import Learned, RowByRow
from pogp.files import persistence
from pogp.models.selftuning.factory import Made
from pogp.report.journal import Journal
from pogp.report.subject import Subject
from pogp.streaming import follow
from pogp.trace import concatenate


@dataclass
class Learning:
    """The model, and how far into the table it is."""

    model: Made
    journal: Journal
    target: str
    encoder: Encoder
    position: Position  # of what comes next
    used: int = 0  # rows of the table that were learned
    skipped: int = 0
    filled: int = 0  # rows that had missing values
    alarm: Alarm | None = None
    out: Output | None = None
    command: list[str] = field(default_factory=list)  # that began it, for advice

    @classmethod
    def start(cls, model: Made, target: str, encoder: Encoder, table: Table) -> Self:
        """Return a model at the beginning of a table; it may have seen others."""
        journal = Journal.start(after=model.seen)
        return cls(model, journal, target, encoder, table.start)

    @property
    def columns(self) -> list[str]:
        """The names of the model's inputs."""
        return self.encoder.labels

    @property
    def names(self) -> list[str]:
        """The names of the columns that the inputs come from."""
        return [str(name) for name in self.encoder.names]

    @classmethod
    def resume(cls, model: Made, notes: Notes, table: Table) -> Self:
        """Return a model where it stopped in this table; ValueError if it was another one."""
        table.require(notes.identity, notes.position)
        journal = Journal.of(notes.journal)
        place = (notes.position, notes.used, notes.skipped, notes.filled)
        command = list(notes.command)
        return cls(model, journal, notes.target, notes.encoding(), *place, command=command)

    def take(self, chunk: Batch) -> None:
        """Learn rows, whose last column is the target, and pass over those that cannot be used."""
        y = chunk.values[chunk.usable, -1]
        columns = raw_columns(self.encoder, chunk)
        started = time.perf_counter()
        rows = self.used + self.skipped + 1 + np.flatnonzero(chunk.usable)
        learned = self._learn(columns, y, rows)
        self.journal.add(learned.inputs, y, learned.trace, time.perf_counter() - started)
        self.filled += learned.filled
        self.position = chunk.end
        self.used += chunk.count
        self.skipped += len(chunk.refusals)
        if self.out is not None:
            self.out.flush()

    def _learn(self, columns: list[Cells], y: Array, numbers: Indices) -> Learned:
        """Learn rows with these numbers, and write a line for each if there is where to."""
        if self.out is None or self.alarm is None or len(y) == 0:
            return encoding.learn(self.model, self.encoder, columns, y)
        rows = RowByRow(self.model, self.encoder.learn(columns))
        steps = []
        # The generator comes first in zip, so that it is asked once more and learns the last row.
        for step, number in zip(follow(rows, rows.samples(y), self.alarm), numbers, strict=True):
            step.row = int(number)
            self.out.write(step)
            steps.append(step)
        trace = concatenate([step.trace for step in steps if step.trace is not None])
        return Learned(np.array([step.inputs for step in steps]), trace, rows.gaps)

    def subject(self) -> Subject:
        """Return what a report is about."""
        return Subject.of(self.journal, self.model, self.columns, self.target, self.command)

    def save(self, path: Path, table: Table) -> None:
        """Write a checkpoint: the model, and all that it takes to go on from here."""
        notes = Notes(
            version=pogp.__version__,
            target=self.target,
            columns=self.names,
            source=table.name,
            delimiter=table.delimiter,
            header=table.header,
            unit=table.unit,
            identity=table.identity(self.position),
            position=self.position,
            used=self.used,
            skipped=self.skipped,
            journal=self.journal.memory(),
            filled=self.filled,
            encoder=self.encoder.memory(),
            alarm=None if self.alarm is None else self.alarm.memory(),
            command=tuple(self.command),
            out_size=None if self.out is None else self.out.size,
        )
        persistence.save(self.model, path, notes=notes.as_json())


def raw_columns(encoder: Encoder, batch: Batch) -> list[Cells]:
    """Return the inputs of the usable rows, by columns; what is no number is NaN."""
    values = batch.values[batch.usable]
    rows = [batch.cells[i] for i in np.flatnonzero(batch.usable)]
    return [
        np.where(np.abs(values[:, j]) < LARGEST, values[:, j], np.nan)
        if kind == "number"
        else [row[j] for row in rows]
        for j, kind in enumerate(encoder.kinds)
    ]


def odd_cells(encoder: Encoder, batch: Batch) -> list[Refusal]:
    """Return the usable rows in which a cell is not what its column holds, and is ignored."""
    odd = []
    inputs = [place for place, kind in enumerate(encoder.kinds) if kind == "number"]
    names = [str(name) for name in encoder.names]
    if not inputs or not batch.count:
        return []
    found = records.odd_cells(batch.cells, batch.values, inputs) & batch.usable[:, None]
    for i in np.flatnonzero(found.any(axis=1)).tolist():
        fault = records.faults(names, batch.cells[i], [], inputs)
        odd.append(Refusal(int(batch.lines[i]), *fault))
    return odd


class Checkpoints:
    """Saves a learning now and then, if there is a file to save it to."""

    SECONDS = 60.0

    def __init__(self, path: Path | None, every: int, learning: Learning, table: Table) -> None:
        self._path = path
        self._every = every
        self._learning = learning
        self._table = table
        self._remember()

    def _remember(self) -> None:
        self._saved, self._time = self._state, time.monotonic()

    @property
    def _state(self) -> tuple[int, bool, Position]:
        model = self._learning.model
        return model.seen, model.warming_up, self._learning.position

    def save_if_due(self) -> None:
        """Save at the first opportunity after a multiple of so many samples, or after a minute."""
        passed = self._learning.model.seen // self._every > self._saved[0] // self._every
        if passed or time.monotonic() - self._time >= self.SECONDS:
            self.save()

    def save(self) -> None:
        """Save what is new, if anything is."""
        if self._path is not None and self._learning.model.seen and self._state != self._saved:
            self._learning.save(self._path, self._table)
            self._remember()
