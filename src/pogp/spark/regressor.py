"""`POGRegressor` and `POGModel`: an Estimator and a Model of `pyspark.ml`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from pyspark import TaskContext
from pyspark.ml import Estimator, Model
from pyspark.ml.functions import vector_to_array
from pyspark.ml.linalg import VectorUDT
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import (
    HasFeaturesCol,
    HasLabelCol,
    HasPredictionCol,
    HasSeed,
    HasWeightCol,
)
from pyspark.ml.util import (
    DefaultParamsReadable,
    DefaultParamsReader,
    DefaultParamsWritable,
    DefaultParamsWriter,
    MLReadable,
    MLReader,
    MLWritable,
    MLWriter,
)
from pyspark.sql import Column, DataFrame, functions
from pyspark.sql.types import ArrayType, NumericType

import pogp
from pogp.arrays import LARGEST, Array
from pogp.models.absorbing import AbsorbingPOG
from pogp.spark.parts import require_numeric, total
from pogp.sums.columns import (
    CALIBRATION,
    SAMPLE,
    Columns,
    finished,
    job,
    planned,
    require_columns,
)
from pogp.sums.drawing import Drawn
from pogp.sums.parts import Sums

FEATURES, LABEL, WEIGHT, NOISE = "features", "label", "weight", "noise"
"""What the columns that are needed are called while learning."""


class _Columns(HasFeaturesCol, HasPredictionCol):
    """The columns that a prediction is made from and written to."""

    deviationCol = Param(  # noqa: N815
        Params._dummy(),
        "deviationCol",
        "column of the standard deviation of the prediction, noise included",
        TypeConverters.toString,
    )
    skipBadRows = Param(  # noqa: N815
        Params._dummy(),
        "skipBadRows",
        "leave out rows with a null or a number that is not finite, instead of raising an error",
        TypeConverters.toBoolean,
    )

    def getDeviationCol(self) -> str:  # noqa: N802
        """Return the name of the column of the standard deviation."""
        return str(self.getOrDefault("deviationCol"))

    def getSkipBadRows(self) -> bool:  # noqa: N802
        """Return whether bad rows are left out."""
        return bool(self.getOrDefault("skipBadRows"))


class POGRegressor(
    Estimator,
    _Columns,
    HasLabelCol,
    HasWeightCol,
    HasSeed,
    DefaultParamsReadable,
    DefaultParamsWritable,
):
    """Gaussian process regression of a whole table, by points from a sample and exact sums.

    Params beside the usual ones: `maxSize` (points, at most), `kernel` (the name of a family;
    RBF and Matern32 are tried by default), `sampleSize` and `calibrationSize` (rows that points are
    found from, and others that variances are calibrated on), `noiseCol` (a noise variance of each
    row), `deviationCol` and `skipBadRows`.
    """

    maxSize = Param(Params._dummy(), "maxSize", "points, at most", TypeConverters.toInt)  # noqa: N815
    kernel = Param(Params._dummy(), "kernel", "family of kernels", TypeConverters.toString)
    sampleSize = Param(  # noqa: N815
        Params._dummy(), "sampleSize", "rows that points are found from", TypeConverters.toInt
    )
    calibrationSize = Param(  # noqa: N815
        Params._dummy(),
        "calibrationSize",
        "further rows that variances are calibrated on",
        TypeConverters.toInt,
    )
    noiseCol = Param(  # noqa: N815
        Params._dummy(), "noiseCol", "column of noise variances", TypeConverters.toString
    )

    def __init__(self, **params: Any) -> None:
        super().__init__()
        self._setDefault(
            maxSize=300,
            sampleSize=SAMPLE,
            calibrationSize=CALIBRATION,
            deviationCol="deviation",
            skipBadRows=False,
            seed=0,
        )
        self._set(**params)

    def setParams(self, **params: Any) -> POGRegressor:  # noqa: N802
        """Set params by name; return the estimator."""
        return self._set(**params)

    def _fit(self, dataset: DataFrame) -> POGModel:
        table, columns = self._table(dataset)
        get = self.getOrDefault
        sample, skip, seed = get("sampleSize"), self.getSkipBadRows(), get("seed")
        work = job(columns, sample, get("calibrationSize"), skip, seed)
        kernel = get("kernel") if self.isDefined("kernel") else None
        options = {"max_size": get("maxSize"), "kernel": kernel, "seed": seed}
        plan, held_out = planned(total(table, work.draw, Drawn), sample, **options)
        encoded = plan.to_bytes()

        def sums(pieces: Any, read: Any, part: int) -> bytes:
            return work.sums(pieces, read, part, encoded)

        model = finished(plan, total(table, sums, Sums), held_out)
        return self._copyValues(POGModel(model))

    def _table(self, dataset: DataFrame) -> tuple[DataFrame, Columns]:
        """Return the columns that are needed, under names of our own, and what they are."""
        names = {LABEL: self.getLabelCol()}
        if self.isDefined("weightCol") and self.getOrDefault("weightCol"):
            names[WEIGHT] = self.getWeightCol()
        if self.isDefined("noiseCol"):
            names[NOISE] = self.getOrDefault("noiseCol")
        for name in names.values():
            require_numeric(dataset, name)
        chosen = [functions.col(name).cast("double").alias(ours) for ours, name in names.items()]
        features = _array(dataset, self.getFeaturesCol())
        table = dataset.select(features.alias(FEATURES), *chosen)
        first = table.select(FEATURES).dropna().first()
        if first is None:
            raise ValueError(f"column {self.getFeaturesCol()!r} has no value in any row")
        extra = (NOISE if NOISE in names else None, WEIGHT if WEIGHT in names else None)
        return table, Columns((FEATURES,), (LABEL,), True, *extra, width=len(first[0]))


class POGModel(Model, _Columns, MLReadable, MLWritable):
    """What `POGRegressor.fit` returns; `model` is an `AbsorbingPOG` that can learn more."""

    def __init__(self, model: AbsorbingPOG | None = None) -> None:
        super().__init__()
        self._setDefault(deviationCol="deviation", skipBadRows=False)
        self.model = model

    @property
    def numFeatures(self) -> int:  # noqa: N802
        """The number of inputs."""
        return int(self._learned.dictionary.shape[1])

    @property
    def _learned(self) -> AbsorbingPOG:
        if self.model is None:
            raise ValueError("the model is empty: it comes from POGRegressor.fit or POGModel.load")
        return self.model

    def _transform(self, dataset: DataFrame) -> DataFrame:
        predict = functions.pandas_udf(  # type: ignore[call-overload]
            _predictor(self._learned.to_bytes(), self.getSkipBadRows()),
            "mean double, deviation double",
        )
        found = predict(_array(dataset, self.getFeaturesCol()))
        columns = {
            self.getPredictionCol(): found["mean"],
            self.getDeviationCol(): found["deviation"],
        }
        return dataset.withColumns(columns)

    def write(self) -> MLWriter:
        """Return what writes the model to a folder."""
        return _Writer(self)

    @classmethod
    def read(cls) -> MLReader[POGModel]:
        """Return what reads the model from a folder."""
        return _Reader()


class _Writer(MLWriter):
    def __init__(self, instance: POGModel) -> None:
        super().__init__()
        self._instance = instance

    def saveImpl(self, path: str) -> None:  # noqa: N802
        """Write the params and the model's bytes."""
        DefaultParamsWriter.saveMetadata(self._instance, path, self.sparkSession)
        data = [(bytearray(self._instance._learned.to_bytes()),)]
        rows = self.sparkSession.createDataFrame(data, "data binary")
        rows.coalesce(1).write.parquet(os.path.join(path, "data"))


