"""Spark's Python workers, forked from a process that has imported what they use.

By default each worker imports pandas, PyArrow and the package anew, and PySpark from an archive
whose directory it reads again at its first task, for seconds of a processor.
"""

import gc
import sys
from importlib import import_module

USED = ("pyspark.worker", "pogp.spark", "pyarrow.pandas_compat", "scipy.spatial.distance")

if __name__ == "__main__":
    sys.path[:] = [path for path in sys.path if not path.endswith(".zip")]
    for path in [path for path in sys.path_importer_cache if ".zip" in path]:
        del sys.path_importer_cache[path]
    for name in USED:
        import_module(name)
    gc.freeze()  # a worker collects garbage after each task
    import_module("pyspark.daemon").manager()
