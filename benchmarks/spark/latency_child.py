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
from benchmarks.spark.feeder import DDL, put
from benchmarks.spark.systems import session

_FIRST = 3  # micro-batches before the pace begins
_SLIDE = 1000  # rows
QUERIES = {
    "time": sb.TopK(name="time", k=100, score="price", window=sb.TimeWindow("10 seconds", "1 second")),
    "rows": sb.TopK(name="rows", k=100, score="price", window=sb.CountWindow(500_000, _SLIDE)),
}


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Spans in seconds of change rows after the warm-up, from the arrival of the row that enters with its first window, and
    from that window's end."""
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
        counted_from = np.inf  # arrivals

        def take(batch: Any, _: int) -> None:
            """A change row is there when it can be used: here, when the driver holds it."""
            results = batch.toArrow()
            now = time.time()
            entered = results.filter(pc.equal(results["event"], "enter"))
            row = entered["row"].combine_chunks()
            arrived, end = _seconds(pc.struct_field(row, "ts")), entered["window_end"].combine_chunks()
            # who enters later than with its first window waited for others to leave, not for us
            if job["query"] == "time":
                counts = (arrived >= counted_from) & (_seconds(end) == np.floor(arrived) + 1)
                delays.append(now - _seconds(end)[counts])
            else:
                place = pc.struct_field(row, "id").to_numpy() + _FIRST
                counts = (arrived >= counted_from) & (end.to_numpy() == (place // _SLIDE + 1) * _SLIDE)
            spans.append(now - arrived[counts])

        results = sks.monitor(rows, asked, time="ts", arrival="id")
        query = results.writeStream.foreachBatch(take).option("checkpointLocation", str(Path(scratch) / "checkpoint")).start()
        for number in range(_FIRST):  # workers, kernels and Spark's own code begin before the pace does
            put(folder, f"first-{number}", np.array([time.time()]), number - _FIRST, np.zeros(1))
            query.processAllAvailable()
        counted_from = time.time() + job["warm_up"]
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
