"""Kernels compiled or loaded ahead: a worker that finds them in the cache starts at once.

The first run on a machine compiles for half a minute. Doing it in the driver while the JVM starts hides most of it,
and two workers do not compile the same kernels at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pyarrow as pa

from skyband.lanes import attributes_of
from skyband.monitor import Monitor
from skyband.query import Query, RankedQuery, Threshold, TopK, TopKAcross, TopKPairs
from skyband.saving import monitor_from_bytes, monitor_to_bytes
from skyband.scores.expression import comparison
from skyband.scores.score import score_key, where_key
from skyband.spark.contest import Contest, contends
from skyband.spark.group import Group
from skyband.spark.paces import by_slide
from skyband.spark.plan import TIE, make_request
from skyband.spark.reduce import reduced
from skyband.spark.shards import MANY
from skyband.window import CountWindow, TimeWindow, nanoseconds

_ROWS = 256


def warm(queries: Iterable[Query]) -> None:
    """Run both steps of the pipeline over a few made-up rows, with the queries' windows and algorithms; of what shards answer,
    their monitors."""
    given = list(queries)
    ranked = [query for query in given if isinstance(query, TopK | Threshold)]
    apart: list[Query] = [query for query in given if not isinstance(query, TopK | Threshold)]
    if len({(score_key(query.score), where_key(query.where)) for query in ranked}) > MANY:
        apart, ranked = given, []
    if ranked:
        _warm_scores([replace(query, score="x", where=None) for query in ranked])
    if apart:
        _warm_shards(apart)


def _warm_shards(queries: list[Query]) -> None:
    numbers = np.random.default_rng(1).random(_ROWS)
    columns: dict[str, Any] = {}
    for query in queries:
        if isinstance(query, TopKAcross):
            columns |= {query.key: np.arange(_ROWS) % 9, query.stream: [query.streams[0]] * _ROWS}
            columns.setdefault(query.value, np.full(_ROWS, cast(Any, query.ranges)[query.streams[0]][0]))
        else:
            for name in query.door.reads if isinstance(query, TopKPairs) else attributes_of(query):
                compares = comparison(name)  # with a text, or not
                column = name if compares is None else compares[0]
                columns[column] = columns.get(column, numbers) if compares is None else [compares[2]] * _ROWS
    monitor = Monitor([replace(query, window=CountWindow(_ROWS // 2, _ROWS // 8)) for query in queries])
    monitor.push(columns)
    monitor_from_bytes(Monitor, monitor_to_bytes(monitor), {})
    if timed := [replace(query, window=TimeWindow(_ROWS // 2, _ROWS // 8)) for query in queries if contends(query)]:
        Contest(by_slide([_ROWS // 8], timed)).contenders(pa.table(columns), np.zeros(_ROWS, np.int64), np.arange(_ROWS))


def _warm_scores(asked: list[RankedQuery]) -> None:
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
                counts = np.frombuffer(row["counts"], np.int64).reshape(-1, 3 + plan.slots)
                list(group.add(group.rows_of([row["rows"]]), counts))
    list(group.finish())
    Group.restore(plan, group.snapshot())
