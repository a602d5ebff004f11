"""How the pictures look: colours, panels, bands, marks, legends and files."""

from io import BytesIO
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from pogp.arrays import Array
from pogp.report.style import FIGURE, METHODS

WIDTH = 7.2
STYLE = {**FIGURE, "savefig.dpi": 195, "legend.fontsize": 9}
POG, ABSORBING, DENSE = (METHODS[name].colour for name in ("pog", "absorbing", "dense"))
GRID = np.linspace(-3, 3, 301)


def new(rows: int, columns: int, height: float, **options: object) -> tuple[Figure, Array]:
    """Return a figure of page width and its panels."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, np.ravel(figure.subplots(rows, columns, **options))


def band(
    axes: Axes, x: Array, mean: Array, variance: Array, colour: str, label: str | None
) -> None:
    """Draw a mean with a band of two standard deviations."""
    reach = 2 * np.sqrt(variance)
    axes.fill_between(x, mean - reach, mean + reach, color=colour, alpha=0.18, linewidth=0)
    axes.plot(x, mean, color=colour, label=label)


def reference(axes: Axes, mean: Array, label: str, variance: Array | None = None) -> None:
    """Draw what a posterior is compared with, on top of it."""
    axes.plot(GRID, mean, color=DENSE, linewidth=1.1, linestyle="--", label=label, zorder=3)
    for sign in (-2, 2) if variance is not None else ():
        edge = mean + sign * np.sqrt(variance)
        axes.plot(GRID, edge, color=DENSE, linewidth=0.9, linestyle=":")


def ticks(axes: Axes, places: Array, colour: str) -> None:
    """Mark places at the foot of a panel."""
    foot = np.full(len(places), 0.03)
    options = {"markersize": 10, "markeredgewidth": 1.8, "transform": axes.get_xaxis_transform()}
    axes.plot(places, foot, "|", color=colour, **options)


def below(figure: Figure, *panels: Axes, columns: int | None = None) -> None:
    """Put one legend below all panels, where no curve can be."""
    found: dict[str, object] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            key = (label, str(getattr(handle, "get_color", lambda: "")()))
            found.setdefault(key, handle)
    labels = [label for label, _ in found]
    wanted = columns or min(len(labels), 3)
    figure.legend(list(found.values()), labels, loc="outside lower center", ncols=wanted)


def save(figure: Figure, path: Path) -> None:
    """Write a figure with a palette, a third of the size."""
    drawn = BytesIO()
    figure.savefig(drawn, format="png")
    Image.open(drawn).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(
        path, optimize=True
    )
