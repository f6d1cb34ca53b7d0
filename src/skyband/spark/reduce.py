"""Next to the data: a task's rows become the few that can rank, and counts of all of them.

Of the rows of one group and pane only the best k can ever rank, whatever else the stream holds. What travels is a row or
several per group: its candidates as Arrow bytes, and how many rows and unknown scores each slide had, so that late rows
are counted even where they were dropped here. Each shard over the input's own columns is sent some more: the rows that
its queries can rank (addressed.py), perhaps none, and the greatest time, so that all shards of a group close their windows in
the same micro-batch. Where there are groups that of nulls is sent a row without content in every micro-batch, because it keeps
what the checkpoint was written for. One more row carries the greatest time of the task, which moves the watermark; it is apart
from the others because Spark drops rows behind the watermark, and a row behind it whose slide is still open must count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from skyband.algorithms.contract import read_only
from skyband.lanes import NEVER
from skyband.spark.addressed import Addressed, tie_of, unknown_to
from skyband.spark.arriving import as_keys, conformed, key_type
from skyband.spark.candidate_rows import rank_columns, score_of, sent_schema, time_of, whole_rows
from skyband.spark.packets import packets
from skyband.spark.plan import TIE, Plan
from skyband.spark.ties import content_hashes
from skyband.spark.watermark import Times

MOST_HELD = 1 << 20  # candidates in memory before they are sent on
MOST_ROWS = 1 << 9  # that travel as one batch
NULL_TIMES = -1  # in place of a pace: rows without a time
_WITNESS = -1  # in place of a group's number: that of nulls, which hears of every micro-batch; see `kept`

TRAVELLING = {
    "mark": pa.timestamp("us", "UTC"),  # the greatest time of a task, in a row of its own
    "latest": pa.int64(),  # the greatest time of the group's rows, dropped ones included; never null, which pandas would round
    "rows": pa.binary(),  # candidates, as Arrow
    "counts": pa.binary(),  # int64: pace, slide number, rows, unknown scores per slot; empty for shards but shard 0
}
"""What follows the group's columns in a reduced row."""

Array = np.ndarray


