"""The retained points of a model: their positions, their arrival, and a table of some of them."""

import numpy as np

from pogp.arrays import Array
from pogp.report.axes import linear, number
from pogp.report.markup import Markup, table
from pogp.report.summary import Summary
from pogp.report.svg import Figure, Panel, fitting

POSITION = "position in the stream"
DRAWN = 600
"""The most points that are drawn, evenly spread over their arrival."""
AGES = 5
"""Colours, from the oldest points to the newest."""
LISTED, COLUMNS = 5, 3
"""Points in the table from either end, and inputs of each."""


def scatter(summary: Summary) -> Figure:
    """Draw the points by the two inputs that matter most, or by one input and their arrival."""
    indices, points, names = summary.model.indices, summary.model.dictionary, summary.names
    shown = (summary.order or [0])[:COLUMNS]
    across, horizontal = names[shown[0]], points[:, shown[0]]
    if len(shown) > 1:
        down, vertical = names[shown[1]], points[:, shown[1]]
        y = linear(*_ends(vertical), 4, snap=True)
    else:
        down, vertical = POSITION, np.asarray(indices + 1, dtype=np.float64)
        y = linear(0.0, summary.model.seen, 4, snap=True, whole=True)
    panel = Panel(fitting(*_ends(horizontal), y), y)
    drawn = np.unique(np.linspace(0, len(indices) - 1, DRAWN).astype(np.int64))
    ages = (AGES * indices // max(summary.model.seen, 1)).clip(0, AGES - 1)
    for age in range(AGES):
        rows = drawn[ages[drawn] == age]
        notes = [
            f"{_arrival(indices[row])}: "
            + ", ".join(f"{names[d]} {number(points[row, d])}" for d in shown)
            for row in rows
        ]
        panel.dots(horizontal[rows], vertical[rows], f"age-{age}", notes)
    some = f"{len(drawn)} of " if len(drawn) < len(indices) else ""
    return Figure(
        "retained",
        "Positions",
        panel,
        across,
        down,
        f"{some}{len(indices)} retained points by {across} and {down}, coloured by arrival.",
        (("ages", "oldest to newest"),),
    )


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
    model, shown = summary.model, (summary.order or [0])[:COLUMNS]
    points, heads = (
        model.dictionary[:, shown],
        ["sample", *(shortened(summary.names[d]) for d in shown)],
    )
    targets = getattr(model, "targets", None)
    if targets is not None:
        points, heads = np.column_stack([points, targets]), [*heads, shortened(summary.targets[0])]
    count = model.size
    ends = [*range(min(count, LISTED)), *range(max(count - LISTED, LISTED), count)]
    rows = [(_arrival(model.indices[i]), [number(float(v), 4) for v in points[i]]) for i in ends]
    if count > len(ends):
        rows.insert(LISTED, ("⋮", ["⋮"] * (len(heads) - 1)))
    return table("Oldest and newest points", rows, heads)


def shortened(name: str, length: int = 16) -> str:
    """Return a name; if it is too long for the head of a column, both of its ends.

    >>> shortened("temperature"), shortened("outside temperature 12")
    ('temperature', 'outside t…ure 12')
    """
    return name if len(name) <= length else f"{name[: length - 7]}…{name[-6:]}"


def _ends(values: Array) -> tuple[float, float]:
    """Return the ends of an axis for values; a few outliers are drawn at its edges."""
    low, high = (float(value) for value in np.quantile(values, (0.02, 0.98)))
    span = high - low
    low, high = max(float(values.min()), low - span), min(float(values.max()), high + span)
    return low - 0.04 * (high - low), high + 0.04 * (high - low)


def _arrival(index: int) -> str:
    """Return the position of a point in the stream, counted from 1; pseudo-inputs have none."""
    return f"{index + 1:,}" if index >= 0 else "given"
