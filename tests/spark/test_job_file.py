"""Job files: a slip costs a message with its line and its remedy, before Spark starts."""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from jobs import GOOD, job_file
from rich.console import Console

import skyband as sb
from skyband import cli
from skyband.console.job_screen import JsonJobScreen, PlainJobScreen
from skyband.spark.jobs.board import Board, rows_of
from skyband.spark.jobs.checks import check_surroundings, session_settings
from skyband.spark.jobs.columns import check_columns
from skyband.spark.jobs.committed import Committed, can_read
from skyband.spark.jobs.file import JobError
from skyband.spark.jobs.job import Sink, read_job
from skyband.spark.jobs.toml_lines import Lines
from skyband.spark.jobs.words import describe

ROOT = Path(__file__).resolve().parents[2]

# -- validation, without Spark ---------------------------------------------------------------------------------

SLIPS = {
    "no TOML": (("k = 3", "k = = 3"), 17, "not TOML"),
    "unknown table": (("[trigger]", "[triger]"), 33, "did you mean 'trigger'?"),
    "unknown key of a table": (("lateness", "latenes"), 11, "did you mean 'lateness'?"),
    "unknown key of a query": (("order =", "ordre ="), 26, "did you mean 'order'?"),
    "a key of [stream] on top": (('checkpoint = "state"', 'time = "ts"'), 1, "it belongs in the table [stream]"),
    "size outside the window": (("emit =", "size ="), 20, "it belongs in window = { size"),
    "no source": (("[source]", "[sauce]"), 1, "needs 'source'"),
    "a key of the top below": (("available_now = true", 'available_now = true\ncheckpoint = "other"'), 35, "above the tables"),
    "queries as a list": (('[[query]]\nname = "best"', '[[queries]]\nname = "best"'), 15, "written as [[query]] blocks"),
    "an empty path": (('path = "in"', 'path = ""'), 5, "the folder of the job file"),
    "an empty checkpoint": (('checkpoint = "state"', 'checkpoint = ""'), 1, "the folder of the job file"),
    "a setting of Spark": (
        ("[trigger]", "[spark]\nsql.shuffle.partitions = 4\n[trigger]"),
        34,
        '"spark.sql.shuffle.partitions" =',
    ),
    "an option Spark does not know": (("maxFilesPer", "maxFilePer"), 7, "did you mean 'maxFilesPerTrigger'?"),
    "a condition of SQL": (('"price > 0.2"', '"price > 0.2 AND price < 3"'), 27, "found 'AND'; write 'and'"),
    "no query": ((GOOD[GOOD.index("[[query]]") : GOOD.index("[sink]")], ""), 1, "a [[query]] block"),
    "a query as a table": (
        (GOOD[GOOD.index("[[query]]") : GOOD.index("[sink]")], '[query]\nname = "best"\n'),
        15,
        "'query' must be a list",
    ),
    "no k": (("k = 2\n", ""), 22, "needs 'k', as in: k = 10"),
    "k is a text": (("k = 2", 'k = "2"'), 24, "'k' must be a whole number, got '2'"),
    "k is too small": (("k = 2", "k = 0"), 24, "k must be at least 1, got 0"),
    "k is true": (("k = 2", "k = true"), 24, "'k' must be a whole number, got true"),
    "a score that cannot be read": (('"price * 2"', '"price * "'), 25, "query 'least': score"),
    "a form of score": (('"price * 2"', "{ linaer = { price = 1.0 } }"), 25, "did you mean 'linear'?"),
    "two forms of score": (('"price * 2"', "{ linear = { a = 1.0 }, product = { b = 1.0 } }"), 25, "one of linear, product"),
    "a metric without distance": (('"price * 2"', '{ linear = { a = 1.0 }, metric = "l1" }'), 25, "belong to distance"),
    "an order": (('"asc"', '"up"'), 26, "order must be one of 'desc', 'asc'; got 'up'"),
    "a condition": (('"price > 0.2"', '"price >"'), 27, "query 'least': where"),
    "bounds": (('"price > 0.2"', "{ price = [1] }"), 27, "must be [low, high], { min = low } or { max = high }"),
    "an emission": (('"snapshots"', '"snapshot"'), 20, "emit must be one of"),
    "an algorithm": (('emit = "snapshots"', 'algorithm = "fastest"'), 20, "fastest"),
    "a window of nothing": (('{ size = "4 seconds", slide = "1 second" }', "{}"), 28, "needs 'size'"),
    "a window's unit": (('"4 seconds"', '"4 parsecs"'), 28, "'4 parsecs' is not a duration"),
    "a slide above the size": (('slide = "1 second" }\nemit', 'slide = "1 minute" }\nemit'), 19, "make slide at most size"),
    "rows and size": (('{ size = "4 seconds", slide = "1 second" }', '{ rows = 5, size = "4 s" }'), 28, "a window of rows has"),
    "two queries of a name": (('"least"', '"best"'), 23, "two queries are called 'best'"),
    "lateness": (('"2 seconds"', '"2 secs ago"'), 11, "is not a duration"),
    "negative lateness": (('"2 seconds"', "-1"), 11, "must not be negative"),
    "no time": (('time = "ts"\n', ""), 18, 'add time = "..." to [stream]'),
    "a key and no deletions": (('arrival = "id"', 'key = "id"'), 13, "needs 'deletes' beside it"),
    "no shards": (('arrival = "id"', "shards = 0"), 13, "a whole number from 1 to 256, got 0"),
    "too many shards": (('arrival = "id"', "shards = 1000"), 13, "a whole number from 1 to 256, got 1000"),
    "a group twice": (('["venue"]', '["venue", "venue"]'), 12, "'venue' twice; name it once"),
    "a kind that is none": (('name = "best"', 'name = "best"\nkind = "pair"'), 17, "use one of 'top', 'threshold'"),
    "a pair's score of one side": (('score = "price"', 'kind = "pairs"\nscore = "price"'), 19, "without a side"),
    "a distance of nothing": (('score = "price"', 'kind = "pairs"\nscore = { distance = [] }'), 19, "one or more columns"),
    "no streams": (
        ('score = "price"', 'kind = "across"\nkey = "id"\nstream = "venue"\nvalue = "price"'),
        20,
        "needs 'streams'",
    ),
    "a bound that is none": (('k = 3\nscore = "price"', 'kind = "threshold"\nabove = "3"\nscore = "price"'), 18, "above"),
    "groups": (('["venue"]', "[1]"), 12, "must be names of columns"),
    "a format of source": (('format = "parquet"', 'format = "parqet"'), 4, "did you mean 'parquet'?"),
    "a format of sink": (('format = "memory"', 'format = "memry"'), 31, "did you mean 'memory'?"),
    "a sink without structs": (('format = "memory"', 'format = "csv"'), 31, "use json or parquet"),
    "a name that no table has": (('checkpoint = "state"', 'name = "2 jobs"'), 1, 'write: name = "_2_jobs"'),
    "a console with a path": (('format = "memory"', 'format = "console"\npath = "tops"'), 32, 'format = "json"'),
    "a console with options": (
        ('format = "memory"', 'format = "console"\noptions = { numRows = 5 }'),
        32,
        "leave out 'numRows'",
    ),
    "a sink without a path": (('format = "memory"', 'format = "parquet"'), 30, "needs 'path'"),
    "no schema": (('schema = "ts timestamp, id bigint, venue string, price double"\n', ""), 4, "add [source.schema]"),
    "a type": (("price double", "price dubble"), 6, "did you mean 'double'?"),
    "a type of Python": (("venue string", "venue str"), 6, "did you mean 'string'?"),
    "a type of pandas": (("ts timestamp", "ts datetime64[ns]"), 6, "did you mean 'timestamp'?"),
    "a type within a type": (
        ("price double", "price double, more struct<x: array<duble>>"),
        6,
        "in which 'duble' is not known",
    ),
    "a type that holds nothing": (("price double", "price double, more map"), 6, "write map<string, double>"),
    "digits": (("price double", "price decimal(40, 2)"), 6, "more digits than the 38 of a decimal"),
    "a schema without types": (('"ts timestamp, id bigint', '"ts, id bigint'), 6, "columns and types"),
    "options": (("{ maxFilesPerTrigger = 1 }", "{ maxFilesPerTrigger = [1] }"), 7, "'maxFilesPerTrigger' must be a text"),
    "a misplaced option": (("options = { maxFilesPerTrigger = 1 }", "maxFilesPerTrigger = 1"), 7, "[source.options]"),
    "a trigger": (("available_now = true", 'every = "now"'), 34, "is not a duration"),
    "two triggers": (("available_now = true", 'available_now = true\nevery = "1 s"'), 35, "exclude each other"),
    "kafka without servers": (('format = "memory"', 'format = "kafka"'), 30, '"kafka.bootstrap.servers" = "host:9092"'),
}


