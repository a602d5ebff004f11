"""The retained points of a model: their positions, their arrival, and a table of some of them."""

import numpy as np

from pogp.arrays import Array, Indices
from pogp.report.axes import Axis, linear, number
from pogp.report.markup import Markup, table
from pogp.report.summary import Summary
from pogp.report.svg import Figure, Panel, fitting
from pogp.report.variables import CATEGORIES, Variable, category_axis, shortened

POSITION = "position in the stream"
DRAWN = 600
"""The most points that are drawn, evenly spread over their arrival."""
AGES = 5
"""Colours, from the oldest points to the newest."""
LISTED, COLUMNS = 5, 3
"""Points in the table from either end, and variables of each."""


def scatter(summary: Summary) -> Figure:
    """Draw the points by the two variables that matter most, or by one and their arrival."""
    model, (across, down) = summary.model, _axes(summary)
    indices, points = model.indices, model.dictionary
    arrived, of_stream = np.asarray(indices + 1, dtype=np.float64), (0.0, float(model.seen))
    vertical = arrived if down is None else points[:, down.inputs[0]]
    if down is None:
        y = linear(*of_stream, 4, snap=True, whole=True)
    elif down.codes:
        y, vertical = _categories(down, points)
    else:
        y = linear(*_ends(vertical), 4, snap=True)
    horizontal = arrived if across is None else points[:, across.inputs[0]]
    ends = of_stream if across is None else _ends(horizontal)
    panel = Panel(fitting(*ends, y, whole=across is None), y)
    listed = np.flatnonzero(np.isfinite(vertical))
    drawn = listed[np.unique(np.linspace(0, len(listed) - 1, DRAWN).astype(np.int64))]
    ages = (AGES * indices // max(model.seen, 1)).clip(0, AGES - 1)
    for age in range(AGES):
        rows = drawn[ages[drawn] == age]
        panel.dots(horizontal[rows], vertical[rows], f"age-{age}", _notes(summary, rows))
    some = f"{len(drawn)} of " if len(drawn) < len(indices) else ""
    x_name, y_name = (POSITION if each is None else each.name for each in (across, down))
    return Figure(
        "retained",
        "Positions",
        panel,
        x_name,
        y_name,
        f"{some}{len(indices)} retained points by {x_name} and {y_name}, coloured by arrival.",
        (("ages", "oldest to newest"),),
    )


def _axes(summary: Summary) -> tuple[Variable | None, Variable | None]:
    """Return the variables across and down; None for the position in the stream.

    Names of categories have room on the vertical axis only.
    """
    ranked = _shown(summary)
    numbers = [each for each in summary.variables if not each.codes]
    for each in ranked[:2]:
        if each.codes:
            return (numbers[0] if numbers else None), each
    return ranked[0], (ranked[1] if len(ranked) > 1 else None)


def _categories(variable: Variable, points: Array) -> tuple[Axis, Array]:
    """Return an axis of the frequent categories, and the place of each point; NaN for others."""
    frequent, names = variable.frequent(points)[:CATEGORIES], list(variable.codes)
    places = np.full(len(names), np.nan)
    places[frequent] = np.arange(len(frequent))
    return category_axis([names[i] for i in frequent]), places[variable.categories(points)]


def _notes(summary: Summary, rows: Indices) -> list[str]:
    """Return the arrival and the values of points."""
    points, shown = summary.model.dictionary[rows], _shown(summary)
    values = zip(*(each.texts(points) for each in shown), strict=True)
    return [
        f"{_arrival(index)}: "
        + ", ".join(f"{each.name} {text}" for each, text in zip(shown, texts, strict=True))
        for index, texts in zip(summary.model.indices[rows], values, strict=True)
    ]


def _shown(summary: Summary) -> list[Variable]:
    """Return the most relevant variables, or the first one if none varied."""
    return (summary.variables or summary.all_variables[:1])[:COLUMNS]


def arrivals(summary: Summary) -> Figure:
    """Draw the number of points from each twentieth of the stream."""
    indices, seen = summary.model.indices, summary.model.seen
    edges = np.linspace(0, seen, min(20, seen) + 1)
    counts = np.histogram(indices + 0.5, edges)[0]
    y = linear(0.0, max(int(counts.max()), 1), 4, snap=True, whole=True)
    panel = Panel(fitting(0.0, float(seen), y, whole=True), y)
    spans = zip(edges[:-1], edges[1:], counts, strict=True)
    notes = [f"{count} points from samples {a + 1:,.0f} to {b:,.0f}" for a, b, count in spans]
    panel.bars(edges, counts, "blue", notes)
    late = int((indices >= seen / 2).sum())
    return Figure(
        "arrivals",
        "Arrival",
        panel,
        POSITION,
        "points retained",
        f"{late} of {len(indices)} retained points are from the second half of the stream.",
        (("blue bar", "points still retained"),),
    )


def listing(summary: Summary) -> Markup:
    """Return a table of the oldest and the newest points."""
    model, shown = summary.model, _shown(summary)
    names = [each.name for each in shown]
    columns = [list(map(shortened, each.texts(model.dictionary, 4))) for each in shown]
    if (targets := getattr(model, "targets", None)) is not None:
        names.append(summary.targets[0])
        columns.append([number(float(value), 4) for value in targets])
    count = model.size
    ends = [*range(min(count, LISTED)), *range(max(count - LISTED, LISTED), count)]
    rows = [(_arrival(model.indices[i]), [cells[i] for cells in columns]) for i in ends]
    if count > len(ends):
        rows.insert(LISTED, ("⋮", ["⋮"] * len(names)))
    return table("Oldest and newest points", rows, ["sample", *map(shortened, names)])


def _ends(values: Array) -> tuple[float, float]:
    """Return the ends of an axis for values; a few outliers are drawn at its edges."""
    low, high = (float(value) for value in np.quantile(values, (0.02, 0.98)))
    span = high - low
    low, high = max(float(values.min()), low - span), min(float(values.max()), high + span)
    return low - 0.04 * (high - low), high + 0.04 * (high - low)


def _arrival(index: int) -> str:
    """Return the position of a point in the stream, counted from 1; pseudo-inputs have none."""
    return f"{index + 1:,}" if index >= 0 else "given"
