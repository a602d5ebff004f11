"""The absorbed posterior in NumPy: a removed point leaves, what it taught stays.

The belief q(u) = N(m, S) is about u = f(Z) plus a tiny independent nugget ν, with f elsewhere by
the prior given u (mathematics.md §4). By slot:

    K = κ(Z, Z) + νI (`gram`) and Q = K⁻¹ (`inverse`): the prior;
    Λ = S⁻¹ − Q (`information`) and η = S⁻¹m (`evidence`): what the data said;
    C = Q − QSQ = (K + Λ⁻¹)⁻¹ (`precision`) and α = Qm (`weights`): what predictions need.

The nugget is part of the noise: a point is observed with σ² − ν. With nothing removed,
Λ = I/(σ² − ν) and C is the P of the retained posterior.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from pogp._core.slots_reference import cheapest, check_shapes, symmetric
from pogp.arrays import Array
from pogp.distances import distance_of_cost, hellinger_cost
from pogp.kernels import Kernel, evaluate, prior_variance
from pogp.trace import FIELDS

NUGGET = 1e-6
"""ν as a fraction of the prior variance, but never more than half of the noise."""
MATRICES = ("gram", "inverse", "information", "precision")
VECTORS = ("inputs", "arrivals", "evidence", "weights")


@dataclass(frozen=True)
class Glance:
    """What is known of an input before it is learned."""

    x: Array
    k: Array
    kappa0: float
    w: Array
    """Qk: the regression of f(x) on u."""
    b: Array
    """Bk = Qk − Ck, with B = QSQ: how u moves when f(x) is observed, in the units of α."""
    gamma: float
    """The variance of f(x), and the nugget, given u."""
    mean: float
    latent: float
    """The variance of f(x)."""


class Absorbed:
    """Q, Λ, η, C and α of the retained points; knows how to learn and to let go, not why."""

    def __init__(self, kernel: Kernel, noise: float, mean: float, dimension: int) -> None:
        self.kernel = kernel
        self.noise = noise
        self.mean = mean
        self.dimension = dimension
        self.nugget = 0.0  # known from the first point on
        self.inputs = np.empty((0, dimension))
        self.arrivals = np.empty(0, dtype=np.int64)
        self.gram = np.empty((0, 0))
        self.inverse = np.empty((0, 0))
        self.information = np.empty((0, 0))
        self.precision = np.empty((0, 0))
        self.evidence = np.empty(0)
        self.weights = np.empty(0)

    @property
    def size(self) -> int:
        """The model order M."""
        return len(self.arrivals)

    @property
    def nbytes(self) -> int:
        """Bytes held by the state."""
        return sum(getattr(self, name).nbytes for name in (*MATRICES, *VECTORS))

    def glance(self, x: Array) -> Glance:
        """Return what is known of an input."""
        k = evaluate(self.kernel, self.inputs, x[None, :])[:, 0]
        kappa0 = float(prior_variance(self.kernel, x[None, :])[0])
        if self.size == 0:
            self.nugget = min(NUGGET * kappa0, self.noise / 2)
        w, c = self.inverse @ k, self.precision @ k
        return Glance(
            x=x,
            k=k,
            kappa0=kappa0,
            w=w,
            b=w - c,
            gamma=max(kappa0 - float(k @ w), 0.0) + self.nugget,
            mean=self.mean + float(k @ self.weights),
            latent=max(kappa0 - float(k @ c), 0.0),
        )

    def append(self, at: Glance, y: float, arrival: int) -> None:
        """Observe y as a new point, in the last slot."""
        s = at.latent + self.noise
        w, gamma = self._refined(at)
        e, g = np.append(-w, 1.0), np.append(at.b - at.w, 1.0)
        # mathematics.md §4, append
        self.inverse = np.pad(self.inverse, (0, 1)) + np.outer(e, e) / gamma
        self.precision = np.pad(self.precision, (0, 1)) + np.outer(g, g) / s
        self.weights = np.append(self.weights, 0.0) + g * ((y - at.mean) / s)
        observed = self.noise - self.nugget
        self.information = np.pad(self.information, (0, 1))
        self.information[-1, -1] = 1 / observed
        self.evidence = np.append(self.evidence, (y - self.mean) / observed)
        self.gram = np.pad(self.gram, (0, 1))
        self.gram[-1, :-1] = self.gram[:-1, -1] = at.k
        self.gram[-1, -1] = at.kappa0 + self.nugget
        self.inputs = np.vstack([self.inputs, at.x])
        self.arrivals = np.append(self.arrivals, arrival)

    def _refined(self, at: Glance) -> tuple[Array, float]:
        """Return w and γ, refined by the residual: an error in them would be multiplied by 1/γ."""
        w = at.w + self.inverse @ (at.k - self.gram @ at.w)
        explained = at.k @ w + w @ (at.k - self.gram @ w)
        return w, max(at.kappa0 - float(explained), 0.0) + self.nugget

    def absorb(self, at: Glance, y: float, project: bool) -> None:
        """Observe y without a new point, as if it was appended and left at once.

        By conditioning (`project`) f(x) is taken to be wᵀu; by marginalising, wᵀu and what the
        prior leaves open.
        """
        spread = self.noise - self.nugget + (0.0 if project else at.gamma)
        s = float(at.k @ at.b) + spread
        # mathematics.md §4, observe without a new point
        self.weights = self.weights + at.b * ((y - at.mean) / s)
        self.precision = self.precision + np.outer(at.b, at.b) / s
        self.information = self.information + np.outer(at.w, at.w) / spread
        self.evidence = self.evidence + at.w * ((y - self.mean) / spread)

    def condition(self, j: int) -> None:
        """Let slot j go by conditioning, which minimises KL(q′‖q)."""
        q, c, known = self.inverse[:, j], self.precision[:, j], self.information[:, j]
        b = q - c
        onto = -q / q[j]  # the regression of u_j on the others
        self.weights = self.weights - b * (self.weights[j] / b[j])
        self.precision = self.precision - np.outer(q, q) / q[j] + np.outer(b, b) / b[j]
        half = known + 0.5 * known[j] * onto
        self.information = self.information + _symmetric_product(onto, half)
        self.evidence = self.evidence + onto * self.evidence[j]
        self._drop(j)

    def marginalise(self, j: int) -> None:
        """Let slot j go by marginalising, which minimises KL(q‖q′)."""
        q, b = self.inverse[:, j], self.inverse[:, j] - self.precision[:, j]
        total = q + self.information[:, j]
        t = q / q[j]
        # Q −= qtᵀ and B −= tbᵀ + btᵀ − B_jj ttᵀ; C is their difference
        half = b - 0.5 * b[j] * t - 0.5 * q
        self.precision = self.precision + _symmetric_product(t, half)
        self.weights = self.weights - t * self.weights[j]
        self.information = (
            self.information - np.outer(total, total) / total[j] + np.outer(q, q) / q[j]
        )
        self.evidence = self.evidence - total * (self.evidence[j] / total[j])
        self._drop(j)

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Return the mean and the latent variance at each row of X."""
        cross = evaluate(self.kernel, X, self.inputs)
        explained = np.sum((cross @ self.precision) * cross, axis=1)
        variance = np.maximum(prior_variance(self.kernel, X) - explained, 0.0)
        return self.mean + cross @ self.weights, variance

    def rebuild(self) -> None:
        """Solve afresh for Q, C and α from Z, Λ and η."""
        size = self.size
        self.inverse = cho_solve(cho_factor(self.gram), np.eye(size))
        values, vectors = np.linalg.eigh(self.information)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        factor = cho_factor(np.eye(size) + root.T @ self.gram @ root)
        self.precision = root @ cho_solve(factor, root.T)
        self.weights = np.zeros(size)
        self.polish()
        self.polish()

    def polish(self) -> None:
        """Refine α, which solves (I + ΛK)α = η, by its residual; (I + ΛK)⁻¹ = I − CK."""
        residual = self.evidence - self.weights - self.information @ (self.gram @ self.weights)
        self.weights = self.weights + residual - self.precision @ (self.gram @ residual)

    def state(self) -> dict[str, Any]:
        """Return everything, as arrays and numbers; of symmetric matrices the packed triangle."""
        upper = np.triu_indices(self.size)
        return {
            **{name: getattr(self, name).copy() for name in VECTORS},
            **{name: getattr(self, name)[upper] for name in MATRICES},
            "nugget": self.nugget,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a state that `state` returned."""
        state = check_state(state, self.dimension)
        for name in VECTORS:
            setattr(self, name, np.array(state[name]))
        for name in MATRICES:
            setattr(self, name, symmetric(state[name], self.size))
        self.nugget = float(state["nugget"])

    def learn(
        self,
        rule: str,
        X: Array,
        y: Array,
        first: int,
        limits: Array,
        max_size: int,
        max_removals: int,
        tolerance: float,
        project: bool,
    ) -> Array:
        """Learn the samples in order and return their records, one row each (see `trace.FIELDS`).

        An input whose variance given u is below `tolerance` (of κ₀) leaves no point behind. After
        any other, the points that are cheapest by the `rule` go: as many as `max_size` asks for,
        and `max_removals` more at the most whose distances add up to no more than the limit.
        """
        records = np.empty((len(y), len(FIELDS)))
        for i, (x, target) in enumerate(zip(X, y, strict=True)):
            at = self.glance(x)
            redundant = self.size > 0 and at.gamma - self.nugget <= tolerance * at.kappa0
            if redundant:
                self.absorb(at, float(target), project=False)
            else:
                self.append(at, float(target), first + i)
            gone, spent = int(redundant), 0.0
            while self.size > 1 and rule != "keep":
                forced = self.size > max_size
                if not forced and gone >= max_removals:
                    break
                costs = self.costs(rule, project)
                j = cheapest(costs, self.arrivals)
                distance = float(distance_of_cost(costs[j]))
                if not forced and not spent + distance <= limits[i]:
                    break
                spent, gone = spent + distance, gone + 1
                (self.condition if project else self.marginalise)(j)
            records[i] = self._record(at, float(target), gone, spent, rule)
        return records

    def costs(self, rule: str, project: bool) -> Array:
        """Return what the removal of each slot costs by a rule."""
        q, a = np.diagonal(self.inverse), self.weights
        spread = q - np.diagonal(self.precision)
        if rule == "csato":
            return np.asarray(a**2 / spread)  # Csató & Opper 2002, eq. 27
        if rule == "error":
            return np.asarray((a / q) ** 2)  # Van Vaerenbergh et al. 2012, section III-E
        return removal_cost(project, q, spread, np.diagonal(self.information), a)

    def _record(
        self, at: Glance, y: float, gone: int, spent: float, rule: str
    ) -> tuple[float, ...]:
        before = at.latent + self.noise
        (mean,), (latent,) = self.predict(at.x[None, :])
        moved, shrunk = at.latent * (y - at.mean) / before, at.latent**2 / before
        variance = latent + self.noise
        if rule != "hellinger":  # which measures the whole posterior; others by the marginal at x
            reference = before - shrunk
            cost = hellinger_cost(mean - at.mean - moved, reference, variance - reference)
            spent = float(distance_of_cost(cost))
        novelty = distance_of_cost(hellinger_cost(moved, before, -shrunk))
        change = distance_of_cost(hellinger_cost(mean - at.mean, before, variance - before))
        return at.mean, before, self.size, gone, spent, float(novelty), float(change)

    def _drop(self, j: int) -> None:
        """Take slot j out of Q, and its row out of everything; the last slot takes its place."""
        q = self.inverse[:, j]
        self.inverse = self.inverse - np.outer(q, q) / q[j]
        order = np.arange(self.size - 1)
        if j < self.size - 1:
            order[j] = self.size - 1
        for name in MATRICES:
            setattr(self, name, getattr(self, name)[np.ix_(order, order)])
        for name in VECTORS:
            setattr(self, name, getattr(self, name)[order])


def removal_cost(project: bool, q: Array, spread: Array, known: Array, alpha: Array) -> Array:
    """Return −log BC of the whole posterior before and after each removal (mathematics.md §4).

    From the diagonals of Q, of B = Q − C and of Λ, and α. Each form is free of cancellation.
    """
    p, v, c, e = 1 / q, spread / q**2, 1 / (q + known), alpha / q
    if project:
        kappa = np.maximum(1 / c - 1 / v, 0.0)
        root = np.sqrt(v * p)
        scale = v * (1 / v + 1 / p + kappa / 2)
        shape = (np.sqrt(v) - np.sqrt(p)) ** 2 / (2 * root) + kappa * root / 4
        return np.asarray(0.5 * np.log1p(shape) + e**2 / (4 * v) * (v / p + v * kappa / 2) / scale)
    tau = np.maximum(v - c, 0.0)
    shape = (np.sqrt(c) - np.sqrt(p)) ** 2 / (2 * np.sqrt(c * p))
    return np.asarray(
        0.5 * np.log1p(shape) + 0.5 * np.log1p(tau / (2 * (c + p))) + e**2 / (4 * (c + p) + 2 * tau)
    )


def check_state(state: dict[str, Any], dimension: int) -> dict[str, Any]:
    """Return the state if its parts fit together; it may come from a file."""
    size = len(state["arrivals"])
    shapes = dict.fromkeys(MATRICES, (size * (size + 1) // 2,)) | dict.fromkeys(VECTORS, (size,))
    return check_shapes(state, {**shapes, "inputs": (size, dimension)})


def _symmetric_product(a: Array, b: Array) -> Array:
    """Return abᵀ + baᵀ, symmetric to the last bit."""
    product = np.outer(a, b)
    return product + product.T
