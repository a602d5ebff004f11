"""`pogp learn`: a table into a model, however long the table is."""

import argparse
import math
import shlex
import sys
from contextlib import nullcontext
from pathlib import Path
from textwrap import fill, shorten

from pogp.cli import options, passes, preparation
from pogp.cli.learning import Checkpoints, Learning
from pogp.cli.output import STANDARD_OUTPUT
from pogp.cli.preparation import CAP, RATE
from pogp.cli.progress import Console
from pogp.cli.session import Session
from pogp.cli.tables import Table, open_table
from pogp.cli.tables.records import joined
from pogp.cli.tables.table import NotNumbersError
from pogp.cli.tally import BadRowError, Tally
from pogp.kernels.stationary import STATIONARY
from pogp.models.selftuning.registry import METHODS
from pogp.report import page, prose
from pogp.report.table import WIDTH
from pogp.report.verdicts import verdicts

STEP = 1000
"""Samples learned at once: between them it can be stopped."""
CHECKPOINT = 100_000
TOO_POOR = 4
"""The exit code where --require is not met."""
ONLINE = [name for name, kind in METHODS.items() if kind.online]
KERNELS = {name.lower(): name for name in STATIONARY}

DESCRIPTION = """\
Learn to predict one column of a table from others, row by row: the rows are read once, in order,
and memory does not grow with their number. Each row is predicted before it is learned, so that the
scores in the end are honest.
"""

EPILOG = f"""\
the model:
  By default pogp.OnlineGP with at most {CAP} points: scales, kernel, noise and forgetting are found
  by the model and revised as the rows come. With another --method it is pogp.SelfTuning: the first
  300 rows give the means and deviations by which inputs and target are scaled, and the
  length-scales and the noise, and are then learned as all others. If the table ends before, the
  rows that there are do; while the target never changes, it waits for more.

stopping and going on:
  --save keeps the model every {CHECKPOINT:,} rows and every minute (--checkpoint), in the end, and
  after Ctrl-C, SIGTERM or SIGHUP; the file is always whole, whatever happens. --resume goes on with
  the same table from there, as if it had never stopped; standard input has to be the same again,
  from its first row. --from goes on with another table: the next day's file, or a live stream.

exit codes:
  0    all rows were learned; those that were skipped were told of
  2    what you can put right: an option, a file, a column
  3    a row that cannot be used, with --on-bad-row fail; what came before it is saved
  4    the error is larger than --require allows; the model is saved
  130  Ctrl-C, 143 SIGTERM, 129 SIGHUP: what was learned is saved

examples:
  pogp learn data.csv --target y --save m.pogp --report report.html
  pogp learn data.csv --target y --columns a,b,c --save m.pogp
  pogp learn data.csv --save m.pogp --resume            after an interruption, or when it has grown
  pogp learn tuesday.csv --from monday.pogp --save tuesday.pogp
  sensor | pogp learn - --target y --save m.pogp --checkpoint 1000
  sensor | pogp learn - --target y --out - --alarm 0.001 | grep ',1$'     alarms as they come
  pogp predict m.pogp new.csv --out predictions.csv
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to those of `pogp`."""
    parser = subparsers.add_parser(
        "learn",
        help="learn a column of a CSV or Parquet file, or of standard input",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command=execute)
    parser.add_argument("source", metavar="SOURCE", help=options.SOURCE)
    _add_row_options(parser.add_argument_group("rows"))
    _add_file_options(parser.add_argument_group("files"))
    _add_model_options(parser.add_argument_group("model"))


def execute(arguments: argparse.Namespace) -> int:
    """Learn, save and report."""
    if arguments.passes == 2:
        return passes.execute(arguments)
    preparation.require_places(arguments)
    before = preparation.kept(arguments)
    console = Console(None if arguments.quiet else sys.stderr)
    if arguments.resume and before is None:
        console.note(f"{arguments.save} is not there yet: starting at the first row.")
    with open_table(arguments.source, preparation.layout(arguments, before)) as table:
        learning = preparation.begin(arguments, table, before)
        with preparation.output(arguments, table, before) or nullcontext() as learning.out:
            return _run(arguments, learning, table, console)


def _run(arguments: argparse.Namespace, learning: Learning, table: Table, console: Console) -> int:
    session, already = _session(arguments, learning, table, console), learning.used
    console.note(_beginning(learning, table))
    try:
        received = session.run()
    except BadRowError:
        _write_report(arguments.report, learning, table, console)
        raise
    except NotNumbersError as error:
        raise ValueError(f"{error}{_way_out(error, learning.target)}") from error
    _write_report(arguments.report, learning, table, console)
    _tell(learning, table)
    console.note(_next_step(arguments, learning, table, already, received))
    if received is not None:
        return 128 + received
    return _required(arguments.require, learning)


