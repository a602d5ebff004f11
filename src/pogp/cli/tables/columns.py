"""Which columns of a table are the inputs, and which one is the target."""

import csv
import difflib
from collections.abc import Sequence

LISTED = 12
"""Names of columns in a message."""


class NotNumbersError(ValueError):
    """Columns that hold something else, and what that is."""

    def __init__(self, table: str, columns: Sequence[str], what: str) -> None:
        self.columns = tuple(columns)
        noun = "column" if len(columns) == 1 else "columns"
        quoted = ", ".join(map(repr, columns))
        super().__init__(f"there are no numbers in the {noun} {quoted} of {table} ({what})")


def unnamed(number: int) -> str:
    """Return what a column without a name is called, counted from 1."""
    return f"column {number}"


def listed(text: str) -> list[str]:
    """Return names given as one text, between commas; one that has a comma itself is quoted.

    >>> listed('a, "b,c"')
    ['a', 'b,c']
    """
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]


def find(names: Sequence[str], wanted: Sequence[str], table: str) -> list[int]:
    """Return where columns are; ValueError if one is missing, or there twice."""
    places = []
    for name in wanted:
        found = [column for column, other in enumerate(names) if other == name]
        if not found:
            raise ValueError(f"{table} has no column {name!r}; {_hint(names, name)}")
        if len(found) > 1:
            numbers = " and ".join(str(column + 1) for column in found)
            raise ValueError(f"columns {numbers} of {table} are both called {name!r}: rename one")
        places += found
    for name in wanted:
        if wanted.count(name) > 1:
            raise ValueError(f"column {name!r} is named {wanted.count(name)} times")
    return places


def inputs(
    names: Sequence[str], target: str, columns: Sequence[str] | None, leave_out: Sequence[str]
) -> list[str]:
    """Return the names of the inputs: those asked for, or all but the target and some others.

    A column without a name, such as the row numbers that a data frame writes, has to be asked for.
    """
    if columns is not None:
        if target in columns:
            raise ValueError(f"{target!r} is the target and cannot be an input as well")
        chosen = list(columns)
    else:
        for name in leave_out:
            if name not in names:
                raise ValueError(f"there is no column {name!r} to exclude; {_hint(names, name)}")
        nameless = [unnamed(number) for number in range(1, len(names) + 1)]
        others = {target, *leave_out, *nameless}
        chosen = [name for name in names if name not in others]
    if not chosen:
        raise ValueError(f"no column is left to predict {target!r} from")
    return chosen


def _hint(names: Sequence[str], name: str) -> str:
    """Return what the user may have meant."""
    hint = "it has " + ", ".join(names[:LISTED]) + (", …" if len(names) > LISTED else "")
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        hint = f"did you mean {close[0]!r}? {hint}"
    if all(_is_number(each) for each in names) and names[0] != "1":
        hint += "; if its first row is data and not names, say --no-header"
    return hint


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
