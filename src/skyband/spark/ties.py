"""What tells rows of equal score and time apart where no column gives their order: a hash of their content.

It is the number that Spark's `xxhash64` gives for all columns. Only rows that can rank need it, so it is computed here, after
they are found; columns of other types than these are left to Spark, which then hashes every row.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

Array = np.ndarray
SEED = 42
_PLAIN = (BooleanType, ByteType, ShortType, IntegerType, LongType, FloatType, DoubleType, DateType, TimestampType)
_SHORT_DECIMAL = 18  # digits that Spark keeps in eight bytes


def is_hashed_here(kinds: Iterable[DataType]) -> bool:
    """Whether all columns are of types whose hash is known here."""
    return all(
        isinstance(kind, (*_PLAIN, TimestampNTZType, BinaryType))
        or kind == StringType()  # one with a collation is another type, and hashed by its sort key
        or (isinstance(kind, DecimalType) and kind.precision <= _SHORT_DECIMAL)
        for kind in kinds
    )


def content_hashes(columns: Iterable[pa.Array | pa.ChunkedArray], rows: int) -> Array:
    """`xxhash64` of every row, as int64; O(bytes)."""
    found = np.full(rows, SEED, np.uint64)
    for column in columns:
        array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if isinstance(array, pa.ChunkedArray):  # of no rows
            continue
        _go_on(array, found)
    return found.view(np.int64)


def _go_on(array: pa.Array, found: Array) -> None:
    """Take one more column into the hashes."""
    from skyband.kernels.xxhash import hash_bytes, hash_eights, hash_fours

    valid = array.is_valid().to_numpy(zero_copy_only=False)
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
        _, begins, content = array.buffers()
        ends = np.frombuffer(begins, np.int64 if wide else np.int32)[array.offset : array.offset + len(array) + 1]
        held = np.zeros(0, np.uint8) if content is None else np.frombuffer(content, np.uint8)
        hash_bytes(held, ends.astype(np.int64), valid, found)
    elif pa.types.is_decimal(kind):
        low = np.frombuffer(array.buffers()[1], np.uint64)[::2]  # of two's complement, the lower half is the number
        hash_eights(low[array.offset : array.offset + len(array)].copy(), valid, found)
    elif pa.types.is_float64(kind) or pa.types.is_float32(kind):
        values = array.fill_null(0).to_numpy() + 0.0  # one zero
        values[np.isnan(values)] = np.nan  # and one NaN
        if values.dtype == np.float64:
            hash_eights(values.view(np.uint64), valid, found)
        else:
            hash_fours(values.view(np.uint32).astype(np.uint64), valid, found)
    elif kind.bit_width == 64:
        hash_eights(array.cast(pa.int64()).fill_null(0).to_numpy().view(np.uint64), valid, found)
    else:
        short = array.cast(pa.int32()).fill_null(0).to_numpy()
        hash_fours(short.astype(np.int64).view(np.uint64), valid, found)
