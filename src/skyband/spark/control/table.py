"""Queries out of a table: one JSON query a row."""

from __future__ import annotations

import json
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from skyband.errors import QueryError, SchemaError
from skyband.query import Query
from skyband.written_query import query_from_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def queries_from(table: DataFrame | pa.Table | str | PathLike[str], column: str = "query") -> list[Query]:
    """The queries in a table, one JSON text a row: see `skyband.written_query` for how they are written.

    `table`: a batch DataFrame or an Arrow table with the texts in `column`; the path of a Parquet file or folder; or the path
    of a text file with one query a line, where lines may be empty. QueryError names the row, or the line, of a query that
    cannot be asked, and both rows of two that have one name.
    """
    queries: list[Query] = []
    rows: dict[str, int] = {}
    what, texts = _texts(table, column)
    for number, text in texts:
        try:
            query = query_from_text(text)
        except QueryError as problem:
            raise QueryError(f"{what} {number}: {problem}") from None
        if query.name in rows:
            raise QueryError(
                f"{what} {number}: a query called {query.name!r} stands in {what} {rows[query.name]} already; rename one"
            )
        rows[query.name] = number
        queries.append(query)
    return queries


def _texts(table: DataFrame | pa.Table | str | PathLike[str], column: str) -> tuple[str, Iterable[tuple[int, object]]]:
    """The texts and their numbers, and what these count."""
    if isinstance(table, str | PathLike):
        path = Path(table)
        try:
            if not path.is_dir() and path.suffix != ".parquet":
                lines = path.read_text().splitlines()
                return f"{path}, line", [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
            table = pq.read_table(path)
        except (OSError, UnicodeDecodeError, pa.ArrowInvalid) as problem:
            raise QueryError(f"the queries at {path} cannot be read: {problem}") from None
    elif not isinstance(table, pa.Table):
        if getattr(table, "isStreaming", False):
            raise QueryError(
                "queries that come as a stream are commands: give them as control=, in a column 'command', each as "
                f"{json.dumps({'add': {'name': '...'}})}"
            )
        table = table.toArrow()
    if column not in table.column_names:
        raise SchemaError(f"the table of queries has no column {column!r}, it has {table.column_names}; name it: column='...'")
    return "row", enumerate(table[column].to_pylist(), 1)
