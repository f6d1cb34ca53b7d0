"""What a checkpoint must agree with: digests of what was asked, and what changed in words."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from skyband.errors import StateError
from skyband.query import Query

_MOST_NAMED = 1000  # queries that are told apart: the marks stand in every state

REMEDY = (
    "the checkpoint was written by another version of skyband: go on with that one, or start with a new checkpointLocation, "
    "from an offset that is a window's length back, so that its windows fill again"
)
"""What to do about a state of another format."""


def make_marks(
    queries: Sequence[Query], schema: pa.Schema, ways: Sequence[Any], deletions: Sequence[Any], spread: int | None
) -> dict[str, str]:
    """A digest of each query, of the columns, and of what else the state depends on."""
    if len(queries) <= _MOST_NAMED:
        marks = {f"query {query.name!r}": digest(query.to_json()) for query in queries}
    else:
        marks = {"some of the queries": digest([query.to_json() for query in queries])}
    marks["the input's columns"] = digest([[field.name, str(field.type)] for field in schema])
    marks["time, group_by and arrival"] = digest(ways)
    if any(one is not None for one in deletions):
        marks["key and deletes"] = digest(deletions)
    if spread is not None:
        marks[f"shards={spread}"] = ""
    return marks


def digest(content: Any) -> str:
    """A short text, equal for equal content."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def check_marks(then: Any, now: Mapping[str, str]) -> None:
    """StateError when a checkpoint was written for other queries or columns."""
    changed = differences(then, now)
    if changed:
        raise StateError(
            f"this checkpoint was written for other queries: {changed}; start with a new checkpointLocation, "
            "or ask what was asked when it was written"
        )


def differences(then: Mapping[str, str], now: Mapping[str, str]) -> str:
    """What changed between two sets of marks, in words; empty when nothing did."""
    gone = [f"{name} is gone" for name in then if name not in now]
    new = [f"{name} is new" for name in now if name not in then]
    changed = [f"{name} changed" for name in now if name in then and then[name] != now[name]]
    return ", ".join(gone + new + changed)
