"""Figures 1 and 2: histogram, moving mean and moving variance, and what the z-test sees."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.drawing.style import LOOKS, legend_below, new
from experiments.methods import METHODS
from experiments.parts.consistency import MODELS, moving_places, thinned
from experiments.readings.consistency import (
    PUBLISHED_P,
    SIGNIFICANCE,
    Consistency,
    consistency,
    stream_length,
)
from experiments.records import Records
from pogp.arrays import Array
from pogp.report.style import BLACK, GREY, YELLOW

TRUTH, TARGETS = "the true value or density", "the targets"
OWN = YELLOW
"""The colour of the targets, which belong to no method."""
MARKERSIZES = {"pog-published": 4.0, "pog-written": 7.5, "absorbing": 11.0}
"""Where the methods agree, each is to be seen around the others."""


def checks(topic: str, records: Records) -> Figure:
    """Draw one check: the moving averages are of repeat 0, the rest of all repeats."""
    found = consistency(records, topic)
    if found is None:
        raise ValueError(f"there are no records of {topic} to draw")
    figure, (histogram, mean, tests, variance) = new(2, 2, height=6.4)
    _histogram(histogram, found)
    _moving(mean, found, "mean")
    _moving(variance, found, "variance")
    _tests(tests, found)
    legend_below(figure, mean, columns=3)
    return figure


FIGURES: dict[str, Callable[[Records], Figure]] = {
    "figure-1-gaussian": partial(checks, "gaussian"),
    "figure-2-chi-square": partial(checks, "chi_square"),
}


def _histogram(axes: Axes, found: Consistency) -> None:
    edges = found.check.edges
    axes.stairs(found["data"].histogram, edges, fill=True, color=OWN, alpha=0.7)
    for case in MODELS[::-1]:  # the paper's on top
        look = LOOKS[METHODS[case].look]
        axes.stairs(
            found[case].histogram,
            edges,
            color=look.colour,
            linestyle=look.style,
            linewidth=look.width,
        )
    values = np.linspace(edges[0], edges[-1], 400)
    axes.plot(values, _density(found, values), color=BLACK, linewidth=1.0)
    axes.set_ylim(0, 1.15 * max(found[case].histogram.max() for case in ("data", *MODELS)))
    axes.set(title="Predicted means, all repeats", xlabel="target y", ylabel="density")


def _density(found: Consistency, values: Array) -> Array:
    """Return the density of the targets, over the times of the stream."""
    times = _times(found)[:: max(stream_length(found.records[0]) // 50, 1)]
    return np.asarray(np.mean([found.check.law(np.array([t])).pdf(values) for t in times], axis=0))


def _moving(axes: Axes, found: Consistency, name: str) -> None:
    """Draw single predictions in grey, moving averages over them, and what they should be."""
    record = found.records[0]
    window, law = record.task.options["window"], found.check.law(_times(found))
    ends = moving_places(stream_length(record), window)
    truth, noise = (
        (law.mean(), np.sqrt(law.var()))
        if name == "mean"
        else (law.var(), np.sqrt((law.stats("k") + 2.0) * law.var() ** 2))
    )
    expected, sure = truth[ends - 1], 2 * noise[ends - 1] / np.sqrt(window)
    axes.fill_between(
        ends,
        expected - sure,
        expected + sure,
        color=GREY,
        alpha=0.25,
        linewidth=0,
        label=f"± 2 sd of a mean of {window}",
    )
    axes.plot(ends, expected, color=BLACK, linewidth=1.0, label=TRUTH)
    axes.plot(ends, found["data"].moving(name), color=OWN, linewidth=4.5, label=TARGETS)
    for case in MODELS[::-1]:
        look = LOOKS[METHODS[case].look]
        axes.plot(ends, found[case].moving(name), **look.plain, label=METHODS[case].label)
    shown = thinned(stream_length(record))
    points = np.array(record.result["points"])
    values = points if name == "mean" else (points - law.mean()[shown]) ** 2
    low, high = axes.get_ylim()
    axes.plot(shown + 1, values, ".", color=GREY, alpha=0.45, markersize=3.5, zorder=0)
    room = (1.8 if name == "mean" else 1.2) * (high - low)
    axes.set_ylim(max(low - room, 0.0 if name == "variance" else -np.inf), high + room)
    axes.set(
        title=f"Moving {name} of {window} predictions",
        xlabel="samples seen",
        ylabel="mean of y" if name == "mean" else "variance of y",
    )
    axes.set_xlim(0, stream_length(record))


def _tests(axes: Axes, found: Consistency) -> None:
    """Draw each repeat's p-value beside that of its targets, which no model can change."""
    axes.axline((0, 0), slope=1, color=BLACK, linewidth=0.8)
    axes.axhspan(-0.03, SIGNIFICANCE, color=GREY, alpha=0.25, linewidth=0)
    own = [test.p for test in found["data"].tests]
    for case in MODELS[::-1]:
        look = LOOKS[METHODS[case].look].marked | {"linestyle": "", "markersize": MARKERSIZES[case]}
        if case != "pog-published":
            look["markerfacecolor"] = "none"
        axes.plot(own, [test.p for test in found[case].tests], **look, clip_on=False)
    if found.check.order is not None:
        axes.axhline(PUBLISHED_P, color=GREY, linestyle="--", linewidth=1.2)
        axes.text(0.02, PUBLISHED_P - 0.02, f"the paper's {PUBLISHED_P:.4f}", va="top", fontsize=8)
    axes.text(
        0.98, SIGNIFICANCE + 0.02, "rejected at the 5 % level", ha="right", va="bottom", fontsize=8
    )
    last = found.records[0].task.options["last"]
    axes.set(
        title="z-test of the mean, each repeat",
        xlabel=f"p-value of the last {last} targets",
        ylabel=f"p-value of the last {last} predictions",
        xlim=(0, 1.0),
        ylim=(-0.03, 1.03),
    )


def _times(found: Consistency) -> Array:
    """Return t of each sample of the stream; the slice came before."""
    options = found.records[0].task.options
    return np.arange(options["first"], options["count"]) + 1.0
