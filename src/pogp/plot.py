"""Figures of models and of their predictions, with matplotlib.

Each function draws on `ax`, or on new axes of pyplot, and returns the axes. `stream` makes a figure
of several. matplotlib is imported when something is drawn: `pip install 'pogp[plot]'`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from pogp import validation
from pogp.arrays import Array
from pogp.models import Model
from pogp.report.style import (
    BLACK,
    BLUE,
    FIGURE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY_BLUE,
    VERMILLION,
    YELLOW,
)
from pogp.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["calibration", "error", "members", "order", "posterior", "stream"]

POINTS = 300
"""Where a posterior is drawn."""
Snapshots = Sequence[tuple[int, Mapping[str, float]]]
"""Weights of members along a stream: `(model.seen, model.weights)` now and then."""
COLOURS = {
    "mean": GREY,
    "last": BLACK,
    "linear": ORANGE,
    "linear with lags": YELLOW,
    "Matern32": BLUE,
    "RBF": VERMILLION,
    "Matern12": GREEN,
}
"""Of the members of `OnlineGP`, by kind."""
STYLE = FIGURE | {"grid.color": "#808080", "grid.alpha": 0.25}
"""The grid is as faint on a dark background as on a light one."""


def posterior(
    model: Model,
    column: int = 0,
    *,
    held: ArrayLike | None = None,
    span: tuple[float, float] | None = None,
    data: tuple[ArrayLike, ArrayLike] | None = None,
    level: float = 0.95,
    output: int = 0,
    ax: Axes | None = None,
) -> Axes:
    """Draw the mean and the band of y over one input, the others held.

    Parameters
    ----------
    model
        Any model that has learned something.
    column
        The input that moves.
    held
        A point (p,) at which the others stay; the median of the data, or of the retained points.
    span
        The ends of the axis; those of the data, or of the retained points.
    data
        Samples (X, y) to draw, and to take `held` and `span` from.
    level
        The probability of the band, which is that of `model.interval`. The darker band inside is
        that of the function, without the noise.
    output
        Of several outputs, the one to draw.
    ax
        The axes to draw on.
    """
    if data is None and not model.seen:
        raise ValueError(
            "the model has learned nothing yet: expected a model with samples, or data"
        )
    places = model.dictionary if data is None else np.asarray(data[0], dtype=np.float64)
    if places.ndim != 2 or len(places) == 0:
        raise ValueError(
            f"data must be samples (X, y) with X of shape (n, p), or the model must have points, "
            f"got shape {places.shape}"
        )
    if not 0 <= validation.count("column", column, 0) < places.shape[1]:
        raise ValueError(f"column must be below {places.shape[1]}, the inputs, got {column!r}")
    X = _line(places, column, held, span)
    mean, lower, upper, deviation = _moments(model, X, level, output)
    axes, x = _axes(ax), X[:, column]
    if data is not None:
        y = np.asarray(data[1], dtype=np.float64).reshape(len(places), -1)[:, output]
        axes.plot(places[:, column], y, ".", ms=3, color=GREY, alpha=0.5, label="samples", zorder=1)
    axes.fill_between(x, lower, upper, color=SKY_BLUE, alpha=0.3, lw=0, label=f"{level:.0%} of y")
    reach = (upper - mean) / np.maximum(deviation[0], 1e-300)
    inner = reach * deviation[1]
    axes.fill_between(
        x, mean - inner, mean + inner, color=BLUE, alpha=0.25, lw=0, label=f"{level:.0%} of f"
    )
    axes.plot(x, mean, color=BLUE, label="mean")
    kept = model.dictionary
    if len(kept):
        axes.plot(
            kept[:, column],
            np.full(len(kept), 0.0),
            "|",
            ms=7,
            color=VERMILLION,
            transform=axes.get_xaxis_transform(),
            clip_on=False,
            label=f"{len(kept)} points",
        )
    axes.set(xlabel=f"input {column}", ylabel="y", xlim=(float(x[0]), float(x[-1])))
    _legend(axes, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=5)
    return axes


def error(y: ArrayLike, trace: Trace, *, window: int | None = None, ax: Axes | None = None) -> Axes:
    """Draw the error along a stream, each sample predicted before it was learned.

    It is the mean square of a moving window, a twentieth of the stream by default, as a
    share of the variance of y: 1 is as good as predicting the mean.
    """
    squares = _scored(y, trace)
    count = len(squares)
    width = validation.count("window", max(count // 20, 1) if window is None else window, 1)
    width = min(width, count)
    smooth = np.convolve(squares, np.full(width, 1 / width), mode="valid")
    axes = _axes(ax)
    axes.plot(np.arange(width, count + 1), smooth, color=VERMILLION)
    axes.axhline(1.0, color=GREY, lw=0.8, ls="--")
    axes.set_title(f"Error, mean of {width} samples", loc="left")
    axes.set(ylabel="SMSE", xlim=(0, count))
    if smooth.min() > 0:
        axes.set_yscale("log")
    return axes


def order(trace: Trace, *, ax: Axes | None = None) -> Axes:
    """Draw the model order along a stream."""
    axes = _axes(ax)
    axes.step(np.arange(1, len(trace) + 1), trace.size, where="post", color=BLUE)
    axes.set_title("Model order", loc="left")
    axes.set(ylabel="points", xlim=(0, len(trace)))
    axes.set_ylim(bottom=0)
    return axes


def members(snapshots: Snapshots, *, ax: Axes | None = None) -> Axes:
    """Draw which members of an `OnlineGP` carried the weight along a stream.

    >>> import numpy as np, pogp
    >>> model, snapshots = pogp.OnlineGP(), []
    >>> for x in np.linspace(0, 6, 30):
    ...     trace = model.learn([x], np.sin(x))
    ...     snapshots.append((model.seen, model.weights))
    >>> ax = pogp.plot.members(snapshots)
    """
    if len(snapshots) < 2:
        raise ValueError(f"expected at least two snapshots of the weights, got {len(snapshots)}")
    totals = {kind: np.zeros(len(snapshots)) for kind in COLOURS}
    for i, (_, weights) in enumerate(snapshots):
        for name, weight in weights.items():
            kind = name if name in COLOURS else name.split()[0]
            totals.setdefault(kind, np.zeros(len(snapshots)))[i] += weight
    present = {kind: total for kind, total in totals.items() if total.max() > 0.01}
    axes, seen = _axes(ax), [position for position, _ in snapshots]
    colours = [COLOURS.get(kind, PURPLE) for kind in present]
    axes.stackplot(seen, *present.values(), labels=list(present), colors=colours, lw=0)
    axes.set_title("Weight of members", loc="left")
    axes.set(ylabel="share", xlim=(seen[0], seen[-1]), ylim=(0, 1))
    axes.set_axisbelow(True)
    _legend(axes, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return axes


def calibration(
    y: ArrayLike, mean: ArrayLike, variance: ArrayLike, *, ax: Axes | None = None
) -> Axes:
    """Draw how many targets lie in bands of every level, beside how many should.

    Above the diagonal bands are too wide, below it too narrow. The grey area holds 95 % of what
    chance alone would give with as many samples.
    """
    from scipy.special import ndtr

    y, mean, variance = (np.asarray(each, dtype=np.float64).ravel() for each in (y, mean, variance))
    if not len(y) == len(mean) == len(variance) or len(y) == 0:
        shapes = f"{y.shape}, {mean.shape} and {variance.shape}"
        raise ValueError(f"y, mean and variance must be of one length, at least 1, got {shapes}")
    if not (variance > 0).all():
        raise ValueError(f"variance must be positive, got {variance[~(variance > 0)][0]}")
    levels = np.linspace(0.0, 1.0, 101)
    needed = 2.0 * ndtr(np.abs(y - mean) / np.sqrt(variance)) - 1.0
    inside = np.searchsorted(np.sort(needed), levels, side="right") / len(y)
    chance = 1.96 * np.sqrt(levels * (1 - levels) / len(y))
    axes = _axes(ax, figsize=(3.8, 3.8))
    low, high = np.maximum(levels - chance, 0), np.minimum(levels + chance, 1)
    axes.fill_between(levels, low, high, color=GREY, alpha=0.25, lw=0, label="chance")
    axes.plot([0, 1], [0, 1], color=GREY, lw=0.8, ls="--")
    axes.plot(levels, inside, color=VERMILLION, label="targets inside")
    axes.set_title("Calibration", loc="left")
    axes.set(xlabel="level of the band", ylabel="share of targets inside")
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    _legend(axes, loc="upper left")
    return axes


def stream(
    y: ArrayLike, trace: Trace, snapshots: Snapshots | None = None, *, window: int | None = None
) -> Figure:
    """Return a figure of a stream: error, order and, given snapshots, members over time."""
    import matplotlib.pyplot as plt

    rows = 2 if snapshots is None else 3
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            rows, 1, sharex=True, figsize=(7.2, 1.9 * rows), layout="constrained"
        )
        error(y, trace, window=window, ax=axes[0])
        order(trace, ax=axes[1])
        if snapshots is not None:
            members(snapshots, ax=axes[2])
        axes[0].set_xlim(0, len(trace))
        axes[-1].set_xlabel("samples")
    return figure


def _axes(ax: Axes | None, figsize: tuple[float, float] = (7.2, 3.2)) -> Axes:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("pogp.plot needs matplotlib; pip install 'pogp[plot]'") from error
    with plt.rc_context(STYLE):
        return plt.subplots(figsize=figsize, layout="constrained")[1]


def _legend(axes: Axes, **where: Any) -> None:
    axes.legend(frameon=False, fontsize=8, handlelength=1.4, **where)


def _line(
    places: Array, column: int, held: ArrayLike | None, span: tuple[float, float] | None
) -> Array:
    """Return points along one input."""
    centre = np.median(places, axis=0) if held is None else np.asarray(held, dtype=np.float64)
    if centre.shape != (places.shape[1],):
        raise ValueError(f"held must be of shape {(places.shape[1],)}, got {centre.shape}")
    moving = places[:, column]
    low, high = (moving.min(), moving.max()) if span is None else span
    if span is None and low == high:
        low, high = low - 1.0, high + 1.0
    if not low < high:
        raise ValueError(f"span must be two ends, the lower first, got {span!r}")
    X = np.repeat(centre[None], POINTS, axis=0)
    X[:, column] = np.linspace(low, high, POINTS)
    return X


def _moments(model: Model, X: Array, level: float, output: int) -> tuple[Any, ...]:
    """Return mean, lower and upper end of one output, and deviations of y and of f."""
    with model.locked():
        lower, upper = model.interval(X, level)
        mean, variance = model.predict(X)
        latent = model.predict(X, latent=True)[1]
    parts = [each.reshape(len(X), -1) for each in (mean, lower, upper, variance, latent)]
    if not 0 <= validation.count("output", output, 0) < parts[0].shape[1]:
        raise ValueError(f"output must be below {parts[0].shape[1]}, got {output!r}")
    mean, lower, upper, variance, latent = (each[:, output] for each in parts)
    return mean, lower, upper, (np.sqrt(variance), np.sqrt(latent))


def _scored(y: ArrayLike, trace: Trace) -> Array:
    """Return the squared errors of each sample in units of the targets' variances."""
    targets = np.asarray(y, dtype=np.float64)
    if len(trace) < 2 or targets.shape != trace.mean.shape:
        raise ValueError(f"y must be the targets of {trace!r}, at least two, got {targets.shape}")
    targets = targets.reshape(len(trace), -1)
    spread = targets.var(axis=0)
    means = trace.mean.reshape(targets.shape)
    share = (targets - means) ** 2 / np.where(spread > 0, spread, 1.0)
    return np.asarray(share.mean(axis=1))
