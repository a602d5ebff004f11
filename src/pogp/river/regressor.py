"""The regressor for River: any method of the package that learns online."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from river import base, proba
from river.utils import dataframe

from pogp import encoding
from pogp.arrays import Array
from pogp.budgets import Budget
from pogp.encoding import Encoder
from pogp.encoding.columns import Cells, alike
from pogp.models.selftuning.factory import Made, made_for
from pogp.models.selftuning.registry import kind_of
from pogp.river.features import Names, Table, cells_of, in_order, number, targets_of

if TYPE_CHECKING:
    from narwhals.dataframe import DataFrame
    from narwhals.stable.v2.typing import IntoDataFrame, IntoSeries


class POGRegressor(base.MiniBatchRegressor):
    """Gaussian process regression in bounded memory, by any method that learns online.

    The default, "online", is `pogp.OnlineGP`, which needs no hyperparameters and predicts from the
    first sample on. Other methods collect the first `warmup` samples and predict the mean and the
    variance of their targets. Then the kernel is tuned on these samples, and they are learned.

    The features of the first sample ("online") or of the first `warmup` are used, also those whose
    values are missing, sorted by name (x2 before x10): the order within a sample never matters. One
    that appears later is ignored, with a warning, since the kernel has no length-scale for it. A
    feature that is missing from a sample, or None or NaN in it, is filled with what the others and
    the sample before say, which adds to the variance. Dates and datetimes become elapsed time and
    places in the day, the week and the year; texts become categories, of which new ones may appear
    at any time. What a feature is, its first value decides. A text among numbers is a missing
    value, and there is a warning.

    Do not put a scaler before it. River's scalers change along the stream, and the retained points
    would no longer be in the right place.

    Parameters
    ----------
    method : str, default "online"
        The name of the model: "online", "absorbing", "pog", "random", "window", "sogp", "mcintire",
        "krls-ald" or "krls-t"; "streaming-vfe", which learns in mini-batches; or "dense",
        which keeps all samples.
    kernel : Kernel, type, str or None
        A class of kernels or its name, to be tuned; a kernel to start from; or, with `noise`, a
        kernel to use as it is. RBF, with a length-scale for each feature, if None.
    noise : float, optional
        The noise variance: that of a kernel used as it is, or else the start of the search.
    budget : float, callable, None or "auto"
        The budget, for methods that have one; "auto" is the method's default.
    max_size : int, None or "auto"
        The most points to keep, for methods with a cap or a size; "auto" is 300, None is no cap.
    warmup : int, default 300
        The number of samples used for tuning. With a kernel used as it is, and no `scale`, nothing
        is collected, and the inputs are the features of the first sample.
    scale : bool, default False
        Whether to scale features and targets by their means and standard deviations in the first
        `warmup` samples. Kernel, noise and options are then in those units; predictions are not.
    options : dict, optional
        Other options of the method, by name, such as `{"forgetting": 0.999}`.
    features : sequence, optional
        The features to use, in the order of the kernel's inputs and length-scales. All others are
        ignored. If None, they are found as described above.
    seed : int, default 0
        Seed of the search and of methods that draw random numbers.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> first, model = datasets.TrumpApproval().take(300), POGRegressor()
    >>> evaluate.progressive_val_score(first, model, metrics.MAE()).get() < 0.6
    True
    >>> *_, (x, y) = datasets.TrumpApproval().take(301)
    >>> distribution = model.predict_one(x, with_dist=True)
    >>> abs(distribution.mu - y) < 3 * distribution.sigma
    True
    """

    def __init__(
        self,
        method: str = "online",
        *,
        kernel: object = None,
        noise: float | None = None,
        budget: float | Budget | Literal["auto"] | None = "auto",
        max_size: int | Literal["auto"] | None = "auto",
        warmup: int = 300,
        scale: bool = False,
        options: Mapping[str, Any] | None = None,
        features: Sequence[Hashable] | None = None,
        seed: int = 0,
    ) -> None:
        self.method = method
        self.kernel = kernel
        self.noise = noise
        self.budget = budget
        self.max_size = max_size
        self.warmup = warmup
        self.scale = scale
        self.options = options
        self.features = features
        self.seed = seed

        self._model = self._beginning()
        self._names: Names = () if features is None else _distinct(features)
        self._encoder: Encoder | None = None  # from the first sample on
        # the first slice, which decides what the inputs are, until it is complete
        self._slice: Table | None = Table((), [], 0)
        self._slice_targets = np.empty(0)
        self._target_name: str | None = None
        self._warned = False  # of features that came too late

    def _beginning(self) -> Made:
        """Return the model before it has learned anything."""
        if not kind_of(self.method).online:
            raise ValueError(f"method must be one that learns online, got {self.method!r}")
        return made_for(self, self.seed)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"warmup": 40, "max_size": 30}  # most checks end before the default warm-up does

    def _unit_test_skips(self) -> set[str]:
        kind = kind_of(self.method)
        alike = kind.online and kind.sequential
        return set() if alike else {"check_learn_many_matches_learn_one"}

    @property
    def model(self) -> Made:
        """The model inside; `encoder.labels` are its inputs."""
        return self._model

    @property
    def encoder(self) -> Encoder | None:
        """What makes inputs of the features; None before the first sample."""
        return self._encoder

    @property
    def inputs(self) -> Names:
        """The features in use, in the order of the kernel's inputs."""
        return self._names

    # ---- learning ----------------------------------------------------------------------------

    def learn_one(self, x: dict[Hashable, Any], y: float) -> None:
        """Learn one sample."""
        self._warn_of_ignored(x)
        self._learn(self._sample(x), np.array([number("y", y)]))

    def learn_many(self, X: IntoDataFrame, y: IntoSeries) -> None:
        """Learn the rows of a frame in order, as `learn_one` would; all of them or none."""
        frame, series = dataframe.into_frame(X), dataframe.into_series(y)
        self._warn_of_ignored(frame.columns)
        self._learn(self._table(frame), targets_of(series))
        self._target_name = series.name

    def _learn(self, samples: Table, y: Array) -> None:
        if len(samples) != len(y):
            raise ValueError(f"y must have {len(samples)} rows, as X has, got {len(y)}")
        if len(y) == 0:
            return
        if self._slice is None and self._encoder is not None:
            _learn(self._model, self._encoder, samples, y)
        elif self._slice is not None:
            self._collect(self._slice, samples, y)

    def _collect(self, before: Table, samples: Table, y: Array) -> None:
        """Add samples to the first slice; when it is complete, the inputs are fixed."""
        room = self._slice_length - len(before)
        head, tail = samples.split(room)
        names = self.inputs if self._settled else in_order({*self.inputs, *head.names})
        rows = before.joined(head, names)
        targets = np.append(self._slice_targets, y[:room])
        encoder, model = _encoder(rows), self._model
        if self._encoder is None or self._encoder.kinds != encoder.kinds or names != self.inputs:
            # again from the beginning: there are new inputs
            model = self._beginning()
            with _ValueErrors():
                encoder.prime(_cells(encoder, rows))
            _learn(model, encoder, rows, targets)
        else:
            encoder, model = self._encoder.copy(), self._model.copy()
            _learn(model, encoder, head, y[:room])
        if len(tail):
            _learn(model, encoder, tail, y[room:])
        self._model, self._encoder, self._names = model, encoder, names
        whole = len(head) == room
        self._slice = None if whole else rows
        self._slice_targets = np.empty(0) if whole else targets

    @property
    def _slice_length(self) -> int:
        """The number of samples that decide what the inputs are."""
        return self.warmup if self._model.warming_up else 1

    @property
    def _settled(self) -> bool:
        """Whether the inputs are fixed; other features are then ignored."""
        return self.features is not None or self._slice is None

    def _warn_of_ignored(self, names: Iterable[Hashable]) -> None:
        """Warn, once, of features that came too late; with `features` that is intended."""
        if self._warned or self.features is not None or self._slice is not None:
            return
        ignored = set(names).difference(self._names)
        if ignored:
            self._warned = True
            names = ", ".join(repr(name) for name in in_order(ignored))
            was, are = ("was", "is") if len(ignored) == 1 else ("were", "are")
            first = "sample" if self.method == "online" else "samples"
            warnings.warn(
                f"{names} {was} not in the first {first} and {are} ignored; "
                "POGRegressor(features=[...]) names all inputs",
                stacklevel=3,
            )

    # ---- predicting --------------------------------------------------------------------------

    @overload
    def predict_one(self, x: dict[Hashable, Any], with_dist: Literal[False] = False) -> float: ...

    @overload
    def predict_one(self, x: dict[Hashable, Any], with_dist: Literal[True]) -> proba.Gaussian: ...

    def predict_one(
        self, x: dict[Hashable, Any], with_dist: bool = False
    ) -> float | proba.Gaussian:
        """Return the mean of y at x or, with `with_dist`, its distribution, noise included."""
        mean, variance = self._predict(self._sample(x))
        if not with_dist:
            return float(mean[0])
        # The third argument is a variance; the distribution reports its root, `sigma`.
        gaussian: Callable[..., proba.Gaussian] = proba.Gaussian._from_state
        return gaussian(1, float(mean[0]), float(variance[0]), ddof=0)

    def predict_many(self, X: IntoDataFrame) -> IntoSeries:
        """Return the mean of y at each row: a series with the frame's index."""
        frame = dataframe.into_frame(X)
        mean, _ = self._predict(self._table(frame))
        return dataframe.to_native_series(mean, name=self._target_name, like=frame)

    def _predict(self, samples: Table) -> tuple[Array, Array]:
        encoder = self._encoder
        if encoder is None:  # the prior at what would be the inputs
            names = self.inputs if self._settled else in_order(samples.names)
            encoder = _encoder(Table(names, samples.cells(names), len(samples)))
        with _ValueErrors():
            return encoding.predict(self._model, encoder, _cells(encoder, samples))

    # ---- reading -----------------------------------------------------------------------------

    def _sample(self, x: dict[Hashable, Any]) -> Table:
        """Return a sample as a table of one row."""
        features = self.inputs if self._settled else x
        names = tuple(name for name in features if name in x)
        return Table(names, [[x[name]] for name in names], 1)

    def _table(self, frame: DataFrame[Any]) -> Table:
        """Return the rows of a frame."""
        columns = {
            series.name: cells_of(series)
            for series in frame.iter_columns()
            if not self._settled or series.name in self.inputs
        }
        return Table(tuple(columns), list(columns.values()), len(frame))


NOTHING = "(nothing)"
"""The input of samples without features: a Gaussian process has at least one."""


def _encoder(samples: Table) -> Encoder:
    """Return what makes inputs of samples."""
    if not samples.names:
        return Encoder.numbers([NOTHING])
    with _ValueErrors():
        return Encoder.of(samples.names, [alike(cells) for cells in samples.columns])


def _cells(encoder: Encoder, samples: Table) -> list[Cells]:
    return samples.cells(tuple(encoder.names))


def _learn(model: Made, encoder: Encoder, samples: Table, y: Array) -> None:
    with _ValueErrors():
        encoding.learn(model, encoder, _cells(encoder, samples), y)


class _ValueErrors:
    """Turns a TypeError, of a cell that is neither number, text nor time, into a ValueError."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: object) -> None:
        if kind is not None and issubclass(kind, TypeError):
            raise ValueError(str(error)) from None


def _distinct(features: Sequence[Hashable]) -> Names:
    names = tuple(features)
    if isinstance(features, str) or not names or len(set(names)) < len(names):
        raise ValueError(f"features must be a sequence of distinct names, got {features!r}")
    return names
