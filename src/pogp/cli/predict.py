"""`pogp predict`: predict the rows of a table."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

import pogp
from pogp import encoding
from pogp.blas import one_thread
from pogp.cli import options
from pogp.cli.console import LISTED, BadRows, Console
from pogp.cli.notes import Notes
from pogp.cli.tables import Batch, Table, open_table
from pogp.cli.tables.records import chosen, ignored_cells, input_columns, shown
from pogp.cli.tables.table import Refusal, find, joined
from pogp.encoding import Encoder
from pogp.encoding.columns import LIMIT, CategoryColumn, Cells
from pogp.encoding.encoder import gaps_of
from pogp.encoding.imputer import Filled
from pogp.files import container
from pogp.models.base import Model
from pogp.report import prose

RESULTS = ("mean", "deviation", "lower", "upper")
OTHER_FORMATS = (".parquet", ".pq", ".feather", ".arrow", ".xlsx", ".xls", ".json", ".gz", ".zip")
"""Endings of names that would promise something else than CSV."""

DESCRIPTION = """\
Predict each row of a table, and write it as CSV with four further columns: the mean of the target,
its standard deviation (noise included), and the ends of the interval that contains it with the
probability --level. Columns are found by their names, in any order; other columns are ignored.
"""

EPILOG = """\
exit codes:
  0    all rows are written; unusable ones have empty results
  2    an error that you can correct: an option, a file, a column
  3    an unusable row, with --on-bad-row fail
  130  Ctrl-C; 141 if the reader of the output has gone

examples:
  pogp predict m.pogp new.csv                              to the screen
  pogp predict m.pogp new.csv --out predictions.csv
  pogp predict m.pogp new.parquet --keep id --level 0.9 --out predictions.csv
  sensor | pogp predict m.pogp - --keep none | dashboard   row by row, as they come
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="a file that --save has written")
    parser.add_argument("source", metavar="SOURCE", help=options.SOURCE)
    _add_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Predict the rows and write them."""
    out: Path | None = arguments.out
    if out is not None:
        if out.suffix.lower() in OTHER_FORMATS:
            raise ValueError(
                f"predictions are written as CSV: --out {out} would not be {out.suffix}"
            )
        options.require_place(out, {"the model": arguments.model, "the table": arguments.source})
        if out.exists() and not arguments.overwrite:
            raise ValueError(f"{out} exists: --overwrite replaces it")
    model = pogp.load(arguments.model)
    console = Console(sys.stderr)
    if getattr(model, "warming_up", False):
        console.note(
            f"pogp: {arguments.model} is still collecting rows to tune itself by; until then it "
            "predicts their mean"
        )
    with open_table(arguments.source, options.layout(arguments)) as table:
        names, encoder = _inputs(arguments, model)
        keep = _kept(arguments.keep, table)
        if arguments.columns is None:
            table.expect(names)
        columns = find(table.names, names, table.name)
        bad_rows = BadRows(table, console, arguments.on_bad_row == "fail", "not predicted")
        strangers = Strangers(encoder)
        sinks = (bad_rows, strangers)
        pieces = _pieces(model, encoder, table, columns, keep, arguments.level, *sinks)
        if out is None:
            for piece in pieces:
                sys.stdout.buffer.write(piece)
                sys.stdout.buffer.flush()  # the reader may be waiting for it
        else:
            container.replace(out, pieces)
    if bad_rows.filled:
        console.note(
            f"pogp: {bad_rows.filled} of {bad_rows.used} rows had missing inputs, which were "
            f"filled; the first is {table.unit} {bad_rows.first_filled}"
        )
    for sentence in strangers.sentences():
        console.note(f"pogp: {sentence}")
    if bad_rows.refused:
        console.note(
            f"pogp: {bad_rows.refused} of {bad_rows.refused + bad_rows.used} rows not predicted"
        )
    return 0


def _inputs(arguments: argparse.Namespace, model: Model) -> tuple[list[str], Encoder]:
    """Return the columns to read, in the order of the model, and how they become inputs."""
    notes = Notes.read(arguments.model)
    if arguments.columns is not None:
        names: list[str] = arguments.columns
    elif notes is not None:
        names = notes.columns
    else:
        raise ValueError(
            f"{arguments.model} was saved in Python and has no names of columns; --columns has to "
            "name them, in the order of the inputs"
        )
    encoder = Encoder.numbers(names) if notes is None else notes.encoding()
    if len(names) != len(encoder.names):
        raise ValueError(
            f"the model has {len(encoder.names)} inputs, got {len(names)}: {', '.join(names)}"
        )
    dimension = model.dictionary.shape[1]
    if model.size and encoder.dimension != dimension:
        raise ValueError(f"the model has {dimension} inputs, got {len(names)}: {', '.join(names)}")
    return names, encoder


def _kept(keep: str, table: Table) -> list[int]:
    """Return the columns that are written before the results."""
    if keep == "none":
        return []
    whole = range(len(table.names))
    columns = list(whole) if keep == "all" else find(table.names, options.listed(keep), table.name)
    for column in columns:
        if table.names[column] in RESULTS:
            raise ValueError(
                f"{table.name} has a column {table.names[column]!r} as the results will have: "
                "--keep names the columns to keep, or none"
            )
    return columns


def _pieces(
    model: Model,
    encoder: Encoder,
    table: Table,
    columns: Sequence[int],
    keep: Sequence[int],
    level: float,
    bad_rows: BadRows,
    strangers: "Strangers",
) -> Iterator[bytes]:
    """Yield the lines to write, batch by batch."""
    results = joined(RESULTS, table.delimiter).encode()
    yield (table.heading(keep) + table.delimiter.encode() if keep else b"") + results + b"\n"
    names = [str(name) for name in encoder.names]
    choice = chosen(columns, encoder.kinds, bad_rows.fatal, target=False)._replace(keep=keep)
    for batch in table.batches(choice, table.start):
        good = bad_rows.before_fatal(batch)
        cells = input_columns(good, encoder.kinds)
        filled = encoding.fill(model, encoder, cells)
        yield b"".join(_rows(model, filled, encoder.dimension, good, table.delimiter, level))
        bad_rows.count_filled(good.lines[good.usable][gaps_of(filled)])
        ignored = ignored_cells(good, names, encoder.kinds)
        bad_rows.report(batch, [*ignored, *strangers.found(good, cells)])
    bad_rows.require_use(at_the_end=True)


class Strangers:
    """Counts the rows with a category that was never learned."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._counts: dict[str, Counter[str]] = {}  # of each column, up to LIMIT texts and others

    def found(self, batch: Batch, cells: Sequence[Cells]) -> list[Refusal]:
        """Count those of a batch; return the rows in which a category is the first of its kind."""
        lines, first = batch.lines[batch.usable], []
        columns = zip(self._encoder.names, self._encoder.columns, cells, strict=True)
        for name, column, texts in columns:
            places = column.strangers(texts) if isinstance(column, CategoryColumn) else []
            for i in places:
                counts, text = self._counts.setdefault(str(name), Counter()), str(texts[i]).strip()
                if text not in counts and len(counts) < LIMIT:
                    reason = f"{name!r} is {shown(text)!r}, a category that was never learned"
                    first.append(Refusal(int(lines[i]), reason, (str(name),)))
                counts[text if text in counts or len(counts) < LIMIT else ""] += 1
        return sorted(first, key=lambda refusal: refusal.line)

    def sentences(self) -> Iterator[str]:
        """Yield a sentence for each column that has some."""
        for name, counts in self._counts.items():
            often = [(text, n) for text, n in counts.most_common() if text][:LISTED]
            listed = [f"{shown(text)!r} in {prose.counted(n, 'row')}" for text, n in often]
            rest = counts.total() - sum(n for _, n in often)
            listed += [f"others in {prose.counted(rest, 'row')}"] if rest else []
            yield f"{name!r} has categories that were never learned: {', '.join(listed)}"