def _required(limit: float | None, learning: Learning) -> int:
    """Return the exit code for an error that --require allows, or does not."""
    recent = learning.journal.recent() if learning.journal.seen else None
    known = recent is not None and recent.predicted[0] > 0 and recent.relative
    error = float(recent.error[0]) if recent is not None and known else math.inf
    if limit is None or error <= limit:
        return 0
    text = f"{error:.4g}" if known else "not known"
    print(f"pogp: --require {limit:g} is not met: the SMSE is {text}", file=sys.stderr)
    return TOO_POOR


def _session(
    arguments: argparse.Namespace, learning: Learning, table: Table, console: Console
) -> Session:
    fatal = arguments.on_bad_row == "fail"
    return Session(
        learning=learning,
        table=table,
        tally=Tally(table, Console(sys.stderr), fatal, "skipped", learning.used),
        checkpoints=Checkpoints(arguments.save, arguments.checkpoint, learning, table),
        step=_step(arguments, learning),
        console=console,
    )


def _step(arguments: argparse.Namespace, learning: Learning) -> int:
    """Return how many rows to learn at once."""
    if learning.out is not None and learning.out.live:
        return 1  # a row that could not be answered was not learned
    # Where pieces matter they are the same whatever the checkpoints are.
    return min(STEP, arguments.checkpoint) if learning.model.sequential else STEP


def _way_out(error: NotNumbersError, target: str) -> str:
    """Return what to do about columns without numbers."""
    if target in error.columns:
        return f"; {target!r} cannot be the target"
    return (
        f"; --exclude {shlex.quote(joined(error.columns, ','))} would learn from the others alone"
    )


# ---- what is told ---------------------------------------------------------------------------


def _beginning(learning: Learning, table: Table) -> str:
    """Say what will be done, and that it may take a moment before there is anything to see."""
    columns = shorten(", ".join(learning.columns), WIDTH, placeholder=" …")
    text = f"Learning {learning.target} from {columns}"
    if learning.used:
        return f"{text}, from {table.unit} {learning.position.line} of {table.name} on ..."
    if learning.model.warming_up:
        return f"{text}; the first {learning.model.arguments()['warmup']} rows tune it ..."
    return f"{text} ..."


def _write_report(path: Path | None, learning: Learning, table: Table, console: Console) -> None:
    if path is None or not learning.model.seen:
        return
    title = f"{learning.target}, learned from {Path(table.name).name}"
    page.write_subject(path, learning.subject(), title)
    console.note(f"Wrote {path}")


def _tell(learning: Learning, table: Table) -> None:
    """Say what was learned; on standard error where the rows go to standard output."""
    out = learning.out
    file = sys.stderr if out is not None and out.path == STANDARD_OUTPUT else sys.stdout
    subject = learning.subject()
    print(fill(prose.headline(subject), WIDTH), file=file)
    for verdict in verdicts(subject):
        print(fill(verdict.sentence, WIDTH), file=file)
        print(f"  Try: {verdict.command}", file=file)
    if learning.skipped:
        skipped = prose.counted(learning.skipped, "row")
        print(f"{skipped} of {table.name} could not be used.", file=file)
    if out is not None and learning.alarm is not None:
        rate = f"{100 * learning.alarm.rate:g} %"
        print(f"{prose.counted(out.alarms, 'alarm')} at a false-alarm rate of {rate}.", file=file)


def _next_step(
    arguments: argparse.Namespace,
    learning: Learning,
    table: Table,
    already: int,
    received: int | None,
) -> str:
    """Say what to do next."""
    save, place = arguments.save, f"{table.unit} {learning.position.line} of {table.name}"
    if save is None:
        stopped = f"Stopped before {place}; nothing" if received else "Nothing"
        return f"{stopped} was saved: --save FILE would have."
    if received:
        command = ["pogp", "learn", arguments.source, "--save", str(save), "--resume"]
        return f"Stopped before {place}. To go on: {shlex.join(command)}"
    done = "had all rows already" if learning.used == already else "saved"
    return f"{save} {done}. To predict: pogp predict {save} FILE"


# ---- options --------------------------------------------------------------------------------


