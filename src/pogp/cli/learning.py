"""Learning a table: the model to begin with, the loop over the rows, and checkpoints."""

import argparse
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

import pogp
from pogp import encoding
from pogp.alarms import Alarm
from pogp.arrays import Array, Indices
from pogp.blas import one_thread
from pogp.cli.console import BadRows, Console, Interruption, Progress
from pogp.cli.notes import Notes
from pogp.cli.options import RATE, is_same
from pogp.cli.output import Output, OutputError
from pogp.cli.score import Score
from pogp.cli.tables import Batch, Position, Table, chunks
from pogp.cli.tables.read_ahead import ReadAhead
from pogp.cli.tables.records import chosen, decided_columns, ignored_cells, number_with_comma
from pogp.cli.tables.table import find, inputs
from pogp.cli.tables.text import STANDARD_INPUT
from pogp.encoding import Encoder
from pogp.encoding.columns import DATES, Cells, other_dates
from pogp.encoding.encoder import columns_of
from pogp.encoding.model import Learned, RowByRow
from pogp.files import persistence
from pogp.models.online import OnlineGP
from pogp.models.selftuning.factory import Made, made
from pogp.models.selftuning.registry import cap_of, options_from
from pogp.models.selftuning.warmup import LEAST
from pogp.report import prose
from pogp.report.advice import words_without
from pogp.report.journal import Journal
from pogp.report.summary import Summary
from pogp.streaming import LEVEL, follow
from pogp.trace import concatenate

FILE_OPTIONS = {
    "--save",
    "--checkpoint",
    "--report",
    "--out",
    "--out-format",
    "--alarm",
    "--require",
}
FIRST, SECONDS = 100, 0.5
"""Rows of the first part that is learned at once, and the time that later ones may take."""
FLAGS = {"--resume", "--overwrite", "--quiet"}


@dataclass(frozen=True)
class Kept:
    """A saved model to continue with."""

    path: Path
    model: Made
    notes: Notes | None

    @classmethod
    def read(cls, path: Path) -> "Kept":
        """Read the file."""
        model = pogp.load(path)
        if not isinstance(model, Made):
            raise ValueError(
                f"{path} holds a {type(model).__name__} saved in Python; "
                "pogp learn continues with pogp.OnlineGP and pogp.SelfTuning only"
            )
        return cls(path, model, Notes.read(path))


