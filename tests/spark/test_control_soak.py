"""Ten thousand commands over one run on the real Spark: none is lost, none is obeyed twice, and memory does not drift."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import skyband as sb
import skyband.spark as sks
from skyband.spark.progress import figures_of

BATCHES, PER_BATCH, ROWS, STANDING = 50, 200, 200, 40
SPAN = 100  # of time in a micro-batch
SCORES = ("x", "-x", "x * 2 + y", "y")


class Script:
    """Commands that keep about forty queries standing; every seventh cannot be obeyed."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(8)
        self.standing: list[str] = []
        self.made = 0

    def command(self) -> tuple[dict[str, Any], str]:
        """The next, and what must come of it."""
        draw = self.random.random()
        if draw < 1 / 7:
            return {"cancel": f"nobody {self.made}"}, "refused"
        if len(self.standing) >= STANDING or (self.standing and draw < 0.4):
            return {"cancel": self.standing.pop(int(self.random.integers(len(self.standing))))}, "cancelled"
        self.made += 1
        slide = int(self.random.choice([5, 10, 25]))
        window = sb.TimeWindow(slide * int(self.random.integers(1, 5)), slide)
        score = SCORES[int(self.random.integers(len(SCORES)))]
        query = sb.TopK(name=f"q{self.made}", k=int(self.random.integers(1, 4)), score=score, window=window)
        self.standing.append(query.name)
        return {"add": query.to_json()}, "added"


DAEMONS = {"pyspark.daemon", "skyband.spark.daemon"}


def memory_of(pids: set[int]) -> int:
    """Bytes of memory that processes hold; what they share with others is shared out among them."""
    total = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
        except OSError:
            continue
    return total


def workers_of(pid: int) -> set[int]:
    """The Python workers below a process: Spark's daemon, or skyband's, and those it forks."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            children.setdefault(int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]), []).append(int(entry.name))
        except OSError:
            continue
    found, stack = set(), [pid]
    while stack:
        for child in children.get(stack.pop(), []):
            stack.append(child)
            try:
                if DAEMONS & {*Path(f"/proc/{child}/cmdline").read_text().split("\0")}:
                    found.add(child)
            except OSError:
                continue
    return found


@dataclass
class Run:
    """Files of rows and of commands, one of each a micro-batch, and what must come of them."""

    folder: Path
    first: sb.TopK
    script: Script = field(default_factory=Script)
    expected: Counter[str] = field(default_factory=Counter)
    acknowledged: Counter[tuple[str, str]] = field(default_factory=Counter)

    def write(self) -> None:
        """Commands are for the time of the next micro-batch, so that none is late."""
        random, monitor = np.random.default_rng(9), sb.Monitor([self.first], time="t")
        due: list[tuple[str, int, int]] = []
        for batch in range(BATCHES + 1):
            times = np.sort(random.integers(batch * SPAN + 1, (batch + 1) * SPAN + 1, ROWS))
            if batch == BATCHES:
                times[-1] = (BATCHES + 9) * SPAN  # all windows close
            rows = {"t": times, "id": np.arange(ROWS) + batch * ROWS, "x": random.random(ROWS), "y": random.random(ROWS)}
            self._file("in", batch, pa.table(rows))
            self._expect(monitor, pa.table(rows), due)
            if batch < BATCHES:
                due = [self._said(batch, number) for number in range(PER_BATCH)]
                texts, moments, order = zip(*due, strict=True)
                self._file("commands", batch, pa.table({"command": texts, "t": moments, "id": order}))

    def _file(self, folder: str, batch: int, table: pa.Table) -> None:
        (self.folder / folder).mkdir(exist_ok=True)
        path = self.folder / folder / f"{batch:04}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_600_000_000 + batch,) * 2)

    def _said(self, batch: int, number: int) -> tuple[str, int, int]:
        """A command, its time (ten at a time) and its number."""
        command, outcome = self.script.command()
        name = command["cancel"] if "cancel" in command else command["add"]["name"]
        self.acknowledged[(outcome, name)] += 1
        return json.dumps(command), (batch + 1) * SPAN + 1 + number // 10 * 5, batch * PER_BATCH + number

    def _expect(self, monitor: sb.Monitor, table: pa.Table, due: list[tuple[str, int, int]]) -> None:
        """What a monitor answers to the rows, with the commands in their places."""
        times, at = table["t"].to_numpy(), 0
        for text, moment, _ in due:
            stop = int(times.searchsorted(moment))
            self.expected.update(shown(monitor.push(table.slice(at, stop - at))))
            self.expected.update(shown(monitor.advance(moment)))
            at = stop
            command = json.loads(text)
            if "add" in command:
                query = command["add"]
                window = sb.TimeWindow(*query["window"]["time"])
                monitor.add(sb.TopK(name=query["name"], k=query["k"], score=query["score"]["expression"], window=window))
            elif not command["cancel"].startswith("nobody"):
                monitor.cancel(command["cancel"])
        self.expected.update(shown(monitor.push(table.slice(at))))


def shown(table: pa.Table) -> list[str]:
    return [
        str((row["query"], row["window_end"], row["event"], row["rank"], row["score"], row["id"])) for row in table.to_pylist()
    ]


@pytest.mark.slow
def test_ten_thousand_commands_leave_no_trace_but_their_queries(spark: SparkSession, tmp_path: Path) -> None:
    run = Run(tmp_path, sb.TopK(name="first", k=3, score="x", window=sb.TimeWindow(50, 10)))
    run.write()
    reader = spark.readStream.option("maxFilesPerTrigger", 1)
    results = sks.monitor(
        reader.schema("t long, id long, x double, y double").parquet(str(tmp_path / "in")),
        [run.first],
        time="t",
        arrival="id",
        control=reader.schema("command string, t long, id long").parquet(str(tmp_path / "commands")),
    )
    writer = results.writeStream.format("parquet").option("path", str(tmp_path / "out"))
    query = writer.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True).start()
    memory: dict[int, int] = {}  # of the workers, by micro-batch
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.5):
            progress = query.lastProgress
            if progress is not None:
                memory[progress.batchId] = memory_of(workers_of(os.getpid()))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        query.awaitTermination()
    finally:
        done.set()
        watcher.join()

    got = spark.read.parquet(str(tmp_path / "out")).collect()
    said = Counter((row.event, row.query) for row in got if row.row is None)
    assert said == run.acknowledged and sum(said.values()) == BATCHES * PER_BATCH
    answers = Counter(str((r.query, r.window_end, r.event, r["rank"], r.score, r.row.id)) for r in got if r.row is not None)
    assert answers == run.expected
    reports = [next(iter(one.observedMetrics.values())).asDict() for one in query.recentProgress if one.observedMetrics]
    written = [report for report in reports if report["state bytes"]]
    assert figures_of(query.recentProgress).standing == len(run.script.standing) + 1
    sizes = [report["state bytes"] for report in written]
    held = [memory[batch] for batch in sorted(memory) if memory[batch]]
    for figures, most in ((sizes, 1.5), (held, 1.2)):  # once all is warm, the end is as the middle
        quarter = len(figures) // 4
        assert quarter >= 2
        assert np.median(figures[-quarter:]) < most * np.median(figures[quarter : 2 * quarter])
    middle = len(sizes) // 4
    print(f"{sum(said.values()):,} commands, {sum(answers.values()):,} answers, state {sizes[middle]:,} to {sizes[-1]:,} bytes")
    print(f"memory of the workers {held[len(held) // 4] / 1e6:.0f} MB to {held[-1] / 1e6:.0f} MB")
