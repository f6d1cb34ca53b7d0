"""The payload of rows that can still win, and of those being reported: everything else is forgotten."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.lookup import Columns, Known, Laid
from skyband.memory import arrow, order_of

_DENSE = 8  # so many times the rows asked for may a chunk span for them to be looked up in a table
_FEW = 1 << 9  # rows asked for up to which a look-up of each costs less than Arrow's way
_RUN = 1 << 10  # rows from which on it is worth finding out whether they stand one after the other
_SMALL = 1 << 14  # rows of a chunk that may be copied for some of them
_LARGE = 1 << 17  # rows of a chunk that is not copied any more for being joined with the next
_JOINED = 4  # chunks at a time
_AT_LEAST = 1 << 14  # fewer rows are not worth sorting out
_FRESH = 1 << 8  # nor are so few worth finding out who is past
_WITHIN = pc.TakeOptions(boundscheck=False)  # places are those of rows that are there


class Chunk:
    """Rows of increasing `seq`, each column in one piece."""

    __slots__ = ("_laid", "rows", "seq")

    def __init__(self, seq: np.ndarray, rows: pa.Table) -> None:
        self.seq, self.rows = np.ascontiguousarray(seq, np.int64), rows
        self._laid: Laid | None = None

    def __len__(self) -> int:
        return len(self.seq)

    def laid(self, columns: Columns) -> Laid | None:
        """Where its columns lie, found out when first asked for."""
        if self._laid is None:
            self._laid = columns.laid(self.seq, self.rows)
        return self._laid


class RowStore:
    """Rows by their `seq`, in chunks of increasing `seq`, oldest first. Rows are copied in, so a caller may reuse the
    batch it pushed.

    Chunks that are past go whole; of the others, rows no longer needed are sorted out when the number of rows has
    doubled: forgetting is O(1) a row.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema, self._columns = schema, Columns(schema)
        self.chunks: deque[Chunk] = deque()
        self.limit = _AT_LEAST  # rows at which it is worth asking who is still needed
        self.count = 0
        self.fresh = 0  # rows that came since it was last known which are past
        self._known: Known | None = None  # where all chunks lie, until they change

    def remember(self, base: int, batch: pa.Table, seq: np.ndarray) -> None:
        """Keep the rows `seq` (increasing) of `batch`, whose first row is `base`."""
        if len(seq):
            self.chunks.append(Chunk(seq, _copied(batch, seq - base)))
            self.count += len(seq)
            self.fresh += len(seq)
            self._join_small_chunks()
            self._known = None

    def _join_small_chunks(self) -> None:
        """Join the newest four as long as the oldest of them is no larger than the others together: chunks grow like powers of
        four, up to a size, so that there are few, and a row is seldom copied."""
        while len(self.chunks) >= _JOINED:
            newest = [self.chunks[at] for at in range(-_JOINED, 0)]
            if len(newest[0]) > min(sum(map(len, newest[1:])), _LARGE):
                return
            for _ in newest:
                self.chunks.pop()
            joined = pa.concat_tables([chunk.rows for chunk in newest]).combine_chunks()
            self.chunks.append(Chunk(np.concatenate([chunk.seq for chunk in newest]), joined))

    @property
    def may_hold_past_rows(self) -> bool:
        """Have enough rows come since `forget_before` for another look?"""
        return self.fresh >= _FRESH

    def forget_before(self, seq: int) -> None:
        """Drop chunks all of whose rows arrived before `seq`."""
        self.fresh = 0
        while self.chunks and self.chunks[0].seq[-1] < seq:
            self.count -= len(self.chunks.popleft())
            self._known = None

    @property
    def is_full(self) -> bool:
        """Has the number of rows doubled since it was last known how many are needed?"""
        return self.count > self.limit

    @property
    def nbytes(self) -> int:
        """What the rows held take, not counting what chunks share with others or leave unused."""
        return sum(chunk.seq.nbytes + chunk.rows.nbytes for chunk in self.chunks)

    def forget_all_but(self, needed: np.ndarray) -> None:
        """Keep only the rows `needed` (increasing)."""
        kept: deque[Chunk] = deque()
        for chunk in self.chunks:
            seq, rows = chunk.seq, chunk.rows
            mine = needed[np.searchsorted(needed, seq[0]) : np.searchsorted(needed, seq[-1], "right")]
            if len(mine) and len(seq) < 2 * len(mine) and mine[0] == seq[-len(mine)]:
                kept.append(Chunk(seq[-len(mine) :], rows.slice(len(seq) - len(mine))))  # its newest, as in a window kept whole
            elif len(mine):
                kept.append(Chunk(mine.copy(), _copied(rows, _places(seq, mine))))
        self._hold(kept)
        self.limit = 2 * self.count + _AT_LEAST

    def _hold(self, chunks: Iterable[Chunk]) -> None:
        self.chunks = deque(chunks)
        self.count, self._known = sum(map(len, self.chunks)), None

    def find(self, seq: np.ndarray, base: int, batch: pa.Table | None) -> list[Any]:
        """The columns of the rows `seq`, in that order: from `base` on out of `batch`, earlier ones out of the store."""
        if len(seq) == 0:
            return [pa.array([], kind) for kind in self.schema.types]
        newest = [Chunk(np.arange(base, base + len(batch)), batch)] if batch is not None and seq.max() >= base else []
        if not self.chunks and not newest:
            raise AssertionError("rows are asked for that were not kept")
        columns = self._read(seq, newest)
        if columns is None:
            return self._taken(seq, newest, None).columns
        if self._columns.left:
            others = self._taken(seq, newest, self._columns.left).columns
            for at, column in zip(self._columns.left, others, strict=True):
                columns[at] = column
        return columns

    def _read(self, seq: np.ndarray, newest: list[Chunk]) -> list[Any] | None:
        """The columns that need not be left to Arrow; None when all are."""
        span = None
        if len(seq) > _FEW:
            span = int(seq.min()), int(seq.max())
            if span[1] - span[0] > _DENSE * len(seq):
                return None
        known = self._known if not newest else None
        if known is None:
            laid = [chunk.laid(self._columns) for chunk in (*self.chunks, *newest)]
            whole = [each for each in laid if each is not None]
            if len(whole) < len(laid):
                return None
            known = Known.of(whole)
            self._known = known if not newest else self._known
        return self._columns.taken(known, np.ascontiguousarray(seq, np.int64), span)

    def _taken(self, seq: np.ndarray, newest: list[Chunk], only: list[int] | None) -> pa.Table:
        """The same by Arrow alone, of these columns or all."""
        chunks = [*self.chunks, *newest]
        tables = [chunk.rows if only is None else chunk.rows.select(only) for chunk in chunks]
        owner = np.array([chunk.seq[0] for chunk in chunks]).searchsorted(seq, "right") - 1
        held = np.bincount(owner, minlength=len(chunks)).tolist()
        if held[owner[0]] == len(seq):
            return _take(tables[owner[0]], _places(chunks[owner[0]].seq, seq))
        order = order_of(owner, len(chunks))
        places, parts, at, before = np.empty(len(seq), np.int64), [], 0, 0
        for chunk, rows, count in zip(chunks, tables, held, strict=True):
            if count:
                asked = order[at : at + count]
                found = _places(chunk.seq, seq[asked])
                if len(chunk) > max(_SMALL, 2 * count):  # else all its rows cost less than another look-up
                    rows, found = _take(rows, found), np.arange(count)
                places[asked] = before + found
                parts.append(rows)
                at, before = at + count, before + len(rows)
        return _take(pa.concat_tables(parts), places)

    def retype(self, schema: pa.Schema) -> None:
        """Columns that were all null so far, or of a type not known, have one now."""
        self.schema, self._columns = schema, Columns(schema)
        self._hold([Chunk(chunk.seq, chunk.rows.cast(schema)) for chunk in self.chunks])

    def whole(self) -> tuple[np.ndarray, pa.Table]:
        """Everything held, as one chunk."""
        seqs, tables = [np.zeros(0, np.int64)], [self.schema.empty_table()]
        for chunk in self.chunks:
            seqs.append(chunk.seq)
            tables.append(chunk.rows)
        return np.concatenate(seqs), pa.concat_tables(tables)

    def fill(self, seq: np.ndarray, rows: pa.Table, limit: int) -> None:
        """Hold what `whole` gave."""
        self._hold([Chunk(seq, rows.combine_chunks())] if len(seq) else [])
        self.limit = limit