def reduced(plan: Plan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The map step: batches with columns c*, s*, m*, perhaps tie, in; rows of group columns and TRAVELLING out."""
    task = _Task(plan)
    for batch in batches:
        if batch.num_rows:
            task.take(conformed(batch, plan.schema))
            if task.held > MOST_HELD:
                yield from task.give()
    task.times.check()
    yield from task.give()


class _Line(NamedTuple):
    """One row that travels: its group and shard, then TRAVELLING."""

    group: int
    shard: int
    mark: int | None
    latest: int
    rows: bytes | None
    counts: bytes | None


class _Task:
    """What one task holds on to while its batches pass."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.groups = _GroupNumbers(plan)
        self.times = Times(plan.scale, waits=plan.waits)
        self.sent = sent_schema(plan)
        self.pieces: list[pa.Table] = []  # candidates, without a tie where it is a hash that few of them need
        self.numbers: list[Array] = []  # their group numbers
        self.counts: list[Array] = []  # rows of: group, pace, slide number, rows, unknown scores per score
        self.latest: dict[int, int] = {}  # the greatest time of each group
        self.addressed = Addressed(plan)
        self.held = 0

    def take(self, batch: pa.RecordBatch) -> None:
        """Keep what can rank, count the rest."""
        plan = self.plan
        group = self.groups.number(batch)
        if plan.time is not None:
            known = self.times.countable(batch.column(f"c{plan.time}"))
            if known is not None:
                self._count_null_times(group[~known])
                group, batch = group[known], batch.filter(pa.array(known))
                if not len(group):
                    return
        time = time_of(plan, batch).to_numpy()
        if plan.time is not None:
            self._note_latest(group, time)
        scores = [score_of(plan, batch, i).to_numpy() for i in range(plan.scores)]
        own = [batch.column(name) for name in plan.schema.names]
        tie = given_tie(plan, batch)
        if tie is None and plan.ties_all:
            tie = pa.array(content_hashes(own, len(group)))
        unknown = [
            batch.column(f"m{i}").to_numpy(zero_copy_only=False) if plan.filtered[i] else np.isnan(scores[i])
            for i in range(plan.scores)
        ]
        if plan.shards:
            everything = pa.table(own, names=plan.names)
            unknown += unknown_to(plan, everything)
            self.held += self.addressed.take(everything, group, time, tie)
        ties = None if tie is None else tie.to_numpy()
        places = candidates(plan, group, time, ties, scores, lambda cells: self._count(cells, group, unknown))
        sent = [name for name in self.sent.names if name != TIE]
        table = pa.table([batch.column(name) for name in sent], names=sent)
        if tie is not None and TIE in self.sent.names:
            table = table.add_column(0, TIE, tie)
        if places is not None:
            table, group = table.take(pa.array(places)), group[places]
        self.pieces.append(table)
        self.numbers.append(group)
        self.held += len(group)

    def _count(self, cells: Cells, group: Array, unknown: list[Array]) -> None:
        """Note how many rows, and unknown scores, each group and slide of a pace has."""
        pace = self.plan.paces[cells.pace]
        first = np.zeros(cells.total, np.int64)  # a row of each cell
        first[cells.of_row] = np.arange(len(group))
        counts = np.zeros((cells.total, 4 + len(unknown)), np.int64)
        counts[:, 0], counts[:, 1] = group[first], cells.pace
        counts[:, 2] = cells.pane[first] // (len(pace.cuts) + 1)
        counts[:, 3] = np.bincount(cells.of_row, minlength=cells.total)
        for i, missing in enumerate(unknown):
            if missing.any():
                counts[:, 4 + i] = np.bincount(cells.of_row, missing, cells.total)
        self.counts.append(counts)

    def _note_latest(self, group: Array, time: Array) -> None:
        if len(self.groups) == 1:
            latest = {0: int(time.max())}
        else:
            greatest = np.full(len(self.groups), NEVER)
            np.maximum.at(greatest, group, time)
            latest = {number: int(greatest[number]) for number in np.flatnonzero(greatest > NEVER).tolist()}
        for number, moment in latest.items():
            self.latest[number] = max(self.latest.get(number, NEVER), moment)

    def _count_null_times(self, group: Array) -> None:
        numbers, rows = np.unique(group, return_counts=True)
        counts = np.zeros((len(numbers), 4 + self.plan.slots), np.int64)
        counts[:, 0], counts[:, 1], counts[:, 3] = numbers, NULL_TIMES, rows
        self.counts.append(counts)

    def give(self) -> Iterator[pa.RecordBatch]:
        """Everything held; holds nothing afterwards."""
        lines = self._lines()
        while some := list(islice(lines, MOST_ROWS)):
            groups = zip(*(self.groups.values(line.group) for line in some), strict=True)
            columns = [pa.concat_arrays(values) for values in groups]
            columns += [pa.array([line.shard for line in some], pa.int32())] if self.plan.shards else []
            columns += [pa.array([getattr(line, name) for line in some], kind) for name, kind in TRAVELLING.items()]
            yield pa.record_batch(columns, names=[*self.plan.group_types, *TRAVELLING])

    def _lines(self) -> Iterator[_Line]:
        """The rows of each group and shard, then the mark."""
        if not self.counts:
            return
        table, group = self._joined()
        counts = np.concatenate(self.counts)
        counts = counts[np.argsort(counts[:, 0], kind="stable")]
        self.addressed.gather()
        rows_of = np.searchsorted(group, np.arange(len(self.groups) + 1))
        counts_of = np.searchsorted(counts[:, 0], np.arange(len(self.groups) + 1))
        if self.plan.groups:
            yield _Line(_WITNESS, 0, None, NEVER, None, None)
        for number in np.unique(counts[:, 0]).tolist():
            own = summed(counts[counts_of[number] : counts_of[number + 1], 1:]).tobytes()
            low, high = int(rows_of[number]), int(rows_of[number + 1])
            latest = self.latest.get(number, NEVER)
            for rows in packets(table.slice(low, high - low)):
                yield _Line(number, 0, None, latest, rows, own)
                own = b""
            for address, rows in self.addressed.of_group(number):
                yield _Line(number, address, None, latest, rows, b"")
        if self.latest and self.plan.waits:
            mark = self.plan.scale.mark(max(self.latest.values())) * 1000
            yield _Line(int(counts[0, 0]), 0, mark, NEVER, None, None)
        self.pieces, self.numbers, self.counts, self.latest, self.held = [], [], [], {}, 0
        self.addressed.clear()

    def _joined(self) -> tuple[pa.Table, Array]:
        """All candidates, sieved once more where they came in pieces or without their ties, those of a group together."""
        table = pa.concat_tables(self.pieces) if self.pieces else self.sent.empty_table()
        if TIE in self.sent.names and TIE not in table.column_names:
            own = [table[name] for name in self.plan.schema.names]
            table = table.add_column(0, TIE, pa.array(content_hashes(own, len(table))))
        group = np.concatenate([np.zeros(0, np.int64), *self.numbers])
        order: Array | None = None
        if self.pieces:
            order = candidates(self.plan, group, *rank_columns(self.plan, whole_rows(self.plan, table)))
        if len(self.groups) > 1:
            order = np.arange(len(group)) if order is None else order
            order = order[np.argsort(group[order], kind="stable")]
        return (table, group) if order is None else (table.take(pa.array(order)), group[order])


def given_tie(plan: Plan, batch: pa.RecordBatch) -> pa.Array | None:
    """What of equal scores and times tells rows apart; None: a hash of their content, which is yet to be computed."""
    if plan.arrives is not None:
        return tie_of(batch.column(f"c{plan.arrives}"))
    return batch.column(TIE) if TIE in batch.schema.names else None


class Cells(NamedTuple):
    """The rows of one group and pane, for all groups and panes of a pace."""

    pace: int
    total: int
    of_row: Array  # the cell of each row
    pane: Array  # the pane of each row


def candidates(
    plan: Plan, group: Array, time: Array, tie: Array | None, scores: list[Array], heard: Callable[[Cells], None] | None = None
) -> Array | None:
    """Places of the rows that can rank, increasing; None when all must be kept. `heard` is told of each pace's cells. Without
    ties, all rows are kept that some of them would let rank."""
    from skyband.kernels.cells import Keys, keep_best, keep_level, number_cells, number_panes

    keep = np.zeros(len(group), bool)
    pane, cell = np.zeros(len(group), np.int64), np.empty(len(group), np.int64)
    group, time = read_only(group), read_only(time)
    last = time if tie is None else read_only(tie)  # rows of equal time are then equal
    turned: dict[tuple[int, bool], Array] = {}
    for number, pace in enumerate(plan.paces):
        if pace.slide is None:
            pane[:] = 0
        else:
            number_panes(time, pace.slide, read_only(np.array(pace.cuts, np.int64)), pane)
        cells = number_cells(group, read_only(pane), cell)
        if heard is not None:
            heard(Cells(number, cells, cell, pane))
        for sieve in () if plan.counts_rows else pace.sieves:
            way = (sieve.score, sieve.ascending)
            if way not in turned:
                turned[way] = read_only(-scores[sieve.score] if sieve.ascending else scores[sieve.score])
            if sieve.above is not None:
                keep |= turned[way] > (-sieve.above if sieve.ascending else sieve.above)
            else:
                keys = Keys(turned[way], time, last)
                worst = keep_best(read_only(cell), cells, keys, sieve.k, keep)
                if tie is None:
                    keep_level(read_only(cell), read_only(worst), keys, keep)
    return None if plan.counts_rows else np.flatnonzero(keep)


def summed(counts: Array) -> Array:
    """Counts with the rows of one pace and slide added up."""
    keys, place = np.unique(counts[:, :2], axis=0, return_inverse=True)
    total = np.zeros((len(keys), counts.shape[1]), np.int64)
    total[:, :2] = keys
    np.add.at(total[:, 2:], place.reshape(-1), counts[:, 2:])
    return total


class _GroupNumbers:
    """Numbers the groups a task meets, in order of appearance."""

    def __init__(self, plan: Plan) -> None:
        self.columns = plan.groups
        self._nulls = [pa.nulls(1, key_type(plan.schema.field(i).type)) for i in plan.groups]
        self._known: dict[Any, int] = {}
        self._values: list[list[pa.Array]] = []  # a value of each group column, by group number

    def __len__(self) -> int:
        return max(1, len(self._values))

    def number(self, batch: pa.RecordBatch) -> Array:
        """The group number of every row."""
        if not self.columns:
            return np.zeros(batch.num_rows, np.int64)
        own = [as_keys(batch.column(f"c{i}")) for i in self.columns]
        code = np.zeros(batch.num_rows, np.int64)
        for column in own:
            encoded = column.dictionary_encode(null_encoding="encode")
            code = code * len(encoded.dictionary) + encoded.indices.to_numpy()
            _, code = np.unique(code, return_inverse=True)
        _, first, code = np.unique(code, return_index=True, return_inverse=True)
        numbers = np.empty(len(first), np.int64)
        for at, place in enumerate(first.tolist()):
            key = tuple(column[place].as_py() for column in own)
            if key not in self._known:
                self._known[key] = len(self._values)
                self._values.append([column.take(pa.array([place])) for column in own])
            numbers[at] = self._known[key]
        return numbers[code.reshape(-1)]

    def values(self, number: int) -> list[pa.Array]:
        """The group's key, a value for each group column."""
        if number == _WITNESS:
            return self._nulls
        return self._values[number] if self.columns else [pa.array([0], pa.int32())]
