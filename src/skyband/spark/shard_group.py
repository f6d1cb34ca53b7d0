"""The windows of one shard of a group: `Monitor`s over the input's own columns.

Answers are result rows, or, where several shards share the work on a query, *parts*: the shard's own top of every window that
closed, and once more that of the window before, so that whoever puts parts together (merge.py) needs no memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.across_query import TopKAcross
from skyband.clock import Clock
from skyband.errors import SchemaError
from skyband.lanes import NEVER, NewestAcrossLane, Place
from skyband.monitor import Monitor
from skyband.query import Query
from skyband.spark.addressed import first_tie, shard_schema, whole_rows
from skyband.spark.flat import IDENTITIES, bounds_of, result_schema
from skyband.spark.group import Group
from skyband.spark.merge import PART_COLUMNS
from skyband.spark.needs import Contenders, Everything, holding_places
from skyband.spark.paces import Pace
from skyband.spark.plan import PART, RESERVED, TIE, TIME, Plan
from skyband.spark.shards import Shard, whole_name
from skyband.spark.tallies import take_nulls
from skyband.state import table_from_bytes, table_to_bytes

Array = np.ndarray
_HAPPENED = 5  # columns of a monitor's results before those that say who they are about


class _PartMonitor(Monitor):
    """A monitor of one shard of several: objects are told with how new they are."""

    def _place(self, query: Query, schema: pa.Schema, clock: Clock | None) -> Place:
        place = super()._place(query, schema, clock)
        return replace(place, lane=NewestAcrossLane) if isinstance(query, TopKAcross) else place


class ShardGroup(Group):
    """State and answers of one shard of a group.

    Invariant: `tops` has, by query, the part of the window that closed last; `told` its end.
    """

    time_name = RESERVED[0]

    def __init__(self, plan: Plan, shard: Shard) -> None:
        self.shard = shard
        if shard.merges:
            self.monitor_class = _PartMonitor
        super().__init__(plan, shard.paces)
        self.columns = [plan.names[i] for i in shard.columns]
        self.queries = {query.name: (number, query) for number, pace in enumerate(shard.paces) for query in pace.queries}
        self.tops: dict[str, pa.Table] = {}
        self.told: dict[str, int] = {}
        self.parts: dict[str, list[pa.Table]] = {}  # of windows that closed during this call
        self.values: pa.Table | None = None  # the group's values: one row
        self.refused = 0  # rows of this call with a key that cannot be taken

    def _monitor(self, pace: Pace) -> Monitor | None:
        timed = self.time_name if pace.slide is not None else None
        return self.monitor_class(pace.queries, time=timed, key=self.plan.key) if pace.queries else None

    @property
    def _tells_late(self) -> bool:
        return self.shard.tells

    _tells_all = False

    def take_nulls(self) -> Mapping[str, int]:
        if self.shard.identity != "row" or not isinstance(self.shard.need, Everything | Contenders):
            return {}  # not every row that may lack a score has been here
        found = Counter(dict.fromkeys(self.queries, 0))
        for monitor in self.monitors:
            found.update({} if monitor is None else take_nulls(monitor))
        return found

    def _asked(self, name: str) -> str:
        return whole_name(name) if self.shard.merges else name

    def _sieve(self) -> None:
        """Nothing is known of rows that could never rank."""

    # -- rows ----------------------------------------------------------------------------------------------------

    def rows_of(self, pieces: Iterable[bytes | pa.Buffer]) -> pa.Table:
        """Rows as tasks sent them, together, in the order of their first ties."""
        sent = [part for part in map(table_from_bytes, pieces) if len(part)]
        if not sent:
            return shard_schema(self.plan, self.shard).empty_table()
        sent.sort(key=lambda part: first_tie(self.plan, part))
        return whole_rows(self.plan, self.shard, pa.concat_tables(sent).combine_chunks())

    def _awaited(self, rows: pa.Table) -> pa.Table:
        rows = super()._awaited(rows)
        if any(self.paces[number].slide is None for number in self.waiting):
            return rows
        return rows.filter(pc.greater_equal(rows[PART], 0))  # places are of no use to windows of time

    def _push(self, number: int, rows: pa.Table) -> list[pa.Table]:
        counted = self.paces[number].slide is None
        if not counted:
            rows = rows.filter(pc.greater_equal(rows[PART], 0))
            if not len(rows):
                return []
        self._note_pending(number, rows)
        if self.values is None and self.plan.groups:
            known = rows.filter(pc.greater_equal(rows[PART], 0))
            self.values = known.select([f"c{i}" for i in self.plan.groups]).slice(0, 1) if len(known) else None
        if self.plan.deletes is not None:
            return self._push_and_delete(number, rows)
        monitor = self.monitors[number]
        assert monitor is not None
        return self._flat(number, monitor.push(self._named(rows, counted)))

    def _named(self, rows: pa.Table, counted: bool) -> pa.Table:
        """Rows as monitors know them: what is needed of time, tie and part, and the input's columns under their own names."""
        own = rows.select([f"c{i}" for i in self.shard.columns]).rename_columns(self.columns)
        order = rows.select([TIME, TIE, PART]).rename_columns(list(RESERVED)).select(self._inner(counted))
        if self.shard.identity == "object" and counted:
            (query,) = (query for _, query in self.queries.values() if isinstance(query, TopKAcross))
            own = holding_places(own, query)
        return pa.table([*order.columns, *own.columns], names=[*order.column_names, *own.column_names])

    def _inner(self, counted: bool) -> list[str]:
        """Which columns of ours monitors are given."""
        time, tie, _ = RESERVED
        if self.shard.identity == "pair":
            return list(RESERVED)
        return ([] if counted else [time]) + ([tie] if self.shard.identity == "object" else [])

    # -- deletions -----------------------------------------------------------------------------------------------

    def take_refused(self) -> int:
        """How many rows were left out since the last call."""
        refused, self.refused = self.refused, 0
        return refused

    def _push_and_delete(self, number: int, rows: pa.Table) -> list[pa.Table]:
        """Rows and deletions in their order. Each deletion is applied by itself: where a micro-batch ends between two of
        them must not be seen. Windows of time that end up to the time of one are answered before it."""
        monitor, key = self.monitors[number], self.plan.key
        assert monitor is not None and key is not None
        deletes = rows[f"c{self.plan.deletes}"].fill_null(False).to_numpy()
        times = None if self.paces[number].slide is None else rows[TIME].to_numpy()
        rows = self._named(rows, counted=times is None)
        results: list[pa.Table] = []
        cuts = np.flatnonzero(deletes)
        begin = 0
        for at in [*cuts.tolist(), len(rows)]:
            results += self._push_keyed(number, monitor, rows.slice(begin, at - begin))
            if at < len(rows) and rows[key][at].is_valid:
                if times is not None and _lags(monitor, times[at]):
                    results += self._flat(number, monitor.advance(int(times[at])))
                results += self._flat(number, monitor.delete(rows[key].slice(at, 1)))
            begin = at + 1
        return results

    def _push_keyed(self, number: int, monitor: Monitor, rows: pa.Table) -> list[pa.Table]:
        """Push rows; those without a key, or with that of a live row, are counted and left out. What is refused is halved until
        they are found: a few among many must not make every row a push of its own. What is live is asked when windows of time
        that end up to the row's have been answered: whether another group or micro-batch had them answered must not be seen."""
        if not len(rows):
            return []
        try:
            return self._flat(number, monitor.push(rows))
        except SchemaError:
            if len(rows) > 1:
                half = len(rows) // 2
                older = self._push_keyed(number, monitor, rows.slice(0, half))
                return older + self._push_keyed(number, monitor, rows.slice(half))
            if self.paces[number].slide is not None and _lags(monitor, time := rows[RESERVED[0]][0].as_py()):
                ended = self._flat(number, monitor.advance(time))
                return ended + self._push_keyed(number, monitor, rows)
            self.refused += 1
            return []

    # -- results -------------------------------------------------------------------------------------------------

    def _flat(self, number: int, results: pa.Table) -> list[pa.Table]:
        if not len(results):
            return []
        pace = self.paces[number]
        counted = pace.slide is None
        end = results["window_end"].cast(pa.int64()).to_numpy()
        found: dict[str, Any] = {}
        bounds = bounds_of(self.plan, pace.sizes, results["query"], end, counted=counted)
        happened = [results["query"], *bounds, results["event"], results["rank"].cast(pa.int32()), results["score"]]
        found |= self._about(results, len(self._inner(counted)))
        schema = result_schema(self.plan)
        names = schema.names[len(happened) :]
        others = [found.get(name, pa.nulls(len(end), schema.field(name).type)) for name in names]
        table = pa.table([*happened, *others], names=schema.names)
        if not self.shard.merges:
            return [table]
        self._note_parts(number, table, results, end)
        return []

    def _about(self, results: pa.Table, inner: int) -> dict[str, Any]:
        """The columns that say who result rows are about, under their flat names; `inner` columns are not the input's."""
        identity, columns = self.shard.identity, results.columns[_HAPPENED:]
        numbered = self.shard.columns
        if identity == "row":
            own = {f"c{i}": column for i, column in zip(numbered, columns[1 + inner :], strict=True)}
            return own | self._marked(len(results)) if self.plan.identities else own
        if identity == "object":
            (key,) = {query.key for _, query in self.queries.values() if isinstance(query, TopKAcross)}
            return {f"k{self.plan.names.index(key)}": columns[0], **self._marked(len(results))}
        half = len(columns) // 2
        sides = {"a": columns[1 + inner : half], "b": columns[half + 1 + inner :]}
        rows = {f"{side}{i}": column for side, own in sides.items() for i, column in zip(numbered, own, strict=True)}
        return rows | self._marked(len(results))

    def _marked(self, count: int) -> dict[str, Any]:
        """What results are about, and the group's values."""
        same = pa.array(np.zeros(count, np.int64))
        values = [] if self.values is None else [column.take(same) for column in self.values.columns]
        about = pa.array(np.full(count, IDENTITIES.index(self.shard.identity), np.int8))
        return {"about": about, **{f"g{at}": column for at, column in enumerate(values)}}

    # -- parts ---------------------------------------------------------------------------------------------------

    def _note_parts(self, number: int, table: pa.Table, results: pa.Table, end: Array) -> None:
        """Hold a shard's own tops until they are handed over: with what they are ranked by, besides the score."""
        order = self._order(number, results)
        columns = [*table.columns, pa.array(end), *(pa.array(column) for column in order)]
        whole = pa.table(columns, names=[*table.column_names, *PART_COLUMNS])
        for name in pc.unique(results["query"]).to_pylist():
            self.parts.setdefault(name, []).append(whole.filter(pc.equal(results["query"], name)))

    def _order(self, number: int, results: pa.Table) -> Array:
        """What tells of equal scores which ranks first: newest first."""
        counted = self.paces[number].slide is None
        if self.shard.identity == "object":
            monitor = self.monitors[number]
            assert monitor is not None
            (lane,) = monitor._lanes
            assert isinstance(lane, NewestAcrossLane)
            return np.vstack([lane.newest, np.zeros_like(lane.newest)])
        columns = results.columns[_HAPPENED:]
        half = len(columns) // 2
        nothing = np.zeros(len(results), np.int64)
        if counted:
            return np.stack([columns[0].to_numpy(), nothing, columns[half].to_numpy(), nothing])
        return np.stack([columns[at].to_numpy() for at in (1, 2, half + 1, half + 2)])

    def hand_over(self) -> Iterator[tuple[str, pa.Table]]:
        """By query, the parts of the windows that closed since the last call, after that of the window before them."""
        by_query: dict[str, list[pa.Table]] = {}
        for name, (number, query) in self.queries.items() if self.shard.merges else ():
            upto = self._closed(number, query)
            if upto == self.told.get(name, NEVER):
                continue
            fresh = [_marked_new(table, upto, True) for table in self.parts.get(name, [])]
            before = [_marked_new(self.tops[name], upto, False)] if name in self.tops else []
            by_query.setdefault(whole_name(name), []).extend(before + fresh)
            self.told[name] = upto
            self.tops.pop(name, None)
            if fresh:
                last = pa.concat_tables(self.parts[name])
                last = last.filter(pc.equal(last["end"], upto))
                if len(last):
                    self.tops[name] = last
        self.parts = {}
        for name, tables in by_query.items():
            if tables:
                yield name, pa.concat_tables(tables)

    def _closed(self, number: int, query: Query) -> int:
        """The end of the query's last window."""
        if self.paces[number].slide is not None:
            return self.closed[number]
        monitor = self.monitors[number]
        assert monitor is not None
        slide: Any = query.window.slide
        return monitor._seen // slide * slide

    # -- state ---------------------------------------------------------------------------------------------------

    def _more(self, arrays: dict[str, Array]) -> dict[str, Any]:
        held = {f"top.{name}": table for name, table in self.tops.items()}
        if self.values is not None:
            held["values"] = self.values
        arrays |= {name: np.frombuffer(table_to_bytes(table), np.uint8) for name, table in held.items()}
        return {"told": self.told, "address": self.shard.address}

    def _take_more(self, header: dict[str, Any], arrays: dict[str, Array]) -> None:
        self.told = header["told"]
        if "values" in arrays:
            self.values = table_from_bytes(arrays["values"].tobytes())
        tops = {name.removeprefix("top."): array for name, array in arrays.items() if name.startswith("top.")}
        self.tops = {name: table_from_bytes(array.tobytes()) for name, array in tops.items()}


def _lags(monitor: Monitor, time: int) -> bool:
    """Whether windows that end up to a time may not have been answered yet."""
    return monitor._seen > 0 and monitor._watermark < time


def _marked_new(part: pa.Table, upto: int, new: bool) -> pa.Table:
    """A part with the end of the last window that has closed, and whether its own has closed just now."""
    return part.append_column("upto", pa.array(np.full(len(part), upto))).append_column(
        "new", pa.array(np.full(len(part), new))
    )
