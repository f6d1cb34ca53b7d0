"""The windows of one group while queries come and go.

Rows wait until the watermark passes them and are handed on in the order of time, then tie; a query that is added or
cancelled at a moment takes its place between the rows before it and those from it on. Queries that close their windows
together share a `Monitor`, so that what is answered is what a `Monitor` answers whose `add` and `cancel` are called at these
points, whatever came in which micro-batch.

    rows ─► open ─► (slide closed) ─► Monitor ─► result rows
    added, cancelled ─► due ──────────┘
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.lanes import NEVER
from skyband.monitor import Monitor
from skyband.query import Query, TopK, TopKAcross, query_from_json
from skyband.saving import monitor_from_bytes, monitor_to_bytes
from skyband.seating import window_lengths
from skyband.spark.control.pace import Counts, Due, Key, Pace, Results
from skyband.spark.control.terms import OBJECT, PAIR, ROW, Terms, identity_of
from skyband.spark.needs import emptied, holding_places, judged
from skyband.spark.shards import is_exact
from skyband.spark.tallies import take_nulls
from skyband.state import table_from_bytes, table_to_bytes
from skyband.window import CountWindow

TIME, TIE, OWN = 0, 1, 2
"""Where rows have their time and tie, and from where on their own columns."""


class LiveGroup:
    """State and answers of one group."""

    def __init__(self, terms: Terms, watermark: int, standing: Iterable[tuple[Query, int]]) -> None:
        self.terms = terms
        self.watermark = watermark
        self.paces: dict[Key, Pace] = {}
        self.open: list[pa.Table] = []
        self.counts = Counts()  # since the last `take_counts`
        if terms.counted:  # they count the rows before the first query too
            for identity in (ROW, PAIR) if terms.pairs else (ROW,):
                self._pace((identity, None, ""))
        for query, since in standing:
            self.schedule(Due(since, query, True))

    # -- queries -------------------------------------------------------------------------------------------------

    def schedule(self, due: Due) -> None:
        """Add or cancel a query at a moment that every earlier row has passed, or at once where rows are not waited for."""
        key = self._key(due.query)
        pace = self._pace(key, due.query)
        if due.time <= pace.closed or due.time == NEVER or self._at_once(pace):
            self._apply(pace, due)
            self._tidy()
        else:
            pace.due.append(due)

    def _apply(self, pace: Pace, due: Due) -> None:
        if not due.adds:  # a query that goes takes its counts with it
            self.counts.nulls.update(take_nulls(pace.monitor))
        pace.apply(due, self._size(due.query))

    def _key(self, query: Query) -> Key:
        identity = identity_of(query)
        slide = None if isinstance(query.window, CountWindow) else window_lengths(query, self.terms.clock)[1]
        return identity, slide, query.name if identity == OBJECT else ""

    def _size(self, query: Query) -> int:
        return window_lengths(query, self.terms.clock)[0]

    def _pace(self, key: Key, query: Query | None = None) -> Pace:
        if key not in self.paces:
            slide = key[1]
            closed = self.watermark if slide is None or self.watermark == NEVER else self.watermark // slide * slide
            monitor = Monitor((), time=self.terms.time if slide is not None else None)
            if slide is None and (ROW, None, "") in self.paces:
                monitor._seen = self.paces[ROW, None, ""].monitor._seen  # windows of rows end where those of others do
            self.paces[key] = Pace(monitor, slide, closed, ranked=query if isinstance(query, TopKAcross) else None)
        return self.paces[key]

    def _at_once(self, pace: Pace) -> bool:
        return pace.slide is None and self.terms.at_once

    def _tidy(self) -> None:
        """Drop what has no query any more; what counts rows goes on counting."""
        for key, pace in list(self.paces.items()):
            counts_on = pace.slide is None and key[0] != OBJECT
            if not counts_on and not pace.due and not pace.monitor.queries:
                del self.paces[key]

    # -- rows ----------------------------------------------------------------------------------------------------

    def take(self, rows: pa.Table) -> list[Results]:
        """Hold rows until their windows close; late ones are counted and left out. Results where rows need not wait."""
        results: list[Results] = []
        times = rows.column(TIME).to_numpy()
        for key, pace in self.paces.items():
            if self._at_once(pace):
                results += self._push(key, pace, rows.take(pa.array(np.argsort(rows.column(TIE).to_numpy(), kind="stable"))))
            elif pace.closed > NEVER:
                late = int(np.count_nonzero(times < pace.closed))
                self.counts.late.update(dict.fromkeys(pace.sizes, late) if late else {})
        if self.terms.holds:
            self.open.append(self._awaited(rows))
        return results

    def _awaited(self, rows: pa.Table) -> pa.Table:
        """Of rows, those that some query has yet to see, or may, that is added later."""
        waiting = [pace.closed for pace in self.paces.values() if not self._at_once(pace)]
        upto = min([self.watermark, *waiting])
        return rows if upto == NEVER else rows.filter(pc.greater_equal(rows.column(TIME), upto))

    # -- time ----------------------------------------------------------------------------------------------------

    def advance(self, watermark: int) -> list[Results]:
        """Answer every window whose end the watermark has reached."""
        results: list[Results] = []
        if watermark <= self.watermark:
            return results
        self.watermark = watermark
        opened = pa.concat_tables(self.open) if self.open else None
        for key, pace in list(self.paces.items()):
            upto = watermark if pace.slide is None else watermark // pace.slide * pace.slide
            if not self._at_once(pace) and upto > pace.closed:
                results += self._close(key, pace, opened, upto)
        self._tidy()
        if opened is not None:
            opened = self._awaited(opened)
            self.open = [opened] if len(opened) else []
        return results

    def _close(self, key: Key, pace: Pace, opened: pa.Table | None, upto: int) -> list[Results]:
        """Hand on the rows before `upto`, what is due in its place among them, and answer the windows up to there."""
        results: list[Results] = []
        rows, times = self._ready(opened, pace.closed, upto)
        at = 0
        while pace.due and pace.due[0].time < upto:
            moment = pace.due[0].time
            stop = int(times.searchsorted(moment))
            results += self._push(key, pace, rows.slice(at, stop - at)) if rows is not None else []
            results += self._pass(key, pace, moment)
            at = stop
            while pace.due and pace.due[0].time == moment:
                due = pace.due.pop(0)
                self._apply(pace, due)
        if rows is not None:
            results += self._push(key, pace, rows.slice(at))
        results += self._pass(key, pace, upto)
        pace.closed = upto
        return results

    @staticmethod
    def _ready(opened: pa.Table | None, since: int, upto: int) -> tuple[pa.Table | None, np.ndarray]:
        """The open rows of a stretch of time, in the order of time, then tie."""
        if opened is None:
            return None, np.zeros(0, np.int64)
        times = opened.column(TIME).to_numpy()
        ready = np.flatnonzero((times >= since) & (times < upto))
        order = np.lexsort((opened.column(TIE).to_numpy()[ready], times[ready]))
        return opened.take(pa.array(ready[order])), times[ready[order]]

    def _push(self, key: Key, pace: Pace, rows: pa.Table) -> list[Results]:
        if not len(rows) or (pace.slide is not None and not pace.monitor.queries):
            return []
        rows = rows.select(range(OWN, rows.num_columns))
        if pace.ranked is not None:
            rows = self._fitting(pace, pace.ranked, rows)
        return self._named(key, pace, pace.monitor.push(rows))

    def _fitting(self, pace: Pace, query: TopKAcross, rows: pa.Table) -> pa.Table:
        """Rows that the query can take, and of the others their places where rows are counted: a running stream cannot
        refuse them, as a `Monitor` does."""
        refused = judged(query, rows).refused
        if not refused.any():
            return rows
        if query.name in pace.monitor.queries:
            self.counts.refused[query.name] += int(np.count_nonzero(refused))
        if pace.slide is not None:
            return rows.filter(pa.array(~refused))
        self.counts.nulls[query.name] -= int(np.count_nonzero(refused)) if query.name in pace.monitor.queries else 0
        return holding_places(emptied(rows, refused), query)

    def _pass(self, key: Key, pace: Pace, moment: int) -> list[Results]:
        """Time passes until `moment`: answer the windows that end up to it."""
        end = min(moment, pace.last_end) if pace.slide is not None else NEVER
        if end == NEVER or end <= pace.monitor._watermark:
            return []
        return self._named(key, pace, pace.monitor.advance(self._moment(end)))

    def _moment(self, time: int) -> Any:
        """A time as `Monitor.advance` takes it."""
        clock = self.terms.clock
        assert clock is not None
        return np.datetime64(time, clock.type.unit) if clock.is_timestamp else time

    @staticmethod
    def _named(key: Key, pace: Pace, table: pa.Table) -> list[Results]:
        column = "" if pace.ranked is None else pace.ranked.key
        return [Results(key[0], table, dict(pace.sizes), pace.slide is None, column)] if len(table) else []

    def finish(self) -> list[Results]:
        """The stream has ended: answer every window that holds a row."""
        results: list[Results] = []
        opened = pa.concat_tables(self.open) if self.open else None
        last = max((int(pc.max(table.column(TIME)).as_py()) for table in self.open if len(table)), default=NEVER)
        for key, pace in list(self.paces.items()):
            if self._at_once(pace):
                continue
            ends = [last, *(due.time for due in pace.due)]
            for upto in (max(ends), NEVER):
                upto = max(upto, pace.last_end - 1)
                if upto > NEVER:
                    after = upto + 1 if pace.slide is None else (upto // pace.slide + 1) * pace.slide
                    results += self._close(key, pace, opened, max(after, pace.closed))
        self.open = []
        return results

    def next_end(self) -> int | None:
        """When the watermark reaches this, there is something to do; None: nothing waits."""
        ends: list[int] = []
        first = min((int(pc.min(table.column(TIME)).as_py()) for table in self.open if len(table)), default=None)
        for pace in self.paces.values():
            if self._at_once(pace):
                continue
            if pace.slide is None:
                ends += [] if first is None else [first + 1]
            elif not pace.idle:
                ends.append(pace.closed + pace.slide)
            elif first is not None:
                ends.append((first // pace.slide + 1) * pace.slide)
        return min(ends, default=None)

    @property
    def idle(self) -> bool:
        """The group can be forgotten: one made anew, of the queries that stand, would answer the same."""
        return not self.open and all(pace.idle for pace in self.paces.values())

    def take_counts(self) -> Counts:
        """What became of rows since the last call."""
        counts, self.counts = self.counts, Counts()
        for pace in self.paces.values():
            counts.nulls.update(take_nulls(pace.monitor))
        return counts

    @property
    def candidates(self) -> int:
        """Rows held because they may still rank, open ones included."""
        lanes = [lane for pace in self.paces.values() for lane in pace.monitor._lanes]
        return sum(map(len, self.open)) + sum(lane.candidates for lane in lanes)

    def held(self) -> Iterator[tuple[str, int, int]]:
        """Every query asked now, with the rows and bytes that the structure which answers it holds."""
        return (one for pace in self.paces.values() for lane in pace.monitor._lanes for one in lane.held())

    def bounds(self) -> Iterator[tuple[str, float | None, float | None]]:
        """Every approximate query, with how many rows that ranked it may have missed, or, across streams, its precision."""
        for pace in self.paces.values():
            for lane in pace.monitor._lanes:
                for at, member in enumerate(lane.members):
                    query = member.query
                    if member.active and isinstance(query, TopKAcross) and lane.precision is not None:
                        yield query.name, None, lane.precision
                    elif member.active and isinstance(query, TopK) and (query.error or not is_exact(query)):
                        yield query.name, lane.missed_at_most(at), None

    # -- state ---------------------------------------------------------------------------------------------------

    def save(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """A JSON-able header and arrays."""
        arrays: dict[str, np.ndarray] = {}
        paces = []
        for number, (key, pace) in enumerate(self.paces.items()):
            pace.monitor.shrink()
            arrays[f"monitor.{number}"] = np.frombuffer(monitor_to_bytes(pace.monitor, compress=False), np.uint8)
            due = [[one.time, one.query.to_json(), one.adds] for one in pace.due]
            ranked = None if pace.ranked is None else pace.ranked.to_json()
            paces.append({"key": key, "closed": pace.closed, "due": due, "sizes": pace.sizes, "ranked": ranked})
        if self.open:
            arrays["open"] = np.frombuffer(table_to_bytes(pa.concat_tables(self.open)), np.uint8)
        return {"watermark": self.watermark, "paces": paces}, arrays

    @classmethod
    def restored(cls, terms: Terms, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> LiveGroup:
        """The group that `save` wrote down."""
        group = cls(terms, header["watermark"], ())
        group.paces = {}
        for number, saved in enumerate(header["paces"]):
            key = cast(Key, tuple(saved["key"]))
            monitor = monitor_from_bytes(Monitor, arrays[f"monitor.{number}"].tobytes(), terms.callables)
            due = [Due(time, query_from_json(query, terms.callables), adds) for time, query, adds in saved["due"]]
            ranked = None if saved["ranked"] is None else TopKAcross.from_json(saved["ranked"])
            group.paces[key] = Pace(monitor, key[1], saved["closed"], due, saved["sizes"], ranked)
        if "open" in arrays:
            group.open = [table_from_bytes(arrays["open"].tobytes())]
        return group
