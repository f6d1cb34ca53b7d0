"""The stateful step: a group's state in, its rows of this micro-batch, answers and a new state out.

The state is one snapshot per group and shard (kept.py), or where that is the whole window, a log (logged.py).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from skyband.lanes import NEVER
from skyband.spark.flat import result_schema, time_bound
from skyband.spark.group import Group, Tally
from skyband.spark.kept import Kept, shown_watermark, spark_watermark
from skyband.spark.merge import PART_COLUMNS, merged
from skyband.spark.packets import packets
from skyband.spark.plan import Plan
from skyband.spark.shard_group import ShardGroup
from skyband.spark.tallies import Emitted, tell
from skyband.state import table_from_bytes

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.state import GroupState

TO = "to"  # the column by which parts of an answer meet
remembered: Kept[Group] = Kept()


TALLIES = ("rows", "null_times", "candidates", "bytes", "refused", "witness")
"""Sums of an answer, as columns; what belongs to one query is told by `skyband.spark.tallies`. `witness` is 1 from that state,
2 when no group is in it."""


MOST_PACKETS = 1 << 9
"""Packets that are handed to Spark at once: thousands of queries give millions of result rows."""

MOST_RESULTS = 1 << 20
"""Result rows that a state holds before it hands them to Spark."""


def bound_columns(plan: Plan) -> list[str]:
    """What is said of approximate answers, as columns of numbers."""
    return [f"bound_{at}" for at in range(len(plan.inexact))]


class Given(NamedTuple):
    """What a group gets in a micro-batch: all that its next state depends on, besides its last; and counts of the rows."""

    before: int  # the watermark, before the rows
    rows: list[bytes]  # as Arrow
    after: int  # the watermark that they move
    counts: np.ndarray  # see `reduce`


def answer_micro_batch(
    plan: Plan, frames: Iterable[pd.DataFrame], state: GroupState, key: tuple[Any, ...] = ()
) -> Iterator[pd.DataFrame]:
    """Take the rows of a micro-batch for one group and shard, or its timeout; rows of results, one with tallies, and one
    for each query whose answers are put together: `to` says with whose. `key`: the group's values, and the shard's address."""
    address = address_of(plan, key)
    group = remembered.recalled(plan, state, lambda snapshot: read_group(plan, address, snapshot))
    watermark = spark_watermark(plan, state) if plan.wakes else NEVER  # a single group's own rows tell
    given = gathered(plan, () if state.hasTimedOut else frames, watermark)
    witness = is_witness(plan, key)
    yield from answers(plan, group, given, key, lambda: remembered.written(plan, group, state, witness=witness))


def address_of(plan: Plan, key: tuple[Any, ...]) -> int:
    """The shard that a key means."""
    return int(key[-1]) if plan.shards else 0


def is_witness(plan: Plan, key: tuple[Any, ...]) -> bool:
    """Whether this is the state that every micro-batch calls: of groups, that of nulls, which pandas may have as NaN. No other
    key is NaN."""
    return (
        bool(plan.groups) and address_of(plan, key) == 0 and all(one is None or one != one for one in key[: len(plan.groups)])
    )


def gathered(plan: Plan, frames: Iterable[pd.DataFrame], watermark: int) -> Given:
    """What all tasks sent to one group and shard."""
    rows, counts, after = [], [np.zeros((0, 3 + plan.slots), np.int64)], watermark
    for frame in frames:
        for data, counted, latest in zip(frame["rows"], frame["counts"], frame["latest"], strict=True):
            if data is not None:
                rows.append(data)
                counts.append(np.frombuffer(counted, np.int64).reshape(-1, 3 + plan.slots))
                after = max(after, shown_watermark(plan, int(latest)))
    return Given(watermark, rows, after, np.concatenate(counts))


def take_up(group: Group, given: Given) -> Generator[pa.Table, None, Tally]:
    """The group goes on by a micro-batch, as far as its result rows are asked for."""
    yield from group.advance(given.before)
    tally = yield from group.add(group.rows_of(given.rows), given.counts)
    yield from group.advance(given.after)
    return tally


def answers(plan: Plan, group: Group, given: Given, key: tuple[Any, ...], write: Callable[[], int]) -> Iterator[pd.DataFrame]:
    """What to send where; `write` keeps the group's new state and tells its bytes. Result rows are sent as they come, the last
    with the tallies."""
    nothing: list[Any] = [None] + [0] * len(TALLIES)
    unknown = [None] * len(plan.inexact)
    emitted = Emitted(time_bound(plan))
    held: list[pa.Table] = []
    taking = _Taking(group, given)
    for table in taking:
        emitted.add(table)
        held.append(table)
        if sum(map(len, held)) >= MOST_RESULTS:
            yield from _frames(plan, ([_to_sink(key), data, *nothing, *unknown] for data in sliced(held)))
            held = []
    tally = taking.tally
    refused = group.take_refused() if isinstance(group, ShardGroup) else 0
    addressed = list(_addressed(group, held, key))
    told = tell(group.counted(tally), emitted)
    size = write()  # without the counts that were told
    witness = 1 + group.is_blank if is_witness(plan, key) else 0
    sums = [told, tally.rows, tally.null_times, group.candidates, size, refused, witness]
    bounds = group.bounds()
    yield from _frames(plan, ([*line, *(nothing if at else sums), *bounds] for at, line in enumerate(addressed)))


class _Taking:
    """Result rows of a micro-batch, as they come; its tally when there are no more."""

    tally: Tally

    def __init__(self, group: Group, given: Given) -> None:
        self._steps = take_up(group, given)

    def __iter__(self) -> Iterator[pa.Table]:
        self.tally = yield from self._steps


def _frames(plan: Plan, lines: Iterator[list[Any]]) -> Iterator[pd.DataFrame]:
    import pandas as pd

    while some := list(islice(lines, MOST_PACKETS)):
        yield pd.DataFrame(some, columns=[TO, "results", "told", *TALLIES, *bound_columns(plan)])


def answer_batch(plan: Plan, parts: pa.Table, key: tuple[Any, ...] = ()) -> pa.Table:
    """All windows of the rows of one group and shard: what to send where."""
    group = read_group(plan, address_of(plan, key))
    results: list[pa.Table] = []
    whole = [rows.as_buffer() for rows in parts["rows"] if rows.is_valid]
    if whole:
        results += group.add(group.rows_of(whole), np.zeros((0, 3 + plan.slots), np.int64))
        results += group.finish()
    to, data = zip(*_addressed(group, results, key), strict=True)
    return pa.table({TO: pa.array(to, pa.string()), "results": pa.array(data, pa.binary())})


def _addressed(group: Group, results: list[pa.Table], key: tuple[Any, ...]) -> Iterator[tuple[str, bytes | None]]:
    """Result rows, and parts of answers with those they are to be put together with."""
    for data in sliced(results):
        yield _to_sink(key), data
    if isinstance(group, ShardGroup):
        for name, part in group.hand_over():
            yield from ((f"parts {name!r} {key[:-1]!r}", data) for data in packets(part))


def _to_sink(key: tuple[Any, ...]) -> str:
    """Where result rows go that need not meet others."""
    return f"results {key!r}"


def sliced(results: list[pa.Table]) -> Iterator[bytes | None]:
    """Result rows in packets; where there are none, one None that says so."""
    whole = pa.concat_tables(results) if results else None
    if whole is None or not len(whole):
        yield None
    else:
        yield from packets(whole)


def put_together(plan: Plan, addressed: pa.Table) -> pa.Table:
    """The result rows of what was sent to one place: as they are, or parts merged."""
    tables = [table_from_bytes(data.as_buffer()) for data in addressed["results"] if data.is_valid]
    if not tables:
        return result_schema(plan).empty_table()
    return merged(plan, tables) if PART_COLUMNS[0] in tables[0].column_names else pa.concat_tables(tables)


def read_group(plan: Plan, address: int, snapshot: bytes | None = None) -> Group:
    """A group, or one shard of it, as a snapshot has it, or one that has seen nothing; StateError for that of other queries."""
    group = ShardGroup(plan, plan.by_address[address]) if address else Group(plan)
    return group if snapshot is None else group.restored(snapshot)
