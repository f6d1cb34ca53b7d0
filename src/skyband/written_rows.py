"""Rows as named arrays, for a state: numbers as they are, texts as their lengths and their bytes, one behind the other.

Lengths compress to little, offsets, which grow without end, do not. Columns of other types stand in one Arrow IPC stream.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from skyband.layout import Layout, fields
from skyband.state import table_from_bytes, table_to_bytes

_OTHERS = "others"


def written(rows: pa.Table) -> dict[str, np.ndarray]:
    """The arrays that `read` makes the rows of; those of a column are named by its number."""
    arrays: dict[str, np.ndarray] = {}
    others = []
    for at, column in enumerate(rows.columns):
        kind = _stored(column.type)
        if not (_is_number(kind) or _is_text(kind)):
            others.append(at)
            continue
        array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
        array = array.storage if isinstance(array, pa.ExtensionArray) else array
        _, values, *texts = array.buffers()
        held = slice(array.offset, array.offset + len(array))
        if _is_number(kind):
            arrays[f"{at}.value"] = _numbers(values, _word(kind))[held]
        else:
            ends = _numbers(values, _offsets(kind))[held.start : held.stop + 1]
            text = _numbers(texts[0], np.dtype(np.uint8))
            arrays[f"{at}.length"] = np.diff(ends)
            arrays[f"{at}.text"] = text[ends[0] : ends[-1]] if len(ends) else text
        if array.null_count:
            arrays[f"{at}.valid"] = array.is_valid().to_numpy(zero_copy_only=False).view(np.uint8)
    if others:
        arrays[_OTHERS] = np.frombuffer(table_to_bytes(rows.select(others)), np.uint8)
    return arrays


def layout(schema: pa.Schema, nullable: set[int]) -> Layout:
    """What `written` gives of rows, of which those columns have nulls. The extent `stored` is how many rows there are."""
    texts: dict[str, str] = {}
    for at, kind in enumerate(map(_stored, schema.types)):
        if _is_number(kind):
            texts[f"{at}.value"] = f"{_word(kind).name} stored"
        elif _is_text(kind):
            texts |= {f"{at}.length": f"{_offsets(kind).name} stored", f"{at}.text": f"uint8 text-{at}"}
        else:
            texts[_OTHERS] = "uint8 others"
            continue
        if at in nullable:
            texts[f"{at}.valid"] = "uint8 stored"
    return fields(texts)


def with_nulls(arrays: Mapping[str, np.ndarray]) -> list[int]:
    """Which columns have nulls, of what `written` gave."""
    return [int(name.removesuffix(".valid")) for name in arrays if name.endswith(".valid")]


def read(schema: pa.Schema, arrays: Mapping[str, np.ndarray], count: int) -> pa.Table:
    """The rows that were written, of which there are so many; ValueError where arrays that are as `layout` says are none."""
    others = table_from_bytes(arrays[_OTHERS].tobytes()) if _OTHERS in arrays else None
    if others is not None and len(others) != count:
        raise ValueError(f"{len(others)} rows are none of {count}")
    columns = []
    for at, field in enumerate(schema):
        valid = arrays.get(f"{at}.valid")
        buffers = [None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))]
        if f"{at}.value" in arrays:
            buffers.append(pa.py_buffer(arrays[f"{at}.value"]))
        elif f"{at}.length" in arrays:
            length, text = arrays[f"{at}.length"], arrays[f"{at}.text"]
            ends = np.concatenate([np.zeros(1, length.dtype), np.cumsum(length, dtype=length.dtype)])
            if (length < 0).any() or int(length.sum(dtype=np.int64)) != len(text):
                raise ValueError(f"texts of {len(text)} bytes have other lengths")
            buffers += [pa.py_buffer(ends), pa.py_buffer(text)]
        else:
            assert others is not None
            columns.append(others.column(field.name))
            continue
        array = pa.Array.from_buffers(_stored(field.type), count, buffers)
        known = isinstance(field.type, pa.BaseExtensionType)
        columns.append(pa.ExtensionArray.from_storage(field.type, array) if known else array)
    return pa.Table.from_arrays(columns, schema=schema)


def _stored(kind: pa.DataType) -> pa.DataType:
    """What values are stored as: those of an extension type are read where nobody knows it."""
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _is_number(kind: pa.DataType) -> bool:
    """Is each value one or several whole bytes?"""
    return pa.types.is_primitive(kind) and not pa.types.is_boolean(kind) and kind.bit_width <= 64


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    return types.is_string(kind) or types.is_binary(kind) or types.is_large_string(kind) or types.is_large_binary(kind)


def _word(kind: pa.DataType) -> np.dtype:
    """What values of a number's type are written as."""
    return np.dtype(np.float64 if pa.types.is_float64(kind) else f"u{kind.bit_width // 8}")


def _offsets(kind: pa.DataType) -> np.dtype:
    return np.dtype(np.int64 if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind) else np.int32)


def _numbers(buffer: pa.Buffer | None, dtype: np.dtype) -> np.ndarray:
    return np.zeros(0, dtype) if buffer is None else np.frombuffer(buffer, dtype, buffer.size // dtype.itemsize)
