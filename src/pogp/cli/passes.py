"""`pogp learn --passes 2`: a table at rest, read twice, by a sample and then by sums.

The first pass draws a sample, from which points, a kernel and a noise are found; the second adds
the sums of all rows (`pogp.sums`), on all cores. Memory does not grow with the table, and the
result does not depend on the order of its rows but for the last bits.
"""

import argparse
import os
import shlex
import signal
import sys
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np

from pogp import sums
from pogp.arrays import Array, Indices
from pogp.cli import options
from pogp.cli.console import BadRows, Console, Interruption, say
from pogp.cli.learning import (
    FILE_OPTIONS,
    FLAGS,
    asked_columns,
    encoder_for,
    mostly_skipped,
    unused_columns,
)
from pogp.cli.notes import Notes
from pogp.cli.score import Score, required
from pogp.cli.tables import Batch, Position, Table, chunks, open_table
from pogp.cli.tables.records import chosen, decided_columns, ignored_cells
from pogp.cli.tables.table import find
from pogp.encoding import Encoder
from pogp.encoding.columns import Cells
from pogp.encoding.encoder import inputs_of
from pogp.errors import FormatError
from pogp.files import container, persistence
from pogp.models.absorbing import AbsorbingPOG
from pogp.models.selftuning.model import INSIDE, SelfTuning
from pogp.report import prose
from pogp.report.advice import words_without
from pogp.report.journal import Journal
from pogp.report.prose import WIDTH
from pogp.report.segments import POOR
from pogp.sums.columns import CALIBRATION, SAMPLE
from pogp.sums.drawing import Drawn, draw

PART = 32 * 1024
"""Rows of a part: one task of a process."""
EVERY = 32
"""Parts between two checkpoints."""
KIND, SCHEMA = "passes", 2
SUFFIX = ".passes"
NOT_HERE = ("method", "budget", "forgetting", "calibrate", "warmup")
"""Options for one pass only."""
PLAN = ("max_size", "kernel")
"""Options of the plan."""


def execute(arguments: argparse.Namespace) -> int:
    """Learn a table in two passes, and save the model."""
    _require(arguments)
    console = Console(None if arguments.quiet else sys.stderr)
    layout = options.layout(arguments)
    with open_table(arguments.source, layout) as table:
        state = _begun(arguments, table, console)
    with open_table(arguments.source, layout) as table:
        received = _second(arguments, table, state, console)
        if received is not None:
            where = f"{table.unit} {state.position.line} of {table.name}"
            told = f"Stopped before {where}. To continue, repeat the command with --resume"
            Console(sys.stderr).note(told)  # also with --quiet
            return 128 + received
        total = state.total()
        model, score = state.plan.model(total, state.calibration), state.score(total)
        _save(model, arguments, table, state, score)
        _unfinished(arguments).unlink(missing_ok=True)
    skipped = f", {state.skipped:,} could not be used" if state.skipped else ""
    skipped += f", {state.filled:,} had missing values, which were filled" if state.filled else ""
    points = f"{prose.counted(model.size, 'point')} {'holds' if model.size == 1 else 'hold'}"
    rows = f"{prose.counted(state.used, 'row')} of {table.name}"
    said = f"{points} what {rows} say{skipped}."
    say(said, sys.stdout)
    for sentence in [
        *unused_columns(state.encoder),
        *mostly_skipped(state.used, state.skipped),
    ]:
        say(fill(sentence, WIDTH), sys.stdout)
    if score is not None:
        say(fill(str(score), WIDTH), sys.stdout)
    if score is not None and score.error >= POOR:
        say(f"  Try: {shlex.join(_in_one_pass(arguments))}", sys.stdout)
    console.note(f"{arguments.save} saved. To predict: pogp predict {arguments.save} FILE")
    return required(arguments.require, None if score is None else score.error)


