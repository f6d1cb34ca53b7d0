"""Kernels compiled or loaded ahead: a worker that finds them in the cache starts at once.

The first run on a machine compiles for half a minute. Doing it in the driver while the JVM starts hides most of it,
and two workers do not compile the same kernels at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from skyband.query import Query, Threshold, TopK
from skyband.spark.group import Group
from skyband.spark.plan import TIE, make_request
from skyband.spark.reduce import reduced
from skyband.state import table_from_bytes
from skyband.window import TimeWindow, nanoseconds

_ROWS = 256


def warm(queries: Iterable[Query]) -> None:
    """Run both steps of the pipeline over a few made-up rows, with the windows and algorithms of the queries that rank rows."""
    asked = [replace(query, score="x", where=None) for query in queries if isinstance(query, TopK | Threshold)]
    if not asked:
        return
    timed = [query.window for query in asked if isinstance(query.window, TimeWindow)]
    whole = any(isinstance(window.slide, int) for window in timed)  # an integer time column
    spans = [window.slide if isinstance(window.slide, int) else nanoseconds(window.slide, "slide") // 1000 for window in timed]
    kind = pa.int64() if whole else pa.timestamp("us", "UTC")
    schema = pa.schema([("time", kind), ("x", pa.float64())])
    plan = make_request(schema, asked, "time", 0, (), None).plan
    time = np.sort(np.random.default_rng(1).integers(0, 4 * max(spans, default=_ROWS), _ROWS))
    x = np.arange(_ROWS) % 7.0
    columns = {"c0": pa.array(time).cast(kind), "c1": x, "s0": x, TIE: np.arange(_ROWS)}
    group = Group(plan)
    for part in reduced(plan, [pa.RecordBatch.from_pydict(columns)]):
        for row in part.to_pylist():
            if row["rows"] is not None:
                group.add(table_from_bytes(row["rows"]), np.frombuffer(row["counts"], np.int64).reshape(-1, 3 + plan.slots))
    group.finish()
    Group.restore(plan, group.snapshot())