def united(parts: Iterable[np.ndarray]) -> np.ndarray:
    """All values of increasing arrays, increasing, each once."""
    some = [part for part in parts if len(part)]
    if len(some) == 1:
        return some[0]
    return np.unique(np.concatenate(some)) if some else np.zeros(0, np.int64)


def _copied(table: pa.Table, places: np.ndarray) -> pa.Table:
    """table[places] for some increasing places, as one contiguous chunk a column, a copy. One after the other, they are
    copied at once: looking them up takes three times as long, even for one row."""
    first, count = int(places[0]), len(places)
    if places[-1] - first + 1 > count or table.num_columns == 0:
        return _looked_up(table, places)
    run = table if count == len(table) else table.slice(first, count)
    columns = [pa.concat_arrays(column.chunks) for column in run.itercolumns()]
    return pa.Table.from_arrays(columns, schema=table.schema)


def _take(table: pa.Table, places: np.ndarray) -> pa.Table:
    """table[places], in any order, as one contiguous chunk a column, a copy."""
    if len(places) > _RUN and places[-1] - places[0] + 1 == len(places) and (places[1:] > places[:-1]).all():
        return _copied(table, places)
    return _looked_up(table, places)


def _looked_up(table: pa.Table, places: np.ndarray) -> pa.Table:
    return pc.call_function("take", [table, arrow(places)], _WITHIN).combine_chunks() if table.num_columns else table


def _places(own: np.ndarray, seq: np.ndarray) -> np.ndarray:
    """Where in the increasing `own` the rows `seq` are."""
    first, span = own[0], own[-1] - own[0] + 1
    if span == len(own):  # without a gap
        return seq - first
    if span > _DENSE * len(seq):
        return np.searchsorted(own, seq)
    table = np.empty(span, np.int64)
    table[own - first] = np.arange(len(own))
    return table[seq - first]
