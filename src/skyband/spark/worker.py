"""What a worker of Spark does once for a step, so that its later tasks are short.

After every task Spark's worker looks through all objects of the process for garbage, and the next task waits for it. Compiled
kernels, pandas and Arrow are some two hundred thousand objects that never become garbage: 65 ms a task, four tasks a
micro-batch. After the first task of a step they are told to the collector as permanent, and looking takes a millisecond.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from typing import TypeVar

_settled: set[str] = set()  # steps that this process has gone through

Item = TypeVar("Item")


def settling(step: str, made: Iterable[Item]) -> Iterator[Item]:
    """What a step makes; when it is through for the first time in this process, what it has loaded is never looked at again.

    What is alive then and later becomes garbage is still freed, unless it refers to itself: once a step and process, so that
    nothing grows.
    """
    yield from made
    if step not in _settled:
        _settled.add(step)
        gc.collect()
        gc.freeze()
