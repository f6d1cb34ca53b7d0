"""The steps as Spark runs them: rows and commands meet in one stateful step, by shard.

df ──────► tie, bucket (Catalyst) ─► packets ─┐
                                              ├─ union ─► by shard: shard.py ─► result rows ─► `row` packed (Catalyst)
control ─► command, time, order ──► packets ──┘
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from skyband.errors import QueryError, SchemaError
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
from skyband.spark.control.answer import answer_schema, bound_names
from skyband.spark.control.shard import Shard
from skyband.spark.control.terms import IDENTITIES, OBJECT, PAIR, ROW, Terms
from skyband.spark.control.travel import PACKET, commands_of, packed_commands, packed_rows, rows_of
from skyband.spark.kept import Kept, answered_by_state, shown_watermark, spark_watermark
from skyband.spark.observed import BOUNDS, STANDING, observed_scale, observed_states
from skyband.spark.stateful import MOST_PACKETS, sliced
from skyband.spark.tallies import BY_QUERY, Emitted, tell
from skyband.spark.worker import settling

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.state import GroupState

COMMAND = "command"
FIGURES = ("rows", "null times", "candidates", "state bytes", "commands", "refused commands")
"""What a micro-batch reports, added up over the shards it called."""

_remembered: Kept[Shard] = Kept()


def is_dated(df: DataFrame, control: DataFrame, time: str | None, arrival: str | None) -> bool:
    """Whether commands carry a time; SchemaError or QueryError when the frame of commands cannot be used."""
    if not isinstance(control, DataFrame):
        raise QueryError(f"control must be a DataFrame with a column 'command', got {control!r}")
    if control.isStreaming != df.isStreaming:
        one, other = ("streams", "does not") if df.isStreaming else ("does not stream", "does")
        raise QueryError(f"the input {one} and control {other}; read both the same way")
    if COMMAND not in control.columns or control.schema[COMMAND].dataType != StringType():
        raise SchemaError(f"control needs a text column {COMMAND!r}, one command in JSON a row; it has {control.columns}")
    known = [COMMAND, *(name for name in (time, arrival) if name is not None)]
    if others := [name for name in control.columns if name not in known]:
        raise SchemaError(
            f"control has the column {others[0]!r}, which is of no use there; select {', '.join(map(repr, known))}: the text, "
            "the time from which a command holds, and the order of commands of one time"
        )
    for name in known[1:]:
        if name in control.columns and control.schema[name].dataType != df.schema[name].dataType:
            raise SchemaError(
                f"the column {name!r} is {control.schema[name].dataType.simpleString()} in control and "
                f"{df.schema[name].dataType.simpleString()} in the input; cast it"
            )
    return time is not None and time in control.columns


def steered(df: DataFrame, control: DataFrame, terms: Terms, tie: Column, arrival: str | None, observed: str) -> DataFrame:
    """Result rows and acknowledgements of a stream whose queries come and go."""
    packets = _packets(df, terms, tie).unionByName(_commands(control, terms, arrival))
    flat = _stream(packets, terms, observed) if df.isStreaming else _batch(packets, terms)
    return flat.select(*_packed(df, terms))


# -- before the shards -------------------------------------------------------------------------------------------


def _packets(df: DataFrame, terms: Terms, tie: Column) -> DataFrame:
    bucket = F.pmod(F.xxhash64(*(alike(df, name) for name in terms.groups)), F.lit(terms.buckets)) if terms.groups else F.lit(0)
    prepared = df.select(*numbered(df), tie.alias("tie"), bucket.cast("int").alias("bucket"))

    def step(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return settling("pack", packed_rows(terms, batches))

    return prepared.mapInArrow(step, spark_schema(PACKET))


def _commands(control: DataFrame, terms: Terms, arrival: str | None) -> DataFrame:
    time = whole(control, terms.time) if terms.dated and terms.time is not None else F.lit(None)
    order = whole(control, arrival) if arrival is not None and arrival in control.columns else F.lit(None)
    prepared = control.select(named(COMMAND), time.cast("long").alias("time"), order.cast("long").alias("order"))

    def step(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return packed_commands(terms, batches)

    return prepared.mapInArrow(step, spark_schema(PACKET))


# -- the shards --------------------------------------------------------------------------------------------------


def _stream(packets: DataFrame, terms: Terms, observed: str) -> DataFrame:
    def step(key: Any, frames: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        return settling("control", answer_micro_batch(terms, int(key[0]), frames, state))

    words = [StructField("results", BinaryType()), StructField("told", BinaryType())]
    words += [StructField(name, StringType()) for name in (STANDING, BOUNDS)]
    output = StructType([*words, *(StructField(name, LongType()) for name in FIGURES)])
    answered = answered_by_state(packets, ["shard"], terms, step, output)
    sums = [F.coalesce(F.sum(named(name)), F.lit(0)).alias(name) for name in FIGURES]
    sums += [*observed_states("state bytes"), *observed_scale(terms)]
    sums += [F.collect_list("told").alias(BY_QUERY), *(F.collect_list(name).alias(name) for name in (STANDING, BOUNDS))]
    return answered.observe(observed, *sums).mapInArrow(unpacked, spark_schema(answer_schema(terms)))


def answer_micro_batch(terms: Terms, number: int, frames: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """Take a shard's packets of a micro-batch, or its timeout; rows of results, the first with figures."""
    import pandas as pd

    shard = _remembered.recalled(terms, state, lambda snapshot: _shard(terms, number, snapshot))
    watermark = spark_watermark(terms, state)
    results = shard.advance(watermark)
    tables, commands, missing = [], [], 0
    for frame in () if state.hasTimedOut else frames:
        columns = (frame[name] for name in ("rows", "commands", "latest", "null_times"))
        for rows, said, latest, nulls in zip(*columns, strict=True):
            missing += int(nulls)
            if rows is not None:
                tables.append(rows_of(rows))
                watermark = max(watermark, shown_watermark(terms, int(latest)))
            if said is not None:
                commands += commands_of(said)
    results += shard.hear(commands)
    if tables:
        results += shard.take(pa.concat_tables(tables))
    results += shard.advance(watermark)
    counted = missing + (sum(map(len, tables)) if number < terms.buckets else 0)
    told = _told(terms, shard, results)  # before the state is written, which has no counts that were told
    size = _remembered.written(terms, shard, state, witness=number == 0)
    figures = {"rows": counted, "null times": missing, "state bytes": size, **shard.figures()}
    line: list[Any] = [told, shard.standing_count(), shard.bounds(), *(figures[name] for name in FIGURES)]
    nothing: list[Any] = [None, None, None] + [0] * len(FIGURES)
    lines = ([piece, *(line if at == 0 else nothing)] for at, piece in enumerate(sliced(results)))
    while some := list(islice(lines, MOST_PACKETS)):
        yield pd.DataFrame(some, columns=["results", "told", STANDING, BOUNDS, *FIGURES])


