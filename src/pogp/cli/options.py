"""Options of the commands: how their values are read, and checks of file names."""

import argparse
import csv
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from pogp.cli.tables import Layout
from pogp.kernels.stationary import STATIONARY
from pogp.models.selftuning.registry import CAP, METHODS

T = TypeVar("T")
CHECKPOINT = 100_000
"""Samples between two checkpoints."""
RATE = 0.01
"""False alarms per row."""
TOO_POOR = 4
"""The exit code where --require is not met."""
UNSET = argparse.SUPPRESS
"""The default of options of a model: those not given are not in the namespace."""
ONLINE = [name for name, kind in METHODS.items() if kind.online]
KERNELS = {name.lower(): name for name in STATIONARY}
DELIMITERS = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}
SOURCE = (
    "a file of CSV, JSON lines (both may be compressed by gzip) or Parquet, or - for CSV or JSON "
    "lines from standard input"
)
FORMATS = ("csv", "jsonl", "parquet")


def reader(
    convert: Callable[[str], T], holds: Callable[[T], bool], expected: str
) -> Callable[[str], T]:
    """Return a parser of option values that refuses invalid ones."""

    def read(text: str) -> T:
        try:
            value = convert(text)
        except ValueError:
            value = None
        if value is None or not holds(value):
            raise argparse.ArgumentTypeError(f"expected {expected}, got {text!r}")
        return value

    return read


def whole(least: int) -> Callable[[str], int]:
    """Return a reader of whole numbers from `least` up."""
    return reader(int, lambda number: number >= least, f"a whole number ≥ {least}")


at_least_zero = reader(float, lambda number: 0 <= number < float("inf"), "a number ≥ 0")
share = reader(float, lambda number: 0 < number < 1, "a number between 0 and 1")


def or_none(word: str, read: Callable[[str], T]) -> Callable[[str], T | None]:
    """Return a reader that also takes `word`, which stands for None."""
    return lambda text: None if text == word else read(text)


def listed(text: str) -> list[str]:
    """Return names given as one text, separated by commas; a name with a comma is quoted.

    >>> listed('a, "b,c"')
    ['a', 'b,c']
    """
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]


kernel = reader(lambda text: KERNELS.get(text.lower(), ""), bool, f"one of {', '.join(KERNELS)}")
names = reader(listed, lambda found: bool(found) and all(found), "names between commas")
delimiter = reader(
    lambda text: DELIMITERS.get(text, text),
    lambda sign: len(sign) == 1 and sign.isascii() and sign not in '"\r\n',
    "one character, or tab",
)


def setting(text: str) -> tuple[str, object]:
    """Read NAME=VALUE, where the value is a number, true, false, none, or a word.

    >>> setting("batch=50"), setting("view=everywhere")
    (('batch', 50), ('view', 'everywhere'))
    """
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got {text!r}")
    name, words = name.replace("-", "_"), {"true": True, "false": False, "none": None}
    if value.lower() in words:
        return name, words[value.lower()]
    for read in (int, float):
        with suppress(ValueError):
            return name, read(value)
    return name, value


def add_layout(group: "argparse._ActionsContainer") -> None:
    """Add the options about the format of a table."""
    group.add_argument(
        "--format",
        choices=FORMATS,
        help="the format of the table (default: recognised by its first bytes)",
    )
    group.add_argument(
        "--delimiter",
        type=delimiter,
        metavar="C",
        help="delimiter of cells: a character, or tab or space (default: the most frequent of "
        ", ; tab | in the first line, or else a space)",
    )
    group.add_argument(
        "--no-header",
        dest="header",
        action="store_false",
        help="the first row is data; columns are called 1, 2, 3, ...",
    )


def layout(arguments: argparse.Namespace) -> Layout:
    """Return the layout that the options describe."""
    return Layout(arguments.delimiter, arguments.header, arguments.format)


def layout_words(arguments: argparse.Namespace) -> list[str]:
    """Return the options about the format of a table that were given."""
    given = {"--format": arguments.format, "--delimiter": arguments.delimiter}
    words = [word for name, value in given.items() if value for word in (name, value)]
    return [*words, *([] if arguments.header else ["--no-header"])]


# ---- file names -----------------------------------------------------------------------------


