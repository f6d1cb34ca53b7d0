"""A job: source, questions, sink and trigger as a TOML file says. Frozen, and checked whole before Spark starts.

[source]                                  [stream]                       [[query]]
format = "parquet"                        time = "ts"                    name = "hot"
path = "trades"                           lateness = "5 seconds"         k = 10
schema = "ts timestamp, price double"     group_by = ["venue"]           score = "price * volume"
                                                                         window = { size = "30 min", slide = "1 min" }
[sink]                                    [trigger]                      [control]
format = "parquet"                        available_now = true           format = "text"
path = "hot"                              checkpoint = "state"           path = "commands"
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from skyband.query import Query
from skyband.spark.jobs.file import Document, Section, shown
from skyband.spark.jobs.queries import read_queries
from skyband.spark.plan import checked_spread
from skyband.spark.stream import Stream
from skyband.window import TimeWindow, lateness_of, nanoseconds

FILES = ("parquet", "json", "csv", "orc", "xml", "avro", "text")
SOURCES = (*FILES, "kafka", "rate", "socket")
FROM_KAFKA = ("topic", "partition", "offset", "timestamp")
"""Columns that rows from Kafka have beside those of their schema."""

SINKS = ("console", "parquet", "json", "orc", "kafka", "memory", "noop")
REMEMBERING = ("parquet", "json", "orc", "kafka")
"""Sinks that go on where they stopped, and so need a checkpoint that outlives the run."""
PATHLESS = ("console", "kafka", "memory", "noop")
"""Sinks that write no files: a path would be passed over."""

_SETTINGS = ("master", "app", "driver", "executor", "sql", "jars", "pyspark", "submit", "ui", "cores", "memory", "local")
"""What settings are about whose "spark." was forgotten; others that do not begin so are for Hadoop."""

JARS = "spark.jars"
"""The setting that names jars; here they may be patterns."""

_TYPES = re.findall(
    r"\w+",
    "boolean byte tinyint short smallint int integer long bigint float real double decimal dec numeric string char varchar "
    "binary date time timestamp timestamp_ltz timestamp_ntz interval array map struct variant",
)
_MEANT = {
    **dict.fromkeys(("str", "text", "utf8", "object"), "string"),
    **{"datetime": "timestamp", "datetime64": "timestamp", "number": "double", "uuid": "string", "json": "string"},
    **{"int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint", "float32": "float", "float64": "double"},
}
"""Types by the names that others have for them."""

_HOLDING = {"array": "array<double>", "map": "map<string, double>", "struct": "struct<x: double>"}
_MOST_DIGITS = 38
_NAME = r"(`(?:[^`]|``)+`|[^\s:]+)"
_QUOTED = r"`[^`]*`|'[^']*'|\"[^\"]*\""

_STREAM_KEYS = dict.fromkeys(("time", "lateness", "key", "deletes", "group_by", "arrival", "shards"), "the table [stream]")
_ROOT_KEYS = {**_STREAM_KEYS, "path": "the table [source] or [sink]"}
_OPTIONS = (
    *("maxFilesPerTrigger", "maxBytesPerTrigger", "latestFirst", "fileNameOnly", "maxFileAge", "maxCachedFiles", "cleanSource"),
    *("sourceArchiveDir", "pathGlobFilter", "recursiveFileLookup", "modifiedBefore", "modifiedAfter", "timestampFormat"),
    *("startingOffsets", "endingOffsets", "startingTimestamp", "endingTimestamp", "failOnDataLoss", "maxOffsetsPerTrigger"),
    *("minOffsetsPerTrigger", "maxTriggerDelay", "minPartitions", "rowsPerSecond", "rowsPerMicroBatch", "numPartitions"),
)
"""Options of sources that are often meant: Spark says nothing of one that it does not know."""


@dataclass(frozen=True)
class Source:
    """Where rows come from."""

    format: str
    path: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    schema: str | None = None  # Spark DDL
    columns: tuple[str, ...] = ()  # named by the schema
    types: tuple[str, ...] = ()  # theirs, as the schema has them
    select: tuple[str, ...] = ()  # Spark SQL expressions over what is read


@dataclass(frozen=True)
class Sink:
    """Where results go."""

    format: str
    path: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Trigger:
    """When a micro-batch is made: of all there is and then no more, at intervals, or as soon as the last is done."""

    available_now: bool = False
    every: str | None = None


@dataclass(frozen=True)
class Watched:
    """Where the job's figures are to be had: see `skyband.spark.metrics`."""

    port: int | None = None
    host: str = "127.0.0.1"
    path: str | None = None


