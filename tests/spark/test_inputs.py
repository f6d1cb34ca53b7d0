"""What the input's columns may be, on the real Spark: without nulls by promise, with long offsets, of odd values."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from killable_kinds import INPUT, MIXED, visits
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from test_pipeline import in_order, streamed, write_files

import skyband as sb
import skyband.spark as sks
from skyband.errors import QueryError, SchemaError

LARGE = "spark.sql.execution.arrow.useLargeVarTypes"


def seventy(window: Any) -> list[Any]:
    return [sb.TopK(name=f"q{n}", k=2, score=sb.linear({"x": n / 70, "y": 1.0}), window=window) for n in range(70)]


_TIME, _ROWS = sb.TimeWindow("10 seconds", "2 seconds"), sb.CountWindow(60, 20)
BEST = [sb.TopK(name="best", k=3, score="x", window=_TIME), sb.Threshold(name="high", above=0.9, score="x", window=_TIME)]
ASKED = {
    "few scores": (BEST, {"group_by": ["door"]}),
    "all kinds": (MIXED, {"shards": 2}),
    "seventy scores over time": (seventy(_TIME), {}),
    "seventy scores over rows": (seventy(_ROWS), {}),
    "rows that may be deleted": (seventy(_ROWS)[:2], {"key": "id", "deletes": "gone"}),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("visits")
    write_files(path, visits(300), 3)
    return path


@pytest.fixture
def large(spark: SparkSession) -> Iterator[None]:
    """Texts and bytes are handed out with long offsets."""
    spark.conf.set(LARGE, "true")
    yield
    spark.conf.set(LARGE, "false")


def whole(df: DataFrame, *, promised: bool) -> DataFrame:
    """The visits without a null; where it is `promised`, Spark knows so."""
    named = {"x": F.lit(0.0), "shop": F.lit("?"), "door": F.lit("?"), "id": F.lit(0), "y": F.lit(0.0)}
    columns = [F.coalesce(F.col(name), named[name]).alias(name) for name in ("id", "shop", "door", "x", "y")]
    made = [F.lit(b"ab").alias("raw"), F.array(F.lit("a"), F.col("shop")).alias("list"), (F.col("id") % 9 == 7).alias("gone")]
    found = df.select(F.coalesce(F.col("ts"), F.current_timestamp()).alias("ts"), *columns, *made)
    found = found.withColumn("gone", F.coalesce("gone", F.lit(False)))
    if promised:
        assert not any(field.nullable for field in found.schema)
        return found
    names = [name for name in found.columns if name not in ("raw", "list")]
    loose = [F.when(F.lit(True) | F.col("x").isNull(), F.col(name)).alias(name) for name in names]
    found = found.select(*loose, F.nullif(F.col("raw"), F.lit(b"")).alias("raw"), "list")
    assert all(field.nullable for field in found.schema if field.name not in ("list", "raw"))
    return found.select("ts", "id", "shop", "door", "x", "y", "raw", "list", "gone")


@pytest.mark.parametrize("name", ASKED)
def test_columns_that_are_never_null_are_answered_as_others(
    spark: SparkSession, folder: Path, tmp_path: Path, name: str
) -> None:
    compare_with_plain(spark, folder, tmp_path, name)


@pytest.mark.usefixtures("large")
def test_long_offsets_make_no_difference(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    compare_with_plain(spark, folder, tmp_path, "all kinds")


def compare_with_plain(spark: SparkSession, folder: Path, tmp_path: Path, name: str) -> None:
    queries, given = ASKED[name]
    ways = {"time": "ts", "arrival": "id", **given}
    if "key" in given:
        del ways["time"]
    plain = spark.read.schema(INPUT).parquet(str(folder))
    expected = in_order(sks.monitor(whole(plain, promised=False), queries, **ways).collect())
    assert len(expected) > 40
    assert in_order(sks.monitor(whole(plain, promised=True), queries, **ways).collect()) == expected
    stream = spark.readStream.schema(INPUT).option("maxFilesPerTrigger", 2).parquet(str(folder))
    if "time" in ways:
        ways["lateness"] = "2 seconds"
    results = sks.monitor(whole(stream, promised=True), queries, **ways)
    rows, _ = streamed(spark, results, tmp_path / "checkpoint", "promised")
    assert rows and set(in_order(rows)) <= set(expected)


@pytest.mark.usefixtures("large")
def test_columns_that_are_never_null_are_answered_where_queries_come_and_go(spark: SparkSession, folder: Path) -> None:
    command = '{"add": {"name": "late", "k": 1, "score": "y", "window": {"size": "4 seconds", "slide": "2 seconds"}}}'
    control = spark.createDataFrame([(command,)], "command string")
    plain = spark.read.schema(INPUT).parquet(str(folder))
    loose, promised = (
        sks.monitor(whole(plain, promised=one), BEST, time="ts", group_by="door", control=control).collect()
        for one in (False, True)
    )
    assert in_order(loose) == in_order(promised)
    assert {row.query for row in promised if row.event == "enter"} == {"best", "high", "late"}


def test_one_zero_and_one_nan_are_one_group_each_in_batches_and_streams(spark: SparkSession, tmp_path: Path) -> None:
    """As Spark's own groupBy has it, whatever the partitions; the group comes out as Spark has it too."""
    odd = [0.0, -0.0, math.nan, -math.nan, None, 1.5]
    bits = np.array([0x7FF8000000000001], np.uint64).view(float)[0]  # a NaN of another kind
    level = [*odd, *odd[::-1], bits, -0.0, 7.0]
    times = [*range(len(level) - 1), 900]
    rows = pa.table({"t": times, "level": pa.array(level), "short": pa.array(level, pa.float32())})
    write_files(tmp_path / "in", rows, 5)
    queries = [
        sb.TopK(name="all", k=20, score="t", window=sb.TimeWindow(100, 100), emit="snapshots"),
        sb.TopKPairs(name="far", k=1, score="b.t - a.t", order="desc", window=sb.TimeWindow(100, 100), emit="snapshots"),
    ]
    schema = "t long, level double, short float"
    ways: dict[str, Any] = {"time": "t", "group_by": ["level", "short"]}
    batch = sks.monitor(spark.read.schema(schema).parquet(str(tmp_path / "in")), queries, **ways).collect()
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 2).parquet(str(tmp_path / "in"))
    live, _ = streamed(spark, sks.monitor(stream, queries, **ways), tmp_path / "checkpoint", "levels")
    seen = [
        sorted((row.query, repr(row.level), repr(row.short), row["rank"], row.score) for row in got) for got in (batch, live)
    ]
    assert [one for one in seen[0] if one[1] != "7.0"] == seen[1]
    assert {one[1] for one in seen[1]} == {"0.0", "nan", "None", "1.5"}
    assert max(one[3] for one in seen[1] if one[:2] == ("all", "0.0")) == 5


