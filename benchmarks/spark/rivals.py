"""What one would write without skyband, and the floors nobody gets below: a function from the stream to a running query.

Spark's own two ways are `sliding`, one aggregation over overlapping windows, and `two_stage`, which first takes each
pane's best k and then the best k of a window's panes. `driver_merge` is written by hand around `panes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from pyspark.sql import functions as F

from benchmarks.spark.panes import PaneMerge, reduce_to_panes
from benchmarks.spark.settings import Setting

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame


def row() -> Column:
    """The whole event, as a struct."""
    return F.struct("ts", "id", "symbol", "price", "score")


def ranked(tops: DataFrame) -> DataFrame:
    """`window` and an array `top`, best first, as one row for each place."""
    placed = tops.select("window", F.posexplode("top").alias("place", "row"))
    return placed.select(
        F.col("window.start").alias("window_start"),
        F.col("window.end").alias("window_end"),
        (F.col("place") + 1).alias("rank"),
        F.col("row.score").alias("score"),
        "row",
    )


def sliding(events: DataFrame, setting: Setting) -> DataFrame:
    """Every row goes into each window it belongs to; `max_by` keeps the best k there."""
    windows = events.withWatermark("ts", "0 seconds").groupBy(F.window("ts", setting.size_text, setting.slide_text))
    return ranked(windows.agg(F.max_by(row(), "score", setting.k).alias("top")))


def two_stage(events: DataFrame, setting: Setting, whole: Column | None = None) -> DataFrame:
    """Panes first: only a pane's best k rows go into the windows it belongs to. `whole`: the row, if it is another."""
    panes = events.withWatermark("ts", "0 seconds").groupBy(F.window("ts", setting.slide_text).alias("pane"))
    best = panes.agg(F.max_by(row() if whole is None else whole, "score", setting.k).alias("best"))
    exploded = best.select(F.window_time("pane").alias("pane_time"), F.explode("best").alias("row"))
    windows = exploded.groupBy(F.window("pane_time", setting.size_text, setting.slide_text))
    return ranked(windows.agg(F.max_by("row", "row.score", setting.k).alias("top")))


def driver_merge(events: DataFrame, setting: Setting, out: Path | None) -> Any:
    """Panes are reduced in the tasks and merged in the driver, which writes the closed windows to `out`."""
    slide, k = setting.slide, setting.k
    merge = PaneMerge(setting)

    def reduce(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (reduce_to_panes(batch, slide, k) for batch in batches if batch.num_rows)

    def close_windows(reduced: DataFrame, batch: int) -> None:
        windows = merge.push(reduced.toArrow())
        if windows is not None and out is not None:
            pq.write_table(windows, out / f"{batch:06d}.parquet")

    return events.mapInArrow(reduce, events.schema).writeStream.foreachBatch(close_windows)


def read(events: DataFrame, setting: Setting) -> DataFrame:
    """Nothing but reading."""
    return events


def tumbling_max(events: DataFrame, setting: Setting) -> DataFrame:
    """The greatest score of every slide: the least that a stateful query costs."""
    panes = events.withWatermark("ts", "0 seconds").groupBy(F.window("ts", setting.slide_text))
    return panes.agg(F.max("score").alias("score"))


def pass_through(events: DataFrame, setting: Setting) -> DataFrame:
    """Every row to Python and back: the least that a query in Python costs."""

    def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return batches

    return events.mapInArrow(same, events.schema)
