"""A task's rows for the shards over the input's own columns: each shard is sent the rows that its queries can rank, once.

To a shard that counts rows every other row is sent too, as a place: its order, and nulls for columns. What of a row's order
stands in its own columns is not sent twice.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from skyband.query import TopKPairs
from skyband.scores.binding import column_values
from skyband.spark.contest import contest_of, lack
from skyband.spark.needs import ELSEWHERE, Contenders, Everything, emptied, judged
from skyband.spark.packets import packets
from skyband.spark.plan import PART, TIE, TIME, Plan
from skyband.spark.shards import Shard
from skyband.spark.ties import content_hashes

Array = np.ndarray
_FIRST = -(1 << 63)
TOGETHER = 1 << 17  # rows among which contenders are looked for


def shard_schema(plan: Plan, shard: Shard) -> pa.Schema:
    """Columns of the rows a shard is sent: time, tie, part, then those of the input it needs."""
    order = [pa.field(name, pa.int64()) for name in (TIME, TIE, PART)]
    return pa.schema([*order, *(plan.schema.field(i) for i in shard.columns)])


def sent_schema(plan: Plan, shard: Shard) -> pa.Schema:
    """The same without those of time, tie and part that `whole_rows` can tell from the others."""
    schema = shard_schema(plan, shard)
    if not isinstance(shard.need, Everything | Contenders):
        return schema  # some rows are places without columns
    told = {PART: True, TIME: plan.time is None or plan.time in shard.columns, TIE: plan.arrives in shard.columns}
    return pa.schema([field for field in schema if not told.get(field.name)])


def whole_rows(plan: Plan, shard: Shard, sent: pa.Table) -> pa.Table:
    """Rows with all columns of `shard_schema`."""
    schema = shard_schema(plan, shard)
    if sent.num_columns == len(schema):
        return sent
    return pa.table([_column(plan, sent, name) for name in schema.names], schema=schema)


def _column(plan: Plan, sent: pa.Table, name: str) -> pa.ChunkedArray | pa.Array:
    if name in sent.column_names:
        return sent[name]
    if name == TIE:
        return tie_of(sent[f"c{plan.arrives}"])
    if name == TIME and plan.time is not None:
        return sent[f"c{plan.time}"].cast(pa.int64())
    return pa.array(np.zeros(len(sent), np.int64))


def first_tie(plan: Plan, sent: pa.Table) -> int:
    """The tie of the first of some rows, without a look at the others."""
    first = sent[TIE if TIE in sent.column_names else f"c{plan.arrives}"][0]
    if not first.is_valid:
        return _FIRST
    return int(first.value if isinstance(first, pa.TimestampScalar) else first.as_py())


def tie_of(arrival: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """What a column of arrival says of rows of equal score and time; null comes first."""
    return arrival.cast(pa.int64()).fill_null(_FIRST)


def unknown_to(plan: Plan, rows: pa.Table) -> list[Array]:
    """For each query of pairs or across streams: which rows lack what it ranks by; then which those across streams refuse; then
    which lack a score for all queries of a shard that is sent contenders."""
    across = {query.name: judged(query, rows) for query in plan.across}
    found: list[Array] = []
    for query in plan.asked:
        if query.name in across:
            found.append(across[query.name].null)
        else:
            assert isinstance(query, TopKPairs)
            missing = np.zeros(len(rows), bool)
            for values in column_values(query.door.scored, rows).values():
                missing |= np.isnan(values)
            found.append(missing)
    refused = [one.refused for one in across.values()]
    return found + refused + [lack(rows, names) for names in plan.lacking.values()]


class Addressed:
    """What one task holds for each shard."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._pieces: list[list[tuple[Array, pa.Table]]] = [[] for _ in plan.shards]  # group numbers, and rows
        self._gathered: list[tuple[Array, pa.Table]] = []
        self._contests = any(isinstance(shard.need, Contenders) for shard in plan.shards)
        self._waiting: list[tuple[Array, pa.Table, Array, pa.Array | None]] = []  # groups, rows, times, ties
        self._waits = 0

    def take(self, rows: pa.Table, group: Array, time: Array, tie: pa.Array | None) -> int:
        """Keep what each shard is to be sent; how many rows that is. Without ties, shards are sent contenders only."""
        held = 0
        for shard, pieces in zip(self.plan.shards, self._pieces, strict=True):
            if isinstance(shard.need, Contenders):
                continue
            assert tie is not None
            part = shard.need.parts(rows, tie.to_numpy())
            own = [rows.column(i) for i in shard.columns]
            columns, numbers_of = [pa.array(time), tie, pa.array(part), *own], group
            away = part == ELSEWHERE
            if away.any():
                if shard.counts_rows:
                    columns[3:] = emptied(rows.select(shard.columns), away).columns
                else:
                    places = pa.array(np.flatnonzero(~away))
                    columns, numbers_of = [column.take(places) for column in columns], group[~away]
            if len(numbers_of):
                table = pa.table(columns, names=shard_schema(self.plan, shard).names)
                pieces.append((numbers_of, table.select(sent_schema(self.plan, shard).names)))
                held += len(numbers_of)
        if self._contests:
            self._waiting.append((group, rows, time, tie))
            self._waits += len(rows)
            if self._waits >= TOGETHER:
                held += self._choose()
        return held

    def _choose(self) -> int:
        """Of the rows that wait, keep the contenders of each shard; how many."""
        held = 0
        if not self._waiting:
            return held
        groups, rows, times, ties = zip(*self._waiting, strict=True)
        self._waiting, self._waits = [], 0
        whole, group, time = pa.concat_tables(rows), np.concatenate(groups), np.concatenate(times)
        for shard, pieces in zip(self.plan.shards, self._pieces, strict=True):
            if isinstance(shard.need, Contenders):
                keep = contest_of((self.plan.digest, shard.address), shard.paces).contenders(whole, group, time)
                if not keep.any():
                    continue  # not a row has a score
                chosen = whole.filter(pa.array(keep))
                if ties[0] is None:
                    tie = pa.array(content_hashes(chosen.columns, len(chosen)))
                else:
                    tie = pa.chunked_array(ties).filter(pa.array(keep))
                part = pa.array(np.zeros(len(chosen), np.int64))
                columns = [pa.array(time[keep]), tie, part, *chosen.select(shard.columns).columns]
                table = pa.table(columns, names=shard_schema(self.plan, shard).names)
                pieces.append((group[keep], table.select(sent_schema(self.plan, shard).names)))
                held += len(table)
        return held

    def gather(self) -> None:
        """Bring rows of a group together."""
        self._choose()
        self._gathered = []
        for shard, pieces in zip(self.plan.shards, self._pieces, strict=True):
            if not pieces:
                self._gathered.append((np.zeros(0, np.int64), sent_schema(self.plan, shard).empty_table()))
                continue
            group = np.concatenate([numbers_of for numbers_of, _ in pieces])
            table = pa.concat_tables([rows for _, rows in pieces])
            if group[0] != group[-1] or (group != group[0]).any():
                order = np.argsort(group, kind="stable")
                group, table = group[order], table.take(pa.array(order))
            self._gathered.append((group, table))

    def of_group(self, number: int) -> Iterator[tuple[int, bytes]]:
        """For each shard its address and the group's rows, in packets; at least one, perhaps empty."""
        for shard, (group, table) in zip(self.plan.shards, self._gathered, strict=True):
            low, high = (int(place) for place in np.searchsorted(group, (number, number + 1)))
            for rows in packets(table.slice(low, high - low)):
                yield shard.address, rows

    def clear(self) -> None:
        """Hold nothing."""
        self._pieces = [[] for _ in self.plan.shards]
        self._gathered = []
