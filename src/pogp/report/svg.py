"""Figures as SVG that a page holds: they scale with it, and its style sheet has their colours.

A figure is 360 units wide, about as many as a telephone has pixels, and nowhere shown much wider:
its labels are then as large as the text around it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from pogp.arrays import Array
from pogp.report.axes import Axis, crowded, linear, width
from pogp.report.markup import Markup, element, joined, legend

WIDTH, HEIGHT = 360.0, 216.0
TOP, BOTTOM, RIGHT, GAP = 8.0, 24.0, 10.0, 7.0
DOT = 2.6


@dataclass
class Panel:
    """A pair of axes and the marks between them, drawn in the order they are added.

    A `look` is a class of the style sheet, which gives it its colour. Marks are kept inside the
    axes: values beyond them are drawn on the edge.
    """

    x: Axis
    y: Axis
    marks: list[Markup] = field(default_factory=list)

    @property
    def left(self) -> float:
        """Where the plot begins: there is room for the labels, also for the first one below."""
        return max(_margin(self.y), width(self.x.labels[0]) / 2)

    @property
    def right(self) -> float:
        """Where it ends: the last label on the horizontal axis stays inside the figure."""
        return WIDTH - max(RIGHT, width(self.x.labels[-1]) / 2)

    def across(self, values: ArrayLike) -> Array:
        """Return the horizontal positions of values."""
        return self.left + (self.right - self.left) * np.clip(self.x.place(values), 0.0, 1.0)

    def down(self, values: ArrayLike) -> Array:
        """Return the vertical positions of values."""
        return TOP + (HEIGHT - BOTTOM - TOP) * (1.0 - np.clip(self.y.place(values), 0.0, 1.0))

    def line(self, x: ArrayLike, y: ArrayLike, look: str) -> None:
        """Join points, except across missing ones; an isolated point becomes a dot."""
        points = np.column_stack([self.across(x), self.down(y)])
        gaps = np.flatnonzero(~np.isfinite(points).all(axis=1))
        for run in np.split(points, gaps):
            run = run[np.isfinite(run).all(axis=1)]
            if len(run) == 1:
                self._add("circle", look, "dot", **_circle(run[0]))
            elif len(run):
                self._add("path", look, "line", d=_path(run))

    def beyond(self, x: ArrayLike, y: ArrayLike, look: str) -> None:
        """Mark points above the vertical axis by a tip at its upper end."""
        for place in self.across(x)[np.asarray(y) > self.y.high]:
            self._add("path", look, "tip", d=f"M{_short(place - 4)} {_short(TOP)}l4-6 4 6Z")

    def level(self, y: float, look: str) -> None:
        """Draw a line from end to end."""
        self.line([self.x.low, self.x.high], [y, y], look)

    def band(
        self, x: ArrayLike, low: ArrayLike, high: ArrayLike, look: str, note: str | None = None
    ) -> None:
        """Fill the area between two curves, with a note as its tooltip."""
        across = self.across(x)
        there, back = np.column_stack([across, self.down(low)]), [across, self.down(high)]
        outline = np.concatenate([there, np.column_stack(back)[::-1]])
        title = element("title", note) if note else None
        self._add("path", look, "band", title, d=_path(outline) + "Z")

    def dots(
        self, x: ArrayLike, y: ArrayLike, look: str, notes: Sequence[str] | None = None
    ) -> None:
        """Draw a dot for each point, with a note as its tooltip."""
        points = np.column_stack([self.across(x), self.down(y)])
        for i, point in enumerate(points):
            note = element("title", notes[i]) if notes else None
            self._add("circle", look, "dot", note, **_circle(point))

    def bars(self, edges: ArrayLike, heights: ArrayLike, look: str, notes: Sequence[str]) -> None:
        """Draw a bar from zero between each two edges, with a note as its tooltip."""
        sides, tops, foot = self.across(edges), self.down(heights), float(self.down(0.0))
        for left, right, top, note in zip(sides[:-1], sides[1:], tops, notes, strict=True):
            box = _box(left + 0.5, top, right - left - 1.0, foot - top)
            self._add("rect", look, "bar", element("title", note), **box)

    def rug(self, x: ArrayLike, look: str) -> None:
        """Mark values by ticks on the horizontal axis; those beyond it are left out."""
        values = np.asarray(x, dtype=np.float64)
        values = values[(values >= self.x.low) & (values <= self.x.high)]
        places = np.unique(np.round(2 * self.across(values)) / 2)
        if len(places):
            foot = HEIGHT - BOTTOM
            strokes = "".join(f"M{_short(place)} {_short(foot)}v-9" for place in places)
            self._add("path", look, "rug", d=strokes)

    def notes(self, edges: ArrayLike, texts: Sequence[str]) -> None:
        """Cut the width at the edges into strips, each with a text as its tooltip."""
        sides = self.across(edges)
        for left, right, text in zip(sides[:-1], sides[1:], texts, strict=True):
            box = _box(left, TOP, right - left, HEIGHT - BOTTOM - TOP)
            self.marks.append(element("rect", element("title", text), class_="strip", **box))

    def svg(self, name: str, title: str, description: str) -> Markup:
        """Return the figure; `name` is unique in the page."""
        heading = element("title", title, id=f"{name}-title")
        words = element("desc", description, id=f"{name}-desc")
        content = (heading, words, self._grid(), self._labels(), *self.marks)
        return element(
            "svg",
            *content,
            id=name,
            role="img",
            viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
            aria_labelledby=f"{name}-title",
            aria_describedby=f"{name}-desc",
        )

    def _add(self, tag: str, look: str, kind: str, *content: object, **shape: object) -> None:
        self.marks.append(element(tag, *content, class_=f"mark {kind} {look}", **shape))

    def _grid(self) -> Markup:
        foot = _short(HEIGHT - BOTTOM)
        levels = "".join(
            f"M{_short(self.left)} {_short(y)}H{_short(self.right)}"
            for y in self.down(self.y.ticks)
        )
        ticks = "".join(f"M{_short(x)} {foot}v4" for x in self.across(self.x.ticks))
        return joined(
            element("path", class_="grid", d=levels),
            element("path", class_="axis", d=f"M{_short(self.left)} {foot}H{_short(self.right)}"),
            element("path", class_="axis", d=ticks) if ticks else None,
        )

    def _labels(self) -> Markup:
        across = zip(self.across(self.x.ticks), self.x.labels, strict=True)
        down = zip(self.down(self.y.ticks), self.y.labels, strict=True)
        foot, edge = _short(HEIGHT - 6), _short(self.left - GAP)
        return joined(
            *(element("text", text, x=_short(x), y=foot, class_="below") for x, text in across),
            *(element("text", text, x=edge, y=_short(y + 4), class_="beside") for y, text in down),
        )


def fitting(low: float, high: float, beside: Axis, *, whole: bool = False) -> Axis:
    """Return a horizontal axis whose labels have room next to the labels of a vertical one."""
    for intervals in (6, 5, 4, 3, 2):
        axis = linear(low, high, intervals, whole=whole)
        panel = Panel(axis, beside)  # its width also depends on the first and last label
        if not crowded(axis, panel.right - panel.left):
            return axis
    ends = slice(None, None, len(axis.ticks) - 1)  # long labels: the first and the last only
    return replace(axis, ticks=axis.ticks[ends], labels=axis.labels[ends])


@dataclass(frozen=True)
class Figure:
    """A panel with its title, the names of its axes and the legend.

    `name` is unique in the page, `legend` has a look and a text for each kind of mark, and
    `description` says in words what the figure shows.
    """

    name: str
    title: str
    panel: Panel
    across: str
    down: str
    description: str
    legend: tuple[tuple[str, str], ...] = ()

    def markup(self) -> Markup:
        """Return the figure for the page, its words in HTML: they wrap where there is no room."""
        return element(
            "figure",
            element("figcaption", self.title),
            legend(self.legend) if self.legend else None,
            element("p", self.panel.y.named(self.down), class_="down"),
            self.panel.svg(self.name, self.title, self.description),
            element("p", self.panel.x.named(self.across), class_="across"),
        )


def _margin(axis: Axis) -> float:
    """Return how much room the labels of a vertical axis take."""
    return GAP + max(width(label) for label in axis.labels)


def _circle(point: Array) -> dict[str, object]:
    return {"cx": _short(point[0]), "cy": _short(point[1]), "r": DOT}


def _box(x: float, y: float, width: float, height: float) -> dict[str, object]:
    box = {"x": x, "y": y, "width": max(width, 0.5), "height": max(height, 0.0)}
    return {name: _short(value) for name, value in box.items()}


def _path(points: Array) -> str:
    return "M" + "L".join(f"{_short(x)} {_short(y)}" for x, y in points)


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
