"""The variables of a report: inputs that are numbers, and columns of categories."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pogp.arrays import Array, Indices
from pogp.encoding import Encoder
from pogp.encoding.columns import CategoryColumn
from pogp.report.axes import Axis, number

CATEGORIES = 10
"""The most categories on an axis, the most frequent ones."""
LENGTH = 12
"""The most characters of the name of a category below or beside an axis."""


@dataclass(frozen=True)
class Variable:
    """An input that is a number, or all inputs of a column of categories.

    `codes` has the values of these inputs for each category. It is empty for a number.
    """

    name: str
    inputs: tuple[int, ...]
    codes: Mapping[str, Array] = field(default_factory=dict)

    def categories(self, X: Array) -> Indices:
        """Return the category of each row, the nearest one, by its place in `codes`."""
        codes = np.array(list(self.codes.values()))
        distances = ((X[:, None, list(self.inputs)] - codes) ** 2).sum(axis=2)
        return np.asarray(np.argmin(distances, axis=1))

    def frequent(self, X: Array) -> Indices:
        """Return the categories of rows, the most frequent first."""
        counts = np.bincount(self.categories(X), minlength=len(self.codes))
        order = np.argsort(-counts, kind="stable")
        return np.asarray(order[counts[order] > 0])

    def typical(self, X: Array) -> Array:
        """Return the median of a number, or the code of the most frequent category."""
        if not self.codes:
            return np.asarray(np.median(X[:, list(self.inputs)], axis=0))
        codes = list(self.codes.values())
        return codes[int(self.frequent(X)[0])]

    def texts(self, X: Array, digits: int = 3) -> list[str]:
        """Return the value in each row as a reader would write it."""
        if not self.codes:
            return [number(float(value), digits) for value in X[:, self.inputs[0]]]
        names = list(self.codes)
        return [names[i] for i in self.categories(X)]


def variables_of(names: Sequence[str], encoder: Encoder | None = None) -> list[Variable]:
    """Return the variables of inputs with these names; an encoder knows which are categories.

    >>> encoder = Encoder.of(["load", "room"], [[1.0, 2.0], ["a", "b"]])
    >>> _ = encoder.learn([[1.0, 2.0], ["a", "b"]])
    >>> [(each.name, each.inputs, *each.codes) for each in variables_of(encoder.labels, encoder)]
    [('load', (0,)), ('room', (1, 2, 3, 4), 'a', 'b')]
    """
    found: list[Variable] = []
    for column, name in zip(encoder.columns, encoder.names, strict=True) if encoder else ():
        first = sum(len(each.inputs) for each in found)
        inputs = range(first, first + column.width)
        if isinstance(column, CategoryColumn) and column.values:
            codes = dict(zip(column.values, column.encode(list(column.values)), strict=True))
            found.append(Variable(str(name), tuple(inputs), codes))
        else:
            found += [Variable(names[d], (d,)) for d in inputs]
    return found or [Variable(name, (d,)) for d, name in enumerate(names)]


def category_axis(names: Sequence[str]) -> Axis:
    """Return a vertical axis with a row for each name, the first one at the top.

    >>> category_axis(["kitchen", "the northern staircase"]).labels
    ('kitchen', 'the n…ircase')
    """
    labels = tuple(shortened(name, LENGTH) for name in names)
    return Axis(len(names) - 0.5, -0.5, tuple(map(float, range(len(names)))), labels)


def shortened(name: str, length: int = 16) -> str:
    """Return a name; if it is too long, both of its ends.

    >>> shortened("temperature"), shortened("outside temperature 12")
    ('temperature', 'outside t…ure 12')
    """
    return name if len(name) <= length else f"{name[: length - 7]}…{name[-6:]}"