@pytest.mark.parametrize(("change", "line", "remedy"), SLIPS.values(), ids=SLIPS)
def test_a_slip_is_named_with_its_line_and_its_remedy(tmp_path: Path, change: tuple[str, str], line: int, remedy: str) -> None:
    file = job_file(tmp_path, change)
    with pytest.raises(JobError) as refused:
        read_job(file)
    message = str(refused.value)
    assert message.startswith(str(file)) and re.search(rf"line {line}\b", message) and remedy in message, message


def test_the_good_job_says_what_it_says(tmp_path: Path) -> None:
    job = read_job(job_file(tmp_path))
    assert job.source.path == str(tmp_path / "in") and job.source.options == {"maxFilesPerTrigger": "1"}
    assert [query.name for query in job.queries] == ["best", "least"]
    assert job.queries[1] == sb.TopK(
        name="least", k=2, score="price * 2", order="asc", where="price > 0.2", window=sb.TimeWindow("4 seconds", "1 second")
    )
    assert job.stream.group_by == ("venue",) and job.trigger.available_now and job.checkpoint == str(tmp_path / "state")


def test_scores_bounds_schemas_and_dotted_options_as_tables(tmp_path: Path) -> None:
    file = job_file(
        tmp_path,
        (
            'score = "price"\n',
            'score = { distance = { price = 3, id = 4.5 }, metric = "l1" }\nwhere = { price = { min = 1 } }\n',
        ),
        ('"price * 2"', "{ linear = { price = 0.5 } }"),
        ('where = "price > 0.2"', "where = { price = [0, 2.5] }"),
        ('{ size = "4 seconds", slide = "1 second" }', "{ rows = 100, slide = 10 }"),
        ("[trigger]", '[spark]\nspark.master = "local[1]"\nspark.some.switch = true\n[trigger]'),
        (
            'schema = "ts timestamp, id bigint, venue string, price double"\noptions = { maxFilesPerTrigger = 1 }',
            '[source.schema]\nts = "timestamp"\n"a `b`" = "struct<x: int, y: array<string>>"',
        ),
    )
    job = read_job(file)
    assert job.queries[0].score == sb.distance({"price": 3, "id": 4.5}, metric="l1")
    assert job.queries[0].where == {"price": (1.0, None)} and job.queries[1].where == {"price": (0.0, 2.5)}
    assert job.queries[1].score == sb.linear({"price": 0.5}) and job.queries[1].window == sb.CountWindow(100, 10)
    assert job.source.schema == "`ts` timestamp, `a ``b``` struct<x: int, y: array<string>>"
    assert job.spark == {"spark.master": "local[1]", "spark.some.switch": "true"}


