"""The figures of the theory."""

from collections.abc import Callable

from matplotlib.figure import Figure

from experiments.drawing.assumption import assumption_1
from experiments.drawing.parsimony import theorem_2
from experiments.drawing.stationarity import theorem_1
from experiments.records import Records

FIGURES: dict[str, Callable[[Records], Figure]] = {
    "theorem-1": theorem_1,
    "theorem-2": theorem_2,
    "assumption-1": assumption_1,
}
