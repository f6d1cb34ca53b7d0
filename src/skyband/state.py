"""Named arrays to bytes and back: the one format of every snapshot and state file.

Layout: the mark `SKYBAND\\0`, a format number, the SHA-256 of the rest, how many bytes the rest has when it is not compressed
(0: it is not), then an Arrow IPC stream whose schema metadata holds a JSON header and whose columns are the arrays, one list
value each. Never pickle: reading a state file runs no code.

Numbers are written in planes: the first byte of each, then the second of each, and so on. Scores, times and arrival numbers
that lie near each other share most bytes, which compress to nothing then; as they stand they hardly compress. A state within
another is not compressed by itself, but with it: what stands in several places (the scores of a structure are those of rows)
is then written once, as long as these lie within a megabyte of each other.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from skyband.errors import StateError
from skyband.layout import reading

_MARK = b"SKYBAND\0"
FORMAT = 8
"""Raised with every change of what states hold: of a field, its type or its extents, in any structure or lane."""

_PREFIX = struct.Struct("<8sI32s")
_SIZE = struct.Struct("<Q")
_CODEC = pa.Codec("zstd", compression_level=2)  # looks back over a megabyte; the next level's two take half as long again


def pack(kind: str, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray], *, compress: bool = False) -> bytes:
    """Serialize a JSON-able header and named arrays of any shape; `compress` what is not part of another state."""
    shapes = {name: list(array.shape) for name, array in arrays.items()}
    dtypes = {name: array.dtype.str for name, array in arrays.items()}
    document = json.dumps({"kind": kind, "header": header, "shapes": shapes, "dtypes": dtypes})
    columns = [_one_value(_in_planes(array)) for array in arrays.values()]
    schema = pa.schema([pa.field(name, pa.large_binary()) for name in arrays], metadata={"skyband": document})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        if columns:
            writer.write_batch(pa.record_batch(columns, schema=schema))
    content = sink.getvalue()
    size = _SIZE.pack(content.size if compress else 0)
    if compress:
        content = _CODEC.compress(content)
    digest = hashlib.sha256(size)
    digest.update(content)
    return b"".join([_PREFIX.pack(_MARK, FORMAT, digest.digest()), size, content])


def whole_size(state: bytes) -> int:
    """The bytes of what `pack` gave before they were compressed: about what its arrays take in memory."""
    (size,) = _SIZE.unpack_from(state, _PREFIX.size)
    return int(size) or len(state)


def _one_value(content: np.ndarray) -> pa.Array:
    """An array with the bytes as its only value; nothing is copied."""
    ends = np.array([0, len(content)], np.int64)
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), 1, [None, pa.py_buffer(ends), pa.py_buffer(content)])


def _in_planes(array: np.ndarray) -> np.ndarray:
    """The bytes of numbers, in planes."""
    content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return content if array.itemsize == 1 else content.reshape(-1, array.itemsize).T.copy().reshape(-1)


def _out_of_planes(content: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """The numbers whose bytes these are, in an array of their own."""
    return content.reshape(dtype.itemsize, -1).T.copy().reshape(-1).view(dtype)


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
        (size,) = _SIZE.unpack_from(body)
        content = body[_SIZE.size :]
        with pa.ipc.open_stream(_CODEC.decompress(content, size) if size else content) as reader:
            table = reader.read_all()
        document = json.loads(table.schema.metadata[b"skyband"])
        if document["kind"] != kind:
            raise StateError(f"this state holds a {document['kind']!r}, not a {kind!r}; load it where it belongs")
        arrays = {}
        for name, dtype in document["dtypes"].items():
            raw = np.frombuffer(table.column(name)[0].as_buffer(), np.uint8)
            arrays[name] = _out_of_planes(raw, np.dtype(dtype)).reshape(document["shapes"][name])
        return document["header"], arrays
