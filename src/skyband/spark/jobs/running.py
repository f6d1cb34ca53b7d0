"""A job from start to end: session, source, `monitor`, sink; watched while it runs, stopped when asked.

Delivery is Spark's own. Files and Kafka are written by Spark's sinks, so files hold every result exactly once. The tops
on the screen come from what was written anyway: a console sink hands its rows over, and files are read back as
each micro-batch commits them. For any other sink there are figures only.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import FractionalType

from skyband.errors import SkybandError
from skyband.query import Threshold, TopK, TopKPairs
from skyband.seating import place
from skyband.spark.control.terms import Terms
from skyband.spark.jobs.board import Board
from skyband.spark.jobs.checks import check_checkpoint, check_surroundings, kept_shards, local, session_settings
from skyband.spark.jobs.columns import check_columns, line_of
from skyband.spark.jobs.committed import Committed, can_read
from skyband.spark.jobs.job import Job
from skyband.spark.jobs.refusals import in_short, refused_at
from skyband.spark.jobs.source import BAD, read
from skyband.spark.pipeline import monitor, request_for, terms_for
from skyband.spark.plan import Plan
from skyband.spark.progress import Figures, ProgressListener
from skyband.spark.scores import condition_column, score_column
from skyband.spark.sessions import is_remote_session, refuse_remote, session
from skyband.spark.shards import MANY
from skyband.spark.warm import warm
from skyband.spark.watching.metrics import Metrics
from skyband.window import CountWindow, nanoseconds

_PATIENCE = 20  # seconds for the last report of a stream that has ended; on a busy machine it comes late
_LOOK = 0.2  # seconds between two looks at a running stream


class Screen(Protocol):
    """Where a job is shown."""

    wants_tops: bool

    def stage(self, what: str) -> None:
        """Something is being prepared."""

    def offers(self, url: str) -> None:
        """The job's figures can be fetched from `url`, as Prometheus does."""

    def moved(self, figures: Figures, boards: Sequence[Board]) -> None:
        """A micro-batch is done; the boards have the tops, where they are to be had."""

    def results(self, rows: pa.Table) -> None:
        """Result rows of a console sink."""

    def finished(self, figures: Figures, message: str) -> None:
        """The stream has ended, for the reason given."""


def run_job(job: Job, screen: Screen, stop: threading.Event, spark: SparkSession | None = None) -> Figures:
    """Run until the source is exhausted (`available_now`), `stop` is set, or an error ends it (SkybandError)."""
    check_surroundings(job)
    check_columns(job)
    if spark is not None and is_remote_session(spark):
        raise SkybandError(
            "a job cannot run through Spark Connect: its tops and its sink of the console need the driver's own process; "
            "use sks.monitor and writeStream, or leave `spark` out"
        )
    if spark is None:
        _at_line(job, ("spark", "spark.remote"), lambda: refuse_remote(job.spark))
    with _meter(job) as meter:
        return _ran(job, screen, stop, spark, meter)


def _meter(job: Job) -> Metrics:
    """Port and file for the figures, taken before Spark starts; errors name the line."""
    watched = job.metrics
    try:
        return Metrics(port=watched.port, host=watched.host, path=watched.path)
    except SkybandError as problem:
        key = "path" if "written" in str(problem) else "port"
        raise job.document.problem(("metrics", key), str(problem)) from None


def _ran(job: Job, screen: Screen, stop: threading.Event, spark: SparkSession | None, meter: Metrics) -> Figures:
    own = spark is None
    spark = spark or _started(job, screen)
    try:
        if stop.is_set():
            screen.finished(Figures(), "stopped as asked, before the stream began")
            return Figures()
        meter.attach(spark)
        if meter.url is not None:
            screen.offers(meter.url)
        screen.stage("starting the stream")
        rows = read(spark, job)
        commands = _commands(spark, job)
        job = _spread_as_before(job)
        plan = _plan(rows, job) if commands is None else _terms(rows, commands, job)
        given = {**vars(job.stream), "control": commands}
        results = _at_line(job, ("stream", "group_by"), lambda: monitor(rows, job.queries, **given))
        _at_line(job, ("checkpoint",), lambda: check_checkpoint(job.checkpoint, plan))
        return _followed(spark, job, plan, results, screen, stop)
    except (PySparkException, Py4JJavaError) as problem:
        message = in_short(problem)
        for setting in job.spark:
            if setting in message:
                raise job.document.problem(("spark", setting), message) from problem
        raise SkybandError(f"{job.document.file}: {message}") from problem
    finally:
        meter.close()  # while there is a Spark to leave
        if own:
            spark.stop()


def _started(job: Job, screen: Screen) -> SparkSession:
    screen.stage("starting Spark, loading kernels (the first time: compiling them, a minute)")
    logging.getLogger("SQLQueryContextLogger").disabled = True  # it prints, as JSON, every exception that it lets through
    kernels = threading.Thread(target=warm, args=(job.queries,), name="skyband: kernels", daemon=True)
    if job.queries:
        kernels.start()
    spread = job.stream.group_by or len(job.queries) > MANY or not all(isinstance(one, TopK | Threshold) for one in job.queries)
    spark = session(job.name, partitions=None if spread else 1, config=session_settings(job))
    if job.queries:
        kernels.join()
    return spark


