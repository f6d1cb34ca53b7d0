"""The windows of one group: rows wait until the watermark passes them, then a `Monitor` per pace answers.

Rows are handed on in the order of time, then tie, so the result does not depend on partitions or on where one
micro-batch ended and the next began.

    candidates ─► open ─► (slide closed) ─► Monitor of the pace ─► result rows
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.errors import StateError
from skyband.lanes import NEVER
from skyband.monitor import Monitor
from skyband.saving import monitor_from_bytes, monitor_to_bytes
from skyband.spark.plan import TIE, TIME, Pace, Plan, differences
from skyband.spark.reduce import NULL_TIMES, Array, candidates, rank_columns
from skyband.state import pack, table_from_bytes, table_to_bytes, unpack

_KIND = "group"
_REMEDY = (
    "the checkpoint was written by another version of skyband: go on with that one, or start with a new checkpointLocation, "
    "from an offset that is a window's length back, so that its windows fill again"
)
_AT_LEAST = 1 << 13  # open rows that are not worth sieving


class Tally(NamedTuple):
    """What became of rows that came: counted per pace, and unknown scores per pace and score."""

    rows: int
    null_times: int
    late: Array  # int64 per pace
    nulls: Array  # int64 per pace and score, late rows left out


class Group:
    """State and answers of one group.

    Invariant: every pace has answered all windows up to its `closed`; `open` holds the rows some pace has not seen.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        timed = TIME if plan.time is not None else None
        self.monitors = [Monitor(pace.queries, time=timed if pace.slide is not None else None) for pace in plan.paces]
        self.closed = [NEVER] * len(plan.paces)
        self.pending = [NEVER] * len(plan.paces)  # end of the last window that has something to report
        self.open: list[pa.Table] = []
        self.limit = _AT_LEAST
        self.names = result_schema(plan).names

    # -- rows ----------------------------------------------------------------------------------------------------

    def add(self, rows: pa.Table, counts: Array) -> tuple[list[pa.Table], Tally]:
        """Hold rows until their windows close; late ones are counted and left out.

        Gives the result rows of queries that need not wait. `counts` is what a task counted: see `reduce`.
        """
        tally = self._tally(counts)
        results: list[pa.Table] = []
        for number, pace in enumerate(self.plan.paces):
            if not len(rows):
                break
            if self._at_once(pace):
                ordered = rows.take(pa.array(np.argsort(rows[TIE].to_numpy(), kind="stable")))
                results += self._push(number, ordered)
            elif pace.slide is None:
                tally.late[number] += np.count_nonzero(rows[TIME].to_numpy() < self.closed[number])
        if self.plan.waits and len(rows):
            self.open.append(self._awaited(rows))
            self._sieve()
        return results, tally

    def _awaited(self, rows: pa.Table) -> pa.Table:
        """Of rows, those that some pace has yet to see."""
        closed = min(closed for closed, pace in zip(self.closed, self.plan.paces, strict=True) if not self._at_once(pace))
        return rows if closed == NEVER else rows.filter(pc.greater_equal(rows[TIME], closed))

    def _at_once(self, pace: Pace) -> bool:
        return pace.slide is None and self.plan.arrival

    def _sieve(self) -> None:
        """Keep of the open rows only those that can rank, when their number has doubled."""
        if sum(map(len, self.open)) <= self.limit or self.plan.counts_rows:
            return
        table = pa.concat_tables(self.open)
        places = candidates(self.plan, np.zeros(len(table), np.int64), *rank_columns(self.plan, table))
        self.open = [table if places is None else table.take(pa.array(places))]
        self.limit = 2 * len(self.open[0]) + _AT_LEAST

    def _tally(self, counts: Array) -> Tally:
        late = np.zeros(len(self.plan.paces), np.int64)
        nulls = np.zeros((len(self.plan.paces), self.plan.scores), np.int64)
        rows = null_times = 0
        for pace, number, count, *unknown in counts.tolist():
            if pace == NULL_TIMES:
                null_times += count
                continue
            rows += count if pace == 0 else 0
            slide = self.plan.paces[pace].slide
            if slide is not None and (number + 1) * slide <= self.closed[pace]:
                late[pace] += count
            else:
                nulls[pace] += unknown
        return Tally(rows + null_times, null_times, late, nulls)

    # -- time ----------------------------------------------------------------------------------------------------

    def advance(self, watermark: int) -> list[pa.Table]:
        """Answer every window whose end the watermark has reached."""
        results: list[pa.Table] = []
        if watermark == NEVER:
            return results
        opened = pa.concat_tables(self.open) if self.open else None
        for number, pace in enumerate(self.plan.paces):
            upto = watermark if pace.slide is None else watermark // pace.slide * pace.slide
            if self._at_once(pace) or upto <= self.closed[number]:
                continue
            results += self._close(number, opened, upto)
        if opened is not None:
            opened = self._awaited(opened)
            self.open = [opened] if len(opened) else []
        return results

    def _close(self, number: int, opened: pa.Table | None, upto: int) -> list[pa.Table]:
        pace, results = self.plan.paces[number], []
        if opened is not None:
            time = opened[TIME].to_numpy()
            ready = np.flatnonzero((time >= self.closed[number]) & (time < upto))
            if len(ready):
                order = np.lexsort((opened[TIE].to_numpy()[ready], time[ready]))
                results += self._push(number, opened.take(pa.array(ready[order])))
        if pace.slide is not None and self.pending[number] > self.closed[number]:
            results += self._flat(number, self.monitors[number].advance(min(upto, self.pending[number])))
        self.closed[number] = upto
        return results

    def _push(self, number: int, rows: pa.Table) -> list[pa.Table]:
        pace = self.plan.paces[number]
        if pace.slide is not None:
            last = int(rows[TIME][len(rows) - 1].as_py())
            emptied = ((last + max(pace.sizes.values())) // pace.slide + 1) * pace.slide
            self.pending[number] = max(self.pending[number], emptied)
        return self._flat(number, self.monitors[number].push(rows.drop_columns([TIE])))

    def finish(self) -> list[pa.Table]:
        """The stream has ended: answer every window that holds a row."""
        last = max((int(pc.max(table[TIME]).as_py()) for table in self.open), default=None)
        results: list[pa.Table] = []
        opened = pa.concat_tables(self.open) if self.open else None
        for number, pace in enumerate(self.plan.paces):
            if self._at_once(pace):
                continue
            if last is not None:
                after = last + 1 if pace.slide is None else (last // pace.slide + 1) * pace.slide
                results += self._close(number, opened, after)
            if pace.slide is not None:
                results += self._close(number, None, self.pending[number])
        self.open = []
        return results

    def next_end(self) -> int | None:
        """When the watermark reaches this, there is something to do; None: nothing waits."""
        ends: list[int] = []
        first = min((int(pc.min(table[TIME]).as_py()) for table in self.open), default=None)
        for number, pace in enumerate(self.plan.paces):
            if self._at_once(pace):
                continue
            if pace.slide is None:
                ends += [] if first is None else [first + 1]
                continue
            if self.pending[number] > self.closed[number]:
                ends.append(self.closed[number] + pace.slide)
            elif first is not None:
                ends.append((first // pace.slide + 1) * pace.slide)
        return min(ends, default=None)

    @property
    def is_idle(self) -> bool:
        """Nothing is remembered that a later window could need."""
        return self.next_end() is None and all(pace.slide is not None for pace in self.plan.paces)

    # -- results -------------------------------------------------------------------------------------------------

    def _flat(self, number: int, results: pa.Table) -> list[pa.Table]:
        """Result rows under the names of `result_schema`."""
        if not len(results):
            return []
        pace = self.plan.paces[number]
        end = results["window_end"].cast(pa.int64()).to_numpy()
        names = results["query"].combine_chunks().dictionary_encode()
        sizes = np.array([pace.sizes[name] for name in names.dictionary.to_pylist()], np.int64)
        start = end - sizes[names.indices.to_numpy()]
        counted = pace.slide is None
        if counted:
            start = np.maximum(start, 0)
        bounds = _bounds(self.plan, start, end, counted)
        rank = results["rank"].cast(pa.int32())
        columns = [results["query"], *bounds, results["event"], rank, results["score"]]
        return [pa.table([*columns, *(results[name] for name in self.plan.schema.names)], names=self.names)]

    @property
    def candidates(self) -> int:
        """Rows held because they may still rank, open ones included."""
        held = sum(map(len, self.open))
        for monitor in self.monitors:
            held += sum(lane.candidates for lane in monitor._lanes)
        return held

    def counted(self, tally: Tally) -> dict[str, tuple[int, int, int]]:
        """Late rows, nulls and candidates by query."""
        held = [{name: count for lane in one._lanes for name, count in lane.held()} for one in self.monitors]
        return {
            query.name: (tally.late[number], tally.nulls[number, self.plan.score_of(query)], held[number].get(query.name, 0))
            for number, pace in enumerate(self.plan.paces)
            for query in pace.queries
        }

    # -- state ---------------------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Everything remembered, in the format of `skyband.state`."""
        for monitor in self.monitors:
            monitor.shrink()
        header = {"marks": dict(self.plan.marks), "closed": self.closed, "pending": self.pending, "limit": self.limit}
        arrays = {f"monitor.{i}": np.frombuffer(monitor_to_bytes(one), np.uint8) for i, one in enumerate(self.monitors)}
        if self.open:
            arrays["open"] = np.frombuffer(table_to_bytes(pa.concat_tables(self.open)), np.uint8)
        return pack(_KIND, header, arrays)

    @classmethod
    def restore(cls, plan: Plan, data: bytes) -> Group:
        """What `snapshot` gave; StateError when it was made for other queries, or is of another format."""
        header, arrays = unpack(_KIND, data, _REMEDY)
        check_marks(header["marks"], plan)
        group = cls(plan)
        group.closed, group.pending, group.limit = header["closed"], header["pending"], header["limit"]
        group.monitors = [monitor_from_bytes(Monitor, arrays[f"monitor.{i}"].tobytes(), {}) for i in range(len(plan.paces))]
        if "open" in arrays:
            group.open = [table_from_bytes(arrays["open"].tobytes())]
        return group


def check_marks(then: Any, plan: Plan) -> None:
    """StateError when a checkpoint was written for other queries or columns."""
    changed = differences(then, plan.marks)
    if changed:
        raise StateError(
            f"this checkpoint was written for other queries: {changed}; start with a new checkpointLocation, "
            "or ask what was asked when it was written"
        )


def result_schema(plan: Plan) -> pa.Schema:
    """Columns of the flat result: the input's own come last, under their numbered names."""
    bounds = [pa.int64(), pa.int64(), plan.time_type, plan.time_type]
    if len(bound_names(plan)) == 2:
        bounds = bounds[:2] if plan.counts_rows else bounds[2:]
    fields = [("query", pa.string()), *zip(bound_names(plan), bounds, strict=True)]
    return pa.schema([*fields, ("event", pa.string()), ("rank", pa.int32()), ("score", pa.float64()), *plan.schema])


def bound_names(plan: Plan) -> list[str]:
    """Window bounds: of time or of counts; of both where queries of both kinds are asked."""
    if {pace.slide is None for pace in plan.paces} == {True, False}:
        return ["window_start", "window_end", "window_start_time", "window_end_time"]
    return ["window_start", "window_end"]


def time_bound(plan: Plan) -> str | None:
    """The column of window ends that are timestamps; None where there is none."""
    if not pa.types.is_timestamp(plan.time_type) or all(pace.slide is None for pace in plan.paces):
        return None
    return bound_names(plan)[-1]


def _bounds(plan: Plan, start: Array, end: Array, counted: bool) -> list[pa.Array]:
    kind = pa.int64() if counted else plan.time_type
    own = [pa.array(start).cast(kind), pa.array(end).cast(kind)]
    if len(bound_names(plan)) == 2:
        return own
    other = [pa.nulls(len(end), plan.time_type if counted else pa.int64())] * 2
    return own + other if counted else other + own
