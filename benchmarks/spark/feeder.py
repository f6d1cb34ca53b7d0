"""Rows at a pace, in a process of its own: `python -m benchmarks.spark.feeder FOLDER ROWS_A_SECOND SECONDS`.

A file every tenth of a second, each with the rows that arrived since the last; a row's `ts` is its arrival by the clock, so a
row has waited up to a tenth of a second when its file appears. Files appear whole.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

EVERY = 0.1  # seconds
DDL = "ts timestamp, id long, price double"


def feed(folder: Path, rows_a_second: int, seconds: float) -> int:
    """Write until the time is over; how many rows."""
    rng = np.random.default_rng(31)
    began, written = time.time(), 0
    for number in range(round(seconds / EVERY)):
        end = began + (number + 1) * EVERY
        time.sleep(max(0.0, end - time.time()))
        count = round(rows_a_second * EVERY)
        put(folder, f"{number:06d}", end - EVERY + np.arange(count) * (EVERY / count), written, rng.random(count))
        written += count
    return written


def put(folder: Path, name: str, arrived: np.ndarray, first: int, price: np.ndarray) -> None:
    """A file of rows with ids from `first` on, which appears whole."""
    ts = pa.array((arrived * 1e6).astype(np.int64)).cast(pa.timestamp("us", tz="UTC"))
    beside = folder.parent / f"{name}.parquet"
    pq.write_table(pa.table({"ts": ts, "id": np.arange(first, first + len(arrived)), "price": price}), beside)
    beside.rename(folder / beside.name)


if __name__ == "__main__":
    print(feed(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