@dataclass(frozen=True)
class Job:
    """Everything a job file says; `document` knows the lines."""

    document: Document
    name: str
    source: Source
    stream: Stream
    queries: tuple[Query, ...]
    sink: Sink
    trigger: Trigger
    checkpoint: str | None
    spark: Mapping[str, str]  # settings of the session
    metrics: Watched = Watched()
    control: Source | None = None  # where commands come from that add and cancel queries


def read_job(file: Path) -> Job:
    """The job in a file; JobError names the line of whatever is wrong. Spark is not needed for it."""
    document = Document(file)
    root = Section(document, (), document.content, "the file")
    name = root.take("name", str, example='name = "trades"') or file.stem
    checkpoint = _path(root, "checkpoint", 'checkpoint = "state"')
    source = _source(root.section("source", example='[source] with format = "parquet"', required=True))
    stream = _stream(root.section("stream", example='[stream] with time = "ts"'))
    control = _control(root)
    queries = read_queries(root, required=control is None)
    sink = _sink(root.section("sink", example='[sink] with format = "console"', required=True))
    trigger = _trigger(root.section("trigger", example="[trigger] with available_now = true"))
    spark = root.options("spark", '[spark] with "spark.master" = "local[2]"')
    for setting in spark:
        if setting.split(".")[0] in _SETTINGS:
            message = f'settings of Spark begin with "spark."; write: "spark.{setting}" = ...'
            raise document.problem(("spark", *setting.split(".")), message)
    if JARS in spark:
        spark[JARS] = ",".join(str(_place(document, path.strip())) for path in spark[JARS].split(","))
    metrics = _metrics(root.section("metrics", example="[metrics] with port = 9400"))
    root.finish(_ROOT_KEYS)
    if sink.format in REMEMBERING and checkpoint is None:
        message = f'a {sink.format} sink needs a checkpoint, so that a restart repeats nothing; add: checkpoint = "state"'
        raise document.problem(("sink", "format"), f"{message} above the tables")
    if sink.format == "memory" and not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        fitting = re.sub(r"^(?=\d)|\W", "_", name, flags=re.ASCII)
        message = f'a memory sink is a table called as the job is, and none can be called {name!r}; write: name = "{fitting}"'
        key = ("name",) if "name" in root.content else ("sink", "format")
        raise document.problem(key, message if "name" in root.content else f"{message} above the tables")
    if stream.time is None and (timed := [i for i, query in enumerate(queries) if isinstance(query.window, TimeWindow)]):
        message = f"query {queries[timed[0]].name!r} has a time window; name the time column"
        raise document.problem(("query", timed[0], "window"), f'{message}: add time = "..." to [stream]')
    return Job(document, name, source, stream, queries, sink, trigger, checkpoint, spark, metrics, control)


def _place(document: Document, path: str | None) -> str | None:
    """A path as Spark is told: one without a scheme is relative to the job file, wherever the command is given."""
    if path is None or re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", path):
        return path
    return str(document.file.resolve().parent / Path(path).expanduser())


def _path(table: Section, key: str, example: str, *, required: bool = False) -> str | None:
    """The same of a key of the file."""
    path = table.take(key, str, example=example, required=required)
    if path == "":
        table.fail(f"{key} is empty, and would be the folder of the job file; write for example: {example}", key)
    return _place(table.document, path)


# -- the tables --------------------------------------------------------------------------------------------------


def _source(table: Section) -> Source:
    kind = table.take("format", str, example='format = "parquet"', required=True)
    if kind not in SOURCES and (close := get_close_matches(kind, SOURCES, 1, 0.75)):
        table.fail(f"format = {kind!r} is not known; did you mean {close[0]!r}?", "format")
    path = _path(table, "path", 'path = "trades"', required=kind in FILES)
    needs = kind in FILES and kind != "text"
    example = '[source.schema] with a line such as price = "double" per column'
    if needs and "schema" not in table.content:
        table.fail(f"a stream of {kind} files needs its columns; add {example}", "format")
    schema, columns, types = _schema(table, table.take("schema", str, dict, example=example, required=needs))
    select = table.take("select", list, example='select = ["*", "cast(value as string) as text"]') or []
    if not all(isinstance(text, str) for text in select):
        table.fail('every entry of select must be a text of Spark SQL, as in: select = ["*", "ask - bid as spread"]', "select")
    options = table.options("options", "[source.options] with maxFilesPerTrigger = 1")
    for option in options:
        if (close := get_close_matches(option, _OPTIONS, 1, 0.9)) and close[0].lower() != option.lower():
            table.fail(f"Spark has no option {option!r} for a source; did you mean {close[0]!r}?", "options", option)
    if kind == "kafka":
        _check_kafka(table, options, ("subscribe", "subscribePattern", "assign"))
    table.finish({"maxFilesPerTrigger": "[source.options]"})
    return Source(kind, path, options, schema, columns, types, tuple(select))


