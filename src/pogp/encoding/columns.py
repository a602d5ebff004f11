"""Columns of raw cells as numbers: numbers, times and categories.

Each kind has a `width`, the number of inputs that it becomes; `labels`, their names; and `encode`,
which returns them for some cells, NaN where a cell is missing or cannot be read. A column without
any value so far is undecided. It has one input and keeps one when its first value comes, since the
number of inputs of a model never changes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Sequence
from datetime import UTC, date, datetime
from itertools import product
from numbers import Real
from typing import Any, ClassVar, TypeAlias, TypeGuard

import numpy as np

from pogp.arrays import LARGEST, Array

Cells: TypeAlias = Sequence[object] | Array
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "nil", "-", "?", "<na>", "nat"})
"""Texts, in lower case, that stand for a missing value."""
LIMIT, FEW = 100, 10
"""The most categories of a column, and of one whose texts are numbers without a warning."""
CONVERT = "convert them first, with float or pandas.to_numeric"
DAY = 86400.0
PERIODS = {"day": DAY, "week": 7 * DAY, "year": 365.2425 * DAY}
"""Seconds of the rhythms of a calendar."""
MONDAY = -3 * DAY
"""Weeks begin on Mondays, and 1970 began on a Thursday."""
MILLISECONDS = 1e11
"""Unix times beyond this are in milliseconds."""
CALENDAR = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
"""Dates written as a number, by its digits."""
CENTURIES = 1900, 2100
"""The years of such dates."""
OTHER_DATE = re.compile(r"\d{1,2}([./-])\d{1,2}\1(\d{4}|\d\d)(\s.*)?")
"""A date that begins with the day or the month, which only a person can tell."""
WITH_UNIT = re.compile(r"[+-]?\d*\.?\d+(e[+-]?\d+)?\s*[^\d\s_.,:;-]{1,8}")
"""A number and its unit, such as 6.74 m/s."""


DATES = (
    "write dates as 2024-02-05, for example with pandas.to_datetime(..., dayfirst=True), or False "
    "if the month comes first"
)


class TooManyCategoriesError(ValueError):
    """A column with too many different texts to be categories."""

    column: Hashable = None
    """Its name."""
    texts: tuple[str, ...] = ()
    """Some of them."""


def is_missing(cell: object) -> bool:
    """Return whether a cell is a missing value: None, NaN, NaT, blank text or "NA"."""
    if isinstance(cell, str):
        return cell.strip().lower() in MISSING
    return cell is None or type(cell).__name__ == "NAType" or bool(cell != cell)


def require_times(cells: Cells) -> None:
    """Raise ValueError if there are cells and none of them is a time."""
    given = [cell for cell in cells if not is_missing(cell)]
    if given and not np.isfinite(as_times(given)).any():
        hint = f": {DATES}" if isinstance(given[0], str) and other_dates(given) else ""
        raise ValueError(f"it must have times such as 2024-01-31 13:00, got {given[0]!r}{hint}")


def other_dates(cells: Cells) -> str:
    """Return the first text if all are dates that do not begin with the year.

    >>> other_dates(["05.02.2024", None, "15.02.2024 12:00"]), other_dates(["5.2", "x"])
    ('05.02.2024', '')
    """
    texts = [str(cell).strip() for cell in cells if not is_missing(cell)]
    return texts[0] if texts and all(map(OTHER_DATE.fullmatch, texts)) else ""


def with_units(texts: Iterable[str]) -> bool:
    """Return whether all texts are a number with a unit.

    >>> with_units(["6.74 m/s", "12%", "-3 °C"]), with_units(["r12", "3-b", "7"])
    (True, False)
    """
    return all(map(WITH_UNIT.fullmatch, texts))


class NumberColumn:
    """Numbers as they are."""

    kind: ClassVar[str] = "number"
    width: ClassVar[int] = 1

    def labels(self, name: str) -> list[str]:
        """Return the names of the inputs."""
        return [name]

    def encode(self, cells: Cells) -> Array:
        """Return the numbers (n, 1)."""
        return as_numbers(cells).reshape(-1, 1)

    def strangers(self, cells: Cells) -> list[int]:
        """Return the places of texts that are no numbers."""
        if _are_numbers(cells):
            return []
        texts = [(i, cell) for i, cell in enumerate(cells) if isinstance(cell, str)]
        return [i for i, text in texts if math.isnan(_number(text)) and not is_missing(text)]

    def admit(self, cells: Cells) -> NumberColumn:
        """Return the column after learning cells."""
        return self

    def state(self) -> dict[str, Any]:
        """Return the state, as JSON can hold it."""
        return {}


class TimeColumn:
    """Times as the days since the first one, and as places in the day, the week and the year.

    A place in a period is a point on a circle, its sine and cosine. A rhythm that the stream does
    not have, such as the hour in daily data, does not move and is left out by the model. With a
    width of 1 there are only the days.
    """

    kind: ClassVar[str] = "time"
    full: ClassVar[int] = 1 + 2 * len(PERIODS)

    def __init__(self, origin: float | None = None, width: int = full) -> None:
        self.origin = origin  # in seconds of Unix time; None before the first cell
        self.width = width

    def labels(self, name: str) -> list[str]:
        """Return the names of the inputs."""
        circles = [f"{name} ({part} of {period})" for period in PERIODS for part in ("sin", "cos")]
        return [f"{name} (days)", *circles][: self.width]

    def encode(self, cells: Cells) -> Array:
        """Return elapsed days, and points on the circles (n, width)."""
        times = as_times(cells)
        origin = _first(times) if self.origin is None else self.origin
        parts = [(times - origin) / DAY]
        for period in PERIODS.values():
            angle = 2 * math.pi * np.mod((times - MONDAY) / period, 1.0)
            parts += [np.sin(angle), np.cos(angle)]
        return np.column_stack(parts[: self.width])

    def admit(self, cells: Cells) -> TimeColumn:
        """Return the column after learning cells; the first one is its origin."""
        times = as_times(cells) if self.origin is None else np.empty(0)
        known = not np.isnan(times).all()
        return TimeColumn(_first(times), self.width) if known else self

    def state(self) -> dict[str, Any]:
        """Return the state, as JSON can hold it."""
        return {"origin": self.origin, **_narrow(self)}


class CategoryColumn:
    """Texts as points in four dimensions, in the order in which they first appear.

    The points are those of the lattice D4, nearest first: any two of them are at least 1 apart, the
    first eight at least √2. The number of inputs stays the same however many categories appear. A
    category that was never learned is a missing value. With a width of 1 the points are the whole
    numbers 1, -1, 2, -2 and so on.
    """

    kind: ClassVar[str] = "category"
    full: ClassVar[int] = 4

    def __init__(self, values: Iterable[str] = (), width: int = full) -> None:
        self.values = {value: i for i, value in enumerate(values)}
        self.width = width

    def labels(self, name: str) -> list[str]:
        """Return the names of the inputs."""
        return [f"{name} (code {i})" for i in range(1, self.width + 1)]

    def encode(self, cells: Cells) -> Array:
        """Return the points (n, width)."""
        known = [self.values.get(text, -1) if text is not None else -1 for text in _texts(cells)]
        codes = CODES if self.width == self.full else LINE
        return np.vstack([codes, np.full((1, self.width), np.nan)])[known]

    def strangers(self, cells: Cells) -> list[int]:
        """Return the places of texts that were never learned."""
        texts = enumerate(_texts(cells))
        return [i for i, text in texts if text is not None and text not in self.values]

    def admit(self, cells: Cells) -> CategoryColumn:
        """Return the column with new categories; ValueError if they are too many."""
        values = dict.fromkeys(self.values)
        values.update(dict.fromkeys(text for text in _texts(cells) if text is not None))
        if len(values) == len(self.values):
            return self
        if len(values) > LIMIT:
            kind = "as identifiers and free text have, and not categories"
            if np.isfinite(read_numbers(values)).all():
                kind = f"all of them numbers; if they are quantities, {CONVERT}"
            text = list(values)[LIMIT]
            error = TooManyCategoriesError(
                f"it has more than {LIMIT} different texts, {text!r} for example, {kind}"
            )
            error.texts = tuple(values)
            raise error
        return CategoryColumn(values, self.width)

    def suspect(self) -> str:
        """Return a category if all are numbers, not all whole as codes, and more than a few."""
        texts = list(self.values)
        numbers = read_numbers(texts) if len(texts) > FEW else np.array([math.nan])
        return texts[-1] if np.isfinite(numbers).all() and (numbers % 1 != 0).any() else ""

    def state(self) -> dict[str, Any]:
        """Return the state, as JSON can hold it."""
        return {"values": list(self.values), **_narrow(self)}


class UndecidedColumn:
    """A column without a value so far. The first values determine its kind."""

    kind: ClassVar[str] = "undecided"
    width: ClassVar[int] = 1

    def __init__(self, numbers_in_text: bool = False) -> None:
        self.numbers_in_text = numbers_in_text

    def labels(self, name: str) -> list[str]:
        """Return the names of the inputs."""
        return [name]

    def encode(self, cells: Cells) -> Array:
        """Return missing values (n, 1)."""
        return np.full((len(cells), self.width), np.nan)

    def admit(self, cells: Cells) -> Column:
        """Return the column after learning cells; it keeps its one input."""
        column = column_for(alike(cells), self.numbers_in_text)
        if isinstance(column, UndecidedColumn):
            return self
        if not isinstance(column, NumberColumn):
            column.width = self.width
        return column.admit(cells)

    def state(self) -> dict[str, Any]:
        """Return the state, as JSON can hold it."""
        return {"numbers_in_text": self.numbers_in_text}


Column: TypeAlias = NumberColumn | TimeColumn | CategoryColumn | UndecidedColumn
KINDS: dict[str, type[Column]] = {
    kind.kind: kind for kind in (NumberColumn, TimeColumn, CategoryColumn, UndecidedColumn)
}


def _narrow(column: TimeColumn | CategoryColumn) -> dict[str, Any]:
    """Return the width of a column for its state; nothing if it has all its inputs."""
    return {} if column.width == column.full else {"width": column.width}


def column_for(cells: Cells, numbers_in_text: bool = False) -> Column:
    """Return a column for cells of this kind; an undecided one if all cells are missing.

    Text is a category, unless it is the text of times. With `numbers_in_text`, as in CSV, it is a
    number if most cells are.
    """
    if _are_numbers(cells):
        empty = bool(np.isnan(cells).all())
        return UndecidedColumn(numbers_in_text) if empty else NumberColumn()
    present = [cell for cell in cells if not is_missing(cell)]
    if not present:
        return UndecidedColumn(numbers_in_text)
    texts = [cell for cell in present if isinstance(cell, str)]
    if not texts and all(isinstance(cell, date | np.datetime64) for cell in present):
        return TimeColumn()
    if not texts:
        return NumberColumn()
    if not numbers_in_text and len(texts) < len(present):
        other = next(cell for cell in present if not isinstance(cell, str))
        raise ValueError(f"it has texts and other cells, got {texts[0]!r} and {other!r}")
    if numbers_in_text and 2 * np.isfinite(read_numbers(present)).sum() >= len(present):
        return NumberColumn()
    if np.isnan(read_numbers(texts)).all() and not np.isnan(as_times(texts)).any():
        return TimeColumn()
    return CategoryColumn()


# ---- cells ----------------------------------------------------------------------------------


def alike(cells: Cells) -> Cells:
    """Return the cells that are there and are texts, or are not, as the first of them."""
    if _are_numbers(cells):
        return cells
    present = [cell for cell in cells if not is_missing(cell)]
    return [cell for cell in present if isinstance(cell, str) == isinstance(present[0], str)]


def _are_numbers(cells: Cells) -> TypeGuard[Array]:
    """Return whether cells are an array of numbers."""
    return isinstance(cells, np.ndarray) and cells.dtype.kind in "biuf"


def as_numbers(cells: Cells) -> Array:
    """Return numbers, NaN for missing values and for texts that are not numbers.

    TypeError or ValueError for anything else.
    """
    if _are_numbers(cells):
        numbers = cells.astype(np.float64)
    else:
        numbers = np.array([_number(cell) for cell in cells], dtype=np.float64)
    if (np.abs(numbers) >= LARGEST).any():
        bad = numbers[np.abs(numbers) >= LARGEST][0]
        raise ValueError(f"it must have finite numbers below {LARGEST:g} in size, got {bad}")
    return numbers


def _number(cell: object) -> float:
    if is_missing(cell):
        return math.nan
    if isinstance(cell, Real | np.bool_) and not isinstance(cell, np.timedelta64):
        try:
            return float(cell)
        except OverflowError:  # an integer of hundreds of digits
            return math.inf
    if isinstance(cell, str):
        number = read_number(cell)
        return number if abs(number) < LARGEST else math.nan
    try:
        return float(cell)  # type: ignore[arg-type]  # a Decimal, say
    except (TypeError, ValueError):
        raise TypeError(
            f"argument must be a string, a number or a time, got {cell!r}; make a duration a "
            "number (.dt.total_seconds() in pandas) and a period a time (.dt.to_timestamp())"
        ) from None


def read_numbers(cells: Iterable[object]) -> Array:
    """Return the numbers in cells that may be text, NaN if they are not numbers."""
    return np.array([read_number(cell) for cell in cells], dtype=np.float64)


def read_number(cell: object) -> float:
    """Return the number in a cell that may be text, NaN if there is none.

    >>> read_number(" 1.5"), read_number("1_000"), read_number(""), read_number(True)
    (1.5, nan, nan, 1.0)
    """
    try:
        if isinstance(cell, str):
            return math.nan if "_" in cell or not cell.isascii() else float(cell)
        return float(cell) if isinstance(cell, Real) else math.nan
    except ValueError:
        return math.nan
    except OverflowError:
        return math.inf


def as_times(cells: Cells) -> Array:
    """Return times in seconds since 1970, NaN for cells that are not times.

    A time is a date or a datetime, text in ISO 8601, or a number: Unix time, or 8, 12 or 14 digits
    that read as a date of the years 1900 to 2100, such as 202402051330. A time with an offset is
    converted to UTC, a time without one is used as it is.
    """
    if isinstance(cells, np.ndarray) and cells.dtype.kind == "M":
        seconds = cells.astype("datetime64[us]").astype(np.float64) / 1e6
        return np.where(np.isnat(cells), np.nan, seconds)
    return np.array([_seconds(cell) for cell in cells], dtype=np.float64)


def _seconds(cell: object) -> float:
    if is_missing(cell):
        return math.nan
    if isinstance(cell, np.datetime64):
        return float(cell.astype("datetime64[us]").astype(np.float64) / 1e6)
    if isinstance(cell, str) and cell.strip().isdecimal() and len(cell.strip()) > 8:
        cell = read_number(cell)  # ISO 8601 would read 1611110712345 as 1611-11-07 23:45
    if isinstance(cell, str):
        try:
            cell = datetime.fromisoformat(cell.strip().replace("/", "-"))
        except ValueError:
            cell = read_number(cell)
    if isinstance(cell, datetime):
        zone = None if cell.utcoffset() is None else UTC
        return (cell - datetime(1970, 1, 1, tzinfo=zone)).total_seconds()
    if isinstance(cell, date):
        return (cell - date(1970, 1, 1)).days * DAY
    if isinstance(cell, Real) and abs(float(cell)) < 1e15:
        number = float(cell)
        found = _written(number)
        return number / (1000.0 if abs(number) > MILLISECONDS else 1.0) if found is None else found
    return math.nan


def _written(number: float) -> float | None:
    """Return the seconds since 1970 of a date written as a number, None if it is not one."""
    if not (number.is_integer() and number >= 1e7):
        return None
    digits = str(int(number))
    form = CALENDAR.get(len(digits))
    if form is None or not CENTURIES[0] <= int(digits[:4]) <= CENTURIES[1]:
        return None
    try:
        return (datetime.strptime(digits, form) - datetime(1970, 1, 1)).total_seconds()
    except ValueError:
        return None


def looks_like_time(values: Array) -> bool:
    """Return whether numbers are likely to be times: Unix time since 2001, or written dates.

    >>> looks_like_time(np.array([1.7e9, 1.8e9])), looks_like_time(np.array([20240131.0, 20240201]))
    (True, True)
    >>> looks_like_time(np.array([20240131.0, 20240232]))
    False
    """
    return any(((low <= values) & (values < 2.2 * low)).all() for low in (1e9, 1e12)) or all(
        _written(value) is not None for value in values.tolist()
    )


def _texts(cells: Cells) -> list[str | None]:
    return [None if is_missing(cell) else category_of(cell) for cell in cells]


def category_of(cell: object) -> str:
    """Return the text of a category; 3 and 3.0 are the same one."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell).strip()


def _first(times: Array) -> float:
    """Return the first time, 0 if there is none."""
    known = times[~np.isnan(times)]
    return float(known[0]) if len(known) else 0.0


def _codes() -> Array:
    """Return points of D4 with half-integers (Hurwitz quaternions), the first LIMIT of them."""
    whole = [np.array(point, float) for point in product((-1, 0, 1), repeat=4) if any(point)]
    half = [np.array(point) for point in product((-0.5, 0.5), repeat=4)]
    wide = [h * s for h in half for s in 1 + 2 * np.eye(4)]  # one coordinate of ±3/2
    # The unit vectors come first and the opposite ones next.
    points = sorted(
        [*whole, *half, *wide],
        key=lambda z: (float(z @ z), np.count_nonzero(z), float(-z.sum()), tuple(-z)),
    )
    return np.array(points[:LIMIT])


CODES = _codes()
LINE = np.array([[1.0 + i // 2 if i % 2 == 0 else -1.0 - i // 2] for i in range(LIMIT)])
