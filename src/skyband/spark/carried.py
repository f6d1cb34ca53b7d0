"""Plans on their way to the workers: compressed, opened once a process, whatever their size.

What a step refers to travels with it, to every task. Of thousands of queries that is megabytes, and Spark puts the whole step
into a broadcast; but the process in which it asks a stateful processor for its variables is never sent broadcasts, and the
stream ends there. So a plan that is too large for a step is a broadcast by itself, which a task looks for when it needs the
plan, and nobody before.
"""

from __future__ import annotations

import os
import pickle
import zlib
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from pyspark import cloudpickle

from skyband.spark.sessions import is_remote_session

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.core.broadcast import Broadcast

MOST_INSIDE = 1 << 19  # bytes that travel within a step: half of what Spark takes without a broadcast
_MOST_OPENED = 8  # that a worker remembers

Told = TypeVar("Told")


class Carried(Generic[Told]):
    """What workers are told, as a step refers to it."""

    def __init__(self, told: Told, spark: Any) -> None:
        """`spark`: the session; a client of Spark Connect has no broadcasts, and its server makes none of steps."""
        self._told = told
        self._token = os.urandom(16)
        self._context: SparkContext | None = None if is_remote_session(spark) else spark.sparkContext
        self._sent: Broadcast[bytes] | None = None

    def open(self) -> Told:
        """What workers are told."""
        return self._told

    def __reduce__(self) -> tuple[Any, ...]:
        data = zlib.compress(cloudpickle.dumps(self._told), 1)  # anew for each step: it says which broadcasts a step refers to
        if self._context is None or len(data) <= MOST_INSIDE:
            return _Arrived, (self._token, data, False)
        self._sent = self._sent or self._context.broadcast(data)
        return _Arrived, (self._token, pickle.dumps(self._sent), True)  # bytes within bytes: not looked for yet


class _Arrived(Generic[Told]):
    """The same in a worker: `data` is the plan, or the broadcast that it was sent as."""

    def __init__(self, token: bytes, data: bytes, sent: bool) -> None:
        self._token, self._data, self._sent = token, data, sent

    def open(self) -> Told:
        """What workers are told, as this one remembers it, or read anew."""
        told: Told | None = _opened.pop(self._token, None)
        if told is None:
            data = pickle.loads(self._data).value if self._sent else self._data
            told = cast(Told, pickle.loads(zlib.decompress(data)))
        _opened[self._token] = told
        while len(_opened) > _MOST_OPENED:
            _opened.popitem(last=False)
        return told


_opened: OrderedDict[bytes, Any] = OrderedDict()