def _add_row_options(group: "argparse._ArgumentGroup") -> None:
    group.add_argument("--target", metavar="NAME", help="the column to learn")
    which = group.add_mutually_exclusive_group()
    which.add_argument(
        "--columns",
        type=options.names,
        metavar="A,B,...",
        help="the columns to learn it from (default: all others that have a name)",
    )
    which.add_argument(
        "--exclude",
        type=options.names,
        default=[],
        metavar="A,B,...",
        help="columns to leave out, where all others are used",
    )
    group.add_argument(
        "--on-bad-row",
        choices=("skip", "fail"),
        default="skip",
        help="what to do about a row that cannot be used, since a number is missing, say: tell of "
        "it with its line number and go on, or end there (default: skip)",
    )
    passes.add_option(group)
    options.add_layout(group)


def _add_file_options(group: "argparse._ArgumentGroup") -> None:
    group.add_argument("--save", type=Path, metavar="FILE", help="where to keep the model")
    group.add_argument(
        "--checkpoint",
        type=options.whole(1),
        default=CHECKPOINT,
        metavar="N",
        help="save it at the first opportunity after so many samples, and once a minute "
        f"(default: {CHECKPOINT})",
    )
    what = group.add_mutually_exclusive_group()
    what.add_argument(
        "--resume",
        action="store_true",
        help="go on in the same table where the file of --save stopped; begin if there is none",
    )
    what.add_argument(
        "--from",
        dest="start",
        type=Path,
        metavar="MODEL",
        help="go on with a model of another table, at the beginning of this one; --save may name "
        "the same file, which is then replaced",
    )
    group.add_argument(
        "--overwrite", action="store_true", help="replace the file of --save if there is one"
    )
    group.add_argument(
        "--report",
        type=Path,
        metavar="PAGE",
        help="write a page about it, to be opened in a browser; replaced if there",
    )
    group.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="write a line per row as it is learned, with its prediction, how surprising it was "
        "and whether it is an alarm; - is standard output",
    )
    group.add_argument(
        "--out-format",
        choices=("csv", "jsonl"),
        help="of --out: CSV or JSON lines (default: by the name of the file, CSV for -)",
    )
    group.add_argument(
        "--alarm",
        type=options.share,
        metavar="RATE",
        help="share of ordinary rows that may raise a false alarm, calibrated on the stream "
        f"itself (default: {RATE:g})",
    )
    group.add_argument(
        "--require",
        type=options.at_least_zero,
        metavar="SMSE",
        help=f"exit with code {TOO_POOR} if the squared error over the last tenth of the rows, as "
        "a share of the variance of the target, is larger",
    )
    group.add_argument("--quiet", action="store_true", help="tell of results and bad rows alone")


def _add_model_options(group: "argparse._ArgumentGroup") -> None:
    # Those that are not given stay away, so that a resumed model can be held against the others.
    unset = argparse.SUPPRESS
    group.add_argument(
        "--method",
        choices=ONLINE,
        default=unset,
        metavar="NAME",
        help=f"{', '.join(ONLINE)} (default: online)",
    )
    group.add_argument(
        "--max-size",
        type=options.or_none("none", options.whole(1)),
        default=unset,
        metavar="M",
        help=f"cap on the model order, or 'none' (default: {CAP})",
    )
    group.add_argument(
        "--budget",
        type=options.or_none("none", options.at_least_zero),
        default=unset,
        metavar="EPS",
        help="Hellinger distance that one step of compression may cost, or 'none' to remove for "
        "--max-size only (default: 0.1 absorbing, 1e-5 pog)",
    )
    group.add_argument(
        "--forgetting",
        type=options.at_least_zero,
        default=unset,
        metavar="L",
        help="what a row is worth after one more; below 1 for streams that drift (default: 1)",
    )
    group.add_argument(
        "--no-calibrate",
        dest="calibrate",
        action="store_false",
        default=unset,
        help="do not scale variances by the residuals",
    )
    group.add_argument(
        "--kernel",
        type=_kernel,
        default=unset,
        metavar="NAME",
        help=f"{', '.join(KERNELS)} (default: rbf)",
    )
    group.add_argument(
        "--warmup",
        type=options.whole(2),
        default=unset,
        metavar="N",
        help="rows that set the scales and the hyperparameters (default: 300)",
    )
    group.add_argument(
        "--no-scale",
        dest="scale",
        action="store_false",
        default=unset,
        help="take inputs and target as they are, not less their means over their deviations",
    )
    group.add_argument(
        "--seed", type=options.whole(0), default=unset, metavar="N", help="(default: 0)"
    )
    group.add_argument(
        "--option",
        type=options.setting,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any other option of the method, by the name it has in Python; may be repeated",
    )


def _kernel(text: str) -> str:
    if text.lower() not in KERNELS:
        raise argparse.ArgumentTypeError(f"expected one of {', '.join(KERNELS)}, got {text!r}")
    return KERNELS[text.lower()]
