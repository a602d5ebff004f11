"""The frontier of error against time: all streams in one panel, and each in a panel of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from benchmarks.peers.readings import Comparison, Overall, overall
from benchmarks.peers.registry import OURS, PEERS
from experiments.drawing.style import WIDTH, logarithmic, new
from pogp.report.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY_BLUE, VERMILLION

COLOURS = {
    "pogp": VERMILLION,
    "River": BLUE,
    "LightGBM": GREEN,
    "scikit-learn": ORANGE,
    "GPyTorch": PURPLE,
    "GopPy": BLACK,
    "CapyMOA": SKY_BLUE,
    "simple": GREY,
}
MARKERS = ("o", "s", "^", "D", "v", "P")
"""Of the members of a family, in the order of the registry."""
PANELS = 3
"""Beside each other, where each stream has one."""


@dataclass(frozen=True)
class Look:
    """How a peer is drawn."""

    colour: str
    marker: str
    main: bool

    @property
    def scatter(self) -> dict[str, Any]:
        """Arguments of `scatter`."""
        size = 150 if self.main else 42
        return {
            "color": self.colour,
            "marker": self.marker,
            "s": size,
            "edgecolors": "white",
            "linewidths": 0.8,
            "zorder": 4 if self.main else 3,
        }


def look(case: str) -> Look:
    """Return how a peer is drawn: by its family and its place in it; OnlineGP is a star."""
    family = PEERS[case].family
    members = [name for name, peer in PEERS.items() if peer.family == family]
    main = case == "online"
    marker = "*" if main else MARKERS[members.index(case) % len(MARKERS)]
    return Look(COLOURS[family], marker, main)


def whole(found: Sequence[Comparison]) -> Figure:
    """Draw each peer once, over all streams, with its name beside it."""
    figure = Figure(figsize=(WIDTH, 4.6), layout="constrained")
    axes = figure.subplots()
    points = overall(list(found))
    axes.scatter(
        [row.mean("mean_us") for each in found for row in each.ranked],
        [row.mean("smse") / each.first.mean("smse") for each in found for row in each.ranked],
        c=[COLOURS[row.peer.family] for each in found for row in each.ranked],
        s=7,
        alpha=0.22,
        linewidths=0,
    )
    for point in points:
        axes.scatter(point.microseconds, point.error, **look(point.case).scatter)
    _best(axes, [(point.microseconds, point.error) for point in points])
    axes.set(
        xlabel="processor time per sample, predicted and learned (µs)",
        ylabel="squared error ÷ the lowest on the stream",
    )
    logarithmic(axes, "x")
    logarithmic(axes)
    highest = max(point.error for point in points)
    axes.set_ylim(0.8, 1.9 * highest)
    axes.set_title(f"Error against time, geometric means over {len(found)} streams")
    figure.draw_without_rendering()
    for point, (right, up, across) in zip(points, placed(axes, points), strict=True):
        main = point.case in OURS
        axes.annotate(
            PEERS[point.case].label,
            (point.microseconds, point.error),
            (right, up),
            textcoords="offset points",
            ha=across,
            va="center",
            fontsize=8.5 if point.case == "online" else 7,
            fontweight="bold" if point.case == "online" else "normal",
            color=VERMILLION if main else "#333333",
            path_effects=[withStroke(linewidth=2.5, foreground="white")],
        )
    return figure


def placed(axes: Axes, points: Sequence[Overall]) -> list[tuple[float, float, str]]:
    """Return an offset for each label, so that labels, marks and the frontier are all seen.

    Of a few places around its mark each label takes the one with the least overlap.
    """
    scale = 72 / axes.figure.dpi
    marks = [
        tuple(scale * axes.transData.transform((point.microseconds, point.error)))
        for point in points
    ]
    left, right = (scale * edge for edge in (axes.bbox.x0, axes.bbox.x1))
    taken = [(x - 5.0, y - 4.0, x + 5.0, y + 4.0) for x, y in marks]
    for (x, y), (later, lower) in pairwise(_steps(marks)):
        taken += [(x, y - 2.0, later, y + 2.0), (later - 2.0, lower, later + 2.0, y)]
    result = []
    for point, (x, y) in zip(points, marks, strict=True):
        width = (4.8 if point.case == "online" else 3.5) * len(PEERS[point.case].label)
        gap = 10.0 if point.case == "online" else 7.0
        places = [
            *(("left", x + gap, gap, up) for up in (0.0, 7.0, -7.0, 13.0, -13.0)),
            *(("right", x - gap - width, -gap, up) for up in (0.0, 7.0, -7.0, 13.0, -13.0)),
            *(("center", x - width / 2, 0.0, up) for up in (11.0, -11.0)),
        ]
        boxes = [(start, y + up - 4.5, start + width, y + up + 4.5) for _, start, _, up in places]
        costs = [
            sum(_overlap(box, other) for other in taken)
            + 50 * (max(left - box[0], 0.0) + max(box[2] - right, 0.0))
            + 2 * abs(place[3])
            for box, place in zip(boxes, places, strict=True)
        ]
        chosen = costs.index(min(costs))
        across, _, aside, up = places[chosen]
        taken.append(boxes[chosen])
        result.append((aside, up, across))
    return result


def _overlap(
    one: tuple[float, float, float, float], other: tuple[float, float, float, float]
) -> float:
    """Return the area that two boxes share."""
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    return wide * high if wide > 0 and high > 0 else 0.0


def each_stream(found: Sequence[Comparison]) -> Figure:
    """Draw a panel per stream, the frontier as a line, with one legend for all."""
    rows = -(-len(found) // PANELS)
    figure, panels = new(rows, PANELS, height=2.1 * rows + 1.3)
    drawn: dict[str, Artist] = {}
    for axes, each in zip(panels, found, strict=False):
        for row in each.ranked:
            how = look(row.case).scatter
            drawn[row.case] = axes.scatter(row.mean("mean_us"), row.mean("smse"), **how)
        _best(axes, [(row.mean("mean_us"), row.mean("smse")) for row in each.frontier])
        axes.set_title(each.title)
        logarithmic(axes, "x")
        logarithmic(axes)
    for position, axes in enumerate(panels):
        if position >= len(found):
            axes.set_axis_off()
        if position % PANELS == 0:
            axes.set_ylabel("SMSE")
        if position + PANELS >= len(found):
            axes.set_xlabel("µs per sample")
    order = [case for case in PEERS if case in drawn]
    labels = [PEERS[case].label for case in order]
    figure.legend(
        [drawn[case] for case in order],
        labels,
        loc="outside lower center",
        ncols=4,
        fontsize=7,
    )
    return figure


def _best(axes: Axes, points: Sequence[tuple[float, float]]) -> None:
    """Draw the frontier as steps: what is possible in a given time."""
    axes.step(
        *zip(*_steps(points), strict=True), where="post", color="#9A9A9A", linewidth=1.0, zorder=1
    )


def _steps(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points that no other beats in both coordinates, from the left."""
    steps: list[tuple[float, float]] = []
    for time, error in sorted(points):
        if not steps or error < steps[-1][1]:
            steps.append((time, error))
    return steps
