"""A case in its own process: `python -m benchmarks.spark.case_child JOB`; the last line it prints is its figures as JSON."""

from __future__ import annotations

import json
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

import skyband as sb
from benchmarks.spark.case import Case
from benchmarks.spark.measure import figures, steady
from benchmarks.spark.rows import ATTRIBUTES, DDL, asked, weights
from benchmarks.spark.settings import FILES_A_BATCH, Setting
from skyband.spark.shards import MANY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


PIECE = 50_000  # rows a push: while windows fill, each of ten thousand queries is told of most of its rows anew


def embedded(case: Case) -> dict[str, Any]:
    """The engine without Spark: the same files in one thread, pushed in pieces whose result rows fit into memory."""
    monitor = sb.Monitor(asked(case.queries, case.setting, case.emit, case.per_second), time="ts")
    files = sorted(case.files.iterdir())
    spans: list[tuple[int, float]] = []
    results, begin = 0, perf_counter()
    for at in range(0, len(files), FILES_A_BATCH):
        start = perf_counter()
        batch = pq.read_table(files[at : at + FILES_A_BATCH])
        results += sum(len(monitor.push(batch.slice(row, PIECE))) for row in range(0, len(batch), PIECE))
        spans.append((len(batch), perf_counter() - start))
    half = spans[len(spans) // 2 :]
    return {
        "rows_per_second": sum(rows for rows, _ in half) / sum(seconds for _, seconds in half),
        "seconds": perf_counter() - begin,
        "results": results,
        "algorithm": monitor.stats("q0")["algorithm"],
    }


def on_spark(case: Case) -> dict[str, Any]:
    """skyband, the pass-through, or Spark's own streams, on so many cores."""
    from benchmarks.spark.systems import session

    with tempfile.TemporaryDirectory(prefix="skyband-bench-") as scratch:
        alone = case.system == "skyband" and not case.group and case.queries <= MANY  # then there is one state
        spark = session(Path(scratch) / "local", cores=case.cores, partitions=1 if alone else case.cores, memory="8g")
        try:
            rows = _read(spark, case)
            begin = perf_counter()
            queries = [
                answer.writeStream.format("noop")
                .outputMode("append")
                .option("checkpointLocation", str(Path(scratch) / f"checkpoint-{number}"))
                .trigger(availableNow=True)
                .start()
                for number, answer in enumerate(_answers(rows, case))
            ]
            for query in queries:
                query.awaitTermination()
            seconds = perf_counter() - begin
            reports = [[json.loads(report.json) for report in query.recentProgress] for query in queries]
            told = _told(queries[0]) if case.system == "skyband" else {}
        finally:
            spark.stop()
    rate = _together(reports) if len(reports) > 1 else figures(reports[0])["throughput"]
    return {"rows_per_second": rate, "seconds": seconds, **told}


def _read(spark: SparkSession, case: Case) -> DataFrame:
    reader = spark.readStream.schema(DDL).option("maxFilesPerTrigger", FILES_A_BATCH)
    return reader.format(case.kind).load(str(case.files))


def _answers(rows: DataFrame, case: Case) -> list[DataFrame]:
    if case.system == "native":
        return [_native(rows, one, case.setting) for one in weights(case.queries)]
    if case.system == "pass-through":
        return [rows.mapInArrow(lambda batches: batches, rows.schema)]
    import skyband.spark as sks

    group = ["part"] if case.group else []
    queries = asked(case.queries, case.setting, case.emit, case.per_second)
    arrival = "id" if case.per_second else None
    return [sks.monitor(rows, queries, time="ts", group_by=group, arrival=arrival)]


def _native(rows: DataFrame, one: dict[str, float], setting: Setting) -> DataFrame:
    """Spark's own better way: panes first (see `rivals.two_stage`)."""
    from pyspark.sql import functions as F

    from benchmarks.spark.rivals import two_stage

    score = sum((F.lit(weight) * F.col(name) for name, weight in one.items()), F.lit(0.0))
    scored = rows.withColumn("score", score)
    return two_stage(scored, setting, F.struct("ts", "id", "part", *ATTRIBUTES, "score"))


def _told(query: Any) -> dict[str, Any]:
    from skyband.spark.progress import figures_of

    found = figures_of(query.recentProgress)
    return {"results": sum(found.results.values()), "largest_state": found.largest_state, "state_bytes": found.state_bytes}


def _together(reports: list[list[dict[str, Any]]]) -> float:
    """Rows a second that all streams had answered, over the span of their second halves."""
    halves = [steady(one) for one in reports]
    begins = [datetime.fromisoformat(half[0]["timestamp"]).timestamp() for half in halves]
    ends = [
        datetime.fromisoformat(half[-1]["timestamp"]).timestamp() + half[-1]["durationMs"]["triggerExecution"] / 1000
        for half in halves
    ]
    return sum(report["numInputRows"] for report in halves[0]) / (max(ends) - min(begins))


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    made = Case(**given | {"setting": Setting(**given["setting"]), "files": Path(given["files"])})
    print(json.dumps(embedded(made) if made.system == "embedded" else on_spark(made)), flush=True)
