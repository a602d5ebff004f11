"""A model for each key: of a table at rest, and of a stream (Structured Streaming)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.types import StructType

import pogp
from pogp.alarms import Alarm
from pogp.arrays import LARGEST, Array
from pogp.models.selftuning.factory import made
from pogp.spark.parts import require_numeric
from pogp.sums.columns import require_columns

STATE = "model binary, alarm string, skipped long"
ABSORBING: dict[str, Any] = {
    "max_size": 50,
    "warmup": 100,
    "scale": True,
    "reservoir": 0,
}
"""Defaults for the models of a fleet: small, and without raw samples."""


def learn_by_key(
    df: DataFrame,
    key: str,
    order: str,
    *,
    target: str,
    inputs: Sequence[str] | None = None,
    method: str = "absorbing",
    skip: bool = False,
    **options: Any,
) -> DataFrame:
    """Return a row for each key: the key, its model as bytes, the rows learned and those skipped.

    Parameters
    ----------
    df
        The table.
    key, order
        The column of keys, each of which has its own model, and the column by which its rows are
        ordered before they are learned.
    target, inputs
        The column to predict, and those to predict it from; by default all others.
    method, options
        As in `pogp.sklearn.POGRegressor`: "absorbing" by default, with `max_size=50`,
        `warmup=100`, `scale=True` and `reservoir=0` (no raw samples) unless given. `kernel` and
        `noise` together are used as they are; then nothing is tuned.
    skip
        Leave out and count rows with a value that is missing or not finite, instead of raising an
        error with the key and the place in the order.

    `pogp.from_bytes(row.model)` gives the model back.
    """
    fleet = _Fleet(df, key, order, target, inputs, method, 0.01, skip, options)

    def learn(table: pa.Table) -> pa.Table:
        frame = table.to_pandas()
        member = fleet.beginning()
        member.follow(frame)
        return pa.table(
            {
                key: table[key][:1],
                "model": pa.array([member.model.to_bytes()], pa.binary()),
                "rows": pa.array([len(frame) - member.skipped], pa.int64()),
                "skipped": pa.array([member.skipped], pa.int64()),
            }
        )

    schema = StructType([df.schema[key]])
    schema = schema.add("model", "binary").add("rows", "long").add("skipped", "long")
    return df.select(*fleet.used).groupBy(key).applyInArrow(learn, schema)


def learn_stream(
    df: DataFrame,
    key: str,
    order: str,
    *,
    target: str,
    inputs: Sequence[str] | None = None,
    method: str = "absorbing",
    alarm: float = 0.01,
    skip: bool = False,
    models: bool = False,
    **options: Any,
) -> DataFrame:
    """Return each row of a stream with its prediction, its surprise and whether it is an alarm.

    The columns `mean`, `deviation`, `surprise` (by how many deviations the target missed the mean)
    and `alarm` are added; the row is predicted before it is learned. `alarm` is the share of
    ordinary rows that may raise a false alarm. With `models` the last row of each key in each
    micro-batch also has the key's model as bytes. What is not said here is as in `learn_by_key`.

    The model's bytes are the state of the key: after a failure the query continues from its
    checkpoint with the same model, bit for bit. Rows are put in order within a micro-batch; a row
    that comes in a later one is learned later. With `skip` a bad row comes out without a
    prediction.
    """
    fleet = _Fleet(df, key, order, target, inputs, method, alarm, skip, options)
    names = [*fleet.used, "mean", "deviation", "surprise", "alarm", *(["model"] if models else [])]

    def learn(
        _: tuple[Any, ...], frames: Iterable[pd.DataFrame], state: GroupState
    ) -> Iterator[pd.DataFrame]:
        member = fleet.remembered(*state.get) if state.exists else fleet.beginning()
        out = member.follow(pd.concat(list(frames), ignore_index=True))
        data, judge = member.model.to_bytes(), json.dumps(member.alarm.state())
        state.update((data, judge, member.skipped))
        if models:
            out["model"] = [None] * (len(out) - 1) + [data]
        yield out[names]

    schema = StructType([df.schema[name] for name in fleet.used])
    schema = schema.add("mean", "double").add("deviation", "double")
    schema = schema.add("surprise", "double").add("alarm", "boolean")
    if models:
        schema = schema.add("model", "binary")
    return (
        df.select(*fleet.used)
        .groupBy(key)
        .applyInPandasWithState(learn, schema, STATE, "append", GroupStateTimeout.NoTimeout)
    )


class _Member:
    """One key: its model, its alarm and the number of skipped rows."""

    def __init__(self, fleet: _Fleet, model: Any, alarm: Alarm, skipped: int) -> None:
        self.fleet, self.model, self.alarm, self.skipped = fleet, model, alarm, skipped

    def follow(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Learn some rows; return them in order, with what was predicted before each."""
        fleet = self.fleet
        frame = frame.sort_values(fleet.order, kind="stable", ignore_index=True)
        numbers = frame[[*fleet.inputs, fleet.target]].to_numpy(dtype=np.float64, na_value=np.nan)
        good = np.asarray((np.abs(numbers) < LARGEST).all(axis=1))
        if not good.all() and not fleet.skip:
            row = frame.iloc[int(np.argmin(good))]
            raise ValueError(
                f"{fleet.key} {row[fleet.key]!r}, {fleet.order} {row[fleet.order]!r}: values must "
                f"be finite and below {LARGEST:g} in size, got {numbers[np.argmin(good)].tolist()}"
            )
        self.skipped += int(np.count_nonzero(~good))
        found = np.full((len(frame), 3), np.nan)
        alarms = np.zeros(len(frame), dtype=bool)
        if good.any():
            found[good], alarms[good] = self._judged(numbers[good])
        columns = dict(zip(("mean", "deviation", "surprise"), found.T, strict=True))
        return frame.assign(**columns, alarm=alarms)

    def _judged(self, rows: Array) -> tuple[Array, Any]:
        first = self.model.seen == 0
        trace = self.model.learn(rows[:, :-1], rows[:, -1])
        deviation = np.sqrt(trace.variance)
        surprise = np.abs(rows[:, -1] - trace.mean) / deviation
        if first:  # before the first sample nothing is known
            surprise[0] = np.nan
        alarms = [bool(np.isfinite(s)) and self.alarm.learn(float(s)) for s in surprise]
        return np.column_stack([trace.mean, deviation, surprise]), alarms