def _told(terms: Terms, shard: Shard, results: list[pa.Table]) -> bytes:
    """What there is to say of each query that the shard answers."""
    end = bound_names(terms)[-1] if terms.timed and pa.types.is_timestamp(terms.time_type) else None
    emitted = Emitted(end)
    for answer in results:
        emitted.add(answer.filter(pc.is_valid(answer["about"])))  # acknowledgements are about nothing
    return tell(shard.counted(), emitted)


def _batch(packets: DataFrame, terms: Terms) -> DataFrame:
    """All windows of all rows at once, every command at its time; nothing is late."""
    schema = answer_schema(terms)

    def step(key: Any, packets: pa.Table) -> pa.Table:
        shard = Shard(terms, key[0].as_py())
        tables = [rows_of(rows.as_buffer()) for rows in packets["rows"] if rows.is_valid]
        said = [one for commands in packets["commands"] if commands.is_valid for one in commands_of(commands.as_py())]
        results = shard.hear(said)
        if tables:
            results += shard.take(pa.concat_tables(tables))
        results += shard.finish()
        return pa.concat_tables(results) if results else schema.empty_table()

    return grouped_in_arrow(packets, ["shard"], step, spark_schema(answer_schema(terms)))


def _shard(terms: Terms, number: int, snapshot: bytes | None) -> Shard:
    """A shard as a snapshot has it, or new; StateError for that of another stream."""
    return Shard(terms, number) if snapshot is None else Shard.restore(terms, snapshot)


# -- after the shards --------------------------------------------------------------------------------------------


def _packed(df: DataFrame, terms: Terms) -> list[Column]:
    """The result's columns: of `row`, `pair` and `object` all are null but the one that a result row is about; in an
    acknowledgement all are."""
    groups = [alike(df, name, F.col(f"g{i}")).alias(name) for i, name in enumerate(terms.groups)]
    bounds = [F.col(name) for name in bound_names(terms)]
    made = {ROW: in_own_names(df, "c")}
    if terms.pairs:
        made[PAIR] = F.struct(in_own_names(df, "a").alias("a"), in_own_names(df, "b").alias("b"))
    if terms.keys:
        keys = {key: F.col(f"k{df.columns.index(key)}") for key in terms.keys}
        made[OBJECT] = F.struct(*(in_own_type(df, name, key).alias(name) for name, key in keys.items()))
    about = [F.when(F.col("about") == IDENTITIES.index(one), column).alias(one) for one, column in made.items()]
    said = [F.col(name) for name in ("event", "rank", "score")]
    return [F.col("query"), *groups, *bounds, *said, *about, F.col("message")]
