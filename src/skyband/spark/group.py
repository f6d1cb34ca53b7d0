"""The windows of one state of a group: rows wait until the watermark passes them, then a `Monitor` per pace answers.

Rows are handed on in the order of time, then tie, so the result does not depend on partitions or, for rows within the
lateness, on where one micro-batch ended and the next began.

    candidates ─► open ─► (slide closed) ─► Monitor of the pace ─► result rows
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.lanes import NEVER
from skyband.layout import reading
from skyband.monitor import Monitor
from skyband.query import RankedQuery
from skyband.saving import monitor_from_bytes, monitor_to_bytes
from skyband.spark.candidate_rows import held_names, own_columns, rank_columns, score_name, sent_schema, whole_rows
from skyband.spark.flat import bounds_of, result_schema
from skyband.spark.marks import REMEDY, check_marks
from skyband.spark.paces import Pace, score_of
from skyband.spark.plan import TIE, TIME, Plan
from skyband.spark.reduce import NULL_TIMES, Array, candidates
from skyband.spark.tallies import Counted
from skyband.state import pack, table_from_bytes, table_to_bytes, unpack

_KIND = "group"
_AT_LEAST = 1 << 13  # open rows that are not worth sieving
TOGETHER = 1 << 27  # rows, times queries, that a monitor is given at once: each of thousands may answer each row


Own = TypeVar("Own", bound="Group")


class Tally(NamedTuple):
    """What became of rows that came: counted per pace, and unknown scores per pace and score."""

    rows: int
    null_times: int
    late: Array  # int64 per pace
    nulls: Array  # int64 per pace and slot (a score, or a query of another kind), late rows left out


class Group:
    """State and answers of one group: of the queries on score columns, and the counts of all rows.

    Invariant: every pace has answered all windows up to its `closed`; `open` holds the rows some pace has not seen.
    """

    monitor_class: type[Monitor] = Monitor
    time_name = TIME  # what monitors call the time

    def __init__(self, plan: Plan, paces: tuple[Pace, ...] | None = None) -> None:
        self.plan = plan
        self.paces = plan.paces if paces is None else paces
        self.monitors = [self._monitor(pace) for pace in self.paces]  # None: no query
        self.closed = [NEVER] * len(self.paces)
        self.pending = [NEVER] * len(self.paces)  # end of the last window that has something to report
        self.open: list[pa.Table] = []
        self.limit = _AT_LEAST
        self.waiting = [number for number, pace in enumerate(self.paces) if pace.queries and not self._at_once(pace)]

    def _monitor(self, pace: Pace) -> Monitor | None:
        timed = self.time_name if pace.slide is not None else None
        ranked = cast(tuple[RankedQuery, ...], pace.queries)
        held = [replace(query, score=score_name(self.plan, score_of(query))) for query in ranked]
        return self.monitor_class(held, time=timed) if held else None

    @property
    def marks(self) -> Mapping[str, str]:
        """What a checkpoint must agree with."""
        return self.plan.marks

    # -- rows ----------------------------------------------------------------------------------------------------

    def rows_of(self, pieces: Iterable[bytes | pa.Buffer]) -> pa.Table:
        """Rows as tasks sent them, together."""
        return whole_rows(self.plan, pa.concat_tables([sent_schema(self.plan).empty_table(), *map(table_from_bytes, pieces)]))

    def add(self, rows: pa.Table, counts: Array) -> Generator[pa.Table, None, Tally]:
        """Hold rows until their windows close; late ones are counted and left out.

        Gives the result rows of queries that need not wait, as they come. `counts` is what a task counted: see `reduce`.
        """
        tally = self._tally(counts)
        for number, pace in enumerate(self.paces):
            if not len(rows):
                break
            if not pace.queries or pace.slide is not None:
                continue
            if self._at_once(pace):
                yield from self._push_all(number, _in_order(rows))
            elif self._tells_late:
                tally.late[number] += np.count_nonzero(rows[TIME].to_numpy() < self.closed[number])
        if self.waiting and len(rows) and len(rows := self._awaited(rows)):
            self.open.append(rows)
            self._sieve()
        return tally

    @property
    def _tells_late(self) -> bool:
        """Is this the state that counts late rows of the pace that counts rows?"""
        return True

    def _awaited(self, rows: pa.Table) -> pa.Table:
        """Of rows, those that some pace has yet to see."""
        closed = min(self.closed[number] for number in self.waiting)
        if closed == NEVER or pc.min(rows[TIME]).as_py() >= closed:
            return rows
        return rows.filter(pc.greater_equal(rows[TIME], closed))

    def _at_once(self, pace: Pace) -> bool:
        return pace.slide is None and self.plan.arrival

    def _sieve(self) -> None:
        """Keep of the open rows only those that can rank, when their number has doubled."""
        if sum(map(len, self.open)) <= self.limit or self.plan.counts_rows:
            return  # with windows of rows every one has its place
        table = pa.concat_tables(self.open)
        places = candidates(self.plan, np.zeros(len(table), np.int64), *rank_columns(self.plan, table))
        self.open = [table if places is None else table.take(pa.array(places))]
        self.limit = 2 * len(self.open[0]) + _AT_LEAST

    def _tally(self, counts: Array) -> Tally:
        late = np.zeros(len(self.paces), np.int64)
        nulls = np.zeros((len(self.paces), self.plan.slots), np.int64)
        pace, slide_number, count, unknown = counts[:, 0], counts[:, 1], counts[:, 2], counts[:, 3:]
        rows, null_times = (int(count[pace == which].sum()) for which in (0, NULL_TIMES))
        for number, closed in enumerate(self.closed):
            slide, own = self.paces[number].slide, pace == number
            if slide is not None:
                is_late = own & (slide_number < closed // slide)
                late[number], own = count[is_late].sum(), own & ~is_late
            nulls[number] = unknown[own].sum(axis=0)
        return Tally(rows + null_times, null_times, late, nulls)

    # -- time ----------------------------------------------------------------------------------------------------

    def advance(self, watermark: int) -> Iterator[pa.Table]:
        """Answer every window whose end the watermark has reached: result rows, as they come."""
        if watermark == NEVER:
            return
        opened = pa.concat_tables(self.open) if self.open else None
        for number, pace in enumerate(self.paces):
            upto = watermark if pace.slide is None else watermark // pace.slide * pace.slide
            if self._at_once(pace) or upto <= self.closed[number]:
                continue
            yield from self._close(number, opened, upto)
        if opened is not None:
            opened = self._awaited(opened)
            self.open = [opened] if len(opened) else []

    def _close(self, number: int, opened: pa.Table | None, upto: int) -> Iterator[pa.Table]:
        pace, monitor = self.paces[number], self.monitors[number]
        if monitor is not None and opened is not None:
            time = opened[TIME].to_numpy()
            ready = np.flatnonzero((time >= self.closed[number]) & (time < upto))
            if len(ready):
                in_order = ready[_by_time(time[ready], opened[TIE], ready)]
                yield from self._push_all(number, opened.take(pa.array(in_order)))
        if monitor is not None and pace.slide is not None and self.pending[number] > self.closed[number]:
            yield from self._flat(number, monitor.advance(min(upto, self.pending[number])))
        self.closed[number] = upto

    def _push_all(self, number: int, rows: pa.Table) -> Iterator[pa.Table]:
        """Hand rows on, in their order, so many at once that their result rows fit into memory."""
        step = max(1, TOGETHER // len(self.paces[number].queries))
        for at in range(0, len(rows), step):
            yield from self._push(number, rows.slice(at, step))

    def _push(self, number: int, rows: pa.Table) -> list[pa.Table]:
        """Hand rows on, in their order."""
        self._note_pending(number, rows)
        monitor = self.monitors[number]
        assert monitor is not None
        return self._flat(number, monitor.push(rows.select(held_names(self.plan))))

    def _note_pending(self, number: int, rows: pa.Table) -> None:
        pace = self.paces[number]
        if pace.slide is not None and len(rows):
            last = int(rows[TIME][len(rows) - 1].as_py())
            self.pending[number] = max(self.pending[number], pace.emptied(last))

    def finish(self) -> Iterator[pa.Table]:
        """The stream has ended: answer every window that holds a row."""
        last = max((int(pc.max(table[TIME]).as_py()) for table in self.open), default=None)
        opened = pa.concat_tables(self.open) if self.open else None
        for number in self.waiting:
            slide = self.paces[number].slide
            if last is not None:
                after = last + 1 if slide is None else (last // slide + 1) * slide
                yield from self._close(number, opened, after)
            if slide is not None:
                yield from self._close(number, None, self.pending[number])
        self.open = []

    def next_end(self) -> int | None:
        """When the watermark reaches this, there is something to do; None: nothing waits."""
        ends: list[int] = []
        first = min((int(pc.min(table[TIME]).as_py()) for table in self.open), default=None)
        for number in self.waiting:
            slide = self.paces[number].slide
            if slide is None:
                ends += [] if first is None else [first + 1]
                continue
            if self.pending[number] > self.closed[number]:
                ends.append(self.closed[number] + slide)
            elif first is not None:
                ends.append((first // slide + 1) * slide)
        return min(ends, default=None)

    @property
    def is_idle(self) -> bool:
        """Nothing is remembered that a later window could need."""
        counting = any(pace.slide is None and pace.queries for pace in self.paces)
        return not (counting or self._closed_early) and self.next_end() is None

    @property
    def is_blank(self) -> bool:
        """No row has come, or none matters any more."""
        came = self.open or any(monitor is not None and monitor._seen for monitor in self.monitors)
        return self.is_idle or not (came or self._closed_early)

    @property
    def _closed_early(self) -> bool:
        """Windows were closed of which Spark's watermark says nothing, for they ended before it begins."""
        begins = self.plan.scale.time(0)
        return any(NEVER < closed <= begins for closed in self.closed)

    # -- results -------------------------------------------------------------------------------------------------

    def _flat(self, number: int, results: pa.Table) -> list[pa.Table]:
        """Result rows under the names of `result_schema`."""
        if not len(results):
            return []
        pace = self.paces[number]
        end = results["window_end"].cast(pa.int64()).to_numpy()
        bounds = bounds_of(self.plan, pace.sizes, results["query"], end, counted=pace.slide is None)
        rank = results["rank"].cast(pa.int32())
        columns = [results["query"], *bounds, results["event"], rank, results["score"]]
        schema = result_schema(self.plan)
        own = own_columns(self.plan, results)
        other = [pa.nulls(len(end), field.type) for field in list(schema)[len(columns) + len(own) :]]
        return [pa.table([*columns, *own, *other], names=schema.names)]

    @property
    def candidates(self) -> int:
        """Rows held because they may still rank, open ones included."""
        held = sum(map(len, self.open))
        for monitor in self.monitors:
            held += 0 if monitor is None else sum(lane.candidates for lane in monitor._lanes)
        return held

    def counted(self, tally: Tally) -> dict[str, Counted]:
        """What there is to say of queries: of all where rows are counted, of its own in a shard."""
        held: Counter[str] = Counter()
        size: Counter[str] = Counter()
        for monitor in self.monitors:
            for lane in () if monitor is None else monitor._lanes:
                for name, count, taken in lane.held():
                    held[self._asked(name)] += count
                    size[self._asked(name)] += taken
        found: dict[str, Counted] = {}
        unscored = self.take_nulls()
        for name, (number, unknown, refused) in self.plan.counts_of.items():
            late = int(tally.late[number])
            if late or name in held or self._tells_all:
                nulls = unscored.get(name)
                if unknown is not None:
                    nulls = int(tally.nulls[number, unknown]) + (nulls or 0)
                unfit = 0 if refused is None else int(tally.nulls[number, refused])
                found[name] = (late, nulls, held[name], unfit, size[name])
        return found

    _tells_all = True

    def take_nulls(self) -> Mapping[str, int]:
        """By query, rows without a score since the last call, where they are not counted next to the data."""
        return {}

    def _asked(self, name: str) -> str:
        """The name of the query that one of the monitors' belongs to."""
        return name

    def bounds(self) -> list[float]:
        """For each inexact query of the plan what the engine says of its answers: the share that is right, for one across
        streams, or how many rows that ranked were missed, at most. As good as exact for those that are not answered here."""
        across = {query.name for query in self.plan.across}
        said = {name: 1.0 if name in across else 0.0 for name in self.plan.inexact}
        for monitor in self.monitors if said else ():
            for lane in () if monitor is None else monitor._lanes:
                for at, member in enumerate(lane.members):
                    if member.query.name in said and member.query.name in across:
                        said[member.query.name] = 1.0 if lane.precision is None else lane.precision
                    elif member.query.name in said:
                        said[member.query.name] = lane.missed_at_most(at)
        return list(said.values())

    # -- state ---------------------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Everything remembered, in the format of `skyband.state`."""
        header = {"marks": dict(self.plan.marks), "closed": self.closed, "pending": self.pending, "limit": self.limit}
        arrays: dict[str, Array] = {}
        for number, monitor in enumerate(self.monitors):
            if monitor is not None:
                monitor.shrink()
                arrays[f"monitor.{number}"] = np.frombuffer(monitor_to_bytes(monitor, compress=False), np.uint8)
        if self.open:
            arrays["open"] = np.frombuffer(table_to_bytes(pa.concat_tables(self.open)), np.uint8)
        return pack(_KIND, header | self._more(arrays), arrays, compress=True)

    def _more(self, arrays: dict[str, Array]) -> dict[str, Any]:
        """What else is remembered: for the header, and added to `arrays`."""
        return {}

    @classmethod
    def restore(cls, plan: Plan, data: bytes) -> Group:
        """What `snapshot` gave; StateError when it was made for other queries."""
        return cls(plan).restored(data)

    def restored(self: Own, data: bytes) -> Own:
        """This group, which is new, as `snapshot` wrote it down."""
        header, arrays = unpack(_KIND, data, REMEDY)
        with reading("a group", REMEDY):
            check_marks(header["marks"], self.plan.marks)
            self.closed, self.pending, self.limit = header["closed"], header["pending"], header["limit"]
            for number, monitor in enumerate(self.monitors):
                if monitor is not None:
                    saved = arrays[f"monitor.{number}"].tobytes()
                    self.monitors[number] = monitor_from_bytes(self.monitor_class, saved, {})
            if "open" in arrays:
                self.open = [table_from_bytes(arrays["open"].tobytes())]
            self._take_more(header, arrays)
        return self

    def _take_more(self, header: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Take up what `_more` gave."""


def _by_time(time: Array, tie: pa.ChunkedArray, places: Array) -> Array:
    """The order of rows by their times, those of one time by their ties, which are at `places` of `tie`. Tasks send runs of
    rows in order; where no two have one time, sorting is almost nothing."""
    order = np.argsort(time, kind="stable")
    sorted_time = time[order]
    if (sorted_time[1:] == sorted_time[:-1]).any():
        order = np.lexsort((tie.to_numpy()[places], time))
    return order


def _in_order(rows: pa.Table) -> pa.Table:
    """Rows in the order of their ties. Tasks mostly send them so: then nothing is copied."""
    tie = rows[TIE].to_numpy()
    return rows if (tie[1:] >= tie[:-1]).all() else rows.take(pa.array(np.argsort(tie, kind="stable")))
