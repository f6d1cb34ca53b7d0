"""What approximate answers are worth, on the way to those who ask: progress reports, JSON lines, Prometheus."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from test_metrics import Shown, report, samples, text, told
from test_pipeline import write_files

import skyband as sb
import skyband.spark as sks
from skyband.spark.progress import Figures, after
from skyband.spark.tallies import BY_QUERY

ROUGH = sb.TopK(name="hot", k=3, score="x", window=sb.CountWindow(60, 5), algorithm="probabilistic", error=0.2)
SHARE = sb.TopKAcross(
    name="share",
    k=3,
    key="shop",
    stream="door",
    value="x",
    streams=["front", "back"],
    precision=0.7,
    window=sb.CountWindow(80, 10),
    ranges=(0, 1),
    repeats=4,
)


def test_the_worst_group_of_the_last_micro_batch_that_tells_is_shown() -> None:
    by_query = {BY_QUERY: [*told(1)]}
    figures = after(Figures(), report(0, **by_query, **{"missed at most hot": 0.5, "precision share": 0.9}))
    assert (figures.missed, figures.precision) == ({"hot": 0.5}, {"share": 0.9})
    queries = figures.record()["queries"]
    assert queries["hot"]["missed_at_most"] == 0.5 and queries["hot"]["precision"] is None
    figures = after(figures, report(1, **by_query, **{"missed at most hot": None}))
    assert figures.missed == {"hot": 0.5}
    said = [json.dumps({"hot": [0.75, None]}), json.dumps({"hot": [0.25, None], "share": [None, 0.8]})]
    figures = after(figures, report(2, **by_query, bounds=said))
    assert (figures.missed, figures.precision) == ({"hot": 0.75}, {"share": 0.8})
    shown = samples(text([Shown("s", figures, True)]))
    assert shown["skyband_missed_at_most", (("stream", "s"), ("query", "hot"))] == 0.75
    assert shown["skyband_precision", (("stream", "s"), ("query", "share"))] == 0.8


def visited(rows: int = 400) -> pa.Table:
    generator = np.random.default_rng(4)
    return pa.table(
        {
            "id": np.arange(rows),
            "shop": [f"s{n}" for n in generator.integers(0, 40, rows)],
            "door": np.array(["front", "back"])[generator.integers(0, 2, rows)],
            "x": generator.random(rows),
        }
    )


def test_streams_with_and_without_commands_tell_their_bounds(spark: SparkSession, tmp_path: Path) -> None:
    write_files(tmp_path / "in", visited(), 4)
    command = json.dumps({"add": {"name": "nothing", "k": 1, "score": "x", "window": {"count": 5}}})
    (tmp_path / "said").mkdir()
    (tmp_path / "said" / "0.txt").write_text(command)
    monitor = sb.Monitor([ROUGH])
    monitor.push(visited())
    expected = monitor.stats("hot")["missed_at_most"]
    assert expected > 0
    with sks.metrics(spark, path=tmp_path / "figures.jsonl") as meter:
        for name in ("plain", "steered"):
            rows = spark.readStream.schema("id long, shop string, door string, x double").parquet(str(tmp_path / "in"))
            given: dict[str, Any] = {}
            if name == "steered":
                said = spark.readStream.text(str(tmp_path / "said")).withColumnRenamed("value", "command")
                given = {"control": said}
            writer = sks.monitor(rows, [ROUGH, SHARE], arrival="id", **given).writeStream.format("noop").queryName(name)
            query = writer.option("checkpointLocation", str(tmp_path / name)).trigger(availableNow=True).start()
            query.awaitTermination()
            figures = Figures()
            for one in query.recentProgress:
                figures = after(figures, one)
            assert figures.missed == {"hot": expected}
            assert set(figures.precision) == {"share"} and 0 < figures.precision["share"] <= 1
        meter.close()
