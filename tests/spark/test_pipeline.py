"""The pipeline on the real Spark: real sources and sinks, its state store, its watermark, its restarts."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import killable
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from killing import killed_once
from native import exploded_top
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skyband as sb
import skyband.spark as sks
from skyband.errors import QueryError, SchemaError
from skyband.spark.progress import figures_of

EPOCH = 1_700_000_000_000_000
SCHEMA = killable.INPUT


def trades(rows: int, seed: int = 1, per_second: int = 50, jitter: float = 0.0) -> pa.Table:
    """Trades of three venues, `jitter` seconds out of order; every id once, some prices tied, some null or NaN."""
    generator = np.random.default_rng(seed)
    offset = np.arange(rows) * (1_000_000 // per_second) - (generator.random(rows) * jitter * 1e6).astype(np.int64)
    price = np.round(generator.random(rows), 3)
    unknown = generator.random(rows) < 0.02
    price[generator.random(rows) < 0.02] = np.nan
    venues = np.array(["north", "south", "west"])[generator.integers(0, 3, rows)]
    return pa.table(
        {
            "ts": pa.array(EPOCH + offset).cast(pa.timestamp("us", "UTC")),
            "id": pa.array(np.arange(rows)),
            "venue": pa.array(venues),
            "price": pa.array(price, mask=unknown),
        }
    )


def write_files(folder: Path, table: pa.Table, files: int) -> None:
    """The table cut into files, each a little newer than the one before: Spark reads them in that order."""
    folder.mkdir(exist_ok=True)
    step = -(-len(table) // files)
    for number in range(files):
        path = folder / f"{number:04}.parquet"
        pq.write_table(table.slice(number * step, step), path)
        os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))


def streamed(spark: SparkSession, results: DataFrame, checkpoint: Path, name: str) -> tuple[list[Any], list[Any]]:
    """All result rows of a run over everything there is, and its progress records."""
    query = (
        results.writeStream.format("memory")
        .queryName(name)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    rows = spark.table(name).collect()
    spark.catalog.dropTempView(name)
    return rows, list(query.recentProgress)


def read_stream(spark: SparkSession, folder: Path, per_batch: int, schema: str = SCHEMA) -> DataFrame:
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", per_batch).parquet(str(folder))


def in_order(rows: Any) -> list[str]:
    return sorted(map(str, rows))


def query(
    name: str = "q", k: int = 3, score: Any = "price", size: str = "20 seconds", slide: str = "5 seconds", **more: Any
) -> sb.TopK:
    return sb.TopK(name=name, k=k, score=score, window=sb.TimeWindow(size, slide), **more)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """3000 trades, a minute's worth, up to two seconds out of order, in twelve files."""
    path = tmp_path_factory.mktemp("trades")
    write_files(path, trades(3000, jitter=2.0), 12)
    yield path


ASKED: list[Any] = [
    query("best", emit="snapshots"),
    query("worst", 2, order="asc", size="13 seconds", slide="5 seconds", emit="snapshots"),
    query("cheap", 2, where={"price": (None, 0.5)}),
    query("swift", 1, "price * (1 + id % 7)", "10 seconds", "1 second", emit="arrivals"),
    sb.Threshold(name="high", above=0.97, score="price", window=sb.TimeWindow("20 seconds", "5 seconds")),
    sb.Threshold(name="low", above=0.02, score="price", order="asc", window=sb.TimeWindow("7 seconds", "2 seconds")),
]


# -- exactness -------------------------------------------------------------------------------------------------


def test_a_batch_equals_sparks_own_answer_row_for_row(spark: SparkSession, folder: Path) -> None:
    df = spark.read.schema(SCHEMA).parquet(str(folder))
    results = sks.monitor(df, ASKED[:2], time="ts", group_by=["venue"], arrival="id")
    assert results.columns == ["query", "venue", "window_start", "window_end", "event", "rank", "score", "row"]
    for asked, size in ((ASKED[0], 20), (ASKED[1], 13)):
        own = results.where(F.col("query") == asked.name).select("venue", "window_end", "rank", "score", "row.id")
        native = exploded_top(
            df, k=asked.k, score="price", size=size, slide=5, groups=("venue",), ascending=asked.order == "asc"
        )
        assert in_order(own.collect()) == in_order(native.collect())