def test_ddl_with_nested_types_is_taken(tmp_path: Path) -> None:
    ddl = (
        "ts timestamp, `a, b` map<string, decimal(10, 2)> not null, s struct<x: int, `y, z` array<double> comment 'w, >'> "
        "comment 'x, y > z'"
    )
    job = read_job(job_file(tmp_path, ("ts timestamp, id bigint, venue string, price double", ddl)))
    assert job.source.schema == ddl


def test_lines_of_keys_behind_long_values() -> None:
    text = '# [no]\na = """\n[b]\n"""\nc = [ # ]\n 1,\n]\n[[d]]\nx = 1\n[d."e.f"]\ny = 2\n[[d]]\nx = "#"\n'
    lines = Lines(text)
    assert [lines.of(path) for path in (("a",), ("c",), ("d", 0, "x"), ("d", 0, "e.f", "y"), ("d", 1, "x"))] == [
        2,
        5,
        9,
        11,
        13,
    ]
    assert lines.of(("d", 1, "missing")) == 12 and lines.of(("missing",)) == 1


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"cannot read the job file .*nothing\.toml: No such file"):
        read_job(tmp_path / "nothing.toml")


# -- the command line, without Spark -----------------------------------------------------------------------------


def run_cli(monkeypatch: pytest.MonkeyPatch, *args: str) -> int:
    """The command line within this process; its exit code."""
    monkeypatch.setattr(sys, "argv", ["skyband", *args])
    with pytest.raises(SystemExit) as left:
        cli.main()
    return int(left.value.code or 0)


