"""Spark: one model of a table in many partitions, and a model for each of many keys.

`POGRegressor` is an Estimator of `pyspark.ml`: it draws a sample, finds points, a kernel and a
noise from it, and adds the sums of all partitions (`pogp.sums`). `learn_by_key` and `learn_stream`
give every key its own model, for tables and for Structured Streaming.
"""

from pogp.spark.fleet import learn_by_key, learn_stream
from pogp.spark.regressor import POGModel, POGRegressor

__all__ = ["POGModel", "POGRegressor", "learn_by_key", "learn_stream"]
