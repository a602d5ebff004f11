"""A stream summarised by pseudo-inputs, and how a mini-batch is added to the summary.

Let a = f(Z_a) be the old pseudo-outputs, with the old prior p(a) = N(0, K′) and the old posterior
q(a) = N(m, S). The information of earlier data is q(a)/p(a), a likelihood of a with the precision
Λ = S⁻¹ − K′⁻¹. It is kept as a square root, JᵀJ = Λ and Jᵀt = S⁻¹m, so that

    log q(a)/p(a) = const − ½‖t − Ja‖²,                                                      (1)

as if Ja had been observed as t with unit noise. In the paper that is ŷ_a = D_a S⁻¹m, observed with
the noise D_a = Λ⁻¹; but Λ is singular wherever there were fewer samples than pseudo-inputs.
Nothing is inverted here, and nothing is squared: information far below the largest is kept too.

With the new pseudo-outputs b = f(Z), the online bound is then that of Titsias (2009) for the
targets y of f(X) and t of Ja, side by side. In the letters of `posteriors.inducing`,

    F = log N((y, t); 0, VᵀV + diag(σ²I, I)) − Σ slack(f(X))/2σ² − Σ slack(Ja)/2.            (2)

A pseudo-output that is kept is the same variable in a and in b, its nugget included. So it adds
nothing to the slack, and however often it is handed on, nothing that is known of it is lost.

Bui, Nguyen & Turner, *Streaming Sparse Gaussian Process Approximations* (2017): (2) is their
online variational free energy for regression, with q(b) at its optimum.
"""

from math import log, pi
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, solve_triangular

from pogp.arrays import Array, Indices
from pogp.kernels import Kernel, evaluate, prior_variance
from pogp.posteriors.inducing import NUGGET, Approximation, Evidence


class Online(Approximation):
    """The variational one, where the last `units` targets are t, with unit noise."""

    def __init__(self, units: int) -> None:
        self._units = units

    def noises(self, slack: Array, noise: float) -> Array:
        """Return σ² for y and 1 for t."""
        return np.repeat([noise, 1.0], [len(slack) - self._units, self._units])

    def penalty(self, slack: Array, noise: float) -> float:
        """Return half the slack, in units of the noise."""
        return 0.5 * float(np.sum(slack / self.noises(slack, noise)))  # (2)

    def pullback(self, in_noises: Array, slack: Array, noise: float) -> tuple[Array, float]:
        """Return the derivatives in the slack and the noise, given those in Λ."""
        data = slice(len(slack) - self._units)
        in_noise = in_noises[data].sum() + slack[data].sum() / (2.0 * noise**2)
        return -0.5 / self.noises(slack, noise), float(in_noise)


class Summary(NamedTuple):
    """What was learned so far, as a likelihood of a: exp(scale − ½‖outcomes − operator·a‖²)."""

    inputs: Array
    """Z_a, (m, p)."""
    operator: Array
    """J, (r, m), with r at most m and at most the number of samples."""
    outcomes: Array
    """t, (r,)."""
    scale: float
    """The constant that makes it a likelihood of all samples, or the bound on that."""

    @classmethod
    def nothing(cls, dimension: int) -> Self:
        """Return the summary at the start."""
        return cls(np.empty((0, dimension)), np.empty((0, 0)), np.empty(0), 0.0)


class Learned(NamedTuple):
    """The result of a mini-batch: factors of the posterior, and a summary for the next one."""

    bound: float
    """The sum of the online bounds up to here, in the place of log p(y) of all samples."""
    evidence: Evidence
    summary: Summary


class _Joint(NamedTuple):
    """Prior covariances, without nugget."""

    gram: Array
    """κ(Z, Z)."""
    cross: Array
    """κ(Z, (X, G)), where G are the old pseudo-inputs that go."""
    gone: Array
    """κ(G, G)."""
    diagonal: Array
    """κ(x, x)."""


