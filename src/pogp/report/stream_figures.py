"""Figures of a journal: error, model order, distances and time over the stream; calibration."""

from collections.abc import Callable

import numpy as np

from pogp.arrays import Array
from pogp.budgets import Budget
from pogp.report.axes import Axis, linear, logarithmic, number
from pogp.report.segments import Segments
from pogp.report.svg import Figure, Panel, fitting

SEEN = "samples seen"
LEVELS = {0.95: "blue", 0.8: "orange", 0.5: "green"}
DISTANCES = {
    "novelty": ("wide green", "novelty"),  # wide, as change may lie right on it
    "change": ("blue", "change"),
    "spent": ("purple", "spent on compression"),
}
NEGLIGIBLE = 1e-9
"""Distances below this are rounding: a logarithmic axis starts above them."""
DECADES = 6
"""The most decades that a logarithmic axis reaches below its largest value."""
FAR = np.log(1000)
"""Values this much larger than nine tenths of the others, in logarithms, are beyond the axis."""
RANGE = 20.0
"""Times that differ by more than this factor are on a logarithmic axis."""


def error(segments: Segments) -> Figure:
    """Draw the squared error of predictions made before learning."""
    relative = segments.relative
    values, unit = (100 * segments.error, " %") if relative else (segments.error, "")
    panel = _panel(segments, _logarithmic(values))
    legend = [("blue", "mean squared error")]
    if relative and panel.y.low <= 100 <= panel.y.high:
        panel.level(100, "grey dashed")
        legend.append(("grey dashed", "always predicting the mean"))
    _curve(panel, segments, values, "blue")
    _annotate(panel, segments, lambda i: f"squared error {number(values[i])}{unit}")
    return Figure(
        "error",
        "Error, predict-then-learn",
        panel,
        SEEN,
        "% of the variance" if relative else "squared units of the target",
        f"Mean squared error of predictions made before learning: {_course(values, unit)}.",
        tuple(legend),
    )


def loss(segments: Segments) -> Figure:
    """Draw the negative log predictive density, beside that of the targets' moments alone."""
    values = segments.loss
    low, high = values.min(), _largest_but_outliers(values)
    legend = [("blue", "negative log density")]
    naive = None
    if segments.relative:
        varied = segments.variance[segments.variance > 0]
        naive = (1.0 + float(np.mean(np.log(2 * np.pi * varied)))) / 2
        low, high = min(low, naive), max(high, naive)
    panel = _panel(segments, linear(low, high, 5, snap=True))
    if naive is not None:
        panel.level(naive, "grey dashed")
        legend.append(("grey dashed", "of one normal for all"))
    _curve(panel, segments, values, "blue")
    _annotate(panel, segments, lambda i: f"log loss {number(values[i])}")
    return Figure(
        "loss",
        "Log loss, predict-then-learn",
        panel,
        SEEN,
        "nats per sample, lower is better",
        f"Negative log predictive density per sample: {_course(values)}.",
        tuple(legend),
    )


def coverage(segments: Segments) -> Figure:
    """Draw which share of targets fell into their central bands."""
    ticks = (0.0, *(100 * level for level in sorted(LEVELS)))
    axis = Axis(0.0, 100.0, ticks, tuple(f"{tick:.0f}" for tick in ticks))
    panel = _panel(segments, axis)
    names = {level: f"{100 * level:.0f} % band" for level in LEVELS}
    shares = {level: 100 * segments.coverage(level) for level in LEVELS}
    for level, look in LEVELS.items():
        panel.level(100 * level, f"{look} dashed")
        _curve(panel, segments, shares[level], look)
    _annotate(
        panel,
        segments,
        lambda i: ", ".join(f"{shares[level][i]:.0f} % in the {names[level]}" for level in LEVELS),
    )
    return Figure(
        "coverage",
        "Coverage",
        panel,
        SEEN,
        "% of targets within their band",
        "; ".join(f"in the {names[level]}: {_course(shares[level], ' %')}" for level in LEVELS),
        tuple((look, names[level]) for level, look in LEVELS.items()),
    )