@dataclass
class Learning:
    """A model and its place in a table."""

    model: Made
    table: Table
    target: str
    encoder: Encoder
    journal: Journal
    position: Position  # of the next row
    used: int = 0  # rows of the table that were learned
    skipped: int = 0
    filled: int = 0  # rows that had missing values
    alarm: Alarm | None = None
    former_alarm: dict[str, Any] | None = None  # its state, while no line is written
    out: Output | None = None
    alarms: int = 0
    unwatched: int = 0  # rows before the first that could raise an alarm
    score: Score | None = None  # of two passes before
    words: list[str] = field(default_factory=list)  # of the command that began it
    written: dict[str, str] = field(default_factory=dict)  # its files of --out and --report

    @classmethod
    def begin(cls, arguments: argparse.Namespace, table: Table, before: Kept | None) -> Self:
        """Return a new model at the first row, or the one from `before` where it continues."""
        model = _fresh(arguments) if before is None else before.model
        if before is not None:
            _change(arguments, before)
        notes = None if before is None else before.notes
        target, columns = asked_columns(arguments, table, notes)
        if notes is None:
            encoder = encoder_for(arguments, table, target, columns)
        else:
            encoder = notes.encoding()
        if arguments.resume and notes is not None:
            table.require(notes.identity, notes.position, growing=True)
            journal, counts = Journal.of(notes.journal), (notes.used, notes.skipped, notes.filled)
            learning = cls(model, table, target, encoder, journal, notes.position, *counts)
            learning.words = _with_source(notes.command, notes.source, arguments.source)
            learning.score = notes.score
        else:
            journal = Journal(after=model.seen)
            learning = cls(model, table, target, encoder, journal, table.start)
            named = [] if arguments.target else ["--target", target]
            learning.words = ["pogp", *arguments.words, *named]
            if before is not None and arguments.save and is_same(before.path, arguments.save):
                learning.words = words_without(learning.words, ["--from"])  # it is replaced
        learning.former_alarm = None if notes is None else notes.alarm
        files = {"--out": arguments.out, "--report": arguments.report}
        learning.written = {name: str(path) for name, path in files.items() if path is not None}
        if arguments.out is not None:
            if not model.sequential:
                raise ValueError(f"--out is for methods that learn row by row, got {model.method}")
            learning.alarm = _alarm(arguments, notes)
            if arguments.resume and notes is not None:
                learning._count_on(notes)
        return learning

    def _count_on(self, notes: Notes) -> None:
        """Continue the count of alarms, if the rate is the same."""
        before = None if notes.alarm is None else Alarm.of(notes.alarm)
        same = before is not None and self.alarm is not None and before.rate == self.alarm.rate
        counted = notes.alarms if same and notes.alarms is not None else (0, notes.rows)
        self.alarms, self.unwatched = counted

    @property
    def command(self) -> list[str]:
        """The command that learns this table with this model, without its files."""
        return words_without(self.words, FILE_OPTIONS, FLAGS)

    @property
    def missing(self) -> dict[str, int]:
        """The number of missing values of each column that has had one, if any; most first."""
        if not self.journal.seen:
            return {}
        counts = dict(zip(self.encoder.origins, self.journal.missing.tolist(), strict=True))
        found = {name: int(count) for name, count in counts.items() if count}
        for name in self.encoder.empty:
            found.pop(name, None)
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))

    @property
    def names(self) -> list[str]:
        """The names of the columns that the inputs come from."""
        return [str(name) for name in self.encoder.names]

    def take(self, chunk: Batch) -> None:
        """Learn rows, whose last column is the target, and skip those that cannot be used."""
        y = chunk.values[chunk.usable, -1]
        columns = decided_columns(chunk, self.encoder)
        rows = self.used + self.skipped + 1 + np.flatnonzero(chunk.usable)
        started = time.perf_counter()
        learned = self._learn(columns, y, rows)
        seconds = time.perf_counter() - started
        self.journal.add(learned.inputs, y, learned.trace, seconds, learned.missing, rows)
        self.filled += learned.filled
        self.position = chunk.end
        self.used += chunk.count
        self.skipped += len(chunk.refusals)
        if self.out is not None:
            self.out.flush()

    def _learn(self, columns: list[Cells], y: Array, numbers: Indices) -> Learned:
        """Learn rows with these numbers, and write a line for each if there is an output."""
        if self.out is None or self.alarm is None or len(y) == 0:
            return encoding.learn(self.model, self.encoder, columns, y)
        rows = RowByRow(self.model, self.encoder.learn(columns), LEVEL)
        steps = []
        with one_thread:  # a prediction between two rows is a small product too
            # The generator comes first in zip: it is asked once more, and learns the last row.
            stepped = zip(follow(rows, rows.samples(y), self.alarm), numbers, strict=True)
            for step, number in stepped:
                step.row = int(number)
                self.out.write(step)
                self.alarms += step.alarm
                steps.append(step)
        trace = concatenate([step.trace for step in steps if step.trace is not None])
        inputs = np.array([step.inputs for step in steps])
        return Learned(inputs, trace, rows.gaps, rows.missing)

    def summary(self) -> Summary:
        """Return what a report is about."""
        return Summary.of_table(
            self.journal, self.model, self.encoder, self.target, self.command, self.written
        )

    def save(self, path: Path) -> None:
        """Write a checkpoint: the model, and what is needed to continue from here."""
        out = self.out
        notes = Notes.of(
            self.table,
            self.position,
            target=self.target,
            columns=self.names,
            used=self.used,
            skipped=self.skipped,
            journal=self.journal.state(),
            filled=self.filled,
            encoder=self.encoder.state(),
            alarm=self.former_alarm if self.alarm is None else self.alarm.state(),
            command=tuple(self.command),
            score=self.score,
            out=None if out is None else out.file,
            out_format=None if out is None else out.format,
            out_size=None if out is None else out.size,
            alarms=None if out is None else (self.alarms, self.unwatched),
        )
        persistence.save(self.model, path, notes=notes.as_json())


class Checkpoints:
    """Saves the model at intervals, if there is a file for it."""

    SECONDS = 60.0

    def __init__(self, path: Path | None, every: int, learning: Learning) -> None:
        self._path = path
        self._every = every
        self._learning = learning
        self._remember()

    def _remember(self) -> None:
        self._saved, self._time = self._state, time.monotonic()

    @property
    def _state(self) -> tuple[int, bool, Position, int]:
        model, table = self._learning.model, self._learning.table
        return model.seen, model.warming_up, self._learning.position, table.left

    def save_if_due(self) -> None:
        """Save if another `every` samples were learned, or a minute has passed."""
        passed = self._learning.model.seen // self._every > self._saved[0] // self._every
        if passed or time.monotonic() - self._time >= self.SECONDS:
            self.save()

    def save(self) -> None:
        """Save the model if it has changed."""
        if self._path is not None and self._learning.model.seen and self._state != self._saved:
            self._learning.save(self._path)
            self._remember()


