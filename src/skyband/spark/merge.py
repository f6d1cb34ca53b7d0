"""Parts of answers put together: the tops that several shards have of a window give the top of the window.

No memory is needed. All shards of a group are told the same times and, where rows are counted, of every row, so that they close
a window in the same micro-batch, and with its own top each repeats that of the window before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import numpy as np
import pyarrow as pa

from skyband.numbering import plain_keys
from skyband.query import Query
from skyband.spark.flat import bounds_of, result_schema
from skyband.spark.plan import Plan
from skyband.spark.shards import whole_name
from skyband.window import CountWindow

PART_COLUMNS = ("end", "p0", "p1", "p2", "p3")
"""What follows the flat columns in a part: the window's end, and what of equal scores ranks first, the larger. Then `upto`, the
end of the last window that closed, and `new`: closed in this micro-batch."""


def merged(plan: Plan, parts: Iterable[pa.Table]) -> pa.Table:
    """Result rows of one query and group, from all shards' parts of one micro-batch."""
    table = pa.concat_tables(parts)
    query = plan.merged[whole_name(table["query"][0].as_py())]
    end, new, upto = table["end"].to_numpy(), table["new"].to_numpy(), int(table["upto"].to_numpy().max())
    score = table["score"].to_numpy()
    turned = score if query.order == "asc" else -score
    newest_first = [~table[name].to_numpy() for name in ("p3", "p2", "p1", "p0")]
    order = np.lexsort((*newest_first, turned, end))
    ends, starts = np.unique(end[order], return_index=True)
    tops = {int(one): places[: query.k] for one, places in zip(ends, np.split(order, starts[1:]), strict=True)}
    fresh = {int(one) for one in np.unique(end[new])}
    if query.emit == "snapshots":
        events = [(one, "top", rank, place) for one in sorted(fresh) for rank, place in enumerate(tops[one], 1)]
    else:
        events = list(_changes(query, tops, fresh, upto, _identities(plan, query, table)))
    return _result(plan, query, table, events)


def _changes(query: Query, tops: dict[int, np.ndarray], fresh: set[int], upto: int, who: list[Any]) -> Iterable[Any]:
    """Who entered and who left, window by window; leaves first, then enters by rank."""
    slide = cast(int, query.window.slide)
    emptied = {one + slide for one in tops if one + slide <= upto and one + slide not in tops}
    nobody = np.zeros(0, np.int64)
    for end in sorted(fresh | emptied):
        before, now = tops.get(end - slide, nobody).tolist(), tops.get(end, nobody).tolist()
        there, was = _told_apart(who, now), _told_apart(who, before)
        present, known = set(there), set(was)
        yield from ((end, "leave", 0, place) for place, one in zip(before, was, strict=True) if one not in present)
        entered = enumerate(zip(now, there, strict=True), 1)
        yield from ((end, "enter", rank, place) for rank, (place, one) in entered if one not in known)


def _told_apart(who: list[Any], places: list[int]) -> list[tuple[Any, int]]:
    """Who stands at each place; of those that nobody can tell apart, the first, the second, ..."""
    seen: dict[Any, int] = {}
    told = []
    for place in places:
        seen[who[place]] = seen.get(who[place], 0) + 1
        told.append((who[place], seen[who[place]]))
    return told


def _identities(plan: Plan, query: Query, table: pa.Table) -> list[Any]:
    if query.identity == "pair":
        return list(zip(*(table[name].to_pylist() for name in ("p0", "p1", "p2", "p3")), strict=True))
    key = cast(Any, query).key
    return plain_keys(table[f"k{plan.names.index(key)}"]).to_pylist()


def _result(plan: Plan, query: Query, table: pa.Table, events: list[Any]) -> pa.Table:
    schema = result_schema(plan)
    if not events:
        return schema.empty_table()
    end, event, rank, place = zip(*events, strict=True)
    rows = table.take(pa.array(np.array(place, np.int64)))
    names = pa.array([query.name] * len(events), pa.string())
    counted = isinstance(query.window, CountWindow)
    sizes = {query.name: cast(int, query.window.size)}
    bounds = bounds_of(plan, sizes, names, np.array(end, np.int64), counted=counted)
    number = np.array(rank, np.int32)
    ranks = pa.array(number, mask=number == 0)
    happened = [names, *bounds, pa.array(event, pa.string()), ranks, rows["score"]]
    return pa.table([*happened, *(rows[name] for name in schema.names[len(happened) :])], names=schema.names)
