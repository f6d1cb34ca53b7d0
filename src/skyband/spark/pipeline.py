"""`monitor`: a DataFrame in, a DataFrame of result rows out; one ordinary query of Spark, streaming or batch.

    input ─► scores as columns ─► reduced next to the data ─► by group and shard: windows ─► result rows ─► `row` packed
             (Catalyst)           (mapInArrow: reduce.py)     (state: stateful.py)           (merge.py)     (packed.py)

Between the steps rows travel as Arrow bytes, in small packets by group, shard and task: a payload keeps its exact types, and
the stateful step, which speaks pandas, never sees it. Where shards share the work on a query, their answers meet by group and
query, without any state; otherwise result rows are only unpacked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    BinaryType,
    DoubleType,
    GeographyType,
    GeometryType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    VariantType,
    _has_type,
)

from skyband.errors import QueryError, SchemaError
from skyband.query import Query
from skyband.spark.arriving import nullable
from skyband.spark.carried import Carried
from skyband.spark.columns import (
    alike,
    grouped_in_arrow,
    in_own_names,
    in_own_type,
    named,
    numbered,
    spark_schema,
    unpacked,
    whole,
)
from skyband.spark.control.steps import is_dated, steered
from skyband.spark.control.terms import Terms, make_terms
from skyband.spark.flat import IDENTITIES, bound_names, result_schema, time_bound
from skyband.spark.kept import answered_by_state, watermarked
from skyband.spark.logged import Logged, is_logged
from skyband.spark.observed import MISSED, OBSERVED, PRECISION, WITNESS, observed_scale, observed_states
from skyband.spark.packed import packed_schema, packing, packs_itself
from skyband.spark.plan import TIE, Plan, Request, make_request
from skyband.spark.reduce import TRAVELLING, reduced
from skyband.spark.scores import check_name, condition_column, same_to_spark, score_column
from skyband.spark.sessions import check_workers, is_remote_session
from skyband.spark.stateful import TALLIES, TO, answer_batch, answer_micro_batch, bound_columns, put_together
from skyband.spark.stream import Stream
from skyband.spark.tallies import BY_QUERY, OLDEST, RESULTS
from skyband.spark.ties import is_hashed_here
from skyband.spark.worker import settling
from skyband.window import Duration

STORE = "spark.sql.streaming.stateStore.providerClass"
_DELAY = "spark.watermarkDelayMs"  # what Spark notes at a column with a watermark
MOST_UNASKED = 16  # states of one group that are made without being asked for
_NOT_HASHED = (MapType, VariantType, GeographyType, GeometryType)  # which Spark refuses to hash, or fails at


def monitor(
    df: DataFrame,
    queries: Iterable[Query] | Query,
    *,
    time: str | None = None,
    lateness: Duration = 0,
    key: str | None = None,
    deletes: str | None = None,
    group_by: Iterable[str] = (),
    arrival: str | None = None,
    shards: int | None = None,
    control: DataFrame | None = None,
) -> DataFrame:
    """Answer standing queries over `df`, per group: `query`, group columns, `window_start`, `window_end`, `event`,
    `rank`, `score`, `row`. Where `TopKPairs` are asked there is `pair` too, a struct of `a` and `b`, and where `TopKAcross`
    are, `object`, a struct of the key; of the three, all are null but the one that a result row is about.

    A streaming DataFrame gives a streaming one (append mode; windows come when the watermark reaches their end), a
    batch DataFrame all windows of its rows.

    time      the time column, a timestamp or an integer; needed for time windows
    lateness  how far behind the greatest time a row may come; a row whose slide has closed is late, counted, dropped
    group_by  columns; every combination of their values has windows of its own
    arrival   a column (an offset, a sequence number) by which rows of equal score and time are ranked, the larger first,
              and in whose order count windows count the rows of each micro-batch; its values must tell the rows of a group
              apart. Without it rows of equal score and time rank by a hash of their content, and count windows count rows
              in the order of time, late ones left out.
    key       the column by which rows are deleted; needs `deletes`, a boolean column: where it is true, the row is none but
              deletes the live row with its key, as `Monitor.delete` does, in the order of time and arrival; queries are then
              all over time windows or all over count windows
    shards    over how many states of a group the work on more than 64 distinct scores, on pairs and across streams is
              spread; unless told as many as there are shuffle partitions, 16 at most, and with `group_by` one
    control   commands that add and cancel queries while the stream runs: a DataFrame with a text column `command`, and perhaps
              the columns named by `time` and `arrival`. Each is acknowledged by a row of its own, with a column `message`;
              queries are then shared out over `shards` by name, one unless told
    """
    if not isinstance(df, DataFrame):
        raise QueryError(
            f"monitor() answers queries over a DataFrame of Spark, got {type(df).__module__}.{type(df).__qualname__}; make "
            "one, as by spark.createDataFrame(...), or push to a skyband.Monitor"
        )
    check_workers(df.sparkSession)
    if isinstance(group_by, Column) or not isinstance(group_by, Iterable):
        raise QueryError(f"group_by must be names of columns, as in ['venue'], got {group_by!r}")
    groups = (group_by,) if isinstance(group_by, str) else tuple(group_by)
    stream = Stream(time, lateness, groups, arrival, key, deletes, shards)
    if control is not None:
        terms = terms_for(df, control, queries, stream)
        return _told_apart(steered(df, control, terms, _tie(df, arrival), arrival, f"{OBSERVED}{terms.digest}"), groups)
    request = request_for(df, queries, stream)
    prepared = df.select(*_columns(df, request, arrival))
    plan = request.plan
    parts = _reduced(prepared, plan)
    answered = _stream(parts, plan) if df.isStreaming else _batch(parts, plan)
    return _told_apart(_results(answered, df, plan), groups)


def request_for(df: DataFrame, queries: Iterable[Query] | Query, stream: Stream) -> Request:
    """What `monitor` asks for, checked against the columns of `df`."""
    spread = _spread(df, stream.group_by) if stream.shards is None else stream.shards
    ways = (stream.time, stream.lateness, stream.group_by, stream.arrival)
    return make_request(_arrow_schema(df), queries, *ways, key=stream.key, deletes=stream.deletes, spread=spread)


def terms_for(df: DataFrame, control: DataFrame, queries: Iterable[Query] | Query, stream: Stream) -> Terms:
    """The same while queries come and go by `control`."""
    dated = is_dated(df, control, stream.time, stream.arrival)
    return make_terms(_arrow_schema(df), queries, stream, dated=dated)


def _spread(df: DataFrame, groups: tuple[str, ...]) -> int:
    """As many states as partitions. Groups spread the work by themselves."""
    partitions = int(df.sparkSession.conf.get("spark.sql.shuffle.partitions"))
    return 1 if groups else max(1, min(partitions, MOST_UNASKED))


def _arrow_schema(df: DataFrame) -> pa.Schema:
    """Timestamps are in UTC, whatever zone the session shows them in: states outlive it."""
    for name, same in same_to_spark(df.columns).items():
        check_name(f"the result has the column {name!r} of each row", same)
    for field in df.schema.fields:
        try:
            to_arrow_schema(StructType([field]), timezone="UTC", error_on_duplicated_field_names_in_struct=True)
        except Exception as problem:
            raise SchemaError(
                f"the column {field.name!r} is {field.dataType.simpleString()}, which Spark cannot hand out as Arrow; "
                "drop it or cast it"
            ) from problem
    if df.isStreaming:
        _check_stream(df)
    return nullable(to_arrow_schema(df.schema, timezone="UTC"))


def _check_stream(df: DataFrame) -> None:
    """SchemaError for what Spark refuses only once the stream runs."""
    marked = next((f" on {field.name!r}" for field in df.schema.fields if _DELAY in field.metadata), None)
    if marked is None and not is_remote_session(df.sparkSession) and _is_watermarked(df._jdf.queryExecution().analyzed()):
        marked = ", on a column that it has left behind,"
    if marked is not None:
        raise SchemaError(
            f"the input has a watermark{marked} already, and Spark takes no second one before a state; take withWatermark out: "
            "monitor makes its own of `time` and `lateness`. Where another step needs it, to drop duplicates for example, let "
            "that step be a stream of its own"
        )
    zone = df.sparkSession.conf.get("spark.sql.session.timeZone")
    try:
        pa.scalar(0, pa.timestamp("us", zone)).as_py()
    except Exception:
        raise SchemaError(
            f"the session's time zone is {zone!r}, which the Python workers of a stream do not know; set "
            "spark.sql.session.timeZone to UTC, a place such as 'Asia/Shanghai' or an offset such as '+08:00'"
        ) from None


def _is_watermarked(plan: Any) -> bool:
    """Whether some step of Spark's plan makes a watermark."""
    steps = plan.children()
    return plan.nodeName() == "EventTimeWatermark" or any(_is_watermarked(steps.apply(at)) for at in range(steps.size()))


