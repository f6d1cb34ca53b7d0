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
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from skyband.spark import stateful
from skyband.spark.plan import Plan
from skyband.spark.reduce import TRAVELLING, reduced
from skyband.state import table_from_bytes

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
                key = tuple(part[f"g{i}"][0].as_py() for i in range(len(self.plan.groups)))
                by_group[key].append(part)
        for key, parts in by_group.items():
            table = pa.Table.from_batches(parts).select(list(TRAVELLING))
            self._call(key, [table.to_pandas()], watermark, timed_out=False)
        for key in [key for key, stored in self.store.items() if key not in by_group and 0 <= stored.timeout < watermark]:
            self._call(key, [pd.DataFrame(columns=list(TRAVELLING))], watermark, timed_out=True)
        self.greatest = max([self.greatest, *marks])

    def _call(self, key: Any, frames: list[pd.DataFrame], watermark: int, timed_out: bool) -> None:
        stored = self.store.get(key)
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
        for frame in stateful.answer_micro_batch(self.plan, iter(frames), state):
            assert len(frame) == 1
            answer = frame.iloc[0]
            for name in stateful.TALLIES:
                self.tallies[name] += int(answer[name])
            self.told.append(answer["told"])
            if answer["results"] is not None:
                self.results += [{**row, "group": key} for row in table_from_bytes(answer["results"]).to_pylist()]
        if state.exists:
            if state._updated or stored is None:
                self.store[key] = Stored(tuple(state.get), state._timeout_timestamp)
            else:
                self.store[key] = Stored(stored.value, state._timeout_timestamp)
        else:
            self.store.pop(key, None)


def batch_answer(plan: Plan, tasks: list[list[pa.RecordBatch]]) -> Iterator[dict[str, Any]]:
    """The same rows as a batch DataFrame: every window, at once."""
    by_group: dict[Any, list[pa.RecordBatch]] = defaultdict(list)
    for task in tasks:
        for part in reduced(plan, task):
            by_group[tuple(part[f"g{i}"][0].as_py() for i in range(len(plan.groups)))].append(part)
    for key, parts in by_group.items():
        for row in stateful.answer_batch(plan, pa.Table.from_batches(parts)).to_pylist():
            yield {**row, "group": key}
