"""Columns as Spark hands them out, in the types that workers were told: its settings say which it hands out."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import pyarrow as pa

from skyband.numbering import plain_keys, plain_type

Rows = TypeVar("Rows", pa.RecordBatch, pa.Table)


def nullable(schema: pa.Schema) -> pa.Schema:
    """The schema without promises that a column holds no null: rows travel, wait and rank the same, and a table of none, or of
    rows without some columns, could not keep them."""
    return pa.schema([field.with_nullable(True) for field in schema])


def alike(values: pa.Array) -> pa.Array:
    """Values of a group column so that equal ones have equal bits, as Spark's own grouping has them: one zero, one NaN."""
    if not pa.types.is_floating(values.type):
        return values
    number = values.fill_null(0).to_numpy(zero_copy_only=False) + values.type.to_pandas_dtype()(0)
    number[np.isnan(number)] = np.nan
    return pa.array(number, values.type, mask=values.is_null().to_numpy(zero_copy_only=False))


def key_type(kind: pa.DataType) -> pa.DataType:
    """What values of a group column are as part of a key. Times and numbers with a point are whole numbers: as themselves they
    would be lost on the way, for pandas has no time after 2262 and takes NaN for null, and Python no year after 9999 and one
    hour twice where clocks are set back."""
    if pa.types.is_floating(kind):
        return pa.int64() if pa.types.is_float64(kind) else pa.int32()
    return plain_type(kind)


def as_keys(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Values of a group column as `key_type` has them: those of one group are equal, others are not."""
    kind = values.type
    plain = plain_keys(pa.chunked_array([values]) if isinstance(values, pa.Array) else values)
    return alike(plain).view(key_type(kind)) if pa.types.is_floating(kind) else plain


def conformed(rows: Rows, schema: pa.Schema) -> Rows:
    """Rows whose columns of these names have these types, such as texts with short offsets; nothing is copied where they do."""
    for field in schema:
        at = rows.schema.get_field_index(field.name)
        if rows.schema.field(at).type != field.type:
            rows = rows.set_column(at, field.name, rows.column(at).cast(field.type))
    return rows