# -- before the reduction ----------------------------------------------------------------------------------------


def _columns(df: DataFrame, request: Request, arrival: str | None) -> list[Column]:
    """The input under numbered names, the scores, which are unknown for another reason than `where`, and the tie, unless it is
    the column of arrival or found by the reduction."""
    columns = numbered(df)
    for i, (score, where) in enumerate(request.scores):
        value = score_column(score, df.schema)
        if request.plan.bare[i] is not None:
            continue
        if where is not None:
            columns.append(F.isnan(value).alias(f"m{i}"))
            value = F.when(condition_column(where, df.schema), value).otherwise(F.lit(float("nan")))
        columns.append(value.alias(f"s{i}"))
    if arrival is not None or is_hashed_here(field.dataType for field in df.schema.fields):
        return columns
    return [*columns, _tie(df, arrival).alias(TIE)]


def _tie(df: DataFrame, arrival: str | None) -> Column:
    if arrival is None:
        for field in df.schema.fields:
            if _has_type(field.dataType, _NOT_HASHED):
                raise SchemaError(
                    f"the column {field.name!r} is a {field.dataType.simpleString()}, which Spark cannot hash: rows of equal "
                    "score and time could not be told apart; name a column that orders them: arrival='...'"
                )
        return F.xxhash64(*map(named, df.columns))
    return F.coalesce(whole(df, arrival), F.lit(-(1 << 63)))


