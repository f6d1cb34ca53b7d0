"""Every kind of query on the real Spark against the embedded Monitor, row for row: one stream, one pass, any micro-batching and
partitioning, a restart in between."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import killable_deletions
import killable_kinds
import killable_scores
import numpy as np
import pyarrow as pa
import pytest
from killable_deletions import BEFORE, DELETED, EVERY, with_deletions
from killable_kinds import INPUT, MIXED, visits
from killable_scores import SCORES
from killing import killed_once
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from test_pipeline import in_order, streamed, write_files

import skyband as sb
import skyband.spark as sks
from skyband.spark.progress import figures_of
from skyband.spark.shards import spark_hash

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


@pytest.mark.slow
def test_a_batch_of_all_kinds_equals_the_embedded_engine(spark: SparkSession, folder: Path) -> None:
    df = spark.read.schema(INPUT).parquet(str(folder)).repartition(3)
    results = sks.monitor(df, MIXED, time="ts", arrival="id")
    assert results.columns[-3:] == ["row", "pair", "object"]
    got = results.collect()
    assert in_order(on_spark(got)) == in_order(embedded(MIXED, visits(600)))
    assert {row.query for row in got} == {query.name for query in MIXED}


def closed_by(table: pa.Table) -> datetime:
    """The watermark once all rows have come, two seconds behind the newest: without groups they close windows at once."""
    return max(table["ts"].to_pylist()).replace(tzinfo=None) - timedelta(seconds=2)


def test_a_stream_of_all_kinds_equals_the_embedded_engine_across_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    """One file a micro-batch, then, from the checkpoint, all others at once, in other partitions."""
    source = tmp_path / "in"
    write_files(source, visits(600), 6)
    later = [path.rename(tmp_path / path.name) for path in sorted(source.iterdir())[3:]]
    before = written(monitored(stream_of(spark, source, 1).repartition(3)), tmp_path)
    first = spark.read.parquet(str(tmp_path / "out")).count()
    for path in later:
        path.rename(source / path.name)
    after = written(monitored(stream_of(spark, source, 6)), tmp_path)
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert in_order(on_spark(rows)) == in_order(embedded(MIXED, visits(600), closed_by(visits(600))))
    assert first > 100 and len(rows) > first + 100
    assert all(len(record.sources) == 1 for record in before + after)  # one pass over the source
    figures = figures_of(before + after)
    emitted = Counter(row.query for row in rows)
    assert figures.rows == 600 and figures.results == {name: emitted[name] for name in figures.results}
    assert set(emitted) <= set(figures.results) and set(figures.late) == {one.name for one in MIXED if one.emit != "none"}


def written(results: DataFrame, folder: Path) -> list[Any]:
    """The progress records of a run over everything there is."""
    writer = results.writeStream.format("parquet").option("path", str(folder / "out"))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    return list(query.recentProgress)


def monitored(stream: DataFrame) -> DataFrame:
    return sks.monitor(stream, MIXED, time="ts", lateness="2 seconds", arrival="id", shards=2)


def test_groups_have_pairs_and_objects_of_their_own(spark: SparkSession, folder: Path) -> None:
    df = spark.read.schema(INPUT).parquet(str(folder))
    asked = [query for query in MIXED if query.name in ("near", "busy", "best")]
    got = sks.monitor(df, asked, time="ts", arrival="id", group_by=["door"], shards=2).collect()
    table = visits(600)
    expected = []
    for door in ("front", "back"):
        own = table.filter(pa.compute.equal(table["door"], door))
        expected += [(door, *row) for row in embedded(asked, own)]
    assert in_order((row.door, *found) for row, found in zip(got, on_spark(got), strict=True)) == in_order(expected)


def test_results_of_several_kinds_can_be_had_as_arrow(spark: SparkSession) -> None:
    """As the console of a job takes them. A pair that is null has rows that are."""
    rows = [(1, "s1", "front", 1.0), (2, "s1", "back", 2.0)]
    df = spark.createDataFrame(rows, "id long, shop string, door string, x double")
    asked = [
        sb.TopK(name="best", k=1, score="x", window=sb.CountWindow(2)),
        sb.TopKPairs(name="near", k=1, score="abs(a.x - b.x)", window=sb.CountWindow(2)),
        sb.TopKAcross(name="busy", k=1, key="shop", stream="door", value="x", streams=["front"], window=sb.CountWindow(2)),
    ]
    results = sks.monitor(df, asked, arrival="id")
    table = results.toArrow()
    assert len(table) == results.count() == 5
    assert {(row["query"], row["pair"] is None, row["row"] is None) for row in table.to_pylist()} == {
        ("best", True, False),
        ("near", False, True),
        ("busy", True, True),
    }
    assert [row["pair"]["b"]["id"] for row in table.to_pylist() if row["pair"]] == [2]


def test_a_hundred_scores_and_deletions_over_one_stream(spark: SparkSession, tmp_path: Path) -> None:
    """Queries by the dozen, rows that are deleted by key: each row and deletion in the order of its id."""
    table = visits(300)
    generator = np.random.default_rng(5)
    gone = generator.random(300) < 0.1
    key = np.where(gone, generator.integers(0, 300, 300), np.arange(300))
    table = table.append_column("key", pa.array(key)).append_column("gone", pa.array(gone))
    write_files(tmp_path / "in", table, 3)
    asked = [
        sb.TopK(name=f"q{n}", k=2, score=sb.linear({"x": n / 140, "y": 1 - n / 140}), window=sb.CountWindow(60, 4))
        for n in range(140)
    ]
    schema = f"{INPUT}, key long, gone boolean"
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in")).repartition(2)
    results = sks.monitor(stream, asked, arrival="id", key="key", deletes="gone", shards=2)
    assert results.columns == ["query", "window_start", "window_end", "event", "rank", "score", "row"]
    rows, _ = streamed(spark, results, tmp_path / "checkpoint", "deleted")
    monitor, found = sb.Monitor(asked, key="key"), []
    for at in range(300):
        if gone[at]:
            found.append(monitor.delete([int(key[at])]))
        else:
            found.append(monitor.push(table.slice(at, 1)))
    names = ["query", "window_end", "event", "rank", "score", "id"]
    expected = [tuple(row.values()) for row in pa.concat_tables(found).select(names).to_pylist()]
    assert in_order(expected) == in_order((r.query, r.window_end, r.event, r["rank"], r.score, r.row.id) for r in rows)


def test_the_best_of_seventy_scores_over_time_are_sent_to_their_state(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    """Without a column of arrival: ties are hashes, of the rows that are sent."""
    window = sb.TimeWindow("6 seconds", "2 seconds")
    asked = [
        sb.TopK(
            name=f"q{n}", k=2, score=sb.linear({"x": n / 70, "y": 1 - n / 70}), order="asc" if n % 3 else "desc", window=window
        )
        for n in range(70)
    ]
    results = sks.monitor(stream_of(spark, folder, 2), asked, time="ts", lateness="2 seconds", shards=2)
    rows, reports = streamed(spark, results, tmp_path / "checkpoint", "seventy")
    assert in_order(on_spark(rows)) == in_order(embedded(asked, visits(600), closed_by(visits(600))))
    missing = visits(600)["x"].null_count
    figures = figures_of(reports)
    assert figures.rows == 600 and 0 < min(figures.nulls.values()) <= max(figures.nulls.values()) <= missing


def test_addresses_are_spread_as_spark_spreads_them(spark: SparkSession) -> None:
    numbers = spark.range(20).select(F.hash(F.lit(0), F.col("id").cast("int")).alias("hash"))
    assert [row.hash for row in numbers.collect()] == [spark_hash(number) for number in range(20)]


def embedded_with_deletions(table: pa.Table, upto: datetime) -> Found:
    """The embedded engine, one row or deletion at a time by time, windows that end by a deletion's time before it."""
    monitor, found = sb.Monitor(DELETED, time="ts", key="id"), []
    for row in table.sort_by([("ts", "ascending"), ("id", "ascending")]).to_pylist():
        if row["ts"].replace(tzinfo=None) >= upto:
            continue
        if row["id"] % EVERY == EVERY - 1:
            found += monitor.advance(row["ts"]).to_pylist()
            found += monitor.delete([row["id"] - BEFORE]).to_pylist()
        else:
            found += monitor.push(pa.Table.from_pylist([row], table.schema)).to_pylist()
    found += monitor.advance(upto.replace(tzinfo=UTC)).to_pylist()
    ends = [row["window_end"].replace(tzinfo=None) for row in found]
    names = ("event", "rank", "score", "id")
    return [(row["query"], end, *(row[name] for name in names), None, None, None) for row, end in zip(found, ends, strict=True)]