class _Fleet:
    """The settings that the models of all keys share."""

    def __init__(
        self,
        df: DataFrame,
        key: str,
        order: str,
        target: str,
        inputs: Sequence[str] | None,
        method: str,
        rate: float,
        skip: bool,
        options: dict[str, Any],
    ) -> None:
        special = (key, order, target)
        chosen = [n for n in df.columns if n not in special] if inputs is None else list(inputs)
        require_columns([*special, *chosen], df.columns)
        if not chosen or target in chosen or key in (order, target) or order == target:
            raise ValueError(
                f"key, order, target and at least one input must be different columns; "
                f"got {key!r}, {order!r}, {target!r} and {chosen}"
            )
        for name in [target, *chosen]:
            require_numeric(df, name)
        self.key, self.order, self.target = key, order, target
        self.inputs, self.skip = tuple(chosen), bool(skip)
        self.method = method
        self.options = {**(ABSORBING if method == "absorbing" else {}), **options}
        self.rate = rate
        self.beginning()  # raises here, and not on an executor, if anything is wrong

    @property
    def used(self) -> list[str]:
        """The columns that are read, each once."""
        return list(dict.fromkeys([self.key, self.order, *self.inputs, self.target]))

    def beginning(self) -> _Member:
        """Return a new key."""
        return _Member(self, made(self.method, **self.options), Alarm(self.rate), 0)

    def remembered(self, data: bytes, alarm: str, skipped: int) -> _Member:
        """Return a key from its state."""
        return _Member(self, pogp.from_bytes(bytes(data)), Alarm.of(json.loads(alarm)), skipped)
