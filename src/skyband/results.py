"""Result rows of several lanes as one Arrow table: who entered, left or was in the top of which window."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from skyband.changes import EVENTS, NO_EVENTS, Emitted, row_column_names
from skyband.clock import Clock
from skyband.lanes import Lane, TimeLane
from skyband.query import Query
from skyband.window import CountWindow

Part = tuple[Lane, Emitted, np.ndarray]  # a lane, its result rows, and their arrival numbers


class ResultTable:
    """Builds result tables for one set of queries over one stream; made anew when either changes."""

    def __init__(self, queries: Mapping[str, Query], clock: Clock | None, schema: pa.Schema | None) -> None:
        self._names = list(queries)
        self._place = {name: place for place, name in enumerate(queries)}
        kinds = {isinstance(query.window, CountWindow) for query in queries.values()}
        self._has_time = False in kinds and clock is not None
        self._has_count = True in kinds
        self._clock = clock
        self._row_names = row_column_names(schema.names) if schema is not None else []
        rows = schema.empty_table() if schema is not None else pa.table({})
        self.empty = self._table(*NO_EVENTS, np.zeros(0, bool), rows)

    def build(self, parts: list[Part], rows_of: Callable[[np.ndarray], pa.Table]) -> pa.Table:
        """The table of `parts`, queries in the order they were added; `rows_of` finds rows by arrival number."""
        whole = [self._columns(*part) for part in parts if len(part[2])]
        if not whole:
            return self.empty
        columns = [np.concatenate(column) if len(column) > 1 else column[0] for column in zip(*whole, strict=True)]
        if len(self._names) > 1:
            order = np.argsort(columns[0], kind="stable")
            columns = [column[order] for column in columns]
        query, end, event, rank, score, seq, timed = columns
        return self._table(query, end, event, rank, score, seq, timed, rows_of(seq))

    def _columns(self, lane: Lane, emitted: Emitted, seq: np.ndarray) -> list[np.ndarray]:
        place = np.array([self._place.get(member.query.name, 0) for member in lane.members], np.int64)
        turn = np.array([-1.0 if member.query.order == "asc" else 1.0 for member in lane.members])
        timed = np.full(len(seq), isinstance(lane, TimeLane))
        query, end, event, rank, score, _ = emitted
        return [place[query], end, event, rank, score * turn[query], seq, timed]

    def _table(
        self, query: np.ndarray, end: np.ndarray, event: np.ndarray, rank: np.ndarray, score: np.ndarray, seq: np.ndarray,
        timed: np.ndarray, rows: pa.Table,
    ) -> pa.Table:  # fmt: skip
        columns: dict[str, Any] = {"query": _words(query, self._names), **self._window_ends(end, timed)}
        columns["event"] = _words(event, list(EVENTS))
        columns["rank"] = pa.array(rank, mask=event == EVENTS.index("leave"))
        columns["score"] = pa.array(score)
        columns["seq"] = pa.array(seq)
        arrays = [*columns.values(), *rows.columns]
        return pa.table(arrays, names=[*columns, *self._row_names])

    def _window_ends(self, end: np.ndarray, timed: np.ndarray) -> dict[str, Any]:
        if not self._has_time:
            return {"window_end": pa.array(end)}
        assert self._clock is not None
        if not self._has_count:
            return {"window_end": self._clock.column_of(end)}
        return {"window_end": pa.array(end, mask=timed), "window_end_time": self._clock.column_of(end, ~timed)}


def top_table(score: np.ndarray, seq: np.ndarray, rows: pa.Table | None) -> pa.Table:
    """rank, score, seq, then the rows' own columns."""
    columns = {"rank": pa.array(np.arange(1, len(seq) + 1)), "score": pa.array(score), "seq": pa.array(seq)}
    if rows is None:
        return pa.table(columns)
    names = [*columns, *row_column_names(rows.column_names, tuple(columns))]
    return pa.table([*columns.values(), *rows.columns], names=names)


def _words(places: np.ndarray, words: list[str]) -> pa.Array:
    """words[places] as an Arrow text column."""
    return pa.DictionaryArray.from_arrays(pa.array(places.astype(np.int32)), pa.array(words, pa.string())).dictionary_decode()
