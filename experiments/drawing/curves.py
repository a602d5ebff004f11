"""Figures 3 to 5: error, log loss, Hellinger distance and model order over the stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.drawing.style import LOOKS, legend_below, logarithmic, new
from experiments.published import SETS
from experiments.readings.compare import Comparison, Row, comparison
from experiments.readings.estimates import Estimate
from experiments.records import Records
from pogp.arrays import Array
from pogp.report.style import GREY

SHOWN = ("dense", "spgp", "absorbing", "sogp", "pog-published")
"""The paper's four methods and ours; where lines meet, the later is on top."""
PANELS = {
    "smse": ("Test error", "SMSE (variance of the targets = 1)"),
    "nlpd": ("Log loss on the test set", "NLPD (nats)"),
    "change": ("Movement of the posterior", "Hellinger distance, per sample"),
    "size": ("Model order", "points"),
}


def curves(topic: str, records: Records) -> Figure:
    """Draw one set: means over the repeats with bands of one standard error."""
    compared = comparison(records, topic)
    if compared is None:
        raise ValueError(f"there are no complete records of {topic} to draw")
    figure, panels = new(2, 2, height=6.2)
    for axes, (name, (title, label)) in zip(panels, PANELS.items(), strict=True):
        for case in SHOWN:
            _method(axes, compared[case], name)
        axes.set(title=title, xlabel=f"samples of {topic} seen", ylabel=label)
        axes.set_xlim(0, _series(compared["dense"], "size")[0][-1])
        if name != "nlpd":
            logarithmic(axes)
        _published(axes, compared, name)
    legend_below(figure, *panels, columns=3)
    return figure


FIGURES: dict[str, Callable[[Records], Figure]] = {
    f"curves-{topic}": partial(curves, topic) for topic in SETS
}


def _method(axes: Axes, row: Row, name: str) -> None:
    look, label = LOOKS[row.method.look], row.method.label
    if row.method.offline:
        if name != "change":
            _level(axes, getattr(row, name), look.colour, f"{label} (offline)")
        return
    seen, each = _series(row, name)
    mean = each.mean(axis=0)
    error = each.std(axis=0, ddof=1) / np.sqrt(len(each)) if len(each) > 1 else np.zeros_like(mean)
    axes.fill_between(seen, mean - error, mean + error, color=look.colour, alpha=0.2, linewidth=0)
    ours = " (ours, not the paper's)" if row.case == "absorbing" else ""
    axes.plot(seen, mean, **look.plain, label=f"{label}{ours}")


def _series(row: Row, name: str) -> tuple[Array, Array]:
    """Return where a curve was looked at, and a line for each repeat."""
    found = [record.result["curve"] for record in row.records]
    seen = np.asarray(found[0]["seen"], dtype=np.float64)
    each = np.asarray([curve[name] for curve in found], dtype=np.float64)
    return seen, each


def _level(axes: Axes, value: Estimate, colour: str, label: str) -> None:
    """Draw what has no course in time as a level with its band."""
    axes.axhspan(value.mean - value.error, value.mean + value.error, color=colour, alpha=0.2, lw=0)
    axes.axhline(value.mean, color=colour, linestyle="--", label=label)


def _published(axes: Axes, compared: Comparison, name: str) -> None:
    """Mark the paper's figures at the end of the stream, those off the panel by triangles."""
    printed = {case: paper for case in SHOWN if (paper := compared[case].printed(name)) is not None}
    if name == "nlpd":  # the other scales take in all figures anyway
        axes.set_ylim(_widened(axes.get_ylim(), printed.values()))
    low, high = axes.get_ylim()
    axes.set_ylim(low, high)  # markers at the edge are not to move it
    for case, paper in printed.items():
        marker = "D" if low <= paper <= high else "^" if paper > high else "v"
        axes.plot(
            [axes.get_xlim()[1]],
            [min(max(paper, low), high)],
            marker,
            markersize=6,
            markerfacecolor="white",
            markeredgecolor=LOOKS[compared[case].method.look].colour,
            markeredgewidth=1.4,
            clip_on=False,
            zorder=5,
        )
    axes.plot([], [], "D", markerfacecolor="white", color=GREY, label="the paper's figure")


def _widened(limits: tuple[float, float], values: Iterable[float]) -> tuple[float, float]:
    """Return limits that take in values not far off, and leave out those far off.

    >>> _widened((0.0, 1.0), [0.5, 1.2, 30.0])
    (0.0, 1.25)
    """
    low, high = limits
    reach, margin = (high - low) / 2, (high - low) / 20
    for value in values:
        if low - reach <= value <= high + reach:
            limits = min(limits[0], value - margin), max(limits[1], value + margin)
    return limits
