"""Result rows of several lanes as one Arrow table: who entered, left or was in the top of which window."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from skyband.changes import EVENTS, NO_EVENTS, PAIR_COLUMNS, RESULT_COLUMNS, Emitted, row_column_names
from skyband.clock import Clock
from skyband.lanes import Lane, Names
from skyband.memory import arrow, order_of, taken
from skyband.query import Query, TopK
from skyband.window import CountWindow

Part = tuple[Lane, Emitted, Names]  # a lane, its result rows, and who these are about
Finder = Callable[[np.ndarray], list[Any]]  # the columns of rows, by arrival number

BOUNDS = b"skyband.missed_at_most"
"""Key in the metadata of a result table: for each query that is not exact, how many rows that ranked were missed so far, at
most, on average over streams in random order; JSON, by name."""

PRECISION = b"skyband.precision_estimated"
"""The same for `eaa-approximate`: the share of the answers that are right, as far as can be told."""


class ResultTable:
    """Builds result tables for one set of queries over one stream; made anew when either changes.

    Columns: those that say what happened, then those of rows (`seq` and the stream's own), of pairs (the same twice, `a_`
    and `b_`) and of objects (the key), as far as there are queries about such; null where a result row is about another.
    """

    def __init__(self, queries: Mapping[str, Query], clock: Clock | None, schema: pa.Schema | None) -> None:
        self._names, self._events = pa.array(list(queries), pa.string()), pa.array(EVENTS, pa.string())
        self.may_miss = any(query.error > 0 or query.algorithm != "auto" for query in queries.values())
        self.asking = [name for name, query in queries.items() if isinstance(query, TopK) and query.error > 0]  # how much it is
        self._turned: dict[Lane, tuple[np.ndarray, np.ndarray]] = {}  # places and signs of a lane's members
        self._place = {name: place for place, name in enumerate(queries)}
        kinds = {isinstance(query.window, CountWindow) for query in queries.values()}
        self._has_time = False in kinds and clock is not None
        self._has_count = True in kinds
        self._clock, self._schema = clock, schema
        identities = dict.fromkeys(query.identity for query in queries.values()) or {"row": None}
        self._taken: tuple[str, ...] = RESULT_COLUMNS
        if "pair" in identities and schema is not None:  # whose columns stand beside those of rows and objects
            self._taken += (*PAIR_COLUMNS, *_pair_names(schema, RESULT_COLUMNS))
        nothing = [self._table(one, NO_EVENTS, np.zeros(0, bool), None, _nothing) for one in identities]
        self.empty = pa.concat_tables(nothing, promote_options="default") if len(nothing) > 1 else nothing[0]

    def build(self, parts: list[Part], rows_of: Finder) -> pa.Table:
        """The table of `parts`, queries in the order they were added; `rows_of` finds rows by arrival number."""
        parts = [part for part in parts if len(part[1].query)]
        if not parts:
            return self.empty
        by_identity: dict[Hashable, list[Part]] = {}
        for part in parts:
            by_identity.setdefault(part[0].identity, []).append(part)
        tables, places = [], []
        for identity, same in by_identity.items():
            emitted, timed = self._joined(same)
            names = _join_names(identity, [names for _, _, names in same])
            if len(self._names) > 1:
                order = order_of(emitted.query, len(self._names))
                emitted, timed = emitted.where(order), timed[order]
                names = _named(identity, names, order)
            tables.append(self._table(identity, emitted, timed, names, rows_of))
            places.append(emitted.query)
        if len(tables) == 1 and tables[0].column_names == self.empty.column_names:
            return tables[0]
        whole = pa.concat_tables([self.empty, *tables], promote_options="default")
        return whole.take(pa.array(np.argsort(np.concatenate(places), kind="stable")))

    def _joined(self, parts: list[Part]) -> tuple[Emitted, np.ndarray]:
        """Result rows of several lanes, numbered by all queries and with scores as users see them; whose ends are times."""
        whole, timed = [], []
        for lane, emitted, _ in parts:
            place, turn = self._turns(lane)
            query = emitted.query
            if (place != np.arange(len(place))).any():
                emitted = emitted._replace(query=taken(place, query))
            if (turn != 1.0).any():
                emitted = emitted._replace(score=emitted.score * turn[query])
            whole.append(emitted)
            timed.append(np.full(len(query), lane.timed))
        return Emitted.join(whole), np.concatenate(timed)

    def _turns(self, lane: Lane) -> tuple[np.ndarray, np.ndarray]:
        if lane not in self._turned:
            place = np.array([self._place.get(member.query.name, 0) for member in lane.members], np.int64)
            turn = np.array([-1.0 if member.query.order == "asc" else 1.0 for member in lane.members])
            self._turned[lane] = place, turn
        return self._turned[lane]

    def _table(self, identity: Hashable, emitted: Emitted, timed: np.ndarray, names: Names, rows_of: Finder) -> pa.Table:
        columns: dict[str, Any] = {"query": _words(emitted.query, self._names), **self._window_ends(emitted.window_end, timed)}
        columns["event"] = _words(emitted.event, self._events)
        columns["rank"] = pa.array(emitted.rank, mask=emitted.event == EVENTS.index("leave"))
        columns["score"] = arrow(emitted.score)
        about = _about(identity, names, self._schema, rows_of, RESULT_COLUMNS if identity == "pair" else self._taken)
        return pa.table([*columns.values(), *about.values()], names=[*columns, *about])

    def _window_ends(self, end: np.ndarray, timed: np.ndarray) -> dict[str, Any]:
        if not self._has_time:
            return {"window_end": arrow(end)}
        assert self._clock is not None
        if not self._has_count:
            return {"window_end": self._clock.column_of(end)}
        return {"window_end": pa.array(end, mask=timed), "window_end_time": self._clock.column_of(end, ~timed)}


def top_table(identity: Hashable, score: np.ndarray, names: Names, schema: pa.Schema | None, rows_of: Finder) -> pa.Table:
    """rank, score, then who: seq and the rows' own columns, the same twice for pairs, or the key of objects."""
    columns: dict[str, Any] = {"rank": arrow(np.arange(1, len(score) + 1)), "score": arrow(score)}
    columns |= _about(identity, names, schema, rows_of if len(score) else _nothing, ("rank", "score", "seq"))
    return pa.table(list(columns.values()), names=list(columns))


