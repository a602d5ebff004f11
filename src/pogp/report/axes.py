"""Axes of figures: positions of values, ticks and their labels."""

import math
from dataclasses import dataclass
from itertools import pairwise
from string import ascii_lowercase

import numpy as np
from numpy.typing import ArrayLike

from pogp.arrays import Array

STEPS = (1, 2, 5, 10)
FEW_DIGITS = 5
"""About the most digits of a label; the rest goes into the note."""
MULTIPLES = {3: "thousands", 6: "millions", 9: "billions"}
DIGIT, WIDE = 7.8, 12.0
WIDTHS = {"−": 10.2, "×": 10.2, ",": 4.0, ".": 4.0, "⁻": DIGIT, "-": DIGIT, "_": DIGIT, " ": 4.0}
"""Widths of characters in the widest of the fonts that browsers choose."""
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`, with ticks; `note` has the unit or offset that labels leave out.

    >>> linear(0, 3_000_000, 3)
    Axis(low=0.0, high=3000000.0, ticks=(0.0, 1000000.0, 2000000.0, 3000000.0), \
labels=('0', '1', '2', '3'), note='millions', log=False)
    """

    low: float
    high: float
    ticks: tuple[float, ...]
    labels: tuple[str, ...]
    note: str = ""
    log: bool = False

    def place(self, values: ArrayLike) -> Array:
        """Return positions from 0 at `low` to 1 at `high`; NaN for values that have none."""
        values = np.asarray(values, dtype=np.float64)
        if not self.log:
            return np.asarray((values - self.low) / (self.high - self.low))
        logs = np.log(np.where(values > 0, values, np.nan) / self.low)
        return np.asarray(logs / math.log(self.high / self.low))

    def named(self, name: str) -> str:
        """Return the name of the axis with the note."""
        return f"{name} ({self.note})" if self.note else name


def linear(
    low: float, high: float, intervals: int, *, snap: bool = False, whole: bool = False
) -> Axis:
    """Return an axis with about this number of intervals; with `whole`, ticks are whole numbers.

    With `snap` it begins and ends on a tick.
    """
    low, high = _apart(float(low), float(high))
    step = _step(max((high - low) / intervals, float(whole)))
    if snap:
        low = step * math.floor(low / step + 1e-9)
        high = step * math.ceil(high / step - 1e-9)
    while len(ticks := _multiples(step, low, high)) < 2 and not (whole and step == 1):
        step = _step(step / 2.5)
    return Axis(low, high, ticks, *_labels(ticks, step))


def logarithmic(low: float, high: float, intervals: int) -> Axis:
    """Return a logarithmic axis that begins and ends on 1, 2 or 5 times a power of ten.

    `intervals` is their largest number, 5 or more.

    >>> logarithmic(0.3, 4, 8).labels, logarithmic(3e-9, 2, 5).labels
    (('0.2', '0.5', '1', '2', '5'), ('10⁻⁸', '10⁻⁶', '10⁻⁴', '0.01', '1'))
    """
    if high < 1.01 * low:
        low, high = low / 1.5, high * 1.5
    exponents = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    grid = [float(f"{digit}e{exponent}") for exponent in exponents for digit in (1, 2, 5)]
    start = max(i for i, value in enumerate(grid) if value <= low * (1 + 1e-9))
    stop = min(i for i, value in enumerate(grid) if value >= high * (1 - 1e-9) and i > start)
    ticks = grid[start : stop + 1]
    powers = [tick for tick in ticks if f"{tick:e}".startswith("1.0")]
    every = -(-len(powers) // (intervals + 1))
    if len(ticks) > intervals + 1:
        ticks = powers[(len(powers) - 1) % every :: every]
    return Axis(grid[start], grid[stop], tuple(ticks), tuple(map(_power, ticks)), log=True)


def number(value: float, digits: int = 3) -> str:
    """Return a number with a few significant digits, as a person would write it.

    >>> number(1234567), number(0.012345), number(1.5e13), number(-2e-7), number(0)
    ('1,230,000', '0.0123', '1.5×10¹³', '−2×10⁻⁷', '0')
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}".replace("-", "−")
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    power = int(exponent)
    if not -5 < power < 7:
        return f"{mantissa.rstrip('0').rstrip('.')}×{ten_to(power)}".replace("-", "−")
    rounded = float(f"{mantissa}e{exponent}")
    text = f"{rounded:,.{max(digits - 1 - power, 0)}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", "−")


def ten_to(power: int) -> str:
    """Return a power of ten.

    >>> ten_to(-12)
    '10⁻¹²'
    """
    return "10" + str(power).translate(SUPERSCRIPTS)


def _apart(low: float, high: float) -> tuple[float, float]:
    """Return ends far enough apart for distinct ticks in float64."""
    margin = max(abs(low), abs(high)) * 1e-12
    if high - low > margin:
        return low, high
    half = max(abs(low), abs(high)) / 10 or 0.5
    return low - half, high + half


def _step(least: float) -> float:
    """Return the smallest of 1, 2 or 5 times a power of ten that is not below `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in STEPS if step * power >= least * (1 - 1e-9))


def _multiples(step: float, low: float, high: float) -> tuple[float, ...]:
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple(count * step for count in range(first, last + 1))


def _labels(ticks: tuple[float, ...], step: float) -> tuple[tuple[str, ...], str]:
    """Return the labels of the ticks of a linear axis, and the note."""
    largest = max(abs(tick) for tick in ticks)
    offset = ticks[0] if largest / step > 10**FEW_DIGITS else 0.0
    values = [tick - offset for tick in ticks]
    power = math.floor(math.log10(max(map(abs, values)) or step) + 1e-9)
    power = 3 * (power // 3) if not -3 <= power < FEW_DIGITS else 0
    decimals = max(-math.floor(math.log10(step) + 1e-9) + power, 0)
    labels = (f"{value / 10.0**power:,.{decimals}f}" for value in values)
    notes = [
        f"+ {offset:,.{max(-math.floor(math.log10(step)), 0)}f}" if offset else "",
        MULTIPLES.get(power, f"×{ten_to(power)}") if power else "",
    ]
    written = tuple(_signed(label) for label in labels)
    return written, ", ".join(note for note in notes if note).replace("-", "−")


def _signed(label: str) -> str:
    return "0" if float(label.replace(",", "")) == 0 else label.replace("-", "−")


def _power(value: float) -> str:
    """Return the label of 1, 2 or 5 times a power of ten."""
    power = math.floor(math.log10(value) + 1e-9)
    if -4 < power <= FEW_DIGITS:
        return f"{value:,.{max(-power, 0)}f}"
    digit = round(value / 10.0**power)
    return ten_to(power) if digit == 1 else f"{digit}×{ten_to(power)}"


def width(label: str) -> float:
    """Return how wide a label is at most, in a font of 12 units."""
    return sum(WIDTHS.get(character, _usual_width(character)) for character in label)


def _usual_width(character: str) -> float:
    """Return the width of a digit or of a small letter; capitals and others are wider."""
    narrow = character.isdigit() or (character in ascii_lowercase and character not in "mw")
    return DIGIT if narrow else WIDE


def crowded(axis: Axis, room: float) -> bool:
    """Return whether labels below a horizontal axis of this length would be too close."""
    places = room * axis.place(axis.ticks)
    halves = [width(label) / 2 for label in axis.labels]
    pairs = pairwise(zip(places, halves, strict=True))
    return any(there - here < a + b + DIGIT for (here, a), (there, b) in pairs)