def _require(arguments: argparse.Namespace) -> None:
    """Raise ValueError for what two passes cannot do."""
    if arguments.source == "-" or not Path(arguments.source).is_file():
        raise ValueError(
            f"--passes 2 reads the table twice: it takes a file, not {arguments.source}"
        )
    if arguments.save is None:
        raise ValueError("--passes 2 needs --save FILE, for the model and to resume from")
    options.require_place(arguments.save, {"where the rows come from": arguments.source})
    for name in ("start", "report", "out"):
        if getattr(arguments, name) is not None:
            raise ValueError(f"--{'from' if name == 'start' else name} is for one pass")
    if arguments.option:
        raise ValueError(f"--option is for one pass, got {arguments.option[0][0]}")
    for name in NOT_HERE:
        if hasattr(arguments, name):
            raise ValueError(f"--{name} is for one pass; two passes find points, kernel and noise")
    if arguments.save.exists() and arguments.resume and not _unfinished(arguments).exists():
        raise ValueError(
            f"{arguments.save} is finished; if its table has grown, --resume without --passes 2 "
            "learns the new rows"
        )
    if arguments.save.exists() and not arguments.overwrite and not arguments.resume:
        raise ValueError(f"{arguments.save} exists: --overwrite replaces it")


def _unfinished(arguments: argparse.Namespace) -> Path:
    """Return the file that holds the state of a second pass."""
    return Path(f"{arguments.save}{SUFFIX}")


# ---- the state of the second pass ---------------------------------------------------------------


@dataclass
class _State:
    """A plan, rows to calibrate by, and the sums of the parts so far."""

    target: str
    encoder: Encoder
    plan: sums.Plan
    drawn: Drawn
    """The whole draw: the sample, then the rows to calibrate by."""
    sample: int
    position: Position
    parts: int = 0
    used: int = 0
    skipped: int = 0
    filled: int = 0
    stack: list[sums.Sums] = field(default_factory=list)
    """The complete subtrees of `total`, from the largest: a binary counter of parts."""

    def add(self, part: sums.Sums, filled: int, batch: Batch) -> None:
        """Take the sums of the next part; neighbours of one size are added at once."""
        self.stack.append(part)
        self.parts += 1
        for _ in range((self.parts & -self.parts).bit_length() - 1):
            right = self.stack.pop()
            self.stack[-1] = self.stack[-1] + right
        self.position = batch.end
        self.used += batch.count
        self.skipped += len(batch.refusals)
        self.filled += filled

    def total(self) -> sums.Sums:
        """Return the sums of all parts."""
        if not self.stack:
            raise ValueError("there are no rows that can be used")
        total = self.stack[-1]
        for left in reversed(self.stack[:-1]):  # as `total` adds what is left over
            total = left + total
        return total

    @property
    def calibration(self) -> tuple[Array, Array] | None:
        """Rows that were not in the sample, drawn at random; None if there are no more rows."""
        return self.drawn.divided(self.sample)[1]

    def score(self, total: sums.Sums) -> Score | None:
        """Return how well rows that were drawn are predicted from all others, None if not known."""
        X, y = self.calibration or self.drawn.divided(self.sample)[0]
        return Score.of(y, self.plan.left_out(total, X, y)[:, 0])

    def save(self, path: Path, table: Table) -> None:
        """Write the state, atomically."""
        header: dict[str, container.JSON] = {
            "kind": KIND,
            "schema": SCHEMA,
            "target": self.target,
            "encoder": self.encoder.state(),
            "sample": self.sample,
            "position": list(self.position),
            "counts": [self.parts, self.used, self.skipped, self.filled],
            "identity": table.identity(self.position),
        }
        blobs = {"plan": self.plan.to_bytes(), "drawn": self.drawn.to_bytes()}
        blobs |= {f"sums{i:02d}": part.to_bytes() for i, part in enumerate(self.stack)}
        arrays = {name: np.frombuffer(data, np.uint8) for name, data in blobs.items()}
        container.write(path, header, arrays)

    @classmethod
    def read(cls, path: Path, table: Table) -> "_State":
        """Return the state in a file; ValueError if it is of another table."""
        header, arrays = container.read(path)
        try:
            if (header["kind"], header["schema"]) != (KIND, SCHEMA):
                raise ValueError(f"a file of another kind, {header['kind']!r}")
            position = Position(*map(int, header["position"]))
            state = cls(
                str(header["target"]),
                Encoder.restored(header["encoder"]),
                sums.Plan.from_bytes(arrays["plan"].tobytes()),
                Drawn.from_bytes(arrays["drawn"].tobytes()),
                int(header["sample"]),
                position,
            )
            counts = map(int, header["counts"])
            state.parts, state.used, state.skipped, state.filled = counts
            names = sorted(name for name in arrays if name.startswith("sums"))
            state.stack = [sums.Sums.from_bytes(arrays[name].tobytes()) for name in names]
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(f"{path}: not the state of a second pass: {error}") from error
        table.require(header["identity"], position)
        return state


