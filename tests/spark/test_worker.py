"""What a worker does once, and what a session is given."""

from __future__ import annotations

import gc
import os
import weakref
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import skyband as sb
from skyband.spark import jvm, packets, worker
from skyband.spark.candidate_rows import sent_schema
from skyband.spark.plan import TIE, make_request
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
        ("", 2, ["-Xss32m", "-XX:+UseParallelGC", "-XX:GCTimeRatio=4", "-XX:CompileThresholdScaling=3"]),
        ("", 16, ["-Xss32m", "-XX:+UseParallelGC", "-XX:GCTimeRatio=4"]),
        ("-XX:+UseZGC -Xss1m", 16, ["-XX:GCTimeRatio=4"]),  # a JVM with two collectors does not start
        ("-XX:-UseG1GC -XX:TieredStopAtLevel=1", 2, ["-Xss32m", "-XX:GCTimeRatio=4"]),
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
