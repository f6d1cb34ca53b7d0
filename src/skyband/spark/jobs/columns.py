"""The columns that a job names, held against its source's schema: a slip in one need not wait for Spark to start."""

from __future__ import annotations

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
from skyband.spark.plan import known_column
from skyband.window import CountWindow


def check_columns(job: Job) -> None:
    """JobError at the line of a column that no row will have. Types, and columns that only Spark knows, are left to Spark."""
    names = _columns_of(job.source)
    if names is None:
        return
    schema = pa.schema([(name, pa.null()) for name in names])  # what is all null so far may be of any type
    for line, check in _checks(job, schema):
        try:
            check()
        except SkybandError as problem:
            raise job.document.problem(line, str(problem)) from None


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
