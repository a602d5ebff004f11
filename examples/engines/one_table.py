"""One table on many machines: a model of all rows, by Spark or by Dask.

python one_table.py spark "local[2,4]"      two cores of this machine, four attempts per task
python one_table.py spark spark://host:7077  a cluster: nothing else changes
python one_table.py dask                     two processes of this machine
python one_table.py dask tcp://host:8786     a cluster
"""

import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a process per core, one thread each
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

import numpy as np
import pandas as pd

INPUTS = ["a", "b"]


def table(rows: int = 20_000) -> pd.DataFrame:
    """Return the table; yours is in files that all machines can read."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(-2, 2, (rows, 2)), columns=INPUTS)
    frame["y"] = np.sin(2 * frame["a"]) * np.cos(frame["b"]) + 0.2 * rng.normal(size=rows)
    return frame


def by_spark(master: str) -> None:
    """Learn and predict with an Estimator of pyspark.ml."""
    from pyspark.ml import Pipeline
    from pyspark.ml.feature import VectorAssembler
    from pyspark.sql import SparkSession

    from pogp.spark import POGRegressor

    spark = SparkSession.builder.master(master).config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    df = spark.createDataFrame(table()).repartition(8).cache()  # or spark.read.parquet(...)
    learner = POGRegressor(labelCol="y", maxSize=60, sampleSize=3000, calibrationSize=1500)
    assembler = VectorAssembler(inputCols=INPUTS, outputCol="features")
    fitted = Pipeline(stages=[assembler, learner]).fit(df)
    fitted.transform(df).select("y", "prediction", "deviation").show(3)
    tell(fitted.stages[1].model)
    spark.stop()


def by_dask(address: str | None) -> None:
    """Learn and predict with a Dask dataframe."""
    import dask.dataframe as dd
    from distributed import Client

    import pogp.dask

    where = {"address": address} if address else {"n_workers": 2, "threads_per_worker": 1}
    with Client(**where, **({} if address else {"dashboard_address": None})):
        ddf = dd.from_pandas(table(), npartitions=8)  # or dd.read_parquet(...)
        model = pogp.dask.learn(ddf, "y", max_size=60, sample=3000, calibration=1500)
        print(pogp.dask.predict(model, ddf, inputs=INPUTS).head(3))
    tell(model)


def tell(model) -> None:
    """Print what was learned, and how far it is from the truth."""
    grid = np.random.default_rng(1).uniform(-2, 2, (1000, 2))
    off = model.predict(grid)[0] - np.sin(2 * grid[:, 0]) * np.cos(grid[:, 1])
    print(f"{model.size} points hold what {model.seen} rows say, rms error {np.std(off):.3f}")


if __name__ == "__main__":
    engine, *place = sys.argv[1:] or ["dask"]
    if engine == "spark":
        by_spark(*(place or ["local[2,4]"]))
    else:
        by_dask(*(place or [None]))