def test_a_batch_equals_the_embedded_engine_group_by_group(spark: SparkSession, folder: Path) -> None:
    df = spark.read.schema(SCHEMA).parquet(str(folder))
    got = sks.monitor(df, ASKED, time="ts", group_by="venue", arrival="id").collect()
    table = trades(3000, jitter=2.0)
    expected = []
    for venue in ("north", "south", "west"):
        own = table.filter(pa.compute.equal(table["venue"], venue)).sort_by([("ts", "ascending"), ("id", "ascending")])
        monitor = sb.Monitor(ASKED, time="ts")
        events = pa.concat_tables([monitor.push(own), monitor.flush()])
        for row in events.to_pylist():
            end = row["window_end"].replace(tzinfo=None)
            expected.append((row["query"], venue, end, row["event"], row["rank"], row["score"], row["id"]))
    assert in_order(expected) == in_order((r.query, r.venue, r.window_end, r.event, r["rank"], r.score, r.row.id) for r in got)


@pytest.mark.parametrize(("per_batch", "partitions"), [(12, 1), (5, 3), (1, 2)])
def test_a_stream_gives_the_batchs_windows_whatever_its_batches_and_partitions(
    spark: SparkSession, folder: Path, tmp_path: Path, per_batch: int, partitions: int
) -> None:
    batch = sks.monitor(spark.read.schema(SCHEMA).parquet(str(folder)), ASKED, time="ts", group_by=["venue"])
    stream = read_stream(spark, folder, per_batch).repartition(partitions)
    results = sks.monitor(stream, ASKED, time="ts", lateness="2 seconds", group_by=["venue"])
    rows, progress = streamed(spark, results, tmp_path / "checkpoint", "any_batches")
    watermark = max(datetime.fromisoformat(record.eventTime["watermark"]) for record in progress).replace(tzinfo=None)
    assert watermark > datetime(2023, 11, 14, 22, 14)
    expected = [row for row in batch.collect() if row.window_end <= watermark]
    assert in_order(rows) == in_order(expected) and len(rows) > 200
    figures = figures_of(progress)
    assert figures.rows == 3000 and figures.late["best"] == figures.late["swift"] == 0
    assert figures.results == Counter(row["query"] for row in rows)
    table = trades(3000, jitter=2.0)
    unknown = table["price"].null_count + int(np.isnan(table["price"].drop_null()).sum())
    assert figures.nulls["best"] == figures.nulls["cheap"] == unknown > 0


