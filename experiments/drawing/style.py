"""How the reproduction's figures look: a colour for each family of methods, a line within it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
from PIL import Image

from pogp.report.style import FIGURE, METHODS, PURPLE, SKY_BLUE

WIDTH = 7.2
"""Inches: the width of a page."""
LIGHT_BLUE, DARK_BLUE = "#86C5EA", "#00344F"
"""POG's own colour again, lighter and darker, where it is drawn at several budgets."""
STYLE: dict[Any, Any] = {**FIGURE, "savefig.dpi": 170}


@dataclass(frozen=True)
class Line:
    """The colour of a family, and what tells its members apart without colour."""

    colour: str
    style: str = "-"
    marker: str = "o"
    hollow: bool = False
    width: float = 1.5

    @property
    def plain(self) -> dict[str, Any]:
        """Return arguments of `plot` for a curve."""
        return {"color": self.colour, "linestyle": self.style, "linewidth": self.width}

    @property
    def marked(self) -> dict[str, Any]:
        """Return arguments of `plot` for a curve with a marker at each of a few points."""
        face = "white" if self.hollow else self.colour
        return self.plain | {"marker": self.marker, "markersize": 4.5, "markerfacecolor": face}


_POG, _ABSORBING, _SOGP, _RANDOM, _DENSE = (
    METHODS[name].colour for name in ("pog", "absorbing", "sogp", "random", "dense")
)
LOOKS = {
    "dense": Line(_DENSE, marker="x"),
    "pog": Line(_POG, marker="o"),
    "pog-written": Line(_POG, "--", "s", hollow=True),
    "everywhere": Line(_POG, ":", "^"),
    "absorbing": Line(_ABSORBING, marker="o", width=2.4),  # others may lie right on it
    "sogp": Line(_SOGP, marker="D"),
    "mcintire": Line(_SOGP, "--", "d", hollow=True),
    "krls-ald": Line(SKY_BLUE, marker="P"),
    "krls-t": Line(SKY_BLUE, "--", "X", hollow=True),
    "random": Line(_RANDOM, marker="v"),
    "window": Line(_RANDOM, "--", "<", hollow=True),
    "spgp": Line(PURPLE, marker="*"),
    "vfe": Line(PURPLE, "--", "p", hollow=True),
    "streaming": Line(PURPLE, ":", "h"),
}
"""By `Method.look`."""


def new(rows: int, columns: int, height: float, **options: Any) -> tuple[Figure, list[Axes]]:
    """Return a figure of page width and its panels, row by row."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, list(np.ravel(figure.subplots(rows, columns, **options)))


def png(draw: Callable[[], Figure]) -> bytes:
    """Draw in the style of the reproduction; return PNG with a palette, a third of the size."""
    drawn, small = BytesIO(), BytesIO()
    with rc_context(STYLE):
        draw().savefig(drawn, format="png", pil_kwargs={"compress_level": 1})  # it is read at once
    picture = Image.open(drawn).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    picture.save(small, format="png", optimize=True)
    return small.getvalue()


def legend_below(figure: Figure, *panels: Axes, columns: int) -> None:
    """Put one legend below all panels, where no curve can be."""
    found: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    figure.legend(
        list(found.values()),
        list(found),
        loc="outside lower center",
        ncols=columns,
        handlelength=2.6,
    )


def logarithmic(axes: Axes, which: str = "y") -> None:
    """Make an axis logarithmic, labelled between powers of ten where there are few of them."""
    axis = axes.yaxis if which == "y" else axes.xaxis
    axes.set(**{f"{which}scale": "log"})
    low, high = axis.get_view_interval()
    axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(
        LogLocator(subs=(2.0, 3.0, 4.0, 5.0, 6.0, 8.0) if high < 8 * low else (2.0, 5.0))
    )
    axis.set_minor_formatter("{x:g}" if high < 100 * low else NullFormatter())