class _Reader(MLReader[POGModel]):
    def load(self, path: str) -> POGModel:
        """Return the model in a folder."""
        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        row = self.sparkSession.read.parquet(os.path.join(path, "data")).first()
        if row is None:
            raise pogp.FormatError(f"{path}: there is no model in its data")
        model = pogp.from_bytes(bytes(row[0]))
        if not isinstance(model, AbsorbingPOG):
            raise pogp.FormatError(f"{path}: a {type(model).__name__}, not an AbsorbingPOG")
        loaded = POGModel(model)
        loaded._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(loaded, metadata)
        return loaded


def _array(dataset: DataFrame, name: str) -> Column:
    """Return the features as an array of numbers: of a vector, or of an array already."""
    require_columns([name], dataset.columns)
    kind = dataset.schema[name].dataType
    if isinstance(kind, VectorUDT):
        return vector_to_array(functions.col(name))
    if isinstance(kind, ArrayType) and isinstance(kind.elementType, NumericType):
        return functions.col(name).cast("array<double>")
    raise ValueError(f"column {name!r} must hold vectors or arrays of numbers, got {kind}")


def _features(batch: pd.Series, width: int, part: int, first: int) -> Array:
    """Return the features of some rows, (n, width); a row without any is not a number."""
    X = np.full((len(batch), width), np.nan)
    for i, row in enumerate(batch):
        if row is not None:
            if len(row) != width:
                raise ValueError(
                    f"partition {part}: features must be {width} numbers, as learned, got "
                    f"{len(row)} in row {first + i}"
                )
            X[i] = row
    return X


def _predictor(data: bytes, skip: bool) -> Any:
    def predict(batches: Iterator[pd.Series]) -> Iterator[pd.DataFrame]:
        model = pogp.from_bytes(data)  # once for each task
        part, first = TaskContext.get().partitionId(), 0  # type: ignore[union-attr]
        for batch in batches:
            X = _features(batch, model.dictionary.shape[1], part, first)
            usable = (np.abs(X) < LARGEST).all(axis=1)
            if not usable.all() and not skip:
                row = int(np.argmin(usable))
                raise ValueError(
                    f"partition {part}: features must be finite and below {LARGEST:g} in size, got "
                    f"{X[row].tolist()} in row {first + row}; or set skipBadRows"
                )
            first += len(X)
            found = np.full((len(X), 2), np.nan)
            if usable.any():
                mean, variance = model.predict(X[usable])
                found[usable] = np.column_stack([mean, np.sqrt(variance)])
            yield pd.DataFrame(found, columns=["mean", "deviation"])

    # by objects: with postponed annotations Spark could not look the names up
    predict.__annotations__ = {
        "batches": Iterator[pd.Series],
        "return": Iterator[pd.DataFrame],
    }
    return predict
