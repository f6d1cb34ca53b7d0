"""What a worker does once, and what a session is given."""

from __future__ import annotations

import gc
import math
import os
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from test_pipeline import SCHEMA, in_order, query, read_stream, trades, write_files

import skyband as sb
import skyband.spark as sks
from skyband.spark import jvm, packets, pipeline, worker
from skyband.spark.candidate_rows import sent_schema
from skyband.spark.flat import result_schema
from skyband.spark.group import Group
from skyband.spark.plan import TIE, TIME, make_request
from skyband.spark.reduce import reduced
from skyband.spark.sessions import DAEMON, FILES, settings
from skyband.state import table_from_bytes


def test_what_a_step_has_loaded_is_made_permanent_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Node:
        """Refers to itself."""

        def __init__(self) -> None:
            self.own = self

    said: list[bool] = []
    monkeypatch.setattr(worker, "_settled", set())
    monkeypatch.setattr(gc, "freeze", lambda: said.append(garbage() is None))
    garbage = weakref.ref(Node())
    assert list(worker.settling("one", iter([1, 2]))) == [1, 2]
    assert said == [True]  # what was garbage by then is gone, not kept for good
    assert list(worker.settling("one", [3])) == [3] and len(said) == 1
    assert list(worker.settling("other", [])) == [] and len(said) == 2


@pytest.mark.parametrize("rows", [0, 1, 5000])
def test_packets_are_small_and_hold_all_rows_in_order(rows: int) -> None:
    table = pa.table({"x": pa.array(range(rows), pa.int64()), "text": pa.array(["a" * 20] * rows, pa.string())})
    sent = list(packets.packets(table.slice(0, rows)))
    assert pa.concat_tables(map(table_from_bytes, sent)).equals(table)
    assert all(len(data) <= packets.MOST_BYTES + 1000 for data in sent) and len(sent) >= 1
    assert 10_000 * packets.MOST_BYTES < 1 << 29  # a batch of Spark's, well below what a JVM of 1 GB can take


def test_workers_are_forked_with_everything_loaded(spark: SparkSession) -> None:
    """What a task finds in its process before it has asked for anything, and that what is loaded works after the fork."""

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import sys

        known = [name in sys.modules for name in ("numba", "pandas", "skyband.spark.group")]
        for batch in batches:
            largest = pa.table(batch).sort_by("id")["id"][-1].as_py()  # with Arrow's threads, made anew
            yield pa.record_batch({"loaded": [sum(known)], "largest": [largest]})

    found = spark.range(0, 4000, 1, 4).mapInArrow(look, "loaded long, largest long").collect()
    assert {row.loaded for row in found} == {3}
    assert sorted(row.largest for row in found) == [999, 1999, 2999, 3999]


def test_workers_are_forked_so_only_where_spark_is_one_process() -> None:
    assert DAEMON in settings(local=True).values() and DAEMON not in settings().values()


def test_checkpoints_are_renamed_by_the_plain_manager_only_where_spark_is_one_process() -> None:
    assert FILES in settings(local=True).values() and FILES not in settings().values()


@pytest.mark.parametrize(
    ("said", "cores", "left"),
    [
        ("", 2, ["-Xss32m", "-XX:+UseParallelGC", "-XX:GCTimeRatio=4", *jvm.SELDOM_COMPILED]),
        ("", 16, ["-Xss32m", "-XX:+UseParallelGC", "-XX:GCTimeRatio=4"]),
        ("-XX:+UseZGC -Xss1m", 16, ["-XX:GCTimeRatio=4"]),  # a JVM with two collectors does not start
        ("-XX:-UseG1GC -XX:TieredStopAtLevel=1", 2, ["-Xss32m", "-XX:GCTimeRatio=4"]),
        (
            "-XX:Tier4InvocationThreshold=9 -XX:+UseZGC",
            2,
            ["-Xss32m", "-XX:GCTimeRatio=4"],
        ),  # mixed with theirs ours mean nothing
        ("-XX:+UseGCOverheadLimit -XX:GCTimeRatio=9", 16, ["-Xss32m", "-XX:+UseParallelGC"]),
    ],
)
def test_a_jvm_gets_only_options_that_the_user_said_nothing_of(said: str, cores: int, left: list[str]) -> None:
    assert jvm.options(said, cores) == left


def test_options_are_looked_for_wherever_users_say_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given: list[str] = []
    (tmp_path / "spark-defaults.conf").write_text(
        "# mine\nspark.driver.defaultJavaOptions = -XX:GCTimeRatio=9 -Xss1m\n\nspark.x\n"
    )
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-XX:+UseSerialGC")
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Dmine=1")
    monkeypatch.setattr(jvm, "launch_gateway", lambda *_: given.append(os.environ["SPARK_SUBMIT_OPTS"]))
    monkeypatch.setattr(jvm.SparkContext, "_ensure_initialized", lambda **_: None)
    jvm.start({"spark.driver.extraJavaOptions": "-XX:CompileThresholdScaling=1"})
    (options,) = given
    assert options.startswith("-Dmine=1 -Dlog4j2.configurationFile=") and "-X" not in options
    assert os.environ["SPARK_SUBMIT_OPTS"] == "-Dmine=1"
    assert jvm.defaults() == {"spark.driver.defaultJavaOptions": "-XX:GCTimeRatio=9 -Xss1m", "spark.x": ""}


