"""The GP with pseudo-inputs: its predictions and its evidence.

Between n inputs X and m pseudo-inputs Z, with κ(Z, Z) + νI = LLᵀ and V = L⁻¹κ(Z, X), either
approximation is a normal distribution of y with the covariance VᵀV + Λ, where Λ is diagonal.
Through B = I + VΛ⁻¹Vᵀ = RRᵀ everything costs O(nm²), and all of that in matrix products.

The nugget ν, a small share of κ(z, z), lets nearby pseudo-inputs be factored. It is noise on the
pseudo-outputs, so that each approximation stays what it is: a prior, and a bound.

Equations are those of Snelson & Ghahramani, *Sparse Gaussian Processes using Pseudo-inputs* (2006),
S&G, and of Titsias, *Variational Learning of Inducing Variables in Sparse Gaussian Processes*
(2009).
"""

from abc import ABC, abstractmethod
from math import isfinite, log, pi
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg import solve_triangular

from pogp.arrays import Array, diagonal_of
from pogp.kernels import Kernel, evaluate, prior_variance
from pogp.posteriors.gradients import latent_gradients

NUGGET = 1e-10
"""ν as a share of the mean of κ(z, z)."""
BLOCK = 1024
"""Points predicted at once, which bounds the memory of a prediction."""


class Approximation(ABC):
    """How the slack is treated, the prior variance at each x that u = f(Z) does not explain."""

    @abstractmethod
    def noises(self, slack: Array, noise: float) -> Array:
        """Return the diagonal of Λ."""

    @abstractmethod
    def penalty(self, slack: Array, noise: float) -> float:
        """Return what is subtracted from log N(y; mean, VᵀV + Λ)."""

    @abstractmethod
    def pullback(self, in_noises: Array, slack: Array, noise: float) -> tuple[Array, float]:
        """Return the derivatives in the slack and the noise, given those in Λ."""


class FITC(Approximation):
    """The slack is noise of its own at each x: the likelihood of a model with another prior."""

    def noises(self, slack: Array, noise: float) -> Array:
        """Return the slack and the noise together."""
        return slack + noise  # S&G eq. 5: Λ + σ²I

    def penalty(self, slack: Array, noise: float) -> float:
        """Return nothing."""
        return 0.0

    def pullback(self, in_noises: Array, slack: Array, noise: float) -> tuple[Array, float]:
        """Return the derivatives in Λ once each, and all together."""
        return in_noises, float(in_noises.sum())


class Variational(Approximation):
    """The slack is a penalty: a lower bound on the likelihood of the exact GP."""

    def noises(self, slack: Array, noise: float) -> Array:
        """Return the noise alone."""
        return np.full_like(slack, noise)

    def penalty(self, slack: Array, noise: float) -> float:
        """Return the slack, in units of the noise."""
        return float(slack.sum()) / (2.0 * noise)  # Titsias eq. 9: Tr(K̃)/2σ²

    def pullback(self, in_noises: Array, slack: Array, noise: float) -> tuple[Array, float]:
        """Return the derivatives of the penalty, and those in Λ all together."""
        in_noise = in_noises.sum() + slack.sum() / (2.0 * noise**2)
        return np.full_like(slack, -0.5 / noise), float(in_noise)


class Adjoint(NamedTuple):
    """The derivatives of the evidence in κ(Z, Z), κ(Z, X), the diagonal of κ(X, X) and σ²."""

    gram: Array
    cross: Array
    diagonal: Array
    noise: float


class Evidence:
    """The objective, log p(y) or a bound on it, with the factors that the posterior is made of.

    LinAlgError where κ(Z, Z) is not positive definite or a result is not finite.
    """

    def __init__(
        self,
        approximation: Approximation,
        gram: Array,
        cross: Array,
        diagonal: Array,
        noise: float,
        residual: Array,
    ) -> None:
        self._approximation = approximation
        self._noise = noise
        identity = np.eye(len(gram))
        self.factor = _cholesky(gram + NUGGET * np.mean(np.diag(gram)) * identity)
        self._V = _solve(self.factor, cross)
        explained = np.einsum("ij,ij->j", self._V, self._V)
        self._slack = np.maximum(diagonal - explained, 0.0)  # S&G eq. 5: λ
        self._noises = approximation.noises(self._slack, noise)

        scaled = self._V / np.sqrt(self._noises)
        self.inner = _cholesky(identity + scaled @ scaled.T)
        self._U = _solve(self.inner, scaled)
        projected = self._U @ (residual / np.sqrt(self._noises))
        self.weights = _solve(self.inner, projected, transposed=True)
        misfit = residual - self.weights @ self._V
        self._alpha = misfit / self._noises

        # rᵀ(VᵀV + Λ)⁻¹r as a sum of squares: nothing cancels where the noise is small.
        squares = misfit @ self._alpha + self.weights @ self.weights
        log_determinant = np.sum(np.log(self._noises)) + 2.0 * np.sum(np.log(np.diag(self.inner)))
        density = -0.5 * (squares + log_determinant + len(residual) * log(2.0 * pi))
        penalty = approximation.penalty(self._slack, noise)
        self.value = float(density - penalty)  # S&G eq. 9, Titsias eq. 9
        if not isfinite(self.value):
            raise LinAlgError("the evidence is not finite")

    def adjoint(self) -> Adjoint:
        """Return the derivatives of the value.

        Only C = VᵀV + Λ and the slack depend on what is differentiated. With α = C⁻¹r, β = Vα
        (the weights) and VC⁻¹ = B⁻¹VΛ⁻¹, the derivative of the log density in C is ½(ααᵀ − C⁻¹).
        """
        inverse = (1.0 - np.einsum("ij,ij->j", self._U, self._U)) / self._noises  # diag of C⁻¹
        in_noises = 0.5 * (self._alpha**2 - inverse)
        in_slack, in_noise = self._approximation.pullback(in_noises, self._slack, self._noise)

        in_V = np.outer(self._alpha, self.weights).T  # columns together, as in the solves
        in_V -= _solve(self.inner, self._U, transposed=True) / np.sqrt(self._noises)
        in_V -= 2.0 * in_slack * self._V
        in_cross = _solve(self.factor, in_V, transposed=True)
        # VᵀV = κ(X, Z) K⁻¹ κ(Z, X) with K = LLᵀ, of which K⁻¹ changes by −K⁻¹ dK K⁻¹.
        in_gram = _solve(self.factor, (in_cross @ self._V.T).T, transposed=True)
        in_gram = -0.25 * (in_gram + in_gram.T)
        diagonal_of(in_gram)[:] += NUGGET * np.trace(in_gram) / len(in_gram)
        return Adjoint(in_gram, in_cross, in_slack, in_noise)


