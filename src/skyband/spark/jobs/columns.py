"""The columns that a job names, held against its source's schema: a slip in one need not wait for Spark to start."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from skyband.errors import SkybandError
from skyband.query import Threshold, TopK, TopKPairs
from skyband.scores.score import bind, bind_where
from skyband.seating import place
from skyband.spark.jobs.checks import local, matching
from skyband.spark.jobs.job import FILES, FROM_KAFKA, Job, Source
from skyband.spark.jobs.toml_lines import Path as KeyPath
from skyband.spark.plan import known_column, make_request
from skyband.spark.stream import Stream
from skyband.window import CountWindow

_MOMENT, _TEXT = pa.timestamp("us", "UTC"), pa.string()
_PLAIN = {
    **{"boolean": pa.bool_(), "byte": pa.int8(), "tinyint": pa.int8(), "short": pa.int16(), "smallint": pa.int16()},
    **{"int": pa.int32(), "integer": pa.int32(), "long": pa.int64(), "bigint": pa.int64(), "float": pa.float32()},
    **{"real": pa.float32(), "double": pa.float64(), "string": _TEXT, "char": _TEXT, "varchar": _TEXT, "binary": pa.binary()},
    **{"date": pa.date32(), "timestamp": _MOMENT, "timestamp_ltz": _MOMENT, "timestamp_ntz": pa.timestamp("us")},
}
_NESTED = {"array": pa.list_(pa.null()), "map": pa.map_(_TEXT, pa.null()), "struct": pa.struct([("field", pa.null())])}
"""Of types that hold others, that they do: what they hold no job names."""
_OF_KAFKA = dict(zip(FROM_KAFKA, (_TEXT, pa.int32(), pa.int64(), _MOMENT), strict=True))


def check_columns(job: Job) -> None:
    """JobError at the line of a column that no row will have, or has as something else than it is asked for. What only Spark
    knows, such as columns that are selected or made by folders, is left to it."""
    schema = _schema_of(job.source)
    if schema is None:
        return
    for line, check in _checks(job, schema):
        try:
            check()
        except SkybandError as problem:
            raise job.document.problem(line, str(problem)) from None
    if job.control is None and not any(pa.types.is_null(schema.field(name).type) for name in _named_by(job.stream)):
        try:
            _requested(job, schema)
        except SkybandError as problem:
            raise job.document.problem(line_of(job, problem), str(problem)) from None


def _requested(job: Job, schema: pa.Schema) -> None:
    stream = job.stream
    ways = (stream.time, stream.lateness, stream.group_by, stream.arrival)
    make_request(schema, job.queries, *ways, key=stream.key, deletes=stream.deletes, spread=stream.shards or 1)


def line_of(job: Job, problem: SkybandError) -> KeyPath:
    """The key that is to blame where what the queries ask, each right by itself, does not fit the stream."""
    for i, query in enumerate(job.queries):
        if str(problem).startswith("the window ") and f"query {query.name!r}" in str(problem):
            return "query", i, "window"
    named = [name for name in vars(job.stream) if str(problem).startswith((f"{name} ", f"the {name} column"))]
    return "stream", *named[:1]


def _named_by(stream: Stream) -> list[str]:
    """The columns that the table [stream] names."""
    single = (stream.time, stream.arrival, stream.key, stream.deletes)
    return [*(name for name in single if name is not None), *stream.group_by]


def _schema_of(source: Source) -> pa.Schema | None:
    """The columns of the source's rows as Arrow has them; all null, and so of any type, where only Spark knows the type."""
    names = _columns_of(source)
    if names is None:
        return None
    known = {**_OF_KAFKA, **dict(zip(source.columns, map(_arrow_type, source.types), strict=True))}
    return pa.schema([(name, known[name]) for name in names])


def _arrow_type(ddl: str) -> pa.DataType:
    """The type of a column, without what follows it, such as NOT NULL; null where it is not a plain one."""
    if digits := re.match(r"(?:decimal|dec|numeric)\b\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?", ddl, re.IGNORECASE):
        precision, scale = int(digits[1] or 10), int(digits[2] or 0)
        return pa.decimal128(precision, scale) if 1 <= precision <= 38 else pa.null()
    return (_PLAIN | _NESTED).get(re.split(r"\W", ddl, maxsplit=1)[0].lower(), pa.null())


def _columns_of(source: Source) -> tuple[str, ...] | None:
    """What the source's rows will have; None where its schema does not tell: more is selected or, by folders, added."""
    if not source.columns or source.select:
        return None
    if source.format == "kafka":
        return (*source.columns, *(name for name in FROM_KAFKA if name not in source.columns))
    path = local(source.path)
    if source.format not in FILES or path is None or "basePath" in source.options:
        return None
    found = list(matching(path))
    within = (inner for folder in found if folder.is_dir() for inner in folder.iterdir())
    foldered = any(inner.is_dir() for inner in within) or (found != [path] and any(folder.is_dir() for folder in found))
    return None if foldered else source.columns  # folders may be called `day=1`, which makes a column of `day`


def _checks(job: Job, schema: pa.Schema) -> Iterator[tuple[KeyPath, Callable[[], Any]]]:
    """Every place where columns are named, and what raises an error that says which is missing."""
    for i, query in enumerate(job.queries):
        if not isinstance(query, TopK | Threshold):
            counted = replace(query, window=CountWindow(2))  # its columns alone are looked at here
            yield ("query", i, "score" if isinstance(query, TopKPairs) else "key"), partial(place, counted, schema, None)
            continue
        yield ("query", i, "score"), partial(bind, query.score, schema)
        if query.where is not None:
            yield ("query", i, "where"), partial(bind_where, query.where, schema)
    for what in ("time", "group_by", "arrival", "key", "deletes"):
        given = getattr(job.stream, what)
        for name in (given,) if isinstance(given, str) else given or ():
            yield ("stream", what), partial(known_column, schema, name, what)
