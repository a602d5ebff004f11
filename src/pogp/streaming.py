"""Follow a stream row by row: predict each row, judge it, then learn it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pogp import validation
from pogp.alarms import Alarm
from pogp.arrays import Array
from pogp.models.base import Model
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
    deviation: Any
    """The standard deviation of the prediction, noise included."""
    lower: Any
    upper: Any
    """The ends of the band that holds the target with the given probability."""
    surprise: float
    """By how many deviations the target missed the mean; NaN without a target, and at the first."""
    alarm: bool
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
        Any iterable of pairs (x, y), of tuples of numbers whose last is the target, of mappings
        from names to numbers, or of Arrow record batches or tables. A target of None or NaN is
        predicted and not learned.
    target
        The name of the target, for rows with names.
    inputs
        The names of the inputs in the model's order, for rows with names. By default all other
        names of the first row, in their order.
    alarm
        The share of ordinary rows that may raise a false alarm, or an `Alarm` that goes on.
    level
        The probability of the band from `lower` to `upper`.

    >>> import numpy as np, pogp
    >>> rng = np.random.default_rng(0)
    >>> rows = [{"x": x, "y": np.sin(x) + 0.1 * rng.normal()} for x in rng.uniform(0, 6, 400)]
    >>> rows[300]["y"] += 2.0
    >>> [step.row for step in pogp.stream(pogp.OnlineGP(), rows, target="y") if step.alarm]
    [301]
    """
    judge = alarm if isinstance(alarm, Alarm) else Alarm(alarm)
    validation.probability("level", level)
    return follow(model, _samples(rows, target, inputs), judge, level)


def follow(
    model: Model,
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


def _judged(model: Model, row: int, x: Array, y: Any, alarm: Alarm, level: float) -> Step:
    mean, variance = model.predict(x)
    lower, upper = model.interval(x, level)
    target = np.asarray(np.nan if y is None else y, dtype=np.float64)[()]
    deviation = np.sqrt(variance)
    if _missing(target) or model.seen == 0:  # before the first sample nothing is known
        return Step(row, x, target, mean, deviation, lower, upper, np.nan, False)
    surprise = float(np.max(np.abs(target - mean) / deviation))
    return Step(row, x, target, mean, deviation, lower, upper, surprise, alarm.learn(surprise))


def _missing(target: Any) -> bool:
    return bool(np.isnan(target).any())


# ---- rows of many kinds -------------------------------------------------------------------------


def _samples(
    rows: Iterable[Any], target: str | None, inputs: Sequence[str] | None
) -> Iterator[tuple[Any, Any]]:
    """Return rows as pairs of inputs and target."""
    for row in _single(rows):
        if isinstance(row, Mapping):
            if target is None:
                raise ValueError("target must name the target of rows with names, got None")
            inputs = inputs or [name for name in row if name != target]
            yield _picked(row, inputs), row.get(target)
        elif len(row) == 2 and np.ndim(row[0]) > 0:
            yield row
        elif len(row) == 2 and isinstance(row[0], Mapping):
            inputs = inputs or list(row[0])
            yield _picked(row[0], inputs), row[1]
        elif len(row) > 1:
            yield row[:-1], row[-1]
        else:
            raise ValueError(f"a row must have inputs and a target, got {row!r}")


def _single(rows: Iterable[Any]) -> Iterator[Any]:
    """Return rows one by one, those of Arrow batches and tables as mappings."""
    for row in rows:
        if hasattr(row, "to_pylist") and hasattr(row, "schema"):
            yield from row.to_pylist()
        else:
            yield row


def _picked(row: Mapping[str, Any], inputs: Sequence[str]) -> list[Any]:
    missing = [name for name in inputs if row.get(name) is None]
    if missing:
        raise ValueError(f"a row has no {', '.join(missing)}: {dict(row)!r}")
    return [row[name] for name in inputs]
