"""Live control on the real Spark: its sources, its watermark, its state store, its restarts."""

from __future__ import annotations

import json
import os
import threading
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import steered_job
from jobs import job_file
from killing import ended, killed, started
from pyspark.sql import DataFrame, SparkSession
from steered_job import COMMANDS, FIRST, INPUT, steered
from test_job import Notes

import skyband as sb
import skyband.spark as sks
from skyband.errors import QueryError, SchemaError
from skyband.spark.jobs.file import JobError
from skyband.spark.jobs.job import read_job
from skyband.spark.jobs.running import run_job
from skyband.spark.jobs.words import describe

START = datetime(2024, 1, 1)


def rows(count: int = 1500) -> pa.Table:
    """A minute of rows of three venues, up to a second out of order; west begins in the middle."""
    generator = np.random.default_rng(3)
    at = np.arange(count) * 40_000 - generator.integers(0, 1_000_000, count) + 2_000_000
    venue = np.where(np.arange(count) < count // 2, generator.integers(0, 2, count), generator.integers(0, 3, count))
    moments = [START + timedelta(microseconds=int(one)) for one in at]
    return pa.table(
        {
            "ts": pa.array(moments, pa.timestamp("us", "UTC")),
            "id": np.arange(count),
            "venue": np.array(["north", "south", "west"])[venue],
            "price": np.round(generator.random(count), 2),
            "size": generator.random(count),
        }
    )


def topk(name: str, **more: Any) -> sb.TopK:
    return sb.TopK(**{"name": name, "k": 2, "score": "price", "window": sb.TimeWindow("10 seconds", "2 seconds"), **more})


LATER: list[tuple[float, Any]] = [
    (11.3, topk("swift", k=3, score=sb.linear({"price": 0.3, "size": 0.7}), window=sb.TimeWindow("7 seconds", "1 second"))),
    (13.0, "{no json"),
    (14.0, topk("swift")),  # the name is taken
    (20.0, "busy"),
    (20.0, sb.TopKAcross(**{**vars(FIRST[2]), "k": 1, "combine": "max"})),  # in its place
    (
        22.5,
        sb.Threshold(
            name="high", above=0.95, score="price", window=sb.TimeWindow("5 seconds", "5 seconds"), where="size > 0.5"
        ),
    ),
    (
        25.1,
        sb.TopKPairs(
            name="far", k=1, score="abs(a.price - b.price)", order="desc", window=sb.TimeWindow("2 seconds", "1 second")
        ),
    ),
    (31.7, "best"),
    (33.0, "nobody"),
    (36.0, topk("lost", score="prize")),
    (40.0, None),
    (41.0, sb.TopK(name="counts", k=1, score="price", window=sb.CountWindow(10))),
]
OUTCOME = ["added", "refused", "refused", "cancelled", "added", "added", "added", "cancelled", *["refused"] * 4]


def text_of(said: Any) -> str | None:
    if said is None or (isinstance(said, str) and said.startswith("{")):
        return said
    return json.dumps({"cancel": said} if isinstance(said, str) else {"add": said.to_json()})


def commands() -> pa.Table:
    moments = [START + timedelta(seconds=at) for at, _ in LATER]
    return pa.table({"command": [text_of(said) for _, said in LATER], "ts": pa.array(moments, pa.timestamp("us", "UTC"))})


def write(folder: Path, table: pa.Table, files: int, first: int = 0) -> None:
    folder.mkdir(exist_ok=True)
    step = -(-len(table) // files)
    for number in range(files):
        path = folder / f"{number + first:04}.parquet"
        pq.write_table(table.slice(number * step, step), path)
        os.utime(path, (1_600_000_000 + number + first,) * 2)


def the_end(table: pa.Table) -> pa.Table:
    """A row of every venue, an hour later: all windows close."""
    moments = pa.array([START + timedelta(hours=1)] * 3, pa.timestamp("us", "UTC"))
    end = table.slice(0, 3).set_column(0, "ts", [moments]).set_column(1, "id", [pa.array([-1, -1, -1])])
    return end.set_column(2, "venue", [pa.array(["north", "south", "west"])])


def embedded(group: str | None) -> list[str]:
    """The same rows and commands in a monitor, in the order of time."""
    table = rows().sort_by([("ts", "ascending"), ("id", "ascending")])
    if group is not None:
        table = table.filter(pa.compute.equal(table["venue"], group))
    monitor = sb.Monitor(FIRST, time="ts")
    tables, moments = [], table["ts"].to_pylist()
    at = 0
    for (seconds, said), outcome in zip(LATER, OUTCOME, strict=True):
        moment = (START + timedelta(seconds=seconds)).replace(tzinfo=moments[0].tzinfo)
        stop = sum(one < moment for one in moments)
        tables += [monitor.push(table.slice(at, stop - at)), monitor.advance(moment)]
        at = stop
        if outcome == "added":
            monitor.add(said)
        elif outcome == "cancelled":
            monitor.cancel(said)
    tables += [monitor.push(table.slice(at)), monitor.flush()]
    found = []
    for one in tables:
        for row in one.to_pylist():
            who = [row.get(name) for name in ("seq", "a_seq", "b_seq")]
            about = (row["id"],) if who[0] is not None else (row["a_id"], row["b_id"]) if who[1] is not None else (row["id"],)
            found.append(
                str(
                    (
                        row["query"],
                        group,
                        row["window_end"].replace(tzinfo=None),
                        row["event"],
                        row["rank"],
                        row["score"],
                        about,
                    )
                )
            )
    return sorted(found)


def answered(results: list[Any], grouped: bool) -> list[str]:
    found = []
    for row in results:
        if row.event in ("enter", "leave", "top"):
            about = (row.row.id,) if row.row else (row.pair.a.id, row.pair.b.id) if row.pair else (row.object.id,)
            group = row.venue if grouped else None
            found.append(str((row.query, group, row.window_end, row.event, row["rank"], row.score, about)))
    return sorted(found)


def acknowledged(results: list[Any]) -> list[tuple[Any, ...]]:
    said = [row for row in results if row.event in ("added", "cancelled", "refused")]
    return sorted((row.window_end, row.event, row.query, row.message is not None) for row in said)


def expected_acknowledgements() -> list[tuple[Any, ...]]:
    """When, what, the query's name where it can be told, and whether there is a reason."""
    expected = []
    for (at, said), outcome in zip(LATER, OUTCOME, strict=True):
        name = None if said is None or text_of(said) == said else said if isinstance(said, str) else said.name
        expected.append((START + timedelta(seconds=at), outcome, name, outcome == "refused"))
    return sorted(expected)


def stream(spark: SparkSession, folder: Path, schema: str, per_batch: int) -> DataFrame:
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", per_batch).parquet(str(folder))


def run_all(spark: SparkSession, results: DataFrame, folder: Path) -> list[Any]:
    """Run over all there is, on top of what ran before; every result row so far."""
    writer = results.writeStream.format("parquet").option("path", str(folder / "out"))
    writer.option("checkpointLocation", str(folder / "state")).trigger(availableNow=True).start().awaitTermination()
    return spark.read.parquet(str(folder / "out")).collect()


@pytest.mark.parametrize("grouped", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_batch_obeys_every_command_at_its_time(spark: SparkSession, tmp_path: Path, grouped: bool) -> None:
    write(tmp_path / "in", rows(), 2)
    write(tmp_path / "commands", commands(), 1)
    results = sks.monitor(
        spark.read.schema(INPUT).parquet(str(tmp_path / "in")),
        FIRST,
        time="ts",
        arrival="id",
        group_by=["venue"] if grouped else [],
        control=spark.read.schema(COMMANDS).parquet(str(tmp_path / "commands")),
    ).collect()
    groups = ["north", "south", "west"] if grouped else [None]
    assert answered(results, grouped) == sorted(one for group in groups for one in embedded(group))
    assert acknowledged(results) == expected_acknowledgements()


@pytest.mark.parametrize(
    ("grouped", "shards"), [(False, 1), *(pytest.param(*given, marks=pytest.mark.slow) for given in ((True, 1), (False, 3)))]
)
def test_a_stream_obeys_as_a_monitor_does_and_goes_on_after_a_restart(
    spark: SparkSession, tmp_path: Path, grouped: bool, shards: int
) -> None:
    table, source, said = rows(), tmp_path / "in", tmp_path / "commands"
    write(said, commands(), 2)
    write(source, table.slice(0, 800), 2)

    def results() -> DataFrame:
        return steered(spark, source, said, grouped=grouped, shards=shards)

    run_all(spark, results(), tmp_path)
    write(source, table.slice(800), 2, first=2)
    write(source, the_end(table), 1, first=4)
    got = run_all(spark, results(), tmp_path)
    groups = ["north", "south", "west"] if grouped else [None]
    assert answered(got, grouped) == sorted(one for group in groups for one in embedded(group))
    assert acknowledged(got) == expected_acknowledgements()


@pytest.mark.slow
def test_killed_and_started_again_no_command_is_lost_and_none_is_obeyed_twice(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", rows(), 10)
    write(tmp_path / "in", the_end(rows()), 1, first=10)
    write(tmp_path / "commands", commands(), 3)
    for batches in (2, 5):
        killed(started(steered_job.__file__, tmp_path), tmp_path / "state", batches)
    ended(started(steered_job.__file__, tmp_path))
    got = spark.read.parquet(str(tmp_path / "out")).collect()
    assert answered(got, True) == sorted(one for group in ("north", "south", "west") for one in embedded(group))
    assert acknowledged(got) == expected_acknowledgements()


def test_commands_without_a_time_hold_from_the_micro_batch_they_arrive_in(spark: SparkSession, tmp_path: Path) -> None:
    table, source, said = rows(), tmp_path / "in", tmp_path / "commands"
    added = sb.TopK(name="last", k=1, score="price", window=sb.CountWindow(20, 7))

    def results() -> DataFrame:
        return sks.monitor(stream(spark, source, INPUT, 1), [], arrival="id", control=stream(spark, said, "command string", 1))

    monitor, expected = sb.Monitor(), []
    for number, command in enumerate([None, text_of(added), text_of("last")]):
        if command is not None:
            write(said, pa.table({"command": [command]}), 1, first=number)
            monitor.cancel("last") if "cancel" in command else monitor.add(added)
        said.mkdir(exist_ok=True)
        own = table.slice(number * 300, 300)
        write(source, own, 1, first=number)
        expected += [(row["window_end"], row["event"], row["rank"], row["id"]) for row in monitor.push(own).to_pylist()]
        got = run_all(spark, results(), tmp_path)
    assert sorted(map(str, expected)) == sorted(
        str((row.window_end, row.event, row["rank"], row.row.id)) for row in got if row.event in ("enter", "leave")
    )
    assert [(row.event, row.query) for row in got if row.row is None] == [("added", "last"), ("cancelled", "last")]


@pytest.mark.slow
def test_late_commands_and_commands_without_a_time_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", rows(), 2)
    (tmp_path / "commands").mkdir()

    def results() -> DataFrame:
        control = stream(spark, tmp_path / "commands", COMMANDS, 1)
        return sks.monitor(stream(spark, tmp_path / "in", INPUT, 1), FIRST[:1], time="ts", control=control)

    run_all(spark, results(), tmp_path)
    moments = pa.array([START + timedelta(seconds=5), None], pa.timestamp("us", "UTC"))
    write(tmp_path / "commands", pa.table({"command": [text_of("best")] * 2, "ts": moments}), 1)
    got = run_all(spark, results(), tmp_path)
    said = sorted(row.message for row in got if row.event == "refused")
    assert [one[:27] for one in said] == ["the command comes too late:", "the command has no time; sa"]


def test_frames_that_cannot_serve_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.createDataFrame([], INPUT)
    live = spark.readStream.format("rate").load()
    asked = FIRST[:1]
    for control, message in [
        (spark.createDataFrame([], "text string"), "needs a text column 'command'"),
        (spark.createDataFrame([], "command long"), "needs a text column 'command'"),
        (spark.createDataFrame([], "command string, tss timestamp"), "'tss', which is of no use there"),
        (spark.createDataFrame([], "command string, ts long"), "'ts' is bigint in control and timestamp in the input"),
        (live, "does not stream and control does"),
        ("commands", "control must be a DataFrame"),
    ]:
        with pytest.raises((QueryError, SchemaError), match=message):
            sks.monitor(df, asked, time="ts", control=control)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="need an order of rows"):
        sks.monitor(df, [], control=spark.createDataFrame([], "command string"))
    with pytest.raises(QueryError, match="cannot delete rows"):
        sks.monitor(df, [], time="ts", key="id", control=spark.createDataFrame([], "command string"))


def test_queries_load_from_a_table_and_errors_name_the_row(spark: SparkSession, tmp_path: Path) -> None:
    texts = [json.dumps(query.to_json()) for query in FIRST]
    assert sks.queries_from(spark.createDataFrame([(text,) for text in texts], "query string").coalesce(1)) == FIRST
    (tmp_path / "queries.jsonl").write_text("\n\n".join(texts))
    assert sks.queries_from(tmp_path / "queries.jsonl") == FIRST
    pq.write_table(pa.table({"text": texts}), tmp_path / "queries.parquet")
    assert sks.queries_from(str(tmp_path / "queries.parquet"), column="text") == FIRST
    for wrong, message in [
        (["{}"], "row 4: the query lacks 'name'"),
        ([None], "row 4: a query is written as JSON text"),
        ([texts[0]], "row 4: a query called 'best' stands in row 1 already"),
    ]:
        with pytest.raises(QueryError, match=message):
            sks.queries_from(pa.table({"query": texts + wrong}))
    with pytest.raises(QueryError, match=r"queries.jsonl, line 2: "):
        (tmp_path / "queries.jsonl").write_text(f"{texts[0]}\n[]\n")
        sks.queries_from(tmp_path / "queries.jsonl")
    with pytest.raises(SchemaError, match="has no column 'query'"):
        sks.queries_from(pa.table({"text": texts}))
    with pytest.raises(QueryError, match="give them as control="):
        sks.queries_from(spark.readStream.format("rate").load())


def test_a_job_takes_commands(spark: SparkSession, tmp_path: Path) -> None:
    control = '[control]\nformat = "text"\npath = "commands"\n\n[sink]\nformat = "console"'
    schema = 'schema = "ts timestamp, id bigint, venue string, price double, size double"'
    file = job_file(
        tmp_path,
        ('schema = "ts timestamp, id bigint, venue string, price double"', schema),
        ('[sink]\nformat = "memory"', control),
    )
    with pytest.raises(JobError, match=r"line \d+: there is nothing at .*commands"):
        run_job(read_job(file), Notes(), threading.Event(), spark)
    write(tmp_path / "in", rows(), 3)
    (tmp_path / "commands").mkdir()
    (tmp_path / "commands" / "1.txt").write_text(f"{text_of(topk('swift'))}\nnonsense\n{text_of('least')}\n")
    assert ("commands", f"text at {tmp_path / 'commands'}; queries come and go, so every row travels whole") in describe(
        read_job(file)
    )
    screen = Notes()
    figures = run_job(read_job(file), screen, threading.Event(), spark)
    assert figures.rows == 1500 and figures.candidates > 0 and 0 < figures.largest_state <= figures.state_bytes
    assert (figures.standing, figures.commands, figures.refused_commands) == (2, 3, 1)
    assert set(figures.late) == set(figures.nulls) == {"best", "swift"}  # the other went before a row came
    said = [(row["event"], row["query"]) for row in screen.rows if row["row"] is None]
    assert sorted(map(str, said)) == sorted(map(str, [("added", "swift"), ("refused", None), ("cancelled", "least")]))
    assert {row["query"] for row in screen.rows if row["row"]} == {"best", "swift"}
    assert set(screen.boards[0].tops) == {"best", "least"} and screen.boards[0].tops["best"]