def _about(
    identity: Hashable, names: Names, schema: pa.Schema | None, rows_of: Finder, taken: tuple[str, ...]
) -> dict[str, Any]:
    """The columns that say who result rows are about. `names` None: there are none."""
    if identity == "row":
        rows = None if names is None or rows_of is _nothing or schema is None else rows_of(names)
        return _rows("seq", [] if schema is None else row_column_names(schema.names, taken), names, schema, rows)
    if identity == "pair":
        older, newer = (None, None) if names is None else names
        a = b = None
        if names is not None and schema is not None and rows_of is not _nothing:
            both, count = rows_of(np.concatenate(names)), len(names[0])  # looked up at once
            a, b = [column.slice(0, count) for column in both], [column.slice(count) for column in both]
        own = [] if schema is None else _pair_names(schema, taken)
        half = len(own) // 2
        return _rows("a_seq", own[:half], older, schema, a) | _rows("b_seq", own[half:], newer, schema, b)
    assert isinstance(identity, tuple)
    key = identity[1]
    if schema is None:
        (column,), kind = row_column_names([key], taken), pa.null()
    else:
        column, kind = row_column_names(schema.names, taken)[schema.get_field_index(key)], schema.field(key).type
    return {column: pa.array([], kind) if names is None else names}


def _pair_names(schema: pa.Schema, taken: tuple[str, ...]) -> list[str]:
    """What the rows' own columns are called in results about pairs: those of `a`, then those of `b`."""
    return [
        own
        for prefix in ("a_", "b_")
        for own in row_column_names([prefix + name for name in schema.names], (*taken, *PAIR_COLUMNS))
    ]


def _rows(
    seq_name: str, own: list[str], seq: np.ndarray | None, schema: pa.Schema | None, rows: list[Any] | None
) -> dict[str, Any]:
    columns: dict[str, Any] = {seq_name: arrow(np.zeros(0, np.int64) if seq is None else seq)}
    if schema is None:
        return columns
    rows = schema.empty_table().columns if rows is None else rows
    return columns | dict(zip(own, rows, strict=True))


def _nothing(seq: np.ndarray) -> pa.Table:
    raise AssertionError("no rows are looked up where there are none")


def _join_names(identity: Hashable, parts: list[Names]) -> Names:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts, axis=-1) if identity in ("row", "pair") else pa.concat_arrays(parts)


def _named(identity: Hashable, names: Names, order: np.ndarray) -> Names:
    """names[order]"""
    if identity == "row":
        return taken(names, order)
    return names[..., order] if identity == "pair" else names.take(pa.array(order))


def _words(places: np.ndarray, words: pa.Array) -> pa.Array:
    """words[places]"""
    return words.take(pa.array(places))


def with_bounds(results: pa.Table, lanes: Iterable[Lane], asking: Iterable[str], only: str | None = None) -> pa.Table:
    """The same, with what may have been missed in the schema's metadata, for queries that are not exact or asked for it, or for
    one of them `only`."""
    lanes = list(lanes)
    members = [(m, lane.missed_at_most(at)) for lane in lanes if not lane.is_exact for at, m in enumerate(lane.members)]
    bounds = dict.fromkeys(asking, 0.0)
    bounds |= {member.query.name: bound for member, bound in members if member.active and bound > 0}
    reached = {lane.members[0].query.name: share for lane in lanes if (share := lane.precision) is not None}
    said = {}
    for key, found in ((BOUNDS, bounds), (PRECISION, reached)):
        if told := {name: value for name, value in found.items() if only in (None, name)}:
            said[key] = json.dumps(told)
    return results.replace_schema_metadata(said) if said else results
