"""Spark's part of the pipeline in plain Python: tasks, the shuffle, the watermark, state and timeouts.

Slow and small, so that Hypothesis can try thousands of streams. The two steps are the real ones; what stands between
them is written after Spark's documented behaviour: the watermark moves between micro-batches, rows behind it are
dropped by their `mark`, a group without rows is called when the watermark has passed its timeout.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from skyband.spark import stateful
from skyband.spark.plan import Plan
from skyband.spark.reduce import TRAVELLING, reduced

Rows = list[dict[str, Any]]


@dataclass
class Stored:
    """A group's entry in the state store."""

    value: tuple[bytes, bytes]
    timeout: int


@dataclass
class Cluster:
    """One streaming query. `forgetful`: no worker keeps a group in memory, every state is read from its bytes."""

    plan: Plan
    forgetful: bool = False
    store: dict[Any, Stored] = field(default_factory=dict)
    greatest: int = 0  # milliseconds
    results: Rows = field(default_factory=list)
    tallies: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    told: list[bytes] = field(default_factory=list)  # of queries, by every group called
    bounds: dict[str, float] = field(default_factory=dict)  # of the micro-batch, the worst of all groups

    @property
    def watermark(self) -> int:
        return max(0, self.greatest - self.plan.lateness)

    def batch(self, tasks: list[list[pa.RecordBatch]]) -> None:
        """One micro-batch: what each task read."""
        watermark, marks = self.watermark, []
        by_group: dict[Any, list[pa.RecordBatch]] = defaultdict(list)
        for task in tasks:
            for part in reduced(self.plan, task):
                assert part.num_rows == 1
                mark = part["mark"].cast(pa.int64())[0].as_py()
                if mark is not None:
                    marks.append(mark // 1000)
                    if self.plan.wakes and mark // 1000 <= watermark:
                        continue
                by_group[key_of(self.plan, part)].append(part)
        sent: list[pa.Table] = []
        for key, parts in by_group.items():
            table = pa.Table.from_batches(parts).select(list(TRAVELLING))
            sent += self._call(key, [table.to_pandas()], watermark, timed_out=False)
        for key in [key for key, stored in self.store.items() if key not in by_group and 0 <= stored.timeout < watermark]:
            sent += self._call(key, [pd.DataFrame(columns=list(TRAVELLING))], watermark, timed_out=True)
        self.results += put_together(self.plan, sent)
        self.greatest = max([self.greatest, *marks])

    def _call(self, key: Any, frames: list[pd.DataFrame], watermark: int, timed_out: bool) -> list[pa.Table]:
        sent, stored = [], self.store.get(key)
        state = GroupState(
            optionalValue=stored.value if stored else None,
            batchProcessingTimeMs=0,
            eventTimeWatermarkMs=watermark,
            timeoutConf=GroupStateTimeout.EventTimeTimeout if self.plan.wakes else GroupStateTimeout.NoTimeout,
            hasTimedOut=timed_out,
            watermarkPresent=self.plan.waits,
            defined=stored is not None,
            updated=False,
            removed=False,
            timeoutTimestamp=-1,  # Spark forgets a timeout before each call
            keyAsUnsafe=b"",
            valueSchema=None,
        )
        if self.forgetful:
            stateful._remembered.clear()
        for frame in stateful.answer_micro_batch(self.plan, iter(frames), state, key):
            for name in stateful.TALLIES:
                self.tallies[name] += int(frame[name].sum())
            self.told += frame["told"].dropna().tolist()
            for at, name in enumerate(stateful.bound_columns(self.plan)):
                of_objects = self.plan.inexact[at] in [query.name for query in self.plan.across]
                worst = min if of_objects else max
                self.bounds[name] = worst(self.bounds.get(name, float(of_objects)), float(frame[name].iloc[0]))
            sent.append(pa.table({"to": frame["to"], "results": pa.array(frame["results"], pa.binary())}))
        if state.exists:
            if state._updated or stored is None:
                self.store[key] = Stored(tuple(state.get), state._timeout_timestamp)
            else:
                self.store[key] = Stored(stored.value, state._timeout_timestamp)
        else:
            self.store.pop(key, None)
        return sent


def key_of(plan: Plan, part: pa.RecordBatch) -> tuple[Any, ...]:
    """The group's values, of which there may be none, and the shard's address, where there are shards."""
    group = [part[f"g{i}"][0].as_py() for i in range(len(plan.groups))]
    return (*group, part["shard"][0].as_py()) if plan.shards else tuple(group)


def put_together(plan: Plan, sent: list[pa.Table]) -> Rows:
    """What the stateful step sent, met by where it was sent."""
    if not sent:
        return []
    table, results = pa.concat_tables(sent), []
    for place in pc.unique(table["to"]):
        found = stateful.put_together(plan, table.filter(pc.equal(table["to"], place)))
        for row in found.to_pylist():
            own = [row[f"c{i}"] for i in plan.groups]
            if row.get("about"):
                own = [row[f"g{at}"] for at in range(len(plan.groups))]
            results.append({**row, "group": tuple(own)})
    return results


def batch_answer(plan: Plan, tasks: list[list[pa.RecordBatch]]) -> Iterator[dict[str, Any]]:
    """The same rows as a batch DataFrame: every window, at once."""
    by_group: dict[Any, list[pa.RecordBatch]] = defaultdict(list)
    for task in tasks:
        for part in reduced(plan, task):
            by_group[key_of(plan, part)].append(part)
    sent = [stateful.answer_batch(plan, pa.Table.from_batches(parts), key) for key, parts in by_group.items()]
    yield from put_together(plan, sent)
