"""The demo on Spark: a day of trades written as files while a stream reads them, and every answer checked in the end.

Three questions over one stream: the biggest trades, the biggest of each venue, the smallest spreads. Rows come slightly out
of order and in bursts; a few come when their windows have closed, and are counted. The check asks Spark itself, without
skyband: every row in all its windows, `row_number` in each.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

import skyband as sb
from skyband.console.demo import VENUES, trades
from skyband.spark.jobs.board import Board
from skyband.spark.jobs.running import Screen
from skyband.spark.pipeline import monitor
from skyband.spark.plan import make_request
from skyband.spark.progress import Figures, ProgressListener
from skyband.spark.sessions import session
from skyband.spark.warm import warm

SCHEMA = "seq bigint, ts timestamp, symbol string, venue string, price double, volume bigint, bid double, ask double"
_LATENESS = 5_000_000  # microseconds, the unit of everything below
_SLIDE = 60_000_000
_FILES = 40
_FILES_A_BATCH = 10
_FIRST_FILE = 1_741_000_000  # its time, in seconds

_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of a JVM that runs for a minute: it ends before the second compiler would have paid."""


@dataclass(frozen=True)
class Question:
    """A query, the groups it is answered for, and what Spark needs to answer it once more."""

    query: sb.TopK
    size: str
    groups: tuple[str, ...] = ()


def _question(name: str, k: int, score: str, size: str, order: str = "desc", groups: tuple[str, ...] = ()) -> Question:
    window = sb.TimeWindow(size, slide="1 minute")
    return Question(sb.TopK(name=name, k=k, score=score, order=order, window=window, emit="snapshots"), size, groups)


QUESTIONS = (
    _question("biggest trades, 30 minutes", 5, "price * volume", "30 minutes"),
    _question("smallest spreads in basis points, 10 minutes", 3, "10000 * (ask - bid) / price", "10 minutes", "asc"),
    _question("biggest trades of each venue, 10 minutes", 2, "price * volume", "10 minutes", groups=("venue",)),
)


@dataclass(frozen=True)
class Verdict:
    """One question's streamed answers beside those of the recomputation."""

    question: Question
    windows: int  # per group
    rows: int
    equal: bool
    late: int
    late_equal: bool


# -- the stream --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Day:
    """Rows in the order of arrival. Those in `late` come last, when the windows of all but a few have closed."""

    rows: pa.Table
    late: pa.Table
    watermark: int  # where the stream ends, in microseconds
    late_rows: int  # of `late`, those whose slide has closed by then


