"""Result rows: what `push` returns, and how a stream of changes folds into the current top.

A result row says: in the window of `query` that ended at `window_end`, this row entered or left the top-k, or
was part of it. Leaves come before enters; enters come by rank.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from skyband.errors import SchemaError
from skyband.memory import joined, pooled, taken

RESULT_COLUMNS = ("query", "window_end", "window_end_time", "event", "rank", "score", "seq")
PAIR_COLUMNS = ("a_seq", "b_seq")
EVENTS = ("enter", "leave", "top")


class Emitted(NamedTuple):
    """Result rows of one lane as arrays, before rows are looked up. `query` counts the lane's queries."""

    query: np.ndarray  # int64
    window_end: np.ndarray  # int64
    event: np.ndarray  # int8, a place in EVENTS
    rank: np.ndarray  # int64, 0 for a leave
    score: np.ndarray  # float64
    ordinal: np.ndarray  # int64

    @classmethod
    def room(cls, n: int) -> Emitted:
        whole = [pooled(n, np.int64) for _ in range(4)]
        return cls(whole[0], whole[1], pooled(n, np.int8), whole[2], pooled(n, np.float64), whole[3])

    def where(self, places: np.ndarray | slice) -> Emitted:
        """The rows at these places (numbers, a slice, or a mark for each row)."""
        if isinstance(places, np.ndarray) and places.dtype != bool:
            return Emitted(*(taken(column, places) for column in self))
        return Emitted(*(column[places] for column in self))

    @classmethod
    def join(cls, parts: list[Emitted]) -> Emitted:
        if not parts:
            return NO_EVENTS
        return parts[0] if len(parts) == 1 else cls(*(joined(list(columns)) for columns in zip(*parts, strict=True)))


NO_EVENTS = Emitted.room(0)


def row_column_names(names: list[str], taken: tuple[str, ...] = RESULT_COLUMNS) -> list[str]:
    """The rows' own column names as they stand in results: a name that a result column has gets `row_` before it.

    >>> row_column_names(["price", "score"])
    ['price', 'row_score']
    """
    result: list[str] = []
    for name in names:
        new = name
        while new in taken or (new != name and (new in names or new in result)):
            new = f"row_{new}"
        result.append(new)
    return result


def fold(changes: pa.Table, top: pa.Table | None = None, *, queries: Iterable[str] | None = None) -> pa.Table:
    """Apply change rows (of `emit="changes"`) to a current top: the rows of every query's top-k after them.

    `top` is what an earlier `fold` returned; None stands for the beginning of the stream. A query that is cancelled has no
    more changes: its rows stay, unless `queries` names those to keep, as in `fold(changes, top, queries=monitor.queries)`.

    >>> import skyband as sb
    >>> monitor = sb.Monitor([sb.TopK(name="q", k=1, score="x", window=sb.CountWindow(2))])
    >>> fold(monitor.push({"x": [1.0, 3.0, 2.0]})).column("x").to_pylist()
    [3.0]
    """
    for table in (changes,) if top is None else (changes, top):
        if missing := [name for name in ("query", "event") if name not in table.column_names]:
            raise SchemaError(
                f"fold takes result rows; a table without the column {missing[0]!r} has none: {table.column_names}"
            )
    changes = _joined(top, changes)
    events = changes.column("event")
    if "top" in events.unique().to_pylist():
        raise SchemaError('fold takes the rows of emit="changes"; rows of emit="snapshots" are whole tops already')
    keys = _identities(changes)
    kept = None if queries is None else set(queries)
    present: dict[tuple[Any, ...], int] = {}
    for place, (key, event) in enumerate(zip(keys, events.to_pylist(), strict=True)):
        if event == "enter" and (kept is None or key[0] in kept):
            present[key] = place
        else:
            present.pop(key, None)
    return changes.take(pa.array(list(present.values()), pa.int64()))


def _joined(top: pa.Table | None, changes: pa.Table) -> pa.Table:
    """Both tables as one. Columns come with the first rows, and with queries of another kind."""
    if top is None or len(top) == 0:
        return changes
    if len(changes) == 0:
        return top
    if _types_of_ends(top) != _types_of_ends(changes):
        top, changes = _times_apart(top), _times_apart(changes)
    try:
        return pa.concat_tables([top, changes], promote_options="default")
    except pa.ArrowException as problem:
        raise SchemaError(f"fold takes result rows of one monitor, and these have other columns: {problem}") from problem


def _types_of_ends(results: pa.Table) -> list[pa.DataType]:
    """Of `window_end`, and of `window_end_time` where there are windows of both kinds."""
    return [results.field(name).type for name in ("window_end", "window_end_time") if name in results.column_names]


def _times_apart(results: pa.Table) -> pa.Table:
    """The same, with window ends that are times where they stand beside those of count windows, which are int64."""
    ends = results.column("window_end")
    if "window_end_time" in results.column_names or ends.type == pa.int64():
        return results
    place = results.column_names.index("window_end")
    return results.set_column(place, "window_end", pa.nulls(len(results), pa.int64())).add_column(
        place + 1, "window_end_time", ends
    )


def _identities(results: pa.Table) -> list[tuple[Any, ...]]:
    """Query and who a result row is about: a row, a pair, or, where neither is named, the object whose key stands there. A
    row's `seq` is enough: where there are no pairs, the columns called as theirs are its own, of any type."""

    def cells(names: Iterable[str]) -> list[tuple[Any, ...]]:
        columns = [results.column(name).to_pylist() for name in names if name in results.column_names]
        return list(zip(*columns, strict=True)) if columns else [()] * len(results)

    queries, rows, pairs = cells(["query"]), cells(["seq"]), cells(PAIR_COLUMNS)
    others: list[tuple[Any, ...]] | None = None
    found = []
    for at, query in enumerate(queries):
        about = next((one[at] for one in (rows, pairs) if any(number is not None for number in one[at])), None)
        if about is None:
            others = others or cells(name for name in results.column_names if name not in (*RESULT_COLUMNS, *PAIR_COLUMNS))
            about = others[at]
        found.append((*query, *about))
    return found
