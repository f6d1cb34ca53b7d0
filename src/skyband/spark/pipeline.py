"""`monitor`: a DataFrame in, a DataFrame of result rows out; one ordinary query of Spark, streaming or batch.

    input ─► scores as columns ─► reduced next to the data ─► by group: windows ─► result rows ─► `row` packed
             (Catalyst)           (mapInArrow: reduce.py)     (state: group.py)    (mapInArrow)   (Catalyst)

Between the steps rows travel as Arrow bytes, one row a group and task: a payload keeps its exact types, and the
stateful step, which speaks pandas, never sees it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
from pyspark.sql.streaming.state import GroupStateTimeout
from pyspark.sql.types import BinaryType, LongType, StructField, StructType, TimestampType

from skyband.errors import QueryError, SchemaError
from skyband.query import Query
from skyband.spark.control.steps import is_dated, steered
from skyband.spark.control.terms import make_terms
from skyband.spark.group import bound_names, result_schema
from skyband.spark.plan import TIE, Plan, Request, make_request
from skyband.spark.reduce import TRAVELLING, reduced
from skyband.spark.scores import condition_column, score_column
from skyband.spark.stateful import answer_batch, answer_micro_batch, tally_names
from skyband.state import table_from_bytes
from skyband.window import Duration

OBSERVED = "skyband-"  # begins the name of the metrics a streaming query reports


def monitor(
    df: DataFrame,
    queries: Iterable[Query] | Query,
    *,
    time: str | None = None,
    lateness: Duration = 0,
    key: str | None = None,
    group_by: Iterable[str] = (),
    arrival: str | None = None,
    control: DataFrame | None = None,
) -> DataFrame:
    """Answer standing queries over `df`, per group: `query`, group columns, `window_start`, `window_end`, `event`,
    `rank`, `score`, `row`.

    A streaming DataFrame gives a streaming one (append mode; windows come when the watermark reaches their end), a
    batch DataFrame all windows of its rows.

    time      the time column, a timestamp or an integer; needed for time windows
    lateness  how far behind the greatest time a row may come; a row whose slide has closed is late, counted, dropped
    group_by  columns; every combination of their values has windows of its own
    arrival   a column (an offset, a sequence number) by which rows of equal score and time are ranked, the larger first,
              and in whose order count windows count the rows of each micro-batch. Without it rows of equal score and time
              rank by a hash of their content, and count windows count rows in the order of time, late ones left out.
    control   commands that add and cancel queries while the stream runs, a DataFrame with a text column `command`, which may
              have the columns named by `time` and `arrival` too; answered by rows of their own and a column `message`
    """
    if key is not None:
        raise QueryError(f"key={key!r} is for queries that follow objects; TopK ranks rows and needs none, leave it out")
    groups = (group_by,) if isinstance(group_by, str) else tuple(group_by)
    if control is not None:
        dated = is_dated(df, control, time, arrival)
        terms = make_terms(
            _arrow_schema(df), queries, time=time, lateness=lateness, groups=groups, arrival=arrival, dated=dated
        )
        return steered(df, control, terms, _tie(df, arrival), arrival, f"{OBSERVED}{terms.digest}")
    request = make_request(_arrow_schema(df), queries, time, lateness, groups, arrival)
    prepared = df.select(*_columns(df, request, arrival))
    plan = request.plan
    parts = _reduced(prepared, plan)
    flat = _stream(parts, plan) if df.isStreaming else _batch(parts, plan)
    return flat.select(*_packed(df, plan))


def _arrow_schema(df: DataFrame) -> pa.Schema:
    zone = df.sparkSession.conf.get("spark.sql.session.timeZone")
    for field in df.schema.fields:
        try:
            to_arrow_schema(StructType([field]), timezone=zone)
        except Exception as problem:
            raise SchemaError(
                f"the column {field.name!r} is {field.dataType.simpleString()}, which Spark cannot hand out as Arrow; "
                "drop it or cast it"
            ) from problem
    return to_arrow_schema(df.schema, timezone=zone)


# -- before the reduction ----------------------------------------------------------------------------------------


def _columns(df: DataFrame, request: Request, arrival: str | None) -> list[Column]:
    """The input under numbered names, the scores, which are unknown for another reason than `where`, and the tie."""
    own = [F.col(_quoted(name)) for name in df.columns]
    columns = [column.alias(f"c{i}") for i, column in enumerate(own)]
    for i, (score, where) in enumerate(request.scores):
        value = score_column(score, df.schema)
        if request.plan.bare[i] is not None:
            continue
        if where is not None:
            columns.append(F.isnan(value).alias(f"m{i}"))
            value = F.when(condition_column(where, df.schema), value).otherwise(F.lit(float("nan")))
        columns.append(value.alias(f"s{i}"))
    return [*columns, _tie(df, arrival).alias(TIE)]


def _tie(df: DataFrame, arrival: str | None) -> Column:
    if arrival is None:
        for field in df.schema.fields:
            if "map<" in field.dataType.simpleString():
                raise SchemaError(
                    f"the column {field.name!r} is a {field.dataType.simpleString()}, which Spark cannot hash: rows of equal "
                    "score and time could not be told apart; name a column that orders them: arrival='...'"
                )
        return F.xxhash64(*(F.col(_quoted(name)) for name in df.columns))
    kind = df.schema[arrival].dataType
    column = F.col(_quoted(arrival))
    if isinstance(kind, TimestampType):
        column = F.unix_micros(column)
    elif kind.typeName() == "timestamp_ntz":
        column = F.unix_micros(F.to_utc_timestamp(column, "UTC"))
    return F.coalesce(column.cast("long"), F.lit(-(1 << 63)))


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _reduced(df: DataFrame, plan: Plan) -> DataFrame:
    fields = [StructField(name, from_arrow_type(kind)) for name, kind in {**plan.group_types, **TRAVELLING}.items()]

    def step(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return reduced(plan, batches)

    return df.mapInArrow(step, StructType(fields))


# -- the windows -------------------------------------------------------------------------------------------------


def _stream(parts: DataFrame, plan: Plan) -> DataFrame:
    """One state per group; its answers and tallies in one row, the tallies observed on the way."""
    if plan.waits:
        parts = parts.withWatermark("mark", f"{plan.lateness} milliseconds")
    # looking for timeouts costs a second round through Python in every micro-batch
    timeout = GroupStateTimeout.EventTimeTimeout if plan.wakes else GroupStateTimeout.NoTimeout

    def step(_: Any, frames: Any, state: Any) -> Any:
        return answer_micro_batch(plan, frames, state)

    output = StructType([StructField("results", BinaryType()), *(StructField(name, LongType()) for name in tally_names(plan))])
    kept = StructType([StructField("token", BinaryType()), StructField("snapshot", BinaryType())])
    answered = parts.groupBy(*plan.group_types).applyInPandasWithState(step, output, kept, "append", timeout)
    answered = answered.observe(f"{OBSERVED}{plan.digest}", *_observed(plan))
    return answered.mapInArrow(_unpacked, _flat_schema(plan))


def _observed(plan: Plan) -> list[Column]:
    """Sums over the micro-batch's groups, named for people: see `skyband.spark.progress`."""
    named = {"rows": "rows", "null times": "null_times", "candidates": "candidates", "state bytes": "bytes"}
    for number, pace in enumerate(plan.paces):
        for query in pace.queries:
            named[f"late {query.name}"] = f"late_{number}"
            named[f"nulls {query.name}"] = f"nulls_{number}_{plan.score_of(query)}"
    return [F.coalesce(F.sum(column), F.lit(0)).alias(name) for name, column in named.items()]


def _unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for results in batch.column("results"):
            if results.is_valid:
                yield from table_from_bytes(results.as_buffer()).to_batches()


def _batch(parts: DataFrame, plan: Plan) -> DataFrame:
    """All windows of all rows at once; nothing is late."""

    def step(table: pa.Table) -> pa.Table:
        return answer_batch(plan, table)

    return parts.groupBy(*plan.group_types).applyInArrow(step, _flat_schema(plan))


def _flat_schema(plan: Plan) -> StructType:
    return StructType([StructField(field.name, from_arrow_type(field.type)) for field in result_schema(plan)])


# -- after the windows -------------------------------------------------------------------------------------------


def _packed(df: DataFrame, plan: Plan) -> list[Column]:
    """The result's columns: a group's values are those of the row itself."""
    row = F.struct(*(F.col(f"c{i}").alias(name) for i, name in enumerate(df.columns)))
    groups = [F.col(f"c{i}").alias(df.columns[i]) for i in plan.groups]
    bounds = [F.col(name) for name in bound_names(plan)]
    return [F.col("query"), *groups, *bounds, F.col("event"), F.col("rank"), F.col("score"), row.alias("row")]
