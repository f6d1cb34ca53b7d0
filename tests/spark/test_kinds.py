"""Every kind of query on the real Spark against the embedded Monitor, row for row: one stream, one pass, any micro-batching and
partitioning, a restart in between."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from killable_kinds import INPUT, MIXED, visits
from pyspark.sql import DataFrame, SparkSession
from test_pipeline import in_order, streamed, write_files

import skyband as sb
import skyband.spark as sks
from skyband.spark.progress import figures_of

Found = list[tuple[Any, ...]]


def embedded(queries: list[Any], table: pa.Table, upto: Any = None) -> Found:
    """Result rows of the embedded engine over rows in the order of time, then id, as far as their windows have ended."""
    ordered = table.sort_by([("ts", "ascending"), ("id", "ascending")])
    found: Found = []
    for query in queries:
        timed = isinstance(query.window, sb.TimeWindow)
        monitor = sb.Monitor([query], time="ts" if timed else None)
        own = ordered if timed else table.sort_by("id")
        events = [monitor.push(own)] + ([monitor.flush()] if timed else [])
        for row in pa.concat_tables(events).to_pylist():
            end = row["window_end"].replace(tzinfo=None) if timed else row["window_end"]
            if not timed or upto is None or end <= upto:
                who = (
                    row.get("id"),
                    row.get("a_id"),
                    row.get("b_id"),
                    row["shop"] if "seq" not in row and "a_seq" not in row else None,
                )
                found.append((query.name, end, row["event"], row["rank"], row["score"], *who))
    return found


def on_spark(rows: list[Any]) -> Found:
    found: Found = []
    for row in rows:
        end = row.window_end if row.window_end is not None else row.window_end_time
        pair, thing = getattr(row, "pair", None), getattr(row, "object", None)
        assert [row.row, pair, thing].count(None) == 2
        who = (row.row and row.row.id, pair and pair.a.id, pair and pair.b.id, thing and thing.shop)
        found.append((row.query, end, row.event, row["rank"], row.score, *who))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("visits")
    write_files(path, visits(600), 6)
    return path


def stream_of(spark: SparkSession, folder: Path, per_batch: int) -> DataFrame:
    return spark.readStream.schema(INPUT).option("maxFilesPerTrigger", per_batch).parquet(str(folder))


def test_a_batch_of_all_kinds_equals_the_embedded_engine(spark: SparkSession, folder: Path) -> None:
    df = spark.read.schema(INPUT).parquet(str(folder)).repartition(3)
    results = sks.monitor(df, MIXED, time="ts", arrival="id")
    assert results.columns[-3:] == ["row", "pair", "object"]
    got = results.collect()
    assert in_order(on_spark(got)) == in_order(embedded(MIXED, visits(600)))
    assert {row.query for row in got} == {query.name for query in MIXED}


@pytest.mark.parametrize(("per_batch", "partitions", "shards"), [(6, 1, 4), (1, 3, 2)])
def test_a_stream_of_all_kinds_equals_the_embedded_engine(
    spark: SparkSession, folder: Path, tmp_path: Path, per_batch: int, partitions: int, shards: int
) -> None:
    stream = stream_of(spark, folder, per_batch).repartition(partitions)
    results = sks.monitor(stream, MIXED, time="ts", lateness="2 seconds", arrival="id", shards=shards)
    rows, progress = streamed(spark, results, tmp_path / "checkpoint", "all_kinds")
    closed = max(row.window_end_time for row in rows if row.window_end_time is not None)
    assert in_order(on_spark(rows)) == in_order(embedded(MIXED, visits(600), closed))
    figures = figures_of(progress)
    assert len(progress[0].sources) == 1 and figures.rows == 600
    emitted = Counter(row.query for row in rows)
    assert figures.results == {name: emitted[name] for name in figures.results} and set(emitted) <= set(figures.results)
    assert set(figures.late) == {query.name for query in MIXED if query.emit != "none"}
