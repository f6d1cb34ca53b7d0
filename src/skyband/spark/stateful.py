"""The stateful step: a group's state in, its rows of this micro-batch, answers and a new state out.

The state is one snapshot per group. A worker also keeps the groups it answered last in memory: every snapshot has a
random token, and a group in memory is used only when the state store holds the snapshot it wrote last. A task
that failed half-way, or ran elsewhere since, leaves a token that does not match, and the snapshot is read instead.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
import pyarrow as pa

from skyband.lanes import NEVER
from skyband.spark.group import Group, result_schema
from skyband.spark.plan import Plan
from skyband.spark.reduce import candidate_schema
from skyband.state import table_from_bytes, table_to_bytes

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.state import GroupState

Held = TypeVar("Held")

_MOST_REMEMBERED = 1 << 28  # bytes of snapshots whose groups a worker keeps in memory


class Memory(Generic[Held]):
    """What a worker holds between micro-batches, by the token of the snapshot it wrote last; the oldest go when their
    snapshots are too many bytes."""

    def __init__(self) -> None:
        self._held: OrderedDict[bytes, tuple[Held, int]] = OrderedDict()
        self._bytes = 0

    def put(self, token: bytes, held: Held, size: int) -> None:
        self._held[token] = (held, size)
        self._bytes += size
        while self._bytes > _MOST_REMEMBERED:
            _, (_, oldest) = self._held.popitem(last=False)
            self._bytes -= oldest

    def take(self, token: bytes) -> Held | None:
        """What wrote the snapshot; it is then no longer here."""
        held, size = self._held.pop(token, (None, 0))
        self._bytes -= size
        return held

    def clear(self) -> None:
        self._held.clear()
        self._bytes = 0


_remembered: Memory[Group] = Memory()


def tally_names(plan: Plan) -> list[str]:
    """The tallies of a group's answer, as columns."""
    names = ["rows", "null_times", "candidates", "bytes", *(f"late_{number}" for number in range(len(plan.paces)))]
    return names + [f"nulls_{number}_{score}" for number in range(len(plan.paces)) for score in range(plan.scores)]


def answer_micro_batch(plan: Plan, frames: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """Take one group's rows of a micro-batch, or its timeout; one row of results and tallies."""
    import pandas as pd

    group = _recalled(plan, state)
    watermark = _watermark(plan, state)
    results = group.advance(watermark)
    rows, counts = [candidate_schema(plan).empty_table()], [np.zeros((0, 3 + plan.scores), np.int64)]
    for frame in () if state.hasTimedOut else frames:
        for data, counted, latest in zip(frame["rows"], frame["counts"], frame["latest"], strict=True):
            if data is not None:
                rows.append(table_from_bytes(data))
                counts.append(np.frombuffer(counted, np.int64).reshape(-1, 3 + plan.scores))
                if latest > NEVER and plan.waits:
                    watermark = max(watermark, (int(latest) // plan.tick - plan.lateness) * plan.tick)
    answers, tally = group.add(pa.concat_tables(rows[1:] or rows), np.concatenate(counts))
    results += answers
    # a group's own rows show how far the stream's watermark is at least: their windows need not wait for the next batch
    results += group.advance(watermark)
    size = _remember(plan, group, state)
    packed = table_to_bytes(pa.concat_tables(results)) if results else None
    row = [packed, tally.rows, tally.null_times, group.candidates, size, *tally.late, *tally.nulls.reshape(-1)]
    yield pd.DataFrame([row], columns=["results", *tally_names(plan)])


def answer_batch(plan: Plan, parts: pa.Table) -> pa.Table:
    """All windows of one group's rows."""
    group = Group(plan)
    results: list[pa.Table] = []
    whole = [table_from_bytes(rows.as_buffer()) for rows in parts["rows"] if rows.is_valid]
    if whole:
        answers, _ = group.add(pa.concat_tables(whole), np.zeros((0, 3 + plan.scores), np.int64))
        results = answers + group.finish()
    return pa.concat_tables(results) if results else result_schema(plan).empty_table()


# -- time --------------------------------------------------------------------------------------------------------


def _watermark(plan: Plan, state: GroupState) -> int:
    """Spark's watermark in the time column's unit; NEVER before it has moved, or where the group's own rows tell."""
    moment = state.getCurrentWatermarkMs() if plan.wakes else 0
    return moment * plan.tick if moment > 0 else NEVER


def _set_timeout(plan: Plan, group: Group, state: GroupState) -> None:
    """Ask to be called when the watermark reaches the next window's end, whether or not rows come."""
    end = group.next_end() if plan.wakes else None
    if end is None:
        return
    reached = -(-end // plan.tick)  # the first whole millisecond at or past the end
    state.setTimeoutTimestamp(max(reached - 1, state.getCurrentWatermarkMs(), 1))  # Spark calls when the watermark is past it


# -- state -------------------------------------------------------------------------------------------------------


def _recalled(plan: Plan, state: GroupState) -> Group:
    """The group as the state store has it. It leaves memory until it is written again."""
    if not state.exists:
        return Group(plan)
    token, snapshot = state.get
    known = _remembered.take(bytes(token))
    if known is None or known.plan.marks != plan.marks:
        return Group.restore(plan, bytes(snapshot))  # which refuses the state of other queries
    return known


def _remember(plan: Plan, group: Group, state: GroupState) -> int:
    """Write the group to the state store, or forget it when nothing it holds can matter; the snapshot's bytes."""
    if group.is_idle and plan.wakes:  # what has closed is known from Spark's watermark then
        if state.exists:
            state.remove()
        return 0
    token, snapshot = os.urandom(16), group.snapshot()
    state.update((token, snapshot))
    _set_timeout(plan, group, state)
    _remembered.put(token, group, len(snapshot))
    return len(snapshot)
