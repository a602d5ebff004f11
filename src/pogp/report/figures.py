"""The figure of a run: error, model order and Hellinger distances over the stream."""

from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from pogp.arrays import Array
from pogp.report.record import Method, Record
from pogp.report.style import FIGURE, GREEN, GREY, METHODS, PURPLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MISSING = "matplotlib is not installed; pip install 'pogp[plot]'"
NEGLIGIBLE = 1e-9
"""Hellinger distances below this are rounding: a logarithmic axis starts above them."""


def draw(record: Record, path: str | PathLike[str]) -> None:
    """Draw a run and write it, in the format that the name of the file ends in."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(MISSING) from error
    with rc_context(FIGURE):
        # Without pyplot: no window, no state that a caller would have to clean up.
        figure = Figure(figsize=(7.2, 7.2), layout="constrained")
        top, middle, bottom = figure.subplots(3, 1, sharex=True, height_ratios=(1.2, 0.9, 1.2))
        _errors(top, record)
        _orders(middle, record)
        _distances(bottom, record)
        bottom.set_xlabel(f"samples of {record.settings.data} seen")
        bottom.set_xlim(0, record.streamed)
        figure.align_ylabels()
        figure.savefig(path)


def _errors(axes: "Axes", record: Record) -> None:
    for method in record.methods:
        _curve(axes, method, [point.test.smse for point in method.checkpoints])
    axes.plot(
        *_moving_mean(record.steps.error),
        color=METHODS["pog"].colour,
        alpha=0.4,
        linewidth=0.9,
        label=f"POG before learning (mean of {_window(record.steps.error)})",
    )
    axes.set_ylabel("SMSE")
    _logarithmic(axes)
    _head(axes, "Test error")


def _orders(axes: "Axes", record: Record) -> None:
    for method in record.methods:
        _curve(axes, method, [point.size for point in method.checkpoints])
    axes.set_ylim(bottom=max(record.methods[0].final.size / 10, 0.8))  # not the first few samples
    axes.set_ylabel("points retained")
    _logarithmic(axes)
    _head(axes, "Model order")


def _distances(axes: "Axes", record: Record) -> None:
    steps, budget = record.steps, record.settings.budget
    for label, values, colour, width in (
        ("novelty", steps.novelty, GREEN, 2.6),  # wider, as change may lie right on it
        ("change", steps.change, METHODS["pog"].colour, 1.4),
        ("spent on compression", steps.spent, PURPLE, 1.6),
    ):
        seen = np.arange(1, len(values) + 1)
        faint = float(np.clip(900 / len(values), 0.04, 0.3))  # alike over short and long streams
        axes.plot(seen, values, ".", color=colour, markersize=2.5, alpha=faint, markeredgewidth=0)
        axes.plot(*_moving_mean(values), color=colour, linewidth=width, label=label)
    if budget:
        axes.axhline(budget, color=GREY, linestyle="--", linewidth=1.2, label="budget")
    axes.set_ylim(_floor(record), 1.2)
    axes.set_ylabel("Hellinger distance")
    _logarithmic(axes)
    _head(axes, f"POG per sample (mean of {_window(steps.change)})")


def _floor(record: Record) -> float:
    """Return where the axis of distances starts: below the budget, the means, most distances."""
    steps = record.steps
    distances = np.concatenate((steps.novelty, steps.change, steps.spent, [1.0]))
    _, means = _moving_mean(steps.change)
    lowest = np.append(means[means > NEGLIGIBLE], record.settings.budget or 1.0).min()
    return float(min(lowest, np.quantile(distances[distances > NEGLIGIBLE], 0.02))) / 1.5


def _logarithmic(axes: "Axes") -> None:
    """Make the vertical axis logarithmic, with labels at 2 and 5 too where decades are few."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
    axes.yaxis.set_minor_formatter("{x:g}" if high < 300 * low else NullFormatter())


def _curve(axes: "Axes", method: Method, values: list[float] | list[int]) -> None:
    look = METHODS[method.name]
    seen = [point.seen for point in method.checkpoints]
    axes.plot(seen, values, color=look.colour, label=look.label)


def _head(axes: "Axes", title: str) -> None:
    """Put the title and the legend side by side above the panel, where no curve can be."""
    axes.set_title(title)
    _, labels = axes.get_legend_handles_labels()
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 0.98), ncols=len(labels), borderaxespad=0.0)


def _moving_mean(values: list[float]) -> tuple[Array, Array]:
    """Return the mean of each stretch of a twentieth of the stream, and where each one ends.

    The mean, not the median: where a step leaves the model as it was, the distance is zero, and a
    median jumps there once every other step does.
    """
    window = _window(values)
    ends = np.arange(window, len(values) + 1, dtype=np.float64)
    return ends, np.convolve(values, np.full(window, 1.0 / window), mode="valid")


def _window(values: list[float]) -> int:
    return max(len(values) // 20, 1)
