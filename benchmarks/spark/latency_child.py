"""A stream fed at a pace, and when its change rows came: `python -m benchmarks.spark.latency_child JOB`."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import skyband as sb
from benchmarks.spark.feeder import DDL
from benchmarks.spark.systems import session

QUERIES = {
    "time": sb.TopK(name="time", k=100, score="price", window=sb.TimeWindow("10 seconds", "1 second")),
    "rows": sb.TopK(name="rows", k=100, score="price", window=sb.CountWindow(500_000, 1000)),
}


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Spans in seconds of every change row after the warm-up, from its row's arrival and from its window's end."""
    import skyband.spark as sks
    from skyband.spark.warm import warm

    asked = QUERIES[job["query"]]
    spans: list[np.ndarray] = []
    delays: list[np.ndarray] = []
    with tempfile.TemporaryDirectory(prefix="skyband-bench-") as scratch:
        folder = Path(scratch) / "in"
        folder.mkdir()
        warm([asked])
        spark = session(Path(scratch) / "local", cores=2, partitions=1)
        rows = spark.readStream.schema(DDL).parquet(str(folder))
        begin = time.time()

        def take(batch: Any, _: int) -> None:
            """A change row is there when it can be used: here, when the driver holds it."""
            results = batch.toArrow()
            now = time.time()
            if now - begin < job["warm_up"] or not len(results):
                return
            entered = results.filter(pc.equal(results["event"], "enter"))
            arrived = pc.struct_field(entered["row"].combine_chunks(), "ts")
            spans.append(now - _seconds(arrived))
            if job["query"] == "time":
                delays.append(now - _seconds(entered["window_end"].combine_chunks()))

        results = sks.monitor(rows, asked, time="ts", arrival="id")
        query = results.writeStream.foreachBatch(take).option("checkpointLocation", str(Path(scratch) / "checkpoint")).start()
        command = [sys.executable, "-m", "benchmarks.spark.feeder", str(folder), str(job["rows_a_second"])]
        feeder = subprocess.Popen([*command, str(job["warm_up"] + job["seconds"])], stdout=subprocess.PIPE, text=True)
        written = int(feeder.communicate()[0])
        behind = time.time()
        query.processAllAvailable()
        behind = time.time() - behind
        reports = [report for report in query.recentProgress if report.numInputRows]
        query.stop()
        spark.stop()
    return {
        "spans": _quantiles(spans),
        "delays": _quantiles(delays),
        "rows": written,
        "behind": behind,
        "batches": len(reports),
        "taken": sum(report.numInputRows for report in reports),
    }


def _seconds(column: pa.Array) -> np.ndarray:
    return column.cast(pa.timestamp("us")).cast(pa.int64()).to_numpy() / 1e6


def _quantiles(pieces: list[np.ndarray]) -> list[float]:
    """p50, p99 and how many."""
    whole = np.concatenate(pieces) if pieces else np.zeros(0)
    return [*np.quantile(whole, [0.5, 0.99]).tolist(), len(whole)] if len(whole) else []


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]))), flush=True)
