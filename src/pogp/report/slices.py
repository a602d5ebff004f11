"""One-dimensional slices of the posterior: one variable varies, the others stay as they mostly are.

A number stays at its median, a column of categories at its most frequent category.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from pogp.arrays import Array
from pogp.report.axes import Axis, linear, number
from pogp.report.summary import Summary
from pogp.report.svg import Figure, Panel, fitting
from pogp.report.variables import CATEGORIES, Variable, category_axis

SLICES = 12
"""The most slices that are drawn."""
POINTS = 61
"""Points of a slice at which the model predicts."""
DEVIATIONS = float(ndtri(0.975))
"""The half-width of a 95 % band, in deviations."""
HALF = 0.3
"""Half the height of the band of a category, in rows."""


@dataclass(frozen=True)
class Slice:
    """The prediction of one output along one variable: its mean, and half its 95 % band.

    `places` are values of a number, or categories by their place in the codes of the variable.
    """

    variable: Variable
    output: int
    places: Array
    mean: Array
    margin: Array


def cut(summary: Summary) -> list[Slice]:
    """Return slices along the most relevant variables, for every output."""
    outputs, samples = summary.journal.outputs, summary.journal.samples.inputs
    variables = summary.variables[: max(SLICES // outputs, 1)]
    if not variables:
        return []
    usual = np.empty(samples.shape[1])
    for each in summary.all_variables:
        usual[list(each.inputs)] = each.typical(samples)
    places = [_places(each, samples) for each in variables]
    queries = [np.tile(usual, (len(place), 1)) for place in places]
    for query, each, place in zip(queries, variables, places, strict=True):
        codes = np.array(list(each.codes.values()))
        query[:, list(each.inputs)] = codes[place.astype(int)] if each.codes else place[:, None]
    mean, variance = (
        np.reshape(part, (-1, outputs)) for part in summary.model.predict(np.vstack(queries))
    )
    margin = DEVIATIONS * np.sqrt(variance)
    ends = np.cumsum([len(place) for place in places])
    parts = zip(variables, places, np.split(mean, ends), np.split(margin, ends), strict=False)
    slices = [
        Slice(each, output, place, middle[:, output], half[:, output])
        for each, place, middle, half in parts
        for output in range(outputs)
    ]
    return slices[:SLICES]


def _places(variable: Variable, samples: Array) -> Array:
    """Return positions that cover nearly all values of a number, or the frequent categories."""
    if variable.codes:
        return np.asarray(variable.frequent(samples)[:CATEGORIES], dtype=np.float64)
    values = samples[:, variable.inputs[0]]
    low, high = np.quantile(values, (0.01, 0.99))
    if low == high:
        low, high = values.min(), values.max()
    margin = 0.02 * (high - low)
    return np.linspace(low - margin, high + margin, POINTS)


def draw(slices: list[Slice], summary: Summary) -> list[Figure]:
    """Draw slices, those of one output on the same axis."""
    axes = {each.output: _axis(slices, each.output, summary) for each in slices}
    return [
        (_draw_categories if each.variable.codes else _draw)(each, axes[each.output], summary)
        for each in slices
    ]


def shows_samples(summary: Summary) -> bool:
    """Return whether samples lie on the slices: if no other variable varies."""
    return len(summary.variables) == 1


def _axis(slices: list[Slice], output: int, summary: Summary) -> Axis:
    """Return an axis for all bands of an output, and for its samples if they are drawn."""
    mine = [each for each in slices if each.output == output]
    values = [edge for each in mine for edge in (each.mean - each.margin, each.mean + each.margin)]
    if shows_samples(summary):
        values.append(summary.journal.samples.targets[:, output])
    together = np.concatenate(values)
    return linear(float(together.min()), float(together.max()), 5, snap=True)


def _draw(slice_: Slice, axis: Axis, summary: Summary) -> Figure:
    places, mean, margin = slice_.places, slice_.mean, slice_.margin
    name, target = slice_.variable.name, summary.targets[slice_.output]
    (d,) = slice_.variable.inputs
    panel = Panel(fitting(float(places[0]), float(places[-1]), axis), axis)
    if shows_samples(summary):
        samples = summary.journal.samples
        panel.dots(samples.inputs[:, d], samples.targets[:, slice_.output], "grey faint")
    panel.band(places, mean - margin, mean + margin, "blue")
    panel.line(places, mean, "blue")
    if summary.model.size:
        panel.rug(summary.model.dictionary[:, d], "vermillion")
    panel.notes(
        [places[0], *(places[1:] + places[:-1]) / 2, places[-1]],
        [
            f"{name} {number(x)}: {number(middle)} ± {number(half)}"
            for x, middle, half in zip(places, mean, margin, strict=True)
        ],
    )
    return Figure(
        f"slice-{d}-{slice_.output}",
        f"{target} along {name}",
        panel,
        name,
        target,
        f"The mean goes from {number(mean[0])} to {number(mean[-1])}, between "
        f"{number(mean.min())} and {number(mean.max())}; the 95 % band is from "
        f"± {number(margin.min())} to ± {number(margin.max())}.",
    )


def _draw_categories(slice_: Slice, axis: Axis, summary: Summary) -> Figure:
    """Draw a row for each category: its band, and the mean in it."""
    variable, target = slice_.variable, summary.targets[slice_.output]
    shown, every = slice_.places.astype(int), list(variable.codes)
    names = [every[i] for i in shown]
    rows = category_axis(names)
    panel = Panel(fitting(axis.low, axis.high, rows), rows)
    if shows_samples(summary):
        samples = summary.journal.samples
        drawn, places = np.nonzero(variable.categories(samples.inputs)[:, None] == shown)
        panel.dots(samples.targets[drawn, slice_.output], places, "grey faint")
    for row, (name, middle, half) in enumerate(zip(names, slice_.mean, slice_.margin, strict=True)):
        sides = [row + HALF] * 2, [row - HALF] * 2
        note = f"{variable.name} {name}: {number(middle)} ± {number(half)}"
        panel.band([middle - half, middle + half], *sides, "blue", note)
        panel.line([middle, middle], [row - HALF, row + HALF], "blue")
    some = f", {len(names)} of {len(every)} categories" if len(names) < len(every) else ""
    least, most = int(np.argmin(slice_.mean)), int(np.argmax(slice_.mean))
    return Figure(
        f"slice-{variable.inputs[0]}-{slice_.output}",
        f"{target} by {variable.name}{some}",
        panel,
        target,
        variable.name,
        f"The mean is lowest for {names[least]}, {number(slice_.mean[least])}, and highest for "
        f"{names[most]}, {number(slice_.mean[most])}; the 95 % band is from "
        f"± {number(slice_.margin.min())} to ± {number(slice_.margin.max())}.",
    )