def test_what_rows_are_ranked_by_travels_once() -> None:
    schema = pa.schema({"t": pa.int64(), "x": pa.float64(), "n": pa.int64()})
    window = sb.TimeWindow(10, 5)
    queries = [sb.TopK(name=score, k=1, score=score, window=window) for score in ("x", "n", "x + n")]
    by_hash, by_column = (make_request(schema, queries, "t", 0, (), arrival).plan for arrival in (None, "n"))
    assert sent_schema(by_hash).names == [TIE, "s1", "s2", "c0", "c1", "c2"]
    assert sent_schema(by_column).names == ["s1", "s2", "c0", "c1", "c2"]


@pytest.mark.parametrize("kind", [pa.int64(), pa.int16(), pa.timestamp("us", "UTC"), pa.timestamp("us")], ids=str)
def test_a_group_holds_of_rows_what_stands_in_two_columns_once(kind: pa.DataType) -> None:
    """The time as a whole number, a score that is a column as that one; results have all columns, and nulls where rows do."""
    schema = pa.schema({"t": kind, "x": pa.float64(), "n": pa.int64()})
    window = sb.TimeWindow(10, 5) if pa.types.is_integer(kind) else sb.TimeWindow("10 us", "5 us")
    queries = [sb.TopK(name=score, k=2, score=score, window=window, emit="snapshots") for score in ("x", "n")]
    plan = make_request(schema, queries, "t", 0, (), None).plan
    x, n = pa.array([1.0, None, math.nan]), pa.array([1, 7, 5])
    rows = pa.record_batch({"c0": pa.array([0, 1, 2]).cast(kind), "c1": x, "c2": n, "s1": n.cast(pa.float64())})
    group = Group(plan)
    sent = [row["rows"] for part in reduced(plan, [rows]) for row in part.to_pylist() if row["rows"] is not None]
    list(group.add(group.rows_of(sent), np.zeros((0, 3 + plan.slots), np.int64)))
    (first, *_) = group.advance(5)
    (monitor,) = group.monitors
    assert monitor is not None and monitor._schema is not None
    assert monitor._schema.names == [TIME, "s1", "c1", "c2"]
    assert first.schema == result_schema(plan)
    found = first.select(["query", "rank", "c0", "c1", "c2"]).set_column(2, "c0", first["c0"].cast(pa.int64())).to_pylist()
    assert [list(row.values()) for row in found[:2]] == [["x", 1, 0, 1.0, 1], ["n", 1, 1, None, 7]]
    assert list(found[2].values())[:3] == ["n", 2, 2] and math.isnan(found[2]["c1"])


def test_workers_pack_results_as_catalyst_does(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same columns, types and rows, without a stage in which Spark writes every row once more."""
    df = spark.createDataFrame(trades(400))
    asked = [query("best"), query("last", emit="snapshots", score="-price")]
    here = sks.monitor(df, asked, time="ts", group_by=["venue"])
    monkeypatch.setattr(pipeline, "packs_itself", lambda *_: False)
    there = sks.monitor(df, asked, time="ts", group_by=["venue"])
    assert here.schema == there.schema
    assert in_order(here.collect()) == in_order(there.collect()) != []
    assert [results._jdf.queryExecution().optimizedPlan().nodeName() for results in (here, there)] == ["MapInArrow", "Project"]


@pytest.mark.parametrize("steered", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_function_that_fails_in_the_middle_is_named_and_once_mended_goes_on(
    spark: SparkSession, tmp_path: Path, steered: bool
) -> None:
    """What came before is written, nothing of the micro-batch that failed is, and nothing is missing or doubled afterwards."""
    write_files(tmp_path / "in", trades(600), 4)
    (tmp_path / "commands").mkdir()

    def worth(columns: Any) -> Any:
        if not mended and (columns["id"] >= 300).any():
            raise ValueError("no worth known from 300 on")
        return columns["price"] * 2

    def answers() -> DataFrame:
        asked = [query("q", score=worth, emit="snapshots", size="2 seconds", slide="1 second")]
        commands = spark.readStream.schema("command string").json(str(tmp_path / "commands")) if steered else None
        stream = read_stream(spark, tmp_path / "in", 1)
        return sks.monitor(stream, asked, time="ts", arrival="id", group_by="venue", control=commands)

    def run() -> None:
        writer = answers().writeStream.format("parquet").option("path", str(tmp_path / "out"))
        writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start().awaitTermination()

    mended = False
    with pytest.raises(StreamingQueryException, match=r"the callable score '\S*worth' failed with ValueError: no worth known"):
        run()
    before = spark.read.parquet(str(tmp_path / "out")).count()
    mended = True
    run()
    rows = spark.read.parquet(str(tmp_path / "out")).select("venue", "window_end", "rank", "score", "row.id").collect()
    df = spark.read.schema(SCHEMA).parquet(str(tmp_path / "in"))
    plain = [query("q", score="price * 2", emit="snapshots", size="2 seconds", slide="1 second")]
    whole = sks.monitor(df, plain, time="ts", arrival="id", group_by="venue")
    last = max(row.window_end for row in rows)
    expected = (
        whole.select("venue", "window_end", "rank", "score", "row.id").where(F.col("window_end") <= F.lit(last)).collect()
    )
    assert in_order(rows) == in_order(expected) and 0 < before < len(rows)
