"""Plans of any size reach the workers: thousands of queries are more than Spark takes within a step."""

from __future__ import annotations

import os
import pickle
from operator import eq
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import skyband as sb
import skyband.spark as sks
from skyband.spark.carried import MOST_INSIDE, Carried
from skyband.spark.shards import MANY

TAKEN = 1 << 20  # bytes of a step that Spark takes without a broadcast


def alike(number: int) -> str:
    return f"{'a' * 20_000} {number}"


def unlike(number: int) -> str:
    return f"{Random(number).randbytes(20_000).hex()} {number}"


@pytest.mark.parametrize("name", [alike, unlike])
def test_a_stream_holds_queries_whose_plan_is_larger_than_spark_takes(spark: SparkSession, tmp_path: Path, name: Any) -> None:
    """With names as long as thousands of queries are together: once a plan that is small when packed, once one that is not."""
    window = sb.TimeWindow(20, 10)
    queries = [
        sb.TopK(name=name(n), k=1, score=sb.linear({"x": 1.0, "y": n / 7}), window=window, emit="snapshots")
        for n in range(MANY + 1)
    ]
    assert len(cloudpickle.dumps(queries)) > TAKEN
    generator = np.random.default_rng(1)
    table = pa.table({"t": np.arange(60), "x": generator.random(60), "y": generator.random(60)})
    (tmp_path / "rows").mkdir()
    for at in range(2):
        file = tmp_path / "rows" / f"{at}.parquet"
        pq.write_table(table.slice(30 * at, 30), file)
        os.utime(file, (1_000_000 + at,) * 2)  # Spark takes files by their age
    rows = spark.readStream.schema("t long, x double, y double").option("maxFilesPerTrigger", 1)
    results = sks.monitor(rows.parquet(str(tmp_path / "rows")), queries, time="t")
    stream = (
        results.writeStream.format("memory")
        .queryName("carried")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    stream.awaitTermination()
    found = sorted(tuple(row) for row in spark.sql("select query, window_end, rank, row.t from carried").collect())
    pushed = sb.Monitor(queries, time="t").push(table).select(["query", "window_end", "rank", "t"])
    expected = sorted(tuple(one.values()) for one in pushed.to_pylist())
    assert len(found) == len(expected) and all(map(eq, found, expected))  # not shown: names are long


@pytest.mark.parametrize("data", [b"little", Random(1).randbytes(2 * MOST_INSIDE)])
def test_a_worker_reads_what_it_is_told_once(spark: SparkSession, data: bytes) -> None:
    carried = Carried([data], spark)
    step = cloudpickle.dumps(carried)
    assert len(step) < MOST_INSIDE and carried.open() == [data]
    arrived = [pickle.loads(step), pickle.loads(step)]  # nothing is looked for yet
    if len(data) < MOST_INSIDE:
        assert arrived[0].open() == [data] and arrived[0].open() is arrived[1].open()
    spark.sparkContext._pickled_broadcast_vars.clear()

    def step_in_spark(number: int) -> bool:
        return carried.open() == [data] and carried.open() is carried.open()

    assert spark.sparkContext.parallelize(range(2), 2).map(step_in_spark).collect() == [True, True]
