"""The absorbed posterior in NumPy: the information of removed points stays.

The points Z are places where beliefs about u = f(Z) are kept; f elsewhere follows from u by the
prior (mathematics.md §4). By slot:

    K = κ(Z, Z) (`gram`) and Q = K⁻¹ (`inverse`): the prior, shared by all beliefs;
    S (`covariance`) and m (`values`): a belief q(u) = N(m, S), one for each forgetting factor;
    diag(QSQ) (`spread`) and α = Qm (`weights`): what prices need, of the leading belief;
    Λ = S⁻¹ − Q (`information`): the information of the data, if exact prices need it.

m and α have a column for each output; everything else is shared by the outputs.

No number here is large: S never exceeds K, the regression weights w = Qk are moderate, and Q is at
most one over the least variance of a point given the others. Points with a smaller variance are
removed (`AbsorbedCriterion`). Products with Q are refined by their residual where that
matters, and each refinement also corrects Q. So errors do not grow, and nothing is ever rebuilt.
"""

from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from pogp.arrays import Array
from pogp.kernels import Kernel, evaluate, prior_variance
from pogp.posteriors.absorbed.recent import Recent, recent_of
from pogp.posteriors.slots import (
    MAX_DEFERRED,
    bordered,
    check_shapes,
    packed,
    symmetric,
    with_slot,
    without,
)

REFINE = 1e-2
"""If the variance given the points is below this fraction of κ₀, Qk is refined by its residual."""
MEND, EXACT = 1e-10, 1e-10
"""A residual above the first, relative to κ₀, also corrects Q. One that changes no weight by more
than the second needs no correction."""
GLIMPSE, GLIMPSE_BELOW = 1e-11, 0.3
"""The same in one entry of the residual, which is looked at where a belief forgets, if the variance
given the points is below this fraction of κ₀."""
ROUNDING = 4 * float(np.finfo(np.float64).eps)
"""A residual up to this fraction of κ₀(1 + Σ|wᵢ|) is rounding."""
LOST, OUTSIDE = 100.0, 1e-6
"""If removals took more than this from a slot of `spread`, relative to Q_ii, what is left is
computed again; also if it is this far, relatively, outside of [0, Q_ii]."""
KNOWN = 1e-15
"""The rounding error of the variance of Σqᵢuᵢ, as a fraction of κ₀(Σ|qᵢ|)²."""
ARRAYS = ("inputs", "arrivals", "relevance", "values", "weights", "spread")


@dataclass(frozen=True)
class AtInput:
    """The prediction at an input, and its intermediate results; by belief where an axis says so."""

    x: Array
    k: Array
    kappa0: float
    w: Array
    """Qk: the regression of f(x) on u."""
    gamma: float
    """The variance of f(x) given u, the function at the points."""
    g: Array
    """Sw, (beliefs, M)."""
    explained: Array
    """wᵀSw, (beliefs,)."""
    mean: Array
    """(beliefs, outputs)."""

    @property
    def latent(self) -> Array:
        """The variance of f(x), (beliefs,)."""
        return self.gamma + self.explained


