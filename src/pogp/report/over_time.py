"""Figures of a journal: how predictions, model order, distances and time went over the stream."""

from collections.abc import Callable

import numpy as np

from pogp.arrays import Array
from pogp.budgets import Budget
from pogp.report.axes import Axis, linear, logarithmic, number
from pogp.report.stretches import Stretches
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
"""A logarithmic axis reaches at most so far below its largest value."""
FAR = np.log(1000)
"""What is so many times larger than nine tenths of the values does not belong on their axis."""
RANGE = 20.0
"""Times that differ by more than this factor are on a logarithmic axis."""


def error(stretches: Stretches) -> Figure:
    """Draw the squared error of predictions made before learning."""
    relative = stretches.relative
    values, unit = (100 * stretches.error, " %") if relative else (stretches.error, "")
    panel = _panel(stretches, _logarithmic(values))
    legend = [("blue", "mean squared error")]
    if relative and panel.y.low <= 100 <= panel.y.high:
        panel.level(100, "grey dashed")
        legend.append(("grey dashed", "always predicting the mean"))
    _curve(panel, stretches, values, "blue")
    _annotate(panel, stretches, lambda i: f"squared error {number(values[i])}{unit}")
    return Figure(
        "error",
        "Error, predict-then-learn",
        panel,
        SEEN,
        "% of the variance" if relative else "squared units of the target",
        f"Mean squared error of predictions made before learning: {_course(values, unit)}.",
        tuple(legend),
    )


def loss(stretches: Stretches) -> Figure:
    """Draw the negative log predictive density, beside that of the targets' moments alone."""
    values = stretches.loss
    low, high = values.min(), _largest_but_outliers(values)
    legend = [("blue", "negative log density")]
    naive = None
    if stretches.relative:
        varied = stretches.variance[stretches.variance > 0]
        naive = (1.0 + float(np.mean(np.log(2 * np.pi * varied)))) / 2
        low, high = min(low, naive), max(high, naive)
    panel = _panel(stretches, linear(low, high, 5, snap=True))
    if naive is not None:
        panel.level(naive, "grey dashed")
        legend.append(("grey dashed", "of one normal for all"))
    _curve(panel, stretches, values, "blue")
    _annotate(panel, stretches, lambda i: f"log loss {number(values[i])}")
    return Figure(
        "loss",
        "Log loss, predict-then-learn",
        panel,
        SEEN,
        "nats per sample, lower is better",
        f"Negative log predictive density per sample: {_course(values)}.",
        tuple(legend),
    )


def coverage(stretches: Stretches) -> Figure:
    """Draw which share of targets fell into their central bands."""
    ticks = (0.0, *(100 * level for level in sorted(LEVELS)))
    axis = Axis(0.0, 100.0, ticks, tuple(f"{tick:.0f}" for tick in ticks))
    panel = _panel(stretches, axis)
    names = {level: f"{100 * level:.0f} % band" for level in LEVELS}
    shares = {level: 100 * stretches.coverage(level) for level in LEVELS}
    for level, look in LEVELS.items():
        panel.level(100 * level, f"{look} dashed")
        _curve(panel, stretches, shares[level], look)
    _annotate(
        panel,
        stretches,
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


def order(stretches: Stretches, cap: int | None) -> Figure:
    """Draw how many points were retained, and the cap unless it is far off."""
    sizes, removed = stretches.mean("size"), stretches.mean("removed")
    top, legend = float(sizes.max()), [("blue", "points")]
    capped = cap is not None and cap < 3 * top
    axis = linear(0.0, max(top, cap if cap and capped else 1.0), 4, snap=True, whole=True)
    panel = _panel(stretches, axis)
    if cap and capped:
        panel.level(cap, "grey dashed")
        legend.append(("grey dashed", "cap"))
    _curve(panel, stretches, sizes, "blue")
    _annotate(
        panel, stretches, lambda i: f"{sizes[i]:,.0f} points, {removed[i]:.2f} removed per sample"
    )
    return Figure(
        "order",
        "Model order",
        panel,
        SEEN,
        "points retained",
        f"Points retained: {_course(sizes)}.",
        tuple(legend),
    )


def distances(stretches: Stretches, budget: Budget | None) -> Figure | None:
    """Draw the Hellinger distances per sample; None if there were none."""
    means = {name: stretches.mean(name) for name in DISTANCES}
    limits = np.array([budget(int(t)) if budget else 0.0 for t in _middles(stretches)])
    drawn = np.concatenate(list(means.values()))
    if drawn.max() <= NEGLIGIBLE:
        return None
    drawn = np.concatenate([drawn, limits])
    panel = _panel(stretches, _logarithmic(drawn[drawn > NEGLIGIBLE]))
    legend = [DISTANCES[name] for name, values in means.items() if values.max() > NEGLIGIBLE]
    if (limits > NEGLIGIBLE).any():
        ends = (panel.x.low, *_middles(stretches), panel.x.high)
        panel.line(ends, (limits[0], *limits, limits[-1]), "grey dashed")
        legend.append(("grey dashed", "budget"))
    for name, values in means.items():
        _curve(panel, stretches, np.where(values > NEGLIGIBLE, values, np.nan), DISTANCES[name][0])
    _annotate(
        panel,
        stretches,
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


def pace(stretches: Stretches) -> Figure:
    """Draw the time that learning a sample took."""
    mean, slowest = 1e6 * stretches.mean("seconds"), 1e6 * stretches.slowest
    least, most = float(mean.min()), float(slowest.max())
    wide = 0 < RANGE * least < most
    axis = logarithmic(least, most, 8) if wide else linear(0.0, most or 1.0, 4, snap=True)
    panel = _panel(stretches, axis)
    _curve(panel, stretches, slowest, "thin orange")
    _curve(panel, stretches, mean, "blue")
    _annotate(
        panel,
        stretches,
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


def _panel(stretches: Stretches, axis: Axis) -> Panel:
    """Return an empty panel over the samples seen."""
    first, last = float(stretches.ends[0] - stretches.counts[0]), float(stretches.ends[-1])
    return Panel(fitting(first, last, axis, whole=True), axis)


def _curve(panel: Panel, stretches: Stretches, values: Array, look: str) -> None:
    panel.line(_middles(stretches), values, look)
    panel.beyond(_middles(stretches), values, look)


def _middles(stretches: Stretches) -> Array:
    return np.asarray(stretches.ends - stretches.counts / 2)


def _annotate(panel: Panel, stretches: Stretches, text: Callable[[int], str]) -> None:
    """Let each stretch say what was measured over it."""
    first, last = stretches.ends - stretches.counts + 1, stretches.ends
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
