"""Figures of calibration: whether bands hold what they should, and on which side targets fall."""

import numpy as np

from pogp.report.axes import linear
from pogp.report.stretches import Stretches
from pogp.report.svg import Figure, Panel


def reliability(everything: Stretches, recent: Stretches) -> Figure:
    """Draw the share of targets in each central band against the share there should be."""
    levels = np.linspace(0.05, 0.95, 19)
    axis = linear(0.0, 100.0, 5)
    panel = Panel(axis, axis)
    panel.line([0, 100], [0, 100], "grey dashed")
    observed = {
        name: np.array([0.0, *(100 * part.coverage(level)[0] for level in levels), 100.0])
        for name, part in (("whole stream", everything), ("of late", recent))
    }
    nominal = np.array([0.0, *(100 * levels), 100.0])
    looks = dict(zip(observed, ("vermillion", "blue"), strict=True))
    for name, shares in observed.items():
        panel.line(nominal, shares, looks[name])
    edges = np.array([0.0, *(nominal[1:] - 2.5), 100.0])
    panel.notes(
        edges,
        [
            f"the {expected:.0f} % band holds {share:.0f} % of late"
            for expected, share in zip(nominal, observed["of late"], strict=True)
        ],
    )
    worst = float(np.max(np.abs(observed["of late"] - nominal)))
    return Figure(
        "reliability",
        "Calibration",
        panel,
        "% a central band should hold",
        "% it holds",
        f"Of late no band is further than {worst:.0f} points from what it should hold.",
        (*((look, name) for name, look in looks.items()), ("grey dashed", "as it should be")),
    )


def ranks(recent: Stretches) -> Figure:
    """Draw where in its predicted distribution each target fell, the PIT histogram."""
    cells = recent.cells[0].reshape(-1, 2).sum(axis=1)
    heights = cells / cells.mean()
    edges = np.linspace(0.0, 100.0, len(cells) + 1)
    panel = Panel(linear(0.0, 100.0, 5), linear(0.0, max(heights.max(), 1.5), 4, snap=True))
    notes = [
        f"{100 * cell / cells.sum():.1f} % from percentile {low:.0f} to {low + 5:.0f}"
        for cell, low in zip(cells, edges, strict=False)
    ]
    panel.bars(edges, heights, "blue", notes)
    panel.line([0, 100], [1, 1], "grey dashed")
    return Figure(
        "ranks",
        "Where targets fell",
        panel,
        "percentile of the prediction",
        "relative frequency of late",
        f"Relative frequency of each 5 percentiles, from {heights.min():.2f} to "
        f"{heights.max():.2f}; 1 everywhere is calibrated.",
        (("blue bar", "targets"), ("grey dashed", "as it should be")),
    )
