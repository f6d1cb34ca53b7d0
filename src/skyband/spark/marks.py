"""What a checkpoint must agree with: digests of what was asked, and what changed in words."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from skyband.errors import StateError
from skyband.query import Query
from skyband.spark.watermark import Scale
from skyband.state import FORMAT

_MOST_NAMED = 1000  # queries that are told apart: the marks stand in every state

REMEDY = (
    "the checkpoint was written by another version of skyband: go on with that one, or start with a new checkpointLocation, "
    "from an offset that is a window's length back, so that its windows fill again"
)
"""What to do about a state of another format."""
REMEDY_WITH_COMMANDS = f"{REMEDY}; queries that were added by commands must be added again"
_FORMAT = "format of the states"
_SHARDS = "shards="


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
        marks[f"{_SHARDS}{spread}"] = ""
    return marks


def scale_mark(scale: Scale) -> dict[str, str]:
    """A mark where times are integers: what the watermark in the checkpoint stands for."""
    return {"what the watermark counts": f"steps of {scale.tick}"} if scale.integer else {}


def digest(content: Any) -> str:
    """A short text, equal for equal content."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def written_marks(marks: Mapping[str, str]) -> dict[str, Any]:
    """What a checkpoint's folder says of it: the format of its states, and the marks."""
    return {_FORMAT: FORMAT, **marks}


def check_written(then: Any, now: Mapping[str, str], remedy: str) -> None:
    """StateError when a checkpoint's folder says that it is of another format, or was written for something else."""
    if not isinstance(then, dict):
        raise StateError("this checkpoint does not say what it was written for; start with a new checkpointLocation")
    version = then.get(_FORMAT)
    if version != FORMAT:
        newer = isinstance(version, int) and version > FORMAT
        said = "a format that it does not say" if version is None else f"the format {version}"
        raise StateError(
            f"this checkpoint has states of {said}, {'a newer' if newer else 'an older'} one than {FORMAT}, which this skyband "
            f"reads; {remedy}"
        )
    check_marks({name: mark for name, mark in then.items() if name != _FORMAT}, now)


def check_marks(then: Any, now: Mapping[str, str]) -> None:
    """StateError when a checkpoint was written for other queries or columns."""
    changed = differences(then, now)
    spread = shards_in(then)
    if changed and spread is not None and _without_shards(then) == _without_shards(now):
        raise StateError(
            f"this checkpoint was written with shards={spread} ({changed}); unless told they are as many as shuffle "
            f"partitions, which follow the cores: say monitor(..., shards={spread}) to go on with it"
        )
    if changed:
        raise StateError(
            f"this checkpoint was written for other queries: {changed}; start with a new checkpointLocation, "
            "or ask what was asked when it was written"
        )


def shards_in(marks: Mapping[str, str]) -> int | None:
    """Over how many states the work was spread; None where it was not."""
    return next((int(name.removeprefix(_SHARDS)) for name in marks if name.startswith(_SHARDS)), None)


def _without_shards(marks: Mapping[str, str]) -> dict[str, str]:
    return {name: mark for name, mark in marks.items() if not name.startswith(_SHARDS)}


def differences(then: Mapping[str, str], now: Mapping[str, str]) -> str:
    """What changed between two sets of marks, in words; empty when nothing did."""
    gone = [f"{name} is gone" for name in then if name not in now]
    new = [f"{name} is new" for name in now if name not in then]
    changed = [f"{name} changed" for name in now if name in then and then[name] != now[name]]
    return ", ".join(gone + new + changed)
