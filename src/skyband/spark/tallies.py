"""What a group says of each query after a micro-batch, and what all groups said, put together.

One compressed text a group instead of columns: thousands of queries would be thousands of sums for Spark to compile.
It travels as an observed metric, so the driver hears it with the micro-batch's progress and nothing else is run for it.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

BY_QUERY = "by query"
"""The observed metric that holds the texts of all groups."""


class Told(NamedTuple):
    """One query in one micro-batch, over the groups that had rows or whose windows closed."""

    late: int = 0  # rows dropped because their slide had closed
    nulls: int = 0  # rows in time whose score was null or NaN
    candidates: int = 0  # rows held because they may rank, in the structure that answers it; others may share that
    results: int = 0  # result rows
    oldest: int | None = None  # end of the earliest window among them, microseconds since 1970; None without timestamps


def tell(counts: Mapping[str, tuple[int, int, int]], results: pa.Table | None, end: str | None) -> bytes:
    """Late rows, nulls and candidates by query, with what `results` holds; `end` is its column of window ends in time."""
    emitted = {} if results is None else _emitted(results, end)
    said = {name: [*map(int, count), *emitted.get(name, ())] for name, count in counts.items()}
    return zlib.compress(json.dumps(said, separators=(",", ":")).encode(), 1)


def heard(said: Iterable[bytes | str]) -> dict[str, Told]:
    """What groups told, added up by query."""
    sums: dict[str, Told] = {}
    for text in said:
        packed = base64.b64decode(text) if isinstance(text, str) else bytes(text)  # Spark's JSON has bytes as base64
        for name, figures in json.loads(zlib.decompress(packed)).items():
            one, so_far = Told(*figures), sums.get(name, Told())
            sums[name] = Told(
                one.late + so_far.late,
                one.nulls + so_far.nulls,
                one.candidates + so_far.candidates,
                one.results + so_far.results,
                min((end for end in (one.oldest, so_far.oldest) if end is not None), default=None),
            )
    return sums


def _emitted(results: pa.Table, end: str | None) -> dict[str, tuple[Any, ...]]:
    """Result rows by query, and the earliest end of a window in microseconds."""
    own = results.select(["query"] if end is None else ["query", end])
    wanted = [("query", "count")] if end is None else [("query", "count"), (end, "min")]
    found = own.group_by("query", use_threads=False).aggregate(wanted)
    counts = found["query_count"].to_pylist()
    if end is None:
        return dict(zip(found["query"].to_pylist(), ((count,) for count in counts), strict=True))
    ends = found[f"{end}_min"].cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()
    return dict(zip(found["query"].to_pylist(), zip(counts, ends, strict=True), strict=True))
