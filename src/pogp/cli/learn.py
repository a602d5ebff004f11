"""`pogp learn`: learn a model from a table of any length."""

import argparse
import os
import shlex
import sys
from contextlib import nullcontext
from itertools import chain, count
from pathlib import Path
from textwrap import fill, shorten

from pogp.alarms import Alarm
from pogp.cli import options
from pogp.cli.console import BadRowError, BadRows, Console, say
from pogp.cli.learning import (
    Checkpoints,
    Kept,
    Learning,
    Session,
    mostly_skipped,
    unused_columns,
)
from pogp.cli.notes import Notes
from pogp.cli.options import CHECKPOINT
from pogp.cli.output import STANDARD_OUTPUT, Output, last_row
from pogp.cli.score import required
from pogp.cli.tables import Layout, Table, open_table
from pogp.cli.tables.table import NotNumbersError, joined
from pogp.encoding.columns import TooManyCategoriesError, with_units
from pogp.models.selftuning.registry import CAP
from pogp.report import page, prose
from pogp.report.prose import WIDTH
from pogp.report.verdicts import verdicts

STEP = 1000
"""Samples learned at once: between them it can be stopped."""

DESCRIPTION = """\
Learn to predict one column of a table from others, row by row: the rows are read once, in order,
and memory does not grow with their number. Each row is predicted before it is learned; the scores
that are printed at the end are those of these predictions.
"""

