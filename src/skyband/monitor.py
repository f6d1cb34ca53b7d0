"""The driver: batches in, result rows out. It owns arrival numbers, the watermark and the rows' payload.

    batch ─► columns checked ─► scores, one array per distinct score ─► lanes ─► result rows
                                                                          │
                                       rows that can still win ◄──────────┘

Everything that can fail happens before anything changes: a refused batch leaves no trace.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from skyband.batches import check_keepable, conform, to_table, with_types_for_nulls
from skyband.clock import Clock, early_moment, early_moments, watermarks_before
from skyband.errors import QueryError, StateError
from skyband.gathering import brought_together
from skyband.keys import LiveKeys, read_keys
from skyband.lanes import NEVER, Lane, Place, Rows, late_for_all
from skyband.query import Query, TopK
from skyband.results import Part, ResultTable, top_table, with_bounds
from skyband.rows import RowStore, united
from skyband.scores.score import BoundScore
from skyband.seating import bind_place, check_new, place, seat
from skyband.stats import stats_of_seated, stats_of_waiting
from skyband.threads import cores
from skyband.window import Duration, lateness_of


class Monitor:
    """Keeps the answers of many queries over one stream.

    >>> import skyband as sb
    >>> hot = sb.TopK(name="hot", k=2, score="price * volume", window=sb.CountWindow(3))
    >>> monitor = sb.Monitor([hot])
    >>> changes = monitor.push({"price": [1.0, 5.0, 2.0], "volume": [10, 1, 20]})
    >>> monitor.top("hot").column("score").to_pylist()
    [40.0, 10.0]

    queries   what to answer; more may be added, and cancelled, while rows come
    time      the column of integers or timestamps that time windows go by
    lateness  how far behind the greatest time a row may come and still count: windows are closed that much later
    key       the column that tells rows apart, where rows are to be deleted
    """

    def __init__(
        self,
        queries: Iterable[Query] | Query = (),
        *,
        time: str | None = None,
        lateness: Duration = 0,
        key: str | None = None,
    ) -> None:
        for what, column in (("time", time), ("key", key)):
            if column is not None and (not isinstance(column, str) or not column):
                raise QueryError(f"{what} must be the name of a column, got {column!r}")
        cores()  # a setting that is wrong shows here, not once there are rows enough for several
        self._time, self._lateness = time, lateness_of(lateness, timed=time is not None)
        self._keys = LiveKeys(key) if key is not None else None
        self._queries: dict[str, Query] = {}
        self._waiting: list[Query] = []  # added, and no row has come since
        self._lanes: list[Lane] = []
        self._bound: dict[Hashable, BoundScore] = {}
        self._schema: pa.Schema | None = None
        self._clock: Clock | None = None
        self._allowed = 0  # lateness in the time column's unit
        self._early: list[Any] = []  # advance() calls before the time column was known
        self._store: RowStore
        self._table: ResultTable | None = None  # how results look, until queries or columns change
        self._seen = 0
        self._watermark = NEVER
        self._broken = False
        for query in queries if isinstance(queries, Iterable) else [queries]:
            self.add(query)

    # -- queries -------------------------------------------------------------------------------------------------

    @property
    def queries(self) -> Mapping[str, Query]:
        """The queries being answered, by name, in the order they were added."""
        return MappingProxyType(self._queries)

    def add(self, query: Query) -> None:
        """Begin to answer `query`. It sees only rows pushed from now on."""
        check_new(query, self._queries, timed=self._time is not None, deletions=self._keys is not None)
        if self._schema is not None:
            self._place(query, self._schema, self._clock)
        self._queries[query.name] = query
        self._waiting.append(query)
        self._table = None

    def _place(self, query: Query, schema: pa.Schema, clock: Clock | None) -> Place:
        return place(query, schema, clock, deletions=self._keys is not None)

    def cancel(self, name: str) -> None:
        """Stop answering the query called `name`."""
        query = self._query(name)
        del self._queries[name]
        self._table = None
        if query in self._waiting:
            self._waiting.remove(query)
            return
        lane, at = self._seat(name)
        lane.cancel(at)
        self._lanes = [lane for lane in self._lanes if any(member.active for member in lane.members)]
        self._keep_bound(self._bound)

    def _keep_bound(self, bound: dict[Hashable, BoundScore]) -> None:
        """Of scores and conditions keep those that a lane reads: they are evaluated in every push."""
        used = {key for lane in self._lanes for door in lane.doors for key in (door.score, door.where)}
        self._bound = {key: formula for key, formula in bound.items() if key in used}

    def _query(self, name: str) -> Query:
        try:
            return self._queries[name]
        except (KeyError, TypeError):
            raise QueryError(
                f"no query is called {name!r}; there are: {', '.join(map(repr, self._queries)) or 'none'}"
            ) from None

    def _seat(self, name: str) -> tuple[Lane, int]:
        """The lane of an answered query and its place there."""
        for lane in self._lanes:
            for at, member in enumerate(lane.members):
                if member.active and member.query.name == name:
                    return lane, at
        raise AssertionError(name)

    # -- rows ----------------------------------------------------------------------------------------------------

    def push(self, batch: Any) -> pa.Table:
        """Take the next rows; the result rows of every window they close.

        `batch`: a pyarrow Table or RecordBatch, a pandas or polars DataFrame, or {name: array}.
        """
        self._usable()
        table = to_table(batch, self._schema)
        schema = table.schema
        if self._schema is not None and schema == self._schema:
            schema = self._schema
        elif self._schema is not None:
            schema = with_types_for_nulls(self._schema, schema)
            table = conform(table, schema)
        if len(table) == 0:
            return self._results([])
        if schema != self._schema:
            check_keepable(table)
        clock = Clock(self._time, schema) if self._time is not None else None
        allowed = clock.length(self._lateness, "lateness") if clock is not None else 0
        early, self._early = self._early, []  # what cannot be read is reported once, then forgotten
        moments = early_moments(clock, early) if clock is not None else []
        self._early = early
        times = clock.read(table) if clock is not None else None
        places = [self._place(query, schema, clock) for query in self._waiting]
        if self._schema is not None and schema != self._schema:  # a column that was all null has taken a type
            for query in self._queries.values():
                self._place(query, schema, clock)
        if clock is not None and times is not None:
            spans = [one.size + one.slide for one in places if one.timed]
            spans += [member.size + member.slide for lane in self._lanes if lane.timed for member in lane.members]
            clock.check_end(int(times.max()) + max(spans, default=0))
        lanes: list[Lane] = []
        joining: dict[Lane, list[Place]] = {}
        bound = self._bound
        if places:
            lanes, joining = seat(places, self._lanes, self._seen)
            doors = {door for lane in lanes for door in lane.doors} | {one.door for some in joining.values() for one in some}
            bound = dict(bound)
            for one in places:
                if one.door in doors:  # a crowd reads the columns itself
                    bind_place(one, schema, bound)
        values = {key: formula.evaluate(table) for key, formula in bound.items()}
        before = watermarks_before(times, max([self._watermark, *moments]), allowed)
        numbers = self._keys_of(table, schema, late_for_all([*self._lanes, *lanes], times, before))
        for lane in (*self._lanes, *lanes):
            lane.check(table)
        with self._all_or_nothing():
            self._take_schema(schema, clock, allowed)
            self._watermark = max([self._watermark, *moments])
            self._early = []
            for lane, together in joining.items():
                lane.join(*together)
                self._table = None  # which knows the lane's members
            self._lanes += lanes
            if places:
                self._keep_bound(bound)
                self._waiting = []
            results = self._take_rows(table, times, before, values)
            if self._keys is not None:
                self._keys.add(numbers, self._seen - len(table), self._alive)
            return results

    def _keys_of(self, table: pa.Table, schema: pa.Schema, late: np.ndarray | None) -> np.ndarray:
        """What the keys of new rows are looked up by; SchemaError when one cannot be taken."""
        if self._keys is None:
            return np.zeros(0, np.int64)
        self._keys.check(schema)
        return self._keys.numbered(table, late, self._alive, self._stored_keys)

    def _stored_keys(self, seq: np.ndarray) -> pa.Array:
        assert self._keys is not None
        found = self._store.find(seq, self._seen, None)[self._store.schema.get_field_index(self._keys.column)]
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found

    def _live_from(self) -> int:
        """Nothing is kept of rows that arrived earlier."""
        keyed = self._keys is not None
        return min([self._seen, *(lane.first_live() if keyed else lane.oldest_needed() for lane in self._lanes)])

    def _alive(self, seq: np.ndarray) -> np.ndarray:
        """Which rows are in a window that ended last, or in one to come."""
        return np.logical_or.reduce([np.zeros(len(seq), bool), *(lane.holds(seq) for lane in self._lanes)])

    def delete(self, keys: Any) -> pa.Table:
        """Take the rows with these keys out of every window, at once: the result rows of the windows that ended last, where
        such a row ranked.

        `keys`: values of the column named by `key=`, in a list, array or other iterable; those of no live row are counted, see
        `stats`.
        """
        self._usable()
        if self._keys is None:
            raise StateError("this monitor's rows have no keys to delete them by; name their column: Monitor(..., key='...')")
        kind = None if self._schema is None else self._schema.field(self._keys.column).type
        wanted = read_keys(keys, self._keys.column, kind)
        gone = self._keys.found(wanted, self._alive, self._stored_keys)
        with self._all_or_nothing():
            self._keys.forget(gone, len(wanted))
            return self._results([(lane, *lane.delete(gone)) for lane in self._lanes] if len(gone) else [])

    def _take_schema(self, schema: pa.Schema, clock: Clock | None, allowed: int) -> None:
        if schema is not self._schema:
            self._table = None
        if self._schema is None:
            self._store = RowStore(schema)
        elif schema != self._schema:
            self._store.retype(schema)
        self._schema, self._clock, self._allowed = schema, clock, allowed

    def _take_rows(
        self, table: pa.Table, times: np.ndarray | None, before: np.ndarray | None, values: dict[Hashable, np.ndarray]
    ) -> pa.Table:
        base, rows = self._seen, len(table)
        if times is not None:
            self._watermark = max(self._watermark, int(times.max()) - self._allowed)
        pushed = Rows(table, base, times, before, self._watermark, values)
        parts = [(lane, *lane.take(pushed)) for lane in self._lanes]
        self._seen += rows
        results = self._results(parts, table)
        self._remember(base, table)
        if len(lanes := brought_together(self._lanes, self._seen)) < len(self._lanes):
            self._lanes, self._table = lanes, None
            self._keep_bound(self._bound)
        return results

    def _remember(self, base: int, table: pa.Table) -> None:
        """Keep the payload of the new rows that can still win; now and then forget those that no longer can."""
        self._store.remember(base, table, self._needed(base))
        if self._store.may_hold_past_rows:
            self._store.forget_before(self._live_from())
        self._forget()

    def _needed(self, base: int = 0) -> np.ndarray:
        """Arrival numbers, from `base` on, of the rows whose payload is kept: with keys, of all that may be deleted."""
        if self._keys is not None:
            return united(lane.live_rows(base, self._seen) for lane in self._lanes)
        return united(lane.needed(base) for lane in self._lanes)

    def _forget(self) -> None:
        if self._store.is_full:
            self._store.forget_all_but(self._needed())

    def shrink(self) -> None:
        """Forget at once every row that cannot win any more, instead of now and then: before state is written down."""
        self._usable()
        if self._schema is not None:
            for lane in self._lanes:
                lane.shrink()
            self._store.forget_all_but(self._needed())

    def advance(self, time: Any) -> pa.Table:
        """Move the watermark to `time` without rows: no row before it is expected any more."""
        self._usable()
        if self._time is None:
            raise StateError("this monitor has no time to advance; name its time column: Monitor(..., time='...')")
        if self._clock is None:
            self._early.append(early_moment(time))
            return self._results([])
        moment = self._clock.moment(time)
        with self._all_or_nothing():
            return self._move_watermark(moment)

    def flush(self) -> pa.Table:
        """Close every open time window, as if time had passed until all rows left.

        A count window is never open: the rows of an unfinished slide belong to a window that does not exist yet.
        """
        self._usable()
        with self._all_or_nothing():
            return self._move_watermark(max([NEVER, *(lane.last_end() for lane in self._lanes if lane.timed)]))

    def _move_watermark(self, moment: int) -> pa.Table:
        self._watermark = max(self._watermark, moment)
        lanes = [lane for lane in self._lanes if lane.timed]
        results = self._results([(lane, *lane.close(self._watermark)) for lane in lanes])
        if self._schema is not None:
            self._forget()
        return results

    # -- answers -------------------------------------------------------------------------------------------------

    def top(self, name: str) -> pa.Table:
        """The top-k of the query's last window: rank, score, seq, then the rows' own columns; what an approximate answer may
        miss stands in the schema's metadata, as for `push`."""
        self._usable()
        query = self._query(name)
        score, names, lanes = np.zeros(0), None, []
        if query not in self._waiting:
            lane, at = self._seat(name)
            (score, names), lanes = lane.top(at), [lane]
        score = -score if query.order == "asc" else score
        top = top_table(query.identity, score, names, self._schema, lambda seq: self._store.find(seq, self._seen, None))
        return with_bounds(top, lanes, [name] if isinstance(query, TopK) and query.error > 0 else [], only=name)

    def stats(self, name: str) -> Mapping[str, Any]:
        """How a query is doing.

        algorithm, search            what answers it; and by looking where: "grid", "lists", "scan", or "none" yet
        rows, late, nulls            rows it saw, dropped as late, and found without a score
        candidates, bytes            rows and bytes of the structure that answers it; of many scores, the query's own candidates
        queries, bytes_per_query     how many queries share that structure, and its bytes divided by them
        rows_kept, payload_bytes     rows that the monitor keeps whole, for all its queries together, and what these take
        deleted, not_found           with `key=`: keys given to delete() of live rows, and of none
        missed_at_most               of a probabilistic answer: rows that ranked and were missed so far, at most, on average
                                     over streams in random order; 0 where `error=` is answered without missing any
        searches, scored             of many scores, how often this one was filled from the window; of pairs, those scored
        objects, repeated, outside   across streams: those in the window; rows left out as too many of theirs, or out of range
        """
        self._usable()
        query = self._query(name)
        if query in self._waiting:
            return stats_of_waiting(query, self._keys) | self._payload()
        return stats_of_seated(*self._seat(name), self._keys) | self._payload()

    def _payload(self) -> dict[str, int]:
        """How many rows are kept whole for the queries of the monitor, and what these take."""
        kept = self._schema is not None
        return {"rows_kept": self._store.count if kept else 0, "payload_bytes": self._store.nbytes if kept else 0}

    @property
    def watermark(self) -> Any:
        """Windows up to this time have been closed, as a value of the time column; None before the first row. Nanoseconds are
        a pandas.Timestamp where pandas is installed, otherwise a numpy.datetime64 where a datetime cannot say them."""
        return None if self._clock is None or self._watermark == NEVER else self._clock.value_of(self._watermark)

    def _results(self, parts: list[Part], batch: pa.Table | None = None) -> pa.Table:
        """Result rows as a table; their payload comes out of `batch`, the newest rows, and the store."""
        if self._table is None:
            self._table = ResultTable(self._queries, self._clock, self._schema)
        base = self._seen - (0 if batch is None else len(batch))
        results = self._table.build(parts, lambda seq: self._store.find(seq, base, batch))
        return with_bounds(results, self._lanes, self._table.asking) if self._table.may_miss else results

    # -- safety --------------------------------------------------------------------------------------------------

    def _usable(self) -> None:
        if self._broken:
            raise StateError(
                "an earlier call was interrupted half-way and this monitor's state is lost; load() the last saved one"
            )

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Nothing inside may fail; if it does (an interrupt, memory), the monitor refuses to go on with half a state."""
        self._broken = True
        yield
        self._broken = False

    # -- keeping -------------------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything the monitor knows into the file `path`, which appears whole or not at all."""
        from skyband.saving import write_monitor

        self._usable()
        write_monitor(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str], *, callables: Mapping[str, Callable[..., Any]] | None = None) -> Monitor:
        """A monitor that goes on where `save` stopped. `callables`: scores that are functions, by query name."""
        from skyband.saving import read_monitor

        return read_monitor(cls, path, callables or {})