def test_a_group_column_keeps_its_type(spark: SparkSession) -> None:
    kinds = ["float", "double", "decimal(9,2)", "tinyint", "timestamp_ntz", "varchar(3)", "binary"]
    columns = [f"cast(null as {kind}) as g{at}" for at, kind in enumerate(kinds)]
    found = spark.range(2).selectExpr("id", "id * 1.1d as x", *columns).withColumn("g0", F.lit(0.1).cast("float"))
    groups = [name for name in found.columns if name.startswith("g")]
    query = sb.TopK(name="top", k=1, score="x", window=sb.TimeWindow(3, 3))
    for control in (None, spark.createDataFrame([], "command string")):
        results = sks.monitor(found, query, time="id", group_by=groups, control=control)
        assert [results.schema[name].dataType for name in groups] == [found.schema[name].dataType for name in groups]
        assert {row.g0 for row in results.collect()} == {found.first().g0}


def test_groups_that_look_alike_on_the_way_are_told_apart(spark: SparkSession, tmp_path: Path) -> None:
    """Null and NaN are one in pandas, the hours before and after clocks are set back in Python; neither has all times."""
    fall = datetime(2023, 11, 5, 5, 30, tzinfo=UTC)  # half past one in New York, and an hour later again
    rows = pa.table(
        {
            "t": [*range(24), 1000],
            "level": pa.array([None, math.nan] * 12 + [1.0]),
            "moment": pa.array([fall, fall, fall + timedelta(hours=1), fall + timedelta(hours=1)] * 6 + [None]),
            "last": pa.array([3 * 10**17] * 25).cast(pa.timestamp("us")),  # the year 11476
            "day": pa.array([3 * 10**6] * 25, pa.int32()).cast(pa.date32()),
        }
    )
    write_files(tmp_path / "in", rows, 2)
    schema, window = "t long, level double, moment timestamp, last timestamp_ntz, day date", sb.TimeWindow(12, 12)
    queries = [
        sb.TopK(name="top", k=9, score="t", window=window),
        sb.TopKPairs(name="far", k=1, score="b.t - a.t", order="desc", window=window),
    ]
    ways: dict[str, Any] = {"time": "t", "group_by": ["level", "moment", "last", "day"], "shards": 2}
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        live, _ = streamed(spark, plainly(sks.monitor(stream, queries, **ways)), tmp_path / "checkpoint", "alike")
        read = spark.read.schema(schema).parquet(str(tmp_path / "in"))
        batch = plainly(sks.monitor(read, queries, **ways)).collect()
        commands = spark.createDataFrame([], "command string")
        steered = plainly(sks.monitor(read, queries, **ways, control=commands)).collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert in_order(live) == in_order(row for row in batch if row.window_end <= 996)
    assert in_order(steered) == in_order(batch)
    found = Counter((row.query, row.event, row.window_end) for row in live)
    assert found["top", "enter", 12] == 12 and found["far", "enter", 24] == found["far", "leave", 36] == 4