class MiniBatch:
    """Samples X, residual = y − mean, to be learned after those of which only `old` is left.

    The first of the new pseudo-inputs `inputs` are those of the old ones at `kept`.
    """

    def __init__(
        self, old: Summary, X: Array, residual: Array, inputs: Array, kept: Indices
    ) -> None:
        self._old_scale = old.scale
        self._X, self._inputs, self._kept = X, inputs, slice(len(kept))
        self._J_kept = old.operator[:, kept]
        self._J_gone = np.delete(old.operator, kept, axis=1)
        self._gone = np.delete(old.inputs, kept, axis=0)
        self._points = np.vstack([X, self._gone])
        self._targets = np.concatenate([residual, old.outcomes])
        self._approximation = Online(len(old.outcomes))

    def learn(self, kernel: Kernel, noise: float) -> Learned:
        """Return the result of the mini-batch for these hyperparameters."""
        joint = _Joint(
            evaluate(kernel, self._inputs, self._inputs),
            evaluate(kernel, self._inputs, self._points),
            evaluate(kernel, self._gone, self._gone),
            prior_variance(kernel, self._X),
        )
        cross, diagonal = self._observed(joint)
        found = Evidence(self._approximation, joint.gram, cross, diagonal, noise, self._targets)
        noises = self._approximation.noises(diagonal, noise)
        return Learned(self._bound(found), found, self._summary(found, cross, noises))

    def bound_and_gradient(self, kernel: Kernel, noise: float) -> tuple[float, Array, float]:
        """Return the bound with its derivatives in the kernel's theta and in the noise."""
        gram, pull_gram = kernel.cross_pullback(self._inputs, self._inputs)
        cross, pull_cross = kernel.cross_pullback(self._inputs, self._points)
        gone, pull_gone = kernel.cross_pullback(self._gone, self._gone)
        joint = _Joint(gram, cross, gone, prior_variance(kernel, self._X))
        found = Evidence(self._approximation, gram, *self._observed(joint), noise, self._targets)
        adjoint = found.adjoint()
        pulled = self._pullback(adjoint.cross, adjoint.diagonal)
        in_theta = (
            pull_gram(adjoint.gram + pulled.gram)[0]
            + pull_cross(pulled.cross)[0]
            + kernel.diag_pullback(self._X, pulled.diagonal)
        )
        if len(gone):
            in_theta = in_theta + pull_gone(pulled.gone)[0]
        return self._bound(found), in_theta, adjoint.noise

    def _observed(self, joint: _Joint) -> tuple[Array, Array]:
        """Return the covariances of b with what was observed, f(X) and Ja, and the variances."""
        n, kept, nugget = len(self._X), self._kept, NUGGET * np.mean(np.diag(joint.gram))
        L = np.linalg.cholesky(joint.gram + nugget * np.eye(len(joint.gram)))
        # JL and then L(JL)ᵀ, not (LLᵀ)Jᵀ: J may be large where JL is not, and would bring its
        # rounding along at every mini-batch.
        JL = self._J_kept @ L[kept]
        of_Ja = L @ JL.T + joint.cross[:, n:] @ self._J_gone.T
        gone = joint.gone + nugget * np.eye(len(joint.gone))
        mixed = self._J_kept @ joint.cross[kept, n:]
        variances = _row_products(JL, JL) + _row_products(
            2.0 * mixed + self._J_gone @ gone, self._J_gone
        )
        return np.hstack([joint.cross[:, :n], of_Ja]), np.append(joint.diagonal, variances)

    def _pullback(self, in_cross: Array, in_diagonal: Array) -> _Joint:
        """Return the derivatives in the covariances, given those in what `_observed` returns."""
        n, kept, size = len(self._X), self._kept, len(self._inputs)
        of_Ja = in_cross[:, n:]
        weighted_kept = self._J_kept.T * in_diagonal[n:]
        in_gram = np.zeros((size, size))
        in_gram[:, kept] = of_Ja @ self._J_kept
        in_gram[kept, kept] += weighted_kept @ self._J_kept
        in_points = np.hstack([in_cross[:, :n], of_Ja @ self._J_gone])
        in_points[kept, n:] += 2.0 * weighted_kept @ self._J_gone
        in_gone = (self._J_gone.T * in_diagonal[n:]) @ self._J_gone
        in_nugget = np.trace(in_gram) + np.trace(in_gone)
        in_gram[np.diag_indices(size)] += NUGGET * in_nugget / size
        return _Joint(in_gram, in_points, in_gone, in_diagonal[:n])

    def _bound(self, found: Evidence) -> float:
        """Return (2), with the constant of (1) that makes it the sum of all online bounds."""
        # A density of t has a factor 1/√2π for each, which (1) has not.
        units = len(self._targets) - len(self._X)
        return self._old_scale + found.value + 0.5 * units * log(2.0 * pi)

    def _summary(self, found: Evidence, cross: Array, noises: Array) -> Summary:
        """Return the likelihood of b, by an orthogonal transformation of all targets.

        With b = Lw, (y, t) is observed of Vᵀw. Scaled to unit noise, the rows of (Vᵀ, (y, t)) are
        turned into a triangle (P, t′): for every w, ‖t′ − Pw‖² differs from ‖(y, t) − Vᵀw‖² by
        the same amount. Thus J = PL⁻¹.
        """
        L, size = found.factor, len(self._inputs)
        V = solve_triangular(L, cross, lower=True, check_finite=False)
        rows = np.column_stack([V.T, self._targets]) / np.sqrt(noises)[:, None]
        (triangle,) = qr(rows, mode="r", check_finite=False)
        P, outcomes = triangle[:size, :size], triangle[:size, size]
        J = solve_triangular(L, P.T, trans="T", lower=True, check_finite=False).T
        # The bound is scale + log ∫ exp(−½‖t′ − Pw‖²) N(w; 0, I) dw.
        misfit = outcomes - P @ found.weights
        squares = misfit @ misfit + found.weights @ found.weights
        log_integral = -0.5 * squares - np.sum(np.log(np.diag(found.inner)))
        scale = float(self._bound(found) - log_integral)
        return Summary(self._inputs, _plain(J), _plain(outcomes), scale)


def _plain(array: NDArray[np.floating[Any]]) -> Array:
    """Return the array in C order, as a file would: the order can show in the last bit."""
    return np.ascontiguousarray(array, dtype=np.float64)


def _row_products(A: Array, B: Array) -> Array:
    """Return the diagonal of ABᵀ."""
    products: Array = np.einsum("ij,ij->i", A, B)
    return products
