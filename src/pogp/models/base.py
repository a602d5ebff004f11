"""The protocol that every model shares."""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from html import escape
from os import PathLike
from typing import Any, Generic, Protocol, Self, TypeVar, cast, overload

import numpy as np
from numpy.typing import ArrayLike

from pogp import validation
from pogp.arrays import Array, Indices
from pogp.blas import blas_lock
from pogp.blocks import in_blocks
from pogp.files import persistence
from pogp.interrupts import Uninterrupted
from pogp.kernels import Kernel, as_kernel, prior_variance
from pogp.trace import Trace

T = TypeVar("T")


class Argument(Generic[T]):
    """A read-only argument of a model, which its `__init__` stores as `_name`."""

    def __init__(self, doc: str) -> None:
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = f"_{name}"

    @overload
    def __get__(self, model: None, owner: type) -> Self: ...
    @overload
    def __get__(self, model: Model, owner: type) -> T: ...
    def __get__(self, model: Model | None, owner: type) -> Self | T:
        return self if model is None else cast(T, getattr(model, self._name))

    def __set__(self, model: Model, value: object) -> None:
        raise AttributeError(f"{self._name[1:]} is an argument of the model and cannot be set")


class Posterior(Protocol):
    """The interface of the posterior that a model holds."""

    @property
    def size(self) -> int:
        """The model order M."""

    @property
    def nbytes(self) -> int:
        """Bytes held."""

    def in_order(self, name: str) -> Any:
        """Return `inputs` or `arrivals` of the points, in order of arrival."""

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Return the mean and the latent variance at each row of X."""

    def covariance(self, X: Array) -> Array:
        """Return the latent covariance between the rows of X."""

    def gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the derivatives of mean and latent variance by each row of X."""

    def state(self) -> dict[str, Any]:
        """Return everything that was learned, as arrays and numbers."""


