"""Criteria: the cost of removing each retained point.

A criterion looks at one step, after the newest sample was appended, and prices the removal of every
slot. It changes nothing. The loop of the posterior removes the cheapest while the price is within
the budget, and calls the criterion before each removal.

The first four price retained samples (`posteriors/retained`), the last four the points of an
absorbed posterior (`posteriors/absorbed`). Those that have a `native` name are also compiled.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pogp.arrays import Array, Indices
from pogp.distances import cost_of_distance, distance_of_cost, hellinger_cost

if TYPE_CHECKING:
    from pogp.posteriors.absorbed.state import AbsorbedState
    from pogp.posteriors.retained.loop import Step

NO_SLOTS = np.empty(0, dtype=np.int64)
MIN_RELATIVE_VARIANCE = 1e-8
"""The least variance of a point given the others, as a fraction of κ₀."""


class Criterion(ABC):
    """Prices removals. A subclass needs only `costs`; budgets are then in the unit of the cost."""

    native: ClassVar[str | None] = None
    """The name of this criterion in the compiled core, or None if there is none."""

    @abstractmethod
    def costs(self, step: Any) -> Array:
        """Return the total cost of the points removed in this step and of each slot."""

    def begin(self, step: "Step") -> None:
        """Fix the reference: called once a sample, after appending and before any removal."""

    def removing(self, step: "Step", j: int) -> None:
        """Note that slot j is about to be removed, and the last slot to move into its place."""

    def slots(self, first: int, count: int) -> Indices:
        """Return the slot removed at each of the next samples, if it is known beforehand."""
        return NO_SLOTS

    def limit(self, budget: Array) -> Array:
        """Return budgets in the unit of `costs`."""
        return budget

    def spent(self, cost: float) -> float:
        """Return a cost in the unit of the budget."""
        return cost


# ---- of retained samples ------------------------------------------------------------------------


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
        return _marginal_costs(step)


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


class Oldest(HellingerCriterion):
    """First in, first out; what that costs is measured as Algorithm 2 measures it."""

    native = "oldest"

    def costs(self, step: "Step") -> Array:
        """Price the slot that has been held longest, and everything else beyond reach."""
        return _only(int(np.argmin(step.core.arrivals)), step)


class Planned(HellingerCriterion):
    """A uniform draw of the stream: reservoir sampling (Vitter 1985, algorithm R).

    The slots to remove are drawn beforehand. The draw for sample t depends on the seed and t alone:
    a batch, a copy and a reloaded model draw alike without any state.
    """

    native = "planned"

    def __init__(self, seed: int, max_size: int) -> None:
        self._seed, self._max_size = seed, max_size

    def slots(self, first: int, count: int) -> Indices:
        """Draw for sample t one of t + 1 places; those beyond the cap are the newest's own."""
        generator = np.random.Generator(np.random.PCG64(self._seed).advance(first))
        positions = np.arange(first, first + count)
        places = (generator.random(count) * (positions + 1)).astype(np.int64)
        return np.minimum(places, self._max_size)

    def costs(self, step: "Step") -> Array:
        """Price the slot that was drawn, and everything else beyond reach."""
        return _only(step.planned, step)


def _marginal_costs(step: "Step") -> Array:
    """Return −log BC of the marginals at the newest input with each slot and without it."""
    v, alpha, diagonal = step.influence, step.weights, step.diagonal
    # mathematics.md §1, every removal at once; accumulated, because the reference is fixed
    shift = step.shift + v * alpha / diagonal
    gain = step.gain + v**2 / diagonal
    return np.asarray(hellinger_cost(shift, step.variance, gain))


def _only(slot: int, step: "Step") -> Array:
    """Return the cost of one slot, and infinity for all others."""
    costs = np.full(step.size, np.inf)
    costs[slot] = _marginal_costs(step)[slot]
    return costs


# ---- of the points of an absorbed posterior -----------------------------------------------------


