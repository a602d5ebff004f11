"""Theorem 2 as a figure: model order against budget for one to four inputs, and the exponents."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.drawing.style import LOOKS, WIDTH, logarithmic
from experiments.methods import METHODS
from experiments.parts.parsimony import BUDGETS, INPUTS
from experiments.readings.parsimony import SETTLED, Parsimony, parsimonies
from experiments.records import Records
from pogp.report.style import BLACK, GREY

# Greys, as colours are for methods.
COLOURS = dict(zip(INPUTS, ("#C4C4C4", "#919191", "#5C5C5C", "#222222"), strict=True))
_GROWING = f"still growing: over {SETTLED:.0%} in the second half"
MARKERS = dict(zip(INPUTS, "osD^", strict=True))


def theorem_2(records: Records) -> Figure:
    """Draw a panel for each rule, and one of exponents beside the bound."""
    found = parsimonies(records)
    if not found:
        raise ValueError("there are no records of theorem-2 to draw")
    figure = Figure(figsize=(WIDTH, 5.6), layout="constrained")
    first, second, third, fourth = BUDGETS
    panels = figure.subplot_mosaic(
        [[first, second, "exponents"], [third, fourth, "exponents"]], width_ratios=(1, 1, 1.15)
    )
    for case in BUDGETS:
        _orders(panels[case], [each for each in found if each.case == case])
    panels[third].set_ylabel("model order M (points)")
    panels[first].set_ylabel("model order M (points)")
    for case in (third, fourth):
        panels[case].set_xlabel("1/ε")
    _exponents(panels["exponents"], found)
    panels[first].plot([], [], "o", color=GREY, markerfacecolor="white", label=_GROWING)
    handles, labels = panels[first].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def _orders(axes: Axes, found: list[Parsimony]) -> None:
    """Draw mean orders; hollow where they were still growing."""
    for each in found:
        colour, marker = COLOURS[each.inputs], MARKERS[each.inputs]
        orders = each.orders.mean(axis=0)
        label = f"p = {each.inputs}"
        axes.plot(
            1 / each.budgets, orders, color=colour, marker=marker, markersize=4.5, label=label
        )
        growing = np.isin(each.budgets, each.unsettled)
        axes.plot(
            1 / each.budgets[growing],
            orders[growing],
            marker,
            color=colour,
            markerfacecolor="white",
            markersize=4.5,
        )
    axes.set(yscale="log", ylim=(0.9, 2000.0))
    logarithmic(axes, "x")
    axes.set_title(METHODS[found[0].case].label, fontsize=9)
    axes.yaxis.set_major_formatter("{x:g}")


def _exponents(axes: Axes, found: list[Parsimony]) -> None:
    axes.plot(INPUTS, INPUTS, color=BLACK, linestyle="--", label="the bound: p")
    for case in BUDGETS:
        fitted = [
            (each.inputs, fit) for each in found if each.case == case and (fit := each.exponent)
        ]
        axes.errorbar(
            [inputs for inputs, _ in fitted],
            [fit.value for _, fit in fitted],
            [2 * fit.error for _, fit in fitted],
            **LOOKS[METHODS[case].look].marked,
            capsize=2.5,
            label=METHODS[case].label,
        )
    axes.set(
        title="Exponents of 1/ε, ± 2 se",
        xlabel="number of inputs p",
        ylabel="slope of log M over log 1/ε",
        xticks=INPUTS,
        ylim=(0.0, 4.2),
    )
    axes.legend(loc="upper left", handlelength=2.6)
