"""Any method on raw data: its hyperparameters are found on a first slice of the stream."""

from __future__ import annotations

from typing import Any, Self, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from pogp import validation
from pogp.arrays import Array, Indices
from pogp.interrupts import Uninterrupted
from pogp.kernels import RBF, Kernel, kernel_from_spec
from pogp.models.absorbing import AbsorbingPOG
from pogp.models.base import Model
from pogp.models.baselines.greedy_model import GreedyModel
from pogp.models.baselines.pseudo_inputs import PseudoInputModel
from pogp.models.selftuning.registry import NOT_OPTIONS, kind_of, parameters_of, require_options
from pogp.models.selftuning.scaling import Units
from pogp.models.selftuning.warmup import LEAST, Warmup, kernel_or_family
from pogp.trace import SIZE, TUNING, Trace, blank, concatenate

DEFAULTS: dict[str, dict[str, Any]] = {"absorbing": {"calibrate": True}}
"""Defaults of options that differ from those of the method's constructor."""
Offline: TypeAlias = PseudoInputModel | GreedyModel
INSIDE = "model_"
"""The prefix of names in the state of the model inside."""


class SelfTuning(Model):
    """Collect a first slice of the stream, tune a kernel on it, and continue with any method.

    The samples of the slice are then learned as all others. Until then the mean and the variance of
    the targets so far are predicted.

    Parameters
    ----------
    method
        The name of a model, one of `pogp.models.selftuning.registry.METHODS`. Those that learn
        offline have `fit` alone.
    kernel
        A class of kernels or its name, which gets a length-scale for each input and is tuned; a
        kernel to start from; or, with `noise`, a kernel to use as it is. RBF if None.
    noise
        The noise variance: of the kernel that is used as it is, or else where the search starts.
    warmup
        The number of samples to tune by: the first ones, or, if most of them have one and the same
        target, those after the first that differs.
    scale
        Whether the model sees each input and each output less its mean in the slice, in units of
        its standard deviation there. Then what is given (kernel, noise, options) is in those units,
        and so are `kernel` and `noise`; all else that is reported is in the user's.
    seed
        Of the search, and of the method where it draws anything.
    options
        Those of the method: `budget`, `max_size`, `forgetting` and so on. Absorbing models are
        calibrated by default.

    >>> import numpy as np, pogp
    >>> X = np.random.default_rng(0).uniform(0, 60, (500, 1))
    >>> y = 1000 + 50 * np.sin(X[:, 0] / 10)
    >>> model = pogp.SelfTuning("sogp", max_size=30, warmup=100, scale=True)
    >>> trace = model.learn(X, y)
    >>> mean, variance = model.predict([20.0])
    >>> bool(abs(mean - 1000 - 50 * np.sin(2.0)) < 1)
    True
    """

    def __init__(
        self,
        method: str = "absorbing",
        *,
        kernel: object = None,
        noise: float | None = None,
        warmup: int = 300,
        scale: bool = False,
        seed: int = 0,
        **options: Any,
    ) -> None:
        self._kind = kind_of(method)
        if "kernel" not in parameters_of(method):
            raise ValueError(f"method {method!r} tunes itself: use pogp.{self._kind.__name__}")
        self.sequential = self._kind.sequential
        self.changeable = self._kind.changeable
        self._method = method
        given = kernel_or_family(kernel)
        self._kernel = cast(Any, given)
        self._noise = cast(Any, None if noise is None else validation.positive("noise", noise))
        self._warmup = validation.count("warmup", warmup, LEAST)
        if not isinstance(scale, bool | np.bool_):
            raise ValueError(f"scale must be True or False, got {scale!r}")
        self._scale = bool(scale)
        self._seed = validation.seed(seed)
        self._options = self._checked(options)
        # Kernel, noise and the number of samples are those of the state: there is no `super` here.
        self._dimension = given.dimension if isinstance(given, Kernel) else None
        # the shape of one target: () for a number, (k,) for several, None while it is not known
        self._target: tuple[int, ...] | None = np.shape(self._options.get("mean", 0.0)) or None
        self._units = Units()
        self._warmup_or_model = self._initial()
        self._create_locks()

    def _checked(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return all options of the method, as its model stores them."""
        wanted = {**DEFAULTS.get(self._method, {}), **options}
        require_options(self._method, wanted)
        whole = self._model_of(*(self._fixed or (RBF(), 1.0)), wanted).arguments()
        left_out = {*NOT_OPTIONS, "mean"} - wanted.keys()  # if not given, the mean is the slice's
        return {name: value for name, value in whole.items() if name not in left_out}

    def _model_of(self, kernel: Kernel, noise: float, options: dict[str, Any]) -> Model:
        seed = {"seed": self._seed} if "seed" in parameters_of(self._method) else {}
        return self._kind(kernel, noise, **options, **seed)

    def _initial(self) -> Warmup | Model:
        """Return a warm-up, or the model itself if there is nothing to tune."""
        if self._fixed and not self._scale:
            return self._model_of(*self._fixed, self._options)
        given: Kernel | str = self._kernel
        if isinstance(given, Kernel):
            return Warmup(given, None, self._warmup, self._seed)
        return Warmup(RBF(), given, self._warmup, self._seed)

    @property
    def _fixed(self) -> tuple[Kernel, float] | None:
        """The kernel and the noise that are used as they are; None if they are to be tuned."""
        kernel, noise = self._kernel, self._noise
        return (kernel, noise) if isinstance(kernel, Kernel) and noise is not None else None

    # ---- properties --------------------------------------------------------------------------

    @property
    def method(self) -> str:
        """The name of the method."""
        return self._method

    @property
    def model(self) -> Model | None:
        """The model inside, None while there is none yet. With `scale` it sees scaled data."""
        state = self._warmup_or_model
        return None if isinstance(state, Warmup) else state

    @property
    def warming_up(self) -> bool:
        """Whether samples are still being collected to tune by."""
        return isinstance(self._warmup_or_model, Warmup)

    @property
    def _predictor(self) -> Model:
        """The model that predicts: the one inside or, until then, a prior of the same moments."""
        with self._state_lock:
            state, target = self._warmup_or_model, self._target
        if isinstance(state, Model):
            return state
        kernel, noise, mean = state.prior(target or ())
        return AbsorbingPOG(kernel, noise, mean=mean)

    @property
    def kernel(self) -> Kernel:
        """The covariance function in force."""
        return self._predictor.kernel

    @property
    def noise(self) -> float:
        """The variance of the observation noise in force."""
        return self._predictor.noise

    @property
    def seen(self) -> int:
        """The number of samples learned or collected."""
        state = self._warmup_or_model
        return len(state.inputs) if isinstance(state, Warmup) else state.seen

    @property
    def size(self) -> int:
        """The model order M: the number of retained points; 0 while warming up."""
        return self._predictor.size

    @property
    def dictionary(self) -> Array:
        """The retained inputs (M, p), in order of arrival; to rounding, with `scale`."""
        with self._state_lock:
            state, units = self._warmup_or_model, self._units
        if isinstance(state, Warmup):
            return np.empty((0, self._dimension or 0))
        return units.user_inputs(state.dictionary)

    @property
    def indices(self) -> Indices:
        """The position in the stream, from 0, of each retained point, in order of arrival."""
        return self._predictor.indices

    @property
    def nbytes(self) -> int:
        """Bytes held by what was learned or collected."""
        return self._warmup_or_model.nbytes + self._units.nbytes

    # ---- learning ----------------------------------------------------------------------------

    def learn(self, X: ArrayLike, y: ArrayLike, weight: ArrayLike | None = None) -> Trace:
        """Learn a batch X (n, p), y (n,) or (n, k), or one sample (p,) and its target, in order.

        `weight`, a number or one for each sample, says how precise samples are: the noise variance
        of a sample is the model's over its weight, 1 for an ordinary one. Weights and several
        outputs are for methods on the absorbed posterior. The batch is learned whole or, where
        anything in it is wrong or interrupts it, not at all.
        """
        if not self._kind.online:
            raise ValueError(
                f"method {self._method!r} learns all samples at once: use fit(X, y), or a method "
                "that learns online"
            )
        with self._learn_lock:
            X, Y, target = self._checked_samples(X, y)
            weights = self._checked_weights(weight, len(Y))
            if len(Y) == 0:  # the shape of targets is not known yet
                return Trace(blank(0, Y.shape[1]), flat=target == ())
            if not isinstance(self._warmup_or_model, Warmup):
                return self._learn(X, Y, target, weights)
            changed = self.copy()  # an error or an interrupt leaves this model unchanged
            trace = changed._collect(X, Y, target, weights)
            self._replace_by(changed)
            return trace

    def settle(self) -> None:
        """End the warm-up, if it has not ended, with the samples so far: at least two."""
        with self._learn_lock:
            if isinstance(self._warmup_or_model, Warmup):
                changed = self.copy()
                changed._end(self._warmup_or_model)
                self._replace_by(changed)

    def fit(self, X: ArrayLike, y: ArrayLike, weight: ArrayLike | None = None) -> Self:
        """Learn all samples at once, in place of what was learned before; return the model itself.

        The warm-up ends with them, if they are fewer than that. Weights are those of `learn`.
        """
        with self._learn_lock:
            fresh = type(self)(**self.arguments())
            if self._kind.online:
                fresh.learn(X, y, weight)
                fresh.settle()
            else:
                fresh._checked_weights(weight, 0)
                fresh._fit(*fresh._checked_samples(X, y))
            self._replace_by(fresh)
        return self

    def _checked_samples(self, X: ArrayLike, y: ArrayLike) -> tuple[Array, Array, tuple[int, ...]]:
        """Return X (n, p), Y (n, k) and the shape of one target."""
        if self._kind.multi_output:
            return validation.vector_samples(X, y, self._dimension, self._target)
        X, y = validation.samples(X, y, self._dimension)
        return X, y[:, None], ()

    def _checked_weights(self, weight: ArrayLike | None, count: int) -> Array | None:
        """Return one weight for each sample, None if all are one."""
        if weight is None:
            return None
        if not self._kind.multi_output:
            raise ValueError(
                f"method {self._method!r} does not use weights, got some; 'online', "
                "'absorbing' and other methods on the absorbed posterior take them"
            )
        return np.array(validation.weights(weight, count))

    def _learn(
        self, X: Array, Y: Array, target: tuple[int, ...], weights: Array | None = None
    ) -> Trace:
        """Let the model inside learn checked samples, at least one."""
        units, y = self._units, Y.reshape(len(Y), *target)
        state: Any = self._warmup_or_model
        samples = (units.inputs(X), units.targets(y))
        with Uninterrupted():
            if weights is not None:
                trace = state.learn(*samples, noise=state.noise / weights)
            else:
                trace = state.learn(*samples)
            with self._state_lock:
                self._dimension, self._target = X.shape[1], target
        return units.user_trace(trace)

    def _collect(self, X: Array, Y: Array, target: tuple[int, ...], weights: Array | None) -> Trace:
        """Collect samples; after the last, tune, learn them all, and continue with the rest."""
        warmup = cast(Warmup, self._warmup_or_model)
        self._dimension, self._target = X.shape[1], target
        trace = warmup.collect(X, Y, target, weights)
        if warmup.room > 0:
            return trace
        self._end(warmup)
        trace.rest[-1, SIZE], trace.rest[-1, TUNING] = self.size, 1.0
        rest = slice(len(trace), None)
        others = None if weights is None else weights[rest]
        return concatenate([trace, self._learn(X[rest], Y[rest], target, others)])

    def _end(self, warmup: Warmup) -> None:
        """End a warm-up: let the tuned model learn its samples."""
        self._warmup_or_model = self._tuned_model(warmup)
        weights = warmup.weights if (warmup.weights != 1).any() else None
        self._learn(warmup.inputs, warmup.targets, self._target or (), weights)

    def _fit(self, X: Array, Y: Array, target: tuple[int, ...]) -> None:
        """Fit checked samples offline, the first of them being the slice to tune by."""
        if isinstance(self._warmup_or_model, Warmup):
            first = slice(self._warmup_or_model.wanted(Y))
            self._warmup_or_model.take(X[first], Y[first])
            self._warmup_or_model = self._tuned_model(self._warmup_or_model)
        y = Y.reshape(len(Y), *target)
        cast(Offline, self._warmup_or_model).fit(self._units.inputs(X), self._units.targets(y))
        self._dimension, self._target = X.shape[1], target

    def _tuned_model(self, warmup: Warmup) -> Model:
        """Return the model tuned on a slice, and store its units."""
        count, target = len(warmup.inputs), self._target or ()
        if count < LEAST:
            raise ValueError(
                f"the warm-up needs at least {LEAST} samples, since one does not show the scale "
                f"of the data, got {count}; or give a kernel and a noise, and no scale"
            )
        if self._scale:
            inputs, targets = warmup.slice()
            self._units = Units.of(inputs, targets.reshape(-1, *target))
        if self._fixed:
            return self._model_of(*self._fixed, self._options)
        kernel, noise, mean = warmup.tuned(
            target, self._units, self._noise, self._options.get("mean")
        )
        return self._model_of(kernel, noise, {**self._options, "mean": mean.tolist()})

    def _facts(self) -> dict[str, str]:
        state = "warming up" if self.warming_up else "learning"
        return {"method": self._method, "state": state} | super()._facts()

    def _prune_to_cap(self) -> None:
        if isinstance(self._warmup_or_model, Model):
            self._warmup_or_model._prune_to_cap()

    # ---- predicting --------------------------------------------------------------------

    def _scaled_queries(self, X: ArrayLike) -> tuple[Model, Units, Array, bool]:
        """Return the predictor, its units, X (n, p) in these, and whether X was a single (p,)."""
        points, single = validation.queries(X, self._dimension)
        with self._state_lock:
            predictor, units = self._predictor, self._units
        return predictor, units, units.inputs(points), single

    def predict(self, X: ArrayLike, latent: bool = False) -> tuple[Array, Array]:
        """Return the mean and the variance of y at each row of X; two numbers for a single (p,).

        With `latent=True` the variance is of the function, without the noise.
        """
        predictor, units, points, single = self._scaled_queries(X)
        mean, variance = predictor.predict(points, latent)
        mean, variance = units.user_targets(mean), units.user_variances(variance)
        return (mean[0], variance[0]) if single else (mean, variance)

    def gradient(self, X: ArrayLike) -> tuple[Array, Array]:
        """Return the derivatives of the mean and of the latent variance by the inputs at X.

        They are exact, and (n, p) each; (p,) for a single point, (n, p, k) for k outputs.
        """
        predictor, units, points, single = self._scaled_queries(X)
        mean, variance = units.user_gradients(*predictor.gradient(points))
        return (mean[0], variance[0]) if single else (mean, variance)

    def covariance(self, X: ArrayLike, latent: bool = False) -> Array:
        """Return the covariance of y (or, latent, of f) between rows: (n, n) or (n, n, k)."""
        predictor, units, points, _ = self._scaled_queries(X)
        return units.user_variances(predictor.covariance(points, latent))

    def sample(
        self,
        X: ArrayLike,
        n: int = 1,
        seed: int | np.random.Generator | None = None,
        latent: bool = False,
    ) -> Array:
        """Return n joint draws of y (or, latent, of f) at the rows of X: (n, len(X)) or (…, k)."""
        predictor, units, points, _ = self._scaled_queries(X)
        return units.user_targets(predictor.sample(points, n, seed, latent))

    # ---- state -------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return everything that was learned: arrays, numbers, a description of the kernel."""
        with self.locked():
            target = None if self._target is None else list(self._target)
            shapes = {"dimension": self._dimension, "target": target}
            if isinstance(self._warmup_or_model, Warmup):
                return shapes | self._warmup_or_model.state()
            inside = self._warmup_or_model.arguments()
            found = {"noise": inside["noise"], "mean": inside["mean"]}
            if inside["kernel"] is not self._kernel:
                found["kernel"] = _description(inside["kernel"])
            learned = {
                INSIDE + name: value for name, value in self._warmup_or_model.state().items()
            }
            return shapes | found | self._units.state() | learned

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
        dimension, target = state["dimension"], state["target"]
        self._dimension = None if dimension is None else validation.count("p", dimension, 1)
        self._target = None if target is None else tuple(target)
        if "mean" in state:
            kernel = state.get("kernel", self._kernel)
            kernel = kernel_from_spec(kernel) if isinstance(kernel, dict) else kernel
            options = {**self._options, "mean": state["mean"]}
            model = self._model_of(kernel, state["noise"], options)
            inside = {
                name.removeprefix(INSIDE): value
                for name, value in state.items()
                if name.startswith(INSIDE)
            }
            model.restore(inside)
            self._units = Units.restored(state) if self._scale else Units()
            self._warmup_or_model = model
        elif isinstance(self._warmup_or_model, Warmup) and "warmup_inputs" in state:
            self._warmup_or_model.restore(state)


def _description(kernel: Kernel) -> dict[str, Any] | Kernel:
    """Return the description of a kernel, or itself if it is code: it can still be copied."""
    try:
        return kernel.to_spec()
    except ValueError:
        return kernel