def _control(root: Section) -> Source | None:
    """Commands are read as rows are. The texts of Kafka and of text files are the commands, unless `select` says otherwise."""
    table = root.section("control", example='[control] with format = "text" and path = "commands"')
    if "control" not in root.content:
        return None
    if "schema" not in table.content and table.content.get("format") in FILES and table.content["format"] != "text":
        table.fail('commands need their columns; add to [control]: schema = "command string"', "format")
    control = _source(table)
    if control.format in ("kafka", "text") and not control.select and control.schema is None:
        return replace(control, select=("cast(value as string) as command",))
    return control


def _check_kafka(table: Section, options: Mapping[str, str], topics: tuple[str, ...]) -> None:
    if "kafka.bootstrap.servers" not in options:
        table.fail(
            f'kafka needs its servers; add to [{table.path[0]}.options]: "kafka.bootstrap.servers" = "host:9092"', "options"
        )
    if not any(topic in options for topic in topics):
        table.fail(f'kafka needs a topic; add to [{table.path[0]}.options]: {topics[0]} = "trades"', "options")


def _schema(table: Section, given: Any) -> tuple[str | None, tuple[str, ...], tuple[str, ...]]:
    """Columns as DDL, their names and their types. Names of types are checked here, so that a slip costs no start of Spark."""
    if given is None:
        return None, (), ()
    columns: list[tuple[str, str, tuple[str, ...]]] = []  # name, type, where it stands
    if isinstance(given, str):
        for part in _split(given):
            words = re.fullmatch(rf"\s*{_NAME}\s*[\s:]\s*(\S.*?)\s*", part, re.DOTALL)
            if words is None:
                table.fail(f'schema must be columns and types, as in "ts timestamp, price double"; got {given!r}', "schema")
            columns.append((words[1], words[2], ("schema",)))
    else:
        for name, kind in given.items():
            if not isinstance(kind, str):
                message = f'the type of column {name!r} must be a text such as "double", got {shown(kind)}'
                table.fail(message, "schema", name)
            columns.append((f"`{name.replace('`', '``')}`", kind, ("schema", name)))
        if not columns:
            table.fail('schema names no column; write one line a column, as in: price = "double"', "schema")
    for name, kind, place in columns:
        for word in _types_in(kind):
            if (said := _slip_in(word)) is not None:
                within = "which" if word == kind else f"in which {word!r}"
                table.fail(f"column {name.strip('`')!r} has the type {kind!r}, {within} {said}", *place)
    names = (name[1:-1].replace("``", "`") if name.startswith("`") else name for name, _, _ in columns)
    return ", ".join(f"{name} {kind}" for name, kind, _ in columns), tuple(names), tuple(kind for _, kind, _ in columns)


def _types_in(kind: str) -> Iterator[str]:
    """A type and those within it; what is no type of Spark's is given as it stands."""
    holder, inner = re.split(r"\W", kind, maxsplit=1)[0].lower(), _bracketed(kind)
    if holder not in _HOLDING or not inner.strip():
        yield kind
        return
    for part in _split(inner):
        field = re.fullmatch(rf"\s*{_NAME}\s*[\s:]\s*(\S.*)", part, re.DOTALL) if holder == "struct" else None
        yield from _types_in((part if field is None else field[2]).strip())


def _bracketed(kind: str) -> str:
    """What stands in the angle brackets of a type; comments behind it may have others."""
    depth = 0
    for sign in re.finditer(f"{_QUOTED}|[<>]", kind):
        depth += (sign[0] == "<") - (sign[0] == ">")
        if depth == 0 and sign[0] == ">":
            return kind[kind.index("<") + 1 : sign.start()]
    return ""


def _slip_in(kind: str) -> str | None:
    """What is wrong with a type that holds no others, and what may be meant; None when nothing is."""
    word = re.split(r"\W", kind, maxsplit=1)[0].lower()
    if word not in _TYPES:
        close = _MEANT.get(word) or next(iter(get_close_matches(word, _TYPES, 1)), None)
        remedy = f"did you mean {close!r}?" if close else "use one of Spark, such as double, bigint, string or timestamp"
        return f"is not known; {remedy}"
    if word in _HOLDING and not re.match(r"struct\s*<\s*>", kind, re.IGNORECASE):
        return f"does not say what it holds; write {_HOLDING[word]}"
    digits = re.match(r"\w+\s*\(\s*(\d+)\s*(?:,\s*(\d+))?", kind)
    if digits and word in ("decimal", "dec", "numeric") and not (int(digits[2] or 0) <= int(digits[1]) <= _MOST_DIGITS):
        return f"has more digits than the {_MOST_DIGITS} of a decimal, or fewer than behind its point; write decimal(18, 2)"
    return None