def test_what_arrow_does_not_know_of_a_type_is_not_lost(spark: SparkSession) -> None:
    """Collations, and intervals other than of days to seconds; in rows, groups, pairs, objects."""
    found = spark.range(6).selectExpr(
        "id",
        "cast('A' as string) collate UTF8_LCASE as name",
        "id * interval '1' hour as spent",
        "named_struct('pauses', array(interval '2' minute), 'who', 'x' collate UNICODE) as more",
    )
    found = found.withColumn("spent", F.col("spent").cast("interval hour"))
    window = sb.TimeWindow(3, 3)
    queries = [
        sb.TopK(name="top", k=1, score="id", window=window),
        sb.TopKPairs(name="near", k=1, score="b.id - a.id", window=window),
        sb.TopKAcross(name="most", k=1, key="name", stream="name", value="id", streams=["A"], window=window),
    ]
    for control in (None, spark.createDataFrame([], "command string")):
        results = sks.monitor(found, queries, time="id", group_by=["name"], arrival="id", control=control)
        pair, named = results.schema["pair"].dataType, [results.schema["name"].dataType]
        named.append(results.schema["object"].dataType["name"].dataType)
        for row in (results.schema["row"].dataType, pair["a"].dataType, pair["b"].dataType):
            assert row.simpleString() == found.schema.simpleString()
        assert named == [found.schema["name"].dataType] * 2
        tops = results.where("query = 'top' and event = 'enter'").select("row.*").orderBy("id").collect()
        assert tops == found.where("id in (2, 5)").orderBy("id").collect()


@pytest.mark.parametrize("also", [[], [sb.TopKPairs(name="near", k=1, score="b.x - a.x", window=_TIME)]], ids=["rows", "pairs"])
def test_what_arrow_does_not_know_may_lie_beside_what_is_never_null(
    spark: SparkSession, folder: Path, tmp_path: Path, also: list[Any]
) -> None:
    """Behind a state, Spark keeps no such promise."""
    made = "named_struct('name', shop collate UNICODE, 'marks', array(1, 2), 'by', map('x', 1)) as more"
    stream = spark.readStream.schema(INPUT).parquet(str(folder)).selectExpr("*", made)
    results = sks.monitor(stream, [BEST[0], *also], time="ts", arrival="id", shards=2)
    rows, _ = streamed(spark, results.where("query = 'best'").select("row.more.*"), tmp_path / "checkpoint", "beside")
    assert rows and all((row.marks, row.by) == ([1, 2], {"x": 1}) for row in rows)


