"""One system over the files, in a process of its own: `python -m benchmarks.spark.child JOB`.

Prints one JSON object a line: `batches` now and then, how many are done; at the end `done`, with all progress reports.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.spark.settings import Setting
from benchmarks.spark.systems import TABLE, session, start


def say(**what: Any) -> None:
    """One line to the process that watches."""
    print(json.dumps(what), flush=True)


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Run the job to its end; the query's own reports and how long it took from its start."""
    system, setting, files = TABLE[job["system"]], Setting(**job["setting"]), Path(job["files"])
    with tempfile.TemporaryDirectory(prefix="skyband-bench-") as scratch:
        spark = session(Path(scratch) / "local", system)
        begin = time.perf_counter()
        query = start(system, spark, files, setting, Path(scratch) / "checkpoint", out=None)
        while not query.awaitTermination(1):
            last = query.lastProgress
            say(batches=0 if last is None else last["batchId"] + 1)
        seconds = time.perf_counter() - begin
        reports = [json.loads(report.json) for report in query.recentProgress]
        spark.stop()
    return {"query_seconds": seconds, "reports": reports}


if __name__ == "__main__":
    say(done=run(json.loads(sys.argv[1])))
