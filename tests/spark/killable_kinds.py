"""A streaming job of every kind of query in a process of its own, for a test to kill: files in, parquet out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

import skyband as sb
import skyband.spark as sks

EPOCH = 1_700_000_000_000_000
INPUT = "ts timestamp, id long, shop string, door string, x double, y double"
_TIME = sb.TimeWindow("10 seconds", "2 seconds")
_ACROSS = {"key": "shop", "stream": "door", "value": "x", "streams": ["front", "back"]}
MIXED = [
    sb.TopK(name="best", k=3, score="x + y", window=_TIME, emit="snapshots"),
    sb.Threshold(name="high", above=0.98, score="x", window=sb.CountWindow(50, 7)),
    sb.TopKPairs(name="near", k=4, score=sb.pair_distance(["x", "y"]), window=_TIME, emit="snapshots"),
    sb.TopKPairs(name="apart", k=3, score="a.x - b.y", order="desc", where="a.x > b.x", window=sb.CountWindow(60, 9)),
    sb.TopKPairs(name="first", k=2, score="abs(a.x - b.x)", window=sb.TimeWindow("6 seconds", "3 seconds"), emit="arrivals"),
    sb.TopKAcross(name="busy", k=3, window=_TIME, **_ACROSS),
    sb.TopKAcross(name="counted", k=2, window=sb.CountWindow(40, 10), aggregate="max", **_ACROSS),
]


def visits(rows: int, seed: int = 1) -> pa.Table:
    """Visits of shops by two doors, a little out of order; many values alike."""
    generator = np.random.default_rng(seed)
    offset = np.arange(rows) * 50_000 - (generator.random(rows) * 1e6).astype(np.int64)
    return pa.table(
        {
            "ts": pa.array(EPOCH + offset).cast(pa.timestamp("us", "UTC")),
            "id": pa.array(np.arange(rows)),
            "shop": pa.array([f"s{n}" for n in generator.integers(0, 12, rows)]),
            "door": pa.array(np.array(["front", "back"])[generator.integers(0, 2, rows)]),
            "x": pa.array(np.round(generator.random(rows), 2), mask=generator.random(rows) < 0.02),
            "y": pa.array(np.round(generator.random(rows), 2)),
        }
    )


def main(
    source: str,
    target: str,
    checkpoint: str,
    shards: str,
    asked: list[Any] = MIXED,
    prepared: Callable[[DataFrame], DataFrame] = lambda stream: stream,
    **ways: str,
) -> None:
    """Run until every file is read."""
    spark = sks.session(cores=2, config={"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"})
    stream = spark.readStream.schema(INPUT).option("maxFilesPerTrigger", 1).parquet(source)
    asking = {"time": "ts", "lateness": "2 seconds", "arrival": "id", "shards": int(shards)}
    results = sks.monitor(prepared(stream), asked, **asking, **ways)
    query = results.writeStream.format("parquet").option("path", target).option("checkpointLocation", checkpoint)
    query.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
