"""A sparse GP for streams: the posterior at a few pseudo-inputs stands for all samples so far.

Bui, Nguyen & Turner, *Streaming Sparse Gaussian Process Approximations* (2017), the collapsed
variational form for regression. The mathematics of a mini-batch is in `posteriors.streaming`; here
is which pseudo-inputs it gets, and which hyperparameters.
"""

from __future__ import annotations

from math import exp, log
from typing import Any, NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular

from pogp import validation
from pogp.arrays import Array, Indices
from pogp.distances import hellinger
from pogp.interrupts import Uninterrupted
from pogp.kernels import Kernel, evaluate, prior_variance
from pogp.models.base import Argument, Model
from pogp.posteriors.inducing import NUGGET, InducingPosterior
from pogp.posteriors.streaming import MiniBatch, Summary
from pogp.trace import Trace, blank
from pogp.tuning import Tuned

_REACH = log(1e5)
"""How far the logarithm of a parameter may go from where the model started."""
_FLOOR = 1e-6
"""A search keeps the noise above this share of the mean of κ(x, x)."""
_ENOUGH = 20
"""The fewest samples for a search: a single one, say, can be explained without noise."""
_ITERATIONS = 50
"""The most iterations of a search; the next mini-batch continues from there."""


class _Setting(NamedTuple):
    """Hyperparameters, and how they were found."""

    kernel: Kernel
    noise: float
    theta: Array | None = None
    """What the kernel was made of by `with_theta`, None for the one that was given."""
    evaluations: int = 1
    converged: bool = False


class _Learned(NamedTuple):
    """What is known after a mini-batch."""

    setting: _Setting
    posterior: InducingPosterior
    summary: Summary
    arrivals: Indices
    bound: float


