"""One system over files of `rows`, in a process of its own, so that nobody runs in a JVM or a cache that another warmed."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.spark.measure import ROOT, Watch, _end, _last_error
from benchmarks.spark.settings import Setting

TIMEOUT = 900.0


@dataclass(frozen=True)
class Case:
    """What to run.

    `system`: "skyband" (on Spark), "embedded" (one process, one core), "native" (Spark's own, as many streams as queries),
    "pass-through". `group`: by part, or not. `kind`: parquet or csv. `per_second`: windows of so many rows a second.
    """

    system: str
    queries: int
    setting: Setting
    files: Path
    rows: int
    cores: int = 2
    group: bool = False
    kind: str = "parquet"
    emit: str = "changes"
    per_second: int = 0


@dataclass(frozen=True)
class Outcome:
    """Rows a second in the second half of the micro-batches; the whole run's seconds; what was told besides."""

    rows_per_second: float
    seconds: float
    told: dict[str, Any]


def outcome(case: Case, timeout: float = TIMEOUT) -> Outcome:
    """Run it; RuntimeError says why it has none."""
    job = asdict(case) | {"files": str(case.files)}
    done = in_child("benchmarks.spark.case_child", job, timeout)
    return Outcome(done.pop("rows_per_second"), done.pop("seconds"), done)


def in_child(module: str, job: dict[str, Any], timeout: float, python: str = sys.executable) -> dict[str, Any]:
    """What a module prints as its last line, as JSON, when it is run with a job."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as log:
        begin = time.perf_counter()
        child = subprocess.Popen([python, "-m", module, json.dumps(job)], cwd=ROOT, env=environment, stdout=out, stderr=log)
        watch = Watch(child.pid)
        try:
            while child.poll() is None and time.perf_counter() - begin < timeout:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(1)
        finally:
            late = child.poll() is None
            if late:
                _end(watch.family())
            child.wait()
        out.seek(0)
        log.seek(0)
        said = [line for line in out.read().splitlines() if line.startswith("{")]
        if late:
            raise RuntimeError(f"not done after {timeout:.0f} s")
        if child.returncode or not said:
            raise RuntimeError(f"exit code {child.returncode}: {_last_error(log.read())}")
    return json.loads(said[-1])
