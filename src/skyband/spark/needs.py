"""Which rows a shard's queries can rank: decided next to the data, the same in every task.

A need gives every row its *part*: what the shard knows it by, or ELSEWHERE when no query of the shard can rank it. Such a
row does not travel; to a shard that counts rows its place does, without its columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.across_query import TopKAcross
from skyband.numbering import hashes
from skyband.scores.binding import numbers
from skyband.scores.score import Where, bind_where

Array = np.ndarray
ELSEWHERE = -1


@dataclass(frozen=True)
class Everything:
    """Every row."""

    def parts(self, rows: pa.Table, tie: Array) -> Array:
        """The part of each row: one for all."""
        return np.zeros(len(rows), np.int64)


@dataclass(frozen=True)
class Within:
    """Rows that some query's `where` lets pass."""

    wheres: tuple[Where, ...]

    def parts(self, rows: pa.Table, tie: Array) -> Array:
        """The part of each row: one for all that pass."""
        passes = np.zeros(len(rows), bool)
        for where in self.wheres:
            passes |= bind_where(where, rows.schema).passes(rows)
        return np.where(passes, 0, ELSEWHERE)


@dataclass(frozen=True)
class Contenders:
    """Rows that are among the best of their group and pane by some query. Which those are is a matter of many rows: see
    `contest`."""


@dataclass(frozen=True)
class Blocks:
    """Rows of two of `of` blocks of the pair space, or of one. A row's block depends on its tie alone, so that rows which
    nobody can tell apart are in one block."""

    first: int
    second: int
    of: int

    def parts(self, rows: pa.Table, tie: Array) -> Array:
        """The block of each row."""
        block = (hashes(pa.chunked_array([pa.array(tie)])) % np.uint64(self.of)).astype(np.int64)
        return np.where((block == self.first) | (block == self.second), block, ELSEWHERE)


@dataclass(frozen=True)
class Keys:
    """Rows that count for a query across streams, of the objects whose keys fall into one of `of` parts."""

    query: TopKAcross
    part: int
    of: int

    def parts(self, rows: pa.Table, tie: Array) -> Array:
        """The part of each row: one for all that count."""
        counting = judged(self.query, rows).counts
        if self.of > 1 and counting.any():
            keys = rows.column(self.query.key).filter(pa.array(counting))
            own = hashes(keys) % np.uint64(self.of) == np.uint64(self.part)
            counting[np.flatnonzero(counting)] = own
        return np.where(counting, 0, ELSEWHERE)


Need = Everything | Within | Contenders | Blocks | Keys


@dataclass(frozen=True)
class Judged:
    """What a query across streams makes of rows."""

    counts: Array  # bool: key, stream and value are as they must be
    null: Array  # bool: it has no value
    refused: Array  # bool: it names no object, or no stream that was named, or its value is outside its range


def judged(query: TopKAcross, rows: pa.Table) -> Judged:
    """Rows that an embedded monitor would refuse, or leave out, are told apart here: a stream goes on."""
    unnamed = rows.column(query.key).is_null().to_numpy()
    stream = _places(rows.column(query.stream), {one: place for place, one in enumerate(query.streams)})
    value = numbers(rows.column(query.value))
    assert isinstance(query.ranges, Mapping)
    spans = [query.ranges[one] for one in query.streams]
    low = np.array([low for low, _ in spans], float)
    high = np.array([np.inf if high is None else high for _, high in spans], float)
    outside = (value < low[stream]) | (value > high[stream])
    wrong = unnamed | (stream < 0)
    null = np.isnan(value) & ~wrong
    return Judged(~(wrong | outside | null), null, wrong | outside)


def _places(column: pa.ChunkedArray, place: Mapping[Any, int]) -> Array:
    """The place of each value; -1 for what has none."""
    encoded = pa.chunked_array(column).combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = pa.concat_arrays(encoded.chunks)
    found = np.array([place.get(one, -1) for one in encoded.dictionary.to_pylist()] + [-1], np.int64)
    return found[pc.fill_null(encoded.indices, len(found) - 1).to_numpy(zero_copy_only=False)]


def emptied(rows: pa.Table, away: Array) -> pa.Table:
    """The rows with nulls for columns where they are away."""
    return rows.take(pa.array(np.arange(len(away)), mask=away))


def holding_places(rows: pa.Table, query: TopKAcross) -> pa.Table:
    """Rows whose columns are empty keep their places in windows of rows: with a key, a stream, and no value."""
    for name, filling in ((query.key, _filling(rows.schema.field(query.key).type)), (query.stream, query.streams[0])):
        at = rows.schema.get_field_index(name)
        column = rows.column(name)
        rows = rows.set_column(at, rows.schema.field(name), column.fill_null(pa.scalar(filling, column.type)))
    return rows


def _filling(kind: pa.DataType) -> Any:
    """Some value of a type that can name objects."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return ""
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return b""
    if pa.types.is_boolean(kind):
        return False
    plain = pa.int32() if pa.types.is_date32(kind) or pa.types.is_time32(kind) else pa.int64()
    return pa.scalar(0, plain).cast(kind).as_py()