def order(segments: Segments, cap: int | None) -> Figure:
    """Draw how many points were retained, and the cap unless it is far off."""
    sizes, removed = segments.mean("size"), segments.mean("removed")
    top, legend = float(sizes.max()), [("blue", "points")]
    capped = cap is not None and cap < 3 * top
    axis = linear(0.0, max(top, cap if cap and capped else 1.0), 4, snap=True, whole=True)
    panel = _panel(segments, axis)
    if cap and capped:
        panel.level(cap, "grey dashed")
        legend.append(("grey dashed", "cap"))
    _curve(panel, segments, sizes, "blue")
    _annotate(
        panel, segments, lambda i: f"{sizes[i]:,.0f} points, {removed[i]:.2f} removed per sample"
    )
    return Figure(
        "order",
        "Model order",
        panel,
        SEEN,
        "points retained",
        f"Points retained: {_course(np.round(sizes))}.",
        tuple(legend),
    )


def distances(segments: Segments, budget: Budget | None) -> Figure | None:
    """Draw the Hellinger distances per sample; None if there were none."""
    means = {name: segments.mean(name) for name in DISTANCES}
    limits = np.array([budget(int(t)) if budget else 0.0 for t in _middles(segments)])
    drawn = np.concatenate(list(means.values()))
    if drawn.max() <= NEGLIGIBLE:
        return None
    drawn = np.concatenate([drawn, limits])
    panel = _panel(segments, _logarithmic(drawn[drawn > NEGLIGIBLE]))
    legend = [DISTANCES[name] for name, values in means.items() if values.max() > NEGLIGIBLE]
    if (limits > NEGLIGIBLE).any():
        ends = (panel.x.low, *_middles(segments), panel.x.high)
        panel.line(ends, (limits[0], *limits, limits[-1]), "grey dashed")
        legend.append(("grey dashed", "budget"))
    for name, values in means.items():
        _curve(panel, segments, np.where(values > NEGLIGIBLE, values, np.nan), DISTANCES[name][0])
    _annotate(
        panel,
        segments,
        lambda i: ", ".join(f"{name} {number(values[i])}" for name, values in means.items()),
    )
    return Figure(
        "distances",
        "Hellinger distance per sample",
        panel,
        SEEN,
        "mean per sample",
        "; ".join(f"{DISTANCES[name][1]}: {_course(values)}" for name, values in means.items()),
        tuple(legend),
    )


def pace(segments: Segments) -> Figure:
    """Draw the time that learning a sample took."""
    mean, slowest = 1e6 * segments.mean("seconds"), 1e6 * segments.slowest
    least, most = float(mean.min()), float(slowest.max())
    wide = 0 < RANGE * least < most
    axis = logarithmic(least, most, 8) if wide else linear(0.0, most or 1.0, 4, snap=True)
    panel = _panel(segments, axis)
    _curve(panel, segments, slowest, "thin orange")
    _curve(panel, segments, mean, "blue")
    _annotate(
        panel,
        segments,
        lambda i: f"{number(mean[i])} µs per sample, {number(slowest[i])} in the slowest chunk",
    )
    return Figure(
        "pace",
        "Time per sample",
        panel,
        SEEN,
        "microseconds",
        f"Microseconds of learning per sample: {_course(mean)}.",
        (("blue", "mean"), ("thin orange", "slowest chunk")),
    )


def _panel(segments: Segments, axis: Axis) -> Panel:
    """Return an empty panel over the samples seen."""
    first, last = float(segments.ends[0] - segments.counts[0]), float(segments.ends[-1])
    return Panel(fitting(first, last, axis, whole=True), axis)


def _curve(panel: Panel, segments: Segments, values: Array, look: str) -> None:
    panel.line(_middles(segments), values, look)
    panel.beyond(_middles(segments), values, look)


def _middles(segments: Segments) -> Array:
    return np.asarray(segments.ends - segments.counts / 2)


