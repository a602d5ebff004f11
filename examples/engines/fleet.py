"""A fleet of sensors: a model for each, from a table and then from a stream, on Spark.

python fleet.py "local[2,4]"         this machine
python fleet.py spark://host:7077    a cluster: nothing else changes
"""

import os
import sys
import tempfile

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

import numpy as np
import pandas as pd
from pyspark.sql import SparkSession

import pogp
from pogp.spark import learn_by_key, learn_stream

COLUMNS = {"key": "sensor", "order": "time", "target": "y", "inputs": ["x"]}


def table(sensors: int = 5, rows: int = 120) -> pd.DataFrame:
    """Return the table of some sensors; one reading is far off."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "sensor": np.repeat(np.arange(sensors), rows),
            "time": np.tile(np.arange(rows), sensors),
            "x": rng.uniform(-2, 2, sensors * rows),
        }
    )
    frame["y"] = np.sin(frame["x"] + frame["sensor"]) + 0.1 * rng.normal(size=len(frame))
    frame.loc[340, "y"] += 5.0
    return frame


if __name__ == "__main__":
    master = (sys.argv[1:] or ["local[2,4]"])[0]
    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "4").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    options = {"warmup": 40, "max_size": 20}  # each sensor tunes itself by its first 40 rows
    df = spark.createDataFrame(table())
    for row in learn_by_key(df, **COLUMNS, **options).orderBy("sensor").collect():
        model = pogp.from_bytes(bytes(row.model))
        print(f"sensor {row.sensor}: {row.rows} rows, {model.size} points, {len(row.model)} bytes")

    with tempfile.TemporaryDirectory() as folder:
        df.write.parquet(f"{folder}/in")  # yours comes from Kafka, or from files that are added
        stream = spark.readStream.schema(df.schema).parquet(f"{folder}/in")
        found = learn_stream(stream, **COLUMNS, alarm=0.02, **options)
        query = (
            found.writeStream.format("memory")
            .queryName("judged")
            .option("checkpointLocation", f"{folder}/checkpoint")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        spark.sql("select * from judged where alarm order by surprise desc").show(3)
    spark.stop()
