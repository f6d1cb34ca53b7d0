"""Spark's server of Python workers, started with all that a worker of skyband loads: `python -m skyband.spark.daemon`.

Spark forks every worker from one process. Its own loads nothing before, so that each worker imports NumPy, Arrow, pandas and
Numba and reads the same compiled kernels: a second and 200 MB each, four times a stream. Here they are loaded once; what a fork
only reads it shares, and a worker that is started later, in the place of one that ended, is there at once.

`sks.settings()` names this module where Spark is one process. On a cluster it would have to be installed on every node.
"""

from __future__ import annotations

import gc
import os


def load() -> None:
    """What the steps of a pipeline import, and the kernels of the commonest one; compiles them where they are not cached."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # no threads before a fork; Spark has a worker for each core
    import pandas  # noqa: F401
    import pyarrow as pa
    import pyspark.worker  # noqa: F401

    import skyband as sb
    from skyband.spark.warm import warm

    pa.set_memory_pool(pa.system_memory_pool())  # batches are small and soon gone: its own keeps 10 MB a worker for them
    warm([sb.TopK(name="first", k=10, score="x", window=sb.TimeWindow("10 seconds", slide="1 second"))])
    gc.collect()
    gc.freeze()  # a look for garbage would touch, and so copy, every page


if __name__ == "__main__":
    from pyspark.daemon import manager

    load()
    manager()
