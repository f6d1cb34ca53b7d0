"""Queries of one group that close their windows together, while some come and others go."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from skyband.lanes import NEVER
from skyband.monitor import Monitor
from skyband.query import Query, TopKAcross

Key: TypeAlias = tuple[str, int | None, str]
"""Queries of one key share a monitor: about whom, slide (None: they count rows), and for objects the query itself."""


class Results(NamedTuple):
    """Result rows of one monitor: about whom, the table it gave, and the window sizes of its queries by name."""

    identity: str
    table: pa.Table
    sizes: dict[str, int]
    counted: bool
    key: str = ""  # of objects: the column that names them


@dataclass
class Counts:
    """What became of rows, by query."""

    late: Counter[str] = field(default_factory=Counter)  # left out because their slide had closed
    nulls: Counter[str] = field(default_factory=Counter)  # in time, and without a score
    refused: Counter[str] = field(default_factory=Counter)  # that a query across streams has no object, stream or range for

    def add(self, others: Counts) -> None:
        """These and others."""
        self.late.update(others.late)
        self.nulls.update(others.nulls)
        self.refused.update(others.refused)

    def names(self) -> list[str]:
        """Of the queries there is something to say of."""
        return [*self.late, *self.nulls, *self.refused]


class Due(NamedTuple):
    """A query to be added at a moment, or to be cancelled."""

    time: int
    query: Query
    adds: bool


@dataclass
class Pace:
    """Queries that close their windows together.

    Invariant: all windows up to `closed` are answered; what is `due` is due at or after it, in order.
    """

    monitor: Monitor
    slide: int | None
    closed: int = NEVER
    due: list[Due] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)  # of windows, by query
    ranked: TopKAcross | None = None  # only rows that name an object and a stream of this query go in

    def apply(self, due: Due, size: int) -> None:
        """Add or cancel now."""
        if due.adds:
            self.monitor.add(due.query)
            self.sizes[due.query.name] = size
            self.ranked = due.query if isinstance(due.query, TopKAcross) else None
        else:
            self.monitor.cancel(due.query.name)
            del self.sizes[due.query.name]

    @property
    def last_end(self) -> int:
        """No window that ends later has anything to report."""
        return max((lane.last_end() for lane in self.monitor._lanes if lane.timed), default=NEVER)

    @property
    def idle(self) -> bool:
        """Nothing is remembered that a later window could need."""
        return self.slide is not None and self.last_end <= self.closed