@dataclass(frozen=True)
class AbsorbedCriterion(Criterion):
    """Prices a point by the leading belief, and decides which samples become points.

    The costs of several removals of a step are added up.
    """

    marginalise: bool = False
    """Whether a removed point is marginalised; otherwise it is set to what the others predict."""
    share: float = 0.0
    """A sample whose variance given the points is at most this share of the noise is absorbed
    without a new point (novelty). A point with such a variance given the others is removed
    (redundancy)."""
    tolerance: float = 0.0
    """The same for novelty alone, as a fraction of κ₀."""
    reduce: bool = True
    """Whether such a sample is marginalised."""

    removes: ClassVar[bool] = True
    """Whether points are ever removed."""
    whole: ClassVar[bool] = False
    """Whether costs compare the whole posterior, which needs Λ."""

    def novelty_threshold(self, noise: float, kappa0: float | Array) -> Array:
        """Return the variance given the points up to which a sample becomes no new point."""
        return np.maximum(
            self.share * noise, max(self.tolerance, MIN_RELATIVE_VARIANCE) * np.asarray(kappa0)
        )

    def redundancy_threshold(self, noise: float, kappa0: Array) -> Array:
        """Return the variance, given the other points, up to which a point is redundant."""
        return np.maximum(self.share * noise, MIN_RELATIVE_VARIANCE * kappa0)


class WholePosterior(AbsorbedCriterion):
    """The Hellinger distance between the whole posteriors before and after (mathematics.md §4)."""

    native = "hellinger"
    whole = True

    def costs(self, step: "AbsorbedState") -> Array:
        """Return −log BC for each slot."""
        known = np.diagonal(step.information) if step.has_information else None
        parts = (np.diagonal(step.inverse), _spread(step), known, _squared_weights(step))
        costs = removal_cost(self.marginalise, *parts, step.values.shape[2])
        return np.asarray(step.relevance * costs)

    def spent(self, cost: float) -> float:
        """Return the Hellinger distance of a cost."""
        return float(distance_of_cost(cost))


class LeastDivergence(AbsorbedCriterion):
    """α²/B, twice the divergence of the beliefs (Csató & Opper 2002, eq. 27)."""

    native = "csato"

    def costs(self, step: "AbsorbedState") -> Array:
        """Return α²/B for each slot."""
        return np.asarray(step.relevance * _squared_weights(step) / _spread(step))

    def limit(self, budget: Array) -> Array:
        """Return the costs of divergences."""
        return 2 * budget


class LeastError(AbsorbedCriterion):
    """(α/Q)², the change of the mean at the points (Van Vaerenbergh et al. 2012, III-E)."""

    native = "error"

    def costs(self, step: "AbsorbedState") -> Array:
        """Return (α/Q)² for each slot."""
        return np.asarray(step.relevance * _squared_weights(step) / np.diagonal(step.inverse) ** 2)


class KeepAll(AbsorbedCriterion):
    """No point is ever removed."""

    native = "keep"
    removes = False

    def costs(self, step: "AbsorbedState") -> Array:
        """Return infinity for each slot."""
        return np.full(step.size, np.inf)


def _squared_weights(step: "AbsorbedState") -> Array:
    """Return α², added up over the outputs."""
    return np.asarray(np.sum(step.weights**2, axis=1))


def _spread(step: "AbsorbedState") -> Array:
    """Return the diagonal of B = QSQ, which rounding may bring to zero or above that of Q."""
    return np.clip(step.spread, np.finfo(float).tiny, np.diagonal(step.inverse))


def removal_cost(
    marginalise: bool, q: Array, spread: Array, known: Array | None, squares: Array, outputs: int
) -> Array:
    """Return −log BC of the whole posterior before and after each removal (mathematics.md §4).

    From the diagonals of Q, QSQ and Λ, and the squares of α added up over the outputs. Nothing in
    it cancels. Where Λ is not known, the marginal of what u_j adds to the others is compared.
    """
    p, e = 1 / q, squares / q**2
    v = spread / q**2
    if known is None:
        shape = (np.sqrt(v) - np.sqrt(p)) ** 2 / (2 * np.sqrt(v * p))
        return np.asarray(outputs * 0.5 * np.log1p(shape) + e / (4 * (v + p)))
    c = 1 / (q + known)
    v = np.maximum(v, c)
    if marginalise:
        tau = v - c
        shape = (np.sqrt(c) - np.sqrt(p)) ** 2 / (2 * np.sqrt(c * p))
        shapes = 0.5 * np.log1p(shape) + 0.5 * np.log1p(tau / (2 * (c + p)))
        return np.asarray(outputs * shapes + e / (4 * (c + p) + 2 * tau))
    excess = (v - c) / (c * v)  # 1/c − 1/v
    shape = (np.sqrt(v) - np.sqrt(p)) ** 2 / (2 * np.sqrt(v * p)) + excess * np.sqrt(v * p) / 4
    both = 1 + v / p + v * excess / 2  # 2vA
    means = e / (4 * v) * (v / p + v * excess / 2) / both
    return np.asarray(outputs * 0.5 * np.log1p(shape) + means)
