"""Spark's part of the pipeline in plain Python: tasks, the shuffle, the watermark, state and timeouts.

Slow and small, so that Hypothesis can try thousands of streams. The two steps are the real ones; what stands between
them is in states.py. States are snapshots, or logs where the plan has them so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming.state import GroupState
from states import States, single

import skyband as sb
from skyband.spark import logged, stateful
from skyband.spark.plan import Plan
from skyband.spark.reduce import reduced

Rows = list[dict[str, Any]]


@dataclass
class Variables:
    """A state of two variables, as `Log` writes them: what Spark's ValueState and MapState do, for one key."""

    head: bytes | None = None
    values: dict[int, bytes] = field(default_factory=dict)

    def copy(self) -> Variables:
        return Variables(self.head, dict(self.values))

    def exists(self) -> bool:
        return self.head is not None

    def get(self) -> tuple[bytes | None]:
        return (self.head,)

    def update(self, value: tuple[bytes]) -> None:
        (self.head,) = value

    def getValue(self, key: tuple[int]) -> tuple[bytes]:
        return (self.values[key[0]],)

    def updateValue(self, key: tuple[int], value: tuple[bytes]) -> None:
        (self.values[key[0]],) = value

    def removeKey(self, key: tuple[int]) -> None:
        del self.values[key[0]]


@dataclass
class Cluster(States):
    """One streaming query."""

    logs: dict[Any, Variables] = field(default_factory=dict)
    results: Rows = field(default_factory=list)
    tallies: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    told: list[bytes] = field(default_factory=list)  # of queries, by every group called
    bounds: dict[str, float] = field(default_factory=dict)  # of the micro-batch, the worst of all groups
    kept = stateful.remembered

    def batch(self, tasks: list[list[pa.RecordBatch]]) -> None:
        """One micro-batch: what each task read."""
        sent: list[pa.Table] = []
        for frame in self.called(part for task in tasks for part in reduced(self.plan, task)):
            for name in stateful.TALLIES:
                self.tallies[name] += int(frame[name].sum())
            self.told += frame["told"].dropna().tolist()
            for at, name in enumerate(stateful.bound_columns(self.plan) if frame["told"].notna().any() else ()):
                of_objects = self.plan.inexact[at] in [query.name for query in self.plan.across]
                worst = min if of_objects else max
                self.bounds[name] = worst(self.bounds.get(name, float(of_objects)), float(frame[name].iloc[0]))
            sent.append(pa.table({"to": frame["to"], "results": pa.array(frame["results"], pa.binary())}))
        self.results += put_together(self.plan, sent)

    def key_of(self, part: pa.RecordBatch) -> tuple[Any, ...]:
        return key_of(self.plan, part)

    def answer(self, key: Any, frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        return stateful.answer_micro_batch(self.plan, frames, state, key)

    def _call(self, key: Any, frame: pd.DataFrame, *, timed_out: bool) -> Iterator[pd.DataFrame]:
        if not logged.is_logged(self.plan):
            yield from super()._call(key, frame, timed_out=timed_out)
            return
        if self.forgetful:
            self.kept.clear()
        variables = self.logs.get(key, Variables()).copy()  # a task that fails leaves the store as it was
        yield from list(logged.answer_logged(self.plan, iter([frame]), logged.Log(variables, variables), key))
        self.logs[key] = variables


def played(plan: Plan, forgetful: bool, batches: Iterable[list[list[pa.RecordBatch]]]) -> tuple[Cluster, int]:
    """A stream, then a micro-batch without data, in which timeouts fire; the cluster and its last watermark."""
    cluster = Cluster(plan, forgetful)
    for tasks in (*batches, []):
        cluster.batch(tasks)
    return cluster, plan.scale.time(cluster.watermark)


def as_counted(rows: Rows, arrival: bool, watermark: int | None) -> Rows:
    """Rows with t, tie and batch as windows of rows count them: by arrival at once, else by time as far as the watermark is
    (None: nothing waits)."""
    if arrival:
        return sorted(rows, key=lambda row: (0 if watermark is None else row["batch"], row["tie"]))
    passed = (row for row in rows if watermark is None or row["t"] < watermark)
    return sorted(passed, key=lambda row: (row["t"], row["tie"]))


def end_of(row: dict[str, Any], queries: Iterable[Any]) -> int:
    """The end of a result row's window, whose start must lie where the query says."""
    window = next(query.window for query in queries if query.name == row["query"])
    end, start = row["window_end"], row["window_start"]
    if end is None:
        end, start = row["window_end_time"], row["window_start_time"]
    assert start == (end - window.size if isinstance(window, sb.TimeWindow) else max(0, end - window.size))
    return end


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
        for part in single(reduced(plan, task)):
            by_group[key_of(plan, part)].append(part)
    sent = [stateful.answer_batch(plan, pa.Table.from_batches(parts), key) for key, parts in by_group.items()]
    yield from put_together(plan, sent)
