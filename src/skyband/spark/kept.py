"""What a state keeps from one micro-batch to the next: recalled when Spark calls it, written down after its answer.

The state store has one snapshot per state. A worker also keeps those it answered last in memory: every snapshot has a random
token, and what is in memory is used only when the state store holds the snapshot it wrote last. A task that failed half-way,
or ran elsewhere since, leaves a token that does not match, and the snapshot is read instead.

Every snapshot says what it was written for. With groups a micro-batch may touch only new ones, so one state is the *witness*:
every micro-batch calls it, and it stays when nothing is left in it, so that a checkpoint of other queries is refused at once.
It is then written once, not in every micro-batch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from pyspark.sql import DataFrame
from pyspark.sql.streaming.state import GroupStateTimeout
from pyspark.sql.types import BinaryType, StructField, StructType

from skyband.lanes import NEVER
from skyband.spark.memory import Memory
from skyband.state import whole_size

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.state import GroupState

    from skyband.spark.control.terms import Terms
    from skyband.spark.plan import Plan

_TOKEN, _BLANK = 16, 8  # bytes of a token; that of a witness in which nothing is left is shorter, and so can be told by it
_STORED = StructType([StructField("token", BinaryType()), StructField("snapshot", BinaryType())])


class Lasting(Protocol):
    """What a state holds."""

    @property
    def marks(self) -> Mapping[str, str]:
        """What it was made for."""

    @property
    def is_idle(self) -> bool:
        """Nothing is remembered that one made anew would not know."""

    @property
    def is_blank(self) -> bool:
        """No row has come, or none matters any more."""

    def next_end(self) -> int | None:
        """When the watermark reaches this, there is something to do; None: nothing waits."""

    def snapshot(self) -> bytes:
        """Everything remembered."""


Held = TypeVar("Held", bound=Lasting)


class Kept(Generic[Held]):
    """The states that one worker answers."""

    def __init__(self) -> None:
        self.memory: Memory[Held] = Memory()

    def recalled(self, told: Plan | Terms, state: GroupState, read: Callable[[bytes | None], Held]) -> Held:
        """What the state store has, by `read` where it is not in memory (None: it has nothing). It leaves memory until it is
        written again. `read` refuses the snapshot of another stream, and such a one is never taken from memory."""
        if not state.exists:
            return read(None)
        token, snapshot = state.get
        known = self.memory.take(bytes(token))
        return read(bytes(snapshot)) if known is None or known.marks != told.marks else known

    def written(self, told: Plan | Terms, held: Held, state: GroupState, *, witness: bool = False) -> int:
        """Write it to the state store, or forget it when nothing it holds can matter; the snapshot's bytes."""
        blank = witness and held.is_blank
        if blank and state.exists:
            token, snapshot = state.get
            if len(token) == _BLANK:  # what is there says the same
                self.memory.put(bytes(token), held, whole_size(bytes(snapshot)))
                return 0
        if held.is_idle and told.wakes and not witness:  # what has closed is known from Spark's watermark then
            if state.exists:
                state.remove()
            return 0
        token, snapshot = os.urandom(_BLANK if blank else _TOKEN), held.snapshot()
        state.update((token, snapshot))
        _set_timeout(told, held, state)
        self.memory.put(token, held, whole_size(snapshot))
        return 0 if blank else len(snapshot)

    def clear(self) -> None:
        """Hold nothing in memory."""
        self.memory.clear()


def _set_timeout(told: Plan | Terms, held: Lasting, state: GroupState) -> None:
    """Ask to be called when the watermark reaches the next window's end, whether or not rows come."""
    end = held.next_end() if told.wakes else None
    if end is not None:
        first = told.scale.reached(end) - 1  # Spark calls when it is past that
        state.setTimeoutTimestamp(max(first, state.getCurrentWatermarkMs(), 1))


def spark_watermark(told: Plan | Terms, state: GroupState) -> int:
    """Spark's watermark in the time column's unit: that of the micro-batch, the same for every state; NEVER before it has
    moved."""
    moment = state.getCurrentWatermarkMs() if told.waits else 0
    return told.scale.time(moment) if moment > 0 else NEVER


def shown_watermark(told: Plan | Terms, latest: int) -> int:
    """How far rows up to `latest` show the stream's watermark to be, at least: their windows need not wait for the next
    micro-batch."""
    return told.scale.shown(latest) if latest > NEVER and told.waits else NEVER


def watermarked(parts: DataFrame, told: Plan | Terms) -> DataFrame:
    """The same where rows wait: `mark` moves the watermark."""
    return parts.withWatermark("mark", f"{told.scale.delay} milliseconds") if told.waits else parts


def answered_by_state(
    parts: DataFrame,
    by: Iterable[str],
    told: Plan | Terms,
    answer: Callable[[Any, Iterable[pd.DataFrame], GroupState], Iterator[pd.DataFrame]],
    output: StructType,
) -> DataFrame:
    """`answer` for the rows of each state, which are brought together `by` columns."""
    # looking for timeouts costs a second round through Python in every micro-batch
    timeout = GroupStateTimeout.EventTimeTimeout if told.wakes else GroupStateTimeout.NoTimeout
    return watermarked(parts, told).groupBy(*by).applyInPandasWithState(answer, output, _STORED, "append", timeout)