class AbsorbedState:
    """K, Q and the beliefs at the retained points; the loop decides what is learned and removed."""

    compiled = False

    def __init__(
        self,
        kernel: Kernel,
        noise: float,
        mean: Array,
        dimension: int,
        forgetting: tuple[float, ...] = (1.0,),
        has_information: bool = True,
        uses_recent: bool = True,
    ) -> None:
        self.kernel = kernel
        self.noise = noise
        self.mean, self.dimension = mean, dimension
        self.forgetting = forgetting
        self.has_information = has_information and forgetting == (1.0,)
        self.uses_recent = uses_recent and forgetting[0] == 1.0  # whether new points learn from it
        self.lead = 0  # the belief that prices points
        beliefs, outputs = len(forgetting), len(mean)
        self.inputs = np.empty((0, dimension))
        self.arrivals = np.empty(0, dtype=np.int64)
        self.relevance = np.empty(0)  # by which a removal's cost is multiplied
        self.gram = np.empty((0, 0))
        self.inverse = np.empty((0, 0))
        self.information = np.empty((0, 0))  # stays empty unless has_information
        self.covariance = np.empty((beliefs, 0, 0))
        self.values = np.empty((beliefs, 0, outputs))
        self.weights = np.empty((0, outputs))
        self.spread, self.taken = np.empty((2, 0))  # what removals took since it was computed
        self.recent = Recent.empty(dimension, outputs)

    @property
    def size(self) -> int:
        """The model order M."""
        return len(self.arrivals)

    @property
    def nbytes(self) -> int:
        """Bytes held by the state."""
        names = (*ARRAYS, "gram", "inverse", "information", "covariance")
        return sum(int(getattr(self, name).nbytes) for name in names) + self.recent.nbytes

    def at_input(self, x: Array) -> AtInput:
        """Return the prediction at an input; a large residual corrects Q."""
        k = evaluate(self.kernel, self.inputs, x[None, :])[:, 0]
        kappa0 = float(prior_variance(self.kernel, x[None, :])[0])
        w = self.inverse @ k
        gamma = kappa0 - float(k @ w)
        if self.size and (gamma < REFINE * kappa0 or self._seems_wrong(w, k, gamma, kappa0)):
            w, gamma = self._refined(w, k, kappa0)
        g = self.covariance @ w
        mean = self.mean + np.einsum("bmo,m->bo", self.values, w)
        return AtInput(x, k, kappa0, w, max(gamma, 0.0), g, np.maximum(g @ w, 0.0), mean)

    def _seems_wrong(self, w: Array, k: Array, gamma: float, kappa0: float) -> bool:
        """Whether, if a belief forgets, the residual at the heaviest point is no rounding (§6)."""
        if min(self.forgetting) == 1.0 or gamma >= GLIMPSE_BELOW * kappa0:
            return False
        i = int(np.argmax(np.abs(w)))
        error = abs(float(k[i] - self.gram[i] @ w))
        steepest = float(np.diagonal(self.inverse).max())
        rounding = ROUNDING * kappa0 * (1 + float(np.abs(w).sum()))
        return error * steepest > GLIMPSE and error > rounding

    def _refined(self, w: Array, k: Array, kappa0: float) -> tuple[Array, float]:
        """Return w and γ refined by the residual of w; a large one also corrects Q."""
        residual = k - self.gram @ w
        gamma = kappa0 - float(w @ (k + residual))  # right to second order
        largest = float(np.abs(residual).max(initial=0.0))
        steepest = float(np.diagonal(self.inverse).max(initial=0.0))
        rounding = ROUNDING * kappa0 * (1 + float(np.abs(w).sum()))
        if largest * steepest > EXACT and largest > rounding:
            step = self.inverse @ residual
            gamma -= float(residual @ step)
            if np.abs(step).max() > EXACT:
                w = w + step
                if largest > MEND * kappa0:
                    self._mend(w, step, k)
        return w, gamma

    def _mend(self, w: Array, step: Array, k: Array) -> None:
        """Make Q send Kw to w, by the symmetric update of rank two that changes it least (BFGS).

        Kw is k but for what is left of the residual, and Q sends it to w − step.
        """
        by = 1 / float(k @ w)
        other = by * step - (0.5 * by * by * float(k @ step)) * w
        pair = np.outer(w, other)
        self.inverse = self.inverse + (pair + pair.T)

    def append(
        self, at: AtInput, y: Array, noises: Array, arrival: int, relevance: float = 1.0
    ) -> None:
        """Observe y as a new point, in the last slot; `noises` has one for each belief."""
        b = self.inverse @ at.g[self.lead]
        w, gamma, latent = at.w, at.gamma, at.latent
        s, r = self._surprise(at, y, noises, latent)
        e, g = np.append(-w, 1.0), np.concatenate([at.g, latent[:, None]], axis=1)
        # mathematics.md §4, append
        self.inverse = with_slot(self.inverse, 0, 1) + np.outer(e, e) / gamma
        S = with_slot(self.covariance, 1, 2)
        S[:, -1], S[:, :, -1] = g, g
        self.covariance = S - _outer_products(g) / s[:, None, None]
        means = (at.mean - self.mean)[:, None, :]
        self.values = np.concatenate([self.values, means], axis=1) + g[:, :, None] * r[:, None, :]
        moved = np.append(b - w, 1.0)
        self.weights = with_slot(self.weights, 0) + np.outer(moved, r[self.lead])
        spread = with_slot(self.spread, 0) + e**2 / gamma - moved**2 / s[self.lead]
        known = at.explained[self.lead] + noises[self.lead]
        spread[-1] = known / (gamma * s[self.lead])  # 1/γ − 1/s without cancellation
        self.spread, self.taken = spread, with_slot(self.taken, 0)
        if self.has_information:
            self.information = with_slot(self.information, 0, 1)
            self.information[-1, -1] = 1 / noises[0]
        self.gram = bordered(self.gram, at.k, at.kappa0)
        self.inputs = np.vstack([self.inputs, at.x])
        self.arrivals = np.append(self.arrivals, arrival)
        self.relevance = np.append(self.relevance, relevance)

    def learn_recent(self) -> None:
        """Add the information of recent samples about the point that was just appended.

        For the first belief, which must not forget, and leads.
        """
        others = self.recent.without(self.arrivals)
        q = self.inverse[:, -1]
        e = q / q[-1]  # [−w, 1], and γ = 1/q
        cross = evaluate(self.kernel, self.inputs, others.inputs)
        slope = q @ cross  # c/γ
        rounding = ROUNDING * self.gram[-1, -1] * float(np.abs(e).sum())
        slope = np.where(np.abs(slope) > rounding * q[-1], slope, 0.0)
        if not slope.any():
            return
        # mathematics.md §4, new points
        by_noise = slope / others.noises
        b, h = float(slope @ by_noise), others.targets.T @ by_noise
        a = self.inverse @ (cross @ by_noise) - b * e
        a[-1] = 0.0
        S = self.covariance[0]
        Ge, Ga = S @ e, S @ a
        vee, vea, vaa = float(e @ Ge), 1 + float(e @ Ga), min(float(a @ Ga), b)
        D = vea**2 + vee * (b - vaa)
        r, t = -e @ self.values[0], h - a @ self.values[0]
        first, second = ((b - vaa) * r + vea * t) / D, (vea * r - vee * t) / D
        v = Ga - (vea / vee) * Ge
        moved = np.outer(Ge, first) + np.outer(Ga, second)
        self.values = np.concatenate([(self.values[0] + moved)[None], self.values[1:]])
        S = S - np.outer(Ge, Ge) / vee + (vee / D) * np.outer(v, v)
        self.covariance = np.concatenate([S[None], self.covariance[1:]])
        QGe, Qv = self.inverse @ Ge, self.inverse @ v
        self.weights = self.weights + self.inverse @ moved
        self.spread = self.spread - QGe**2 / vee + (vee / D) * Qv**2
        if self.has_information:
            pair = np.outer(e, a + 0.5 * b * e)
            self.information = self.information + (pair + pair.T)

    def absorb(self, at: AtInput, y: Array, noises: Array, marginalise: bool) -> None:
        """Observe y without a new point, as if it was appended and removed at once.

        f(x) is taken to be wᵀu, and if `marginalise` an error of the variance γ.
        """
        observed = noises + (at.gamma if marginalise else 0.0)
        s, r = self._surprise(at, y, observed, at.explained)
        b = self.inverse @ at.g[self.lead]
        # mathematics.md §4, observe without a new point
        self.values = self.values + at.g[:, :, None] * r[:, None, :]
        self.covariance = self.covariance - _outer_products(at.g) / s[:, None, None]
        self.weights = self.weights + np.outer(b, r[self.lead])
        self.spread = self.spread - b**2 / s[self.lead]
        if self.has_information:
            self.information = self.information + np.outer(at.w, at.w) / observed[0]

    def _surprise(self, at: AtInput, y: Array, noises: Array, known: Array) -> tuple[Array, Array]:
        """Return s, the variance of y, and (y − mean)/s."""
        s = known + noises
        return s, (y - at.mean) / s[:, None]

    def remove(self, j: int, marginalise: bool) -> None:
        """Remove slot j: u_j follows from the others (condition), or is marginalised."""
        q = self.inverse[:, j]
        c = self.covariance @ q
        b = self.inverse @ c[self.lead]
        b_j = np.maximum(c @ q, KNOWN * self.gram[j, j] * np.abs(q).sum() ** 2)
        a_j = np.einsum("m,bmo->bo", q, self.values)
        t = q / q[j]
        before = self.spread
        # mathematics.md §4, removal
        if marginalise:
            self.spread = self.spread - 2 * t * b + b_j[self.lead] * t**2
            self.weights = self.weights - np.outer(t, a_j[self.lead])
        else:
            share = (a_j / b_j[:, None])[:, None, :]
            self.covariance = self.covariance - _outer_products(c) / b_j[:, None, None]
            self.values = self.values - c[:, :, None] * share
            self.spread = self.spread - b**2 / b_j[self.lead]
            self.weights = self.weights - b[:, None] * share[self.lead]
        if self.has_information:
            self.information = self._information_without(j, q, marginalise)
        self.inverse = self.inverse - np.outer(q, q) / q[j]
        self.taken = self.taken + np.abs(before - self.spread)
        self._drop(j)
        self._renew_spread()

    def _renew_spread(self) -> None:
        """Compute the least certain slot of `spread` again."""
        diagonal = np.diagonal(self.inverse)
        outside = np.maximum(-self.spread, self.spread - diagonal) / (OUTSIDE * diagonal)
        doubt = np.maximum(self.taken / (LOST * diagonal), outside)
        if doubt.max(initial=0.0) > 1.0:
            i = int(np.argmax(doubt))
            q = self.inverse[:, i]
            known = KNOWN * self.gram[i, i] * np.abs(q).sum() ** 2
            self.spread[i] = max(float(q @ (self.covariance[self.lead] @ q)), known)
            self.taken[i] = 0.0
        self.bound_spread()

    def bound_spread(self) -> None:
        """Keep diag(QSQ) between 0 and diag(Q), where it is, since S never exceeds K."""
        self.spread = np.clip(self.spread, 0.0, np.diagonal(self.inverse))

    def _information_without(self, j: int, q: Array, marginalise: bool) -> Array:
        known = self.information[:, j]
        if marginalise:
            total = q + known
            return np.asarray(
                self.information + np.outer(q, q) / q[j] - np.outer(total, total) / total[j]
            )
        t = q / q[j]
        right = known - 0.5 * known[j] * t
        pair = np.outer(t, right)
        return np.asarray(self.information - (pair + pair.T))

    def _drop(self, j: int) -> None:
        """Delete slot j; the last slot takes its place."""
        order = without(j, self.size)
        square = (order[:, None], order)
        self.gram, self.inverse = self.gram[square], self.inverse[square]
        if self.has_information:
            self.information = self.information[square]
        self.covariance = np.ascontiguousarray(self.covariance[:, order][:, :, order])
        self.values = np.ascontiguousarray(self.values[:, order])
        for name in ("weights", "spread", "taken", "inputs", "arrivals", "relevance"):
            setattr(self, name, getattr(self, name)[order])
        self.recent = self.recent.truncated(self.size)

    def forget(self) -> None:
        """Move each belief towards the prior: S ← λS + (1 − λ)K, m ← √λ m (mathematics.md §5)."""
        if min(self.forgetting) < 1.0:
            shares = np.array(self.forgetting)[:, None, None]
            self.covariance = shares * self.covariance + (1 - shares) * self.gram
            self.values = np.sqrt(shares) * self.values
            share = self.forgetting[self.lead]
            self.weights = np.sqrt(share) * self.weights
            self.spread = share * self.spread + (1 - share) * np.diagonal(self.inverse)

    def covariance_of(self, belief: int) -> Array:
        """Return S of one belief."""
        return np.asarray(self.covariance[belief])

    def times_inverse(self, rows: Array) -> Array:
        """Return rows (n, M) times Q, refined by their residual."""
        found = rows @ self.inverse
        return np.asarray(found + (rows - found @ self.gram) @ self.inverse)

    def times_covariance(self, belief: int, rows: Array) -> Array:
        """Return rows (n, M) times S of one belief."""
        return np.asarray(rows @ self.covariance[belief])

    def set_lead(self, belief: int) -> None:
        """Let another belief price points; costs O(M³) if it is another."""
        if belief != self.lead:
            self.recent = Recent.empty(self.dimension, len(self.mean))
            self.lead = belief
            self.weights = self.inverse @ self.values[belief]
            self.spread = spread_of(self.inverse, self.covariance[belief])

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Return the means (beliefs, n, outputs) and the latent variances (beliefs, n) at X."""
        w, gamma, _ = self.regression(X)
        means = self.mean + np.einsum("nm,bmo->bno", w, self.values)
        known = np.einsum("bnm,nm->bn", w @ self.covariance, w)
        return means, gamma + np.maximum(known, 0.0)

    def regression(self, X: Array) -> tuple[Array, Array, Array]:
        """Return the rows w = Qk, refined; what the points leave open; and the rows k."""
        k = evaluate(self.kernel, X, self.inputs)
        prior = prior_variance(self.kernel, X)
        w = self.times_inverse(k)
        gamma = prior - np.sum(w * (2 * k - w @ self.gram), axis=1)
        return w, np.maximum(gamma, 0.0), k

    # ---- state ------------------------------------------------------------------------------

    def copy(self) -> Self:
        """Return an independent copy; it may share arrays, since none is ever changed."""
        return copy(self)

    def compact_copy(self) -> Self:
        """Return a copy without the latest samples."""
        twin = copy(self)
        twin.uses_recent, twin.recent = False, Recent.empty(self.dimension, len(self.mean))
        return twin

    def state(self) -> dict[str, Any]:
        """Return everything, as arrays and numbers; of symmetric matrices the packed triangle."""
        nothing = np.empty((0, self.size))
        matrices = {"inverse": self.inverse}
        matrices |= {f"covariance{i}": S for i, S in enumerate(self.covariance)}
        if self.has_information:
            matrices["information"] = self.information
        state: dict[str, Any] = {}
        for name, matrix in matrices.items():
            state |= {name: packed(matrix), f"{name}_left": nothing, f"{name}_right": nothing}
        for name in ARRAYS:
            state[name] = getattr(self, name).copy()
        state |= {"taken": self.taken} if self.taken.any() else {}
        state |= self.recent.state() if self.uses_recent else {}
        beliefs = len(self.forgetting)
        return {**state, "kept": np.ones(beliefs), "shift": np.zeros(beliefs), "lead": self.lead}

    def reserve(self, points: int) -> None:
        """Do nothing: the compiled twin makes room for so many points."""

    def restore(self, state: dict[str, Any], trusted: bool = False) -> None:
        """Restore what `state` returned, checked as from a file unless `trusted`."""
        names = state_matrices(len(self.forgetting), self.has_information)
        state = check_state(state, self.dimension, len(self.mean), len(self.forgetting), names)
        for name in (*ARRAYS, "taken"):
            setattr(self, name, np.array(state[name], order="C"))
        self.lead = int(state["lead"])
        self.gram = np.array(evaluate(self.kernel, self.inputs, self.inputs))
        np.fill_diagonal(self.gram, prior_variance(self.kernel, self.inputs))
        full = {name: _whole(state, name, self.size) for name in names}
        self.inverse = full["inverse"]
        S = np.array([full[f"covariance{i}"] for i in range(len(self.forgetting))])
        kept, shift = state["kept"][:, None, None], state["shift"][:, None, None]
        self.covariance = kept * S.reshape(len(kept), self.size, self.size) + shift * self.gram
        if self.has_information:
            self.information = full["information"]
        self.recent = recent_of(state, self.dimension, len(self.mean))
        if not trusted:
            check_consistent(self)


def state_matrices(beliefs: int, has_information: bool) -> tuple[str, ...]:
    """Return the names of the symmetric matrices in a state."""
    covariances = tuple(f"covariance{i}" for i in range(beliefs))
    return ("inverse", *covariances, *(("information",) if has_information else ()))


def check_state(
    state: dict[str, Any], dimension: int, outputs: int, beliefs: int, matrices: tuple[str, ...]
) -> dict[str, Any]:
    """Return the state if its parts fit together; it may come from a file."""
    size = len(state["arrivals"])
    state = {"taken": np.zeros(size), **state}  # which is left out if it is zero
    shapes: dict[str, tuple[int, ...]] = {"arrivals": (size,), "relevance": (size,)}
    shapes |= {"inputs": (size, dimension), "spread": (size,), "taken": (size,)}
    shapes |= {"values": (beliefs, size, outputs), "weights": (size, outputs)}
    shapes |= dict.fromkeys(("kept", "shift"), (beliefs,))
    for name in matrices:
        deferred = (min(len(state[f"{name}_left"]), MAX_DEFERRED), size)
        shapes |= {name: (size * (size + 1) // 2,), f"{name}_left": deferred}
        shapes[f"{name}_right"] = deferred
    check_shapes(state, shapes)
    kept, shift = state["kept"], state["shift"]
    if not ((kept > 0) & (shift >= 0) & (np.abs(kept + shift - 1) < 1e-9)).all():
        raise ValueError(f"kept and shift must be shares that add up to one, got {kept}, {shift}")
    for name in ("relevance", "taken"):
        if not (np.isfinite(state[name]) & (state[name] >= 0)).all():
            raise ValueError(f"{name} must be finite and not negative")
    if not 0 <= int(state["lead"]) < beliefs:
        raise ValueError(f"lead must be one of {beliefs} beliefs, got {state['lead']!r}")
    return state


def check_consistent(core: Any) -> None:
    """Raise ValueError unless Q is the inverse of K and beliefs lie between certainty and prior.

    By products with random signs, O(M²): a file may hold anything.
    """
    size = core.size
    if size == 0:
        return
    z = np.random.default_rng(size).choice(np.array([-1.0, 1.0]), size)
    K, Q = core.gram, core.inverse
    if not np.abs(K @ (Q @ z) - z).max() <= 0.1 or not (np.diagonal(Q) > 0).all():
        raise ValueError("the inverse is not that of the kernel's matrix at the retained points")
    largest = 1e-6 * float(np.diagonal(K).max())
    for S in core.covariance:
        diagonal = np.diagonal(S)
        if not (diagonal >= -largest).all() or not (diagonal <= np.diagonal(K) + largest).all():
            raise ValueError("a belief must lie between certainty and the prior")
    spread = core.spread / np.diagonal(Q)  # with little noise a difference of large numbers
    if not ((spread >= -0.01) & (spread <= 1.01)).all():
        raise ValueError("spread must lie between certainty and the prior")
    diagonal = np.diagonal(core.information)
    if not (np.isfinite(diagonal) & (diagonal >= -1e-6 * np.abs(diagonal).max(initial=0.0))).all():
        raise ValueError("the information of the data must be finite, and positive on the diagonal")
    if not np.isfinite(core.values).all() or not np.isfinite(core.weights).all():
        raise ValueError("values and weights must be finite")


def _outer_products(rows: Array) -> Array:
    """Return the outer product of each row with itself: symmetric to the last bit."""
    return np.asarray(rows[:, :, None] * rows[:, None, :])


def spread_of(inverse: Array, covariance: Array) -> Array:
    """Return the diagonal of QSQ."""
    return np.asarray(np.einsum("ij,ij->i", inverse @ covariance, inverse))


def _whole(state: dict[str, Any], name: str, size: int) -> Array:
    """Return a symmetric matrix with the updates that the compiled twin deferred."""
    deferred = state[f"{name}_left"].T @ state[f"{name}_right"]
    return np.asarray(symmetric(state[name], size) + deferred + deferred.T)
