"""What a group says of each query after a micro-batch, and what all groups said, put together.

One compressed text a group instead of columns: thousands of queries would be thousands of sums for Spark to compile.
It travels as an observed metric, so the driver hears it with the micro-batch's progress and nothing else is run for it.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from skyband.monitor import Monitor

BY_QUERY = "by query"
"""The observed metric that holds the texts of all groups."""

RESULTS, OLDEST = "results ", "oldest "
"""Begin the names of observed metrics of queries whose answers come from several states: see `Told`."""

Counted: TypeAlias = tuple[int, int | None, int, int, int]
"""Late rows, nulls, candidates, refused rows and bytes of a query: see `Told`."""


Bounds: TypeAlias = dict[str, Sequence[float | None]]
"""By query: rows that ranked and were missed, at most; the precision across streams. None: it is a query of the other kind."""


class Told(NamedTuple):
    """One query in one micro-batch, over the groups that had rows or whose windows closed."""

    late: int = 0  # rows dropped because their slide had closed
    nulls: int | None = None  # rows in time whose score was null or NaN; None: not counted, its state is sent only some
    candidates: int = 0  # rows held because they may rank, in the structure that answers it; others may share that
    refused: int = 0  # rows that a query across streams has no object or no stream for
    bytes: int = 0  # of that structure
    results: int = 0  # result rows
    oldest: int | None = None  # end of the earliest window among them, microseconds since 1970; None without timestamps


def take_nulls(monitor: Monitor) -> Counter[str]:
    """By query, rows without a score that were pushed since the last call. To be called before the state is written down, so
    that nothing is told twice."""
    found: Counter[str] = Counter()
    for lane in monitor._lanes:
        for member in lane.members:
            if member.active and member.nulls:
                found[member.query.name], member.nulls = member.nulls, 0
    return found


class Emitted:
    """Result rows by query, and the earliest end of a window in microseconds."""

    def __init__(self, end: str | None) -> None:
        """`end`: the column of window ends in time, if there is one."""
        self.end = end
        self.by_query: dict[str, tuple[int | None, ...]] = {}

    def add(self, results: pa.Table) -> Emitted:
        """Count these too."""
        own = results.select(["query"] if self.end is None else ["query", self.end])
        wanted = [("query", "count")] if self.end is None else [("query", "count"), (self.end, "min")]
        found = own.group_by("query", use_threads=False).aggregate(wanted)
        figures = [found["query_count"].to_pylist()]
        if self.end is not None:
            figures.append(found[f"{self.end}_min"].cast(pa.timestamp("us")).cast(pa.int64()).to_pylist())
        for name, (count, *ends) in zip(found["query"].to_pylist(), zip(*figures, strict=True), strict=True):
            before, *oldest = self.by_query.get(name, (0, *ends))
            self.by_query[name] = (before + count, *map(_earliest, oldest, ends))
        return self


def tell(counts: Mapping[str, Counted], emitted: Emitted) -> bytes:
    """Counts by query, with what was emitted."""
    nothing: Counted = (0, None, 0, 0, 0)  # is counted of a query that was cancelled after it had answered
    said = {name: [*counts.get(name, nothing), *emitted.by_query.get(name, ())] for name in {**counts, **emitted.by_query}}
    return zlib.compress(json.dumps(said, separators=(",", ":")).encode(), 1)


def heard(said: Iterable[bytes | str]) -> dict[str, Told]:
    """What groups told, added up by query."""
    sums: dict[str, Told] = {}
    for text in said:
        packed = base64.b64decode(text) if isinstance(text, str) else bytes(text)  # Spark's JSON has bytes as base64
        for name, figures in json.loads(zlib.decompress(packed)).items():
            one = Told(*figures)
            sums[name] = _added(one, sums[name]) if name in sums else one
    return sums


def heard_together(told: Mapping[str, Told], observed: Mapping[str, Any]) -> dict[str, Told]:
    """The same, with the result rows of queries whose answers were put together."""
    found = dict(told)
    for key, count in observed.items():
        if key.startswith(RESULTS):
            name = key.removeprefix(RESULTS)
            found[name] = found.get(name, Told())._replace(results=count, oldest=observed.get(f"{OLDEST}{name}"))
    return found


def worst(one: Sequence[float | None], other: Sequence[float | None] | None) -> Sequence[float | None]:
    """Of what two states say of a query, what holds of both."""
    if other is None:
        return one
    return [
        pick((value for value in values if value is not None), default=None)
        for pick, values in zip((max, min), zip(one, other, strict=True), strict=True)
    ]


def _earliest(*ends: int | None) -> int | None:
    return min((end for end in ends if end is not None), default=None)


def _added(one: Told, other: Told) -> Told:
    nulls = [count for count in (one.nulls, other.nulls) if count is not None]
    return Told(
        one.late + other.late,
        sum(nulls) if nulls else None,
        one.candidates + other.candidates,
        one.refused + other.refused,
        one.bytes + other.bytes,
        one.results + other.results,
        _earliest(one.oldest, other.oldest),
    )
