"""The tops as they stand, from result rows: what a screen shows. Nothing is computed twice for it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from skyband.changes import EVENTS
from skyband.query import Query, TopKAcross, TopKPairs

MOST_GROUPS = 64
"""Groups a board keeps; more would not fit a screen."""

_ENDS = ("window_end", "window_end_time")
_ABOUT: dict[type, str] = {TopKPairs: "pair", TopKAcross: "object"}


@dataclass(frozen=True)
class Entry:
    """A row in a top, and the end of the window with which it came in."""

    score: float
    rank: int  # when it came in
    row: Mapping[str, Any]
    since: Any


@dataclass
class Top:
    """The top of one query and group as of the window that ended last."""

    end: Any = None
    entries: list[Entry] = field(default_factory=list)  # best first
    before: dict[str, Entry] = field(default_factory=dict)  # of the window before, where windows come whole, by their rows
    standing: dict[str, list[Entry]] = field(default_factory=dict)  # who is in it, where changes tell, by their rows


class Board:
    """Current tops, by query and group.

    Snapshots replace a top. Changes move it, so a top that was there before this board was shows only who came in since.
    Of arrivals the last k are kept, the last first.
    """

    def __init__(self, queries: Iterable[Query], groups: Iterable[str] = ()) -> None:
        self.queries = {query.name: query for query in queries}
        self.groups = tuple(groups)
        self.tops: dict[str, dict[tuple[Any, ...], Top]] = {name: {} for name in self.queries}

    def take(self, results: pa.Table) -> None:
        """Result rows of one micro-batch, as `skyband.spark.monitor` gives them. Acknowledgements, and the rows of queries that
        were added by a command, are left out: nobody told the board of these."""
        results = results.filter(pc.is_in(results["event"], pa.array(EVENTS)))
        for name in pc.unique(results["query"]).to_pylist():
            if name not in self.queries:
                continue
            query, own = self.queries[name], results.filter(pc.equal(results["query"], name))
            end = next(column for column in _ENDS if column in own.column_names and own[column].null_count == 0)
            own = own.sort_by([(end, "ascending"), ("rank", "ascending")])
            if query.emit == "snapshots" and not self.groups:  # the last two windows tell all: the top, and who is new in it
                ends = pc.unique(own[end])
                own = own.filter(pc.greater_equal(own[end], ends[max(len(ends) - 2, 0)]))
            for result in rows_of(own):
                self._apply(query, result, result[end])
            if query.emit == "changes":
                for top in self.tops[name].values():
                    top.entries = _ranked(top.standing, query.order)

    def _apply(self, query: Query, result: Mapping[str, Any], end: Any) -> None:
        tops, group = self.tops[query.name], tuple(_alike(result[name]) for name in self.groups)
        if group not in tops and len(tops) == MOST_GROUPS:
            return
        top = tops.setdefault(group, Top())
        about = _ABOUT.get(type(query), "row")
        written = result[about]  # of a sink of JSON as text
        row = shown({**result, about: json.loads(written)} if isinstance(written, str) else result)
        said = repr(row)  # rows that say the same are the same; a NaN is the same as another here
        came = Entry(result["score"], result["rank"], row, end)
        if result["event"] == "top":
            if end != top.end:
                top.before, top.entries = {repr(entry.row): entry for entry in reversed(top.entries)}, []
            top.entries.append(top.before.get(said, came))
        elif result["event"] == "enter" and query.emit == "arrivals":
            top.entries.insert(0, came)
            del top.entries[query.k :]
        elif result["event"] == "enter":
            top.standing.setdefault(said, []).append(came)
        elif said in top.standing:
            del top.standing[said][0]
            if not top.standing[said]:
                del top.standing[said]
        top.end = end


def _alike(value: Any) -> Any:
    """A group's value; of all NaN the one that is equal to itself as a key."""
    return math.nan if value != value else value


def rows_of(results: pa.Table) -> list[dict[str, Any]]:
    """Result rows as Python has them; a time it has none for, such as one after the year 9999, as text."""
    try:
        return results.to_pylist()
    except OverflowError:
        return [{name: _value(results[name][at]) for name in results.column_names} for at in range(len(results))]


def _value(found: pa.Scalar) -> Any:
    """One value, the parts of a struct, a list or a map each for itself."""
    if not found.is_valid:
        return None
    if isinstance(found, pa.MapScalar):
        return [(_value(entry["key"]), _value(entry["value"])) for entry in found.values]
    if isinstance(found, pa.StructScalar):
        return {field.name: _value(found[field.name]) for field in found.type}
    if isinstance(found, pa.ListScalar):
        return [_value(one) for one in found.values]
    try:
        return found.as_py()
    except OverflowError:
        return found.cast(pa.string()).as_py()


def shown(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Who a result row is about, as one row: the rows of a pair side by side, or the key of an object. A column of that name
    that is no struct is a group's."""
    if isinstance(pair := result.get("pair"), Mapping):
        return {f"{side}.{name}": value for side in ("a", "b") for name, value in pair[side].items()}
    if isinstance(thing := result.get("object"), Mapping):
        return {name: value for name, value in thing.items() if value is not None}
    row: Mapping[str, Any] = result["row"]
    return row


def _ranked(standing: Mapping[str, list[Entry]], order: str) -> list[Entry]:
    """Best first; of equal scores the row that came in later, as the order of skyband has it."""
    entries = [entry for alike in standing.values() for entry in alike]
    entries.sort(key=lambda entry: entry.rank)
    entries.sort(key=lambda entry: entry.since, reverse=True)
    entries.sort(key=lambda entry: entry.score, reverse=order == "desc")
    return entries