def _split(ddl: str) -> list[str]:
    """The columns of a DDL text: cut at commas that stand in no brackets, quotes or comments."""
    parts, depth, start = [], 0, 0
    for sign in re.finditer(f"{_QUOTED}|[<>(),]", ddl):
        depth += (sign[0] in "<(") - (sign[0] in ">)")
        if sign[0] == "," and depth == 0:
            parts.append(ddl[start : sign.start()])
            start = sign.end()
    return [*parts, ddl[start:]]


def _stream(table: Section) -> Stream:
    time = table.take("time", str, example='time = "ts"')
    lateness = table.take("lateness", str, int, example='lateness = "5 seconds"') or 0
    table.attempt(lambda: lateness_of(lateness), "lateness")
    groups = table.take("group_by", list, str, example='group_by = ["venue"]') or []
    groups = [groups] if isinstance(groups, str) else groups
    if not all(isinstance(name, str) for name in groups):
        table.fail(f'group_by must be names of columns, as in ["venue"]; got {groups!r}', "group_by")
    for name in groups:
        if groups.count(name) > 1:
            table.fail(f"group_by names {name!r} twice; name it once", "group_by")
    arrival = table.take("arrival", str, example='arrival = "offset"')
    key = table.take("key", str, example='key = "id"')
    deletes = table.take("deletes", str, example='deletes = "is_deletion"')
    if (key is None) != (deletes is None):
        missing, there = ("deletes", "key") if deletes is None else ("key", "deletes")
        what = 'deletes = "...", a boolean column that says which rows are deletions' if deletes is None else 'key = "..."'
        table.fail(f"{there!r} is for deletions and needs {missing!r} beside it; add {what}, or take {there!r} out", there)
    shards = table.take("shards", int, example="shards = 4")
    if shards is not None:
        table.attempt(lambda: checked_spread(shards), "shards")
    table.finish()
    return Stream(time, lateness, tuple(groups), arrival, key, deletes, shards)


def _sink(table: Section) -> Sink:
    kind = table.take("format", str, example='format = "console"', required=True)
    if kind in ("csv", "text"):
        table.fail(f"a {kind} sink cannot hold a result's row, which is a struct; use json or parquet", "format")
    if kind not in SINKS and (close := get_close_matches(kind, SINKS, 1, 0.75)):
        table.fail(f"format = {kind!r} is not known; did you mean {close[0]!r}?", "format")
    path = _path(table, "path", 'path = "results"', required=kind in FILES)
    if path is not None and kind in PATHLESS:
        table.fail(f'a {kind} sink writes to no path; leave it out, or write format = "json"', "path")
    options = table.options("options", '[sink.options] with compression = "zstd"')
    if options and kind == "console":
        table.fail(f"a console sink has no options; leave out {', '.join(map(repr, options))}", "options")
    if kind == "kafka":
        _check_kafka(table, options, ("topic",))
    table.finish()
    return Sink(kind, path, options)


def _trigger(table: Section) -> Trigger:
    now = table.take("available_now", bool, example="available_now = true") or False
    every = table.take("every", str, example='every = "10 seconds"')
    if every is not None:
        table.attempt(lambda: nanoseconds(every, "every"), "every")
    if now and every is not None:
        table.fail("available_now and every exclude each other; keep one", "every")
    table.finish()
    return Trigger(now, every)


def _metrics(table: Section) -> Watched:
    port = table.take("port", int, example="port = 9400")
    if port is not None and not 0 <= port <= 65535:
        table.fail(f"port must be a number from 0 (any that is free) to 65535, got {port}", "port")
    host = table.take("host", str, example='host = "0.0.0.0"') or Watched.host
    path = _path(table, "path", 'path = "metrics.jsonl"')
    if path is not None and (scheme := re.match(r"([A-Za-z][A-Za-z0-9+.-]+):", path)):
        table.fail(f"path must be a file of this machine, not of {scheme[1]}, got {path!r}", "path")
    table.finish()
    if table.content and port is None and path is None:
        table.fail('[metrics] needs a port, a path or both, as in: port = 9400 or path = "metrics.jsonl"')
    return Watched(port, host, path)
