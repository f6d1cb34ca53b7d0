"""A state as a log: what a micro-batch brought is written once, as an entry, and the group itself stays in the worker's memory.

Where a group's state is its whole window, writing a snapshot in every micro-batch costs more than answering it. Here a
snapshot is the first entry of the log, and each micro-batch appends one with the rows it brought. When the entries have
grown to several times the snapshot, or are many, the next micro-batch writes a snapshot instead and the others leave the
store: it holds a bounded multiple of the window, and a row is written little more than once.

    head ─► [snapshot] [rows] [rows] [rows]        every entry has a random token; the last one's is that of the group in memory

A worker that does not have the group (it is new, the task ran elsewhere, a micro-batch is tried again) takes the newest entry
whose group it remembers, or the snapshot, and takes up the entries after it, in order: a group's state depends on nothing
else. An entry that no head names is never read. Head and entries are in the format of `skyband.state`, with its version and
checksum; a large entry lies in several values.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from skyband.lanes import NEVER
from skyband.layout import reading
from skyband.spark.carried import Carried
from skyband.spark.group import Group
from skyband.spark.marks import REMEDY
from skyband.spark.plan import Plan
from skyband.spark.shard_group import ShardGroup
from skyband.spark.stateful import Given, address_of, answers, gathered, read_group, remembered, take_up
from skyband.spark.worker import settling
from skyband.state import pack, unpack

if TYPE_CHECKING:
    import pandas as pd

TIMES = 4  # the snapshot's bytes that entries may have before it is written anew
MOST_ENTRIES = 64
LEAST_BYTES = 1 << 16  # entries that are not worth a new snapshot, however small the last one was
MOST_BYTES = 1 << 26  # of one value in the store
_HEAD, _ENTRY = "head of a log", "entry of a log"


def is_logged(plan: Plan) -> bool:
    """Whether a plan's states are kept as logs: those of rows by many scores are windows. Groups have smaller ones, by far
    more of them, and wait for each other's time."""
    return not plan.groups and any(shard.identity == "row" for shard in plan.shards)


class One(Protocol):
    """One value in the store, as Spark's `ValueState` is."""

    def exists(self) -> bool: ...
    def get(self) -> Any: ...
    def update(self, value: tuple[bytes]) -> None: ...


class Numbered(Protocol):
    """Values by number, as in Spark's `MapState`."""

    def getValue(self, key: tuple[int]) -> Any: ...
    def updateValue(self, key: tuple[int], value: tuple[bytes]) -> None: ...
    def removeKey(self, key: tuple[int]) -> None: ...


@dataclass
class Entry:
    """Where an entry lies: values of consecutive numbers. `token` is that of the group after it."""

    token: str
    first: int
    values: int
    size: int


@dataclass
class Head:
    """The entries, oldest first; the first is a snapshot."""

    entries: list[Entry] = field(default_factory=list)

    @property
    def next(self) -> int:
        """The first number that no entry has."""
        return self.entries[-1].first + self.entries[-1].values if self.entries else 0

    @property
    def size(self) -> int:
        """Bytes of all entries."""
        return sum(entry.size for entry in self.entries)

    def takes(self, size: int) -> bool:
        """Whether another entry of so many bytes is better than a new snapshot."""
        if not self.entries or len(self.entries) > MOST_ENTRIES:
            return False
        snapshot = self.entries[0].size
        return self.size - snapshot + size <= max(TIMES * snapshot, LEAST_BYTES)


