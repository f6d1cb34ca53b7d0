"""A streaming job in a process of its own, for a test to kill: files in, parquet out, one file a micro-batch."""

from __future__ import annotations

import sys

import skyband as sb
import skyband.spark as sks

INPUT = "ts timestamp, id long, venue string, price double"
QUERIES = [
    sb.TopK(name="best", k=3, score="price", window=sb.TimeWindow("20 seconds", "5 seconds"), emit="snapshots"),
    sb.TopK(name="changes", k=2, score="-price", window=sb.TimeWindow("12 seconds", "5 seconds")),
    sb.TopK(name="first", k=2, score="price", window=sb.CountWindow(50, 7), emit="arrivals"),
]


def main(source: str, target: str, checkpoint: str, k: str) -> None:
    """Run until every file is read."""
    queries = [QUERIES[0], *QUERIES[1:]]
    queries[0] = sb.TopK(
        name="best", k=int(k), score="price", window=sb.TimeWindow("20 seconds", "5 seconds"), emit="snapshots"
    )
    spark = sks.session(cores=2, config={"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"})
    stream = spark.readStream.schema(INPUT).option("maxFilesPerTrigger", 1).parquet(source)
    results = sks.monitor(stream, queries, time="ts", lateness="3 seconds", group_by=["venue"])
    query = results.writeStream.format("parquet").option("path", target).option("checkpointLocation", checkpoint)
    query.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