def test_a_slip_costs_one_line_and_exit_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = job_file(tmp_path, ("lateness", "latenes"))
    assert run_cli(monkeypatch, "run", str(file)) == 2
    out, err = capsys.readouterr()
    assert out == "" and err == f"skyband: {file}, line 11: [stream] has no key 'latenes'; did you mean 'lateness'?\n"


def test_dry_run_says_the_plan_without_starting_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("skyband.spark.jobs.running.session", lambda *_, **__: pytest.fail("Spark was started"))
    file = str(job_file(tmp_path))
    assert run_cli(monkeypatch, "run", file, "--dry-run", "--json") == 0
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    words = {record["what"]: record["how"] for record in said}
    assert words["time"] == "ts" and words["lateness"] == "2 seconds" and words["groups"] == "venue"
    assert words["query least"] == (
        "the 2 smallest price * 2, where price > 0.2, of the last 4 seconds, every 1 second: who enters and who leaves"
    )
    assert [record["how"] for record in said if record["what"] == "shared"] == [
        "one scan of the source for best, least",
        "windows close together: best, least",
    ]
    assert run_cli(monkeypatch, "run", file, "--dry-run") == 0
    assert "windows close together" in capsys.readouterr().out


def test_equal_scores_are_shared(tmp_path: Path) -> None:
    job = read_job(job_file(tmp_path, ('"price * 2"', '"price"'), ('where = "price > 0.2"\n', "")))
    assert ("shared", "one score: best, least") in describe(job)


def test_the_examples_are_jobs() -> None:
    job = read_job(ROOT / "examples" / "trades.toml")
    assert [query.name for query in job.queries] == ["hot", "tight"]
    job = read_job(ROOT / "examples" / "kafka.toml")
    assert (job.source.format, job.sink.format, job.queries[0].name) == ("kafka", "kafka", "hot")
    job = read_job(ROOT / "examples" / "steered.toml")
    assert job.control is not None and [query.name for query in job.queries] == ["hot"]


def test_jars_are_found_by_patterns_beside_the_job(tmp_path: Path) -> None:
    spark = '[spark]\n"spark.jars" = "jars/*.jar, hdfs:/far.jar"\n\n[trigger]'
    job = read_job(job_file(tmp_path, ("[trigger]", spark)))
    with pytest.raises(JobError, match=r"line \d+: there is no jar at .*jars/\*\.jar; fetch it"):
        check_surroundings(job)
    (tmp_path / "jars").mkdir()
    for name in ("b.jar", "a.jar", "c.txt"):
        (tmp_path / "jars" / name).touch()
    here = tmp_path / "jars"
    assert session_settings(job)["spark.jars"] == f"{here / 'a.jar'},{here / 'b.jar'},hdfs:/far.jar"