@dataclass(frozen=True)
class Session:
    """One call of `pogp learn`: reads, learns, reports and saves until the rows end."""

    learning: Learning
    bad_rows: BadRows
    checkpoints: Checkpoints
    step: int  # samples learned at once
    console: Console

    def run(self) -> int | None:
        """Learn all rows that come; return the signal that stopped it before, if one did.

        The model is saved whatever ends the run, an unreadable row or file included.
        """
        learning, table = self.learning, self.learning.table
        columns = find(table.names, [*learning.names, learning.target], table.name)
        choice = chosen(columns, learning.encoder.kinds, self.bad_rows.fatal, target=True)
        batches = table.batches(choice, learning.position)
        # Rows of a pipe are waited for in a thread; those of a file are there already.
        live = table.size is None
        reader = ReadAhead(batches, len(columns)) if live else nullcontext(batches)
        with Interruption() as interruption, reader as rows:
            try:
                self._learn(rows, interruption)
            except OutputError:  # the last checkpoint agrees with what was written
                raise
            except (ValueError, OSError):
                self.checkpoints.save()
                raise
            self.checkpoints.save()
        return interruption.received

    def _learn(self, rows: Iterable[Batch], interruption: Interruption) -> None:
        learning, table, model = self.learning, self.learning.table, self.learning.model
        eager = table.size is None and model.sequential
        with self._progress() as progress:
            for chunk in self._in_parts(chunks(rows, self.step, model.seen, eager)):
                if len(chunk):
                    self._take(chunk)
                    share = table.share(chunk.end, chunk.through)
                    progress.update(learning.used, self._state, share)
                if interruption.received is not None:
                    return
                self.checkpoints.save_if_due()
        self.bad_rows.require_use(at_the_end=True)
        if model.seen >= LEAST:
            model.settle()  # there is nothing more to wait for

    def _in_parts(self, whole: Iterable[Batch]) -> Iterator[Batch]:
        """Cut chunks into parts of half a second, where the cuts do not change any number.

        Ctrl-C and the lines of --out wait for no more than a part.
        """
        learning, rows = self.learning, FIRST
        if not (isinstance(learning.model, OnlineGP) or learning.out is not None):
            yield from whole
            return
        for chunk in whole:
            decided_columns(chunk, learning.encoder)  # by the whole chunk, however it is cut
            rest = chunk
            while len(rest) > rows:
                part, rest = rest.split(rows)
                started = time.perf_counter()
                yield part
                took = max(time.perf_counter() - started, 1e-6)
                rows = max(int(rows * min(SECONDS / took, 2.0)), 1)
            yield rest

    def _take(self, chunk: Batch) -> None:
        learning = self.learning
        good = self.bad_rows.before_fatal(chunk)
        if len(good):
            learning.take(good)
        ignored = ignored_cells(good, learning.names, learning.encoder.kinds)
        self.bad_rows.report(chunk, ignored)
        self.bad_rows.require_use()

    def _progress(self) -> Progress:
        learning, table = self.learning, self.learning.table
        begun = table.share(learning.position) or 0.0
        return self.console.progress(Path(table.name).name[:13], done=learning.used, share=begun)

    def _state(self) -> str:
        model = self.learning.model
        if model.warming_up:
            return "warming up"
        if not self.learning.journal.seen:  # no row could be used so far
            return ""
        recent = self.learning.journal.recent_ordinary()
        error = f", error {recent.error[0]:.3f}" if recent.predicted[0] else ""
        return f"{prose.counted(model.size, 'point')}{error}"


# ---- the options of the command -------------------------------------------------------------


def _with_source(words: Sequence[str], before: str, now: str) -> list[str]:
    """Return a command with the name that the table has now: it may have been moved."""
    place = next((words.index(word) for word in (before, STANDARD_INPUT) if word in words), None)
    return [now if i == place else word for i, word in enumerate(words)]


