"""A made-up stream, the questions asked of it wherever it comes from, and the embedded engine's answers to them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

import skyband as sb

LATENESS = timedelta(seconds=5)
SCHEMA = "ts timestamp, id bigint, venue string, price double"
QUERIES = [
    sb.TopK(name="best", k=3, score="price", window=sb.TimeWindow("10 seconds", "1 second"), emit="snapshots"),
    sb.TopK(name="least", k=2, score="-price * 2", where="price > 0.2", window=sb.TimeWindow("4 seconds", "1 second")),
]
Answer = tuple[str, str, str, str, int | None, float, int]
"""query, venue, window end, event, rank, score, the row's id"""


def trades(count: int = 1200, seed: int = 5) -> pa.Table:
    """Rows 50 ms apart, up to a second out of order; many prices are equal, some are missing."""
    generator = np.random.default_rng(seed)
    times = 1_767_600_000_000_000 + np.arange(count) * 50_000 - generator.integers(0, 1_000_000, count)
    return pa.table(
        {
            "ts": pa.array(times).cast(pa.timestamp("us", "UTC")),
            "id": np.arange(count),
            "venue": np.array(["north", "south"])[generator.integers(0, 2, count)],
            "price": pa.array(np.round(generator.random(count), 2), mask=generator.random(count) < 0.01),
        }
    )


def embedded(rows: pa.Table) -> list[Answer]:
    """What a Monitor per venue answers, up to where a stream of these rows closes its windows."""
    newest = max(rows["ts"].to_pylist())
    answers: list[Answer] = []
    for venue in ("north", "south"):
        of_venue = rows.filter(pa.compute.equal(rows["venue"], venue)).sort_by([("ts", "ascending"), ("id", "ascending")])
        monitor = sb.Monitor(QUERIES, time="ts")
        for results in (monitor.push(of_venue), monitor.advance(newest)):
            answers += [answer(row, row) for row in results.to_pylist() if row["window_end"] <= newest - LATENESS]
    return sorted(answers, key=str)


def answer(result: dict[str, Any], row: dict[str, Any]) -> Answer:
    """A result row in plain values; `row` has the input's columns. JSON leaves nulls out and has times as texts."""
    end = result["window_end"]
    moment = datetime.fromisoformat(end) if isinstance(end, str) else end
    stamp = moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC).strftime("%H:%M:%S.%f")
    return result["query"], row["venue"], stamp, result["event"], result.get("rank"), float(result["score"]), row["id"]


def by_query(said: dict[str, Any], figure: str) -> dict[str, Any]:
    """A figure of each query out of a line of `skyband run --json`."""
    return {name: told[figure] for name, told in said["queries"].items()}
