"""Theorem 1 as a figure: distances between successive marginals, and how often they are small."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.drawing.style import DARK_BLUE, LIGHT_BLUE, new
from experiments.methods import METHODS
from experiments.readings.stationarity import Stationarity, stationarities
from experiments.records import Records
from pogp.report.style import BLACK, BLUE, GREY, VERMILLION

GAMMA = 0.01
CONSTANT = {
    ("pog-published", 1e-2): (LIGHT_BLUE, "-", "o"),
    ("pog-published", 1e-3): (BLUE, "-", "s"),
    ("pog-published", 1e-4): (DARK_BLUE, "-", "D"),
    ("pog-written", 1e-3): (BLUE, "--", "s"),
    ("absorbing", 0.1): (VERMILLION, "-", "^"),
    ("dense", 0.0): (BLACK, "-", "x"),
}
DECAYING = {
    ("pog-published", 0.5): (LIGHT_BLUE, "-", "o"),
    ("pog-published", 1.0): (BLUE, "-", "s"),
    ("pog-written", 1.0): (BLUE, "--", "s"),
    ("dense", 0.0): (BLACK, "-", "x"),
}


def theorem_1(records: Records) -> Figure:
    """Draw constant budgets on the left, decaying ones on the right."""
    found = stationarities(records)
    if not found:
        raise ValueError("there are no records of theorem-1 to draw")
    figure, (left, right, left_share, right_share) = new(
        2, 2, height=7.4, sharex=True, sharey="row", height_ratios=(1.25, 1.0)
    )
    for each in found:
        if each.constant and (each.case, each.initial) in CONSTANT:
            colour, style, marker = CONSTANT[each.case, each.initial]
            _distances(left, each, colour, style, marker, _constant_label(each))
            if each.case != "absorbing":  # its ε is in another unit: of the whole posterior
                _share(left_share, each, colour, style, marker)
        if (each.case, each.power) in DECAYING and (not each.constant or each.case == "dense"):
            colour, style, marker = DECAYING[each.case, each.power]
            _distances(right, each, colour, style, marker, _decaying_label(each))
            _share(right_share, each, colour, style, marker)
    left.set(title="(ii) constant budget", ylabel="Hellinger distance")
    right.set_title("(i) decaying budget")
    left.set(xscale="log", yscale="log", ylim=(3e-6, 1.0))
    left_share.set_ylabel(f"share of steps below {GAMMA:g} + ε")
    left_share.set_ylim(-0.02, 1.02)
    for axes in (left_share, right_share):
        axes.set_xlabel("samples seen")
    for axes in (left, right):
        axes.fill_between(
            [], [], color=GREY, alpha=0.25, label="median to ninth decile (as published)"
        )
        axes.plot([], [], color=GREY, linestyle=":", label="the budget ε (as published)")
        axes.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.03), ncols=1, fontsize=8, handlelength=3.0
        )
    return figure


def _distances(
    axes: Axes, each: Stationarity, colour: str, style: str, marker: str, label: str
) -> None:
    """Draw medians, the ninth decile above them where there is room, and the budget."""
    axes.plot(
        each.middle,
        each.curve("median"),
        color=colour,
        linestyle=style,
        marker=marker,
        markersize=3.5,
        label=label,
    )
    if each.case == "pog-published":
        axes.fill_between(
            each.middle,
            each.curve("median"),
            each.curve("ninth_decile"),
            color=colour,
            alpha=0.13,
            linewidth=0,
        )
        axes.plot(each.middle, each.budgets, color=colour, linestyle=":", linewidth=1.2)


def _share(axes: Axes, each: Stationarity, colour: str, style: str, marker: str) -> None:
    axes.plot(
        each.middle,
        each.within(GAMMA),
        color=colour,
        linestyle=style,
        marker=marker,
        markersize=3.5,
    )


def _constant_label(each: Stationarity) -> str:
    label = METHODS[each.case].label
    return label if each.case == "dense" else f"{label}, ε = {each.initial:g}"


def _decaying_label(each: Stationarity) -> str:
    label = METHODS[each.case].label
    power = {0.5: "√t", 1.0: "t"}.get(each.power)
    return label if each.case == "dense" else f"{label}, ε = {each.initial:g}/{power}"
