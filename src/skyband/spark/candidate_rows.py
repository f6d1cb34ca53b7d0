"""Rows that can rank, on their way from a task to their group: what they are ranked by mostly stands in a column of their own,
which is not sent twice."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from skyband.spark.addressed import tie_of
from skyband.spark.plan import TIE, TIME, Plan

Array = np.ndarray


def candidate_schema(plan: Plan) -> pa.Schema:
    """Columns of the candidates: time, tie, scores, then the input's own."""
    fields = [pa.field(TIME, pa.int64()), pa.field(TIE, pa.int64())]
    fields += [pa.field(f"s{i}", pa.float64()) for i in range(plan.scores)]
    return pa.schema([*fields, *plan.schema])


def sent_schema(plan: Plan) -> pa.Schema:
    """The same without the time, a tie that is the column of arrival, and scores that are columns: `whole_rows` tells them."""
    told = {TIME, *(f"s{i}" for i, place in enumerate(plan.bare) if place is not None)}
    told |= {TIE} if plan.arrives is not None else set()
    return pa.schema([field for field in candidate_schema(plan) if field.name not in told])


def whole_rows(plan: Plan, sent: pa.Table) -> pa.Table:
    """Rows with all columns of `candidate_schema`; of those that were sent, none is copied."""
    schema = candidate_schema(plan)
    return pa.table([_column(plan, sent, name) for name in schema.names], schema=schema)


def _column(plan: Plan, sent: pa.Table, name: str) -> pa.ChunkedArray | pa.Array:
    if name in sent.column_names:
        return sent[name]
    if name == TIME:
        return time_of(plan, sent)
    return tie_of(sent[f"c{plan.arrives}"]) if name == TIE else score_of(plan, sent, int(name.removeprefix("s")))


def time_of(plan: Plan, rows: pa.Table | pa.RecordBatch) -> pa.ChunkedArray | pa.Array:
    """The times of rows as whole numbers; zeros where there are none."""
    if plan.time is None:
        return pa.array(np.zeros(rows.num_rows, np.int64))
    return rows.column(f"c{plan.time}").cast(pa.int64())


def score_of(plan: Plan, rows: pa.Table | pa.RecordBatch, number: int) -> pa.ChunkedArray | pa.Array:
    """A score of rows, NaN where it is unknown: a column computed for it, or the input's own that it is."""
    place = plan.bare[number]
    if place is None:
        return rows.column(f"s{number}")
    column = rows.column(f"c{place}")
    return column.fill_null(np.nan) if column.null_count else column


def held_names(plan: Plan) -> list[str]:
    """Of the columns of `candidate_schema` those that a monitor holds of rows: what stands in two of them, once. Times are held
    as whole numbers, in which windows are told; a score that is a column as that one, which tells null from NaN."""
    named = {TIME} if plan.time is not None else set()
    named |= {f"s{i}" for i, place in enumerate(plan.bare) if place is None}
    named |= {name for i, name in enumerate(plan.schema.names) if i != plan.time}
    return [name for name in candidate_schema(plan).names if name in named]


def score_name(plan: Plan, number: int) -> str:
    """The column of those that a score is in."""
    place = plan.bare[number]
    return f"s{number}" if place is None else f"c{place}"


def own_columns(plan: Plan, results: pa.Table) -> list[pa.ChunkedArray]:
    """The input's columns of result rows."""
    return [results[TIME].cast(field.type) if i == plan.time else results[field.name] for i, field in enumerate(plan.schema)]


def rank_columns(plan: Plan, rows: pa.Table) -> tuple[Array, Array, list[Array]]:
    """What candidates are ranked by: times, ties, scores."""
    return rows[TIME].to_numpy(), rows[TIE].to_numpy(), [rows[f"s{i}"].to_numpy() for i in range(plan.scores)]
