"""A model on its way through a table, and the checkpoints along the way."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np

import pogp
from pogp.alarms import Alarm
from pogp.arrays import Array, Indices
from pogp.cli.notes import Notes
from pogp.cli.output import Output
from pogp.cli.tables import Batch, Position, Table
from pogp.files import persistence
from pogp.models.selftuning.factory import Made
from pogp.report.journal import Journal
from pogp.report.subject import Subject
from pogp.streaming import follow
from pogp.trace import Trace, concatenate


@dataclass
class Learning:
    """The model, and how far into the table it is."""

    model: Made
    journal: Journal
    target: str
    columns: list[str]
    position: Position  # of what comes next
    used: int = 0  # rows of the table that were learned
    skipped: int = 0
    alarm: Alarm | None = None
    out: Output | None = None
    command: list[str] = field(default_factory=list)  # that began it, for advice

    @classmethod
    def start(cls, model: Made, target: str, columns: list[str], table: Table) -> Self:
        """Return a model at the beginning of a table; it may have seen others."""
        journal = Journal.start(after=model.seen)
        return cls(model, journal, target, columns, table.start)

    @classmethod
    def resume(cls, model: Made, notes: Notes, table: Table) -> Self:
        """Return a model where it stopped in this table; ValueError if it was another one."""
        table.require(notes.identity, notes.position)
        journal = Journal.of(notes.journal)
        place = (notes.position, notes.used, notes.skipped)
        command = list(notes.command)
        return cls(model, journal, notes.target, notes.columns, *place, command=command)

    def take(self, chunk: Batch) -> None:
        """Learn rows, whose last column is the target, and pass over those that cannot be used."""
        rows = chunk.values[chunk.usable]
        X, y = rows[:, :-1], rows[:, -1]
        started = time.perf_counter()
        trace = self._learn(X, y, self.used + self.skipped + 1 + np.flatnonzero(chunk.usable))
        self.journal.add(X, y, trace, time.perf_counter() - started)
        self.position = chunk.end
        self.used += chunk.count
        self.skipped += len(chunk.refusals)
        if self.out is not None:
            self.out.flush()

    def _learn(self, X: Array, y: Array, numbers: Indices) -> Trace:
        """Learn rows with these numbers, and write a line for each if there is where to."""
        if self.out is None or self.alarm is None or len(y) == 0:
            return self.model.learn(X, y)
        traces = []
        samples = zip(X, y.tolist(), strict=True)
        # The generator comes first in zip, so that it is asked once more and learns the last row.
        for step, number in zip(follow(self.model, samples, self.alarm), numbers, strict=True):
            step.row = int(number)
            self.out.write(step)
            traces.append(step)
        return concatenate([step.trace for step in traces if step.trace is not None])

    def subject(self) -> Subject:
        """Return what a report is about."""
        return Subject.of(self.journal, self.model, self.columns, self.target, self.command)

    def save(self, path: Path, table: Table) -> None:
        """Write a checkpoint: the model, and all that it takes to go on from here."""
        notes = Notes(
            version=pogp.__version__,
            target=self.target,
            columns=self.columns,
            source=table.name,
            delimiter=table.delimiter,
            header=table.header,
            unit=table.unit,
            identity=table.identity(self.position),
            position=self.position,
            used=self.used,
            skipped=self.skipped,
            journal=self.journal.memory(),
            alarm=None if self.alarm is None else self.alarm.memory(),
            command=tuple(self.command),
            out_size=None if self.out is None else self.out.size,
        )
        persistence.save(self.model, path, notes=notes.as_json())


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
