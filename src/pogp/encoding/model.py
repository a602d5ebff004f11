"""A model that learns and predicts rows of raw cells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pogp.arrays import Array
from pogp.encoding.columns import Cells
from pogp.encoding.encoder import Encoder, gaps_of, inputs_of, missing_of
from pogp.encoding.imputer import Filled
from pogp.models.base import Model
from pogp.models.online import OnlineGP
from pogp.models.selftuning.factory import Made
from pogp.models.selftuning.warmup import LEAST
from pogp.trace import Trace


class Learned(NamedTuple):
    """The result of learning rows."""

    inputs: Array
    """(n, d), with imputed values."""
    trace: Trace
    filled: int
    """The number of rows with missing values."""
    missing: NDArray[np.bool_]
    """(n, d), which values were missing in these rows."""


def learn(
    model: Made,
    encoder: Encoder,
    cells: Sequence[Cells],
    y: ArrayLike,
    weight: ArrayLike | None = None,
) -> Learned:
    """Let a model learn rows, given by columns, with optional weights.

    Missing values are imputed; `OnlineGP` adds their uncertainty to the noise of the row. All rows
    are learned or, after an error, none.
    """
    trial = encoder.copy()
    filled = trial.learn(cells)
    X, gaps = inputs_of(filled, encoder.dimension), gaps_of(filled)
    if isinstance(model, OnlineGP) and gaps.any():
        around = [each.points() if each.gap else None for each in filled]
        trace = model.learn(X, y, weight, around=around)
    else:
        trace = model.learn(X, y, weight)
    encoder.columns, encoder.imputer = trial.columns, trial.imputer
    return Learned(X, trace, int(gaps.sum()), missing_of(filled, encoder.dimension))


def fit(
    model: Made,
    encoder: Encoder,
    cells: Sequence[Cells],
    y: ArrayLike,
    weight: ArrayLike | None = None,
) -> Made:
    """Fit a new model to all rows, and return it."""
    encoder.prime(cells)
    if isinstance(model, OnlineGP):
        learn(model, encoder, cells, y, weight)
        model.settle()
        return model
    return model.fit(inputs_of(encoder.learn(cells), encoder.dimension), y, weight)


def predict(
    model: Model, encoder: Encoder, cells: Sequence[Cells], latent: bool = False
) -> tuple[Array, Array]:
    """Return the mean and the variance of y for rows given by columns.

    For a row with missing values they are those of the mixture of the predictions at its points.
    """
    return mixed(model, fill(model, encoder, cells), encoder.dimension, latent)


def fill(model: Model, encoder: Encoder, cells: Sequence[Cells]) -> list[Filled]:
    """Impute rows to predict. At rest they do not follow the last row that was learned."""
    return encoder.fill(cells, isinstance(model, OnlineGP) and model.resting)


def mixed(
    model: Model, filled: Sequence[Filled], dimension: int, latent: bool = False
) -> tuple[Array, Array]:
    """Return mean and variance of y at rows, averaged over the points of each."""
    gaps = gaps_of(filled)
    if isinstance(model, OnlineGP) and gaps.any():
        around = [each.points() if each.gap else None for each in filled]
        return model.predict(inputs_of(filled, dimension), latent, around=around)
    mean, variance = model.predict(inputs_of(filled, dimension), latent)
    if not gaps.any():
        return mean, variance
    mean, variance = mean.copy(), variance.copy()
    places = np.flatnonzero(gaps).tolist()
    points = [filled[i].points() for i in places]
    means, variances = model.predict(np.vstack(points), latent)
    ends = np.cumsum([len(each) for each in points])
    for i, end, count in zip(places, ends, map(len, points), strict=True):
        rows = slice(end - count, end)
        mean[i] = means[rows].mean(axis=0)
        variance[i] = variances[rows].mean(axis=0) + means[rows].var(axis=0)
    return mean, variance


class RowByRow:
    """A model that learns each row first, and then returns the prediction made before.

    The trace of learning has this prediction, so that it is not computed twice.
    """

    def __init__(self, model: Made, filled: Sequence[Filled], level: float) -> None:
        self._model = model
        self._filled = filled
        self._level = level
        self.gaps = int(gaps_of(filled).sum())
        self.missing = missing_of(filled, len(filled[0].row) if filled else 0)
        self.seen = model.seen

    def samples(self, y: Array) -> Iterator[tuple[Array, float]]:
        """Yield inputs and targets; the other methods are about the last row."""
        for row, target in zip(self._filled, y.tolist(), strict=True):
            self.seen = self._model.seen
            self._reach, told = self._model.reach(self._level), None
            if self.seen < LEAST:
                told = np.nan, np.nan
            elif row.gap and not isinstance(self._model, OnlineGP):
                told = predict_row(self._model, row)  # it is learned without its uncertainty
            self._stuck = self._model.is_stuck(target)
            self._trace = learn_row(self._model, row, [target])
            self._moments = told or (self._trace.mean[0], self._trace.variance[0])
            yield row.row, target

    def predict(self, x: Array) -> tuple[Any, Any]:
        """Return the mean and the variance of the row before it was learned."""
        return self._moments

    def reach(self, level: float) -> Any:
        """Return half the width of the band before the row was learned, in deviations."""
        return self._reach

    def is_stuck(self, y: ArrayLike) -> bool:
        """Return whether the target repeated that of a failed sensor."""
        return self._stuck

    def learn(self, X: Array, y: ArrayLike) -> Trace:
        """Return the trace of the row."""
        return self._trace


class Encoded:
    """A model for raw rows one at a time: each is encoded, predicted and then learned.

    The encoder learns each row together with the model. A new category is a missing value in the
    prediction, and known afterwards.
    """

    def __init__(self, model: Model, encoder: Encoder) -> None:
        self._model = model
        self._encoder = encoder

    @property
    def seen(self) -> int:
        """The number of samples learned."""
        return self._model.seen

    def predict(self, x: Array) -> tuple[Any, Any]:
        """Return the mean and the variance of the row, NaN before the scale of y is known."""
        mean, variance = predict_row(self._model, self._row)
        known = self.seen >= LEAST or not isinstance(self._model, Made)
        return (mean, variance) if known else (mean + np.nan, variance + np.nan)

    def reach(self, level: float) -> Any:
        """Return half the width of the band, in deviations."""
        return self._model.reach(level)

    def is_stuck(self, y: ArrayLike) -> bool:
        """Return whether the target repeats that of a failed sensor."""
        return self._model.is_stuck(y)

    def samples(self, rows: Iterable[tuple[Sequence[object], Any]]) -> Iterator[tuple[Array, Any]]:
        """Yield inputs and targets; the last row is the one to predict and learn."""
        count = len(self._encoder.columns)
        for cells, target in rows:
            if len(cells) != count:
                raise ValueError(f"a row must have {count} inputs, got {len(cells)}")
            self._cells: list[Cells] = [[cell] for cell in cells]
            self._row = fill(self._model, self._encoder, self._cells)[0]
            yield self._row.row, target

    def learn(self, X: Array, y: ArrayLike) -> Trace:
        """Learn the row."""
        trial = self._encoder.copy()
        row = trial.learn_row(self._cells, self._row)
        trace = learn_row(self._model, row, y)
        self._encoder.columns, self._encoder.imputer = trial.columns, trial.imputer
        return trace


def predict_row(model: Model, row: Filled) -> tuple[Any, Any]:
    """Return the mean and the variance of y at one row."""
    if not row.gap:
        return model.predict(row.row)
    mean, variance = mixed(model, [row], len(row.row))
    return mean[0], variance[0]


def interval_row(model: Model, row: Filled, level: float) -> tuple[Any, Any]:
    """Return the band of y at one row."""
    mean, variance = predict_row(model, row)
    half = model.reach(level) * np.sqrt(variance)
    return mean - half, mean + half


def learn_row(model: Model, row: Filled, y: ArrayLike) -> Trace:
    """Let a model learn one row and its target (1,) or (1, k)."""
    if isinstance(model, OnlineGP) and row.gap:
        return model.learn(row.row[None], y, around=[row.points()])
    return model.learn(row.row[None], y)
