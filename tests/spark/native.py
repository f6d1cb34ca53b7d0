"""Spark's own batch answer: every row copied into its windows, then `row_number`. Shares nothing with skyband."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F


def exploded_top(
    df: DataFrame, *, k: int, score: str, size: int, slide: int, groups: tuple[str, ...] = (), ascending: bool = False
) -> DataFrame:
    """The k best of every window of `size` and `slide` seconds over `ts`; ties go to the later time, then the larger id."""
    micros = F.unix_micros("ts")
    step, length = slide * 1_000_000, size * 1_000_000
    first = (F.floor(micros / step) + 1) * step
    last = F.floor((micros + length) / step) * step
    ends = df.where(~F.isnan(score) & F.col(score).isNotNull()).withColumn(
        "end", F.explode(F.sequence(first, last, F.lit(step)))
    )
    best = F.col(score).asc() if ascending else F.col(score).desc()
    ranks = Window.partitionBy("end", *groups).orderBy(best, F.col("ts").desc(), F.col("id").desc())
    ranked = ends.withColumn("rank", F.row_number().over(ranks)).where(F.col("rank") <= k)
    return ranked.select(*groups, F.timestamp_micros("end").alias("window_end"), "rank", F.col(score).alias("score"), "id")