# -- the board -------------------------------------------------------------------------------------------------


def results(*rows: tuple[int, str, int | None, float, int]) -> pa.Table:
    """Result rows of query q: window end, event, rank, score, id."""
    names = ("window_end", "event", "rank", "score")
    columns = dict(zip(names, zip(*(row[:4] for row in rows), strict=True), strict=True))
    types = {"rank": pa.int32()}
    table = {name: pa.array(column, types.get(name)) for name, column in columns.items()}
    return pa.table({"query": ["q"] * len(rows), **table, "row": [{"id": row[4]} for row in rows]})


def ids(board: Board) -> list[int]:
    return [entry.row["id"] for entry in board.tops["q"][()].entries]


def test_a_board_follows_changes() -> None:
    board = Board([sb.TopK(name="q", k=2, score="x", window=sb.CountWindow(5))])
    board.take(results((1, "enter", 1, 5.0, 1), (2, "enter", 2, 3.0, 2), (3, "leave", None, 3.0, 2), (3, "enter", 1, 9.0, 3)))
    assert ids(board) == [3, 1]
    board.take(results((4, "leave", None, 5.0, 1), (4, "enter", 1, 9.0, 4)))
    assert ids(board) == [4, 3]  # of equal scores the newer
    assert [entry.since for entry in board.tops["q"][()].entries] == [4, 3]


def test_a_board_follows_snapshots() -> None:
    board = Board([sb.TopK(name="q", k=2, score="x", window=sb.CountWindow(5), emit="snapshots")])
    board.take(results((1, "top", 1, 5.0, 1), (2, "top", 1, 5.0, 1), (2, "top", 2, 4.0, 2), (3, "top", 1, 5.0, 1)))
    assert ids(board) == [1] and board.tops["q"][()].end == 3
    board.take(results((4, "top", 2, 5.0, 1), (4, "top", 1, 6.0, 3)))
    assert [(entry.row["id"], entry.since) for entry in board.tops["q"][()].entries] == [(3, 4), (1, 2)]


@pytest.mark.parametrize("emit", ["changes", "snapshots"])
def test_a_board_knows_a_row_that_holds_a_nan(emit: str) -> None:
    board = Board([sb.TopK(name="q", k=2, score="x", window=sb.CountWindow(5), emit=emit)])
    event = "enter" if emit == "changes" else "top"
    board.take(results((1, event, 1, 5.0, math.nan), (2, event, 1, 9.0, 2)))
    came = results((2, event, 2, 5.0, math.nan)) if emit == "snapshots" else results((3, "leave", None, 5.0, math.nan))
    board.take(came)
    since = [entry.since for entry in board.tops["q"][()].entries]
    assert since == ([2] if emit == "changes" else [2, 1])


@pytest.mark.parametrize("emit", ["changes", "snapshots"])
def test_a_board_of_long_tops_takes_no_time(emit: str) -> None:
    board = Board([sb.TopK(name="q", k=4000, score="x", window=sb.CountWindow(5000), emit=emit)])
    began = time.monotonic()
    board.take(results(*((1, "enter" if emit == "changes" else "top", rank, 1.0, rank) for rank in range(4000))))
    if emit == "changes":
        board.take(results(*((2, "leave", None, 1.0, number) for number in reversed(range(4000)))))
    else:
        board.take(results(*((2, "top", rank, 1.0, rank) for rank in range(4000))))
    assert len(board.tops["q"][()].entries) == (0 if emit == "changes" else 4000)
    assert time.monotonic() - began < 5, "every row is compared with every other"


