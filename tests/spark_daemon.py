"""Spark's Python workers, forked from a process that has imported what they use.

By default each worker imports pandas, PyArrow and the package anew, for seconds of a processor.
"""

import gc

from pyspark.daemon import manager

import pogp.spark  # noqa: F401

if __name__ == "__main__":
    gc.freeze()  # a worker collects garbage after each task
    manager()
