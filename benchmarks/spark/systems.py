"""THE TABLE: every system that is measured, one row each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import skyband as sb
from benchmarks.spark import rivals
from benchmarks.spark.events import SPARK_SCHEMA
from benchmarks.spark.settings import FILES_A_BATCH, Setting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class System:
    """How one system answers.

    `answer` turns the stream of events into the stream of windows; `run`, where a system writes by itself, into a
    stream writer that is told the folder of its results. `windows` says what its rows are: "ranked", "changes", or ""
    for a floor. `caps` are the events it gets in a setting where all of them would take longer than a minute.
    `config` is what it gets instead of what skyband sets.
    """

    name: str
    answer: Callable[[DataFrame, Setting], DataFrame] | None = None
    run: Callable[[DataFrame, Setting, Path | None], Any] | None = None
    windows: str = "ranked"
    caps: dict[str, int] = field(default_factory=dict)
    config: dict[str, str] = field(default_factory=dict)

    def writer(self, events: DataFrame, setting: Setting, out: Path | None) -> Any:
        """The query, ready to start: rows to nowhere, or as parquet files to `out`."""
        if self.run is not None:
            return self.run(events, setting, out)
        assert self.answer is not None
        rows = self.answer(events, setting).writeStream
        return rows.format("noop") if out is None else rows.format("parquet").option("path", str(out))


def asked(setting: Setting, emit: str) -> sb.TopK:
    """What is asked of skyband."""
    window = sb.TimeWindow(setting.size_text, slide=setting.slide_text)
    return sb.TopK(name="top", k=setting.k, score="score", window=window, emit=emit)


def _skyband(emit: str) -> Callable[[DataFrame, Setting], DataFrame]:
    def answer(events: DataFrame, setting: Setting) -> DataFrame:
        import skyband.spark as sks

        return sks.monitor(events, [asked(setting, emit)], time="ts")

    return answer


def _as_log(events: DataFrame, setting: Setting) -> DataFrame:
    """The same over `transformWithState`, its state a log; the pipeline does so only where a state is the whole window."""
    with patch("skyband.spark.pipeline.is_logged", lambda plan: True):
        return _skyband("changes")(events, setting)


_ONE_GROUP = {"spark.sql.shuffle.partitions": "1"}  # a stream without groups has one state
# what `sks.settings()` sets for speed, as Spark has it by itself: whoever writes panes by hand has only that
_AS_SPARK_COMES = {
    "spark.driver.extraJavaOptions": "-XX:+UseG1GC -XX:GCTimeRatio=12 -XX:CompileThresholdScaling=1",  # the JVM's own
    "spark.python.daemon.module": "pyspark.daemon",
    "spark.sql.execution.arrow.maxBytesPerBatch": "64m",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
    ),
}

TABLE = {
    system.name: system
    for system in (
        System("skyband", _skyband("snapshots"), config=_ONE_GROUP),
        System("skyband-changes", _skyband("changes"), windows="changes", config=_ONE_GROUP),
        System("skyband-log", _as_log, windows="changes", config=_ONE_GROUP),
        System("driver-merge", run=rivals.driver_merge, config=_AS_SPARK_COMES),
        System("driver-merge-tuned", run=rivals.driver_merge),
        System("two-stage", rivals.two_stage, caps={"B": 640_000}),
        System("sliding", rivals.sliding, caps={"A": 1_000_000, "B": 64_000}),
        System("pass-through", rivals.pass_through, windows="", config=_AS_SPARK_COMES),
        System("pass-through-tuned", rivals.pass_through, windows=""),
        System("max", rivals.tumbling_max, windows=""),
        System("read", rivals.read, windows=""),
    )
}


def session(
    scratch: Path, system: System | None = None, cores: int = 2, partitions: int | None = None, memory: str = "2g"
) -> SparkSession:
    """The Spark everybody gets: two cores and what skyband sets, unless `system` has something instead."""
    from skyband.spark.sessions import session

    config = {
        "spark.driver.memory": memory,
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(scratch),
        "spark.sql.streaming.numRecentProgressUpdates": "100000",
        "spark.ui.enabled": "false",
    }
    own = system.config if system else {}
    return session("skyband benchmark", cores=cores, partitions=partitions, config=config | own)


def start(system: System, spark: SparkSession, files: Path, setting: Setting, checkpoint: Path, out: Path | None) -> Any:
    """Start the system on the files; it ends by itself when all are read."""
    events = spark.readStream.schema(SPARK_SCHEMA).option("maxFilesPerTrigger", FILES_A_BATCH).parquet(str(files))
    if out is not None:
        out.mkdir(parents=True)
    writer = system.writer(events, setting, out).option("checkpointLocation", str(checkpoint))
    return writer.outputMode("append").trigger(availableNow=True).start()
