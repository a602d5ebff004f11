"""`OnlineGP`: a model that estimates its hyperparameters and revises them along the stream."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from pogp import validation
from pogp.arrays import Array, Indices
from pogp.interrupts import Uninterrupted
from pogp.kernels import RBF, Kernel
from pogp.models.base import Argument, Model
from pogp.online.gradients import gradient
from pogp.online.group import Group
from pogp.online.merging import merge
from pogp.online.prediction import Prediction
from pogp.online.scales import LEAST_TARGET
from pogp.online.states import restore, state_of
from pogp.online.stream import Stream
from pogp.trace import Trace, blank

BLOCK = 4096
"""Rows predicted at once."""
PRIOR, NOISE = RBF(1.0, 0.5), 0.5
"""The prior before the first sample: targets have a variance of one, half of it noise."""


class Event(NamedTuple):
    """A decision: its position in the stream, what was decided, and why."""

    position: int
    what: str
    why: str


class OnlineGP(Model):
    """Gaussian process regression on raw streams, without tuning.

    The model estimates scales, kernel family, hyperparameters, noise and forgetting, and revises
    them along the stream. A prediction is a mixture. Its members are weighted by how well they
    predicted the latest samples before learning them: beliefs with several speeds of forgetting on
    a dictionary of at most `max_size` points, new hyperparameters next to old ones, and simple
    predictors (the running mean, the last target, linear models). `history` lists the decisions.

    `predict` is for the next sample of the stream. After `settle` and `fit` it is for future rows
    and for rows of the past, as far as their inputs distinguish the two. The variance is calibrated
    on the stream, overall and by its size; the bands of `interval` have the tails of the residuals.

    Parameters
    ----------
    max_size
        The most points that a dictionary keeps. Time per sample grows with its square.
    robust
        Whether the influence of outliers is bounded. The model adapts to a lasting change of level.
    seed
        The seed of the draw of samples that are kept for tuning.

    >>> import numpy as np, pogp
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 60, (400, 1))
    >>> y = 1000 + 50 * np.sin(X[:, 0] / 10) + rng.normal(size=400)
    >>> model = pogp.OnlineGP()
    >>> trace = model.learn(X, y)
    >>> mean, variance = model.predict([20.0])
    >>> bool(abs(mean - 1000 - 50 * np.sin(2.0)) < 2), bool(0.5 < variance < 2)
    (True, True)
    """

    def __init__(self, *, max_size: int = 300, robust: bool = True, seed: int = 0) -> None:
        super().__init__(PRIOR, NOISE)
        self._max_size = validation.count("max_size", max_size, 1)
        if not isinstance(robust, bool | np.bool_):
            raise ValueError(f"robust must be True or False, got {robust!r}")
        self._robust = bool(robust)
        self._seed = validation.seed(seed)
        self._target: tuple[int, ...] | None = None
        self._stream: Stream | None = None  # made with the first sample
        import_module("scipy.optimize")  # not in the middle of a stream

    # ---- properties ---------------------------------------------------------------------------

    multi_output = True
    changeable = ("max_size", "robust")
    method = "online"
    warming_up = False
    """It predicts from the first sample on."""

    max_size = Argument[int]("The most points that a dictionary keeps.")
    robust = Argument[bool]("Whether the influence of outliers is bounded.")

    @property
    def _leading(self) -> Group | None:
        return None if self._stream is None else self._stream.leading

    @property
    def kernel(self) -> Kernel:
        """The kernel of the leading group, for inputs and targets in units of their deviations."""
        group = self._leading
        return PRIOR if group is None else group.hyperparameters.kernel

    @property
    def noise(self) -> float:
        """The present variance of the noise, in the user's units, averaged over the outputs."""
        return NOISE if self._stream is None else self._stream.ensemble.noise

    @property
    def size(self) -> int:
        """The number of points of the leading group."""
        group = self._leading
        return 0 if group is None else group.size

    @property
    def dictionary(self) -> Array:
        """The points (M, p) of the leading group as raw inputs, up to rounding, by arrival."""
        with self._state_lock:
            group = self._leading
            if group is None:
                return np.empty((0, self._dimension or 0))
            order = np.argsort(group.core.arrivals)
            return group.scales.user_inputs(group.core.inputs[order])

    @property
    def indices(self) -> Indices:
        """The position in the stream, from 0, of each point, in order of arrival."""
        with self._state_lock:
            group = self._leading
            return np.empty(0, dtype=np.int64) if group is None else np.sort(group.core.arrivals)

    @property
    def nbytes(self) -> int:
        """Bytes held by the state."""
        return 0 if self._stream is None else self._stream.nbytes

    @property
    def resting(self) -> bool:
        """Whether rows to predict do not follow the last sample: after `settle` and `fit`."""
        return self._stream is not None and self._stream.resting

    def is_stuck(self, y: ArrayLike) -> bool:
        """Return whether the next targets y repeat those of a sensor that was found stuck."""
        with self._state_lock:
            ensemble = None if self._stream is None else self._stream.ensemble
            return ensemble is not None and ensemble.stuck and ensemble.repeats(np.atleast_1d(y))

    @property
    def history(self) -> list[Event]:
        """The latest decisions: position in the stream, what, and why."""
        return [] if self._stream is None else [Event(*event) for event in self._stream.history]

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each member in the next prediction, averaged over the outputs.

        At rest it is the weight in the prediction of a future row.
        """
        if self._stream is None:
            return {}
        with self._state_lock:
            return self._stream.ensemble.weights()

    @property
    def relevance(self) -> Array:
        """The relevance of each input: one over its length-scale, in units of deviations."""
        group = self._leading
        relevance = np.zeros(self._dimension or 0)
        if group is not None:
            relevance[group.hyperparameters.prior.columns] = 1.0 / group.lengthscales
        return relevance

    @property
    def lengthscales(self) -> Array:
        """The present length-scale of each input, in its own units; ∞ for a constant input."""
        group = self._leading
        scales = np.full(self._dimension or 0, np.inf)
        if group is not None:
            columns = group.hyperparameters.prior.columns
            scales[columns] = group.lengthscales * group.scales.deviation[columns]
        return scales

    # ---- learning ------------------------------------------------------------------------------

    def learn(
        self,
        X: ArrayLike,
        y: ArrayLike,
        weight: ArrayLike | None = None,
        *,
        around: Sequence[Array | None] | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> Trace:
        """Learn a batch X (n, p), y (n,) or (n, k), or one sample (p,) and its target, in order.

        `weight`, a number or one for each sample, is the precision of samples: the noise variance
        of a sample is that of the stream divided by its weight. An ordinary sample has weight 1,
        and `predict` is for such samples. Weights are used for beliefs, scores, bands and tuning.
        The variance in the trace includes the sample's own noise.

        `around` has, for each sample whose inputs are uncertain, an array of points (m, p) where
        they may be with equal chances, and None for the others. The variance of the predictions at
        these points, just before the sample is learned, is added to its noise.

        `progress` is called after each sample with the number of samples learned and that of the
        batch. The logger "pogp.online.stream" reports each decision.

        The batch is learned completely or, if it is invalid or interrupted, not at all.
        """
        with self._learn_lock:
            X, Y, target = validation.vector_samples(X, y, self._dimension, self._target)
            weights = validation.weights(weight, len(Y))
            if len(Y) == 0:
                return Trace(blank(0, Y.shape[1]), flat=target == ())
            if len(Y) > 1 and 0 < (largest := float(np.abs(Y).max())) < LEAST_TARGET:
                warnings.warn(
                    f"no target is above {largest:g} in size: targets that vary by less than "
                    f"{LEAST_TARGET:g} are taken to be constant; multiply them by a constant",
                    stacklevel=2,
                )
            around = validation.neighbourhoods(around, X)
            stream = self._stream or self._begin(X.shape[1], Y.shape[1])
            before = state_of(stream) if len(Y) > 1 else None
            records = blank(len(Y), Y.shape[1])
            with Uninterrupted() as signals:
                try:
                    for i, (x, target_, points) in enumerate(zip(X, Y, around, strict=True)):
                        if signals.wanted and before is not None:
                            raise KeyboardInterrupt
                        with self._state_lock:
                            stream.learn(x, target_, points, weights[i], records[i])
                        if progress is not None:
                            progress(i + 1, len(Y))
                except BaseException:
                    if self._stream is not None and before is not None:
                        self._stream = self._stream_of(X.shape[1], Y.shape[1], before)
                    elif self._stream is not None:  # a single sample may have been learned
                        self._seen = stream.seen
                    raise
                self._stream, self._dimension, self._target = stream, X.shape[1], target
                self._seen = stream.seen
            return Trace(records, flat=target == ())

    def settle(self) -> None:
        """Finish a tuning in progress, and predict rows that do not follow the last sample.

        Until the next sample is learned, predictions do not use the last residual, because the rows
        may be those of another table. The first prediction takes as long as a tuning: the kept
        samples are learned again in random order, for rows of the past. If the stream
        continues, a tuning that was in progress is already done.
        """
        if self._stream is not None:
            with self._learn_lock, self._state_lock, Uninterrupted():
                self._stream.settle()

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        weight: ArrayLike | None = None,
        *,
        progress: Callable[[int, int], object] | None = None,
    ) -> Self:
        """Learn all samples, in order, in place of what was learned before; return the model."""
        fresh = type(self)(**self.arguments())
        fresh.learn(X, y, weight, progress=progress)
        fresh.settle()
        self._replace_by(fresh)
        return self

    def _begin(self, dimension: int, outputs: int) -> Stream:
        return Stream(dimension, outputs, self._max_size, self._robust, self._seed)

    def _stream_of(self, dimension: int, outputs: int, state: dict[str, Any]) -> Stream:
        stream = self._begin(dimension, outputs)
        restore(stream, state)
        return stream

    def change(self, **arguments: Any) -> Self:
        """Give a running model another `max_size` or `robust`, and keep what it learned.

        Points above a smaller cap are removed. A larger cap is filled by later samples. The change
        is recorded in `history`.
        """
        with self._learn_lock:
            super().change(**arguments)
            if self._stream is not None and arguments:
                chosen = (f"{name}={value!r}" for name, value in arguments.items())
                self._stream.note("changed by the user", ", ".join(chosen))
        return self

    def merge(self, *others: OnlineGP) -> Self:
        """Add what other models have learned from other data; return this model.

        Positions in the stream are as if the samples of the other models came after those of this
        one. The points of the leading groups are joined under the kernel of the model that has
        seen the most samples. Points above the cap are removed, and tuning starts again with the
        next sample. This costs accuracy, as with `AbsorbingPOG`: for one table in many parts use
        `pogp.sums`.

        >>> import numpy as np, pogp
        >>> X = np.random.default_rng(0).uniform(-3, 3, (600, 1))
        >>> left, right = pogp.OnlineGP(), pogp.OnlineGP()
        >>> for model, half in ((left, X[X[:, 0] < 0]), (right, X[X[:, 0] >= 0])):
        ...     trace = model.learn(half, np.sin(half[:, 0]))
        >>> mean, _ = left.merge(right).predict([[-1.5], [1.5]])
        >>> bool(np.abs(mean - np.sin([-1.5, 1.5])).max() < 0.05), left.seen
        (True, 600)
        """
        for place, other in enumerate(others):
            if not isinstance(other, OnlineGP):
                raise ValueError(
                    f"an OnlineGP can be merged with others of its kind, got {other!r}"
                )
            if other is self or any(other is earlier for earlier in others[:place]):
                raise ValueError(
                    "a model can be merged once, and not with itself: what it learned would count "
                    f"twice; got {other!r} again"
                )
        learned = [other for other in others if other.seen]
        models: list[OnlineGP] = [self, *learned]
        shapes = {(model._dimension, model._target) for model in models if model.seen}
        if len(shapes) > 1:
            raise ValueError(f"models must have the same inputs and outputs, got {shapes}")
        if not learned:
            return self
        with self._learn_lock:
            merged = self.copy()  # an error or an interrupt leaves this model unchanged
            copies = [other.copy() for other in learned]
            if not merged.seen:
                merged.restore(copies.pop(0).state())
            streams = [other._stream for other in copies if other._stream is not None]
            if merged._stream is not None and streams:
                merge(merged._stream, streams)
                merged._seen = merged._stream.seen
            self._replace_by(merged)
        return self

    def _prune_to_cap(self) -> None:
        if self._stream is not None:
            self._stream.prune_to_cap()

    # ---- predicting ---------------------------------------------------------------------

    def predict(
        self,
        X: ArrayLike,
        latent: bool = False,
        *,
        around: Sequence[Array | None] | None = None,
        anywhere: bool = False,
    ) -> tuple[Array, Array]:
        """Return the mean and the variance of y at each row of X; two numbers for a single (p,).

        They are for the next sample of the stream, and use the last targets where these help. With
        `anywhere=True` they do not: the rows may be states that a controller considers. After
        `settle` and `fit` they are for any later sample, and for rows of the past where the inputs
        say that they are. With `latent=True` the variance is of the function, without the noise.
        `around` has the points where rows with uncertain inputs may be, as in `learn`.
        """
        points, single = validation.queries(X, self._dimension)
        found = self._predicted(points, validation.neighbourhoods(around, points), anywhere)
        variance = found.latent if latent else found.variance
        shape = (len(points), *(self._target or ()))
        mean, variance = found.mean.reshape(shape), variance.reshape(shape)
        return (mean[0], variance[0]) if single else (mean, variance)

    def interval(
        self,
        X: ArrayLike,
        level: float = 0.95,
        *,
        around: Sequence[Array | None] | None = None,
        anywhere: bool = False,
    ) -> tuple[Array, Array]:
        """Return the lower and the upper end of the band that contains y with probability `level`.

        The band has the tails of the residuals of the stream. For `around` and `anywhere` see
        `predict`.
        """
        with self._state_lock:
            reach = self.reach(level)
            mean, variance = self.predict(X, around=around, anywhere=anywhere)
        width = np.sqrt(variance) * reach
        return mean - width, mean + width

    def reach(self, level: float = 0.95) -> float | Array:
        """Return the half-width of the band of a level in deviations: a number, or (k,).

        Each output has its own tails.
        """
        if self._stream is None:
            return super().reach(level)
        reach = self._stream.ensemble.band.reach(validation.probability("level", level))
        return reach if self._target else float(reach[0])

    def gradient(self, X: ArrayLike, *, anywhere: bool = False) -> tuple[Array, Array]:
        """Return the derivatives of `predict(X, latent=True, anywhere=anywhere)` by the inputs.

        Arrays (n, p) or (n, p, k) each, without n for a single (p,). Without `anywhere` they are
        those of the prediction of the next sample. Where the last targets alone predict it, they
        are zero.
        """
        with self._state_lock, self._mode(anywhere):
            return super().gradient(X)

    def _mode(self, anywhere: bool) -> AbstractContextManager[None]:
        return self._stream.anywhere() if anywhere and self._stream is not None else nullcontext()

    def _predicted(
        self, X: Array, around: Sequence[Array | None] = (), anywhere: bool = False
    ) -> Prediction:
        if self._stream is None:
            outputs = (self._target or (1,))[0]
            ones = np.ones((len(X), outputs))
            return Prediction(0.0 * ones, ones, (1.0 - NOISE) * ones)
        parts = []
        for start in range(0, max(len(X), 1), BLOCK):
            rows = slice(start, start + BLOCK)
            uncertain = any(points is not None for points in around[rows])
            with self._state_lock, self._mode(anywhere):
                parts.append(self._stream.predict(X[rows], around[rows] if uncertain else ()))
        return Prediction(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _latent_gradient(self, X: Array) -> tuple[Array, Array]:
        if self._stream is None:
            zeros = np.zeros((*X.shape, *(self._target or ())))
            return zeros, zeros.copy()
        mean, variance = gradient(self._stream, X)
        return (mean, variance) if self._target else (mean[:, :, 0], variance[:, :, 0])

    def covariance(self, X: ArrayLike, latent: bool = False) -> Array:
        """Return the covariance of y (or, latent, of f) between rows: (n, n) or (n, n, k).

        The correlations are those of the leading belief.
        """
        points, _ = validation.queries(X, self._dimension)
        found = self._predicted(points)
        with self._state_lock:
            if self._stream is None:
                correlation = PRIOR(points) / (1.0 - NOISE)
            else:
                correlation = self._stream.ensemble.correlation(points)
        deviation = np.sqrt(found.latent)
        covariance = correlation[:, :, None] * deviation[:, None] * deviation[None, :]
        diagonal = found.latent if latent else found.variance
        covariance[np.arange(len(points)), np.arange(len(points))] = diagonal
        return covariance if self._target else covariance[:, :, 0]

    def _trial(self, X: Array) -> tuple[Array, Array]:
        """Return the prediction of the mixture, without the past model, which takes time."""
        return super()._trial(X) if self._stream is None else self._stream.ensemble.predict(X)[:2]

    def _latent(self, X: Array) -> tuple[Array, Array]:
        return self.predict(X, latent=True)

    def _latent_covariance(self, X: Array) -> Array:
        return self.covariance(X, latent=True)

    # ---- state ---------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return everything that was learned, as a flat mapping to arrays and numbers."""
        if self._stream is None:
            return {"seen": 0}
        shape = {"dimension": self._dimension, "target": list(self._target or ())}
        return {"seen": self._seen, **shape, **state_of(self._stream)}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
        self._seen = validation.count("seen", state["seen"], 0)
        if "dimension" not in state:
            return
        self._dimension = validation.count("dimension", state["dimension"], 1)
        self._target = tuple(validation.count("k", k, 1) for k in state["target"])
        with self._learn_lock:  # a tuning in progress is repeated, with one BLAS thread as before
            self._stream = self._stream_of(self._dimension, (self._target or (1,))[0], state)
        if self._stream.seen != self._seen:
            raise ValueError(f"seen must be {self._stream.seen}, got {self._seen}")

    def _facts(self) -> dict[str, str]:
        facts = super()._facts()
        heavy = sorted(self.weights.items(), key=lambda pair: -pair[1])[:3]
        members = [f"{name}: {weight:.0%}" for name, weight in heavy if weight >= 0.01]
        last = [f"sample {event.position}: {event.what}" for event in self.history[-1:]]
        return facts | {"most weight": "; ".join(members), "last decision": "; ".join(last)}

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.arguments().items())
        if not (weights := self.weights):
            return f"<OnlineGP({arguments}): nothing learned yet>"
        name, weight = max(weights.items(), key=lambda pair: pair[1])
        return (
            f"<OnlineGP({arguments}): size {self.size}, seen {self.seen}, "
            f"most weight on {name} ({weight:.0%})>"
        )
