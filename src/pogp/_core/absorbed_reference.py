"""The absorbed posterior in NumPy: a removed point leaves, what it taught stays.

The belief q(u) = N(m, S) is about u = f(Z) plus a tiny independent nugget ν, with f elsewhere by
the prior given u (mathematics.md §4). By slot:

    K = κ(Z, Z) + νI (`gram`) and Q = K⁻¹ (`inverse`): the prior;
    Λ = S⁻¹ − Q (`information`) and η = S⁻¹m (`evidence`): what the data said;
    C = Q − QSQ = (K + Λ⁻¹)⁻¹ (`precision`) and α = Qm (`weights`): what predictions need.

m, η and α have a column for each output; everything else is shared by the outputs. The nugget is
part of the noise: a point is observed with σ² − ν. With nothing removed, Λ = I/(σ² − ν) and C is
the P of the retained posterior.

Λ and η are the truth. Q, C and α follow from them and from Z, and are kept by updates that drift;
`drift` measures how far, `polish` and `rebuild` mend it (mathematics.md §6).

With very little noise (`careful`) κ₀ − kᵀCk and B = Q − C cancel. There W = Λ⁻¹ (`dispersion`), the
noise of pseudo-observations at Z, is kept too. Then C = (K + W)⁻¹, Ck is refined by the residual
k − (K + W)c, and what is said of u is taken out of W instead of being read off Q and C.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import block_diag, cho_factor, cho_solve
from scipy.linalg.lapack import dpstrf

from pogp._core.slots_reference import check_shapes, symmetric
from pogp.arrays import Array
from pogp.kernels import Kernel, evaluate, prior_variance

NUGGET, NUGGET_SHARE, LEAST_NUGGET = 1e-6, 1e-3, 1e-8
"""ν is the first of the prior variance, but at most the second of the noise, unless that is below
the third of the prior variance; never more than half of the noise."""
CAREFUL_RATIO = 1e-3
"""Where γ or the noise is below this fraction of κ₀, Qk or Ck is refined by its residual."""
MAX_REFINEMENTS = 4
"""How often at most."""
EPS = float(np.finfo(np.float64).eps)
MATRICES = ("gram", "inverse", "information", "precision", "dispersion")
DEFERRED = MATRICES[1:]
"""The matrices of which the compiled twin may owe updates (`symmetric.pyx`)."""
BY_OUTPUT = ("evidence", "weights")
VECTORS = ("arrivals", "relevance")


@dataclass(frozen=True)
class Glance:
    """What is known of an input before it is learned."""

    x: Array
    k: Array
    kappa0: float
    noise: float
    """The noise variance of this sample."""
    w: Array
    """Qk: the regression of f(x) on u."""
    c: Array
    """Ck."""
    gamma: float
    """The variance of f(x), and the nugget, given u."""
    mean: Array
    latent: float
    """The variance of f(x)."""


class Absorbed:
    """K, Q, Λ, η, C and α of the retained points; knows how to learn and let go, not why."""

    def __init__(
        self,
        kernel: Kernel,
        noise: float,
        mean: Array,
        dimension: int,
        least: float | None = None,
    ) -> None:
        self.kernel = kernel
        self.noise = noise
        self.mean = mean
        self.dimension = dimension
        self.nugget = 0.0  # known from the first point on
        self.open = 0.0  # what the prior left open of inputs, γ − ν, added up
        self.glances = 0  # over so many inputs, since the first point went
        self.inputs = np.empty((0, dimension))
        self.arrivals = np.empty(0, dtype=np.int64)
        self.relevance = np.empty(0)  # by which a removal's cost is multiplied
        self.gram = np.empty((0, 0))
        self.inverse = np.empty((0, 0))
        self.information = np.empty((0, 0))
        self.precision = np.empty((0, 0))
        self.dispersion = np.empty((0, 0))  # stays empty unless careful
        self.careful = False  # known from the first point on
        self.least = noise if least is None else least  # noise that may be in force later
        self.evidence = np.empty((0, len(mean)))
        self.weights = np.empty((0, len(mean)))

    @property
    def size(self) -> int:
        """The model order M."""
        return len(self.arrivals)

    @property
    def nbytes(self) -> int:
        """Bytes held by the state."""
        names = ("inputs", *VECTORS, *BY_OUTPUT, *MATRICES)
        held = sum(int(getattr(self, name).nbytes) for name in names)
        largest = np.diagonal(self.gram).max(initial=0.0)
        roomy = self.least < CAREFUL_RATIO * largest and not self.careful
        return held + (self.gram.nbytes if roomy else 0)  # as the compiled twin, which keeps room

    def glance(self, x: Array, noise: float) -> Glance:
        """Return what is known of an input."""
        k = evaluate(self.kernel, self.inputs, x[None, :])[:, 0]
        kappa0 = float(prior_variance(self.kernel, x[None, :])[0])
        if self.size == 0:
            self.nugget = nugget_of(kappa0, self.noise)
            self.careful = self.noise < CAREFUL_RATIO * kappa0
        w, gamma = self._regression(k, kappa0)
        c, explained = self._solve(k)
        return Glance(
            x=x,
            k=k,
            kappa0=kappa0,
            noise=noise,
            w=w,
            c=c,
            gamma=gamma,
            mean=self.mean + k @ self.weights,
            latent=max(kappa0 - explained, 0.0),
        )

    def _regression(self, k: Array, kappa0: float) -> tuple[Array, float]:
        """Return w = Qk and γ. Where γ is small an error in them would be multiplied by 1/γ."""
        w = self.inverse @ k
        open_ = kappa0 - float(k @ w)
        if open_ < CAREFUL_RATIO * kappa0:
            w = w + self.inverse @ (k - self.gram @ w)
            open_ = kappa0 - float(k @ w + w @ (k - self.gram @ w))
        return w, max(open_, 0.0) + self.nugget

    def _solve(self, k: Array) -> tuple[Array, float]:
        """Return c = Ck and kᵀCk, which with a residual is right to second order."""
        c = self.precision @ k
        if not self.careful:
            return c, float(k @ c)
        residual = k - self.gram @ c - self.dispersion @ c
        largest = np.diagonal(self.gram).max(initial=0.0)
        for _ in range(MAX_REFINEMENTS):
            if np.abs(residual).max(initial=0.0) <= 4 * EPS * largest * np.abs(c).sum():
                break
            c = c + self.precision @ residual
            residual = k - self.gram @ c - self.dispersion @ c
        return c, float(k @ c + c @ residual)

    def append(self, at: Glance, y: Array, arrival: int, relevance: float = 1.0) -> None:
        """Observe y as a new point, in the last slot."""
        s = at.latent + at.noise
        e, g = np.append(-at.w, 1.0), np.append(-at.c, 1.0)
        # mathematics.md §4, append
        self.inverse = np.pad(self.inverse, (0, 1)) + np.outer(e, e) / at.gamma
        self.precision = np.pad(self.precision, (0, 1)) + np.outer(g, g) / s
        self.weights = np.pad(self.weights, ((0, 1), (0, 0))) + np.outer(g, (y - at.mean) / s)
        observed = at.noise - self.nugget
        self.information = np.pad(self.information, (0, 1))
        self.information[-1, -1] = 1 / observed
        if self.careful:
            self.dispersion = np.pad(self.dispersion, (0, 1))
            self.dispersion[-1, -1] = observed
        self.evidence = np.vstack([self.evidence, (y - self.mean) / observed])
        self.gram = np.pad(self.gram, (0, 1))
        self.gram[-1, :-1] = self.gram[:-1, -1] = at.k
        self.gram[-1, -1] = at.kappa0 + self.nugget
        self.inputs = np.vstack([self.inputs, at.x])
        self.arrivals = np.append(self.arrivals, arrival)
        self.relevance = np.append(self.relevance, relevance)

    def absorb(self, at: Glance, y: Array, slack: float) -> None:
        """Observe y without a new point, as if it was appended and left at once.

        f(x) is taken to be wᵀu and an error of variance `slack`, at most what the prior leaves
        open.
        """
        spread = at.noise - self.nugget + min(slack, at.gamma)
        if self.careful:
            b, s = self._sharpen(at.w, spread)
        else:
            b = at.w - at.c
            s = max(float(at.k @ b), 0.0) + spread
        # mathematics.md §4, observe without a new point
        self.weights = self.weights + np.outer(b, (y - at.mean) / s)
        self.precision = self.precision + np.outer(b, b) / s
        self.information = self.information + np.outer(at.w, at.w) / spread
        self.evidence = self.evidence + np.outer(at.w, (y - self.mean) / spread)

    def project(self, j: int, slack: float) -> None:
        """Let slot j go: u_j is taken to be what the others say and an error of variance `slack`.

        No slack is conditioning, which minimises KL(q′‖q). All that the prior leaves open, 1/Q_jj,
        is marginalising, which minimises KL(q‖q′), and there is never more.
        """
        q, known, evidence = self._inverse_column(j), self.information[:, j], self.evidence[j]
        onto = -q / q[j]  # the regression of u_j on the others
        slack = min(slack, 1 / q[j])
        y = 1 / (1 + slack * known[j])
        s = slack * y
        if self.careful:
            b, sharper = self._sharpen(q, slack * q[j] ** 2)
            b_j = max(sharper - slack * q[j] ** 2, q[j] ** 2 / (q[j] + known[j]))
            self.precision = self.precision + np.outer(b, b) / sharper
            self.precision = self._without(j, self.precision[:, j])
        else:
            b, b_j = q - self.precision[:, j], float(self.spread[j])
        # mathematics.md §4, removal: φ and its share θ of B_jj, 0 without slack, 1 with all of it
        phi = q[j] ** 2 * s / (1 - s * max(q[j] + known[j] - q[j] ** 2 / b_j, 0.0))
        theta = phi / b_j
        if not self.careful:
            less = q - b * (theta * q[j] / (q[j] + phi))
            more = (1 - theta * q[j] / (q[j] + phi)) / b_j
            self.precision = self.precision - np.outer(less, less) * ((q[j] + phi) / q[j] ** 2)
            self.precision = self.precision + np.outer(b, b) * more
        share = (1 - theta) / b_j * b + theta / q[j] * q
        self.weights = self.weights - np.outer(share, self.weights[j])
        root = np.sqrt(y)
        left = onto - s / (root * (1 + root)) * known
        right = 0.5 * known[j] * y * onto + 0.5 * root * (1 + root) * known
        self.information = self.information + _symmetric_product(left, right)
        self.evidence = self.evidence + np.outer(y * onto - s * known, evidence)
        self._drop(j)
        if self.careful:  # where B_jj cancels, and α with it
            self.polish()

    def _inverse_column(self, j: int) -> Array:
        """Return Q_j, refined where careful: what is made of it enters Λ and η."""
        q = self.inverse[:, j]
        if self.careful:
            residual = -self.gram @ q
            residual[j] += 1.0
            q = q + self.inverse @ residual
        return q

    def _sharpen(self, a: Array, slack: float) -> tuple[Array, float]:
        """Take out of W that aᵀu is known but for `slack`; return what that adds to C, bbᵀ/s.

        With z = Wa: W −= zzᵀ/(aᵀz + slack), b = Cz and s = aᵀz + slack − zᵀb. C is taken at its
        word, for a column that is right where C is not would no longer fit it.
        """
        z = self.dispersion @ a
        b = self.precision @ z
        known = float(a @ z) + slack
        self.dispersion = self.dispersion - np.outer(z, z) / known
        return b, max(known - float(z @ b), EPS * known)

    def _without(self, j: int, column: Array) -> Array:
        """Return C with slot j eliminated: its row and column are left to be dropped."""
        return np.asarray(self.precision - np.outer(column, column) / column[j])

    @property
    def spread(self) -> Array:
        """The diagonal of B = Q − C, which is never below Q²/(Q + Λ)."""
        q = np.diagonal(self.inverse)
        least = q**2 / (q + np.diagonal(self.information))
        return np.maximum(q - np.diagonal(self.precision), least)

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Return the means (n, k) and the latent variance (n,) at the rows of X."""
        cross = evaluate(self.kernel, X, self.inputs)
        prior = prior_variance(self.kernel, X)
        if self.careful:
            explained = np.array([self._solve(k)[1] for k in cross])
        else:
            explained = np.sum((cross @ self.precision) * cross, axis=1)
        return self.mean + cross @ self.weights, np.maximum(prior - explained, 0.0)

    def drift(self, signs: Array) -> float:
        """Return how far Q and C are from what they should be, by a product with random signs."""
        inverse = np.abs(self.gram @ (self.inverse @ signs) - signs).max(initial=0.0)
        c = self.precision @ signs
        if self.careful:
            residual = signs - self.gram @ c - self.dispersion @ c
            return float(max(inverse, np.abs(residual).max(initial=0.0)))
        # (I + ΛK)C = Λ
        precision = np.abs(self.information @ (signs - self.gram @ c) - c).max(initial=0.0)
        scale = np.diagonal(self.information).max(initial=0.0)
        return float(max(inverse, precision / scale if scale else 0.0))

    def rebuild(self) -> None:
        """Solve afresh for Q, C and α from Z, Λ and η."""
        self.inverse = positive_inverse(self.gram)
        root = square_root(self.information)
        inner = np.eye(self.size) + root.T @ self.gram @ root
        precision = root @ cho_solve(cho_factor(inner), root.T)
        self.precision = (precision + precision.T) / 2
        if self.careful:
            self.dispersion = positive_inverse(self.information)
        self.weights = np.zeros_like(self.weights)
        self.polish()
        self.polish()

    def polish(self) -> None:
        """Refine α, which solves (I + ΛK)α = η, by its residual; (I + ΛK)⁻¹ = I − CK."""
        if self.careful:  # the same as (K + W)α = Wη
            residual = self.dispersion @ (self.evidence - self.weights) - self.gram @ self.weights
            self.weights = self.weights + self.precision @ residual
            return
        residual = self.evidence - self.weights - self.information @ (self.gram @ self.weights)
        self.weights = self.weights + residual - self.precision @ (self.gram @ residual)

    def take_open(self) -> float:
        """Return what the prior left open on average since this was last asked."""
        average = self.open / self.glances if self.glances else 0.0
        self.open, self.glances = 0.0, 0
        return average

    def forget(self, share: float) -> None:
        """Move the belief towards the prior: S ← share·S + (1 − share)K, m ← √share·m.

        Then C ← share·C, α ← √share·α, and Λ ← share (I + (1 − share)ΛK)⁻¹Λ.
        """
        mixed = np.eye(self.size) + (1 - share) * self.information @ self.gram
        information = share * np.linalg.solve(mixed, self.information)
        self.information = (information + information.T) / 2
        if self.careful:
            self.dispersion = (self.dispersion + (1 - share) * self.gram) / share
        self.precision = share * self.precision
        self.weights = np.sqrt(share) * self.weights
        self.evidence = self.weights + self.information @ (self.gram @ self.weights)

    def observe_again(self, X: Array, Y: Array, slack: float, share: float) -> None:
        """Keep a share of what the data said, and observe samples as the points are now.

        Each is taken to be wᵀu and an error, as in `absorb` (mathematics.md §5, rehearsal).
        """
        k = evaluate(self.kernel, self.inputs, X)
        w = self.inverse @ k
        w = w + self.inverse @ (k - self.gram @ w)
        gamma = np.maximum(prior_variance(self.kernel, X) - np.sum(k * w, axis=0), 0.0)
        weighed = w / (self.noise - self.nugget + np.minimum(slack, gamma + self.nugget))
        information = weighed @ w.T
        self.information = share * self.information + (information + information.T) / 2
        self.evidence = share * self.evidence + weighed @ (Y - self.mean)
        self.rebuild()

    def join(self, other: "Absorbed", offset: int) -> None:
        """Take over the points and the evidence of another, `offset` samples later in the stream.

        Q, C and α are left for `rebuild`.
        """
        self.nugget = max(self.nugget, other.nugget)
        cross = evaluate(self.kernel, self.inputs, other.inputs)
        self.gram = np.block([[self.gram, cross], [cross.T, other.gram]])
        self.information = block_diag(self.information, other.information)
        self.careful = self.careful or other.careful
        self.evidence = np.vstack([self.evidence, other.evidence])
        self.weights = np.vstack([self.weights, other.weights])
        self.inputs = np.vstack([self.inputs, other.inputs])
        self.arrivals = np.append(self.arrivals, other.arrivals + offset)
        self.relevance = np.append(self.relevance, other.relevance)

    def change_prior(self, kernel: Kernel, noise: float) -> None:
        """Keep what the data said; solve afresh under another kernel and noise."""
        observed = self.noise - self.nugget
        prior = prior_variance(kernel, self.inputs)
        self.kernel, self.noise = kernel, noise
        largest = float(prior.max(initial=0.0))
        self.nugget, self.careful = nugget_of(largest, noise), noise < CAREFUL_RATIO * largest
        if not self.careful:
            self.dispersion = np.empty((0, 0))
        self.gram = evaluate(kernel, self.inputs, self.inputs) + self.nugget * np.eye(self.size)
        ratio = observed / (noise - self.nugget)
        self.information, self.evidence = ratio * self.information, ratio * self.evidence
        self.rebuild()

    def state(self) -> dict[str, Any]:
        """Return everything, as arrays and numbers; of symmetric matrices the packed triangle."""
        nothing_due = {name: np.empty((0, len(getattr(self, name)))) for name in DEFERRED}
        return {
            **{name: getattr(self, name).copy() for name in ("inputs", *VECTORS, *BY_OUTPUT)},
            **{name: _packed(getattr(self, name)) for name in MATRICES},
            **{f"{name}_left": nothing for name, nothing in nothing_due.items()},
            **{f"{name}_right": nothing for name, nothing in nothing_due.items()},
            "nugget": self.nugget,
            "open": self.open,
            "glances": self.glances,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a state that `state` returned."""
        state = check_state(state, self.dimension, len(self.mean))
        for name in ("inputs", *VECTORS, *BY_OUTPUT):
            setattr(self, name, np.array(state[name]))
        self.careful = self.size > 0 and len(state["dispersion"]) > 0
        for name in MATRICES:
            size = self.size if len(state[name]) else 0
            setattr(self, name, symmetric(state[name], size))
        for name in DEFERRED:
            if name == "dispersion" and not self.careful:
                continue
            due = state[f"{name}_left"].T @ state[f"{name}_right"]
            setattr(self, name, getattr(self, name) + due + due.T)
        self.nugget, self.open = float(state["nugget"]), float(state["open"])
        self.glances = int(state["glances"])

    def _drop(self, j: int) -> None:
        """Take slot j out of Q, and its row out of everything; the last slot takes its place."""
        q = self.inverse[:, j]
        self.inverse = self.inverse - np.outer(q, q) / q[j]
        order = np.arange(self.size - 1)
        if j < self.size - 1:
            order[j] = self.size - 1
        for name in MATRICES if self.careful else MATRICES[:-1]:
            setattr(self, name, getattr(self, name)[np.ix_(order, order)])
        for name in ("inputs", *VECTORS, *BY_OUTPUT):
            setattr(self, name, getattr(self, name)[order])


def nugget_of(kappa0: float, noise: float) -> float:
    """Return ν, for a prior variance that may be zero at some inputs.

    A nugget that is a visible share of the noise makes copies of an input look different.
    """
    scale = max(kappa0, noise)
    visible = max(NUGGET_SHARE * noise, min(LEAST_NUGGET * scale, noise / 2))
    return min(NUGGET * scale, visible)


def check_state(state: dict[str, Any], dimension: int, outputs: int) -> dict[str, Any]:
    """Return the state if its parts fit together; it may come from a file."""
    size = len(state["arrivals"])
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(MATRICES, (size * (size + 1) // 2,))
    if len(state["dispersion"]) == 0:
        shapes["dispersion"] = (0,)
    shapes |= dict.fromkeys(VECTORS, (size,)) | dict.fromkeys(BY_OUTPUT, (size, outputs))
    for name in DEFERRED:
        due = (len(state[f"{name}_left"]), size if len(state[name]) else 0)
        shapes |= {f"{name}_left": due, f"{name}_right": due}
    return check_shapes(state, {**shapes, "inputs": (size, dimension)})


def positive_inverse(matrix: Array) -> Array:
    """Return the inverse of a positive definite matrix; of the nearest that is not singular."""
    jitter = 0.0
    while True:
        try:
            factor = cho_factor(matrix + jitter * np.eye(len(matrix)))
        except np.linalg.LinAlgError:
            jitter = max(10 * jitter, EPS * float(np.trace(matrix)))
            continue
        inverse = cho_solve(factor, np.eye(len(matrix)))
        return np.asarray((inverse + inverse.T) / 2)


def _packed(matrix: Array) -> Array:
    """Return the upper triangle, row by row."""
    return np.asarray(matrix[np.triu_indices(len(matrix))])


def square_root(matrix: Array) -> Array:
    """Return R with RRᵀ = matrix, which is positive semi-definite up to rounding."""
    factor, pivots, rank, _ = dpstrf(matrix, lower=1, tol=0.0)
    factor = np.tril(factor)
    factor[:, rank:] = 0.0
    root = np.empty(matrix.shape)
    root[pivots - 1] = factor
    return root


def _symmetric_product(a: Array, b: Array) -> Array:
    """Return abᵀ + baᵀ, symmetric to the last bit."""
    product = np.outer(a, b)
    return product + product.T