def _annotate(panel: Panel, segments: Segments, text: Callable[[int], str]) -> None:
    """Add a note with the measurements of each segment."""
    first, last = segments.ends - segments.counts + 1, segments.ends
    spans = [f"samples {a:,.0f} to {b:,.0f}" for a, b in zip(first, last, strict=True)]
    panel.notes([first[0] - 1, *last], [f"{span}: {text(i)}" for i, span in enumerate(spans)])


def _logarithmic(values: Array) -> Axis:
    """Return a logarithmic axis for what is positive among values; a linear one if nothing is."""
    positive = values[values > 0]
    if len(positive) == 0:
        return linear(0.0, 1.0, 4)
    high = float(np.exp(_largest_but_outliers(np.log(positive), FAR)))
    return logarithmic(max(float(positive.min()), high / 10**DECADES), high, 8)


def _largest_but_outliers(values: Array, far: float = 0.0) -> float:
    """Return the largest value that is not far beyond nine tenths of them."""
    low, high = np.quantile(values, (0.1, 0.9))
    return float(values[values <= high + max(2 * (high - low), far)].max())


def _course(values: Array, unit: str = "") -> str:
    """Say in words how values went."""
    start, end, low, high = (
        number(float(value)) + unit for value in (values[0], values[-1], values.min(), values.max())
    )
    return end if len(values) == 1 else f"{start} at first, {end} at last, from {low} to {high}"


# ---- calibration -----------------------------------------------------------------------------


def reliability(everything: Segments, recent: Segments) -> Figure:
    """Draw the share of targets in each central band against the share there should be."""
    levels = np.linspace(0.05, 0.95, 19)
    axis = linear(0.0, 100.0, 5)
    panel = Panel(axis, axis)
    panel.line([0, 100], [0, 100], "grey dashed")
    observed = {
        name: np.array([0.0, *(100 * part.coverage(level)[0] for level in levels), 100.0])
        for name, part in (("whole stream", everything), ("recent", recent))
    }
    nominal = np.array([0.0, *(100 * levels), 100.0])
    looks = dict(zip(observed, ("vermillion", "blue"), strict=True))
    for name, shares in observed.items():
        panel.line(nominal, shares, looks[name])
    edges = np.array([0.0, *(nominal[1:] - 2.5), 100.0])
    panel.notes(
        edges,
        [
            f"the {expected:.0f} % band holds {share:.0f} % of recent targets"
            for expected, share in zip(nominal, observed["recent"], strict=True)
        ],
    )
    off = np.abs(observed["recent"] - nominal)
    worst = int(np.argmax(off[1:-1])) + 1
    return Figure(
        "reliability",
        "Calibration",
        panel,
        "% a central band should hold",
        "% it holds",
        f"Recently bands are off by up to {off[worst]:.0f} points: the {nominal[worst]:.0f} % band "
        f"holds {observed['recent'][worst]:.0f} % of targets.",
        (*((look, name) for name, look in looks.items()), ("grey dashed", "as it should be")),
    )


def ranks(recent: Segments) -> Figure:
    """Draw where in its predicted distribution each target fell, the PIT histogram."""
    cells = recent.cells[0].reshape(-1, 2).sum(axis=1)
    heights = cells / cells.mean()
    edges = np.linspace(0.0, 100.0, len(cells) + 1)
    panel = Panel(linear(0.0, 100.0, 5), linear(0.0, max(heights.max(), 1.5), 4, snap=True))
    notes = [
        f"{100 * cell / cells.sum():.1f} % from percentile {low:.0f} to {low + 5:.0f}"
        for cell, low in zip(cells, edges, strict=False)
    ]
    panel.bars(edges, heights, "blue", notes)
    panel.line([0, 100], [1, 1], "grey dashed")
    return Figure(
        "ranks",
        "Where targets fell",
        panel,
        "percentile of the prediction",
        "relative frequency, recent",
        f"Relative frequency of each 5 percentiles, from {heights.min():.2f} to "
        f"{heights.max():.2f}; 1 everywhere is calibrated.",
        (("blue bar", "targets"), ("grey dashed", "as it should be")),
    )
