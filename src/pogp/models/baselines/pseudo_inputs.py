"""Offline sparse GPs: a few pseudo-inputs stand for all samples, and are placed by gradient.

SPGP (Snelson & Ghahramani 2006, since known as FITC) and VFE (Titsias 2009) differ in what they
maximise, `posteriors.inducing`; all the rest they share.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import ArrayLike

from pogp import validation
from pogp.arrays import Array, Indices
from pogp.interrupts import Uninterrupted
from pogp.models.base import Argument, Model
from pogp.models.baselines.pseudo_search import Placement, first_inputs, search
from pogp.posteriors.inducing import FITC, Approximation, InducingPosterior, Variational, evidence
from pogp.search import Progress
from pogp.tuning import Tuned


class PseudoInputModel(Model):
    """What SPGP and VFE share; a subclass says which approximation it maximises."""

    online = False
    one_thread = False  # its products are large
    _approximation: Approximation
    _posterior: InducingPosterior | None

    def __init__(
        self, kernel: object, noise: float, size: int, *, mean: float = 0.0, seed: int = 0
    ) -> None:
        super().__init__(kernel, noise, mean)
        self._size = validation.count("size", size, 1)
        self._seed = validation.seed(seed)
        self._theta = np.empty(0)
        self._tuned: Tuned | None = None

    mean = Argument[float]("The constant prior mean.")
    seed = Argument[int]("The seed of the first pseudo-inputs.")

    @property
    def _current_noise(self) -> float:
        """The noise variance that predictions use; `noise` is where `fit` starts."""
        return self._noise if self._tuned is None else self._tuned.noise

    @property
    def tuned(self) -> Tuned | None:
        """The kernel and the noise that predictions use, None before `fit`.

        Its `log_likelihood` is the objective reached. Without a search, `evaluations` is 1 and
        `converged` False.
        """
        return self._tuned

    @property
    def indices(self) -> Indices:
        """-1 for each pseudo-input: none of them is a sample, so none has a position."""
        return np.full(self.size, -1, dtype=np.int64)

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        inputs: ArrayLike | None = None,
        optimise: bool = True,
        max_iterations: int = 150,
        progress: Progress | None = None,
    ) -> Self:
        """Fit all samples at once, in place of what was fitted before; return the model itself.

        Parameters
        ----------
        X, y
            The samples, (n, p) and (n,).
        inputs
            Where the pseudo-inputs start, (size, p). If left out, at the centres of k-means, and
            at all of X if there are no more samples than `size`.
        optimise
            Whether to move the pseudo-inputs, the kernel's parameters and the noise, by L-BFGS
            from where they start, to where the objective is highest. A parameter stays within a
            factor of 1e5 of its start, and the noise above 1e-6 of the mean of κ(x, x). If False,
            all stay as they are.
        max_iterations
            When to end a search that has not ended by itself.
        progress
            Called after each iteration with its number, from 1, and the objective; raising
            StopIteration ends the search there.
        """
        iterations = validation.count("max_iterations", max_iterations, 1)
        with self._learn_lock:
            X, y = validation.some_samples(X, y, self._dimension)
            if inputs is None:
                Z = first_inputs(X, self._size, self._seed)
            else:
                Z = self._checked(inputs, X.shape[1])
            approximation, residual = self._approximation, y - self._mean
            at = Placement(Z, self._kernel, self._noise, theta=np.empty(0))
            try:
                if optimise:
                    at = search(approximation, at, X, residual, iterations, progress)
                reached = evidence(approximation, at.kernel, at.noise, at.inputs, X, residual)
            except LinAlgError as error:
                raise ValueError(
                    f"{self._kernel!r} must be positive definite at the pseudo-inputs: {error}"
                ) from None
            factors = (reached.factor, reached.inner, reached.weights)
            posterior = InducingPosterior(at.kernel, self._mean, at.inputs, *factors)
            tuned = Tuned(at.kernel, at.noise, reached.value, at.evaluations, at.converged)
            with self._state_lock, Uninterrupted():
                self._take_over(posterior, tuned, at.theta)
                self._seen = len(y)
        return self

    def state(self) -> dict[str, Any]:
        """Return everything that was fitted, as a flat mapping to arrays and numbers."""
        with self._state_lock:
            if self._posterior is None or self._tuned is None:
                return {"seen": self._seen}
            return {
                "seen": self._seen,
                # Not the kernel's own theta: the logarithm of an exponential may differ in a bit.
                "theta": self._theta.copy(),
                "noise": self._tuned.noise,
                "log_likelihood": self._tuned.log_likelihood,
                "evaluations": self._tuned.evaluations,
                "converged": int(self._tuned.converged),
                **self._posterior.state(),
            }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
        seen = validation.count("seen", state["seen"], 0)
        if "theta" in state:
            theta = np.array(state["theta"])
            kernel = self._kernel.with_theta(theta) if theta.size else self._kernel
            arrays = {name: state[name] for name in InducingPosterior.ARRAYS}
            tuned = Tuned(
                kernel,
                validation.positive("noise", state["noise"]),
                validation.finite("log_likelihood", state["log_likelihood"]),
                validation.count("evaluations", state["evaluations"], 1),
                bool(validation.count("converged", state["converged"], 0)),
            )
            self._take_over(InducingPosterior(kernel, self._mean, **arrays), tuned, theta)
        self._seen = seen

    def _take_over(self, posterior: InducingPosterior, tuned: Tuned, theta: Array) -> None:
        self._posterior = posterior
        self._tuned = tuned
        self._theta = theta
        self._dimension = posterior.inputs.shape[1]

    def _checked(self, inputs: ArrayLike, dimension: int) -> Array:
        if np.shape(inputs) != (self._size, dimension):
            raise ValueError(
                f"inputs must have the shape {(self._size, dimension)}, got {np.shape(inputs)}"
            )
        try:
            return validation.queries(inputs, dimension)[0]
        except ValueError as error:
            raise ValueError(f"inputs are not points: {error}") from None


class SPGP(PseudoInputModel):
    """Pseudo-inputs and hyperparameters by the likelihood of a model that they define: FITC.

    The prior variance that the pseudo-inputs do not explain counts as noise, more of it where they
    are far: the model can learn input-dependent noise, and may use that to explain too much.

    Parameters
    ----------
    kernel
        The covariance function to start from; `fit` leaves it as it is.
    noise
        The noise variance to start from.
    size
        How many pseudo-inputs; all samples are pseudo-inputs if there are no more than that.
    mean
        The constant prior mean.
    seed
        The seed of the k-means that places the first pseudo-inputs.

    >>> import numpy as np, pogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (300, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * np.random.default_rng(1).normal(size=300)
    >>> model = SPGP(pogp.RBF(), noise=0.1, size=10).fit(X, y)
    >>> model.size, model.seen
    (10, 300)
    >>> mean, variance = model.predict([1.0])
    >>> abs(mean - np.sin(2.0)) < 0.05
    np.True_
    """

    _approximation = FITC()


class VFE(PseudoInputModel):
    """Pseudo-inputs and hyperparameters by a lower bound on the likelihood of the exact GP.

    More pseudo-inputs come ever closer to the exact GP; too few of them show as noise. The
    parameters are those of `SPGP`.

    >>> import numpy as np, pogp
    >>> from pogp.tuning import log_marginal_likelihood
    >>> X = np.random.default_rng(0).uniform(-3, 3, (300, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * np.random.default_rng(1).normal(size=300)
    >>> tuned = VFE(pogp.RBF(), noise=0.1, size=15).fit(X, y).tuned
    >>> round(tuned.noise, 2)
    0.01
    >>> gap = log_marginal_likelihood(tuned.kernel, tuned.noise, X, y) - tuned.log_likelihood
    >>> 0 < gap < 0.1
    True
    """

    _approximation = Variational()
