"""How long results took, query by query: quantiles over what the last micro-batches emitted, sums over everything.

Two spans, both ending when the micro-batch was committed, so that its rows were in the sink:

    emit latency   from the micro-batch's trigger, when its rows were taken from the source; the same clock for any stream
    window delay   from the end of the earliest window it closed; timestamps only, and the age of the data when it is replayed
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from math import nan
from typing import NamedTuple

KEPT = 512
"""Micro-batches that quantiles are taken over: for each query the last that gave it results."""


MOST_QUERIES = 1 << 14
"""Queries whose figures are kept: those heard of last."""


class Quantiles(NamedTuple):
    """Seconds, NaN where nothing has been emitted; and all result rows since the start here, with their seconds added up."""

    p50: float
    p99: float
    rows: int
    seconds: float


class Sliding:
    """Quantiles over the last samples, each counted as often as it weighs. Adding costs O(1), asking O(n log n)."""

    def __init__(self, kept: int = KEPT) -> None:
        self._samples: deque[tuple[float, int]] = deque(maxlen=kept)
        self._rows = 0
        self._seconds = 0.0

    def add(self, seconds: float, weight: int) -> None:
        """A span that `weight` result rows took."""
        self._samples.append((seconds, weight))
        self._rows += weight
        self._seconds += weight * seconds

    def quantiles(self) -> Quantiles:
        """The smallest spans within which half of the rows came, and 99 of 100."""
        ordered = sorted(self._samples.copy())  # a copy: the listener's thread may add meanwhile
        total = sum(weight for _, weight in ordered)

        def within(share: int) -> float:
            reached = 0
            for seconds, weight in ordered:
                reached += weight
                if 100 * reached >= share * total:
                    return seconds
            return nan

        return Quantiles(within(50), within(99), self._rows, self._seconds)


@dataclass
class Latencies:
    """Both spans of every query that has emitted."""

    emit: dict[str, Sliding] = field(default_factory=dict)
    window: dict[str, Sliding] = field(default_factory=dict)

    def beside(self, others: Latencies) -> Latencies:
        """Those of these queries and of others."""
        return Latencies({**self.emit, **others.emit}, {**self.window, **others.window})

    def add(self, query: str, rows: int, emit: float, window: float | None) -> None:
        """A micro-batch gave a query `rows` result rows, `emit` seconds after its trigger, `window` after the window's end."""
        for spans, span in ((self.emit, emit), (self.window, window)):
            if span is not None:
                own = spans.pop(query, None) or Sliding()
                own.add(span, rows)
                spans[query] = own  # the last: queries that come and go by the thousand must not stay for ever
                if len(spans) > MOST_QUERIES:
                    del spans[next(iter(spans))]
