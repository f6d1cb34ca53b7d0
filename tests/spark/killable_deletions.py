"""The job of `killable_kinds` with rows that delete others: every ninth deletes one that came a little before it."""

from __future__ import annotations

import sys

from killable_kinds import main
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import skyband as sb

EVERY, BEFORE = 9, 14
DELETED = [
    sb.TopK(name="best", k=3, score="x + y", window=sb.TimeWindow("10 seconds", "2 seconds"), emit="snapshots"),
    sb.TopK(name="least", k=2, score="x - y", order="asc", window=sb.TimeWindow("9 seconds", "4 seconds")),
    sb.Threshold(name="high", above=0.95, score="x", window=sb.TimeWindow("6 seconds", "2 seconds")),
]


def with_deletions(stream: DataFrame) -> DataFrame:
    """The stream with the columns `key` and `gone`."""
    gone = F.col("id") % EVERY == EVERY - 1
    return stream.withColumn("key", F.when(gone, F.col("id") - BEFORE).otherwise(F.col("id"))).withColumn("gone", gone)


if __name__ == "__main__":
    main(*sys.argv[1:5], asked=DELETED, prepared=with_deletions, key="key", deletes="gone")
