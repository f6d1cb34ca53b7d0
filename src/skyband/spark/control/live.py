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
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.lanes import NEVER
from skyband.monitor import Monitor
from skyband.query import Query, TopKAcross, query_from_json
from skyband.saving import monitor_from_bytes, monitor_to_bytes
from skyband.seating import window_lengths
from skyband.spark.control.terms import OBJECT, PAIR, ROW, Terms, identity_of
from skyband.state import table_from_bytes, table_to_bytes
from skyband.window import CountWindow

TIME, TIE, OWN = 0, 1, 2
"""Where rows have their time and tie, and from where on their own columns."""

Key: TypeAlias = tuple[str, int | None, str]
"""Queries of one key share a monitor: about whom, slide (None: they count rows), and for objects the query itself."""


class Results(NamedTuple):
    """Result rows of one monitor: about whom, the table it gave, and the window sizes of its queries by name."""

    identity: str
    table: pa.Table
    sizes: dict[str, int]
    counted: bool
    key: str = ""  # of objects: the column that names them


class Due(NamedTuple):
    """A query to be added at a moment, or to be cancelled."""

    time: int
    query: Query
    adds: bool


@dataclass
class Pace:
    """Queries that close their windows together.

    Invariant: all windows up to `closed` are answered; what is `due` is due at or after it, in order.
    """

    monitor: Monitor
    slide: int | None
    closed: int = NEVER
    due: list[Due] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)  # of windows, by query
    ranked: TopKAcross | None = None  # only rows that name an object and a stream of this query go in

    def apply(self, due: Due, size: int) -> None:
        """Add or cancel now."""
        if due.adds:
            self.monitor.add(due.query)
            self.sizes[due.query.name] = size
        else:
            self.monitor.cancel(due.query.name)
            del self.sizes[due.query.name]

    @property
    def last_end(self) -> int:
        """No window that ends later has anything to report."""
        return max((lane.last_end() for lane in self.monitor._lanes if lane.timed), default=NEVER)

    @property
    def idle(self) -> bool:
        """Nothing is remembered that a later window could need."""
        return self.slide is not None and self.last_end <= self.closed


class LiveGroup:
    """State and answers of one group."""

    def __init__(self, terms: Terms, watermark: int, standing: Iterable[tuple[Query, int]]) -> None:
        self.terms = terms
        self.watermark = watermark
        self.paces: dict[Key, Pace] = {}
        self.open: list[pa.Table] = []
        self.late = self.skipped = 0
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
            pace.apply(due, self._size(due.query))
            self._tidy()
        else:
            pace.due.append(due)

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
            self.paces[key] = Pace(monitor, slide, closed, ranked=query if isinstance(query, TopKAcross) else None)
        return self.paces[key]

    def _at_once(self, pace: Pace) -> bool:
        return pace.slide is None and self.terms.at_once

    def _tidy(self) -> None:
        """Drop what has no query any more; what counts rows goes on counting."""
        for key, pace in list(self.paces.items()):
            if pace.slide is not None and not pace.due and not pace.monitor.queries:
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
                self.late += int(np.count_nonzero(times < pace.closed))
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
                pace.apply(due, self._size(due.query))
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
            kept = fitting(pace.ranked, rows)
            self.skipped += len(rows) - len(kept)
            rows = kept
        return self._named(key, pace, pace.monitor.push(rows))

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

    @property
    def candidates(self) -> int:
        """Rows held because they may still rank, open ones included."""
        lanes = [lane for pace in self.paces.values() for lane in pace.monitor._lanes]
        return sum(map(len, self.open)) + sum(lane.candidates for lane in lanes)

    def held(self) -> Iterator[tuple[str, int]]:
        """Every query asked now, with the rows that the structure which answers it holds."""
        return (one for pace in self.paces.values() for lane in pace.monitor._lanes for one in lane.held())

    # -- state ---------------------------------------------------------------------------------------------------

    def save(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """A JSON-able header and arrays."""
        arrays: dict[str, np.ndarray] = {}
        paces = []
        for number, (key, pace) in enumerate(self.paces.items()):
            pace.monitor.shrink()
            arrays[f"monitor.{number}"] = np.frombuffer(monitor_to_bytes(pace.monitor), np.uint8)
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


def fitting(query: TopKAcross, rows: pa.Table) -> pa.Table:
    """Of rows, those that name an object and one of the query's streams, with a value within its range or none: a running
    stream cannot refuse the others, as a `Monitor` does, and leaves them out."""
    known = pc.is_in(rows.column(query.stream), pa.array(list(query.streams)).cast(rows.schema.field(query.stream).type))
    keep = pc.and_(known, pc.is_valid(rows.column(query.key)))
    return rows.filter(_within(query, rows, keep)) if query.outside == "refuse" else rows.filter(keep)


def _within(query: TopKAcross, rows: pa.Table, keep: pa.ChunkedArray) -> pa.ChunkedArray:
    assert isinstance(query.ranges, dict)
    value = pc.cast(rows.column(query.value), pa.float64(), safe=False)
    for stream, (low, high) in query.ranges.items():
        other = pc.not_equal(rows.column(query.stream), pa.scalar(stream).cast(rows.schema.field(query.stream).type))
        inside = (
            pc.greater_equal(value, low) if high is None else pc.and_(pc.greater_equal(value, low), pc.less_equal(value, high))
        )
        unknown = pc.fill_null(pc.is_nan(value), True)
        keep = pc.and_(keep, pc.fill_null(pc.or_(pc.or_(other, inside), unknown), True))
    return keep
