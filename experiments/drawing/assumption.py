"""Assumption 1 as a figure: the two sequences of distances, and how often each is below γ."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.drawing.style import LIGHT_BLUE, legend_below, logarithmic, new
from experiments.parts.assumption import CASES, GAMMAS, SIMULATED, THIRDS, WINDOWS
from experiments.readings.assumption import Assumption, assumptions
from experiments.records import Records
from pogp.report.style import BLACK, BLUE

SHOWN_INPUTS = "2 inputs"
"""Of the simulated streams, the one that is drawn."""
LINES: dict[tuple[str, str], tuple[str, dict[str, Any]]] = {
    ("dense", "change"): ("dense GP", {"color": BLACK}),
    ("pog", "novelty"): (
        "POG as published, before compression",
        {"color": LIGHT_BLUE, "linewidth": 4},
    ),
    ("pog", "change"): ("after compression", {"color": BLUE, "linestyle": "--"}),
}


def assumption_1(records: Records) -> Figure:
    """Draw a row for each stream there is: over time on the left, over γ on the right."""
    shown = [
        each
        for each in assumptions(records)
        if each.case == CASES[0] and (each.topic != SIMULATED or each.name == SHOWN_INPUTS)
    ]
    if not shown:
        raise ValueError("there are no records of assumption-1 to draw")
    figure, panels = new(len(shown), 2, height=0.7 + 1.9 * len(shown), sharex="col", squeeze=False)
    for each, left, right in zip(shown, panels[::2], panels[1::2], strict=True):
        _sequences(left, each)
        _distributions(right, each)
    panels[-2].set_xlabel("share of the stream seen")
    panels[-1].set_xlabel("γ")
    panels[1].set_title("Share of steps below γ, last third")
    legend_below(figure, panels[0], columns=3)
    return figure


def _sequences(axes: Axes, each: Assumption) -> None:
    middles = (np.arange(WINDOWS) + 0.5) / WINDOWS
    for (who, kind), (label, look) in LINES.items():
        axes.plot(middles, each.medians(who, kind), label=label, **look)
    axes.set(ylabel="Hellinger distance", xlim=(0, 1))
    axes.set_title(f"{_name(each)}: median distance")
    logarithmic(axes)


def _distributions(axes: Axes, each: Assumption) -> None:
    last = THIRDS - 1
    for (who, kind), (_, look) in LINES.items():
        axes.plot(GAMMAS, each.below(who, kind, last), **look)
    axes.set(xscale="log", ylim=(-0.03, 1.03), ylabel="share of steps")
    held = f"dense ≤ POG in\n{each.held(third=last):.0%} of the steps"
    axes.text(0.02, 0.95, held, transform=axes.transAxes, va="top", fontsize=8)


def _name(each: Assumption) -> str:
    return f"simulated, {each.name}" if each.topic == SIMULATED else each.topic