def _reduced(df: DataFrame, plan: Plan) -> DataFrame:
    schema = pa.schema([*plan.group_types.items(), *TRAVELLING.items()])
    carried = Carried(plan, df.sparkSession)

    def step(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return settling("reduce", reduced(carried.open(), batches))

    return df.mapInArrow(step, spark_schema(schema))


# -- the windows -------------------------------------------------------------------------------------------------


def _stream(parts: DataFrame, plan: Plan) -> DataFrame:
    """One state per group; its answers and tallies in one row, the tallies observed on the way."""
    words = [StructField(TO, StringType()), StructField("results", BinaryType()), StructField("told", BinaryType())]
    sums = [StructField(name, LongType()) for name in TALLIES] + [
        StructField(name, DoubleType()) for name in bound_columns(plan)
    ]
    output = StructType([*words, *sums])
    answered = _with_state(parts, plan, output)
    return answered.observe(f"{OBSERVED}{plan.digest}", *_observed(plan))


def _with_state(parts: DataFrame, plan: Plan, output: StructType) -> DataFrame:
    """States as logs where they are large and the store can hold more than one value for each, as snapshots elsewhere."""
    carried = Carried(plan, parts.sparkSession)
    if is_logged(plan) and "RocksDB" in (parts.sparkSession.conf.get(STORE) or ""):
        groups = watermarked(parts, plan).groupBy(*plan.group_types)
        return groups.transformWithStateInPandas(Logged(carried), output, "append", "none")

    def step(key: Any, frames: Any, state: Any) -> Any:
        return settling("answer", answer_micro_batch(carried.open(), frames, state, key))

    return answered_by_state(parts, plan.group_types, plan, step, output)


def _observed(plan: Plan) -> list[Column]:
    """Figures of the groups that the micro-batch answered, named for people; `skyband.spark.progress` reads them."""
    figures = {"rows": "rows", "null times": "null_times", "candidates": "candidates", "state bytes": "bytes"}
    if plan.key is not None:
        figures["refused"] = "refused"
    sums = [F.coalesce(F.sum(column), F.lit(0)).alias(name) for name, column in figures.items()]
    across = [query.name for query in plan.across]
    worst = [  # of all groups
        F.min(column).alias(f"{PRECISION}{name}") if name in across else F.max(column).alias(f"{MISSED}{name}")
        for name, column in zip(plan.inexact, bound_columns(plan), strict=True)
    ]
    witness = F.coalesce(F.sum("witness"), F.lit(0)) if plan.groups else F.lit(0)  # one state says more than 0, if any does
    states = [*observed_states("bytes", alone=not (plan.groups or plan.shards)), witness.alias(WITNESS)]
    return [*sums, *states, *observed_scale(plan), *worst, F.collect_list("told").alias(BY_QUERY)]


def _observed_together(plan: Plan) -> list[Column]:
    """Result rows of queries whose answers are put together from several states, which cannot tell."""
    end, found = time_bound(plan), []
    for name in plan.merged:
        own = F.col("query") == F.lit(name)
        found.append(F.count(F.when(own, F.lit(1))).alias(f"{RESULTS}{name}"))
        if end is not None:
            found.append(F.min(F.when(own, F.unix_micros(F.col(end).cast("timestamp")))).alias(f"{OLDEST}{name}"))
    return found


def _batch(parts: DataFrame, plan: Plan) -> DataFrame:
    """All windows of all rows at once; nothing is late."""

    def step(key: Any, table: pa.Table) -> pa.Table:
        return answer_batch(plan, table, tuple(one.as_py() for one in key))

    output = StructType([StructField(TO, StringType()), StructField("results", BinaryType())])
    return grouped_in_arrow(parts, plan.group_types, step, output)


# -- after the windows -------------------------------------------------------------------------------------------


def _results(answered: DataFrame, df: DataFrame, plan: Plan) -> DataFrame:
    """Result rows out of their bytes, as users see them."""
    if packs_itself(df, plan):
        return answered.mapInArrow(packing(df, plan), packed_schema(df, plan))
    if not plan.merged:
        return answered.mapInArrow(unpacked, spark_schema(result_schema(plan))).select(*_packed(df, plan))
    whole = _put_together(answered, plan)
    if df.isStreaming:
        whole = whole.observe(f"{OBSERVED}{plan.digest}-together", *_observed_together(plan))
    return whole.select(*_packed(df, plan))


def _put_together(answered: DataFrame, plan: Plan) -> DataFrame:
    """Flat result rows; parts of answers meet by group and query."""

    def step(key: Any, table: pa.Table) -> pa.Table:
        return put_together(plan, table)

    found = answered.select(TO, "results").where(F.col("results").isNotNull())
    return grouped_in_arrow(found, [TO], step, spark_schema(result_schema(plan)))


def _told_apart(results: DataFrame, groups: tuple[str, ...]) -> DataFrame:
    """The results; SchemaError when a group column is called as another of theirs, so that no sink could hold both."""
    same = same_to_spark(results.columns)
    for name in groups:
        if groups.count(name) > 1:
            raise SchemaError(f"group_by names {name!r} twice; name it once")
        if len(same[name]) > 1:
            other = next((one for one in same[name] if one != name), name)
            raise SchemaError(f"group_by names {name!r}, and results have a column {other!r} of their own; rename the input's")
    return results


def _packed(df: DataFrame, plan: Plan) -> list[Column]:
    """The result's columns: a group's values are those of the row itself, or stand beside pairs and objects."""
    row = in_own_names(df, "c")
    groups = [F.col(f"c{i}") for i in plan.groups]
    about: list[Column] = []
    if plan.identities:
        of_row = F.coalesce(F.col("about"), F.lit(0)) == 0
        row = F.when(of_row, row)
        groups = [F.when(of_row, own).otherwise(F.col(f"g{at}")) for at, own in enumerate(groups)]
        made = {"pair": _pair(df), "object": _object(df, plan)}
        about = [F.when(F.col("about") == IDENTITIES.index(one), made[one]).alias(one) for one in plan.identities]
    by = [alike(df, df.columns[i], group).alias(df.columns[i]) for i, group in zip(plan.groups, groups, strict=True)]
    bounds = [F.col(name) for name in bound_names(plan)]
    return [F.col("query"), *by, *bounds, F.col("event"), F.col("rank"), F.col("score"), row.alias("row"), *about]


def _pair(df: DataFrame) -> Column:
    """Both rows may be null, as far as Spark knows: where they may not, `toArrow` fails on results about other things."""
    about_pairs = F.col("about") == IDENTITIES.index("pair")
    return F.struct(*(F.when(about_pairs, in_own_names(df, side)).alias(side) for side in ("a", "b")))


def _object(df: DataFrame, plan: Plan) -> Column:
    keys = {df.columns[i]: F.col(f"k{i}") for i in plan.key_columns}
    return F.struct(*(in_own_type(df, name, key).alias(name) for name, key in keys.items()))