def test_count_windows_count_each_groups_rows(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    asked = [sb.TopK(name="last", k=2, score="price", window=sb.CountWindow(40, 15), emit="snapshots")]
    table = trades(3000, jitter=2.0)
    expected = []
    for venue in ("north", "south", "west"):
        own = table.filter(pa.compute.equal(table["venue"], venue))
        expected += [(venue, row["window_end"], row["rank"], row["id"]) for row in sb.Monitor(asked).push(own).to_pylist()]
    stream = read_stream(spark, folder, 5).repartition(3)
    results = sks.monitor(stream, asked, group_by=["venue"], arrival="id")
    rows, _ = streamed(spark, results, tmp_path / "checkpoint", "counted")
    assert in_order((row.venue, row.window_end, row["rank"], row.row.id) for row in rows) == in_order(expected)
    assert {row.window_start for row in rows if row.window_end == 15} == {0}


def test_integers_serve_as_time(spark: SparkSession, tmp_path: Path) -> None:
    table = trades(600)
    numbered = table.set_column(0, "ts", [pa.array(np.arange(600) * 10 + 10**12)])
    write_files(tmp_path / "in", numbered, 4)
    asked = [sb.TopK(name="q", k=2, score="price", window=sb.TimeWindow(1000, 100), emit="snapshots")]
    monitor = sb.Monitor(asked, time="ts")
    whole = monitor.push(numbered).to_pylist()
    schema = SCHEMA.replace("ts timestamp", "ts long")
    rows, _ = streamed(
        spark,
        sks.monitor(read_stream(spark, tmp_path / "in", 1, schema), asked, time="ts", arrival="id"),
        tmp_path / "checkpoint",
        "numbered",
    )
    assert in_order((r.window_end, r["rank"], r.row.id) for r in rows) == in_order(
        (row["window_end"], row["rank"], row["id"]) for row in whole
    )


# -- time ------------------------------------------------------------------------------------------------------


def test_a_group_that_falls_silent_has_its_windows_closed_by_the_others(spark: SparkSession, tmp_path: Path) -> None:
    def rows(venue: str, seconds: range) -> list[tuple[datetime, int, str, float]]:
        start = datetime(2024, 1, 1)
        return [(start + timedelta(seconds=second), second, venue, float(second % 17)) for second in seconds]

    source = tmp_path / "in"
    source.mkdir()
    asked = [query("q", 1, size="10 seconds", slide="5 seconds")]
    for number, content in enumerate([rows("north", range(0, 8)), rows("south", range(8, 60)), rows("south", range(60, 70))]):
        columns = dict(zip(("ts", "id", "venue", "price"), zip(*content, strict=True), strict=True))
        table = pa.table({**columns, "ts": pa.array(columns["ts"], pa.timestamp("us", "UTC"))})
        pq.write_table(table, source / f"{number}.parquet")
        os.utime(source / f"{number}.parquet", (1_600_000_000 + number, 1_600_000_000 + number))
    results = sks.monitor(read_stream(spark, source, 1), asked, time="ts", group_by=["venue"])
    got, _ = streamed(spark, results, tmp_path / "checkpoint", "silent")
    north = sorted((row.window_end.second, row.event, row.row.id) for row in got if row.venue == "north")
    assert north == [(5, "enter", 4), (10, "enter", 7), (10, "leave", 4), (20, "leave", 7)]


def test_late_rows_and_rows_without_a_time_are_counted_and_left_out(spark: SparkSession, tmp_path: Path) -> None:
    source, late = tmp_path / "in", trades(3, seed=9)
    write_files(source, trades(2000), 2)
    late = late.set_column(0, "ts", [pa.array([EPOCH, EPOCH + 1, None], pa.timestamp("us", "UTC"))])
    pq.write_table(late, source / "9.parquet")
    results = sks.monitor(read_stream(spark, source, 1), [query(emit="snapshots")], time="ts", lateness="1 second")
    rows, progress = streamed(spark, results, tmp_path / "checkpoint", "late")
    figures = figures_of(progress)
    assert figures.rows == 2003 and figures.late == {"q": 2} and figures.null_times == 1
    clean = sks.monitor(
        spark.read.schema(SCHEMA).parquet(*(str(source / f"000{n}.parquet") for n in (0, 1))),
        [query(emit="snapshots")],
        time="ts",
    )
    assert set(in_order(rows)) <= set(in_order(clean.collect()))


# -- what rows carry -------------------------------------------------------------------------------------------


def test_a_row_comes_back_with_its_types_and_nulls(spark: SparkSession, tmp_path: Path) -> None:
    content = [
        (
            datetime(2024, 1, 1, 0, 0, 1),
            2**60 + 1,
            Decimal("1.10"),
            [1, None],
            {"a": 1},
            bytearray(b"\x00\x01"),
            None,
            "é",
            (1, "x"),
        ),
        (datetime(2024, 1, 1, 0, 0, 2), None, None, None, None, None, 3, None, None),
    ]
    schema = (
        "ts timestamp_ntz, big long, amount decimal(10,2), list array<int>, map map<string,int>, raw binary, small byte, "
        "`odd name.x` string, nested struct<a:int,b:string>"
    )
    path = str(tmp_path / "in")
    spark.createDataFrame(content, schema).coalesce(1).write.parquet(path)
    asked = [
        sb.TopK(name="q", k=2, score="where(small > 2, 5, 1)", window=sb.TimeWindow("4 seconds", "4 seconds"), emit="snapshots")
    ]
    asked += [
        sb.TopK(
            name="all",
            k=2,
            score=lambda columns: columns["small"] * 0.0,
            window=sb.TimeWindow("4 seconds", "4 seconds"),
            emit="snapshots",
        )
    ]
    df = spark.read.schema(schema).parquet(path).drop("map")
    for frame in (df, df.select("*")):
        got = sks.monitor(frame, asked, time="ts").collect()
        assert [(row.query, row.window_end, row.score) for row in got] == [
            ("q", datetime(2024, 1, 1, 0, 0, 4), 5.0),
            ("all", datetime(2024, 1, 1, 0, 0, 4), 0.0),
        ]
        assert got[0].row.asDict() == df.where("small is not null").first().asDict()


def test_rows_of_unhashable_columns_need_an_arrival_column(spark: SparkSession) -> None:
    df = spark.createDataFrame([(1, {"a": 1})], "t long, m map<string,int>")
    asked = [sb.TopK(name="q", k=1, score="t", window=sb.TimeWindow(10, 10), emit="snapshots")]
    with pytest.raises(SchemaError, match=r"'m'.*map.*arrival="):
        sks.monitor(df, asked, time="t")
    with pytest.raises(SchemaError, match=r"'v'.*variant.*arrival="):
        sks.monitor(df.select("t", F.struct(F.parse_json(F.lit("1"))).alias("v")), asked, time="t")
    place = df.select("t", F.expr("array(st_geomfromwkb(X'0101000000000000000000F03F0000000000000040'))").alias("v"))
    with pytest.raises(SchemaError, match=r"'v'.*geometry.*arrival="):
        sks.monitor(place, asked, time="t")
    (row,) = sks.monitor(df, asked, time="t", arrival="t").collect()
    assert row.row.m == {"a": 1}
    named = df.select("t", F.struct(F.lit(1).alias("variant"), F.lit(2).alias("geometry")).alias("v"))
    assert sks.monitor(named, asked, time="t").count() == 1  # these are but names


def test_columns_may_have_the_names_of_result_columns(spark: SparkSession) -> None:
    df = spark.createDataFrame([(1, 2.0, "x", 5)], "t long, score double, query string, rank int")
    asked = [sb.TopK(name="q", k=1, score="score", window=sb.TimeWindow(10, 10), emit="snapshots")]
    (row,) = sks.monitor(df, asked, time="t").collect()
    assert row.query == "q" and row["rank"] == 1 and row.row.query == "x" and row.row["rank"] == 5


# -- restarts --------------------------------------------------------------------------------------------------


def test_killed_and_started_again_nothing_is_missing_and_nothing_comes_twice(spark: SparkSession, tmp_path: Path) -> None:
    source, target, checkpoint = tmp_path / "in", tmp_path / "out", tmp_path / "checkpoint"
    write_files(source, trades(3000, jitter=2.0), 8)
    killed_once(killable.__file__, checkpoint, 8, source, target, checkpoint, 3)
    got = spark.read.parquet(str(target)).collect()
    whole = sks.monitor(read_stream(spark, source, 1), killable.QUERIES, time="ts", lateness="3 seconds", group_by=["venue"])
    uninterrupted, _ = streamed(spark, whole, tmp_path / "other", "uninterrupted")
    assert in_order(got) == in_order(uninterrupted) and len(got) > 100


def test_other_queries_on_an_old_checkpoint_are_refused(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    stream = read_stream(spark, folder, 12)

    def run(*asked: sb.TopK) -> None:
        writer = sks.monitor(stream, asked, time="ts").writeStream.format("parquet").option("path", str(tmp_path / "out"))
        writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start().awaitTermination()

    run(query(k=3))
    write_files(folder.parent / "more", trades(100, seed=3), 1)
    (folder.parent / "more" / "0000.parquet").rename(folder / "9999.parquet")
    try:
        with pytest.raises(StreamingQueryException, match="query 'q' changed"):
            run(query(k=4))
    finally:
        (folder / "9999.parquet").unlink()


def test_a_stream_goes_on_in_a_session_of_another_time_zone(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    """That of the machine, unless somebody sets it: a moment is the same in all of them."""
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    ways: dict[str, Any] = {"time": "ts", "lateness": "3 seconds", "group_by": ["venue"]}
    for zone, files in ("UTC", range(6)), ("Asia/Kolkata", range(6, 12)):
        for number in files:
            shutil.copy2(folder / f"{number:04}.parquet", source)
        spark.conf.set("spark.sql.session.timeZone", zone)
        try:
            writer = sks.monitor(read_stream(spark, source, 6), ASKED[0], **ways).writeStream.format("parquet")
            writer = writer.option("path", str(out)).option("checkpointLocation", str(tmp_path / "checkpoint"))
            writer.trigger(availableNow=True).start().awaitTermination()
        finally:
            spark.conf.set("spark.sql.session.timeZone", "UTC")
    whole, _ = streamed(spark, sks.monitor(read_stream(spark, source, 6), ASKED[0], **ways), tmp_path / "other", "zoned")
    assert in_order(spark.read.parquet(str(out)).collect()) == in_order(whole) and len(whole) > 100


# -- what is refused before anything starts --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "arguments", "error", "says"),
    [
        ([], {"time": "ts"}, QueryError, "at least one query"),
        (["top"], {"time": "ts"}, QueryError, "TopK"),
        ([query(), query()], {"time": "ts"}, QueryError, "two queries are called 'q'"),
        ([query()], {}, QueryError, "name the time column"),
        ([query()], {"time": "when"}, SchemaError, "'when'.*it has 'ts'"),
        ([query()], {"time": "venue"}, SchemaError, "integer or a timestamp"),
        ([query()], {"time": "ts", "group_by": ["venu"]}, SchemaError, "did you mean 'venue'"),
        ([query()], {"time": "TS"}, SchemaError, "did you mean 'ts'"),
        ([query()], {"time": 5}, SchemaError, "time must be the name of a column, such as 'ts', got 5"),
        ([query()], {"time": "ts", "group_by": [None]}, SchemaError, "group_by must be the name of a column"),
        ([query()], {"time": "ts", "group_by": ["venue", "id", "venue"]}, SchemaError, "'venue' twice; name it once"),
        ([query()], {"time": "ts", "group_by": None}, QueryError, r"as in \['venue'\]"),
        ([query()], {"time": "ts", "group_by": 5}, QueryError, r"as in \['venue'\], got 5"),
        (None, {"time": "ts"}, QueryError, "expected queries such as TopK"),
        ([query()], {"time": "ts", "arrival": "price"}, SchemaError, "integer or a timestamp"),
        ([query()], {"time": "ts", "key": "id"}, QueryError, "deletes="),
        ([query()], {"time": "ts", "lateness": -1}, QueryError, "must not be negative"),
        ([query()], {"time": "ts", "lateness": "1500 us"}, QueryError, "milliseconds"),
        ([query()], {"time": "id"}, SchemaError, "integer in that column's unit"),
        ([query(score="prise")], {"time": "ts"}, SchemaError, "did you mean 'price'"),
        ([query(score="venue")], {"time": "ts"}, SchemaError, "as a number"),
        ([query(where="venue > 3")], {"time": "ts"}, SchemaError, "as a number"),
        ([sb.TopK(name="q", k=1, score="price", window=sb.CountWindow(5))], {}, QueryError, "arrival="),
        (
            [sb.TopK(name="q", k=1, score="price", window=sb.CountWindow(5))],
            {"arrival": "id", "lateness": 5},
            QueryError,
            "late",
        ),
    ],
)
def test_what_cannot_be_answered_is_refused_with_a_remedy(
    spark: SparkSession, asked: Any, arguments: dict[str, Any], error: type[Exception], says: str
) -> None:
    df = spark.createDataFrame([], SCHEMA)
    with pytest.raises(error, match=says):
        sks.monitor(df, asked, **arguments)


def test_settings_never_override_what_the_user_set(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    sks.configure(spark, cores=7)
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


def test_workers_run_a_python_that_has_skyband(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of a session which somebody else began is the first `python3` of the path."""
    monkeypatch.delenv("PYSPARK_PYTHON")
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "nosuchpython3")
    df, asked = spark.createDataFrame([], SCHEMA), sb.TopK(name="q", k=1, score="price", window=sb.CountWindow(3))
    with pytest.raises(sb.SkybandError, match=r"would run 'nosuchpython3', which has no skyband; .*sks\.configure"):
        sks.monitor(df, asked, arrival="id")
    bare = tmp_path / "python3"  # finds skyband, but nothing that was installed for it
    bare.write_text(f'#!/bin/sh\nPYTHONPATH={Path(sb.__file__).parents[1]} exec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(bare))
    with pytest.raises(sb.SkybandError, match=r"/python3', which has no numpy; .*sks\.configure"):
        sks.monitor(df, asked, arrival="id")
    sks.configure(spark)
    assert spark.sparkContext.pythonExec == sys.executable
    assert sks.monitor(df, asked, arrival="id").columns[0] == "query"


def test_a_task_keeps_to_its_core(spark: SparkSession) -> None:
    """Spark runs a task a core: in its workers, a push uses no threads."""

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from skyband.threads import cores

        yield from (pa.record_batch({"cores": [cores()] * len(batch)}) for batch in batches)

    assert {row.cores for row in spark.range(4).mapInArrow(count, "cores long").collect()} == {1}