def _begun(arguments: argparse.Namespace, table: Table, console: Console) -> _State:
    """Return the state of a pass that was stopped, or that after the first pass."""
    path = _unfinished(arguments)
    if arguments.resume and path.exists():
        state = _State.read(path, table)
        console.note(f"Continuing at {table.unit} {state.position.line} of {table.name} ...")
        return state
    target, columns = asked_columns(arguments, table, None)
    encoder = encoder_for(arguments, table, target, columns)
    seed = getattr(arguments, "seed", 0)
    console.note(f"Learning {target} from {', '.join(columns)}: drawing a sample ...")
    bad_rows = BadRows(table, Console(sys.stderr), arguments.on_bad_row == "fail", "skipped")
    parts = _parts(table, encoder, target, table.start, console, "sample", bad_rows)
    batches = ((inputs_of(encoder.learn(columns), encoder.dimension), y) for columns, y, _ in parts)
    drawn = draw(batches, SAMPLE + CALIBRATION, dimension=encoder.dimension, seed=seed)
    bad_rows.require_use(at_the_end=True)
    (X, y), _ = drawn.divided(SAMPLE)
    console.note(f"Finding points, a kernel and a noise from {len(y):,} rows ...")
    found = {name: getattr(arguments, name) for name in PLAN if hasattr(arguments, name)}
    plan = sums.plan(X, y, seed=seed, **found)
    return _State(target, encoder, plan, drawn, SAMPLE, table.start)


# ---- rows ---------------------------------------------------------------------------------------


def _parts(
    table: Table,
    encoder: Encoder,
    target: str,
    start: Position,
    console: Console,
    label: str,
    bad_rows: BadRows | None = None,
    done: int = 0,
) -> Iterator[tuple[list[Cells], Array, Batch]]:
    """Yield parts of the table: the inputs of usable rows by columns, their targets, and all rows.

    The parts are the same wherever reading begins.
    """
    begun = table.share(start) or 0.0
    names = [str(name) for name in encoder.names]
    columns = find(table.names, [*names, target], table.name)
    fatal = bad_rows is not None and bad_rows.fatal
    batches = table.batches(chosen(columns, encoder.kinds, fatal, target=True), start)
    with console.progress(label, done=done, share=begun) as progress:
        for part in chunks(batches, PART, done, eager=False):
            if not len(part):
                continue
            inputs = decided_columns(part, encoder)
            if bad_rows is not None:
                bad_rows.report(part, ignored_cells(part, names, encoder.kinds))
                bad_rows.require_use()
            done += part.count
            progress.update(done, "", table.share(part.end, part.through))
            yield inputs, part.values[part.usable, -1], part


