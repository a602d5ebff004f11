"""The figure of a run: test error, negative log density and model order over the stream."""

from os import PathLike
from typing import TYPE_CHECKING

from pogp.evaluation.methods import METHODS
from pogp.report import style
from pogp.report.run_record import Method, Record
from pogp.report.style import FIGURE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MISSING = "matplotlib is not installed; pip install 'pogp[plot]'"


def draw(record: Record, path: str | PathLike[str]) -> None:
    """Draw a run and write it, in the format that the name of the file ends in."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(MISSING) from error
    with rc_context(FIGURE):
        # Without pyplot: no window, no state that a caller would have to clean up.
        figure = Figure(figsize=(7.2, 6.6), layout="constrained")
        top, middle, bottom = figure.subplots(3, 1, sharex=True, height_ratios=(1.2, 1.2, 0.9))
        _errors(top, record)
        _densities(middle, record)
        _orders(bottom, record)
        _legend(top)
        bottom.set_xlabel(f"samples of {record.settings.data} seen")
        bottom.set_xlim(0, record.streamed)
        figure.align_ylabels()
        figure.savefig(path)


def _errors(axes: "Axes", record: Record) -> None:
    for method in record.methods:
        _curve(axes, method, [point.test.smse for point in method.checkpoints])
    axes.set_ylabel("SMSE")
    axes.set_title("Test error", pad=22)
    _logarithmic(axes)


def _densities(axes: "Axes", record: Record) -> None:
    for method in record.methods:
        _curve(axes, method, [point.test.nlpd for point in method.checkpoints])
    final = [method.final.test.nlpd for method in record.methods]
    spread = max(final) - min(final) or 1.0
    axes.set_ylim(min(final) - 0.15 * spread, max(final) + 1.2 * spread)  # not the first samples
    axes.set_ylabel("NLPD")
    axes.set_title("Negative log density of test samples")


def _orders(axes: "Axes", record: Record) -> None:
    for method in record.methods:
        _curve(axes, method, [point.size for point in method.checkpoints])
    axes.set_ylim(bottom=max(record.methods[0].final.size / 10, 0.8))  # not the first few samples
    axes.set_ylabel("points kept")
    axes.set_title("Model order")
    _logarithmic(axes)


def _logarithmic(axes: "Axes") -> None:
    """Make the vertical axis logarithmic, with labels at 2 and 5 too where decades are few."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
    axes.yaxis.set_minor_formatter("{x:g}" if high < 300 * low else NullFormatter())


def _curve(axes: "Axes", method: Method, values: list[float] | list[int]) -> None:
    seen = [point.seen for point in method.checkpoints]
    shared = METHODS[method.name]
    axes.plot(seen, values, color=style.METHODS[shared.look].colour, label=shared.label)


def _legend(axes: "Axes") -> None:
    """Put the legend above the first panel, where no curve can be."""
    _, labels = axes.get_legend_handles_labels()
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 0.98), ncols=len(labels), borderaxespad=0.0)
