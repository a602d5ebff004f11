"""The accuracy–memory frontier: error and log loss against model order, a line for each method."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.drawing.style import LOOKS, legend_below, logarithmic, new
from experiments.methods import METHODS
from experiments.published import SETS
from experiments.readings.compare import Comparison, comparison
from experiments.readings.frontier import Frontier, frontier
from experiments.records import Records

SCORES = {"smse": "SMSE (variance of the targets = 1)", "nlpd": "NLPD (nats)"}


def frontiers(topic: str, records: Records) -> Figure:
    """Draw one set."""
    found, compared = frontier(records, topic), comparison(records, topic)
    if found is None or compared is None:
        raise ValueError(f"there are no complete records of {topic} to draw")
    figure, panels = new(1, 2, height=4.6)
    for axes, (score, label) in zip(panels, SCORES.items(), strict=True):
        _methods(axes, found, score)
        _references(axes, compared, score, found.repeats)
        axes.set(xlabel=f"model order on {topic} (points)", ylabel=label)
        logarithmic(axes, "x")
    logarithmic(panels[0])
    panels[0].set_title("Error")
    panels[1].set_title("Log loss")
    legend_below(figure, *panels, columns=4)
    return figure


FIGURES: dict[str, Callable[[Records], Figure]] = {
    f"frontier-{topic}": partial(frontiers, topic) for topic in SETS
}


def _methods(axes: Axes, found: Frontier, score: str) -> None:
    for case, points in found.points.items():
        sizes = np.array([point.size.mean for point in points])
        values = np.array([getattr(point, score).mean for point in points])
        axes.plot(sizes, values, **LOOKS[METHODS[case].look].marked, label=METHODS[case].label)


def _references(axes: Axes, compared: Comparison, score: str, repeats: int) -> None:
    """Draw what is not on the frontier: the dense GP as a level, offline methods as points."""
    level = compared["dense"].at_the_end(score, repeats).mean
    axes.axhline(level, **LOOKS["dense"].plain, label="dense GP, all samples")
    for case in ("spgp", "vfe"):
        row = compared[case]
        look = LOOKS[row.method.look].marked | {"linestyle": "", "markersize": 9}
        value = row.at_the_end(score, repeats).mean
        axes.plot([row.size.mean], [value], **look, label=f"{row.method.label} (offline)")