class Model(ABC):
    """Gaussian process regression: predictions, samples, copies and files.

    A model consists of the `arguments` it was called with, each stored by `__init__` under
    its own name with an underscore, and the `state` that it learned, most of it in the posterior
    that it holds. Copying, pickling, saving and loading need no more than those.

    Any number of threads may use a model at once. Only one of them learns at a time. A concurrent
    prediction sees one consistent state, before or after a block of samples; a copy or a file one
    before or after a whole batch.
    """

    online: bool = True
    """Whether the model has `learn`, for a stream; otherwise it has only `fit`, for all samples."""
    sequential: bool = True
    """Whether a batch gives the same model as its samples one by one."""
    multi_output: bool = False
    """Whether targets may have several columns, (n, k)."""
    one_thread: bool = True
    """Whether BLAS has one thread while the model learns or predicts, as suits small products."""
    changeable: tuple[str, ...] = ()
    """The arguments that `change` takes."""

    @abstractmethod
    def __init__(self, kernel: object, noise: float, mean: float = 0.0) -> None:
        self._kernel = as_kernel(kernel)
        self._dimension = self._kernel.dimension
        self._noise = validation.noise_variance(noise, self._kernel)
        self._mean: Any = validation.finite("mean", mean)  # a list for several outputs
        self._seen = 0
        self._posterior: Posterior | None = None  # made with the first sample, when p is known
        self._create_locks()

    def _create_locks(self) -> None:
        # held while the state changes or is read to predict, and by the thread that learns
        self._state_lock, self._learn_lock = (blas_lock(self.one_thread) for _ in range(2))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other threads from changing the model: `with model.locked(): ...`."""
        with self._learn_lock, self._state_lock:
            yield

    def _replace_by(self, other: Self) -> None:
        """Replace the attributes by those of another model, except the locks."""
        with self._state_lock, Uninterrupted():
            for name, value in vars(other).items():
                if name not in ("_state_lock", "_learn_lock"):
                    setattr(self, name, value)

    # ---- properties ----------------------------------------------------------------------------

    @property
    def kernel(self) -> Kernel:
        """The covariance function."""
        return self._kernel

    @property
    def noise(self) -> float:
        """The variance of the observation noise."""
        return self._noise

    @property
    def seen(self) -> int:
        """The number of samples learned."""
        return self._seen

    @property
    def size(self) -> int:
        """The model order M: the number of retained points."""
        return 0 if self._posterior is None else self._posterior.size

    @property
    def dictionary(self) -> Array:
        """The retained inputs (M, p), in order of arrival."""
        with self._state_lock:
            if self._posterior is None:
                return np.empty((0, self._dimension or 0))
            return cast(Array, self._posterior.in_order("inputs"))

    @property
    def indices(self) -> Indices:
        """The position in the stream, from 0, of each retained point, in order of arrival."""
        with self._state_lock:
            if self._posterior is None:
                return np.empty(0, dtype=np.int64)
            return cast(Indices, self._posterior.in_order("arrivals"))

    @property
    def nbytes(self) -> int:
        """Bytes held by the state."""
        return 0 if self._posterior is None else self._posterior.nbytes

    def arguments(self) -> dict[str, Any]:
        """Return the arguments with which an equal, untrained model can be made."""
        given: dict[str, Any] = {}
        for name, parameter in _parameters(type(self)).items():
            value = getattr(self, f"_{name}")
            given |= value if parameter.kind is parameter.VAR_KEYWORD else {name: value}
        return given

    def state(self) -> dict[str, Any]:
        """Return everything that was learned, as a flat mapping to arrays and numbers."""
        with self.locked():
            learned = {} if self._posterior is None else self._posterior.state()
            return {"seen": self._seen, **learned}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
        if "inputs" in state:
            self._posterior = self._restored(state)
            self._dimension = state["inputs"].shape[1]
        last = int(state["arrivals"].max(initial=-1)) if "arrivals" in state else -1
        self._seen = validation.position("seen", state["seen"], last + 1)

    def _restored(self, state: dict[str, Any]) -> Posterior:
        """Return the posterior of a state."""
        raise NotImplementedError(f"{type(self).__name__} has no method to restore itself")

    # ---- learning ------------------------------------------------------------------------------

    def learn(self, X: ArrayLike, y: ArrayLike) -> Trace:
        """Learn a batch X (n, p), y (n,), or one sample (p,) and a number, in order.

        The batch is learned completely or, if it is invalid or interrupted, not at all.
        Models that are not `online` have `fit` instead.
        """
        raise ValueError(f"{type(self).__name__} learns all samples at once: use fit(X, y)")

    # ---- predicting ----------------------------------------------------------------------

    @property
    def _current_noise(self) -> float:
        """The noise variance that predictions use."""
        return self._noise

    def _latent(self, X: Array) -> tuple[Array, Array]:
        """Return the mean and the variance of f at the rows of X."""
        if self._posterior is None:
            return np.full(len(X), self._mean), np.array(prior_variance(self._kernel, X))
        return self._posterior.predict(X)

    def _latent_covariance(self, X: Array) -> Array:
        """Return the covariance of f between the rows of X."""
        if self._posterior is None:
            return np.array(self._kernel(X))
        return self._posterior.covariance(X)

    def _latent_gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the derivatives of the mean and of the variance of f at the rows of X."""
        if self._posterior is None:
            return np.zeros_like(X), self._kernel.diag_gradient(X)
        return self._posterior.gradient(X)

    def predict(self, X: ArrayLike, latent: bool = False) -> tuple[Array, Array]:
        """Return the mean and the variance of y at each row of X; two numbers for a single (p,).

        With `latent=True` the variance is of the function, without the noise.
        """
        points, single = validation.queries(X, self._dimension)
        with self._state_lock:
            mean, variance = in_blocks(self._latent, points, self.size)
            if not latent:
                variance = variance + self._current_noise
        return (mean[0], variance[0]) if single else (mean, variance)

    def _trial(self, X: Array) -> tuple[Array, Array]:
        """Return a mean and a variance to check a loaded model with."""
        return self.predict(X)

    def interval(self, X: ArrayLike, level: float = 0.95) -> tuple[Array, Array]:
        """Return the lower and the upper end of the band that contains y with probability `level`.

        The band is the Gaussian one, of the mean and the variance that `predict` returns.
        """
        reach = self.reach(level)
        mean, variance = self.predict(X)
        width = np.sqrt(variance) * reach
        return mean - width, mean + width

    def reach(self, level: float = 0.95) -> float | Array:
        """Return the half-width of the band of a level, in deviations."""
        return gaussian_reach(validation.probability("level", level))

    def is_stuck(self, y: ArrayLike) -> bool:
        """Return whether the next targets y repeat those of a failed sensor; see `OnlineGP`."""
        return False

    def gradient(self, X: ArrayLike) -> tuple[Array, Array]:
        """Return the derivatives of the mean and of the latent variance by the inputs at X.

        They are exact, and (n, p) each; (p,) for a single point, (n, p, k) for k outputs. They are
        those of `predict(X, latent=True)`; with the noise, which is constant, they are the same.
        Where a kernel has a cusp, as `Matern12` has at the retained points, that point adds
        nothing. A kernel of your own needs `cross_pullback` and `diag_gradient` for this.

        >>> import numpy as np, pogp
        >>> model = pogp.DenseGP(pogp.RBF(), noise=1e-4)
        >>> X = np.linspace(0, 6, 20)[:, None]
        >>> trace = model.learn(X, np.sin(X[:, 0]))
        >>> mean, variance = model.gradient([2.0])
        >>> bool(abs(mean[0] - np.cos(2.0)) < 1e-3)
        True
        """
        points, single = validation.queries(X, self._dimension)
        try:
            with self._state_lock:
                width = max(self.size, 1) * points.shape[1]
                mean, variance = in_blocks(self._latent_gradient, points, width)
        except NotImplementedError as error:
            raise ValueError(f"gradient needs the derivatives of the kernel: {error}") from None
        return (mean[0], variance[0]) if single else (mean, variance)

    def covariance(self, X: ArrayLike, latent: bool = False) -> Array:
        """Return the covariance of y (or, latent, of f) between the rows of X."""
        points, _ = validation.queries(X, self._dimension)
        with self._state_lock:
            covariance = self._latent_covariance(points)
            noise = 0.0 if latent else self._current_noise
        diagonal = np.einsum("ii->i", covariance)
        np.maximum(diagonal, 0.0, out=diagonal)
        diagonal += noise
        return covariance

    def sample(
        self,
        X: ArrayLike,
        n: int = 1,
        seed: int | np.random.Generator | None = None,
        latent: bool = False,
    ) -> Array:
        """Return n joint draws of y (or, latent, of f) at the rows of X: (n, len(X)) or (…, k)."""
        points, _ = validation.queries(X, self._dimension)
        draws, rng = validation.count("n", n, 0), validation.generator(seed)
        with self._state_lock:
            mean, _ = in_blocks(self._latent, points, self.size)
            covariance = self.covariance(points, latent)
        return draw(mean, covariance, draws, rng)

    def change(self, **arguments: Any) -> Self:
        """Change arguments of a running model without losing what it has learned; return it.

        `changeable` names those that can change: the budget, the cap and the forgetting factor of
        models that have them. Points above a smaller cap are removed at once, cheapest first.
        Everything else takes effect with the next sample. A change is saved with the model.

        >>> import numpy as np, pogp
        >>> X = np.linspace(0, 9, 100)[:, None]
        >>> model = pogp.SlidingWindow(pogp.RBF(), noise=0.01, max_size=50)
        >>> trace = model.learn(X, np.sin(X[:, 0]))
        >>> model.change(max_size=20).size
        20
        """
        for name in arguments:
            if name not in self.changeable:
                known = ", ".join(self.changeable) or "nothing"
                raise ValueError(
                    f"{type(self).__name__} can change {known} while it runs, not {name!r}"
                )
        with self._learn_lock:
            kind, before, state = self._arguments_and_state()
            changed = _recreate(kind, {**before, **arguments}, state)
            changed._prune_to_cap()
            self._replace_by(changed)
        return self

    def _prune_to_cap(self) -> None:
        """Remove points above a cap that was lowered."""

    def copy(self) -> Self:
        """Return an independent copy that behaves exactly like this model."""
        return _recreate(*self._arguments_and_state())

    def _arguments_and_state(self) -> tuple[type[Self], dict[str, Any], dict[str, Any]]:
        with self.locked():
            return type(self), self.arguments(), self.state()

    def save(
        self,
        path: str | PathLike[str],
        without_code: bool = False,
        notes: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the model to a file that `pogp.load` reads, atomically.

        A kernel or budget that is code of your own raises ValueError; with `without_code=True` it
        is left out, and `pogp.load(path, kernel=..., budget=...)` is given it again. `notes`, a
        mapping of text to what JSON can hold, go along; `pogp.files.persistence.notes(path)`
        reads them.
        """
        persistence.save(self, path, without_code, notes)

    def to_bytes(self, without_code: bool = False, notes: Mapping[str, Any] | None = None) -> bytes:
        """Return what `save` would write to a file; `pogp.from_bytes` reads it."""
        return persistence.to_bytes(self, without_code, notes)

    def __reduce__(self) -> tuple[Any, ...]:
        return _recreate, self._arguments_and_state()

    def _facts(self) -> dict[str, str]:
        """Return the rows of the table that a notebook shows."""
        return {
            "samples": f"{self.seen:,}",
            "points": f"{self.size:,}",
            "kernel": _ROUNDED.sub(lambda found: f"{float(found[0]):.4g}", repr(self.kernel)),
            "noise variance": f"{self.noise:.4g}",
            "memory": f"{self.nbytes / 1024:,.0f} KiB",
        }

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        cell = '<td style="text-align: left">'
        rows = "".join(
            f"<tr>{cell}{escape(name)}</td>{cell}{escape(fact)}</td></tr>"
            for name, fact in self._facts().items()
        )
        return f"<table><caption>{type(self).__name__}</caption>{rows}</table>"

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.arguments().items())
        return f"<{type(self).__name__}({arguments}): size {self.size}, seen {self.seen}>"


_ROUNDED = re.compile(r"\d+\.\d+(e[-+]?\d+)?")
"""Numbers in the text of a kernel."""


def gaussian_reach(level: float) -> float:
    """Return the half-width of the central band of a Gaussian, in deviations."""
    from scipy.special import ndtri  # slow to import, and rarely needed

    return float(ndtri(0.5 + level / 2))


def draw(mean: Array, covariance: Array, draws: int, rng: np.random.Generator) -> Array:
    """Return draws of a Gaussian vector, one per row; the covariance may be singular.

    A mean (n, k) and covariances (n, n, k) of k outputs give draws (draws, n, k).
    """
    if mean.ndim == 2:
        outputs = zip(mean.T, covariance.transpose(2, 0, 1), strict=True)
        return np.stack([draw(*output, draws, rng) for output in outputs], axis=2)
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(mean + rng.standard_normal((draws, len(mean))) @ root.T)


M = TypeVar("M", bound=Model)


@cache
def _parameters(kind: type[Model]) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of the constructor of a class of models."""
    return inspect.signature(kind).parameters


def _recreate(kind: type[M], arguments: dict[str, Any], state: dict[str, Any]) -> M:
    model = kind(**arguments)
    model.restore({name: _writable(value) for name, value in state.items()})
    return model


def _writable(value: Any) -> Any:
    """Return a writable array; joblib may have mapped it read-only."""
    return np.require(value, requirements="W") if isinstance(value, np.ndarray) else value