def asked_columns(
    arguments: argparse.Namespace, table: Table, notes: Notes | None
) -> tuple[str, list[str]]:
    """Return the target and the inputs, which must agree with those of a saved model."""
    if notes is not None:
        table.expect([*notes.columns, notes.target])
    target = arguments.target or (notes and notes.target)
    if not target:
        raise ValueError(
            f"--target has to say which column to learn; {table.name} has {', '.join(table.names)}"
        )
    asked = arguments.columns is not None or arguments.exclude
    if notes is None or asked:
        columns = inputs(table.names, target, arguments.columns, arguments.exclude)
    else:
        columns = notes.columns
    if notes is not None and (target, columns) != (notes.target, notes.columns):
        raise ValueError(
            f"the model predicts {notes.target!r} from {', '.join(notes.columns)}; got {target!r} "
            f"from {', '.join(columns)}"
        )
    find(table.names, [*columns, target], table.name)
    return target, columns


def encoder_for(
    arguments: argparse.Namespace, table: Table, target: str, columns: list[str]
) -> Encoder:
    """Return how the columns become inputs, by what the first rows hold.

    ValueError if an input, or some of the target, has numbers that are written with commas.
    """
    for name in arguments.time:
        if name not in columns:
            raise ValueError(f"--time {name!r} is not among the inputs {', '.join(columns)}")
    named = [*columns, target]
    first = columns_of(table.peek(find(table.names, named, table.name)), len(named))
    cells = first[:-1]
    encoder = Encoder.of(columns, cells, times=arguments.time, numbers_in_text=True)
    # The target too where only some rows have a comma: to skip these would bias what is learned.
    for name, kind, some in zip(named, [*encoder.kinds, "category"], first, strict=True):
        if kind == "category" and (text := number_with_comma(some)):
            raise ValueError(
                f"column {name!r} of {table.name} has numbers with a comma, {text!r}; expected a "
                "decimal point and no commas. Convert the table first, for example with pandas: "
                "read_csv reads decimal commas with decimal=',' and commas between thousands with "
                "thousands=','"
            )
        if kind == "category" and name != target and (text := other_dates(some)):
            raise ValueError(f"column {name!r} of {table.name} has dates such as {text!r}; {DATES}")
    return encoder


def unused_columns(encoder: Encoder) -> list[str]:
    """Return a sentence that names the columns without any value; none if there is none."""
    empty = encoder.empty
    has, was = ("has", "was") if len(empty) == 1 else ("have", "were")
    told = f"{has} no value in any row and {was} not used."
    return [f"{prose.listed(empty)} {told}"] if empty else []


def mostly_skipped(used: int, skipped: int) -> list[str]:
    """Return a sentence on rows that were skipped; none if they are not more than half."""
    if skipped <= used:
        return []
    return [
        f"Only {used:,} of {prose.counted(used + skipped, 'row')} could be used: what was learned "
        "may not hold for the others. Correct what is wrong with them, as reported above; with "
        "--on-bad-row fail the first one ends the command."
    ]


def _alarm(arguments: argparse.Namespace, notes: Notes | None) -> Alarm:
    """Return the alarm of the model, or a new one if another rate is given."""
    before = None if notes is None or notes.alarm is None else Alarm.of(notes.alarm)
    if before is not None and arguments.alarm in (None, before.rate):
        return before
    return Alarm(RATE if arguments.alarm is None else arguments.alarm)


def _fresh(arguments: argparse.Namespace) -> Made:
    """Return a new model: its data are scaled, and its options are those of adapters by default."""
    method = getattr(arguments, "method", "online")
    usual = {"scale": method != "online", **options_from(method)}
    return made(method, **(usual | _given(arguments, method)))


def _given(arguments: argparse.Namespace, method: str) -> dict[str, Any]:
    """Return the options of the model that were given."""
    names = ("kernel", "warmup", "scale", "seed", "budget", "forgetting", "calibrate")
    given = {name: getattr(arguments, name) for name in names if hasattr(arguments, name)}
    if hasattr(arguments, "max_size"):
        given[cap_of(method)] = arguments.max_size
    return given | dict(arguments.option)


def _change(arguments: argparse.Namespace, before: Kept) -> None:
    """Apply the given options to the model of --from; with --resume they must agree."""
    model = before.model
    asked = getattr(arguments, "method", model.method)
    if asked != model.method:
        raise ValueError(f"the model in {before.path} is {model.method}, got --method {asked}")
    found, given = model.arguments(), _given(arguments, model.method)
    wanted = made(**{"method": model.method, **found, **given}).arguments()
    # `warmup` and `scale` are no arguments of an OnlineGP, which they do not concern
    own = {name: value for name, value in given.items() if name in found}
    other = {name: value for name, value in own.items() if wanted[name] != found[name]}
    if other and arguments.resume:
        name = next(iter(other))
        raise ValueError(
            f"the model in {before.path} was made with {name} {found[name]}, got {wanted[name]}; "
            "--from MODEL can change it"
        )
    if other:
        model.change(**other)
