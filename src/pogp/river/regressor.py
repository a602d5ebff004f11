"""The regressor for River: any method of the package that learns online."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from river import base, proba
from river.utils import dataframe

from pogp.arrays import Array
from pogp.budgets import Budget
from pogp.models.selftuning.factory import Made, made
from pogp.models.selftuning.registry import kind_of, options_from
from pogp.river.features import Inputs, Names, Table, column, in_order, number

if TYPE_CHECKING:
    from narwhals.dataframe import DataFrame
    from narwhals.stable.v2.typing import IntoDataFrame, IntoSeries


class POGRegressor(base.MiniBatchRegressor):
    """Gaussian process regression in bounded memory, by any method that learns online.

    The default, "online", is `pogp.OnlineGP`, which needs no hyperparameters and predicts from the
    first sample on. Other methods collect the first `warmup` samples and predict the mean and the
    variance of their targets. Then the kernel is tuned on these samples, and they are learned.

    The inputs are the features of the first sample ("online") or of the first `warmup` samples,
    sorted by name (x2 before x10). The order within a sample does not matter. A feature that is
    missing from a sample, None, or NaN in a frame is replaced by the mean of its values so far. A
    feature that appears later is ignored, since the kernel has no length-scale for it.

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
    >>> model = POGRegressor()
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE()).get() < 0.6
    True
    >>> x, y = next(iter(datasets.TrumpApproval()))
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
        self._inputs = Inputs.of(() if features is None else _distinct(features))
        # the samples that settle what the inputs are, until all of them have come
        self._slice: Table | None = Table((), np.empty((0, 0)))
        self._slice_targets = np.empty(0)
        self._target_name: str | None = None

    def _beginning(self) -> Made:
        """Return the model before it has learned anything."""
        if not kind_of(self.method).online:
            raise ValueError(f"method must be one that learns online, got {self.method!r}")
        return made(
            self.method,
            kernel=self.kernel,
            noise=self.noise,
            warmup=self.warmup,
            scale=self.scale,
            seed=self.seed,
            **options_from(self.method, self.budget, self.max_size, self.options),
        )

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"warmup": 40, "max_size": 30}  # most checks end before the default warm-up does

    def _unit_test_skips(self) -> set[str]:
        kind = kind_of(self.method)
        alike = kind.online and kind.sequential
        return set() if alike else {"check_learn_many_matches_learn_one"}

    @property
    def model(self) -> Made:
        """The model inside; its inputs are the features in `inputs`."""
        return self._model

    @property
    def inputs(self) -> Names:
        """The features in use, in the order of the kernel's inputs."""
        return self._inputs.names

    # ---- learning ----------------------------------------------------------------------------

    def learn_one(self, x: dict[Hashable, Any], y: float) -> None:
        """Learn one sample."""
        self._learn(self._sample(x), np.array([number("y", y)]))

    def learn_many(self, X: IntoDataFrame, y: IntoSeries) -> None:
        """Learn the rows of a frame in order, as `learn_one` would; all of them or none."""
        series = dataframe.into_series(y)
        targets = column("y", series)
        if np.isnan(targets).any():
            row = np.isnan(targets).argmax()
            raise ValueError(f"y must have a number in every row, got none in row {row}")
        self._learn(self._table(dataframe.into_frame(X)), targets)
        self._target_name = series.name

    def _learn(self, samples: Table, y: Array) -> None:
        if len(samples) != len(y):
            raise ValueError(f"y must have {len(samples)} rows, as X has, got {len(y)}")
        if len(y) == 0:
            return
        if self._slice is not None:
            self._collect(self._slice, samples, y)
        else:
            X, inputs = self._inputs.after(samples.rows(self.inputs))
            self._model.learn(X, y)
            self._inputs = inputs

    def _collect(self, before: Table, samples: Table, y: Array) -> None:
        """Add samples to the slice; once it is whole, what the inputs are is settled."""
        model, room = self._model, self._slice_length - len(before)
        head, tail = samples.split(room)
        names = self.inputs if self._settled else in_order({*self.inputs, *head.present})
        rows = np.vstack([before.rows(names), head.rows(names)])
        targets = np.append(self._slice_targets, y[:room])
        _, inputs = Inputs.of(names).after(rows)
        whole = len(head) == room
        if whole or names != self.inputs:
            # again from the beginning: there are new inputs, or what is missing has its last mean
            X = inputs.filled(rows)
            later, inputs = inputs.after(tail.rows(names))
            model = self._beginning()
            model.learn(np.vstack([X, later]), np.append(targets, y[room:]))
        else:
            model.learn(inputs.filled(head.rows(names)), y)
        self._model, self._inputs = model, inputs
        self._slice = None if whole else Table(names, rows)
        self._slice_targets = np.empty(0) if whole else targets

    @property
    def _slice_length(self) -> int:
        """How many samples settle what the inputs are."""
        return self.warmup if self._model.warming_up else 1

    @property
    def _settled(self) -> bool:
        """Whether the inputs are settled; then no other feature is looked at."""
        return self.features is not None or self._slice is None

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
        # The third argument is a variance; what the distribution tells is its root, `sigma`.
        gaussian: Callable[..., proba.Gaussian] = proba.Gaussian._from_state
        return gaussian(1, float(mean[0]), float(variance[0]), ddof=0)

    def predict_many(self, X: IntoDataFrame) -> IntoSeries:
        """Return the mean of y at each row: a series with the frame's index."""
        frame = dataframe.into_frame(X)
        mean, _ = self._predict(self._table(frame))
        return dataframe.to_native_series(mean, name=self._target_name, like=frame)

    def _predict(self, samples: Table) -> tuple[Array, Array]:
        inputs = self._inputs
        if self._model.seen == 0 and not self._settled:  # the prior at what would be the inputs
            inputs = Inputs.of(in_order(samples.names))
        return self._model.predict(inputs.filled(samples.rows(inputs.names)))

    # ---- reading -----------------------------------------------------------------------------

    def _sample(self, x: dict[Hashable, Any]) -> Table:
        """Return a sample as a table of one row."""
        features = self.inputs if self._settled else x
        names = tuple(name for name in features if x.get(name) is not None)
        return Table(names, np.array([[number(f"feature {name!r}", x[name]) for name in names]]))

    def _table(self, frame: DataFrame[Any]) -> Table:
        """Return the rows of a frame."""
        columns = {
            series.name: column(f"feature {series.name!r}", series)
            for series in frame.iter_columns()
            if not self._settled or series.name in self.inputs
        }
        values = np.empty((len(frame), len(columns)))
        for j, numbers in enumerate(columns.values()):
            values[:, j] = numbers
        return Table(tuple(columns), values)


def _distinct(features: Sequence[Hashable]) -> Names:
    names = tuple(features)
    if isinstance(features, str) or not names or len(set(names)) < len(names):
        raise ValueError(f"features must be a sequence of distinct names, got {features!r}")
    return names
