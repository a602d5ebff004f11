"""Readers of what is typed after options, for argparse, and options that commands share."""

import argparse
from collections.abc import Callable
from typing import TypeVar

from pogp.cli.tables import Layout
from pogp.cli.tables.table import listed

T = TypeVar("T")
DELIMITERS = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}
SOURCE = (
    "a file of CSV, JSON lines (both may be compressed by gzip) or Parquet, or - for CSV or JSON "
    "lines from standard input"
)
FORMATS = ("csv", "jsonl", "parquet")


def whole(least: int) -> Callable[[str], int]:
    """Return a reader of whole numbers from `least` up."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"expected a whole number ≥ {least}, got {text!r}")
        return number

    return read


def at_least_zero(text: str) -> float:
    """Read a finite number ≥ 0."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number ≥ 0, got {text!r}")
    return number


def share(text: str) -> float:
    """Read a number strictly between 0 and 1."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"expected a number between 0 and 1, got {text!r}")
    return number


def or_none(word: str, read: Callable[[str], T]) -> Callable[[str], T | None]:
    """Return a reader that also takes `word`, which stands for None."""
    return lambda text: None if text == word else read(text)


def names(text: str) -> list[str]:
    """Read the names of columns, between commas."""
    found = listed(text)
    if not all(found) or not found:
        raise argparse.ArgumentTypeError(f"expected names between commas, got {text!r}")
    return found


def delimiter(text: str) -> str:
    """Read what lies between two cells: a character, or the name of one."""
    sign = DELIMITERS.get(text, text)
    if len(sign) != 1 or not sign.isascii() or sign in '"\r\n':
        raise argparse.ArgumentTypeError(f"expected one character, or tab, got {text!r}")
    return sign


def setting(text: str) -> tuple[str, object]:
    """Read NAME=VALUE, where the value is a number, true, false, none, or a word.

    >>> setting("batch=50"), setting("view=everywhere")
    (('batch', 50), ('view', 'everywhere'))
    """
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got {text!r}")
    words = {"true": True, "false": False, "none": None}
    if value.lower() in words:
        return name.replace("-", "_"), words[value.lower()]
    for read in (int, float):
        try:
            return name.replace("-", "_"), read(value)
        except ValueError:
            pass
    return name.replace("-", "_"), value


def add_layout(group: "argparse._ActionsContainer") -> None:
    """Add what may have to be said about a table."""
    group.add_argument(
        "--format",
        choices=FORMATS,
        help="the format of the table (default: recognised by its first bytes)",
    )
    group.add_argument(
        "--delimiter",
        type=delimiter,
        metavar="C",
        help="what lies between two cells: a character, or tab or space (default: whichever of "
        ", ; tab | is most frequent in the first line, or else a space)",
    )
    group.add_argument(
        "--no-header",
        dest="header",
        action="store_false",
        help="the first row is data; columns are called 1, 2, 3, ...",
    )


def layout(arguments: argparse.Namespace) -> Layout:
    """Return what was said about a table."""
    return Layout(arguments.delimiter, arguments.header, arguments.format)
