"""Columns of a DataFrame for Catalyst, and result tables on their way through it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
from pyspark.sql.types import (
    DataType,
    DoubleType,
    FloatType,
    StructField,
    StructType,
    TimestampType,
    UserDefinedType,
    _has_type,
)

from skyband.spark.arriving import conformed
from skyband.state import table_from_bytes

_LARGE = "spark.sql.execution.arrow.useLargeVarTypes"
_TOGETHER = 1 << 8  # packets whose rows go on as one batch


def named(name: str) -> Column:
    """The column of just this name, whatever it contains."""
    return F.col(f"`{name.replace('`', '``')}`")


def numbered(df: DataFrame) -> list[Column]:
    """The input's columns as c0, c1, …: names that cannot meet ours."""
    return [named(name).alias(f"c{i}") for i, name in enumerate(df.columns)]


def in_own_names(df: DataFrame, side: str) -> Column:
    """A struct of the input's columns under their own names, from columns that were numbered after `side`."""
    return F.struct(*(in_own_type(df, name, F.col(f"{side}{i}")).alias(name) for i, name in enumerate(df.columns)))


def in_own_type(df: DataFrame, name: str, column: Column) -> Column:
    """`column`, which holds values of a column of the input that were handed out as Arrow, in that one's type: Arrow knows no
    collations, and of intervals only days to seconds. What a user-defined type is stored as, nothing makes one of it again.

    Behind a state Spark takes any part of a value for one that may be null, and plans no cast to a type that says otherwise.
    """
    kind = df.schema[name].dataType
    return column if _has_type(kind, UserDefinedType) or goes_as_it_is(kind) else column.cast(kind._as_nullable())


def goes_as_it_is(kind: DataType) -> bool:
    """Whether values that are handed out as Arrow come back in the same type."""
    if _has_type(kind, UserDefinedType):
        return False
    came = spark_schema(to_arrow_schema(StructType([StructField("x", kind)]), timezone="UTC"))["x"].dataType
    return bool(came.simpleString() == kind.simpleString())


def alike(df: DataFrame, name: str, column: Column | None = None) -> Column:
    """A group column, or `column` that holds its values, so that equal ones have equal bits: one zero, one NaN."""
    kind = df.schema[name].dataType
    values = named(name) if column is None else in_own_type(df, name, column)
    if not isinstance(kind, DoubleType | FloatType):
        return values
    number = F.when(F.isnan(values), F.lit(float("nan"))).when(values == 0, F.lit(0.0)).otherwise(values)
    return number if column is None else number.cast(kind)  # rows are dealt out by hashes of doubles, also those of floats


def whole(df: DataFrame, name: str) -> Column:
    """A time or a number as a whole number, as Arrow counts it: timestamps in microseconds."""
    kind = df.schema[name].dataType
    if isinstance(kind, TimestampType):
        return F.unix_micros(named(name))
    if kind.typeName() == "timestamp_ntz":
        return F.unix_micros(F.to_utc_timestamp(named(name), "UTC"))
    return named(name).cast("long")


def spark_schema(schema: pa.Schema) -> StructType:
    """A schema of Arrow as Spark has it."""
    return StructType([StructField(field.name, from_arrow_type(field.type)) for field in schema])


def grouped_in_arrow(
    df: DataFrame, by: Iterable[str], step: Callable[[Any, pa.Table], pa.Table], output: StructType
) -> DataFrame:
    """`step` for the rows of each group. Spark looks at the types of what it gives, by its settings."""
    large = df.sparkSession.conf.get(_LARGE, "false") == "true"
    wanted = to_arrow_schema(output, timezone="UTC", prefers_large_types=large)

    def fitting(key: Any, rows: pa.Table) -> pa.Table:
        return conformed(step(key, rows), wanted)

    return df.groupBy(*by).applyInArrow(fitting, output)


def unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Result rows out of the bytes of the column `results`, small packets together."""
    for batch in batches:
        packets = [results.as_buffer() for results in batch.column("results") if results.is_valid]
        for at in range(0, len(packets), _TOGETHER):
            tables = map(table_from_bytes, packets[at : at + _TOGETHER])
            yield from pa.concat_tables(tables).combine_chunks().to_batches()
