"""A batch as a query across streams reads it: which stream, which value, which rows count. Everything that can be wrong with
it is found here, before anything changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from skyband.across_query import TopKAcross
from skyband.errors import SchemaError
from skyband.numbering import can_name_objects
from skyband.scores.binding import numbers


@dataclass
class Read:
    """The rows of one batch."""

    stream: np.ndarray  # int64: place in the query's streams; -1: the row does not count
    value: np.ndarray  # float64: weighted
    null: np.ndarray  # bool: it has no value
    outside: np.ndarray  # bool: its value is outside its range


def check_columns(query: TopKAcross, schema: pa.Schema) -> None:
    """SchemaError when the stream lacks a column the query needs, or has it in a type that cannot serve."""
    what = f"query {query.name!r} needs the column"
    for role in ("key", "stream", "value"):
        column = getattr(query, role)
        if column not in schema.names:
            raise SchemaError(f"{what} {column!r} as its {role}, which the stream does not have; it has {schema.names}")
    key = schema.field(query.key).type
    if not can_name_objects(key):
        raise SchemaError(f"{what} {query.key!r} to name objects, and it is {key}; cast it to text or whole numbers")
    kind, texts = schema.field(query.stream).type, isinstance(query.streams[0], str)
    fits = pa.types.is_string(kind) or pa.types.is_large_string(kind) if texts else pa.types.is_integer(kind)
    if not fits and not pa.types.is_null(kind):
        wanted = "texts" if texts else "whole numbers"
        raise SchemaError(f"{what} {query.stream!r} to hold the {wanted} {list(query.streams)}, and it is {kind}; cast it")
    value = schema.field(query.value).type
    if not (pa.types.is_integer(value) or pa.types.is_floating(value) or pa.types.is_decimal(value) or pa.types.is_null(value)):
        raise SchemaError(f"{what} {query.value!r} as numbers, and it is {value}; cast it")


class Reader:
    """Reads batches for one query."""

    def __init__(self, query: TopKAcross) -> None:
        self.query = query
        assert isinstance(query.ranges, Mapping)
        spans = [query.ranges[stream] for stream in query.streams]
        self._low = np.array([low for low, _ in spans], float)
        self._high = np.array([np.inf if high is None else high for _, high in spans], float)
        combine = query.combine
        self.weights = np.array([1.0 if isinstance(combine, str) else combine[stream] for stream in query.streams])
        self._place = {stream: place for place, stream in enumerate(query.streams)}

    @property
    def high(self) -> tuple[float, ...]:
        """The largest weighted value of each stream."""
        return tuple((self.weights * np.where(self.weights > 0, self._high, 0.0)).tolist())

    def read(self, table: pa.Table) -> Read:
        """The rows of a batch; SchemaError when one names no object or stream, or is out of range where that is refused."""
        query = self.query
        self._none_missing(table, query.key, "names no object")
        stream = self._streams(table)
        value = numbers(table.column(query.value))
        null = np.isnan(value)
        outside = (value < self._low[stream]) | (value > self._high[stream])
        if query.outside == "refuse" and outside.any():
            row = int(np.flatnonzero(outside)[0])
            low, high = (float(ends[stream[row]]) for ends in (self._low, self._high))
            raise SchemaError(
                f"query {query.name!r}: the value {float(value[row])!r} in row {row} of the batch is outside the range "
                f"{low:g} to {high:g} of the stream {query.streams[stream[row]]!r}; widen ranges=, repair the row, or count "
                "such rows with outside='skip'"
            )
        weight = self.weights[stream]
        with np.errstate(invalid="ignore", over="ignore"):
            value = np.where(weight > 0, value * weight, 0.0)
        stream = np.where(null | outside, -1, stream)
        return Read(stream, np.where(stream < 0, 0.0, value), null, outside)

    def _none_missing(self, table: pa.Table, column: str, says: str) -> None:
        values = table.column(column)
        if values.null_count:
            row = values.is_null().to_pylist().index(True)
            raise SchemaError(
                f"query {self.query.name!r}: row {row} of the batch {says}: its {column!r} is null; drop or repair such rows"
            )

    def _streams(self, table: pa.Table) -> np.ndarray:
        column = self.query.stream
        self._none_missing(table, column, "does not say in which stream it was seen")
        encoded = pa.chunked_array(table.column(column)).combine_chunks().dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = pa.concat_arrays(encoded.chunks)
        found: list[Any] = encoded.dictionary.to_pylist()
        places = np.array([self._place.get(one, -1) for one in found], np.int64)
        indices = encoded.indices.to_numpy(zero_copy_only=False)
        if (places < 0).any():
            unknown = int(np.flatnonzero(places < 0)[0])
            row = int(np.flatnonzero(indices == unknown)[0])
            raise SchemaError(
                f"query {self.query.name!r}: row {row} of the batch is of the stream {found[unknown]!r}, which is not one of "
                f"{list(self.query.streams)}; name it in streams=, or drop such rows"
            )
        return places[indices]