EPILOG = f"""\
the model:
  By default pogp.OnlineGP with at most {CAP} points. It finds scales, kernel, noise and forgetting
  by itself and revises them along the table. With another --method it is pogp.SelfTuning: the first
  300 rows set the scales of inputs and target, the length-scales and the noise. These rows are then
  learned like all others. A shorter table is tuned on all of its rows. As long as the target is
  constant, tuning waits for more rows.

stopping and resuming:
  --save writes the model every {CHECKPOINT:,} rows (--checkpoint) and every minute, at the end, and
  after Ctrl-C, SIGTERM or SIGHUP. The file is replaced in one step and is always complete.
  --resume continues with the same table at that row and gives the model of an uninterrupted run;
  standard input has to start again from its first row, and the rows learned before are skipped.
  --from continues with another table: the next day's file, or new rows of a live stream.

exit codes:
  0    all rows were learned, except unusable ones, which were reported
  2    an error that you can correct: an option, a file, a column
  3    an unusable row, with --on-bad-row fail; the rows before it are saved
  4    the error is larger than --require allows; the model is saved
  130  Ctrl-C, 143 SIGTERM, 129 SIGHUP; the model is saved

examples:
  pogp learn data.csv --target y --save m.pogp --report report.html
  pogp learn data.csv --target y --columns a,b,c --save m.pogp
  pogp learn data.csv --save m.pogp --resume            after an interruption, or when it has grown
  pogp learn tuesday.csv --from monday.pogp --save tuesday.pogp
  sensor | pogp learn - --target y --save m.pogp --checkpoint 1000
  sensor | pogp learn - --target y --out - --alarm 0.001 | grep ',1$'     alarms as they come
  pogp predict m.pogp new.csv --out predictions.csv
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("source", metavar="SOURCE", help=options.SOURCE)
    options.add_row_options(parser.add_argument_group("rows"))
    options.add_file_options(parser.add_argument_group("files"))
    options.add_output_options(parser.add_argument_group("output"))
    options.add_model_options(parser.add_argument_group("model"))
    options.add_tuning_options(parser.add_argument_group("tuning"))


def execute(arguments: argparse.Namespace) -> int:
    """Learn, save and report."""
    if arguments.passes == 2:
        from pogp.cli import passes

        return passes.execute(arguments)
    _require_resumable(arguments)
    before = _kept(arguments)
    console = Console(None if arguments.quiet else sys.stderr)
    if arguments.resume and before is not None:
        _remember_output(arguments, before, console)
    _require_places(arguments)
    if arguments.resume and before is None:
        console.note(f"{arguments.save} is not there yet: starting at the first row.")
    with open_table(arguments.source, _layout(arguments, before)) as table:
        learning = Learning.begin(arguments, table, before)
        _report_new_rate(learning, before, console)
        with _output(arguments, table, before) or nullcontext() as learning.out:
            return _run(arguments, learning, table, console)


# ---- files ----------------------------------------------------------------------------------


def _require_resumable(arguments: argparse.Namespace) -> None:
    if arguments.resume and arguments.save is None:
        raise ValueError("--resume continues with the file of --save, got no --save")
    if arguments.resume and arguments.overwrite:
        raise ValueError("--resume continues with a file and --overwrite replaces it: choose one")


def _remember_output(arguments: argparse.Namespace, before: Kept, console: Console) -> None:
    """Continue the file of --out, unless another one is named."""
    notes = before.notes
    if arguments.out is not None or notes is None or notes.out is None:
        return
    if not os.path.exists(notes.out):
        console.note(
            f"{notes.out} is no longer there: no line is written for the rows after row "
            f"{notes.rows:,}; --out FILE would begin with them."
        )
        return
    path, here = Path(notes.out), Path.cwd()
    arguments.out = path.relative_to(here) if path.is_relative_to(here) else path
    console.note(f"Continuing {arguments.out} after row {notes.rows:,} (--out as before).")


def _require_places(arguments: argparse.Namespace) -> None:
    """Raise ValueError if a file would be lost or could not be written."""
    save, report, out = arguments.save, arguments.report, arguments.out
    files = [path for path in (save, report, out) if path is not None and path != STANDARD_OUTPUT]
    if len(set(files)) < len(files):
        raise ValueError("--save, --report and --out must name different files")
    for path in files:
        options.require_place(path, {"where the rows come from": arguments.source})
    _require_output(arguments)
    if report is not None and report.is_file() and not _is_page(report):
        raise ValueError(f"{report} exists and is not an HTML page: --report would replace it")
    if save is None or not save.exists() or arguments.resume or arguments.overwrite:
        return
    if arguments.start is None or not options.is_same(save, arguments.start):
        raise ValueError(f"{save} exists: --resume continues with it, --overwrite replaces it")


def _require_output(arguments: argparse.Namespace) -> None:
    out = arguments.out
    if out is None:
        if arguments.alarm is not None or arguments.out_format is not None:
            raise ValueError("--alarm and --out-format are about the lines of --out, got no --out")
        return
    if out != STANDARD_OUTPUT and out.exists() and not (arguments.resume or arguments.overwrite):
        raise ValueError(f"{out} exists: --overwrite replaces it")


def _is_page(path: Path) -> bool:
    """Return whether a file is empty or HTML, as a report is."""
    with path.open("rb") as file:
        start = file.read(64).lstrip().lower()
    return not start or start.startswith((b"<!doctype html", b"<html"))


def _kept(arguments: argparse.Namespace) -> Kept | None:
    """Return the saved model to continue with, if any."""
    if arguments.start is not None:
        return Kept.read(arguments.start)
    if arguments.resume and arguments.save.exists():
        found = Kept.read(arguments.save)
        if found.notes is None:
            raise ValueError(
                f"{found.path} has no position in a table to resume at; --from {found.path} "
                "continues with it at the beginning of one"
            )
        return found
    return None


def _layout(arguments: argparse.Namespace, before: Kept | None) -> Layout:
    """Return how the table is to be read: when resuming, as before."""
    if arguments.resume and before is not None and before.notes is not None:
        return before.notes.layout
    return options.layout(arguments)


def _output(arguments: argparse.Namespace, table: Table, before: Kept | None) -> Output | None:
    """Return where the lines go; when resuming, after those that were written before."""
    if arguments.out is None:
        return None
    out, live, kind = arguments.out, table.size is None, arguments.out_format
    if not arguments.resume or out == STANDARD_OUTPUT or not out.exists():
        return Output(out, kind, live=live)
    notes = None if before is None else before.notes
    size = None if notes is None else notes.out_size
    if notes is None or size is None or not _is_its_output(out, notes):
        raise ValueError(f"{out} exists, and {_what_it_has(out, notes)}")
    if kind not in (None, notes.out_format or kind):
        raise ValueError(f"{out} has lines of {notes.out_format}, got --out-format {kind}")
    return Output(out, kind or notes.out_format, live=live, size=size)


def _is_its_output(out: Path, notes: Notes) -> bool:
    """Return whether a file has the lines of the rows learned, moved or not."""
    moved = notes.out is None or not os.path.exists(notes.out)
    if not moved and not options.is_same(out, str(notes.out)):
        return False
    short = out.stat().st_size < (notes.out_size or 0)  # `Output` has a better message
    row = last_row(out, notes.out_size)
    return short or (row is not None and row <= notes.rows)


def _what_it_has(out: Path, notes: Notes | None) -> str:
    """Return what is in a file that cannot be continued, and what to do instead."""
    row, other = last_row(out), "--out with a name that is not in use"
    if notes is None:
        return f"there is no model yet whose rows it has: {other} begins with the first row"
    then = f"{other} begins with row {notes.rows + 1:,}"
    if row is None:
        return f"does not hold lines of --out: {then}"
    if row == notes.rows and notes.out is not None:
        return f"is not {notes.out}, which --resume continues: {then}"
    return f"ends with row {row:,} while the model has learned up to row {notes.rows:,}: {then}"


def _report_new_rate(learning: Learning, before: Kept | None, console: Console) -> None:
    """Report that the rate of alarms has changed, and that they are counted from here on."""
    notes = None if before is None else before.notes
    if learning.alarm is None or notes is None or notes.alarm is None:
        return
    then, now = Alarm.of(notes.alarm).rate, learning.alarm.rate
    if then != now:
        console.note(
            f"Alarms at a false-alarm rate of {100 * now:g} % from here on (--alarm), "
            f"{100 * then:g} % before."
        )


# ---- learning -------------------------------------------------------------------------------


def _run(arguments: argparse.Namespace, learning: Learning, table: Table, console: Console) -> int:
    already, fatal = learning.used, arguments.on_bad_row == "fail"
    session = Session(
        learning=learning,
        bad_rows=BadRows(table, Console(sys.stderr), fatal, "skipped", learning.used),
        checkpoints=Checkpoints(arguments.save, arguments.checkpoint, learning),
        step=_step(arguments, learning),
        console=console,
    )
    if learning.used and table.size is None:
        rows = prose.counted(learning.used + learning.skipped, "row")
        console.note(f"Skipping the first {rows} of {table.name}, learned before ...")
    console.note(_beginning(learning, table))
    try:
        received = session.run()
    except BadRowError:
        _write_report(arguments.report, learning, table, console)
        raise
    except NotNumbersError as error:
        raise ValueError(f"{error}{_advice(error, learning.target)}") from error
    except TooManyCategoriesError as error:
        raise ValueError(f"{error}; {_advice_on_texts(error)}") from error
    _write_report(arguments.report, learning, table, console)
    _print_results(learning, table)
    _report_incomplete_lines(learning, table)
    told = _next_step(arguments, learning, table, already, received)
    if received is not None:
        Console(sys.stderr).note(told)  # also with --quiet
        return 128 + received
    console.note(told)
    return required(arguments.require, _error(learning))


def _error(learning: Learning) -> float | None:
    """Return the error by which --require judges, in units of the variance; None if not known."""
    if not learning.journal.seen:
        return None if learning.score is None else learning.score.error
    recent = learning.journal.recent_ordinary()
    return float(recent.error[0]) if recent.predicted[0] > 0 and recent.relative else None


def _step(arguments: argparse.Namespace, learning: Learning) -> int:
    """Return how many rows to learn at once."""
    if learning.out is not None and learning.out.live:
        return 1  # a row that could not be answered was not learned
    # A method that is not sequential gets the same pieces for any interval of checkpoints.
    return min(STEP, arguments.checkpoint) if learning.model.sequential else STEP


def _advice(error: NotNumbersError, target: str) -> str:
    """Return what to do about columns without numbers."""
    if target in error.columns:
        return f"; {target!r} cannot be the target"
    return (
        f"; --exclude {shlex.quote(joined(error.columns, ','))} would learn from the others alone"
    )


def _advice_on_texts(error: TooManyCategoriesError) -> str:
    """Return what to do about a column with too many different texts."""
    quoted = shlex.quote(joined([str(error.column)], ","))
    without = f"--exclude {quoted} leaves it out"
    if with_units(error.texts):
        return f"these are numbers with a unit: remove the unit, and they are numbers; {without}"
    return f"{without}, and --time {quoted} reads times such as 2024-01-31 13:00"


# ---- messages -------------------------------------------------------------------------------


def _beginning(learning: Learning, table: Table) -> str:
    """Return the first message: the table, the model, and whether it begins with tuning."""
    columns = shorten(", ".join(learning.names), WIDTH, placeholder=" …")
    text = f"Learning {learning.target} from {columns}"
    if learning.used:
        return f"{text}, from {table.unit} {learning.position.line} of {table.name} on ..."
    if learning.model.warming_up:
        return f"{text}; the first {learning.model.arguments()['warmup']} rows tune it ..."
    return f"{text} ..."


def _write_report(path: Path | None, learning: Learning, table: Table, console: Console) -> None:
    if path is None or not learning.model.seen:
        return
    if not learning.journal.seen:
        console.note(f"{path} not written: it would be of rows learned in one pass, and none were")
        return
    title = f"{learning.target}, learned from {Path(table.name).name}"
    page.write(path, learning.summary(), title)
    console.note(f"Wrote {path}")


def _print_results(learning: Learning, table: Table) -> None:
    """Print the results; on standard error if --out is standard output."""
    out = learning.out
    file = sys.stderr if out is not None and out.path == STANDARD_OUTPUT else sys.stdout
    summary = learning.summary()
    say(fill(prose.headline(summary), WIDTH), file)
    for verdict in verdicts(summary):
        say(fill(verdict.sentence, WIDTH), file)
        if verdict.command:
            say(f"  Try: {verdict.command}", file)
    if learning.filled:
        filled = prose.counted(learning.filled, "row")
        columns = [f"{name}: {count:,}" for name, count in learning.missing.items()]
        named = f" ({prose.listed(columns)})" if columns else ""
        say(fill(f"{filled} had missing values{named}, which were filled.", WIDTH), file)
    for sentence in unused_columns(learning.encoder) if learning.model.seen else []:
        say(fill(sentence, WIDTH), file)
    if learning.skipped:
        skipped = prose.counted(learning.skipped, "row")
        say(f"{skipped} of {table.name} could not be used.", file)
    for sentence in mostly_skipped(learning.used, learning.skipped):
        say(fill(sentence, WIDTH), file)
    if out is not None and learning.alarm is not None:
        rate = f"{100 * learning.alarm.rate:g} %"
        since = f" after row {learning.unwatched:,}" if learning.unwatched else ""
        alarms = prose.counted(learning.alarms, "alarm")
        say(f"{alarms}{since} at a false-alarm rate of {rate}.", file)


def _report_incomplete_lines(learning: Learning, table: Table) -> None:
    """Report lines that are, or were, incomplete."""
    if table.remark:
        say(f"pogp: {table.remark}", sys.stderr)
    if table.left:
        say(
            f"pogp: {table.name}, {table.unit} {learning.position.line}: it has no line end yet "
            "and is left for the next --resume, which learns it as it is if the file has not grown",
            sys.stderr,
        )


def _next_step(
    arguments: argparse.Namespace,
    learning: Learning,
    table: Table,
    already: int,
    received: int | None,
) -> str:
    """Return what to do next."""
    save, place = arguments.save, f"{table.unit} {learning.position.line} of {table.name}"
    if save is None or not learning.model.seen:
        stopped = f"Stopped before {place}; nothing" if received else "Nothing"
        return f"{stopped} was saved" + (": --save FILE would have." if save is None else ".")
    if received:
        return f"Stopped before {place}. {_to_continue(arguments, live=table.size is None)}"
    done = "had all rows already" if learning.used == already else "saved"
    return f"{save} {done}. To predict: pogp predict {save} FILE"


def _to_continue(arguments: argparse.Namespace, live: bool) -> str:
    """Return the command that continues: with new rows of a live source, else at the next row."""
    save, out = str(arguments.save), arguments.out
    resume = ["--save", save, "--resume"]
    if not live or arguments.resume:  # a source that was resumed starts again from its first row
        return f"To continue: {_command(arguments, resume, out)}"
    further = ["--from", save, "--save", save, *options.layout_words(arguments)]
    command = _command(arguments, further, None if out is None else _unused(out))
    again = "If it starts again from its first row, use --resume instead of --from"
    return f"To continue with new rows: {command}\n{again} {shlex.quote(save)}."


def _command(arguments: argparse.Namespace, words: list[str], out: Path | None) -> str:
    """Return a command with some words and the options that are not saved with a model."""
    given = {
        "--out": out,
        "--out-format": arguments.out_format,
        "--report": arguments.report,
        "--checkpoint": None if arguments.checkpoint == CHECKPOINT else arguments.checkpoint,
        "--on-bad-row": "fail" if arguments.on_bad_row == "fail" else None,
        "--require": arguments.require,
    }
    pairs = [(name, str(value)) for name, value in given.items() if value is not None]
    quiet = ["--quiet"] if arguments.quiet else []
    return shlex.join(["pogp", "learn", arguments.source, *words, *chain(*pairs), *quiet])


def _unused(path: Path) -> Path:
    """Return a name for a further file of lines: a.csv is followed by a-2.csv and a-3.csv."""
    if path == STANDARD_OUTPUT:
        return path
    stem, _, number = path.stem.rpartition("-")
    if not (stem and number.isdecimal()):
        stem, number = path.stem, "1"
    names = (path.with_name(f"{stem}-{i}{path.suffix}") for i in count(int(number) + 1))
    return next(name for name in names if not name.exists())