def require_place(path: Path, read: dict[str, str | Path]) -> None:
    """Raise ValueError unless the file can be written and is none of those that are `read`."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; expected the name of a file")
    if not path.parent.is_dir():
        raise ValueError(f"{path} cannot be written: there is no folder {path.parent}")
    for what, other in read.items():
        if is_same(path, other):
            raise ValueError(f"{path} is {what}, and would be overwritten")


def is_same(path: Path, other: str | Path) -> bool:
    """Return whether both name the same file, which exists."""
    return path.exists() and os.path.exists(other) and path.samefile(other)


# ---- options of `pogp learn` -----------------------------------------------------------------


def add_row_options(group: "argparse._ArgumentGroup") -> None:
    """Add the options of `pogp learn` about the rows of the table."""
    group.add_argument("--target", metavar="NAME", help="the column to learn")
    which = group.add_mutually_exclusive_group()
    which.add_argument(
        "--columns",
        type=names,
        metavar="A,B,...",
        help="the columns to learn it from (default: all others that have a name)",
    )
    which.add_argument(
        "--exclude",
        type=names,
        default=[],
        metavar="A,B,...",
        help="columns to leave out; all others are used",
    )
    group.add_argument(
        "--time",
        type=names,
        default=[],
        metavar="A,B,...",
        help="columns with times, ISO 8601 or Unix. They are encoded as elapsed time and as "
        "position within the day, week and year (default: text columns that contain only "
        "ISO 8601 times)",
    )
    group.add_argument(
        "--on-bad-row",
        choices=("skip", "fail"),
        default="skip",
        help="what to do with a row without a target or with the wrong number of cells: report "
        "its line number and skip it, or stop. 'fail' also stops at text in a numeric column "
        "(default: skip)",
    )
    add_layout(group)


def add_file_options(group: "argparse._ArgumentGroup") -> None:
    """Add the options of `pogp learn` about passes over the table and the file of the model."""
    group.add_argument(
        "--passes",
        type=int,
        choices=(1, 2),
        default=1,
        help="1: learn row by row, in order (default). 2: for files whose order does not matter: "
        "choose points from a random sample of rows, then add the information of all rows, on all "
        "cores",
    )
    group.add_argument("--save", type=Path, metavar="FILE", help="file to save the model in")
    group.add_argument(
        "--checkpoint",
        type=whole(1),
        default=CHECKPOINT,
        metavar="N",
        help=f"save the model about every N samples, and once a minute (default: {CHECKPOINT})",
    )
    what = group.add_mutually_exclusive_group()
    what.add_argument(
        "--resume",
        action="store_true",
        help="continue at the row where the run that wrote the --save file stopped; start at the "
        "first row if there is no file",
    )
    what.add_argument(
        "--from",
        dest="start",
        type=Path,
        metavar="MODEL",
        help="continue with a model of another table, at the beginning of this one; --save may "
        "name the same file, which is then replaced",
    )
    group.add_argument(
        "--overwrite", action="store_true", help="replace the file of --save if there is one"
    )


def add_output_options(group: "argparse._ArgumentGroup") -> None:
    """Add the options of `pogp learn` about further output."""
    group.add_argument(
        "--report",
        type=Path,
        metavar="PAGE",
        help="write a page with figures, to open in a browser; an existing page is replaced",
    )
    group.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="write one line per row as it is learned, with its prediction, its surprise "
        "(absolute error in standard deviations) and an alarm flag; - is standard output",
    )
    group.add_argument(
        "--out-format",
        choices=("csv", "jsonl"),
        help="format of --out (default: by file extension, CSV for -)",
    )
    group.add_argument(
        "--alarm",
        type=share,
        metavar="RATE",
        help="target rate of false alarms, calibrated on the stream (default: the rate of the "
        f"continued model, else {RATE:g}); a new rate restarts the calibration",
    )
    group.add_argument(
        "--require",
        type=at_least_zero,
        metavar="SMSE",
        help=f"exit with code {TOO_POOR} if the mean squared error of the last tenth of the rows, "
        "divided by the variance of the target, is larger",
    )
    group.add_argument(
        "--quiet",
        action="store_true",
        help="print only results, unusable rows and, when stopped, the command that continues",
    )


def add_model_options(group: "argparse._ArgumentGroup") -> None:
    """Add the options of `pogp learn` about the model."""
    group.add_argument(
        "--method",
        choices=ONLINE,
        default=UNSET,
        metavar="NAME",
        help=f"{', '.join(ONLINE)} (default: online)",
    )
    group.add_argument(
        "--max-size",
        type=or_none("none", whole(1)),
        default=UNSET,
        metavar="M",
        help=f"cap on the model order, or 'none' except for online (default: {CAP})",
    )
    group.add_argument(
        "--budget",
        type=or_none("none", at_least_zero),
        default=UNSET,
        metavar="EPS",
        help="largest Hellinger distance that the removals of one step may cause; 'none' removes "
        "points only to meet --max-size (default: 0.1 absorbing, 1e-5 pog)",
    )
    group.add_argument(
        "--forgetting",
        type=at_least_zero,
        default=UNSET,
        metavar="L",
        help="forgetting factor: weight of earlier rows after each row (methods absorbing and "
        "krls-t; default: 1 and 0.999)",
    )
    group.add_argument(
        "--option",
        type=setting,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any other option of the method, by the name it has in Python; may be repeated",
    )


def add_tuning_options(group: "argparse._ArgumentGroup") -> None:
    """Add the options of `pogp learn` about scales, hyperparameters and variances."""
    group.add_argument(
        "--no-calibrate",
        dest="calibrate",
        action="store_false",
        default=UNSET,
        help="do not calibrate variances",
    )
    group.add_argument(
        "--kernel",
        type=kernel,
        default=UNSET,
        metavar="NAME",
        help=f"{', '.join(KERNELS)} (default: rbf)",
    )
    group.add_argument(
        "--warmup",
        type=whole(2),
        default=UNSET,
        metavar="N",
        help="number of first rows for scaling and tuning (default: 300)",
    )
    group.add_argument(
        "--no-scale",
        dest="scale",
        action="store_false",
        default=UNSET,
        help="do not standardise inputs and target",
    )
    group.add_argument(
        "--seed", type=whole(0), default=UNSET, metavar="N", help="random seed (default: 0)"
    )
