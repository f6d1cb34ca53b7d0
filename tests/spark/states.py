"""Spark's state store in plain Python: who is called in a micro-batch, with what, and what is kept of it.

Written after Spark's documented behaviour: the watermark moves between micro-batches, rows behind it are dropped by their
`mark`, a state without rows is called when the watermark has passed its timeout.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from skyband.spark.kept import Kept


@dataclass
class Stored:
    """An entry of the state store."""

    value: tuple[bytes, bytes]
    timeout: int


def single(parts: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows that travel, one by one."""
    return (part.slice(at, 1) for part in parts for at in range(part.num_rows))


@dataclass
class States:
    """The stateful step of one streaming query. `forgetful`: no worker keeps a state in memory, each is read from its bytes."""

    plan: Any  # or terms
    forgetful: bool = False
    store: dict[Any, Stored] = field(default_factory=dict)
    greatest: int = 0  # milliseconds
    kept: ClassVar[Kept[Any]]  # a worker's memory

    def key_of(self, part: pa.RecordBatch) -> Any:
        """Where a row that travels is going."""
        raise NotImplementedError

    def answer(self, key: Any, frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        """The step itself."""
        raise NotImplementedError

    @property
    def watermark(self) -> int:
        return max(0, self.greatest - self.plan.scale.delay)

    def called(self, parts: Iterable[pa.RecordBatch]) -> Iterator[pd.DataFrame]:
        """A micro-batch of rows that travel: what the states say that have some, then those whose time has come."""
        watermark, marks = self.watermark, [self.greatest]
        by_key: dict[Any, list[pa.RecordBatch]] = defaultdict(list)
        for part in single(parts):
            mark = part["mark"].cast(pa.int64())[0].as_py()
            if mark is not None:
                marks.append(mark // 1000)
                if self.plan.wakes and mark // 1000 <= watermark:
                    continue
            by_key[self.key_of(part)].append(part)
        for key, own in by_key.items():
            yield from self._call(key, pa.Table.from_batches(own).to_pandas(), timed_out=False)
        for key in [key for key, stored in self.store.items() if key not in by_key and 0 <= stored.timeout < watermark]:
            yield from self._call(key, pd.DataFrame(), timed_out=True)
        self.greatest = max(marks)

    def _call(self, key: Any, frame: pd.DataFrame, *, timed_out: bool) -> Iterator[pd.DataFrame]:
        stored = self.store.get(key)
        state = GroupState(
            optionalValue=stored.value if stored else None,
            batchProcessingTimeMs=0,
            eventTimeWatermarkMs=self.watermark,
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
            self.kept.clear()
        yield from self.answer(key, iter([frame]), state)
        if state.exists:
            value = tuple(state.get) if state._updated or stored is None else stored.value
            self.store[key] = Stored(value, state._timeout_timestamp)
        else:
            self.store.pop(key, None)
