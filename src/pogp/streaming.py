"""Follow a stream row by row: predict each row, judge it, then learn it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple, Protocol

import numpy as np

from pogp import validation
from pogp.alarms import Alarm
from pogp.arrays import Array
from pogp.encoding import Encoder
from pogp.encoding.columns import is_missing
from pogp.encoding.model import Encoded
from pogp.models.base import Model
from pogp.models.selftuning.warmup import LEAST
from pogp.trace import Trace

LEVEL = 0.95


@dataclass(slots=True)
class Step:
    """One row of a stream, as the model saw it before learning it.

    For a model of several outputs, the fields of the prediction are arrays of one number each, and
    `surprise` is that of the output that surprised most.
    """

    row: int
    """The position in the stream, from 1."""
    inputs: Array
    target: Any
    """The observed target; NaN if there is none yet, and the row is then only predicted."""
    mean: Any
    """The prediction. `OnlineGP` and `SelfTuning` have none for the first two rows, NaN: one target
    does not show the scale of the others."""
    deviation: Any
    """The standard deviation of the prediction, noise included."""
    lower: Any
    upper: Any
    """The ends of the band that holds the target with the given probability."""
    surprise: float
    """By how many deviations the target missed the mean; NaN without a target, and for the first
    two rows."""
    alarm: bool
    """Whether the surprise is an alarm, or the sensor of the target is stuck."""
    learn: bool = True
    """Set it to False, before the next step is asked for, and the row is not learned."""
    trace: Trace | None = None
    """What learning the row changed, once it is learned."""


def stream(
    model: Model,
    rows: Iterable[Any],
    *,
    target: str | None = None,
    inputs: Sequence[str] | None = None,
    times: Iterable[str] = (),
    encoder: Encoder | None = None,
    alarm: float | Alarm = 0.01,
    level: float = LEVEL,
) -> Iterator[Step]:
    """Yield a `Step` for each row: its prediction, its surprise and whether it is an alarm.

    A step is yielded before its row is learned. The row is learned when the next step is asked
    for, unless `step.learn` was set to False.

    Parameters
    ----------
    model
        Any model that learns from a stream.
    rows
        Any iterable of pairs (x, y), of tuples whose last is the target, of mappings from names to
        cells, or of Arrow record batches or tables. A target of None or NaN is predicted and not
        learned. A missing input is filled, which adds to the variance; times become elapsed time
        and places in the day, the week and the year; texts become categories. What a column holds
        is decided by its first value. A text among numbers is a missing input, with a warning.
    target
        The name of the target, for rows with names.
    inputs
        The names of the inputs in the model's order, for rows with names. By default all other
        names of the first row, in their order.
    times
        The names of inputs that are times though the first row does not tell: Unix time, or empty.
    encoder
        What makes inputs of the columns, `pogp.encoding.Encoder`, in place of one that begins with
        the first row: give it to a further stream of the same model.
    alarm
        The share of ordinary rows that may raise a false alarm, or an `Alarm` to continue with.
    level
        The probability of the band from `lower` to `upper`.

    >>> import numpy as np, pogp
    >>> rng = np.random.default_rng(0)
    >>> rows = [{"x": x, "y": np.sin(x) + 0.1 * rng.normal()} for x in rng.uniform(0, 6, 400)]
    >>> rows[300]["y"] += 2.0
    >>> [step.row for step in pogp.stream(pogp.OnlineGP(), rows, target="y") if step.alarm]
    [301]
    """
    if not isinstance(model, Model):
        raise TypeError(f"model must be one of pogp, such as pogp.OnlineGP(), got {model!r}")
    judge = alarm if isinstance(alarm, Alarm) else Alarm(alarm)
    validation.probability("level", level)
    return _followed(model, _samples(rows, target, inputs), set(times), encoder, judge, level)


def _followed(
    model: Model,
    samples: Iterator[_Sample],
    times: set[str],
    encoder: Encoder | None,
    alarm: Alarm,
    level: float,
) -> Iterator[Step]:
    """Yield the steps of raw samples; the first one decides the kinds of the columns."""
    first = next(samples, None)
    if first is None:
        return
    if encoder is None:
        names = first.names or range(len(first.cells))
        cells = [[cell] for cell in first.cells]
        encoder = Encoder.of(names, cells, times, numbers_in_text=True)
    encoded = Encoded(model, encoder)
    pairs = ((sample.cells, sample.target) for sample in chain([first], samples))
    yield from follow(encoded, encoded.samples(pairs), alarm, level)


class Learner(Protocol):
    """The interface of a model that `follow` needs."""

    @property
    def seen(self) -> int:
        """Samples learned."""
        ...

    def predict(self, x: Array) -> tuple[Any, Any]:
        """Return the mean and the variance of y at x."""
        ...

    def reach(self, level: float) -> Any:
        """Return half the width of the band of y, in deviations."""
        ...

    def is_stuck(self, y: Any) -> bool:
        """Return whether the target repeats that of a failed sensor."""
        ...

    def learn(self, X: Array, y: Array) -> Trace:
        """Learn one sample."""
        ...


def follow(
    model: Learner,
    samples: Iterable[tuple[Any, Any]],
    alarm: Alarm,
    level: float = LEVEL,
    first: int = 1,
) -> Iterator[Step]:
    """Yield a step for each sample (x, y), and learn it afterwards; rows count from `first`."""
    for row, (x, y) in enumerate(samples, first):
        step = _judged(model, row, np.asarray(x, dtype=np.float64), y, alarm, level)
        yield step
        if step.learn and not _missing(step.target):
            step.trace = model.learn(step.inputs[None], np.asarray(step.target)[None])


def _judged(model: Learner, row: int, x: Array, y: Any, alarm: Alarm, level: float) -> Step:
    mean, variance = model.predict(x)
    target = np.asarray(np.nan if y is None else y, dtype=np.float64)[()]
    if np.isinf(target).any():
        raise ValueError(f"row {row}: the target must be a finite number, got {y!r}")
    deviation = np.sqrt(variance)
    half = model.reach(level) * deviation
    lower, upper = mean - half, mean + half
    if _missing(target) or model.seen < LEAST:
        return Step(row, x, target, mean, deviation, lower, upper, np.nan, False)
    surprise = float(np.max(np.abs(target - mean) / deviation))
    rings = alarm.learn(surprise) or model.is_stuck(target)
    return Step(row, x, target, mean, deviation, lower, upper, surprise, rings)


def _missing(target: Any) -> bool:
    return bool(np.isnan(target).any())


# ---- rows of many kinds -------------------------------------------------------------------------


class _Sample(NamedTuple):
    """The cells of a row, and their names if they have some."""

    cells: Sequence[object]
    target: Any
    names: Sequence[str] | None = None


def _samples(
    rows: Iterable[Any], target: str | None, inputs: Sequence[str] | None
) -> Iterator[_Sample]:
    """Return rows as cells and target."""
    if hasattr(rows, "columns") and hasattr(rows, "shape"):  # iterating gives its columns
        raise ValueError(
            f"rows must be an iterable of rows, got a {type(rows).__name__}: give its rows as "
            "dicts, df.to_dict('records') in pandas, df.to_dicts() in Polars, or [table] for Arrow"
        )
    for number, row in enumerate(_single(rows), start=1):
        if isinstance(row, Mapping):
            if target is None or (number == 1 and target not in row):
                names = ", ".join(map(str, row))
                raise ValueError(f"target must be one of the names {names}, got {target!r}")
            inputs = inputs or [name for name in row if name != target]
            yield _Sample(_picked(row, inputs), _target(row.get(target), number, target), inputs)
        elif len(row) == 2 and isinstance(row[0], Mapping):
            inputs = inputs or list(row[0])
            yield _Sample(_picked(row[0], inputs), row[1], inputs)
        elif len(row) == 2 and not isinstance(row[0], str) and np.ndim(row[0]) > 0:
            yield _Sample(_listed(row[0]), row[1])
        elif len(row) > 1:
            yield _Sample(_listed(row[:-1]), row[-1])
        else:
            raise ValueError(f"a row must have inputs and a target, got {row!r}")


def _target(cell: Any, row: int, name: str) -> Any:
    """Return a target, None if the cell stands for a missing one; text may be a number."""
    if not isinstance(cell, str):
        return cell
    if is_missing(cell):
        return None
    try:
        return float(cell)
    except ValueError:
        raise ValueError(f"row {row}: {name!r} must be a number, got {cell!r}") from None


def _listed(cells: Any) -> list[object]:
    return cells.tolist() if isinstance(cells, np.ndarray) else list(cells)


def _single(rows: Iterable[Any]) -> Iterator[Any]:
    """Return rows one by one, those of Arrow batches and tables as mappings."""
    for row in rows:
        if hasattr(row, "to_pylist") and hasattr(row, "schema"):
            yield from row.to_pylist()
        else:
            yield row


def _picked(row: Mapping[str, Any], inputs: Sequence[str]) -> list[object]:
    """Return the cells of inputs, None where the row has none."""
    if not any(name in row for name in inputs):
        raise ValueError(f"a row has no {', '.join(map(str, inputs))}: {dict(row)!r}")
    return [row.get(name) for name in inputs]
