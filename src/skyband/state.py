"""Named arrays to bytes and back: the one format of every snapshot and state file.

Layout: the mark `SKYBAND\\0`, a format number, the SHA-256 of the rest, then an Arrow IPC stream whose schema
metadata holds a JSON header and whose columns are the arrays, one list value each. Never pickle: reading a
state file runs no code.

Numbers of eight bytes are written in planes: the first byte of each, then the second of each, and so on. Scores, times and
arrival numbers that lie near each other share most bytes, which compress to nothing then; as they stand they hardly compress.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from skyband.errors import StateError
from skyband.layout import reading

_MARK = b"SKYBAND\0"
FORMAT = 7
"""Raised with every change of what states hold: of a field, its type or its extents, in any structure or lane."""

_PREFIX = struct.Struct("<8sI32s")
_WORD = 8  # bytes of a number that is written in planes


def pack(kind: str, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray], *, compress: bool = True) -> bytes:
    """Serialize a JSON-able header and named arrays of any shape; `compress` unless they are compressed already."""
    shapes = {name: list(array.shape) for name, array in arrays.items()}
    dtypes = {name: array.dtype.str for name, array in arrays.items()}
    document = json.dumps({"kind": kind, "header": header, "shapes": shapes, "dtypes": dtypes, "planes": compress})
    columns = [_one_value(_in_planes(array) if compress else _bytes_of(array)) for array in arrays.values()]
    schema = pa.schema([pa.field(name, pa.large_binary()) for name in arrays], metadata={"skyband": document})
    sink = pa.BufferOutputStream()
    # handing small columns to a pool of threads costs several times what compressing them does
    options = pa.ipc.IpcWriteOptions(compression="lz4" if compress else None, use_threads=False)
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        if columns:
            writer.write_batch(pa.record_batch(columns, schema=schema))
    body = sink.getvalue()
    return b"".join([_PREFIX.pack(_MARK, FORMAT, hashlib.sha256(body).digest()), body])


def _one_value(content: np.ndarray) -> pa.Array:
    """An array with the bytes as its only value; nothing is copied."""
    ends = np.array([0, len(content)], np.int64)
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), 1, [None, pa.py_buffer(ends), pa.py_buffer(content)])


def _bytes_of(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _in_planes(array: np.ndarray) -> np.ndarray:
    """The bytes of numbers, in planes where they are of eight."""
    content = _bytes_of(array)
    return content.reshape(-1, _WORD).T.copy().reshape(-1) if array.itemsize == _WORD else content


def _out_of_planes(content: np.ndarray) -> np.ndarray:
    """The numbers whose bytes these are, as whole ones, in an array of their own."""
    return content.reshape(_WORD, -1).T.copy().reshape(-1).view(np.int64)


def rows_to_bytes(rows: pa.Table) -> np.ndarray:
    """A table's bytes for `pack`; its numbers of eight bytes are in planes."""
    return np.frombuffer(table_to_bytes(_turned(rows, _in_planes)), np.uint8)


def rows_from_bytes(data: np.ndarray) -> pa.Table:
    """The table that `rows_to_bytes` wrote."""
    return _turned(table_from_bytes(data.tobytes()), lambda numbers: _out_of_planes(numbers.view(np.uint8)))


def _turned(table: pa.Table, turn: Callable[[np.ndarray], np.ndarray]) -> pa.Table:
    """The table with the bytes of its numbers of eight bytes turned; who is null stays."""
    columns = []
    for column in table.combine_chunks().itercolumns():
        if not pa.types.is_primitive(column.type) or column.type.bit_width != 8 * _WORD or not len(column):
            columns.append(column)
            continue
        array = column.chunk(0)
        valid, values = array.buffers()
        numbers = np.frombuffer(values, np.int64, array.offset + len(array))
        turned = np.concatenate([numbers[: array.offset].view(np.uint8), turn(numbers[array.offset :]).view(np.uint8)])
        buffers = [valid, pa.py_buffer(turned)]
        columns.append(pa.Array.from_buffers(array.type, len(array), buffers, array.null_count, array.offset))
    return pa.Table.from_arrays(columns, schema=table.schema)


def table_to_bytes(table: pa.Table) -> bytes:
    """A table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue())


def table_from_bytes(data: bytes | pa.Buffer) -> pa.Table:
    """What `table_to_bytes` wrote; its columns lie in `data`."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()


def unpack(
    kind: str, data: bytes, remedy: str = "read it with the skyband that wrote it"
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read what `pack` wrote; StateError when it is foreign, damaged, of another format or another kind.

    `remedy` is what to do about another format, which no skyband but its own reads.
    """
    if len(data) < _PREFIX.size or data[: len(_MARK)] != _MARK:
        raise StateError("this is not a skyband state: it does not begin with skyband's mark; give a file that save() wrote")
    _, version, digest = _PREFIX.unpack_from(data)
    body = memoryview(data)[_PREFIX.size :]
    if version != FORMAT:
        age = "an older" if version < FORMAT else "a newer"
        raise StateError(f"this state has format {version}, {age} one than {FORMAT}, which this skyband reads; {remedy}")
    if hashlib.sha256(body).digest() != digest:
        raise StateError("this state is damaged: its checksum does not match its content; restore it from a copy")
    with reading(f"a {kind}"):
        with pa.ipc.open_stream(body) as reader:
            table = reader.read_all()
        document = json.loads(table.schema.metadata[b"skyband"])
        if document["kind"] != kind:
            raise StateError(f"this state holds a {document['kind']!r}, not a {kind!r}; load it where it belongs")
        arrays = {}
        for name, dtype in document["dtypes"].items():
            raw = np.frombuffer(table.column(name)[0].as_buffer(), np.uint8)
            planes = document["planes"] and np.dtype(dtype).itemsize == _WORD
            values = _out_of_planes(raw) if planes else raw.copy()
            arrays[name] = values.view(dtype).reshape(document["shapes"][name])
        return document["header"], arrays