def make_day(rows: int, seed: int) -> Day:
    """A day of `rows` trades; whoever comes later than the lateness allows is held back to the end of the day."""
    day = trades(rows, seed)
    venue = pa.array([VENUES[number] for number in day["venue"].to_pylist()])
    ts = day["ts"].cast(pa.timestamp("us", "UTC"))
    own = {name: day[name] for name in ("symbol", "price", "volume", "bid", "ask")}
    table = pa.table({"seq": np.arange(rows), "ts": ts, "venue": venue, **own})
    table = table.select([column.split()[0] for column in SCHEMA.split(", ")])
    times = table["ts"].cast(pa.int64()).to_numpy()
    held = times < np.maximum.accumulate(times) - _LATENESS
    watermark = int(times.max()) - _LATENESS
    closed = (times[held] // _SLIDE + 1) * _SLIDE <= watermark
    return Day(table.filter(pa.array(~held)), table.filter(pa.array(held)), watermark, int(closed.sum()))


def write_files(day: Day, folder: Path, seconds: float, stop: threading.Event) -> None:
    """The day's rows, file by file, in about `seconds`; a file appears whole."""
    began = time.monotonic()
    for number in range(_FILES):
        first, end = (at * len(day.rows) // _FILES for at in (number, number + 1))
        if stop.wait(max(began + seconds * number / _FILES - time.monotonic(), 0)):
            return
        write_file(day.rows.slice(first, end - first), folder, number)


def write_file(rows: pa.Table, folder: Path, number: int) -> None:
    """Beside the folder first: Spark must not see half a file.

    Spark reads files in the order of their times, and a file system's clock may tick more slowly than files are
    written: so each gets a second of its own.
    """
    beside = folder.parent / f"{number:03}.parquet"
    pq.write_table(rows, beside)
    os.utime(beside, (_FIRST_FILE + number,) * 2)
    beside.rename(folder / beside.name)


# -- the run -----------------------------------------------------------------------------------------------------


def run(screen: Screen, rows: int, seconds: float, seed: int, stop: threading.Event) -> list[Verdict] | None:
    """Play the day and check it; None when `stop` was set before it was over."""
    screen.stage("starting Spark, making up trades, loading kernels (the first time: compiling them, a minute)")
    kernels = threading.Thread(target=warm, args=([question.query for question in QUESTIONS],), daemon=True)
    kernels.start()
    spark = session("skyband demo", config={"spark.driver.extraJavaOptions": _SHORT_LIVED})
    try:
        day = make_day(rows, seed)
        if kernels.is_alive():
            screen.stage("compiling kernels (once on this machine)")
            kernels.join()
        with tempfile.TemporaryDirectory(prefix="skyband-demo-") as scratch:
            return _played(spark, day, Path(scratch), seconds, screen, stop)
    finally:
        spark.stop()


def _played(
    spark: SparkSession, day: Day, scratch: Path, seconds: float, screen: Screen, stop: threading.Event
) -> list[Verdict] | None:
    screen.stage("starting the streams")
    (folder := scratch / "trades").mkdir()
    streams: list[Answering] = []
    writer = threading.Thread(target=write_files, args=(day, folder, seconds, stop), daemon=True)
    try:
        for groups in dict.fromkeys(question.groups for question in QUESTIONS):
            streams.append(Answering(spark, folder, groups, scratch / f"checkpoint-{len(streams)}", screen))
        writer.start()
        _show_while(writer, streams, screen, stop)
        _drain(streams, screen, stop)
        if len(day.late) and not stop.is_set():
            write_file(day.late, folder, _FILES)
            _drain(streams, screen, stop)
    finally:
        for stream in streams:
            stream.end()
    if stop.is_set():
        return None
    screen.moved(_together(streams), [stream.board for stream in streams])
    screen.stage("recomputing every window with Spark's own functions")
    recorded = spark.read.schema(SCHEMA).parquet(*map(str, sorted(folder.iterdir())[:_FILES]))
    verdicts = [verdict for stream in streams for verdict in check(stream, recorded, day)]
    screen.finished(_together(streams), "the day is over")
    return verdicts


class Answering:
    """A running stream: the questions of one grouping, their answers kept for the check."""

    def __init__(self, spark: SparkSession, folder: Path, groups: tuple[str, ...], checkpoint: Path, screen: Screen) -> None:
        self.spark, self.screen = spark, screen
        self.questions = [question for question in QUESTIONS if question.groups == groups]
        self.answers: list[pa.Table] = []
        queries = [question.query for question in self.questions]
        self.board = Board(queries, groups)
        rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", _FILES_A_BATCH).parquet(str(folder))
        results = monitor(rows, queries, time="ts", lateness="5 seconds", group_by=groups, arrival="seq")
        schema = to_arrow_schema(rows.schema, timezone="UTC")
        self.listener = ProgressListener(make_request(schema, queries, "ts", "5 seconds", groups, "seq").plan)
        spark.streams.addListener(self.listener)
        writer = results.writeStream.foreachBatch(lambda batch, _: self._take(batch.toArrow()))
        self.query = writer.option("checkpointLocation", str(checkpoint)).start()
        self.listener.run = str(self.query.runId)

    def _take(self, results: pa.Table) -> None:
        self.answers.append(results)
        self.board.take(results)
        self.screen.results(results)

    def end(self) -> None:
        """Stop, and wait for the last report; an error in the stream is raised."""
        self.query.stop()
        self.listener.ended.wait(5)
        self.spark.streams.removeListener(self.listener)
        problem: Any = self.query.exception()
        if problem is not None:
            raise sb.SkybandError(f"the stream failed: {problem}")


def _show_while(thread: threading.Thread, streams: list[Answering], screen: Screen, stop: threading.Event) -> None:
    """Show what happens for as long as a thread runs, or until asked to stop."""
    shown = None
    while thread.is_alive() and all(stream.query.isActive for stream in streams) and not stop.is_set():
        thread.join(0.2)
        if (now := [stream.listener.figures for stream in streams]) != shown:
            shown = now
            screen.moved(_together(streams), [stream.board for stream in streams])


def _drain(streams: list[Answering], screen: Screen, stop: threading.Event) -> None:
    """Until every file has been read and every window it closes answered."""
    for stream in streams:
        waiting = threading.Thread(target=stream.query.processAllAvailable, daemon=True)
        waiting.start()
        _show_while(waiting, streams, screen, stop)


def _together(streams: list[Answering]) -> Figures:
    """Both streams read the same rows: those are counted once, what each holds is summed."""
    first, *others = (stream.listener.figures for stream in streams)
    for other in others:
        first = replace(
            first,
            groups=first.groups + other.groups,
            candidates=first.candidates + other.candidates,
            state_bytes=first.state_bytes + other.state_bytes,
            late={**first.late, **other.late},
            nulls={**first.nulls, **other.nulls},
            results={**first.results, **other.results},
            held={**first.held, **other.held},
            latencies=first.latencies.beside(other.latencies),
        )
    return replace(first, lag=None)  # the day is not today


# -- the check ---------------------------------------------------------------------------------------------------


def check(stream: Answering, recorded: DataFrame, day: Day) -> list[Verdict]:
    """Compare every answer of every window that has closed, and the count of late rows."""
    streamed = set(_streamed(stream.answers))
    verdicts = []
    for question in stream.questions:
        name, late = question.query.name, stream.listener.figures.late
        expected = set(_recomputed(recorded, question, day.watermark))
        own = {answer for answer in streamed if answer[0] == name}
        windows = len({answer[2] for answer in expected})
        verdicts.append(Verdict(question, windows, len(own), own == expected, late[name], late[name] == day.late_rows))
    return verdicts


def _streamed(answers: list[pa.Table]) -> Iterator[tuple[Any, ...]]:
    """Query, venue, window's end, rank, score, seq."""
    for table in answers:
        seq = pc.struct_field(table["row"], "seq")
        venue = table["venue"] if "venue" in table.column_names else pa.nulls(len(table))
        columns = [table["query"], venue, table["window_end"].cast(pa.int64()), table["rank"], table["score"], seq]
        yield from zip(*(column.to_pylist() for column in columns), strict=True)


def _recomputed(recorded: DataFrame, question: Question, watermark: int) -> Iterator[tuple[Any, ...]]:
    """The question as one would ask Spark: each row once for every window that holds it, numbered in each."""
    query, score = question.query, F.expr(str(question.query.score))
    best = score.desc() if query.order == "desc" else score.asc()
    place = Window.partitionBy("window", *question.groups).orderBy(best, F.desc("ts"), F.desc("seq"))
    venue = F.col("venue") if question.groups else F.lit(None).cast("string")
    ranked = (
        recorded.where(score.isNotNull() & ~F.isnan(score))
        .select("*", F.window("ts", question.size, "1 minute").alias("window"))
        .withColumn("rank", F.row_number().over(place))
        .where((F.col("rank") <= query.k) & (F.unix_micros("window.end") <= watermark))
    )
    table = ranked.select(venue, F.unix_micros("window.end"), "rank", score, "seq").toArrow()
    for answer in zip(*(column.to_pylist() for column in table.columns), strict=True):
        yield query.name, *answer
