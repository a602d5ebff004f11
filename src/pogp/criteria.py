"""Criteria: what it costs to let each retained point go.

A criterion looks at one step, after the newest sample was appended, and prices the removal of every
slot. It changes nothing. The loop (`compression.py`) removes the cheapest while the price is within
the budget, and tells the criterion what left.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from pogp.arrays import Array
from pogp.distances import cost_of_distance, distance_of_cost, hellinger_cost

if TYPE_CHECKING:
    from pogp.posteriors.retained.loop import Step


class Criterion(ABC):
    """Prices removals. A subclass needs only `costs`; budgets are then in the unit of the cost."""

    native: ClassVar[str | None] = None
    """The name of this criterion in the compiled core, or None for one that lives in Python."""

    def begin(self, step: "Step") -> None:
        """Fix the reference: called once a sample, after appending and before any removal."""

    @abstractmethod
    def costs(self, step: "Step") -> Array:
        """Return, for each slot, the cost of all that has gone in this step and of it too."""

    def removing(self, step: "Step", j: int) -> None:
        """Take note that slot j is about to go (and the last slot to move into its place)."""

    def limit(self, budget: Array) -> Array:
        """Return budgets in the unit of `costs`."""
        return budget

    def spent(self, cost: float) -> float:
        """Return a cost in the unit of the budget."""
        return cost


class HellingerCriterion(Criterion):
    """Costs are −log BC, budgets are Hellinger distances: the same order, more digits."""

    def limit(self, budget: Array) -> Array:
        """Return the costs of Hellinger distances."""
        return cost_of_distance(budget)

    def spent(self, cost: float) -> float:
        """Return the Hellinger distance of a cost."""
        return float(distance_of_cost(cost))


class Newest(HellingerCriterion):
    """Algorithm 2: how far the marginal of y at the newest input moves from where it was."""

    native = "newest"

    def costs(self, step: "Step") -> Array:
        """Price each slot by the marginal at the newest input without it."""
        v, alpha, diagonal = step.influence, step.weights, step.diagonal
        # mathematics.md §1, every removal at once; accumulated, because the reference is fixed
        shift = step.shift + v * alpha / diagonal
        gain = step.gain + v**2 / diagonal
        return np.asarray(hellinger_cost(shift, step.variance, gain))


class Everywhere(HellingerCriterion):
    """How far the whole posterior process moves, exactly, for the whole set R that leaves.

    Removing R moves the process only through f at R (mathematics.md §3). With G = P_RR and α_R of
    the augmented dictionary, both Gaussians are known and

        −log BC = ½ log|I + σ²G| − ¼ log|4σ²G| + ¼ αᵀG⁻¹α − ½ σ² αᵀ(I + σ²G)⁻¹α.

    R grows one point at a time by eliminating that point from P (the removal itself) and from
    H = I + σ²P (`_eliminated`). Each adds to the cost what depends on two pivots, g of P and h of
    H. Their excess e = h − 1 − σ²g ≥ 0 is accumulated rather than formed, so that nothing cancels
    when g is close to 1/σ².
    """

    native = "everywhere"

    def begin(self, step: "Step") -> None:
        """Start with R empty: nothing eliminated, nothing spent."""
        self._excess = np.zeros(step.size)
        self._remainder = step.weights.copy()  # α with R eliminated from H
        self._eliminated: list[tuple[Array, Array, float]] = []  # columns of P and H, pivot of H
        self._spent = 0.0

    def costs(self, step: "Step") -> Array:
        """Price each slot by the distance of the process without R and without it."""
        return self._spent + self._increments(step)

    def removing(self, step: "Step", j: int) -> None:
        """Eliminate slot j from H as it is eliminated from P."""
        noise = step.noise
        self._spent += float(self._increments(step)[j])
        column = step.precision_column(j) / np.sqrt(step.diagonal[j])
        eliminated = noise * step.precision_column(j)
        for c, h, pivot in self._eliminated:
            eliminated += noise * c * c[j] - h * h[j] / pivot
        eliminated[j] += 1.0
        pivot = float(eliminated[j])
        self._excess += noise * column**2 - eliminated**2 / pivot
        self._remainder -= eliminated * (self._remainder[j] / pivot)
        self._eliminated.append((column, eliminated, pivot))
        for array in (self._excess, self._remainder, *(a for e in self._eliminated for a in e[:2])):
            array[j] = array[step.size - 1]
        self._excess = self._excess[:-1]
        self._remainder = self._remainder[:-1]
        self._eliminated = [(c[:-1], h[:-1], pivot) for c, h, pivot in self._eliminated]

    def _increments(self, step: "Step") -> Array:
        g, a, b = step.diagonal, step.weights, self._remainder
        q = step.noise * g
        root = np.sqrt(q)
        h = 1.0 + q + self._excess
        determinants = 0.5 * np.log1p(((1.0 - root) ** 2 + self._excess) / (2.0 * root))
        # ¼a²/g − ½σ²b²/h over one denominator
        means = (a**2 * (1.0 - q + self._excess) + 2.0 * q * (a - b) * (a + b)) / (4.0 * g * h)
        return np.asarray(determinants + means)


class _Decided(Newest):
    """A rule that knows who goes; what that costs is measured as Algorithm 2 measures it."""

    @abstractmethod
    def victim(self, step: "Step") -> int:
        """Return the slot that goes."""

    def costs(self, step: "Step") -> Array:
        """Price the victim, and everything else beyond reach."""
        slot = self.victim(step)
        costs = np.full(step.size, np.inf)
        costs[slot] = super().costs(step)[slot]
        return costs


class Oldest(_Decided):
    """First in, first out."""

    native = "oldest"

    def victim(self, step: "Step") -> int:
        """Return the slot that has been held longest."""
        return int(np.argmin(step.core.arrivals))


class Planned(_Decided):
    """The slots were drawn beforehand and stand in the plan."""

    native = "planned"

    def victim(self, step: "Step") -> int:
        """Return the slot that the plan names for this sample."""
        return step.planned