class Log:
    """The state of the group and shard whose key is set: Spark's two variables as one log."""

    def __init__(self, head: One, values: Numbered) -> None:
        self._head, self._values = head, values

    def head(self) -> Head:
        """Which entries there are."""
        if not self._head.exists():
            return Head()
        header, _ = unpack(_HEAD, bytes(self._head.get()[0]), REMEDY)
        with reading("a log's head", REMEDY):
            return Head([Entry(*entry) for entry in header["entries"]])

    def read(self, entry: Entry) -> bytes:
        """What an entry holds."""
        numbers = range(entry.first, entry.first + entry.values)
        return b"".join(bytes(self._values.getValue((number,))[0]) for number in numbers)

    def append(self, head: Head, data: bytes, token: str, *, alone: bool) -> Head:
        """The head with one more entry, written down; `alone`: all others leave the store."""
        pieces = [data[at : at + MOST_BYTES] for at in range(0, len(data), MOST_BYTES)]
        made = Entry(token, head.next, len(pieces), len(data))
        for number, piece in enumerate(pieces, made.first):
            self._values.updateValue((number,), (piece,))
        for entry in head.entries if alone else ():
            for number in range(entry.first, entry.first + entry.values):
                self._values.removeKey((number,))
        kept = Head([*([] if alone else head.entries), made])
        listed = [[entry.token, entry.first, entry.values, entry.size] for entry in kept.entries]
        self._head.update((pack(_HEAD, {"entries": listed}, {}),))
        return kept


def answer_logged(plan: Plan, frames: Iterable[pd.DataFrame], log: Log, key: tuple[Any, ...]) -> Iterator[pd.DataFrame]:
    """`stateful.answer_micro_batch` over a log."""
    head = log.head()
    group = _recalled(plan, head, log, address_of(plan, key))
    given = gathered(plan, frames, NEVER)  # without groups, rows themselves tell how far the watermark is
    yield from answers(plan, group, given, key, lambda: _remember(group, given, head, log))


def _recalled(plan: Plan, head: Head, log: Log, address: int) -> Group:
    """The group as the log has it. It leaves memory until its next entry is written."""
    if not head.entries:
        return read_group(plan, address)
    known, place = None, len(head.entries)
    while known is None and place > 0:
        place -= 1
        known = remembered.memory.take(bytes.fromhex(head.entries[place].token))
        known = known if known is not None and known.marks == plan.marks else None
    group = known or read_group(plan, address, log.read(head.entries[0]))  # which refuses the state of other queries
    for entry in head.entries[place + 1 :]:
        _catch_up(group, log.read(entry))
    return group


def _catch_up(group: Group, data: bytes) -> None:
    """Go through a micro-batch again; what it answered is known."""
    header, arrays = unpack(_ENTRY, data, REMEDY)
    rows = [array.tobytes() for array in arrays.values()]
    with reading("a log's entry", REMEDY):
        before, after = header["before"], header["after"]
    for _ in take_up(group, Given(before, rows, after, np.zeros((0, 3 + group.plan.slots), np.int64))):
        pass
    group.take_nulls()
    if isinstance(group, ShardGroup):
        group.take_refused()
        for _ in group.hand_over():
            pass


def _remember(group: Group, given: Given, head: Head, log: Log) -> int:
    """Write the micro-batch down, or the group; the bytes of all entries."""
    token = os.urandom(16)
    if head.takes(sum(map(len, given.rows))):
        arrays = {str(number): np.frombuffer(rows, np.uint8) for number, rows in enumerate(given.rows)}
        data = pack(_ENTRY, {"before": given.before, "after": given.after}, arrays)
        head = log.append(head, data, token.hex(), alone=False)
    else:
        head = log.append(head, group.snapshot(), token.hex(), alone=True)
    remembered.memory.put(token, group, head.entries[0].size)
    return head.size


class Logged(StatefulProcessor):  # type: ignore[misc]
    """What Spark calls: one object a task, in every micro-batch anew."""

    def __init__(self, carried: Carried[Plan]) -> None:
        self.carried = carried

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the variables of a state."""
        self.log = Log(handle.getValueState("head", "head binary"), handle.getMapState("log", "number long", "value binary"))

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        """A micro-batch of one shard."""
        return settling("log", answer_logged(self.carried.open(), rows, self.log, key))

    def close(self) -> None:
        """Nothing is open."""