def passed_by(table: pa.Table) -> datetime:
    """As far as the watermark has passed whole steps of two seconds."""
    closed = closed_by(table)
    return closed - timedelta(seconds=closed.second % 2, microseconds=closed.microsecond)


def test_rows_are_deleted_from_time_windows(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    results = sks.monitor(
        with_deletions(stream_of(spark, folder, 2)),
        DELETED,
        time="ts",
        lateness="2 seconds",
        arrival="id",
        key="key",
        deletes="gone",
    )
    rows, _ = streamed(spark, results, tmp_path / "checkpoint", "deletions")
    got = [(r.query, r.window_end, r.event, r["rank"], r.score, r.row.id, None, None, None) for r in rows]
    assert in_order(got) == in_order(embedded_with_deletions(visits(600), passed_by(visits(600))))
    assert len(got) > 60


@pytest.mark.slow
def test_killed_and_started_again_no_deletion_is_missed_or_doubled(spark: SparkSession, tmp_path: Path) -> None:
    source, target, checkpoint = tmp_path / "in", tmp_path / "out", tmp_path / "checkpoint"
    write_files(source, visits(1200), 12)
    killed_once(killable_deletions.__file__, checkpoint, 12, source, target, checkpoint, 2)
    rows = spark.read.parquet(str(target)).collect()
    got = [(r.query, r.window_end, r.event, r["rank"], r.score, r.row.id, None, None, None) for r in rows]
    assert in_order(got) == in_order(embedded_with_deletions(visits(1200), passed_by(visits(1200))))


@pytest.mark.slow
@pytest.mark.parametrize(("script", "asked"), [(killable_kinds, MIXED), (killable_scores, SCORES)])
def test_killed_and_started_again_no_kind_misses_or_doubles_a_row(
    spark: SparkSession, tmp_path: Path, script: Any, asked: list[Any]
) -> None:
    source, target, checkpoint = tmp_path / "in", tmp_path / "out", tmp_path / "checkpoint"
    write_files(source, visits(1200), 12)
    killed_once(script.__file__, checkpoint, 12, source, target, checkpoint, 3)
    got = spark.read.parquet(str(target)).collect()
    assert in_order(on_spark(got)) == in_order(embedded(asked, visits(1200), closed_by(visits(1200))))
