"""One system in its own process: start it, watch the memory of everything it starts, read its figures."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.spark.events import Events
from benchmarks.spark.settings import Setting

ROOT = Path(__file__).resolve().parents[2]
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Run:
    """What came out of one run. Without `failure` all figures are there.

    `throughput` is events a second over the second half of the micro-batches that had any. Memory is the greatest sum
    of proportional set sizes (PSS: a page that n processes share counts 1/n for each) over the JVM and all Python
    processes, sampled twice a second. `state_bytes` and `state_rows` are what Spark's state operators say of
    themselves after the last such micro-batch; what a system keeps elsewhere they do not know. `snapshot_bytes` is the
    largest sum of skyband's snapshots, one a group, after any of the steady micro-batches; `snapshot_growth` that over the
    largest in the first half. Other systems have none.
    """

    system: str
    setting: str
    scores: str
    events: int
    rows_a_batch: int
    failure: str = ""
    throughput: float = 0.0
    process_seconds: float = 0.0
    query_seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_bytes: int = 0
    peak_jvm_bytes: int = 0
    state_bytes: int = 0
    state_rows: int = 0
    snapshot_bytes: int = 0
    snapshot_growth: float = 0.0
    batches: int = 0
    batch_ms: dict[str, float] = field(default_factory=dict)  # where a micro-batch's time goes, on average

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def steady(reports: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The second half of the micro-batches that had input."""
    fed = [report for report in reports if report["numInputRows"] > 0]
    return fed[len(fed) // 2 :]


def figures(reports: list[dict[str, Any]]) -> dict[str, Any]:
    """What the query's own progress reports say."""
    half = steady(reports)
    if not half:
        raise ValueError(f"no micro-batch had any input in {len(reports)} progress reports; are the event files there?")
    seconds = sum(report["durationMs"]["triggerExecution"] for report in half) / 1000
    parts = sorted({part for report in half for part in report["durationMs"]})
    operators = half[-1]["stateOperators"]
    fed = [report for report in reports if report["numInputRows"] > 0]
    before, after = (max(map(snapshots, part), default=0) for part in (fed[: -len(half)], half))
    return {
        "throughput": sum(report["numInputRows"] for report in half) / seconds,
        "state_bytes": sum(operator["memoryUsedBytes"] for operator in operators),
        "state_rows": sum(operator["numRowsTotal"] for operator in operators),
        "snapshot_bytes": after,
        "snapshot_growth": after / before if before else 0.0,
        "batches": sum(report["numInputRows"] > 0 for report in reports),
        "batch_ms": {part: sum(report["durationMs"].get(part, 0) for report in half) / len(half) for part in parts},
    }


def snapshots(report: dict[str, Any]) -> int:
    """The bytes of state that `skyband.spark.monitor` says it keeps after a micro-batch."""
    observed = report.get("observedMetrics", {})
    return sum(seen.get("state bytes") or 0 for name, seen in observed.items() if name.startswith("skyband"))


class Watch:
    """The memory and the processor time of a process and all that it starts."""

    def __init__(self, root: int) -> None:
        self.root = root
        self.peak = self.peak_jvm = 0
        self.ticks: dict[int, int] = {}

    def look(self) -> None:
        """Take a sample; a process that ends meanwhile counts no more."""
        sizes = {}
        for pid in self.family():
            with contextlib.suppress(OSError, IndexError, ValueError):
                name, fields = _stat(pid)
                self.ticks[pid] = int(fields[11]) + int(fields[12])  # user and system time
                rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
                sizes[pid] = name, 1024 * int(rollup.split("\nPss:", 1)[1].split()[0])
        total = sum(size for _, size in sizes.values())
        if total > self.peak:
            self.peak, self.peak_jvm = total, sum(size for name, size in sizes.values() if name == "java")

    @property
    def cpu_seconds(self) -> float:
        return sum(self.ticks.values()) / TICKS

    def family(self) -> list[int]:
        """The process and its descendants, parents first."""
        children: dict[int, list[int]] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError, IndexError):
                    children.setdefault(int(_stat(int(entry.name))[1][1]), []).append(int(entry.name))
        found = [self.root]
        for pid in found:
            found += children.get(pid, [])
        return found


def _stat(pid: int) -> tuple[str, list[str]]:
    """A process's name, and what /proc says after it: state, parent, ..."""
    head, _, tail = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
    return head.split("(", 1)[1], tail.split()


def run(
    system: str, setting: Setting, events: Events, files: Path, *, timeout: float, step: Callable[[int], None] = lambda _: None
) -> Run:
    """Run it; `step` hears how many events are through. A failure or a timeout is a result, not an end."""
    job = {"system": system, "setting": asdict(setting), "files": str(files)}
    named = (system, setting.name, events.scores, events.count, events.rows_a_batch)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    command = [sys.executable, "-m", "benchmarks.spark.child", json.dumps(job)]
    with tempfile.TemporaryFile("w+") as log:
        begin = time.perf_counter()
        child = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=log, text=True)
        watch, done = Watch(child.pid), {}

        def listen() -> None:
            assert child.stdout is not None
            for line in child.stdout:
                with contextlib.suppress(ValueError):
                    said = json.loads(line)
                    done.update(said.get("done", {}))
                    step(min(events.count, said.get("batches", 0) * events.rows_a_batch))

        listener = threading.Thread(target=listen, daemon=True)
        listener.start()
        try:
            while child.poll() is None and time.perf_counter() - begin < timeout:
                watch.look()
                time.sleep(0.5)
        finally:
            seconds = time.perf_counter() - begin
            late = child.poll() is None
            if late:
                _end(watch.family())
            child.wait()
            listener.join(timeout=5)
        if late:
            return Run(*named, failure=f"not done after {timeout:.0f} s")
        if child.returncode or not done:
            log.seek(0)
            return Run(*named, failure=f"exit code {child.returncode}: {_last_error(log.read())}")
    return Run(
        *named,
        process_seconds=seconds,
        query_seconds=done["query_seconds"],
        cpu_seconds=watch.cpu_seconds,
        peak_bytes=watch.peak,
        peak_jvm_bytes=watch.peak_jvm,
        **figures(done["reports"]),
    )


def _end(family: list[int]) -> None:
    for pid in family:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _last_error(log: str) -> str:
    """The last lines of what it wrote, without Java's stack."""
    lines = [line for line in log.splitlines() if line.strip() and not line.lstrip().startswith(("at ", "..."))]
    return "\n".join(lines[-12:])