def _rows(
    model: Model,
    filled: Sequence[Filled],
    dimension: int,
    batch: Batch,
    delimiter: str,
    level: float,
) -> Iterator[bytes]:
    """Predict rows; numbers are written so that they read back the same."""
    with one_thread:  # small products, as when learning
        mean, variance = encoding.mixed(model, filled, dimension)
    if mean.ndim > 1:
        raise ValueError(f"the model predicts {mean.shape[1]} outputs, and only one can be written")
    deviation = np.sqrt(variance)
    half = model.reach(level) * deviation
    results = np.column_stack([mean, deviation, mean - half, mean + half])
    predicted = iter(results.tolist())
    nothing = delimiter * (len(RESULTS) - 1)
    for i, usable in enumerate(batch.usable):
        cells = delimiter.join(map(repr, next(predicted))) if usable else nothing
        text = batch.texts[i] + delimiter.encode() if batch.texts else b""
        yield text + cells.encode() + b"\n"


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="where to write (default: standard output)"
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace that file if there is one"
    )
    parser.add_argument(
        "--level",
        type=options.share,
        default=0.95,
        metavar="P",
        help="probability of the interval (default: 0.95)",
    )
    parser.add_argument(
        "--keep",
        default="all",
        metavar="A,B,...",
        help="columns to write before the results: names, 'all' or 'none' (default: all)",
    )
    parser.add_argument(
        "--columns",
        type=options.names,
        metavar="A,B,...",
        help="names of the input columns in this table, in the order of the model (default: the "
        "names used for learning)",
    )
    parser.add_argument(
        "--on-bad-row",
        choices=("empty", "fail"),
        default="empty",
        help="an unusable row: leave its results empty and report its line number, or stop there "
        "(default: empty)",
    )
    options.add_layout(parser)