def _second(
    arguments: argparse.Namespace, table: Table, state: _State, console: Console
) -> int | None:
    """Add the sums of all rows; return the signal that stopped it before, if one did."""
    path = _unfinished(arguments)
    shared = state.plan.to_bytes(), state.encoder.state()
    workers = len(os.sched_getaffinity(0))
    waiting: deque[tuple[Future[tuple[sums.Sums, int]], Batch]] = deque()

    def take() -> None:
        future, batch = waiting.popleft()
        state.add(*future.result(), batch)
        if state.parts % EVERY == 0:
            state.save(path, table)

    pool = ProcessPoolExecutor(workers, initializer=_quiet)
    place = (state.encoder, state.target, state.position)
    parts = _parts(table, *place, console, "sums", done=state.used)
    with Interruption() as interruption, pool as processes:
        for columns, y, batch in parts:
            waiting.append((processes.submit(_summed, *shared, columns, y), batch))
            if len(waiting) > workers:  # memory does not grow with the table
                take()
            if interruption.received is not None:
                break
        while waiting:
            take()
    if interruption.received is not None:
        state.save(path, table)
    return interruption.received


def _quiet() -> None:
    """Ignore signals: the process that reads handles them."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def _summed(
    plan: bytes, encoder: dict[str, Any], columns: list[Cells], y: Array
) -> tuple[sums.Sums, int]:
    """Return the sums of rows, and how many of them had missing values."""
    X, counts = spread(Encoder.restored(encoder), columns)
    batch = (X, np.repeat(y, counts), None, np.repeat(1 / counts, counts))
    found = sums.Plan.from_bytes(plan).sums([batch if len(X) > len(y) else batch[:2]])
    return replace(found, count=len(y)), int(np.count_nonzero(counts > 1))


def spread(encoder: Encoder, columns: list[Cells]) -> tuple[Array, Indices]:
    """Return the inputs of rows, and how many each of them has: several where a value is missing.

    Such a row is spread over the points that its missing values may be at, each an equal part of
    it. They are filled by what the whole table has shown and by the row before.
    """
    rows = encoder.encode(columns)
    gaps = np.flatnonzero(np.isnan(rows).any(axis=1)).tolist()
    if not gaps:
        return rows, np.ones(len(rows), np.int64)
    imputer = encoder.imputer.copy()
    points = list(rows[:, None])
    followed = -1
    for i in gaps:
        if followed < i - 1:
            imputer.follow(imputer.fill(rows[i - 1]))  # which has no gaps
        filled = imputer.fill(rows[i], resting=i == 0)
        imputer.follow(filled)
        rows[i], points[i], followed = filled.row, filled.points(), i
    return np.concatenate(points), np.array([len(each) for each in points])


# ---- the model in a file ------------------------------------------------------------------------


def _save(
    model: AbsorbingPOG,
    arguments: argparse.Namespace,
    table: Table,
    state: _State,
    score: Score | None,
) -> None:
    """Write the model as `pogp learn` does, so that the other commands know its columns."""
    notes = Notes.of(
        table,
        state.position,
        target=state.target,
        columns=[str(name) for name in state.encoder.names],
        encoder=state.encoder.state(),
        filled=state.filled,
        used=state.used,
        skipped=state.skipped,
        journal=Journal(after=model.seen).state(),
        command=tuple(_in_one_pass(arguments)),
        score=score,
    )
    persistence.save(_in_the_command(model), arguments.save, notes=notes.as_json())


def _in_one_pass(arguments: argparse.Namespace) -> list[str]:
    """Return the command that learns the table in one pass, without its files."""
    return words_without(["pogp", *arguments.words], FILE_OPTIONS | {"--passes"}, FLAGS)


def _in_the_command(model: AbsorbingPOG) -> SelfTuning:
    """Return the model in the form that `pogp learn --from` continues with."""
    arguments = model.arguments()
    kernel, noise, mean = (arguments.pop(name) for name in ("kernel", "noise", "mean"))
    whole = SelfTuning("absorbing", kernel=kernel, noise=noise, mean=mean, **arguments)
    learned = {INSIDE + name: value for name, value in model.state().items()}
    shapes = {"dimension": model.dictionary.shape[1], "target": []}
    whole.restore({**shapes, "noise": noise, "mean": mean, **learned})
    return whole
