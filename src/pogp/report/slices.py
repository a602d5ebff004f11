"""One-dimensional slices of the posterior: one input varies, the others stay at their medians."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from pogp.arrays import Array
from pogp.report.axes import Axis, linear, number
from pogp.report.summary import Summary
from pogp.report.svg import Figure, Panel, fitting

SLICES = 12
"""The most slices that are drawn."""
POINTS = 61
"""Points of a slice at which the model predicts."""
DEVIATIONS = float(ndtri(0.975))
"""The half-width of a 95 % band, in deviations."""


@dataclass(frozen=True)
class Slice:
    """The prediction of one output along one input: its mean, and half its 95 % band."""

    input: int
    output: int
    places: Array
    mean: Array
    margin: Array


def cut(summary: Summary) -> list[Slice]:
    """Return slices along the most relevant inputs, for every output."""
    outputs = summary.journal.outputs
    inputs = summary.order[: max(SLICES // outputs, 1)]
    if not inputs:
        return []
    samples = summary.journal.samples.inputs
    places = np.array([_places(samples[:, d]) for d in inputs])
    queries = np.tile(np.median(samples, axis=0), (len(inputs), POINTS, 1))
    for query, d, place in zip(queries, inputs, places, strict=True):
        query[:, d] = place
    predicted = summary.model.predict(queries.reshape(-1, samples.shape[1]))
    mean, variance = (part.reshape(len(inputs), POINTS, outputs) for part in predicted)
    margin = DEVIATIONS * np.sqrt(variance)
    slices = [
        Slice(d, output, places[i], mean[i, :, output], margin[i, :, output])
        for i, d in enumerate(inputs)
        for output in range(outputs)
    ]
    return slices[:SLICES]


def _places(values: Array) -> Array:
    """Return positions that cover nearly all of the values."""
    low, high = np.quantile(values, (0.01, 0.99))
    if low == high:
        low, high = values.min(), values.max()
    margin = 0.02 * (high - low)
    return np.linspace(low - margin, high + margin, POINTS)


def draw(slices: list[Slice], summary: Summary) -> list[Figure]:
    """Draw slices, those of one output on the same vertical axis."""
    axes = {each.output: _axis(slices, each.output, summary) for each in slices}
    return [_draw(each, axes[each.output], summary) for each in slices]


def shows_samples(summary: Summary) -> bool:
    """Return whether samples lie on the slices: if no other input varies."""
    return len(summary.order) == 1


def _axis(slices: list[Slice], output: int, summary: Summary) -> Axis:
    """Return a vertical axis for all bands of an output, and for its samples if they are drawn."""
    mine = [each for each in slices if each.output == output]
    values = [edge for each in mine for edge in (each.mean - each.margin, each.mean + each.margin)]
    if shows_samples(summary):
        values.append(summary.journal.samples.targets[:, output])
    together = np.concatenate(values)
    return linear(float(together.min()), float(together.max()), 5, snap=True)


def _draw(slice_: Slice, axis: Axis, summary: Summary) -> Figure:
    d, places, mean, margin = slice_.input, slice_.places, slice_.mean, slice_.margin
    name, target = summary.names[d], summary.targets[slice_.output]
    panel = Panel(fitting(float(places[0]), float(places[-1]), axis), axis)
    if shows_samples(summary):
        samples = summary.journal.samples
        panel.dots(samples.inputs[:, d], samples.targets[:, slice_.output], "grey faint")
    panel.band(places, mean - margin, mean + margin, "blue")
    panel.line(places, mean, "blue")
    if summary.model.size:
        panel.rug(summary.model.dictionary[:, d], "vermillion")
    panel.notes(
        [places[0], *(places[1:] + places[:-1]) / 2, places[-1]],
        [
            f"{name} {number(x)}: {number(middle)} ± {number(half)}"
            for x, middle, half in zip(places, mean, margin, strict=True)
        ],
    )
    return Figure(
        f"slice-{d}-{slice_.output}",
        f"{target} along {name}",
        panel,
        name,
        target,
        f"The mean goes from {number(mean[0])} to {number(mean[-1])}, between "
        f"{number(mean.min())} and {number(mean.max())}; the 95 % band is from "
        f"± {number(margin.min())} to ± {number(margin.max())}.",
    )