# -- the ends ----------------------------------------------------------------------------------------------------


def _commands(spark: SparkSession, job: Job) -> DataFrame | None:
    """The job's commands as a streaming DataFrame. A text that cannot be read is a command that will be refused."""
    if job.control is None:
        return None
    lenient = {"mode": "PERMISSIVE"} if job.control.format in ("json", "csv") else {}
    source = replace(job.control, options={**lenient, **job.control.options})
    return read(spark, replace(job, source=source), "control", f"{BAD}-of-commands")


def _terms(rows: DataFrame, commands: DataFrame, job: Job) -> Terms:
    """The same as `_plan` where queries come and go."""
    try:
        return terms_for(rows, commands, job.queries, job.stream)
    except SkybandError as problem:
        asked = [i for i, query in enumerate(job.queries) if f"query {query.name!r}" in str(problem)]
        section = "control" if "control" in str(problem) else "stream"
        where: tuple[str | int, ...] = ("query", asked[0], "name") if asked else (section,)
        raise job.document.problem(where, str(problem)) from None


def _spread_as_before(job: Job) -> Job:
    """The job with the shards that its checkpoint has, where it does not say any: they would follow this machine's cores."""
    kept = None if job.stream.shards is not None else _at_line(job, ("checkpoint",), lambda: kept_shards(job.checkpoint))
    return job if kept is None else replace(job, stream=replace(job.stream, shards=kept))


def _plan(rows: DataFrame, job: Job) -> Plan:
    """What is asked, checked against the source's columns; errors name the line."""
    schema, stream = to_arrow_schema(rows.schema, timezone="UTC"), job.stream
    for i, query in enumerate(job.queries):
        if not isinstance(query, TopK | Threshold):
            counted = replace(query, window=CountWindow(2))  # its columns alone are looked at here
            _at_line(
                job, ("query", i, "score" if isinstance(query, TopKPairs) else "key"), partial(place, counted, schema, None)
            )
            continue
        _at_line(job, ("query", i, "score"), partial(score_column, query.score, rows.schema))
        if query.where is not None:
            _at_line(job, ("query", i, "where"), partial(condition_column, query.where, rows.schema))
    try:
        return request_for(rows, job.queries, stream).plan
    except SkybandError as problem:
        raise job.document.problem(line_of(job, problem), str(problem)) from None


def _at_line(job: Job, path: tuple[str | int, ...], check: Callable[[], Any]) -> Any:
    try:
        return check()
    except SkybandError as problem:
        raise job.document.problem(path, str(problem)) from None


def _writer(job: Job, results: DataFrame, tap: Callable[[pa.Table], None]) -> Any:
    """The stream's end: Spark's own sink, or for the console a function that hands the rows over."""
    sink = job.sink
    if sink.format == "kafka":
        results = results.select(F.col("query").alias("key"), F.to_json(F.struct("*")).alias("value"))
    writer = results.writeStream.queryName(job.name).outputMode("append")
    if sink.format == "console":
        writer = writer.foreachBatch(lambda batch, _: tap(batch.toArrow()))
    else:
        writer = writer.format(sink.format).options(**sink.options)
        if sink.path is not None:
            writer = writer.option("path", sink.path)
    if job.checkpoint is not None:
        writer = writer.option("checkpointLocation", job.checkpoint)
    if job.trigger.available_now:
        return writer.trigger(availableNow=True)
    pause = nanoseconds(job.trigger.every, "every") // 1_000_000 if job.trigger.every else 0  # Spark knows no "200 ms"
    return writer.trigger(processingTime=f"{pause} milliseconds")


# -- the run -----------------------------------------------------------------------------------------------------


def _followed(
    spark: SparkSession, job: Job, plan: Plan | Terms, results: DataFrame, screen: Screen, stop: threading.Event
) -> Figures:
    """Start the stream and show it until it ends."""
    board = Board(job.queries, job.stream.group_by)
    folder = local(job.sink.path)
    readable = screen.wants_tops and folder is not None and can_read(job.sink)
    numbers = [field.name for field in results.schema if isinstance(field.dataType, FractionalType)]
    written = Committed(folder, job.sink.format, numbers) if readable and folder is not None else None
    boards = [board] if written is not None or job.sink.format == "console" else []

    def tap(rows: pa.Table) -> None:
        board.take(rows)
        screen.results(rows)

    listener = ProgressListener(plan)
    spark.streams.addListener(listener)
    try:
        with refused_at(job, "sink", "format"):
            query = _writer(job, results, tap).start()
        listener.run = str(query.runId)
        shown = listener.figures
        try:
            while query.isActive and not stop.wait(_LOOK):
                if listener.figures is not shown:
                    shown = listener.figures
                    if written is not None:
                        written.show(board)
                    screen.moved(shown, boards)
        finally:
            query.stop()
        listener.ended.wait(_PATIENCE)
        if written is not None:
            written.show(board)
        if listener.figures is not shown:
            screen.moved(listener.figures, boards)
        problem = query.exception()
        if problem is not None and not stop.is_set():
            raise SkybandError(f"the stream failed: {in_short(problem)}")
        screen.finished(listener.figures, "stopped as asked" if stop.is_set() else "the source is exhausted")
        return listener.figures
    finally:
        spark.streams.removeListener(listener)