@pytest.mark.parametrize(("name", "values"), [("price", [math.nan, math.nan]), ("pair", ["EURUSD"] * 2), ("object", ["a"] * 2)])
def test_a_board_finds_a_group_again(name: str, values: list[Any]) -> None:
    board = Board([sb.TopK(name="q", k=2, score="x", window=sb.CountWindow(5))], [name])
    came = results((1, "enter", 1, 5.0, 1), (2, "leave", None, 5.0, 1)).append_column(name, pa.array(values))
    board.take(came.slice(0, 1))
    board.take(came.slice(1))
    (top,) = board.tops["q"].values()
    assert top.end == 2 and not top.entries


def test_a_board_reads_what_a_sink_of_json_wrote(tmp_path: Path) -> None:
    """JSON has no NaN and no infinities: Spark writes them as texts among numbers, in any column."""
    lines = [
        {"g": 1.5, "row": {"id": 1, "x": 2, "m": {"a": 1}}, "score": 2.0},
        {"g": "NaN", "row": {"id": 12345678901234567890, "x": "Infinity", "m": {"b": "NaN"}}, "score": "Infinity"},
        {"g": "NaN", "row": {"id": 3, "x": 0.5, "said": "one\u2028two\x85"}, "score": -1},
    ]
    whole = [{"query": "q", "window_end": 1, "event": "enter", "rank": 1, **line} for line in lines]
    written = tmp_path / "part.json"
    written.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in whole), encoding="utf-8")
    (tmp_path / "_spark_metadata").mkdir()
    committed = Committed(tmp_path, "json", ["score", "g"])
    (tmp_path / "_spark_metadata" / "0").write_text(f"v1\n{json.dumps({'path': written.as_uri()})}\n")
    board = Board([sb.TopK(name="q", k=2, score="x", window=sb.CountWindow(5))], ["g"])
    committed.show(board)
    shown = {str(group[0]): [(entry.score, entry.row) for entry in top.entries] for group, top in board.tops["q"].items()}
    first, other, third = (line["row"] for line in lines)
    assert shown == {"1.5": [(2.0, first)], "nan": [(math.inf, other), (-1.0, third)]}
    assert can_read(Sink("json", "out", {"ignoreNullFields": "false"})) and can_read(
        Sink("parquet", "out", {"compression": "zstd"})
    )
    assert not can_read(Sink("json", "out", {"Compression": "gzip"})) and not can_read(Sink("orc", "out"))


def test_numbers_that_json_lacks_are_null_in_maps_too(capsys: pytest.CaptureFixture[str]) -> None:
    kept = pa.array([[("a", math.nan), ("b", 1.0)]], pa.map_(pa.string(), pa.float64()))
    JsonJobScreen().results(pa.table({"query": ["q"], "row": pa.StructArray.from_arrays([kept], ["kept"])}))
    assert json.loads(capsys.readouterr().out) == {"query": "q", "row": {"kept": [["a", None], ["b", 1.0]]}}


def test_a_time_that_python_has_none_for_is_shown_as_text() -> None:
    due = pa.array([4_000_000, 1, None], pa.date32())
    sent = pa.array([[300_000_000_000_000_000], [0], None], pa.list_(pa.timestamp("us", "UTC")))
    kept = pa.array([[("a", 4_000_000)], [], None], pa.map_(pa.string(), pa.date32()))
    row = pa.StructArray.from_arrays([pa.array([1, 2, 3]), due, sent, kept], ["id", "due", "sent", "kept"])
    came = results((1, "enter", 1, 5.0, 1), (2, "enter", 2, 4.0, 2), (3, "enter", 2, 4.5, 3)).set_column(5, "row", row)
    far, near, none = (result["row"] for result in rows_of(came))
    assert far == {"id": 1, "due": "12921-08-18", "sent": ["11476-08-15 05:20:00.000000Z"], "kept": [("a", "12921-08-18")]}
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    assert near == {"id": 2, "due": dt.date(1970, 1, 2), "sent": [epoch], "kept": []}
    assert none == {"id": 3, "due": None, "sent": None, "kept": None}
    assert rows_of(came.slice(1))[0]["row"] == near == came.slice(1).to_pylist()[0]["row"]
    board = Board([sb.TopK(name="q", k=3, score="x", window=sb.CountWindow(5))])
    board.take(came)
    assert ids(board) == [1, 3, 2]


