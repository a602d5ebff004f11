"""The journal of a stream in bounded memory: sums of traces over segments."""

from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from pogp import validation
from pogp.arrays import LARGEST, Array, Indices
from pogp.report.segments import CELLS, COLUMNS, Segments
from pogp.reservoir import Reservoir
from pogp.trace import Trace

SEGMENTS = 128
"""The most segments of a stream. Their length doubles as it grows."""
OUTLIER, START = 5.0, 50
"""After `START` samples, a target more than `OUTLIER` deviations away is an outlier."""
AFTER = 3
"""After an outlier so many samples are judged by the variance before it."""
LATEST = 256
"""Outliers whose places are kept."""
SAMPLES = 256
"""Raw samples that are kept: a uniform draw of the stream."""
POWER = 9
"""Sample t of T weighs (t/T)⁹: the last tenth of the stream has two thirds of the weight."""
MOST = 5.0
"""Errors of more deviations than this are clipped to it."""


class Journal:
    """The errors of predictions made before each sample was learned, and the cost of learning it.

    Segment i holds the samples from i·width to (i + 1)·width. Where there are too many, each two
    neighbours become one. For any length of the stream, and any division into chunks, the
    journal has at most 128 segments, and at least 64 once it was full. The first sample of all is
    not scored: nothing was known of it. The stream continues `after` a number of samples; `seed` is
    of the raw samples that are kept.

    >>> import numpy as np, pogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (1000, 1))
    >>> y, model, journal = np.sin(X[:, 0]), pogp.POG(pogp.RBF(), 0.01), Journal()
    >>> journal.add(X, y, model.learn(X, y), seconds=0.01)
    >>> len(journal.segments()), journal.width, bool(journal.recent().error[0] < 0.01)
    (125, 8, True)
    """

    def __init__(self, *, after: int = 0, seed: int = 0) -> None:
        self.after = validation.count("after", after, 0)
        self.seed = validation.seed(seed)
        self.seen = 0
        self.width = 1
        self._prepare(0, 0)

    def _prepare(self, dimension: int, outputs: int) -> None:
        """Reserve memory for samples with these numbers of inputs and outputs."""
        self.dimension, self.outputs = dimension, outputs
        self.__dict__.pop("samples", None)
        # Beside the columns: loss, outliers, and for each output the squared errors of the model,
        # of the mean so far and of the last target; then these errors and the loss of outliers,
        # which are not in the others: beside an error of 10²⁰ the others would be rounded away.
        self._sums = np.zeros((SEGMENTS, len(COLUMNS) + 3 + 6 * outputs))
        self._last = np.zeros(outputs)
        self.misfit = ErrorCorrelations(dimension + 2)
        self._cells = np.zeros((SEGMENTS, CELLS))
        self._leaning = np.zeros(SEGMENTS)
        self._slowest = np.zeros(SEGMENTS)
        self._rows = np.zeros(SEGMENTS)  # the number of the last row of a table, 0 if unknown
        self._missing = np.zeros((SEGMENTS, dimension))  # values of each input
        # Of each output: the first value, and of what was added to it the mean and the sum of
        # squares around that. A constant target has a sum of exactly zero.
        self._moments = np.zeros((3, outputs))
        # Of the targets that are not outliers: their number, and mean and squares as above.
        self._ordinary = np.zeros((3, outputs))
        # The variance predicted before the latest outliers, and the samples it is still used for.
        self._calm, self._alert = np.zeros(outputs), 0
        self.outliers = np.empty(0, dtype=np.int64)
        """The latest samples that are outliers, by their numbers from 1."""

    @cached_property
    def samples(self) -> Reservoir:
        """Raw samples of the stream."""
        # not by the numbers that data simulated with the same seed are made of
        own = int(np.random.SeedSequence([self.seed, SAMPLES]).generate_state(1)[0])
        return Reservoir(SAMPLES, self.dimension, self.outputs, own)

    @property
    def variance(self) -> Array:
        """The variance of each output over the whole stream."""
        return np.asarray(self._moments[2] / max(self.seen, 1))

    @property
    def ordinary_variance(self) -> Array:
        """The variance of each output without outliers; with them if the others do not vary."""
        count, _, squares = self._ordinary
        return np.where(squares > 0, squares / np.maximum(count, 1.0), self.variance)

    @property
    def centre(self) -> Array:
        """The mean of each output over the whole stream."""
        return np.asarray(self._moments[0] + self._moments[1])

    def add(
        self,
        X: ArrayLike,
        y: ArrayLike,
        trace: Trace,
        seconds: float,
        missing: NDArray[np.bool_] | None = None,
        rows: Indices | None = None,
    ) -> None:
        """Add samples in the order they were learned, and the seconds it took.

        `missing` (n, d) says which of the inputs were missing, and filled; `rows` (n,) has the
        numbers of the rows of a table, from 1.
        """
        seconds = validation.non_negative("seconds", seconds)
        target = () if trace.flat else (trace.outputs,)
        X, Y, _ = validation.vector_samples(X, y, self.dimension or None, target)
        if len(trace) != len(Y):
            raise ValueError(f"the trace must be of these {len(Y)} samples, got {trace!r}")
        if self.outputs not in (0, Y.shape[1]):
            raise ValueError(f"y must have {self.outputs} outputs as before, got {Y.shape[1]}")
        if len(Y) == 0:
            return
        if self.seen == 0:
            self._prepare(X.shape[1], Y.shape[1])
            self._moments[0] = Y[0]
        self._make_room(len(Y))
        outliers = self._note(Y, trace, seconds / len(Y))
        new = self.after + self.seen + 1 + np.flatnonzero(outliers)
        self.outliers = np.append(self.outliers, new)[-LATEST:]
        if rows is not None:
            np.maximum.at(self._rows, (self.seen + np.arange(len(Y))) // self.width, rows)
        if missing is not None and missing.any():
            np.add.at(self._missing, (self.seen + np.arange(len(Y))) // self.width, missing)
        values = Y - self._moments[0]
        _add_moments(self._moments[1:], self.seen, values)
        _add_moments(self._ordinary[1:], self._ordinary[0, 0], values[~outliers])
        self._ordinary[0] += len(Y) - np.count_nonzero(outliers)
        self.samples.add(X, Y)
        self.misfit.add(X, Y, trace, self.seen)
        self.seen += len(Y)

    def _make_room(self, count: int) -> None:
        while self.seen + count > SEGMENTS * self.width:
            self._sums = _paired(self._sums, np.add)
            self._cells = _paired(self._cells, np.add)
            self._leaning = _paired(self._leaning, np.add)
            self._missing = _paired(self._missing, np.add)
            self._slowest = _paired(self._slowest, np.maximum)
            self._rows = _paired(self._rows, np.maximum)
            self.width *= 2

    def _note(self, Y: Array, trace: Trace, pace: float) -> NDArray[np.bool_]:
        """Add each sample to the sums of its segment; return which are outliers."""
        first = int(self.after + self.seen == 0)
        errors, variances = Y - trace.means, _positive(trace.variances)
        # clipped so that no square overflows: the journal stays finite, and can be saved
        scores = np.clip(errors / np.sqrt(variances), -LARGEST, LARGEST)
        losses = (scores**2 + np.log(2 * np.pi * variances)).mean(axis=1) / 2
        outliers = self._outliers(errors, variances)
        by_mean, by_last = self._simple_errors(Y)
        for part in (errors, losses, by_mean, by_last):
            part[:first] = 0.0
        squares = np.vstack([errors.T, by_mean.T, by_last.T]) ** 2
        fields = [getattr(trace, name) for name in COLUMNS[:-1]]
        ordinary = (losses * ~outliers, outliers, *(squares * ~outliers))
        outlying = (*(squares * outliers), losses * outliers)
        columns = (*fields, np.full(len(Y), pace), *ordinary, *outlying)
        segment = (self.seen + np.arange(len(Y))) // self.width
        starts = np.flatnonzero(np.diff(segment, prepend=-1))
        touched = segment[starts]
        self._sums[touched] += np.add.reduceat(np.column_stack(columns), starts)
        self._slowest[touched] = np.maximum(self._slowest[touched], pace)
        cells = np.minimum((CELLS * ndtr(scores)).astype(np.int64), CELLS - 1)
        np.add.at(self._cells, (segment[first:, None], cells[first:]), 1.0)
        clipped = np.clip(scores, -MOST, MOST).sum(axis=1)
        np.add.at(self._leaning, segment[first:], clipped[first:])
        return np.asarray(outliers)

    def _outliers(self, errors: Array, variances: Array) -> NDArray[np.bool_]:
        """Return which samples are outliers.

        A surprise inflates the variance of the next samples, as the level may have changed. If it
        returns, the model is wrong once more and for the same reason: these are outliers too.
        """
        started = self.seen + np.arange(len(errors)) >= START
        sizes, judges = np.abs(errors), variances.copy()
        judges[: self._alert] = np.minimum(judges[: self._alert], self._calm)
        end = self._alert
        surprising = started & (sizes > OUTLIER * np.sqrt(variances)).any(axis=1)
        for i in np.flatnonzero(surprising).tolist():
            if i >= end:
                self._calm = variances[i].copy()
            end = i + 1 + AFTER
            judges[i + 1 : end] = np.minimum(judges[i + 1 : end], self._calm)
        self._alert = max(end - len(errors), 0)
        return np.asarray(started & (sizes > OUTLIER * np.sqrt(judges)).any(axis=1))

    def _simple_errors(self, Y: Array) -> tuple[Array, Array]:
        """Return the errors of predicting by the mean of earlier targets, and by the last one."""
        values = Y - self._moments[0]
        counts = np.maximum(self.seen + np.arange(len(Y)), 1)[:, None]
        before = self.seen * self._moments[1] + np.cumsum(values, axis=0) - values
        last = np.vstack([self._last, values[:-1]])
        self._last = values[-1]
        return values - before / counts, values - last

    def row(self, sample: float) -> int | None:
        """Return the row of the table that a sample was, None if it is not known.

        If rows of its segment were skipped, it is the nearest one in proportion.
        """
        number = -(-self.seen // self.width)
        rows, own = self._rows[:number], sample - self.after
        if not rows.all() or not 1 <= own <= self.seen:
            return None
        ends = np.minimum(self.width * np.arange(number + 1), self.seen)
        return round(float(np.interp(own, ends, np.append(0.0, rows))))

    @property
    def missing(self) -> Array:
        """The number of missing values of each input, (d,)."""
        return np.asarray(self._missing.sum(axis=0))

    def missing_shares(self, since: float) -> tuple[Array, Array]:
        """Return the share of missing values of each input before, and since, a sample."""
        number = -(-self.seen // self.width)
        ends = np.minimum(self.width * np.arange(1.0, number + 1), self.seen)
        counts, old = np.diff(ends, prepend=0.0), self.after + ends <= since
        before, now = (
            self._missing[:number][part].sum(axis=0) / max(counts[part].sum(), 1.0)
            for part in (old, ~old)
        )
        return before, now

    def segments(self) -> Segments:
        """Return the stream in segments of equal length; the last one may be shorter."""
        return self._segments(0, self.variance)

    def ordinary(self) -> Segments:
        """Return `segments`; if the stream has a few outliers, without them in errors and variance.

        Those of the last tenth are left in if they are many there: the stream may have changed.
        """
        segments = self.segments()
        if not segments.few_outliers:
            return segments
        recent = self.recent()
        many = recent.outliers.sum() > recent.few_outliers
        return self._segments(self.seen - many * recent.samples, self.ordinary_variance)

    def _segments(self, since: int, variance: Array) -> Segments:
        """Return the segments, without the outliers of the samples before `since`."""
        number = -(-self.seen // self.width)
        ends = np.minimum(self.width * np.arange(1.0, number + 1), self.seen)
        sums, loss = self._sums[:number], len(COLUMNS)
        outliers, left_in = sums[:, loss + 1], ends > since
        errors = sums[:, loss + 2 : -1].reshape(number, 2, 3, self.outputs)
        scored = errors[:, 0] + errors[:, 1] * left_in[:, None, None]
        squares, by_mean, by_last = np.moveaxis(scored, 1, 0)
        return Segments(
            ends=self.after + ends,
            counts=np.diff(ends, prepend=0.0),
            sums=sums[:, :loss].copy(),
            losses=sums[:, loss] + sums[:, -1] * left_in,
            outliers=outliers.copy(),
            left_out=outliers * ~left_in,
            squares=squares,
            by_mean=by_mean,
            by_last=by_last,
            cells=self._cells[:number].copy(),
            leaning=self._leaning[:number].copy(),
            slowest=self._slowest[:number].copy(),
            variance=variance,
        )

    def recent(self) -> Segments:
        """Return the last tenth of the stream, at least 50 samples if there are, as one segment."""
        return self.segments().last(max(self.seen / 10, min(self.seen, 50)))

    def recent_ordinary(self) -> Segments:
        """Return `recent`, without outliers as in `ordinary`."""
        return self.ordinary().last(self.recent().samples)

    def recent_outliers(self) -> int:
        """Return the number of outliers that `recent_ordinary` leaves out."""
        return int(self.recent_ordinary().left_out[0])

    def state(self) -> dict[str, Any]:
        """Return the state, as JSON can hold it."""
        number = -(-self.seen // self.width)
        return {
            "after": self.after,
            "seed": self.seed,
            "seen": self.seen,
            "width": self.width,
            "sums": self._sums[:number].tolist(),
            "cells": self._cells[:number].astype(int).tolist(),
            "leaning": self._leaning[:number].tolist(),
            "slowest": self._slowest[:number].tolist(),
            "rows": self._rows[:number].astype(int).tolist(),
            "missing": {
                str(j): self._missing[:number, j].astype(int).tolist()
                for j in np.flatnonzero(self._missing.any(axis=0)).tolist()
            },
            "moments": self._moments.tolist(),
            "ordinary": self._ordinary.tolist(),
            "last": self._last.tolist(),
            "calm": self._calm.tolist(),
            "alert": self._alert,
            "outliers": self.outliers.tolist(),
            "misfit": self.misfit.state(),
            "inputs": self.samples.inputs.tolist(),
            "targets": self.samples.targets.tolist(),
            "positions": self.samples.positions.tolist(),
        }

    @classmethod
    def of(cls, state: dict[str, Any]) -> Self:
        """Return the journal that `state` described."""
        try:
            journal = cls(after=state["after"], seed=state["seed"])
            journal.seen = validation.count("seen", state["seen"], 0)
            journal.width = validation.count("width", state["width"], 1)
            if journal.seen:
                journal._restore(state)
        except (IndexError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not the state of a journal: {error!r}") from error
        return journal

    def _restore(self, state: dict[str, Any]) -> None:
        kept = {name: np.array(state[name]) for name in ("inputs", "targets", "positions")}
        self._prepare(kept["inputs"].shape[1], kept["targets"].shape[1])
        reservoir = {f"reservoir_{name}": part for name, part in kept.items()}
        self.samples.restore(reservoir | {"reservoir_seen": self.seen})
        number = -(-self.seen // self.width)
        _fill(self._sums[:number], _with_outliers_apart(np.array(state["sums"]), self.outputs))
        _fill(self._cells[:number], state["cells"])
        _fill(self._leaning[:number], state.get("leaning", np.zeros(number)))
        _fill(self._slowest[:number], state["slowest"])
        _fill(self._rows[:number], state.get("rows", np.zeros(number)))
        for j, counts_of_input in state.get("missing", {}).items():
            _fill(self._missing[:number, int(j)], counts_of_input)
        _fill(self._moments, state["moments"])
        counts = np.full((1, self.outputs), float(self.seen))
        _fill(self._ordinary, state.get("ordinary", np.vstack([counts, self._moments[1:]])))
        _fill(self._last, state["last"])
        _fill(self._calm, state.get("calm", np.zeros(self.outputs)))
        self._alert = validation.count("alert", state.get("alert", 0), 0)
        self.outliers = np.array(state.get("outliers", []), dtype=np.int64).reshape(-1)[-LATEST:]
        for name, sums in state["misfit"].items():
            _fill(getattr(self.misfit, name), sums)


class ErrorCorrelations:
    """The correlation of |y − mean|/deviation with the inputs, the mean and the deviation.

    A model that is calibrated everywhere has none. Sums are weighted towards the latest samples, in
    a state that does not grow: m_t = m_{t−1} + 10/(t + 9)·(v_t − m_{t−1}) is the mean of v with
    weights (t/T)⁹, up to O(1/t).
    """

    def __init__(self, features: int) -> None:
        self.origin = np.zeros(features)
        self.moments = np.zeros((3, features))  # of the feature, its square, its product with size
        self.sizes = np.zeros(2)  # of the size of the error, and its square

    def add(self, X: Array, Y: Array, trace: Trace, seen: int) -> None:
        """Add samples; `seen` is the number of samples before them."""
        means, deviations = trace.means, np.sqrt(_positive(trace.variances))
        size = np.minimum(np.abs(Y - means) / deviations, MOST).mean(axis=1)
        features = np.column_stack([X, means.mean(axis=1), deviations.mean(axis=1)])
        if seen == 0:
            self.origin = features[0].copy()
        away = np.clip(features - self.origin, -LARGEST, LARGEST)
        rates = np.minimum((POWER + 1) / (seen + np.arange(1, len(Y) + 1) + POWER), 1.0)
        left = np.append(np.cumprod((1 - rates)[::-1])[::-1], 1.0)
        weights = rates * left[1:]
        self.moments = left[0] * self.moments + np.stack(
            [weights @ away, weights @ away**2, (weights * size) @ away]
        )
        self.sizes = left[0] * self.sizes + np.array([weights @ size, weights @ size**2])

    def correlations(self) -> Array:
        """Return the correlation with each input, with the mean and with the deviation."""
        mean, square, product = self.moments
        variance = np.maximum(square - mean**2, 0.0)
        spread = max(self.sizes[1] - self.sizes[0] ** 2, 0.0)
        scale = np.sqrt(variance * spread)
        known = variance > 1e-12 * square  # less is rounding
        return np.where(known, (product - mean * self.sizes[0]) / np.where(known, scale, 1.0), 0.0)

    def state(self) -> dict[str, list[float]]:
        """Return the state, as JSON can hold it."""
        return {name: getattr(self, name).tolist() for name in ("origin", "moments", "sizes")}


def _with_outliers_apart(sums: Array, outputs: int) -> Array:
    """Return sums; those of older files include outliers, and lack some or all sums of these."""
    first, errors = len(COLUMNS) + 2, 3 * outputs
    missing = first + 2 * errors + 1 - sums.shape[-1]
    if sums.ndim != 2 or missing not in (1, 1 + 2 * outputs, 1 + errors):
        return sums
    sums = np.pad(sums, ((0, 0), (0, missing)))
    if missing == 1 + errors:  # the outliers have unknown errors: they cannot be left out
        sums[:, first - 1] = 0.0
    total, outlying = np.split(sums[:, first:-1], 2, axis=1)
    total[...] = np.maximum(total - outlying, 0.0)
    return sums


def _fill(array: Array, values: ArrayLike) -> None:
    """Fill an array with finite values of the same shape."""
    found = np.array(values, dtype=np.float64)
    if found.shape != array.shape or not np.isfinite(found).all():
        raise ValueError(f"finite numbers of shape {array.shape} expected, got {found.shape}")
    array[...] = found


def _positive(variances: Array) -> Array:
    """Return variances, none of them zero, as those of tiny targets may be."""
    return np.maximum(variances, np.finfo(np.float64).tiny)


def _add_moments(moments: Array, seen: float, values: Array) -> None:
    """Add values to the mean and the sum of squares of those seen (Chan, Golub & LeVeque 1983)."""
    if len(values) == 0:
        return
    mean, squares = moments
    batch, total = values.mean(axis=0), seen + len(values)
    squares += ((values - batch) ** 2).sum(axis=0)
    squares += (batch - mean) ** 2 * seen * len(values) / total
    mean += (batch - mean) * len(values) / total


def _paired(parts: Array, join: np.ufunc) -> Array:
    """Join neighbours in pairs, and clear the second half."""
    halves = join(parts[::2], parts[1::2])
    return np.concatenate([halves, np.zeros_like(halves)])