class StreamingVFE(Model):
    """VFE for streams: samples come in mini-batches, and are gone once they were learned.

    A mini-batch moves the posterior from the old pseudo-inputs to new ones, by the bound that VFE
    maximises, with the old posterior in the place of the old samples. The pseudo-inputs are
    samples. As long as there is room all old ones stay. From then on a mini-batch gets, at random,
    the share of pseudo-inputs that it has in all samples so far, and random old ones give way.
    Of its samples those become pseudo-inputs that the others explain least. (In the paper they are
    random too, and then moved by gradient; here they stay where they are.)

    With hyperparameters and pseudo-inputs fixed, the order and the size of the mini-batches do not
    matter: the posterior is that of VFE on all samples at once.

    In the trace, each prediction is made before the sample's own mini-batch is learned. `change`,
    and `novelty` which here is the same, is the Hellinger distance between the marginals of y at x
    before and after that mini-batch. `spent` is zero: the method bounds no such distance. A sample
    that became a pseudo-input, but in the place of another, counts as one removed; so does one
    that did not become one.

    Parameters
    ----------
    kernel
        The covariance function to start from.
    noise
        The noise variance to start from.
    size
        How many pseudo-inputs there may be. A smaller one takes effect with the next mini-batch.
    mean
        The constant prior mean.
    batch
        The samples of a mini-batch at most. What `learn` is given is at least one mini-batch.
    reoptimise
        Whether to move the kernel's parameters and the noise, with every mini-batch, to where the
        bound is highest, by L-BFGS from where they are. Old samples are not learned again, so an
        error of one mini-batch is not corrected later. With fewer than 20 samples nothing changes.
        A parameter stays within a factor of 1e5 of its start.
    inputs
        Pseudo-inputs, (size, p), to be used from the first sample on and never changed.
    seed
        Of the choice of pseudo-inputs.

    >>> import numpy as np, pogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (300, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * np.random.default_rng(1).normal(size=300)
    >>> model = StreamingVFE(pogp.RBF(), noise=0.01, size=20, batch=50)
    >>> trace = model.learn(X, y)
    >>> model.size, model.seen
    (20, 300)
    >>> mean, variance = model.predict([1.0])
    >>> abs(mean - np.sin(2.0)) < 0.05
    np.True_
    """

    changeable = ("size", "batch", "reoptimise")
    sequential = False  # the samples of a mini-batch compete for the places of pseudo-inputs

    def __init__(
        self,
        kernel: object,
        noise: float,
        size: int,
        *,
        mean: float = 0.0,
        batch: int = 100,
        reoptimise: bool = False,
        inputs: ArrayLike | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(kernel, noise, mean)
        self._start = _Setting(self._kernel, self._noise)
        self._size = validation.count("size", size, 1)
        self._batch = validation.count("batch", batch, 1)
        if not isinstance(reoptimise, bool):
            raise ValueError(f"reoptimise must be True or False, got {reoptimise!r}")
        self._reoptimise = reoptimise
        self._seed = validation.seed(seed)
        self._fixed = None if inputs is None else self._checked(inputs)
        self._inputs = None if self._fixed is None else self._fixed.tolist()
        self._learned: _Learned | None = None

    mean = Argument[float]("The constant prior mean.")

    @property
    def _current_noise(self) -> float:
        """The noise variance that predictions use; `noise` is where the model started."""
        return self._noise if self._learned is None else self._learned.setting.noise

    @property
    def tuned(self) -> Tuned | None:
        """The kernel and the noise that predictions use, None before anything was learned.

        Its `log_likelihood` is the sum of the online bounds of all mini-batches: with
        hyperparameters and pseudo-inputs fixed, VFE's bound for all samples. `evaluations` and
        `converged` are of the last search; without one, they are 1 and False.
        """
        if self._learned is None:
            return None
        kernel, noise, _, evaluations, converged = self._learned.setting
        return Tuned(kernel, noise, self._learned.bound, evaluations, converged)

    @property
    def indices(self) -> Indices:
        """The position in the stream of each pseudo-input; -1 for one that was given."""
        return (
            np.empty(0, dtype=np.int64) if self._learned is None else self._learned.arrivals.copy()
        )

    @property
    def nbytes(self) -> int:
        """Bytes held by what was learned."""
        if self._learned is None:
            return 0
        setting, posterior, summary, arrivals, _ = self._learned
        arrays = [summary.operator, summary.outcomes, arrivals]
        arrays += [] if setting.theta is None else [setting.theta]
        return posterior.nbytes + sum(array.nbytes for array in arrays)

    def learn(self, X: ArrayLike, y: ArrayLike) -> Trace:
        """Learn samples X (n, p), y (n,), or one sample (p,) and a number, by mini-batches.

        They are learned whole or, where anything in them is wrong, not at all.
        """
        with self._learn_lock:
            X, y = validation.samples(X, y, self._dimension)
            state, records = self._learned, blank(len(y))
            for start in range(0, len(y), self._batch):
                rows, before, first = slice(start, start + self._batch), state, self._seen + start
                try:
                    state = self._step(before, first, X[rows], y[rows])
                except LinAlgError:
                    raise ValueError(
                        f"κ(Z, Z) must be positive definite, got {self._kernel!r}"
                    ) from None
                records[rows] = self._records(before, state, first, X[rows])
            with self._state_lock, Uninterrupted():
                if state is not None:
                    self._adopt(state)
                self._seen += len(y)
            return Trace(records)

    def state(self) -> dict[str, Any]:
        """Return everything that was learned, as a flat mapping to arrays and numbers."""
        with self._state_lock:
            seen, state = self._seen, self._learned
        if state is None:
            return {"seen": seen}
        setting, posterior, summary, arrivals, bound = state
        return {
            "seen": seen,
            **posterior.state(),
            "operator": summary.operator.copy(),
            "outcomes": summary.outcomes.copy(),
            "scale": summary.scale,
            "arrivals": arrivals.copy(),
            "bound": bound,
            "noise": setting.noise,
            "evaluations": setting.evaluations,
            "converged": setting.converged,
            **({} if setting.theta is None else {"theta": setting.theta.copy()}),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
        if "inputs" in state:
            self._adopt(_restored(self._kernel, self._mean, state))
        self._seen = validation.count("seen", state["seen"], 0)

    def _adopt(self, state: _Learned) -> None:
        self._learned = state
        self._posterior = state.posterior
        self._dimension = state.posterior.inputs.shape[1]

    def _step(self, before: _Learned | None, first: int, X: Array, y: Array) -> _Learned:
        """Return what is known after a mini-batch, which begins at `first`.

        Pseudo-inputs are chosen first, then hyperparameters; LinAlgError if that fails.
        """
        old = Summary.nothing(X.shape[1]) if before is None else before.summary
        setting = self._start if before is None else before.setting
        if self._fixed is None:
            kept, joining = self._choose(setting.kernel, old.inputs, X, first)
            inputs = np.vstack([old.inputs[kept], X[joining]])
            past = kept if before is None else before.arrivals[kept]
            arrivals = np.concatenate([past, first + joining])
        else:
            kept, inputs = np.arange(len(old.inputs)), self._fixed
            arrivals = np.full(self._size, -1)
        mini_batch = MiniBatch(old, X, y - self._mean, inputs, kept)
        if self._reoptimise and len(X) >= _ENOUGH:
            setting = _Search(mini_batch, X, self._start).run(setting)
        bound, evidence, summary = mini_batch.learn(setting.kernel, setting.noise)
        factors = (evidence.factor, evidence.inner, evidence.weights)
        posterior = InducingPosterior(setting.kernel, self._mean, inputs, *factors)
        return _Learned(setting, posterior, summary, arrivals, bound)

    def _choose(self, kernel: Kernel, Z: Array, X: Array, seen: int) -> tuple[Indices, Indices]:
        """Return which of the pseudo-inputs Z stay and which samples join them, in order.

        What is drawn depends on the seed and the place in the stream alone, so that a copy and a
        reloaded model draw alike without any state.
        """
        rng = np.random.default_rng((self._seed, seen))
        room = self._size - len(Z)
        share = rng.binomial(self._size, len(X) / (seen + len(X)))
        joining = min(len(X), room if room > 0 else int(share))
        staying = min(len(Z), self._size - joining)
        kept = np.sort(rng.permutation(len(Z))[:staying])
        return kept, _least_explained(kernel, Z[kept], X, joining)

    def _records(self, before: _Learned | None, after: _Learned, first: int, X: Array) -> Array:
        """Return the rows of the trace, see `trace.FIELDS`."""
        held = 0 if before is None else before.posterior.size
        joined = np.isin(np.arange(first, first + len(X)), after.arrivals)
        grows = joined & (np.cumsum(joined) <= self._size - held)
        sizes = after.posterior.size - np.sum(grows) + np.cumsum(grows)
        mean, variance = self._marginals(before, X)
        change = hellinger(mean, variance, *self._marginals(after, X))
        zero = np.zeros(len(X))
        return np.column_stack([mean, variance, sizes, ~grows, zero, change, change, zero])

    def _marginals(self, state: _Learned | None, X: Array) -> tuple[Array, Array]:
        """Return the mean and the variance of y at each row of X."""
        if state is None:
            return np.full(len(X), self._mean), prior_variance(self._kernel, X) + self._start.noise
        mean, variance = state.posterior.predict(X)
        return mean, variance + state.setting.noise

    def _checked(self, inputs: ArrayLike) -> Array:
        points, _ = validation.queries(inputs, self._dimension)
        if len(points) != self._size:
            shape = (self._size, points.shape[1])
            raise ValueError(f"inputs must have the shape {shape}, got {points.shape}")
        self._dimension = points.shape[1]
        return points.copy()


class _Search:
    """L-BFGS up the online bound, in theta and log(noise − floor), by its gradient.

    The floor is a share of κ(x, x) and so moves with theta: every noise above it is in reach, and
    none below.
    """

    def __init__(self, mini_batch: MiniBatch, X: Array, start: _Setting) -> None:
        self._mini_batch = mini_batch
        self._X = X
        self._kernel = start.kernel
        centre = np.append(start.kernel.theta, log(start.noise))
        self._lower, self._upper = centre - _REACH, centre + _REACH
        self._worst = -np.inf

    def run(self, setting: _Setting) -> _Setting:
        """Return the setting of the highest bound found from this one."""
        from scipy.optimize import Bounds, minimize  # slow to import

        excess = max(setting.noise - self._floor(setting.kernel), exp(self._lower[-1]))
        start = np.append(setting.kernel.theta, log(excess))
        try:
            result = minimize(
                self._objective,
                np.clip(start, self._lower, self._upper),
                jac=True,
                method="L-BFGS-B",
                bounds=Bounds(self._lower, self._upper),
                options={"maxiter": _ITERATIONS},
            )
        except NotImplementedError as missing:
            raise ValueError(
                f"reoptimise takes the derivatives of the kernel, but {missing}; "
                f"got {self._kernel!r}"
            ) from None
        kernel, noise = self._at(result.x)
        return _Setting(kernel, noise, result.x[:-1].copy(), int(result.nfev), bool(result.success))

    def _objective(self, parameters: Array) -> tuple[float, Array]:
        """Return −bound and its gradient."""
        kernel, noise = self._at(parameters)
        try:
            bound, in_theta, in_noise = self._mini_batch.bound_and_gradient(kernel, noise)
        except LinAlgError:
            if self._worst == -np.inf:
                raise
            # Worse than all before, yet near enough for the line search to interpolate.
            return 2.0 * abs(self._worst) + 1.0, np.zeros_like(parameters)
        self._worst = max(self._worst, -bound)
        shares = np.full(len(self._X), _FLOOR / len(self._X))
        in_theta = in_theta + in_noise * kernel.diag_pullback(self._X, shares)
        return -bound, -np.append(in_theta, in_noise * exp(parameters[-1]))

    def _at(self, parameters: Array) -> tuple[Kernel, float]:
        kernel = self._kernel.with_theta(parameters[:-1])
        return kernel, exp(parameters[-1]) + self._floor(kernel)

    def _floor(self, kernel: Kernel) -> float:
        return _FLOOR * float(np.mean(prior_variance(kernel, self._X)))


def _least_explained(kernel: Kernel, Z: Array, X: Array, count: int) -> Indices:
    """Return `count` rows of X, in order: each the one of most variance given Z and those before.

    This is Cholesky's factorisation with pivots, of which the columns before are those of Z.
    """
    if count in (0, len(X)):
        return np.arange(count)
    left = np.array(prior_variance(kernel, X))
    nugget = NUGGET * float(np.mean(left))
    V, m = np.empty((len(Z) + count, len(X))), len(Z)
    if m:
        factor = np.linalg.cholesky(evaluate(kernel, Z, Z) + nugget * np.eye(m))
        V[:m] = solve_triangular(factor, evaluate(kernel, Z, X), lower=True, check_finite=False)
        left -= np.einsum("ij,ij->j", V[:m], V[:m])
    chosen: list[int] = []
    for row in range(m, m + count):
        j = int(np.argmax(left))
        chosen.append(j)
        covariances = evaluate(kernel, X[j : j + 1], X)[0] - V[:row, j] @ V[:row]
        V[row] = covariances / np.sqrt(max(left[j], 0.0) + nugget)
        left -= V[row] ** 2
        left[j] = -np.inf
    return np.sort(np.array(chosen))


def _restored(kernel: Kernel, mean: float, state: dict[str, Any]) -> _Learned:
    """Return what a state says was learned."""
    theta = state.get("theta")
    if theta is not None:
        # Not the parameters but theta, since to take the logarithm and back is not exact.
        theta = np.array(theta)
        kernel = kernel.with_theta(theta)
    arrays = {name: state[name] for name in InducingPosterior.ARRAYS}
    posterior = InducingPosterior(kernel, mean, **arrays)
    operator, outcomes = np.array(state["operator"]), np.array(state["outcomes"])
    arrivals = np.array(state["arrivals"])
    shapes, size, rank = (operator.shape, arrivals.shape), posterior.size, len(outcomes)
    if shapes != ((rank, size), (size,)):
        raise ValueError(f"operator and arrivals must fit {size} inputs, got the shapes {shapes}")
    noise = validation.positive("noise", state["noise"])
    evaluations = validation.count("evaluations", state["evaluations"], 0)
    scale, bound = (validation.finite(name, state[name]) for name in ("scale", "bound"))
    return _Learned(
        _Setting(kernel, noise, theta, evaluations, bool(state["converged"])),
        posterior,
        Summary(posterior.inputs, operator, outcomes, scale),
        arrivals,
        bound,
    )