def test_lines_of_results_name_pairs_and_objects_and_lose_no_column(capsys: pytest.CaptureFixture[str]) -> None:
    best = {"query": "q", "event": "top", "rank": 1, "score": 2.0, "row": {"id": 7, "rank": 5}, "pair": None}
    near = {"query": "p", "event": "leave", "rank": None, "score": 0.5, "row": None, "pair": {"a": {"id": 1}, "b": {"id": 2}}}
    PlainJobScreen(Console(width=20)).results(pa.Table.from_pylist([best, near]))
    assert capsys.readouterr().out.splitlines() == [
        "query=q  event=top  rank=1  score=2  id=7  row_rank=5",
        "query=p  event=leave  score=0.5  a.id=1  b.id=2",
    ]
    grouped = {"query": "q", "pair": "EURUSD", "event": "top", "rank": 1, "score": 2.0, "row": {"id": 7}}
    PlainJobScreen(Console(width=20)).results(pa.Table.from_pylist([grouped]))
    assert capsys.readouterr().out == "query=q  pair=EURUSD  event=top  rank=1  score=2  id=7\n"


def test_a_signal_that_comes_while_its_flag_is_waited_for_is_heard() -> None:
    """Thousands of waits, each interrupted at another place: a lock in the flag would sooner or later be held."""
    from skyband.console.jobs import Interruption

    for number in range(300):
        with Interruption() as stop:
            timer = threading.Timer(0.0005 + number * 1e-6, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            while not stop.wait(0.0002):
                pass
            timer.join()


KINDS = """
[[query]]
kind = "threshold"
name = "dear"
above = 0.9
score = "price"
window = { rows = 100, slide = 10 }

[[query]]
kind = "pairs"
name = "near"
k = 3
score = { distance = ["price"], metric = "l1" }
where = "a.id != b.id"
order = "desc"
window = { size = "10 seconds", slide = "1 second" }

[[query]]
kind = "across"
name = "busy"
k = 2
key = "id"
stream = "venue"
value = "price"
streams = ["north", "south"]
combine = { north = 1.0, south = 2.0 }
ranges = { north = [0, 1] }
window = { size = "10 seconds", slide = "1 second" }
"""


def test_a_job_may_ask_every_kind_of_query(tmp_path: Path) -> None:
    file = job_file(tmp_path)
    file.write_text(file.read_text().replace("[sink]", KINDS + "\n[sink]"))
    job = read_job(file)
    window = sb.TimeWindow("10 seconds", "1 second")
    assert job.queries[2:] == (
        sb.Threshold(name="dear", above=0.9, score="price", window=sb.CountWindow(100, 10)),
        sb.TopKPairs(
            name="near", k=3, score=sb.pair_distance(["price"], "l1"), where="a.id != b.id", order="desc", window=window
        ),
        sb.TopKAcross(
            name="busy",
            k=2,
            key="id",
            stream="venue",
            value="price",
            streams=["north", "south"],
            combine={"north": 1.0, "south": 2.0},
            ranges={"north": (0, 1)},
            window=window,
        ),
    )
    words = dict(describe(job))
    assert words["query dear"].startswith("all with price above 0.9, of the last 100 rows")
    assert words["query near"].startswith("the 3 pairs with the largest abs(a.price - b.price), where a.id != b.id")
    assert words["query busy"].startswith("the 2 id with the largest weighted sum of price over venue north, south")


def test_the_job_in_the_docs_is_one(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "jobs.md").read_text()
    (tmp_path / "trades.toml").write_text(page.partition("```toml\n")[2].partition("```")[0])
    (tmp_path / "in").mkdir()
    job = read_job(tmp_path / "trades.toml")
    check_surroundings(job)
    check_columns(job)
    assert job.name == "trades" and job.stream.group_by == ("venue",) and job.trigger.every == "10 seconds"
