"""A stream with commands, for tests to run here or in a process of its own, which they may kill."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import skyband as sb
import skyband.spark as sks

INPUT = "ts timestamp, id long, venue string, price double, size double"
COMMANDS = "command string, ts timestamp"
FIRST: list[Any] = [
    sb.TopK(name="best", k=2, score="price", window=sb.TimeWindow("10 seconds", "2 seconds")),
    sb.TopKPairs(name="near", k=2, score=sb.pair_distance(["price", "size"]), window=sb.TimeWindow("3 seconds", "1 second")),
    sb.TopKAcross(
        name="busy",
        k=2,
        key="id",
        stream="venue",
        value="size",
        streams=["north", "south", "west"],
        window=sb.TimeWindow("4 seconds", "2 seconds"),
    ),
]


def steered(spark: SparkSession, source: Path, commands: Path, *, grouped: bool = True, shards: int = 1) -> DataFrame:
    """One file of rows and one of commands a micro-batch."""
    reader = spark.readStream.option("maxFilesPerTrigger", 1)
    return sks.monitor(
        reader.schema(INPUT).parquet(str(source)).repartition(3),
        FIRST,
        time="ts",
        lateness="2 seconds",
        arrival="id",
        group_by=["venue"] if grouped else [],
        control=reader.schema(COMMANDS).parquet(str(commands)),
        shards=shards,
    )


def main(folder: str) -> None:
    """Run until every file is read."""
    place = Path(folder)
    spark = sks.session(cores=2, config={"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"})
    writer = steered(spark, place / "in", place / "commands").writeStream.format("parquet").option("path", str(place / "out"))
    writer.option("checkpointLocation", str(place / "state")).trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