class Gradient(NamedTuple):
    """The derivatives of the evidence in the kernel's theta, σ² and the pseudo-inputs."""

    theta: Array
    noise: float
    inputs: Array


def evidence(
    approximation: Approximation, kernel: Kernel, noise: float, Z: Array, X: Array, residual: Array
) -> Evidence:
    """Return the evidence of residual = y − mean at X for pseudo-inputs Z."""
    gram, cross = evaluate(kernel, Z, Z), evaluate(kernel, Z, X)
    return Evidence(approximation, gram, cross, prior_variance(kernel, X), noise, residual)


def evidence_and_gradient(
    approximation: Approximation, kernel: Kernel, noise: float, Z: Array, X: Array, residual: Array
) -> tuple[Evidence, Gradient]:
    """Return the evidence with its gradient."""
    gram, pull_gram = kernel.cross_pullback(Z, Z)
    cross, pull_cross = kernel.cross_pullback(Z, X)
    found = Evidence(approximation, gram, cross, prior_variance(kernel, X), noise, residual)
    adjoint = found.adjoint()
    gram_in_theta, gram_in_Z = pull_gram(adjoint.gram)
    cross_in_theta, cross_in_Z = pull_cross(adjoint.cross)
    in_theta = gram_in_theta + cross_in_theta + kernel.diag_pullback(X, adjoint.diagonal)
    in_Z = 2.0 * gram_in_Z + cross_in_Z  # κ(Z, Z) depends on Z twice, in the same way
    return found, Gradient(in_theta, adjoint.noise, in_Z)


class InducingPosterior:
    """The posterior given pseudo-inputs: L, R and β, which give every prediction."""

    ARRAYS = ("inputs", "factor", "inner", "weights")

    def __init__(
        self,
        kernel: Kernel,
        mean: float,
        inputs: Array,
        factor: Array,
        inner: Array,
        weights: Array,
    ) -> None:
        self.kernel = kernel
        self.mean = mean
        self.inputs, self.factor, self.inner, self.weights = (
            np.array(array, dtype=np.float64, order="C")
            for array in (inputs, factor, inner, weights)
        )
        m, _ = self.inputs.shape
        shapes = [array.shape for array in (self.factor, self.inner, self.weights)]
        if shapes != [(m, m), (m, m), (m,)]:
            raise ValueError(f"factors and weights must fit {m} inputs, got the shapes {shapes}")

    @property
    def size(self) -> int:
        """The number of pseudo-inputs."""
        return len(self.inputs)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(getattr(self, name).nbytes for name in self.ARRAYS)

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Return the mean and the latent variance at each row of X."""
        mean, variance = np.empty(len(X)), np.empty(len(X))
        for start in range(0, len(X), BLOCK):
            rows = slice(start, start + BLOCK)
            prior, left = self._project(X[rows])
            mean[rows] = self.mean + self.weights @ prior  # S&G eq. 8, Titsias eq. 6
            explained = np.einsum("ij,ij->j", prior, prior) - np.einsum("ij,ij->j", left, left)
            variance[rows] = np.maximum(prior_variance(self.kernel, X[rows]) - explained, 0.0)
        return mean, variance

    def covariance(self, X: Array) -> Array:
        """Return the latent covariance between the rows of X."""
        prior, left = self._project(X)
        return np.asarray(evaluate(self.kernel, X, X) - prior.T @ prior + left.T @ left)

    def gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the derivatives of mean and latent variance with respect to X."""
        prior, left = self._project(X)
        explained = prior - _solve(self.inner, left, transposed=True)
        weights = _solve(self.factor, self.weights, transposed=True)
        solved = _solve(self.factor, explained, transposed=True).T
        return latent_gradients(self.kernel, X, self.inputs, weights, solved)

    def in_order(self, name: str) -> Array:
        """Return a copy of an array by pseudo-input; those are always in the same order."""
        return np.array(getattr(self, name))

    def state(self) -> dict[str, Any]:
        """Return everything that was learned, as arrays."""
        return {name: getattr(self, name).copy() for name in self.ARRAYS}

    def _project(self, X: Array) -> tuple[Array, Array]:
        """Return L⁻¹κ(Z, X), what u explains, and R⁻¹ of it, what of that the data leave open."""
        prior = _solve(self.factor, evaluate(self.kernel, self.inputs, X))
        return prior, _solve(self.inner, prior)


def _cholesky(matrix: Array) -> Array:
    return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)


def _solve(lower: Array, right: Array, transposed: bool = False) -> Array:
    """Return lower⁻¹ right, or lower⁻ᵀ right."""
    trans: Literal["N", "T"] = "T" if transposed else "N"
    return np.asarray(solve_triangular(lower, right, trans=trans, lower=True, check_finite=False))
