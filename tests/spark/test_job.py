"""Jobs on Spark: what runs gives the batch's answers, goes on from its checkpoint, and ends when asked."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from jobs import job_file
from pyspark.errors import PySparkException
from pyspark.sql import Observation, SparkSession

import skyband as sb
import skyband.spark as sks
from skyband.console.job_screen import closing
from skyband.console.job_screen import lines as lines_of
from skyband.spark.jobs.board import Board
from skyband.spark.jobs.checks import MARKS
from skyband.spark.jobs.file import JobError
from skyband.spark.jobs.job import Job, read_job
from skyband.spark.jobs.refusals import in_short
from skyband.spark.jobs.running import _spread_as_before, run_job
from skyband.spark.jobs.source import BAD, _from_json
from skyband.spark.marks import written_marks
from skyband.spark.progress import Figures
from skyband.state import FORMAT

ROOT = Path(__file__).resolve().parents[2]


class Notes:
    """A screen that remembers."""

    wants_tops = True

    def __init__(self) -> None:
        self.figures: list[Figures] = []
        self.boards: Sequence[Board] = ()
        self.rows: list[dict[str, Any]] = []
        self.end = ""

    def stage(self, what: str) -> None: ...

    def moved(self, figures: Figures, boards: Sequence[Board]) -> None:
        self.figures.append(figures)
        self.boards = boards

    def results(self, rows: pa.Table) -> None:
        self.rows += rows.to_pylist()

    def finished(self, figures: Figures, message: str) -> None:
        self.end = message


def write_source(folder: Path, rows: int = 900, files: int = 3) -> pa.Table:
    generator = np.random.default_rng(4)
    ts = 1_700_000_000_000_000 + np.arange(rows) * 50_000 - generator.integers(0, 1_000_000, rows)
    table = pa.table(
        {
            "ts": pa.array(ts).cast(pa.timestamp("us", "UTC")),
            "id": np.arange(rows),
            "venue": np.array(["north", "south"])[generator.integers(0, 2, rows)],
            "price": pa.array(np.round(generator.random(rows), 2), mask=generator.random(rows) < 0.01),
        }
    )
    folder.mkdir(exist_ok=True)
    for number in range(files):
        path = folder / f"{number}.parquet"
        pq.write_table(table.slice(number * rows // files, rows // files), path)
        os.utime(path, (1_600_000_000 + number,) * 2)
    return table


def batch_answer(spark: SparkSession, job: Job) -> set[tuple[Any, ...]]:
    """The same job over the same files at once, up to where a stream that ends there has come."""
    rows = spark.read.schema(job.source.schema).parquet(job.source.path)
    newest = rows.agg({"ts": "max"}).first()[0]
    closed = newest - timedelta(seconds=2)
    answer = sks.monitor(rows, job.queries, time="ts", group_by=["venue"], arrival="id").where(f"window_end <= '{closed}'")
    return answers(answer.collect())


def answers(rows: list[Any]) -> set[tuple[Any, ...]]:
    return {
        (row["query"], row["venue"], str(row["window_end"])[:19], row["event"], row["rank"], row["row"]["id"]) for row in rows
    }


@pytest.mark.parametrize("sink", ["parquet", "memory"])
def test_a_job_gives_the_batch_answer(spark: SparkSession, tmp_path: Path, sink: str) -> None:
    table = write_source(tmp_path / "in")
    place = '\npath = "out"' if sink == "parquet" else ""
    job = read_job(
        job_file(
            tmp_path, ('format = "memory"', f'format = "{sink}"{place}'), ("checkpoint =", f'name = "to_{sink}"\ncheckpoint =')
        )
    )
    screen = Notes()
    figures = run_job(job, screen, threading.Event(), spark)
    written = spark.read.parquet(str(tmp_path / "out")) if sink == "parquet" else spark.table("to_memory")
    assert answers(written.collect()) == batch_answer(spark, job)
    assert figures.rows == len(table) and figures.late == {"best": 0, "least": 0} and figures.groups == 2
    assert figures.nulls["best"] == table["price"].null_count > 0 and figures.candidates > 0
    assert screen.end == "the source is exhausted" and figures.watermark is not None
    if sink == "parquet":  # the tops on the screen are those that were written last
        last = {
            row["venue"]: row["window_end"]
            for row in sorted(written.where("query = 'best'").collect(), key=lambda row: row["window_end"])
        }
        shown = screen.boards[0].tops["best"]
        for venue, end in last.items():
            rows = written.where("query = 'best'").where(f"venue = '{venue}'").collect()
            top = sorted((row["rank"], row["row"]["id"]) for row in rows if row["window_end"] == end)
            assert [entry.row["id"] for entry in shown[(venue,)].entries] == [number for _, number in top]
    else:
        assert not screen.boards


def test_json_and_console_jobs_go_on_from_their_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    write_source(tmp_path / "in")
    kept = tmp_path / "kept"
    kept.mkdir()
    (tmp_path / "in" / "2.parquet").rename(kept / "2.parquet")
    for sink, ends in (("json", 'format = "json"\npath = "out"'), ("console", 'format = "console"')):
        job = read_job(job_file(tmp_path, ('format = "memory"', ends), ('"state"', f'"state-{sink}"')))
        first, second = Notes(), Notes()
        run_job(job, first, threading.Event(), spark)
        (kept / "2.parquet").rename(tmp_path / "in" / "2.parquet")
        run_job(job, second, threading.Event(), spark)
        if sink == "json":
            rows = [json.loads(line) for file in (tmp_path / "out").glob("*.json") for line in file.read_text().splitlines()]
            rows = [{"rank": None, **row, "window_end": row["window_end"].replace("T", " ")} for row in rows]
            assert {len(top.entries) for top in second.boards[0].tops["best"].values()} == {3}
        else:
            rows = first.rows + second.rows
            assert first.rows and second.rows
        assert answers(rows) == batch_answer(spark, job)
        (tmp_path / "in" / "2.parquet").rename(kept / "2.parquet")


def test_a_checkpoint_of_other_queries_is_refused_before_the_stream_starts(spark: SparkSession, tmp_path: Path) -> None:
    write_source(tmp_path / "in", 90)
    run_job(read_job(job_file(tmp_path)), Notes(), threading.Event(), spark)
    assert set(json.loads((tmp_path / "state" / MARKS).read_text())) >= {"query 'best'", "query 'least'"}
    offsets = sorted(file.name for file in (tmp_path / "state" / "offsets").iterdir())
    with pytest.raises(JobError, match=r"line 1: this checkpoint was written for other queries: query 'best' changed; start"):
        run_job(read_job(job_file(tmp_path, ("k = 3", "k = 4"))), Notes(), threading.Event(), spark)
    assert sorted(file.name for file in (tmp_path / "state" / "offsets").iterdir()) == offsets


def test_a_job_that_says_no_shards_goes_on_with_those_of_its_checkpoint(tmp_path: Path) -> None:
    """Unless told they follow the cores, and a checkpoint may come from another machine."""
    plain, told = read_job(job_file(tmp_path)), read_job(job_file(tmp_path, ("[stream]\n", "[stream]\nshards = 3\n")))
    assert _spread_as_before(plain).stream.shards is None
    (tmp_path / "state" / "offsets").mkdir(parents=True)
    (tmp_path / "state" / "offsets" / "0").touch()
    (tmp_path / "state" / MARKS).write_text(json.dumps(written_marks({"query 'q'": "", "shards=16": ""})))
    assert _spread_as_before(plain).stream.shards == 16
    assert _spread_as_before(told).stream.shards == 3
    (tmp_path / "state" / MARKS).write_text("{")
    with pytest.raises(JobError, match=r"line 1: .* is damaged"):
        _spread_as_before(plain)


def test_a_checkpoint_of_another_format_is_refused_before_the_stream_starts(spark: SparkSession, tmp_path: Path) -> None:
    write_source(tmp_path / "in", 90)
    job, marks = read_job(job_file(tmp_path)), tmp_path / "state" / MARKS
    run_job(job, Notes(), threading.Event(), spark)
    said = json.loads(marks.read_text())
    assert said.pop("format of the states") == FORMAT
    offsets = sorted(file.name for file in (tmp_path / "state" / "offsets").iterdir())
    for other, says in (
        ({}, r"a format that it does not say, an older one than \d+"),
        ({"format of the states": FORMAT - 1}, r"the format \d+, an older one than \d+"),
        ({"format of the states": FORMAT + 1}, r"the format \d+, a newer one than \d+"),
    ):
        marks.write_text(json.dumps(said | other))
        with pytest.raises(JobError, match=rf"line 1: .* {says}.* go on with that one, or start with a new checkpointLocation"):
            run_job(job, Notes(), threading.Event(), spark)
    assert sorted(file.name for file in (tmp_path / "state" / "offsets").iterdir()) == offsets


@pytest.mark.parametrize(
    ("change", "line", "message"),
    [
        (('score = "price"', 'score = "prise"'), 18, "did you mean 'price'?"),
        (('"price > 0.2"', '"venue > 0.2"'), 27, "'venue'"),
        (('time = "ts"', 'time = "tss"'), 10, "did you mean 'ts'?"),
        (('time = "ts"', 'time = "TS"'), 10, "did you mean 'ts'?"),
        (('{ size = "4 seconds", slide = "1 second" }', "{ size = 4, slide = 1 }"), 28, "give a duration with a unit"),
        (('["venue"]', '["venue", "venue"]'), 12, "group_by names 'venue' twice"),
        (('["venue"]', '["venu"]'), 12, "did you mean 'venue'?"),
        (('arrival = "id"', 'arrival = "price"'), 13, "must be an integer or a timestamp"),
    ],
)
def test_columns_that_are_missing_or_mistyped_are_named_before_the_stream_starts(
    spark: SparkSession, tmp_path: Path, change: tuple[str, str], line: int, message: str
) -> None:
    with pytest.raises(JobError) as refused:
        run_job(read_job(job_file(tmp_path, change)), Notes(), threading.Event(), spark)
    assert f"line {line}: " in str(refused.value) and message in str(refused.value)
    assert not (tmp_path / "state").exists()


def test_a_stream_that_fails_says_why_in_one_line(spark: SparkSession, tmp_path: Path) -> None:
    write_source(tmp_path / "in", 30, files=1)
    (tmp_path / "in" / "torn.parquet").write_text("this is not parquet")
    with pytest.raises(sb.SkybandError) as failed:
        run_job(read_job(job_file(tmp_path)), Notes(), threading.Event(), spark)
    assert re.fullmatch(r"the stream failed: .*torn\.parquet.*", str(failed.value))


@pytest.mark.parametrize(
    ("last", "said"),
    [
        ("skyband.errors.SchemaError: the callable score 'f' failed", "the callable score 'f' failed"),
        ("OverflowError: date value out of range", "OverflowError: date value out of range"),
        ("AssertionError", "AssertionError"),
        ("java.io.IOException: torn", "[STREAM_FAILED] An exception was raised by the Python Proxy: Traceback"),
    ],
)
def test_what_python_raised_is_said_rather_than_where(last: str, said: str) -> None:
    trace = f'[STREAM_FAILED] An exception was raised by the Python Proxy: Traceback\n  File "x.py", line 1, in f\n{last}\n\n'
    assert in_short(Exception(f"{trace}\tat py4j.Protocol.getReturnValue(Protocol.java:476)")) == said


@pytest.mark.parametrize(
    ("change", "line", "message"),
    [
        (('format = "parquet"', 'format = "nosuch"'), 4, "nosuch"),
        (("price double", "price decimal(99, 1)"), 6, "99"),
        (('path = "in"', 'path = "in"\nselect = ["*", "nosuch(price) as y"]'), 6, "nosuch"),
        (('format = "memory"', 'format = "nosuch"'), 31, "nosuch"),
    ],
)
def test_what_only_spark_can_refuse_is_one_line_too(
    spark: SparkSession, tmp_path: Path, change: tuple[str, str], line: int, message: str
) -> None:
    file = job_file(tmp_path, change)
    with pytest.raises(sb.SkybandError) as refused:
        run_job(read_job(file), Notes(), threading.Event(), spark)
    text = str(refused.value)
    assert text.startswith(f"{file}, line {line}: ") and message in text and "\n" not in text


class Raised:
    """An exception of Java, as Py4J shows it."""

    def __init__(self, message: str, cause: Raised | None = None) -> None:
        self.message, self.cause = message, cause

    def getMessage(self) -> str:
        return self.message

    def getCause(self) -> Raised | None:
        return self.cause


def test_a_setting_that_spark_refuses_is_named_with_its_line(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark reads it when the session is first used, and hides the reason behind what it was about to make."""
    why = """The value 'many' in the config "spark.sql.shuffle.partitions" is invalid."""
    refused = PySparkException(message="Error while instantiating 'SessionStateBuilder':")
    refused._origin = Raised("Error while instantiating 'SessionStateBuilder':", Raised(why))

    def read(*_: object) -> None:
        raise refused

    monkeypatch.setattr("skyband.spark.jobs.running.read", read)
    file = job_file(tmp_path, ("[trigger]", '[spark]\n"spark.sql.shuffle.partitions" = "many"\n\n[trigger]'))
    with pytest.raises(JobError) as said:
        run_job(read_job(file), Notes(), threading.Event(), spark)
    assert str(said.value) == f"{file}, line 34: {why}"


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_rows_that_do_not_fit_the_schema_are_counted_and_left_out(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    clean = {"json": [], "csv": []}
    for number in range(40):
        ts = f"2024-01-01T00:00:{number:02}Z"
        clean["json"].append(json.dumps({"ts": ts, "id": number, "venue": "north", "price": number % 7}))
        clean["csv"].append(f"{ts},{number},north,{number % 7}")
    poison = {
        "json": ['{"ts": ', '{"id": "x", "price": 99}', "[7]"],
        "csv": ["what,is,this", "2024-01-01T00:00:20Z,x,north,99"],
    }
    job = read_job(job_file(tmp_path, ('"parquet"', f'"{kind}"'), ("memory", "console"), ('"state"', f'"state-{kind}"')))
    lines = [*clean[kind][:20], *poison[kind], *clean[kind][20:]]
    (tmp_path / "in" / f"0.{kind}").write_text("\n".join(lines) + "\n")
    screen = Notes()
    figures = run_job(job, screen, threading.Event(), spark)
    assert (figures.rows, figures.bad_rows, figures.nulls["best"]) == (40, len(poison[kind]), 0)
    assert f"bad {len(poison[kind])}" in lines_of(figures)[1].plain and "did not fit the schema" in closing(figures, "done")
    monitor = sb.Monitor(job.queries, time="ts")
    rows = [{"ts": datetime(2024, 1, 1, second=number), "id": number, "price": number % 7} for number in range(40)]
    expected = monitor.push(pa.Table.from_pylist(rows)).to_pylist()
    assert answers(screen.rows) == {
        (row["query"], "north", str(row["window_end"]), row["event"], row["rank"], row["id"])
        for row in expected
        if row["window_end"] <= datetime(2024, 1, 1, second=37)
    }


def test_a_value_of_kafka_is_read_whole_or_counted_as_broken(spark: SparkSession) -> None:
    values = [b'{"a": 1, "b": "x"}', b'{"a": 1}', b"{}", b'{"a": "x"}', b'{"a": 1', b"null", b"7", b"", None]
    given = spark.createDataFrame(
        [
            (value and bytearray(value), "t", 0, number, datetime(2024, 1, 1, second=number))
            for number, value in enumerate(values)
        ],
        "value binary, topic string, partition int, offset long, timestamp timestamp",
    )
    counts = Observation(BAD)
    rows = _from_json(given, "a int, b string", counts).collect()
    assert [(row.a, row.b, row.offset) for row in rows] == [(1, "x", 0), (1, None, 1), (None, None, 2)]
    assert counts.get == {"bad rows": 6, "last bad": "t, partition 0, offset 8"}


def test_without_its_connector_kafka_says_what_to_add(spark: SparkSession, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        options = f'options = {{ "kafka.bootstrap.servers" = "127.0.0.1:{server.getsockname()[1]}", topic = "tops" }}'
        job = read_job(job_file(tmp_path, ('format = "memory"', f'format = "kafka"\n{options}')))
        with pytest.raises(JobError, match=r'add to \[spark\]: "spark\.jars\.packages" = "org\.apache\.spark:spark-sql-kafka'):
            run_job(job, Notes(), threading.Event(), spark)


def test_an_interrupt_ends_a_job_cleanly(tmp_path: Path) -> None:
    write_source(tmp_path / "in", 300)
    file = job_file(
        tmp_path,
        ('format = "memory"', 'format = "console"'),
        ("available_now = true", 'every = "1 second"'),
        ("[trigger]", '[spark]\nspark.master = "local[2]"\n[trigger]'),
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "skyband", "run", str(file), "--json"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if json.loads(line)["event"] == "progress":
                break
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    last = json.loads(rest.splitlines()[-1])
    assert process.returncode == 0 and errors == "", errors
    assert last["event"] == "finished" and last["reason"] == "stopped as asked" and last["rows"] > 0


_STOPPED_WHILE_A_BATCH_IS_HANDED_OVER = """
import threading
import skyband.spark as sks

spark, begun = sks.session(cores=2), threading.Event()

def handed_over(batch, _):
    begun.set()
    batch.sparkSession.range(10**13).selectExpr("sum(sqrt(id))").collect()  # as good as endless

query = spark.readStream.format("rate").load().writeStream.foreachBatch(handed_over).start()
assert begun.wait(120)
query.stop()
assert query.exception() is None, query.exception()
"""


@pytest.mark.slow  # a JVM of its own
def test_a_stop_while_a_batch_is_handed_over_says_nothing() -> None:
    """Spark reads the whole Python error for signs of the interruption, at a depth of stack for every character."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", _STOPPED_WHILE_A_BATCH_IS_HANDED_OVER]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0 and result.stderr == "", result.stderr[:2000]
