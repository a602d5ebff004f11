"""Dask: one model of a dataframe in many partitions, and its predictions.

`learn` draws a sample, finds points, a kernel and a noise from it, and adds the sums of all
partitions (`pogp.sums`). The result is the regression on the points of all rows, exactly, and the
same partitions give the same bits, on any number of workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from dask.base import compute
from dask.delayed import delayed

import pogp
from pogp import validation
from pogp.models.absorbing import AbsorbingPOG
from pogp.models.base import Model
from pogp.sums.columns import (
    CALIBRATION,
    FAN,
    SAMPLE,
    Columns,
    Job,
    added,
    finished,
    job,
    planned,
    require_columns,
)
from pogp.sums.drawing import Drawn
from pogp.sums.parts import Sums

__all__ = ["learn", "predict"]


def learn(
    ddf: Any,
    target: str | Sequence[str],
    *,
    inputs: Sequence[str] | None = None,
    noise: str | None = None,
    weight: str | None = None,
    max_size: int = 300,
    kernel: object = None,
    scale: bool = True,
    sample: int = SAMPLE,
    calibration: int = CALIBRATION,
    skip: bool = False,
    seed: int = 0,
) -> AbsorbingPOG:
    """Return a model of all rows of a Dask dataframe.

    Parameters
    ----------
    ddf
        The dataframe.
    target
        The column to predict, or several of them.
    inputs
        The columns to predict it from; by default all others.
    noise, weight
        Columns with the noise variance of each row, and with how many rows it stands for.
    max_size, kernel, scale, seed
        As in `pogp.sums.plan`.
    sample, calibration
        How many rows the points are found from, and how many others the variances are calibrated
        on; both are drawn at random.
    skip
        Leave out rows with a value that is missing or not finite, and count them. By default such
        a row raises ValueError with its partition and its number there.
    """
    columns = Columns.of([str(name) for name in ddf.columns], target, inputs, noise, weight)
    work = job(columns, sample, calibration, skip, seed)
    parts = ddf[columns.used].to_delayed()
    rows = [delayed(_drawn)(work, part, number) for number, part in enumerate(parts)]
    options = {"max_size": max_size, "kernel": kernel, "scale": scale, "seed": seed}
    plan, held_out = planned(_total(rows, Drawn), sample, **options)
    encoded = delayed(plan.to_bytes())
    sums = [delayed(_summed)(work, part, number, encoded) for number, part in enumerate(parts)]
    return finished(plan, _total(sums, Sums), held_out)


def predict(
    model: Model,
    ddf: Any,
    *,
    inputs: Sequence[str] | None = None,
    mean: str = "mean",
    deviation: str = "deviation",
) -> Any:
    """Return the dataframe with two more columns: the predicted mean, and its standard deviation.

    `inputs` are the columns to predict from, by default all. For several outputs the columns are
    `mean_0`, `deviation_0`, `mean_1`, ….
    """
    names = [str(name) for name in ddf.columns] if inputs is None else list(inputs)
    require_columns(names, ddf.columns)
    dimension = model.dictionary.shape[1]
    if dimension and len(names) != dimension:
        raise ValueError(f"the model has {dimension} inputs, got {len(names)}: {', '.join(names)}")
    call = (model.to_bytes(), names, mean, deviation)
    return ddf.map_partitions(_predicted, *call, meta=_predicted(ddf._meta, *call))


def _total(parts: list[Any], kind: type[Sums] | type[Drawn]) -> bytes:
    """Return the total of parts on the workers, by a tree that depends on their number alone."""
    if not parts:
        raise ValueError("the dataframe has no partitions")
    while len(parts) > 1:
        groups = [parts[start : start + FAN] for start in range(0, len(parts), FAN)]
        parts = [delayed(added)(group, kind) for group in groups]
    return bytes(compute(parts[0])[0])  # type: ignore[no-untyped-call]


def _drawn(work: Job, frame: Any, number: int) -> bytes:
    return work.draw([frame], _column, number)


def _summed(work: Job, frame: Any, number: int, plan: bytes) -> bytes:
    return work.sums([frame], _column, number, plan)


def _column(frame: Any, name: str) -> Any:
    values = frame[name]
    if values.dtype.kind in "biuf":
        return values.to_numpy(dtype=np.float64, na_value=np.nan)
    return values.to_numpy()


def _predicted(frame: Any, data: bytes, inputs: list[str], mean: str, deviation: str) -> Any:
    model = pogp.from_bytes(data)
    X = frame[inputs].to_numpy(dtype=np.float64)
    validation.queries(X, None)
    means, variances = model.predict(X)
    found = {mean: means, deviation: np.sqrt(variances)}
    if means.ndim == 2:
        found = {
            f"{name}_{output}": values[:, output]
            for output in range(means.shape[1])
            for name, values in found.items()
        }
    return frame.assign(**found)