def plainly(results: DataFrame) -> DataFrame:
    """What of result rows Python can hold, whatever the groups."""
    scored = F.coalesce("pair.b.t", "row.t").alias("t")
    return results.select("query", "window_end", "event", "rank", "score", scored)


# -- what they may not be --------------------------------------------------------------------------------------

PLAIN = "ts timestamp, venue string, price double"
BEST_PRICE = sb.TopK(name="q", k=3, score="price", window=_TIME)


def test_a_group_is_not_called_as_another_column_of_the_results(spark: SparkSession) -> None:
    """The sink of files would fail on it, and nobody could ask for either."""
    df = spark.createDataFrame([], f"{PLAIN}, Score string, message int")
    with pytest.raises(SchemaError, match="group_by names 'Score', and results have a column 'score' of their own"):
        sks.monitor(df, BEST_PRICE, time="ts", group_by="Score")
    assert "message" in sks.monitor(df, BEST_PRICE, time="ts", group_by="message").columns
    commands = spark.createDataFrame([], "command string")
    with pytest.raises(SchemaError, match="group_by names 'message', and results have a column 'message'"):
        sks.monitor(df, BEST_PRICE, time="ts", group_by="message", control=commands)


def test_columns_that_spark_takes_for_one_are_named(spark: SparkSession) -> None:
    df = spark.createDataFrame([], PLAIN)
    with pytest.raises(SchemaError, match="'venue', 'Venue', which Spark takes for the same name; rename one"):
        sks.monitor(df.select("*", F.lit(1).alias("Venue")), BEST_PRICE, time="ts")
    with pytest.raises(SchemaError, match="2 columns of that name; rename them"):
        sks.monitor(df.select("*", "venue"), BEST_PRICE, time="ts")
    both = df.withColumn("both", F.array(F.struct("venue", F.col("venue"))))
    with pytest.raises(SchemaError, match="'both' is array<struct<venue:string,venue:string>>, which Spark cannot hand out"):
        sks.monitor(both, BEST_PRICE, time="ts")


def test_what_would_end_a_stream_is_refused_before_it_starts(spark: SparkSession) -> None:
    """A second watermark, and a time zone that Spark knows and Python does not."""
    stream = spark.readStream.format("rate").load().withColumn("price", F.col("value").cast("double"))
    with pytest.raises(SchemaError, match=r"has a watermark on 'ts' already.*take withWatermark out.*`lateness`"):
        sks.monitor(stream.withWatermark("timestamp", "5 seconds").withColumnRenamed("timestamp", "ts"), BEST_PRICE, time="ts")
    left = stream.withWatermark("timestamp", "5 seconds").select(F.unix_micros("timestamp").alias("t"), "price")
    with pytest.raises(SchemaError, match=r"has a watermark, on a column that it has left behind, already"):
        sks.monitor(left, sb.TopK(name="q", k=3, score="price", window=sb.TimeWindow(10, 2)), time="t")
    spark.conf.set("spark.sql.session.timeZone", "GMT+8")
    try:
        with pytest.raises(SchemaError, match=r"time zone is 'GMT\+8', which the Python workers.*such as '\+08:00'"):
            sks.monitor(stream, BEST_PRICE, time="timestamp")
        assert sks.monitor(spark.createDataFrame([], PLAIN), BEST_PRICE, time="ts").collect() == []
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_what_is_no_dataframe_of_spark_is_refused() -> None:
    with pytest.raises(QueryError, match=r"got pyarrow\.lib\.Table; make one"):
        sks.monitor(pa.table({"t": [1]}), BEST_PRICE, time="t")  # type: ignore[arg-type]
