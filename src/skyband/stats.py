"""What `Monitor.stats` says of a query."""

from __future__ import annotations

from typing import Any

from skyband.algorithms import settled
from skyband.keys import LiveKeys
from skyband.lanes import Lane
from skyband.query import Query, Threshold, TopK


def stats_of_seated(lane: Lane, at: int, keys: LiveKeys | None) -> dict[str, Any]:
    """Of the query at a lane's place."""
    lane.settle()
    member = lane.members[at]
    counts = {"rows": member.rows, "late": member.late, "nulls": member.nulls, **_deletions(keys)}
    figures, sharing = lane.figures(at), sum(member.active for member in lane.members)
    return {"algorithm": "", **counts, **figures, "queries": sharing, "bytes_per_query": figures["bytes"] // sharing}


def stats_of_waiting(query: Query, keys: LiveKeys | None) -> dict[str, Any]:
    """Of a query that no row has come for yet."""
    counts = dict.fromkeys(("rows", "late", "nulls"), 0) | _deletions(keys)
    figures: dict[str, Any] = {"candidates": 0, "bytes": 0}
    if isinstance(query, TopK | Threshold):
        figures["search"] = "none"
        if _may_miss(query):
            figures["missed_at_most"] = 0.0
    return {"algorithm": query.algorithm, **counts, **figures, "queries": 1, "bytes_per_query": 0}


def _may_miss(query: TopK | Threshold) -> bool:
    named = query.algorithm != "auto" and settled(query.algorithm)[0].options.get("core") == "probabilistic"
    return named or query.error > 0


def _deletions(keys: LiveKeys | None) -> dict[str, int]:
    """How many keys that were to be deleted were those of live rows, and how many were not."""
    return {} if keys is None else {"deleted": keys.rows_deleted, "not_found": keys.not_found}
